"""Tiles of a Gram matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Tiling:
    """Square tiles, smaller at the ends, row of tiles by row of tiles.

    A mirrored matrix is covered from the diagonal on: the tiles below are the transposes of
    those above.
    """

    n_rows: int
    n_columns: int
    side: int
    mirrored: bool

    def __len__(self) -> int:
        n_down, n_across = (-(-n // self.side) for n in (self.n_rows, self.n_columns))
        return n_down * (n_down + 1) // 2 if self.mirrored else n_down * n_across

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        for row in range(0, self.n_rows, self.side):
            rows = slice(row, min(row + self.side, self.n_rows))
            for column in range(row if self.mirrored else 0, self.n_columns, self.side):
                yield rows, slice(column, min(column + self.side, self.n_columns))
