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
_COPIED_AT_ONCE = 2**22


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
    bound, limit = _bounds(k, threshold, costs.dtype)
    n_links = min(*costs.shape, bound)
    rows, cols = np.empty(n_links, np.int64), np.empty(n_links, np.int64)
    proof = None
    if check_flag("return_duals", return_duals):
        of_rows, of_cols = (np.empty(side, costs.dtype) for side in costs.shape)
        proof = of_rows, of_cols, np.empty(1, costs.dtype)
    n_found = _core.linear_assignment(costs, is_max, limit, rows, cols, proof, None)
    if n_found < n_links:
        if n_found < 0 or limit is None:
            raise _unsolved("cost", costs, n_links, n_found, is_max)
        rows, cols = rows[:n_found].copy(), cols[:n_found].copy()
    if proof is None:
        return rows, cols
    return rows, cols, Duals(proof[0], proof[1], float(proof[2][0]))


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
    An array of float32 or float64 is used in place; matrices of a list are copied one behind
    the other, as float32 if all are.

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
    values, shapes, stride = _as_problems(costs, n_columns)
    is_max = check_flag("maximize", maximize)
    bound, limit = _bounds(k, threshold, values.dtype)
    value_offsets = _offsets(shapes[:, 0] * (stride or shapes[:, 1]))
    wanted = np.minimum(shapes.min(axis=1, initial=_MOST_LINKS), bound)
    links = _links_for(wanted)
    proof = None
    if check_flag("return_duals", return_duals):
        sides = (_offsets(shapes[:, 0]), _offsets(shapes[:, 1]))
        rows, cols = (np.empty(int(side[-1]), values.dtype) for side in sides)
        proof = (*sides, rows, cols, np.empty(len(shapes), values.dtype))
    mean_links = len(links[1]) / max(1, len(shapes))
    work = 200.0 * len(shapes) + values.size * (3.0 + 0.1 * mean_links)
    with reporting(progress, "linear assignments") as report:
        _core.linear_assignments(
            values,
            value_offsets,
            shapes,
            stride,
            is_max,
            min(bound, _MOST_LINKS),
            limit,
            links,
            proof,
            threads_for(n_threads, work),
            report,
        )
    offsets, row_ind, col_ind, counts, totals = links
    has_failed = counts < (wanted if limit is None else 0)
    if has_failed.any():
        b = int(has_failed.argmax())
        padded = values[value_offsets[b] : value_offsets[b + 1]].reshape(shapes[b, 0], -1)
        cost = padded[:, : shapes[b, 1]]
        raise _unsolved(f"costs[{b}]", cost, int(wanted[b]), int(counts[b]), is_max)
    _check_totals("costs", totals)
    if limit is not None and (counts < wanted).any():
        kept = np.arange(len(row_ind)) - np.repeat(offsets[:-1], wanted)
        are_links = kept < np.repeat(counts, wanted)
        row_ind, col_ind, offsets = row_ind[are_links], col_ind[are_links], _offsets(counts)
    duals = None
    if proof is not None:
        row_offsets, col_offsets, rows, cols, constants = proof
        halves = np.split(rows, row_offsets[1:-1]), np.split(cols, col_offsets[1:-1])
        parts = zip(*halves, constants, strict=False)
        duals = tuple(Duals(u, v, float(d)) for u, v, d in parts)
    return Assignments(row_ind, col_ind, offsets, totals, duals)


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
    links = _links_for(np.arange(1, n_links + 1))
    is_max = check_flag("maximize", maximize)
    with reporting(progress, "k-cardinality assignments") as report:
        _core.k_cardinality_assignments(costs, is_max, links, report)
    offsets, row_ind, col_ind, counts, totals = links
    if (counts < 0).any():
        raise ValueError(_bad_cost("cost", costs, is_max))
    n_found = int(np.count_nonzero(counts))
    _check_totals("cost", totals[:n_found])
    end = offsets[n_found]
    return Assignments(row_ind[:end], col_ind[:end], offsets[: n_found + 1], totals[:n_found])


def _bounds(k: int | None, threshold: Any, dtype: np.dtype[Any]) -> tuple[int, float | None]:
    """Return the greatest number of links, and the threshold."""
    return (
        _MOST_LINKS if k is None else check_integer("k", k, minimum=1),
        None if threshold is None else _check_threshold(threshold, dtype),
    )


def _unsolved(name: str, cost: Array, wanted: int, found: int, is_max: bool) -> ValueError:
    """Return the error of a problem that has too few links, or a cost that has no order."""
    if found < 0:
        return ValueError(_bad_cost(name, cost, is_max))
    return ValueError(
        f"{name} must allow {wanted} links, but forbids all but {found} at a time; "
        f"threshold={'-inf' if is_max else 'inf'} makes as many as it can"
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


def _as_problems(costs: Any, n_columns: Any) -> tuple[Array, Indices, int]:
    """Return the values of all problems, their shapes, and the length of padded rows or 0."""
    if not isinstance(costs, (list, tuple)):
        array = check_sides("costs", as_real_array("costs", costs, ndim=3))
        n_problems, n_rows, n_cols = array.shape
        shapes = np.full((n_problems, 2), (n_rows, n_cols), np.int64)
        if n_columns is None:
            return array.reshape(-1), shapes, 0
        counts = as_integer_array("n_columns", n_columns, ndim=1, dtype=np.int64)
        if len(counts) != n_problems or ((counts < 0) | (counts > n_cols)).any():
            raise ValueError(
                f"n_columns must hold a number from 0 to {n_cols} for each of the {n_problems} "
                f"problems, got {len(counts)} from {counts.min(initial=n_cols)} "
                f"to {counts.max(initial=0)}"
            )
        shapes[:, 1] = counts
        return array.reshape(-1), shapes, n_cols
    if n_columns is not None:
        raise TypeError(
            "costs must be an array where n_columns counts the columns of its problems, "
            f"got {type(costs).__name__}"
        )
    matrices = [_as_costs(f"costs[{b}]", cost) for b, cost in enumerate(costs)]
    if not matrices:
        return np.empty(0), np.empty((0, 2), np.int64), 0
    shapes = np.array([matrix.shape for matrix in matrices], np.int64)
    return _joined([matrix.reshape(-1) for matrix in matrices]), shapes, 0


def _joined(parts: list[Array]) -> Array:
    """Concatenate vectors in steps, so that Ctrl-C can stop it."""
    ends = np.cumsum([part.size for part in parts])
    values = np.empty(ends[-1], np.result_type(*{part.dtype for part in parts}))
    for part, end in zip(parts, ends, strict=True):
        whole = values[end - part.size : end]
        for start in range(0, part.size, _COPIED_AT_ONCE):
            step = slice(start, start + _COPIED_AT_ONCE)
            whole[step] = part[step]
    return values


def _links_for(
    counts: Indices,
) -> tuple[Indices, Indices, Indices, Indices, npt.NDArray[np.float64]]:
    """Empty arrays of offsets, rows, columns, numbers of links and totals."""
    offsets = _offsets(counts)
    rows, cols = (np.empty(int(offsets[-1]), np.int64) for _ in range(2))
    return offsets, rows, cols, np.empty(len(counts), np.int64), np.empty(len(counts))


def _offsets(sizes: Indices) -> Indices:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    sizes.cumsum(out=offsets[1:])
    return offsets


def _check_threshold(threshold: Any, dtype: np.dtype[Any]) -> float:
    """Return the threshold in the dtype of the costs; it may be infinite."""
    if isinstance(threshold, (bool, np.bool_)) or not isinstance(threshold, numbers.Real):
        raise TypeError(f"threshold must be a real number, got {threshold!r}")
    try:
        limit = float(threshold)
    except OverflowError:
        raise ValueError("threshold must fit into float64, got a larger number") from None
    if math.isnan(limit):
        raise ValueError("threshold must not be NaN")
    with np.errstate(over="ignore"):
        return float(dtype.type(limit))


def _check_totals(name: str, totals: npt.NDArray[np.float64]) -> None:
    if not np.isfinite(totals).all():
        raise ValueError(f"{name} must be small enough for finite sums, got an infinite one")


def _bad_cost(name: str, cost: Array, is_max: bool) -> str:
    bad = np.isnan(cost) | (cost == (np.inf if is_max else -np.inf))
    i, j = (int(axis[0]) for axis in np.nonzero(bad))
    rule = "NaN or inf" if is_max else "NaN or -inf"
    return f"{name} must not hold {rule}, got {cost[i, j]} at [{i}, {j}]"
