"""Similarities of two sets from the similarities of their items: DC, TK and AP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    as_integer_array,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
    check_integer,
)
from kernelcore._threads import Progress, reporting, threads_for
from kernelcore.matching.assignment import Indices, check_sides

METHODS = ("DC", "TK", "AP")


@dataclass(frozen=True, eq=False)
class SetSimilarities:
    r"""Similarities of all pairs of sets, and the entries that they are made of.

    .. math:: \mathrm{values}_{ab} = \sum_{e \in ab} w_e \, S_{r_e c_e}

    so that the derivative of the value of a pair by S is w at its entries and 0 elsewhere.

    Attributes
    ----------
    values : ndarray of shape (n_row_sets, n_col_sets)
    rows, cols : ndarray of int64, shape (n_entries,)
        Places in S of the selected entries.
    weights : ndarray of shape (n_entries,)
        In the dtype of S.
    offsets : ndarray of int64, shape (n_row_sets * n_col_sets + 1,)
        Start of each pair's entries, pairs row by row, and the end of the last.
    shape : tuple of int
        Shape of S.
    """

    values: Array
    rows: Indices
    cols: Indices
    weights: Array
    offsets: Indices
    shape: tuple[int, int]

    def gradient(self, upstream: npt.ArrayLike) -> Array:
        """Gradient by S of a function of the values.

        Parameters
        ----------
        upstream : array_like of shape (n_row_sets, n_col_sets)
            Gradient by the values.

        Returns
        -------
        ndarray of the shape and dtype of S

        Examples
        --------
        >>> from kernelcore.matching import set_similarity
        >>> S = [[0.9, 0.1], [0.8, 0.2]]
        >>> pairs = set_similarity(S, [0, 2], [0, 2], method="AP", return_selected=True)
        >>> pairs.gradient([[1.0]])
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        pulls = check_finite("upstream", as_real_array("upstream", upstream, ndim=2))
        if pulls.shape != self.values.shape:
            raise ValueError(f"upstream must have shape {self.values.shape}, got {pulls.shape}")
        shares = np.repeat(pulls.reshape(-1), np.diff(self.offsets)) * self.weights
        places = self.rows * self.shape[1] + self.cols
        sums = np.bincount(places, shares, minlength=self.shape[0] * self.shape[1])
        return sums.reshape(self.shape).astype(self.weights.dtype, copy=False)


def set_similarity(
    S: npt.ArrayLike,
    row_offsets: npt.ArrayLike,
    col_offsets: npt.ArrayLike,
    *,
    method: str = "AP",
    k: int | str | None = None,
    return_selected: bool = False,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Any:
    r"""Similarity of every set of rows with every set of columns.

    For the block M, n by m, of a pair of sets:

    .. math::

        \mathrm{DC} &= \frac1n \sum_i \max_j M_{ij} + \frac1m \sum_j \max_i M_{ij} \\
        \mathrm{TK} &= \frac1k \sum_{i \in I} \max_j M_{ij}
                     + \frac1k \sum_{j \in J} \max_i M_{ij} \\
        \mathrm{AP} &= \frac1k \max_x \sum_{ij} M_{ij} x_{ij}, \quad
        \sum_j x_{ij} \le 1, \; \sum_i x_{ij} \le 1, \; \sum_{ij} x_{ij} = k

    with I and J the rows and columns of the k greatest maxima.

    Parameters
    ----------
    S : array_like of shape (n, m)
        Similarities of all rows with all columns: of the sentences with the images of a
        minibatch of documents, say.
    row_offsets : array_like of int, shape (n_row_sets + 1,)
        Start of each set of rows, and n: ``[0, 3, 5]`` are two sets of 3 and 2.
    col_offsets : array_like of int, shape (n_col_sets + 1,)
        The same for columns.
    method : {"AP", "DC", "TK"}, default "AP"
    k : int or "half", optional
        Number of maxima or links. It is min(n, m) of the pair if it is omitted or greater
        than that, and half of it, rounded up, for "half". "DC" has none.
    return_selected : bool, default False
        Return the selected entries too, through which gradients flow.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (tasks done, tasks).

    Returns
    -------
    ndarray of shape (n_row_sets, n_col_sets), or SetSimilarities if `return_selected`
        float32 for float32 `S`, float64 otherwise.

    Raises
    ------
    TypeError
        If `S` does not hold real numbers or offsets are not integers.
    ValueError
        If `S` is not 2-D or not finite or has more than 2**31 - 1 rows or columns, offsets do
        not start at 0, ascend and end at the size of `S` (sets must not be empty), the
        method is unknown, or `k` is below 1, or given for "DC".

    See Also
    --------
    linear_assignment : The links behind "AP".
    kernelcore.reference.matching.set_similarity : The definition.

    Notes
    -----
    Exactly k links are made, negative ones too. Of equal entries the first is selected; the
    selected ones are summed in float64.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP 2019.

    Examples
    --------
    Two documents of two sentences and two images each:

    >>> from kernelcore.matching import set_similarity
    >>> S = [[0.9, 0.2, 0.1, 0.0],
    ...      [0.3, 0.7, 0.2, 0.1],
    ...      [0.1, 0.0, 0.8, 0.3],
    ...      [0.2, 0.1, 0.9, 0.5]]
    >>> set_similarity(S, [0, 2, 4], [0, 2, 4]).round(2)
    array([[0.8 , 0.1 ],
           [0.1 , 0.65]])
    """
    matrix = check_finite("S", check_sides("S", as_real_array("S", S, ndim=2)))
    kind = check_choice("method", method, METHODS)
    rows = _as_sets("row_offsets", row_offsets, matrix.shape[0])
    cols = _as_sets("col_offsets", col_offsets, matrix.shape[1])
    n_rows, n_cols = np.broadcast_arrays(np.diff(rows)[:, np.newaxis], np.diff(cols))
    bounds = _bounds(kind, k, np.minimum(n_rows, n_cols))
    values = np.empty(bounds.shape, matrix.dtype)
    # How many entries a pair averages by row, and how many by column.
    sides = [n_rows, n_cols] if kind == "DC" else [bounds] * (1 if kind == "AP" else 2)
    parts = np.stack(sides, axis=-1).reshape(-1)
    selected = None
    if check_flag("return_selected", return_selected):
        offsets = np.concatenate(([0], np.cumsum(parts)))[:: len(sides)]
        entries = (np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64))
        selected = (np.ascontiguousarray(offsets), *entries)
    with reporting(progress, "set similarities") as report:
        _core.set_similarity(
            matrix,
            rows,
            cols,
            kind,
            np.ascontiguousarray(bounds),
            values,
            selected,
            threads_for(n_threads, 4.0 * matrix.size),
            report,
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"S must be small enough for means in {matrix.dtype}, got infinite sums"
        )
    if selected is None:
        return values
    weights = np.repeat(1.0 / parts, parts).astype(matrix.dtype)
    offsets, entry_rows, entry_cols = selected
    return SetSimilarities(values, entry_rows, entry_cols, weights, offsets, matrix.shape)


def _as_sets(name: str, offsets: npt.ArrayLike, size: int) -> Indices:
    array = as_integer_array(name, offsets, ndim=1, dtype=np.int64)
    if not array.size or array[0] != 0 or array[-1] != size:
        raise ValueError(f"{name} must start at 0 and end at {size}, got {array.tolist()}")
    if (np.diff(array) <= 0).any():
        raise ValueError(f"{name} must ascend, so that no set is empty")
    return array


def _bounds(method: str, k: int | str | None, smaller: Indices) -> Indices:
    """Return the k of each pair of sets."""
    if k is None:
        return smaller
    if method == "DC":
        raise ValueError(f'k must be omitted for method "DC", got {k!r}')
    if isinstance(k, str):
        check_choice("k", k, ("half",))
        return (smaller + 1) // 2
    return np.minimum(smaller, check_integer("k", k, minimum=1))
