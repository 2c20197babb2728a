r"""Choice of landmarks by partial Gram-Schmidt over parts of the rows.

The plain algorithm takes the row with the largest residual, subtracts its part from all rows,
and so on. Here several pivots are chosen between two passes over the rows. After a pass each
part knows the residuals of its rows. The rows with the w largest residuals of all are the
candidates, and :math:`\rho` is the largest residual of any other row. Residuals only fall. So a
candidate whose residual is still above :math:`\rho` after earlier pivots is the pivot of the
plain algorithm. (Of equal residuals the first row is taken, as there.) Where no candidate is
above :math:`\rho`, the next pass begins.

What fixes the pivots under rounding: within a round the residuals of the candidates follow from
the kernel of the candidates alone. At its end all residuals follow from blocks of `BLOCK` rows.
Neither depends on parts, workers or their order, so pivots are the same for all of them. They
are those of `kernelcore.kcca.partial_gram_schmidt` unless two residuals differ by no more than
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kernelcore._check import Array
from kernelcore._store import read_npy
from kernelcore._threads import one_blas_thread
from kernelcore.distributed.functions import diagonal_of, kernel_of
from kernelcore.distributed.rows import BLOCK, RowFiles, write_rows
from kernelcore.distributed.store import Piece, Store
from kernelcore.kcca.decompositions import residual_rounding

_WIDEST = 64  # candidates of a round
_RESIDUALS = "residuals"

Run = Callable[[Store], None]
"""Completes a store, wherever."""


@dataclass(frozen=True)
class Pivots:
    """Chosen rows.

    Attributes
    ----------
    positions : ndarray of intp, shape (m,)
    rows : ndarray of shape (m, n_columns)
        The rows themselves.
    triangle : ndarray of shape (m, m)
        Lower triangular L; the kernel of the rows with each other is L L'.
    """

    positions: npt.NDArray[np.intp]
    rows: Array
    triangle: Array


def choose_pivots(
    X: RowFiles,
    kernel: dict[str, Any],
    folder: Path,
    *,
    n_pivots: int,
    tolerance: float,
    part_rows: int,
    run: Run,
) -> Pivots:
    """Choose rows of `X` as `partial_gram_schmidt` does; rounds are stores in `folder`."""
    rounds = [_diagonal_round(X, kernel, folder, part_rows)]
    run(rounds[0])
    first = [rounds[0].facts(k) for k in range(rounds[0].n_pieces)]
    dtype = np.dtype(first[0]["dtype"])
    unit, slack = _rounding(dtype, max(one["largest"] for one in first))
    trace = _total(first, "sums")
    target, most = tolerance * trace, min(n_pivots, len(X))
    found = Pivots(np.empty(0, np.intp), X.read(0, 0), np.zeros((0, 0), dtype))
    width, function = 1, kernel_of(kernel)
    while len(found.positions) < most and trace > target:
        limit = min(width, most - len(found.positions))
        candidates = _Candidates.of(rounds[-1], limit)
        with one_blas_thread():
            longer = _extended(found, candidates, X, function, rounds, unit=unit, slack=slack)
        n_new = len(longer.positions) - len(found.positions)
        if not n_new:
            break
        if len(longer.positions) == most and not target:
            return longer  # what is left out does not matter any more
        rounds.append(
            _next_round(
                X, kernel, folder, part_rows=part_rows, rounds=rounds, found=longer, n_new=n_new
            )
        )
        run(rounds[-1])
        facts = [rounds[-1].facts(k) for k in range(rounds[-1].n_pieces)]
        # Sums of squares of each new column: the trace after each of them.
        for column in range(n_new):
            trace -= math.fsum(value for one in facts for value in one["squares"][column])
            if trace <= target:
                return _first_of(longer, len(found.positions) + column + 1)
        trace = _total(facts, "sums")
        found, width = longer, min(2 * n_new, _WIDEST)
    return found


def make(store: Store, number: int) -> Piece:
    """Compute the residuals of a part of the rows after a round, and their new features."""
    X = RowFiles.from_json(store.inputs["X"])
    kernel = kernel_of(store.settings["kernel"])
    start = number * int(store.settings["part_rows"])
    stop = min(start + int(store.settings["part_rows"]), len(X))
    if store.kind == "diagonal":
        return _diagonal_piece(store, X, kernel, range(start, stop), number)
    chosen = _Chosen.of(store)
    earlier = [_folder_of(store.folder.parent, k) for k in range(int(store.settings["round"]))]
    n_new = len(chosen.rows)
    features = np.empty((stop - start, n_new), chosen.triangle.dtype)
    residuals = _part(earlier[-1], _RESIDUALS, number)
    before = [_part(folder, "features", number) for folder in earlier[1:]]
    squares: list[list[float]] = [[] for _ in range(n_new)]
    for span, rows in X.blocks(start, stop):
        part = slice(span.start - start, span.stop - start)
        values = kernel(rows, chosen.rows)
        known = np.hstack([values[:, :0], *(one[part] for one in before)])
        new = chosen.features_of(values, known, span)
        features[part] = new
        exact = np.square(new, dtype=np.float64)
        for column in range(n_new):
            squares[column].append(float(exact[:, column].sum()))
        left = residuals[part] - exact.sum(axis=1)
        left[chosen.inside(span)] = 0.0
        residuals[part] = np.maximum(left, 0.0)
    facts = _facts(residuals, start, int(store.settings["n_top"])) | {"squares": squares}
    files = {f"{_RESIDUALS}/{number:06d}.npy": residuals}
    files[f"features/{number:06d}.npy"] = features
    return Piece(files, facts)


def need(store: Store) -> int:
    """Estimate the memory of a part: features so far, and one block of rows."""
    X = RowFiles.from_json(store.inputs["X"])
    n_rows = min(int(store.settings["part_rows"]), len(X))
    rank = int(store.settings["rank"])
    block = min(BLOCK, n_rows) * (3 * X.row_bytes + 8 * (3 * rank + 4 * _WIDEST))
    return n_rows * (8 * 3 + 8 * rank) + block + 8 * rank * rank


@dataclass(frozen=True)
class _Candidates:
    """Rows with the largest residuals, and the largest residual of all others."""

    positions: npt.NDArray[np.intp]
    residuals: npt.NDArray[np.float64]
    outside: tuple[float, int]

    @classmethod
    def of(cls, store: Store, count: int) -> _Candidates:
        top: list[tuple[float, int]] = []
        for number in range(store.n_pieces):
            top += [(float(value), int(row)) for value, row in store.facts(number)["top"]]
        top.sort(key=lambda one: (-one[0], one[1]))
        chosen, rest = top[:count], top[count : count + 1]
        return cls(
            np.array([row for _, row in chosen], np.intp),
            np.array([value for value, _ in chosen]),
            rest[0] if rest else (-1.0, -1),
        )


@dataclass(frozen=True)
class _Chosen:
    """The pivots of a round, as its tasks read them."""

    positions: npt.NDArray[np.intp]  # of all rounds so far
    rows: Array  # of this round
    triangle: Array  # rows of L of this round

    @classmethod
    def of(cls, store: Store) -> _Chosen:
        rows = RowFiles.from_json(store.inputs["rows"])
        triangle = RowFiles.from_json(store.inputs["triangle"])
        return cls(
            np.array(store.settings["positions"], np.intp),
            rows.read(0, len(rows)),
            triangle.read(0, len(triangle)),
        )

    @property
    def n_old(self) -> int:
        return len(self.positions) - len(self.rows)

    def inside(self, span: slice, stop: int | None = None) -> npt.NDArray[np.intp]:
        """Return places in a span of the pivots, or of the first ones."""
        chosen = self.positions[:stop]
        inside = (chosen >= span.start) & (chosen < span.stop)
        places: npt.NDArray[np.intp] = chosen[inside] - span.start
        return places

    def features_of(self, values: Array, known: Array, span: slice) -> Array:
        """Return new features of rows, from kernel values and earlier features."""
        old, own = self.triangle[:, : self.n_old], self.triangle[:, self.n_old :]
        rest = values - known @ old.T
        new: Array = np.ascontiguousarray(solve_triangular(own, rest.T, lower=True).T)
        new[self.inside(span, self.n_old)] = 0.0
        for place, pivot in enumerate(self.positions[self.n_old :]):
            if span.start <= pivot < span.stop:
                new[pivot - span.start] = own[place]
        return new


def _extended(
    found: Pivots,
    candidates: _Candidates,
    X: RowFiles,
    kernel: Callable[..., Array],
    rounds: Sequence[Store],
    *,
    unit: float,
    slack: float,
) -> Pivots:
    """Add the candidates that are certain to be the next pivots."""
    positions, rank = candidates.positions, len(found.positions)
    rows = X.take(positions)
    known = _features_at(rounds, positions, found.triangle.dtype)
    left = kernel(rows, rows).astype(found.triangle.dtype) - known @ known.T
    residuals = candidates.residuals.copy()
    columns = np.zeros((len(positions), len(positions)), found.triangle.dtype)
    chosen: list[int] = []
    while len(chosen) < len(positions):
        best = min(range(len(positions)), key=lambda k: (-residuals[k], positions[k]))
        value, row = residuals[best], int(positions[best])
        outside, outside_row = candidates.outside
        is_certain = value > outside or (value == outside and row < outside_row)
        if not is_certain or value <= (rank + len(chosen) + slack) * unit:
            break
        step, length = len(chosen), math.sqrt(value)
        column = left[:, best] - columns[:, :step] @ columns[best, :step]
        column *= column.dtype.type(1.0 / length)
        column[chosen] = 0.0
        column[best] = length
        columns[:, step] = column
        residuals = np.maximum(residuals - np.square(column, dtype=np.float64), 0.0)
        residuals[best] = 0.0
        chosen.append(best)
    n_new = len(chosen)
    triangle = np.zeros((rank + n_new, rank + n_new), found.triangle.dtype)
    triangle[:rank, :rank] = found.triangle
    triangle[rank:, :rank] = known[chosen]
    triangle[rank:, rank:] = np.tril(columns[chosen][:, :n_new])
    return Pivots(
        np.concatenate([found.positions, positions[chosen]]),
        np.concatenate([found.rows, rows[chosen]]),
        triangle,
    )


def _first_of(found: Pivots, count: int) -> Pivots:
    return Pivots(
        found.positions[:count], found.rows[:count], found.triangle[:count, :count].copy()
    )


def _diagonal_round(X: RowFiles, kernel: dict[str, Any], folder: Path, part_rows: int) -> Store:
    settings = {"kernel": kernel, "part_rows": part_rows, "n_top": _WIDEST + 1, "rank": 0}
    n_parts = -(-len(X) // part_rows)
    return Store.begin(_folder_of(folder, 0), "diagonal", n_parts, settings, {"X": X.to_json()})


def _next_round(
    X: RowFiles,
    kernel: dict[str, Any],
    folder: Path,
    *,
    part_rows: int,
    rounds: Sequence[Store],
    found: Pivots,
    n_new: int,
) -> Store:
    place = _folder_of(folder, len(rounds))
    old = len(found.positions) - n_new
    inputs = {
        "X": X.to_json(),
        "rows": write_rows(place / "rows", found.rows[old:]).to_json(),
        "triangle": write_rows(place / "triangle", found.triangle[old:]).to_json(),
    }
    settings = {
        "kernel": kernel,
        "part_rows": part_rows,
        "n_top": _WIDEST + 1,
        "rank": len(found.positions),
        "positions": found.positions.tolist(),
        "round": len(rounds),
    }
    return Store.begin(place, "pivots", rounds[0].n_pieces, settings, inputs)


def _diagonal_piece(
    store: Store, X: RowFiles, kernel: Callable[..., Array], part: range, number: int
) -> Piece:
    parts = [diagonal_of(kernel, rows) for _, rows in X.blocks(part.start, part.stop)]
    diagonal = np.concatenate(parts)
    if diagonal.min() < 0:
        raise ValueError(
            f"kernel must not be negative for a row with itself, got {diagonal.min()} for row "
            f"{part.start + int(diagonal.argmin())}"
        )
    residuals = diagonal.astype(np.float64)
    facts = _facts(residuals, part.start, int(store.settings["n_top"]))
    facts |= {"largest": float(residuals.max()), "dtype": diagonal.dtype.name}
    return Piece({f"{_RESIDUALS}/{number:06d}.npy": residuals}, facts)


def _facts(residuals: npt.NDArray[np.float64], start: int, n_top: int) -> dict[str, Any]:
    """Return the largest residuals with their rows, and the sum of each block."""
    count = min(n_top, len(residuals))
    least = np.partition(residuals, len(residuals) - count)[len(residuals) - count]
    places = np.flatnonzero(residuals >= least)
    places = places[np.argsort(-residuals[places], kind="stable")[:count]]
    return {
        "top": [[float(residuals[k]), start + int(k)] for k in places],
        "sums": [
            float(residuals[k : k + BLOCK].sum()) for k in range(0, len(residuals), BLOCK)
        ],
    }


def _features_at(
    rounds: Sequence[Store], positions: npt.NDArray[np.intp], dtype: np.dtype[Any]
) -> Array:
    """Return features of single rows, from all rounds."""
    part_rows = int(rounds[0].settings["part_rows"])
    columns = [np.empty((len(positions), 0), dtype)]
    for store in rounds[1:]:
        values = [
            np.load(_file_of(store.folder, "features", row // part_rows), mmap_mode="r")[
                row % part_rows
            ]
            for row in positions.tolist()
        ]
        columns.append(np.array(values, dtype))
    found: Array = np.hstack(columns)
    return found


def _part(folder: Path, name: str, number: int) -> Array:
    """Read the features or residuals of a part of the rows; the array can be written to."""
    values: Array = read_npy(_file_of(folder, name, number)).copy()
    return values


def _file_of(folder: Path, name: str, number: int) -> Path:
    return folder / name / f"{number:06d}.npy"


def _folder_of(folder: Path, number: int) -> Path:
    """Return the folder of a round among those of one choice."""
    return folder / f"{number:04d}"


def _rounding(dtype: np.dtype[Any], largest: float) -> tuple[float, float]:
    return residual_rounding(np.array([largest], dtype), centred=False)


def _total(facts: Sequence[dict[str, Any]], name: str) -> float:
    """Add sums of blocks, exactly rounded, so that their order does not matter."""
    return math.fsum(value for one in facts for value in one[name])
