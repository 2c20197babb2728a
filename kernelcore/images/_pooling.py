"""Features of boxes in photos: averages over a map, or a network run on each crop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from kernelcore._parallel import check_stopped
from kernelcore.images._lens import Lens
from kernelcore.images._networks import FloatArray
from kernelcore.images.decode import RGBImage

DescribeBoxes: TypeAlias = Callable[
    [Lens, Sequence[RGBImage], Sequence[FloatArray], Sequence[str]], list[FloatArray]
]
"""Given photos and the boxes of each, give the features of each photo's boxes."""


def average_in_boxes(
    feature_map: FloatArray, corners: FloatArray, size: tuple[int, int]
) -> FloatArray:
    """Average a map over boxes, as if each cell had one value all over.

    Parameters
    ----------
    feature_map : ndarray of float32, shape (d, h, w)
        Cells that tile the photo.
    corners : ndarray of float32, shape (n, 4)
        Left, top, right and bottom of boxes within the photo, not empty.
    size : (int, int)
        Height and width of the photo in the unit of `corners`.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    n_features, n_rows, n_columns = feature_map.shape
    columns = _shares(corners[:, 0], corners[:, 2], n_columns, size[1])
    rows = _shares(corners[:, 1], corners[:, 3], n_rows, size[0])
    weights = (rows[:, :, None] * columns[:, None, :]).reshape(len(corners), -1)
    averages: FloatArray = weights @ feature_map.reshape(n_features, -1).T
    return averages


def _shares(starts: FloatArray, ends: FloatArray, n_cells: int, length: int) -> FloatArray:
    """Share of each interval that lies in each of the equal cells of a length, (n, n_cells)."""
    edges = np.linspace(0, length, n_cells + 1)
    inside = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    inside = np.maximum(inside, 0)
    shares: FloatArray = (inside / inside.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def _from_map(
    lens: Lens,
    photos: Sequence[RGBImage],
    corners: Sequence[FloatArray],
    names: Sequence[str],
) -> list[FloatArray]:
    maps = lens.see(photos, names).features
    if maps.ndim != 4:
        raise ValueError(
            "pooling='map' needs a layer whose output are maps of shape (b, d, h, w), "
            f"got shape {maps.shape}"
        )
    return [
        average_in_boxes(feature_map, boxes, photo.shape[:2])
        for feature_map, boxes, photo in zip(maps, corners, photos, strict=True)
    ]


def _from_crops(
    lens: Lens,
    photos: Sequence[RGBImage],
    corners: Sequence[FloatArray],
    names: Sequence[str],
) -> list[FloatArray]:
    results = []
    for photo, boxes, name in zip(photos, corners, names, strict=True):
        crops = [
            photo[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)]
            for left, top, right, bottom in boxes.tolist()
        ]
        batches = [
            crops[i : i + lens.batch_size] for i in range(0, len(crops), lens.batch_size)
        ]
        seen = []
        for batch in batches:
            check_stopped()
            seen.append(lens.see(batch, [name] * len(batch)))
        results.append(np.concatenate([outputs.pooled() for outputs in seen]))
    return results


POOLING: dict[str, DescribeBoxes] = {"map": _from_map, "crop": _from_crops}
