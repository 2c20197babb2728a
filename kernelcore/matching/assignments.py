"""Results of assignment problems: matched pairs, totals and dual variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array

Indices: TypeAlias = npt.NDArray[np.int64]


class Duals(NamedTuple):
    """Proof that no assignment of as many links is better; see `linear_assignment`.

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
    """Links of many problems, one behind the other.

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

    def __repr__(self) -> str:
        return f"Assignments({len(self)} problems, {len(self.row_ind)} links)"
