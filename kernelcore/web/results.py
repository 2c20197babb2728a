"""What a page shows of a ranking: some of its photos, and the line of chance among them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._store import printable

if TYPE_CHECKING:
    from kernelcore.search import Collection, Ranking

PER_PAGE = 48
_OBJECT_BYTES = 1024  # of Python for an order and its key, about
_MARK_DIGITS = 16


class Tile(NamedTuple):
    """A photo on a page.

    Attributes
    ----------
    number : int
    name : str
        Its path in the folder, as it can be printed.
    mark : str
        Digits that change with its content.
    """

    number: int
    name: str
    mark: str

    def picture(self, size: str) -> str:
        """Return the address of the picture that is ``small`` or ``large``."""
        return f"/photo/{self.number}/{size}.jpg?v={self.mark}"


class Order(NamedTuple):
    """Photos in the order of the results.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n_photos,)
    n_fitting : int or None
        Number of photos above the line of chance; None without a line.
    """

    numbers: npt.NDArray[np.int64]
    n_fitting: int | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the order, about."""
        return _OBJECT_BYTES + self.numbers.nbytes

    @classmethod
    def of(cls, ranking: Ranking) -> Order:
        """Return the order of a ranking."""
        return cls(ranking.numbers, ranking.n_fitting)


class Found(NamedTuple):
    """A photo among results.

    Attributes
    ----------
    tile : Tile
    position : int
        From 1.
    """

    tile: Tile
    position: int


@dataclass(frozen=True)
class Results:
    """Photos of an order that one page shows.

    Attributes
    ----------
    total : int
        Number of photos in the order.
    n_fitting : int or None
        Number of them above the line of chance; None without a line.
    start : int
        Number of photos before this page.
    next_start : int or None
        The `start` of the next page; None on the last.
    above, below : list of Found
        Photos of this page above the line of chance, and below it. Without a line all are
        above.
    """

    total: int
    n_fitting: int | None
    start: int
    next_start: int | None
    above: list[Found] = field(default_factory=list)
    below: list[Found] = field(default_factory=list)


def results_page(collection: Collection, order: Order, start: int) -> Results:
    """Describe the photos of an order from `start` on, at most 48."""
    total = len(order.numbers)
    end = min(start + PER_PAGE, total)
    page = Results(total, order.n_fitting, start, end if end < total else None)
    for position, number in enumerate(order.numbers[start:end].tolist(), start + 1):
        for tile in tiles_of(collection, [number]):
            is_above = order.n_fitting is None or position <= order.n_fitting
            (page.above if is_above else page.below).append(Found(tile, position))
    return page


def tiles_of(collection: Collection, numbers: Iterable[int]) -> list[Tile]:
    """Describe photos, but for those that have left the collection meanwhile."""
    tiles = []
    for number in numbers:
        with suppress(KeyError):
            tiles.append(tile_of(collection, number))
    return tiles


def tile_of(collection: Collection, number: int) -> Tile:
    """Describe a photo; KeyError if there is none of this number."""
    name, mark = printable(collection.name(number)), ""
    with suppress(OSError):  # its file has gone: it has a name, but no picture
        mark = collection.digest(number)[:_MARK_DIGITS]
    return Tile(number, name, mark)
