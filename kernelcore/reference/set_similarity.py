"""Similarities of sets from the similarities of their members, by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog


def set_similarity(
    S: npt.ArrayLike,
    row_offsets: npt.ArrayLike,
    col_offsets: npt.ArrayLike,
    *,
    method: str = "AP",
    k: int | str | None = None,
) -> npt.NDArray[Any]:
    """DC, TK or AP of each block of S.

    Examples
    --------
    >>> set_similarity([[0.5, 0.25], [0.5, 0.0]], [0, 2], [0, 2], method="DC")
    array([[0.875]])
    """
    matrix = np.asarray(S, dtype=float)
    row_sets = np.split(np.arange(matrix.shape[0]), np.asarray(row_offsets)[1:-1])
    col_sets = np.split(np.arange(matrix.shape[1]), np.asarray(col_offsets)[1:-1])
    values = [[_compare(matrix[np.ix_(a, b)], method, k) for b in col_sets] for a in row_sets]
    return np.array(values)


def _compare(M: npt.NDArray[Any], method: str, k: int | str | None) -> float:
    n_links = min(M.shape)
    if k == "half":
        n_links = -(-n_links // 2)
    elif k is not None:
        n_links = min(int(k), n_links)
    if method == "DC":
        return float(M.max(axis=1).mean() + M.max(axis=0).mean())
    if method == "TK":
        maxima = (np.sort(M.max(axis=axis))[-n_links:] for axis in (0, 1))
        return float(sum(greatest.mean() for greatest in maxima))
    # The vertices of the assignment polytope are integral, so this relaxation is exact.
    links = np.arange(M.size).reshape(M.shape)
    uses = [np.isin(links, line).ravel() for line in [*links, *links.T]]
    largest = float(np.abs(M).max()) or 1.0  # the tolerances of the solver are absolute
    best = linprog(
        -M.ravel() / largest,
        A_ub=np.array(uses),
        b_ub=np.ones(len(uses)),
        A_eq=np.ones((1, M.size)),
        b_eq=[n_links],
        bounds=(0, 1),
    )
    return float(M.ravel() @ best.x / n_links)
