"""Linear assignment: matched pairs, totals and dual variables of assignment problems."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, as_integer_array, as_real_array, check_flag, check_integer
from kernelcore._threads import Progress, reporting, threads_for

Indices: TypeAlias = npt.NDArray[np.int64]


class Duals(NamedTuple):
    """Dual variables: proof that an assignment is optimal; see `linear_assignment`.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
    cols : ndarray of shape (n_cols,)
    link : float
    """

    rows: Array
    cols: Array
    link: float


@dataclass(frozen=True, eq=False)
class Assignments:
    """Links of many problems, concatenated.

    ``assignments[b]`` is the pair (row_ind, col_ind) of problem b, as SciPy returns it.

    Attributes
    ----------
    row_ind, col_ind : ndarray of int64, shape (n_links,)
        Rows and columns that are linked, the rows of each problem ascending.
    offsets : ndarray of int64, shape (n_problems + 1,)
        Start of each problem's links, and the end of the last.
    totals : ndarray of float64, shape (n_problems,)
        Sum of the linked entries of each problem.
    duals : tuple of Duals, optional
        Of each problem, where they were asked for.

    Examples
    --------
    >>> from kernelcore.matching import linear_assignments
    >>> assignments = linear_assignments([[[1.0, 2.0], [0.0, 4.0]], [[3.0, 1.0]]])
    >>> len(assignments), assignments.totals
    (2, array([2., 1.]))
    >>> assignments[1]
    (array([0]), array([1]))
    """

    row_ind: Indices
    col_ind: Indices
    offsets: Indices
    totals: npt.NDArray[np.float64]
    duals: tuple[Duals, ...] | None = None

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, problem: int) -> tuple[Indices, Indices]:
        start, end = self.offsets[range(len(self))[problem] :][:2]
        return self.row_ind[start:end], self.col_ind[start:end]

    def padded(self) -> tuple[Indices, Indices]:
        """Return the links of each problem in a row, filled up with -1.

        Returns
        -------
        row_ind, col_ind : ndarray of int64, shape (n_problems, most links of a problem)
        """
        counts = np.diff(self.offsets)
        is_link = np.arange(counts.max(initial=0)) < counts[:, np.newaxis]
        rows, cols = np.full((2, *is_link.shape), -1, np.int64)
        rows[is_link], cols[is_link] = self.row_ind, self.col_ind
        return rows, cols

    def __repr__(self) -> str:
        return f"Assignments({len(self)} problems, {len(self.row_ind)} links)"


_MOST_LINKS = 2**62
_LONGEST_SIDE = 2**31 - 1
_INFINITE = -2  # a sum of costs, as in bind_assignment.cpp


def linear_assignment(
    cost: npt.ArrayLike,
    *,
    maximize: bool = False,
    k: int | None = None,
    threshold: float | None = None,
    return_duals: bool = False,
) -> Any:
    r"""Linear assignment: links of rows and columns with the smallest, or largest, sum.

    .. math::

        \min_x \sum_{ij} c_{ij} x_{ij} \quad \text{with} \quad
        \sum_j x_{ij} \le 1, \; \sum_i x_{ij} \le 1, \; \sum_{ij} x_{ij} = k, \;
        x_{ij} \in \{0, 1\}

    Parameters
    ----------
    cost : array_like of shape (n_rows, n_cols)
        Cost of each link, or its gain if `maximize`. Infinity (minus infinity if `maximize`)
        forbids a link.
    maximize : bool, default False
        Look for the greatest sum.
    k : int, optional
        Number of links; min(n_rows, n_cols) if it is omitted or greater than that.
    threshold : float, optional
        Make at most `k` links, with the least sum of ``cost - threshold``, or the greatest if
        `maximize`. So no link is beyond the threshold, and a link is left out if it would
        raise the cost of others by more than its own difference. An infinite threshold makes
        as many links as possible. The default makes exactly `k` links at any cost.
    return_duals : bool, default False
        Return the dual variables too.

    Returns
    -------
    row_ind, col_ind : ndarray of int64, shape (n_links,)
        Rows, ascending, and the columns that they are linked to, as
        `scipy.optimize.linear_sum_assignment` returns them.
    duals : Duals
        Only if `return_duals`: d for a link, :math:`u_i \le 0` for rows, :math:`v_j \le 0` for
        columns with :math:`c_{ij} \ge d + u_i + v_j`, equal for links, and 0 for rows and
        columns without one. Then :math:`\sum c = k d + \sum u + \sum v` for these links and is
        no less for any others. All inequalities are reversed if `maximize`. Each holds up to
        rounding: in all problems that were tried, :math:`u_i` and :math:`v_j` were above 0 by
        less than ``eps * max(abs(cost))``.

    Raises
    ------
    TypeError
        If `cost` does not hold real numbers or an option is of the wrong kind.
    ValueError
        If `cost` is not 2-D, has more than 2**31 - 1 rows or columns, holds NaN or an
        infinity that would be the best link of all, forbids too much for `k` links, or `k` or
        `threshold` is out of range.

    See Also
    --------
    linear_assignments : Many problems at once.
    k_cardinality_assignments : All k at once.
    kernelcore.reference.matching.linear_assignments : The same by SciPy, on a larger matrix.

    Notes
    -----
    Shortest augmenting paths [1]_ [2]_, from the cheapest columns of all rows for
    k = min(n_rows, n_cols), otherwise one link after another, which gives the best k links for
    every k [3]_. float32 is solved in float32, everything else in float64; rounding may make
    the sum miss the best one by a few units in the last place of the largest costs. Of
    several best assignments the same is found each time, on every machine. Takes
    O(k n_rows n_cols) time.

    References
    ----------
    .. [1] R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and
       sparse linear assignment problems", Computing 38, 1987.
    .. [2] D. F. Crouse, "On implementing 2D rectangular assignment algorithms", IEEE
       Transactions on Aerospace and Electronic Systems 52(4), 2016.
    .. [3] M. Dell'Amico and S. Martello, "The k-cardinality assignment problem", Discrete
       Applied Mathematics 76, 1997.

    Examples
    --------
    >>> from kernelcore.matching import linear_assignment
    >>> similarity = [[0.9, 0.8, 0.1], [0.8, 0.2, 0.1]]
    >>> linear_assignment(similarity, maximize=True)
    (array([0, 1]), array([1, 0]))
    >>> linear_assignment(similarity, maximize=True, k=1)
    (array([0]), array([0]))

    A second link adds 0.7 to the sum, less than 0.75:

    >>> linear_assignment(similarity, maximize=True, threshold=0.75)
    (array([0]), array([0]))
    """
    costs = _as_costs("cost", cost)
    is_max = check_flag("maximize", maximize)
    bound, limit = _bounds(k, threshold, costs)
    with_duals = check_flag("return_duals", return_duals)
    links, duals = _core.linear_assignments(
        costs, None, is_max, bound, limit, with_duals, 1, None
    )
    _, rows, cols, _, failure = links
    if failure is not None and failure[1] != _INFINITE:
        raise _unsolved("cost", costs, bound, failure[1], is_max)
    return (rows, cols, Duals(*duals[0])) if with_duals else (rows, cols)


def linear_assignments(
    costs: npt.ArrayLike | Sequence[npt.ArrayLike],
    *,
    n_columns: npt.ArrayLike | None = None,
    maximize: bool = False,
    k: int | None = None,
    threshold: float | None = None,
    return_duals: bool = False,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Assignments:
    """Solve many linear assignment problems at once.

    Parameters
    ----------
    costs : array_like of shape (n_problems, n_rows, n_cols), or sequence of matrices
        One matrix for each problem, of any shapes if they are a list or tuple.
    n_columns : array_like of int, shape (n_problems,), optional
        Number of the first columns of each problem in an array that count; the others are
        padding, which may hold anything: the targets of each image where a detector is
        trained, say. The default is all.
    maximize, k, threshold, return_duals
        As in `linear_assignment`, for each problem by itself.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tasks done, tasks).

    Returns
    -------
    Assignments
        ``assignments[b]`` is (row_ind, col_ind) of problem b, ``assignments.padded()`` two
        matrices with a row for each problem.

    Raises
    ------
    TypeError, ValueError
        As `linear_assignment`; the message names the first problem that is at fault. Also if
        `n_columns` are no integers from 0 to the number of columns, one for each problem, or
        are given for a list of matrices.

    Notes
    -----
    Arrays of float32 or float64 are used in place. If a list holds both, all are solved in
    float64.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.matching import linear_assignments
    >>> costs = np.array([[[4, 1], [2, 3]], [[1, 9], [9, 9]]])
    >>> rows, cols = linear_assignments(costs).padded()
    >>> cols
    array([[1, 0],
           [0, 1]])
    >>> rows, cols = linear_assignments(costs, n_columns=[2, 1]).padded()
    >>> cols
    array([[ 1,  0],
           [ 0, -1]])
    """
    problems, n_first = _as_problems(costs, n_columns)
    is_max = check_flag("maximize", maximize)
    bound, limit = _bounds(k, threshold, problems)
    with_duals = check_flag("return_duals", return_duals)
    with reporting(progress, "linear assignments") as report:
        links, duals = _core.linear_assignments(
            problems,
            n_first,
            is_max,
            bound,
            limit,
            with_duals,
            threads_for(n_threads, _work(problems)),
            report,
        )
    offsets, row_ind, col_ind, totals, failure = links
    if failure is not None:
        b, found = failure
        cost = problems[b] if n_first is None else problems[b][:, : n_first[b]]
        raise _unsolved(f"costs[{b}]", cost, bound, found, is_max)
    proofs = tuple(Duals(*duals_of_one) for duals_of_one in duals) if with_duals else None
    return Assignments(row_ind, col_ind, offsets, totals, proofs)


def k_cardinality_assignments(
    cost: npt.ArrayLike,
    *,
    maximize: bool = False,
    max_k: int | None = None,
    progress: Progress = False,
) -> Assignments:
    """Best assignments of 1, 2, ... links between the same rows and columns.

    Parameters
    ----------
    cost : array_like of shape (n_rows, n_cols)
        As in `linear_assignment`.
    maximize : bool, default False
        Look for the greatest sums.
    max_k : int, optional
        Largest number of links; min(n_rows, n_cols) if it is omitted or greater than that.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (links made, links).

    Returns
    -------
    Assignments
        ``assignments[k - 1]`` has exactly k links. Where so much is forbidden that k links
        cannot be made, they end before k.

    Raises
    ------
    TypeError, ValueError
        As `linear_assignment`.

    Notes
    -----
    What the k-th link adds to the sum never improves with k: ``np.diff(assignments.totals)``
    ascends, or descends if `maximize`. Takes no longer than the last assignment alone; the
    links of all k fill 8 max_k (max_k + 1) bytes.

    Examples
    --------
    >>> from kernelcore.matching import k_cardinality_assignments
    >>> found = k_cardinality_assignments([[1, 2], [3, 9]])
    >>> found.totals
    array([1., 5.])
    >>> found[1]
    (array([0, 1]), array([1, 0]))
    """
    costs = _as_costs("cost", cost)
    n_links = min(costs.shape)
    if max_k is not None:
        n_links = min(n_links, check_integer("max_k", max_k, minimum=1))
    is_max = check_flag("maximize", maximize)
    with reporting(progress, "k-cardinality assignments") as report:
        links = _core.k_cardinality_assignments(costs, is_max, n_links, report)
    offsets, row_ind, col_ind, totals, failure = links
    if failure is not None:
        raise _unsolved("cost", costs, n_links, failure[1], is_max)
    n_found = int(np.count_nonzero(np.diff(offsets)))
    return Assignments(row_ind, col_ind, offsets[: n_found + 1], totals[:n_found])


def _bounds(
    k: int | None, threshold: Any, costs: Array | list[Array]
) -> tuple[int, float | None]:
    """Return the greatest number of links, and the threshold in the dtype of the costs."""
    bound = _MOST_LINKS if k is None else min(_MOST_LINKS, check_integer("k", k, minimum=1))
    if threshold is None:
        return bound, None
    if isinstance(threshold, (bool, np.bool_)) or not isinstance(threshold, numbers.Real):
        raise TypeError(f"threshold must be a real number, got {threshold!r}")
    try:
        limit = float(threshold)
    except OverflowError:
        raise ValueError("threshold must fit into float64, got a larger number") from None
    if math.isnan(limit):
        raise ValueError("threshold must not be NaN")
    with np.errstate(over="ignore"):
        return bound, float(np.result_type(*costs[:1], np.float32).type(limit))


def _unsolved(name: str, cost: Array, bound: int, found: int, is_max: bool) -> ValueError:
    """Return the error of a problem with too few links, or costs without an order or a sum."""
    if found == _INFINITE:
        name = name.partition("[")[0]
        return ValueError(f"{name} must be small enough for finite sums, got an infinite one")
    if found < 0:
        bad = np.isnan(cost) | (cost == (np.inf if is_max else -np.inf))
        i, j = (int(axis[0]) for axis in np.nonzero(bad))
        rule = "NaN or inf" if is_max else "NaN or -inf"
        return ValueError(f"{name} must not hold {rule}, got {cost[i, j]} at [{i}, {j}]")
    return ValueError(
        f"{name} must allow {min(*cost.shape, bound)} links, but forbids all but {found} at a "
        f"time; threshold={'-inf' if is_max else 'inf'} makes as many as it can"
    )


def _as_costs(name: str, costs: Any) -> Array:
    """Return checked costs whose sides fit into 32 bits."""
    return check_sides(name, as_real_array(name, costs, ndim=2))


def check_sides(name: str, array: Array) -> Array:
    """Return `array`; raise if its rows or columns do not fit into 32 bits."""
    if max(array.shape[-2:]) > _LONGEST_SIDE:
        raise ValueError(
            f"{name} must have at most {_LONGEST_SIDE} rows and columns, "
            f"got shape {array.shape}"
        )
    return array


def _as_problems(costs: Any, n_columns: Any) -> tuple[Array | list[Array], Indices | None]:
    """Return a stack of costs or a list of matrices, and the columns that count."""
    if not isinstance(costs, (list, tuple)):
        array = check_sides("costs", as_real_array("costs", costs, ndim=3))
        if n_columns is None:
            return array, None
        return array, as_integer_array("n_columns", n_columns, ndim=1, dtype=np.int64)
    if n_columns is not None:
        raise TypeError(
            "costs must be an array where n_columns counts the columns of its problems, "
            f"got {type(costs).__name__}"
        )
    matrices = [_as_costs(f"costs[{b}]", cost) for b, cost in enumerate(costs)]
    if len({matrix.dtype for matrix in matrices}) > 1:
        matrices = [matrix.astype(np.float64, copy=False) for matrix in matrices]
    return matrices, None


def _work(problems: Array | list[Array]) -> float:
    """Nanoseconds that the problems take on one thread, within a factor of a few."""
    work: float
    if isinstance(problems, list):
        work = sum(200.0 + cost.size * (3.0 + 0.1 * min(cost.shape)) for cost in problems)
    else:
        n_problems, n_rows, n_cols = problems.shape
        work = n_problems * (200.0 + n_rows * n_cols * (3.0 + 0.1 * min(n_rows, n_cols)))
    return work
