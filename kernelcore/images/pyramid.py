"""Spatial histograms of visual words: the form that every image kernel reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SpatialHistograms:
    """Counts of visual words in the cells of a spatial pyramid, one row per image.

    Level l divides the image into 2^l x 2^l cells. Cells are stored level by level, each
    level in row-major order: 1, 4, 16, ... cells.

    Attributes
    ----------
    counts : ndarray of uint16 or uint32, shape (n_images, n_cells, n_words)
        Pixels (or patches) of each cell with each visual word.
    totals : ndarray of int64, shape (n_images,)
        Pixels (or patches) of the whole image: every level of `counts` adds up to it.
    n_levels : int
        Number of levels; ``n_cells == sum(4**l for l in range(n_levels))``.
    """

    counts: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    totals: npt.NDArray[np.int64]
    n_levels: int
