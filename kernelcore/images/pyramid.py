"""Spatial histograms of visual words, the input of every image kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_integer_array, check_integer, sealed
from kernelcore._ragged import Record, column, size

Counts: TypeAlias = npt.NDArray[np.uint16 | np.uint32]
CountsType: TypeAlias = type[np.uint16] | type[np.uint32]

MAX_LEVELS = 8


@dataclass(frozen=True, eq=False)
class SpatialHistograms(Record):
    r"""Counts of visual words in the cells of a spatial pyramid, one row per image.

    Level :math:`l` divides the image into :math:`2^l \times 2^l` cells. Cells are stored
    level by level, each level in row-major order: 1, 4, 16, ... cells. A level's cells tile
    the image, so every level is a finer account of the same points. Images may differ in
    their numbers of points; ``counts / totals[:, None, None]`` are whole-image fractions.

    The arrays are copied, checked once and then read-only, so that compiled code may trust
    them.

    Attributes
    ----------
    counts : ndarray of uint16 or uint32, shape (n_images, n_cells, n_words)
        Pixels (or patches) of each cell with each visual word. Any integer array is taken
        and kept as uint16 if every total is at most 65,535, as uint32 otherwise.
    totals : ndarray of int64, shape (n_images,)
        Pixels (or patches) of the whole image: every level of `counts` adds up to it.
    n_levels : int
        Number of levels; ``n_cells == sum(4**l for l in range(n_levels))``.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes disagree, a count is negative, a total is less than 1, or a level does
        not add up to its image's total.

    See Also
    --------
    kernelcore.images.VisualWords : Makes these from photos.

    References
    ----------
    .. [1] S. Lazebnik, C. Schmid and J. Ponce, "Beyond bags of features: spatial pyramid
       matching for recognizing natural scene categories", CVPR 2006.

    Examples
    --------
    One image of six points and two words: three points of each, the first word on the left.

    >>> from kernelcore.images import SpatialHistograms
    >>> counts = [[[3, 3], [1, 0], [0, 2], [2, 0], [0, 1]]]
    >>> histograms = SpatialHistograms(counts, totals=[6], n_levels=2)
    >>> histograms
    SpatialHistograms(1 images, 5 cells, 2 words, uint16)
    >>> histograms.counts[0, 1:5].sum(axis=0)  # of the cells of level 1
    array([3, 3], dtype=uint64)
    """

    _kind: ClassVar[str] = "spatial histograms"
    _axis: ClassVar[str] = "image"

    counts: Counts = field(metadata=column("image", np.uint16, np.uint32, ndim=3))
    totals: npt.NDArray[np.int64] = field(metadata=column("image", np.int64))
    n_levels: int = field(metadata=size(1, MAX_LEVELS))

    def __len__(self) -> int:
        return len(self.totals)

    def __repr__(self) -> str:
        images, cells, words = self.counts.shape
        return (
            f"SpatialHistograms({images} images, {cells} cells, {words} words, "
            f"{self.counts.dtype})"
        )

    @property
    def n_cells(self) -> int:
        """Number of cells of all levels together."""
        return int(self.counts.shape[1])

    @property
    def n_words(self) -> int:
        """Number of visual words."""
        return int(self.counts.shape[2])

    @classmethod
    def from_finest(cls, counts: npt.ArrayLike, n_levels: int) -> SpatialHistograms:
        """Add the coarser levels to the counts of the finest one.

        Parameters
        ----------
        counts : array_like of int, shape (n_images, 4**(n_levels - 1), n_words)
            Counts in the cells of the finest level, row by row.
        n_levels : int
            Number of levels, the finest included.

        Returns
        -------
        SpatialHistograms

        Raises
        ------
        TypeError, ValueError
            As for the class.
        """
        n_levels = check_integer("n_levels", n_levels, minimum=1, maximum=MAX_LEVELS)
        finest = as_integer_array("counts", counts, ndim=3, dtype=np.uint32)
        images, cells, words = finest.shape
        if cells != 4 ** (n_levels - 1):
            raise ValueError(
                f"counts must have {4 ** (n_levels - 1)} cells at the finest of "
                f"n_levels={n_levels} levels, got shape {finest.shape}"
            )
        totals = finest.sum(axis=(1, 2), dtype=np.int64)
        dtype = counts_dtype(int(totals.max(initial=0)))
        pooled = np.empty((images, n_cells(n_levels), words), dtype)
        pooled[:, level_slice(n_levels - 1)] = finest
        for level in reversed(range(n_levels - 1)):
            side = 2**level
            fine = pooled[:, level_slice(level + 1)].reshape(images, side, 2, side, 2, words)
            coarse = fine.sum(axis=(2, 4), dtype=pooled.dtype)
            pooled[:, level_slice(level)] = coarse.reshape(images, side * side, words)
        return cls(pooled, totals, n_levels)

    @classmethod
    def concatenate(cls, parts: Sequence[SpatialHistograms]) -> SpatialHistograms:
        """Put the images of several sets of the same words and levels one after another."""
        if not parts:
            raise ValueError("parts must hold at least one SpatialHistograms, got none")
        for i, part in enumerate(parts):
            if not isinstance(part, SpatialHistograms):
                raise TypeError(f"parts must hold SpatialHistograms, got {part!r} at [{i}]")
            if (part.n_levels, part.n_words) != (parts[0].n_levels, parts[0].n_words):
                raise ValueError(
                    f"parts must agree in levels ({parts[0].n_levels}) and words "
                    f"({parts[0].n_words}), got {part.n_levels} and {part.n_words} at [{i}]"
                )
        return cls._trusted(
            counts=np.concatenate([part.counts for part in parts]),
            totals=np.concatenate([part.totals for part in parts]),
            n_levels=parts[0].n_levels,
        )

    def mirrored(self) -> SpatialHistograms:
        """Return the histograms with left and right exchanged, cell by cell.

        Where the words of a point do not change under reflection (colour), these are the
        histograms of the mirrored images.

        Returns
        -------
        SpatialHistograms

        Examples
        --------
        >>> import numpy as np
        >>> from kernelcore.images import SpatialHistograms
        >>> left = SpatialHistograms(np.array([[[2], [2], [0], [0], [0]]]), np.array([2]), 2)
        >>> left.mirrored().counts.ravel()
        array([2, 0, 2, 0, 0], dtype=uint16)
        """
        cells = [
            np.arange(n_cells(level), n_cells(level + 1)).reshape(2**level, -1)[:, ::-1].ravel()
            for level in range(self.n_levels)
        ]
        return self._replaced(counts=self.counts[:, np.concatenate(cells)])

    def _check(self) -> None:
        totals = self.totals
        if totals.size and not 1 <= totals.min() <= totals.max() <= np.iinfo(np.uint32).max:
            raise ValueError(
                "totals must lie between 1 and 2**32 - 1, "
                f"got values from {totals.min()} to {totals.max()}"
            )
        if self.n_cells != n_cells(self.n_levels):
            raise ValueError(
                "counts must have shape (n_images, n_cells, n_words) with "
                f"{n_cells(self.n_levels)} cells for n_levels={self.n_levels}, "
                f"got {self.counts.shape}"
            )
        for level in range(self.n_levels):
            sums = self.counts[:, level_slice(level)].sum(axis=(1, 2), dtype=np.int64)
            wrong = np.flatnonzero(sums != totals)
            if wrong.size:
                image = wrong[0]
                raise ValueError(
                    "every level of counts must add up to totals, got "
                    f"{sums[image]} points at level {level} and a total of "
                    f"{totals[image]} for the image at position {image}"
                )
        self._set("counts", _narrowed(self.counts, totals))

    def _taken(self, axis: str, rows: npt.NDArray[np.intp]) -> dict[str, Array]:
        taken = super()._taken(axis, rows)
        return taken | {"counts": _narrowed(taken["counts"], taken["totals"])}


def _narrowed(counts: Array, totals: npt.NDArray[np.int64]) -> Array:
    """Return the counts in the narrowest dtype that holds the totals."""
    return sealed(counts.astype(counts_dtype(int(totals.max(initial=0))), copy=False))


def n_cells(n_levels: int) -> int:
    """Cells of the levels 0 .. n_levels - 1 together: 1, 5, 21, 85, ..."""
    return sum(4**level for level in range(n_levels))


def level_slice(level: int) -> slice:
    """Where the cells of a level stand among the cells of all levels."""
    return slice(n_cells(level), n_cells(level + 1))


def grid_cells(
    y: npt.NDArray[np.intp],
    x: npt.NDArray[np.intp],
    image_shape: tuple[int, int],
    n_levels: int,
) -> npt.NDArray[np.intp]:
    """Cell of the finest level that each point of a grid lies in.

    A point belongs to the cell that holds the centre of its pixel. A cell of one level is
    then the union of four cells of the next, for images of any size.

    Parameters
    ----------
    y, x : ndarray of intp, shapes (n_y,) and (n_x,)
        Pixel rows and pixel columns of the grid.
    image_shape : (int, int)
        Height and width of the image in pixels.
    n_levels : int
        Number of pyramid levels.

    Returns
    -------
    ndarray of intp, shape (n_y, n_x)
        Numbers from 0 to ``4**(n_levels - 1) - 1``, row by row of the image.
    """
    side = 2 ** (n_levels - 1)
    rows, columns = (
        (2 * at + 1) * side // (2 * extent)
        for at, extent in zip((y, x), image_shape, strict=True)
    )
    cells: npt.NDArray[np.intp] = rows[:, None] * side + columns
    return cells


def count_words(
    words: npt.NDArray[np.intp], cells: npt.NDArray[np.intp], *, n_words: int, n_levels: int
) -> npt.NDArray[np.uint32]:
    """Histogram of visual words in each cell of the finest level of one image.

    Parameters
    ----------
    words, cells : ndarray of intp, of the same shape
        Visual word of every point, and the cell it lies in.
    n_words, n_levels : int
        Size of the codebook and number of pyramid levels.

    Returns
    -------
    ndarray of uint32, shape (4**(n_levels - 1), n_words)
    """
    n_finest = 4 ** (n_levels - 1)
    bins = np.bincount((cells * n_words + words).ravel(), minlength=n_finest * n_words)
    return bins.reshape(n_finest, n_words).astype(np.uint32)


def counts_dtype(largest_total: int) -> CountsType:
    """Type that holds every count of images of up to this many points.

    16 bits, where they do, take half the memory and make the kernels twice as fast.
    """
    return np.uint16 if largest_total <= np.iinfo(np.uint16).max else np.uint32
