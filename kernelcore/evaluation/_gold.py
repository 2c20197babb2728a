"""The gold candidates of every query, brought from the forms a caller may give into one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_array, as_integer_array, as_list, check_integer


class GoldItems(NamedTuple):
    """Gold candidates of query q: ``candidates[offsets[q]:offsets[q + 1]]``, ascending."""

    candidates: npt.NDArray[np.intp]
    offsets: npt.NDArray[np.intp]


def as_caption_image(caption_image: Any, shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the row of each caption's image, checked against the shape of the scores."""
    n_images, n_captions = shape
    if caption_image is None:
        if n_images != n_captions:
            raise ValueError(
                "caption_image must be given unless there is one caption per image, "
                f"got {n_images} images and {n_captions} captions"
            )
        return np.arange(n_images)
    owner = as_integer_array("caption_image", caption_image, ndim=1, dtype=np.intp)
    if len(owner) != n_captions:
        raise ValueError(
            f"caption_image must have one entry per caption ({n_captions}), got {len(owner)}"
        )
    _check_range("caption_image", owner, n_images)
    lonely = np.flatnonzero(np.bincount(owner, minlength=n_images) == 0)
    if lonely.size:
        raise ValueError(
            f"caption_image must name every image at least once, and {lonely.size} have no "
            f"caption, the first is image {lonely[0]}"
        )
    return owner


def as_owner(
    caption_image: Any, captions_per_image: int | None, shape: tuple[int, ...]
) -> npt.NDArray[np.intp]:
    """Return the row of each caption's image, given itself or by how many each image has."""
    if captions_per_image is None:
        return as_caption_image(caption_image, shape)
    if caption_image is not None:
        raise ValueError("captions_per_image must not be given beside caption_image")
    per_image = check_integer("captions_per_image", captions_per_image, minimum=1)
    n_images, n_captions = shape
    if n_images * per_image != n_captions:
        raise ValueError(
            f"captions_per_image must give {n_captions} captions to {n_images} images, "
            f"got {per_image}"
        )
    return np.repeat(np.arange(n_images), per_image)


def captions_by_image(caption_image: npt.NDArray[np.intp]) -> GoldItems:
    """Gold items of the images: their captions."""
    counts = np.bincount(caption_image)
    return GoldItems(np.argsort(caption_image, kind="stable"), _offsets(counts))


def one_each(candidates: npt.NDArray[np.intp]) -> GoldItems:
    """Gold items where every query has one."""
    return GoldItems(candidates, np.arange(len(candidates) + 1))


def as_gold(
    gold: Any, shape: tuple[int, ...], *, name: str = "gold", allow_empty: bool = False
) -> GoldItems:
    """Bring the three forms of `gold` into one and check it against the shape of the scores.

    It is called `name` in errors. Queries may have no gold candidate if `allow_empty`, but
    not all of them.
    """
    n_queries, n_candidates = shape
    if hasattr(gold, "__array__"):
        gold = as_array(name, gold, ndim=1)
    if not isinstance(gold, np.ndarray) or gold.ndim == 0:
        gold = as_list(name, gold, "be an array or a sequence")
    if len(gold) != n_queries:
        raise ValueError(f"{name} must have one entry per query ({n_queries}), got {len(gold)}")
    first = gold[0]
    if np.ndim(first) == 0:
        candidates = as_integer_array(name, gold, ndim=1, dtype=np.intp)
        _check_range(name, candidates, n_candidates)
        return one_each(candidates)
    if np.asarray(first).dtype == bool:
        mask = np.asarray(gold)
        if mask.shape != (n_queries, n_candidates):
            raise ValueError(
                f"{name} must have the shape of scores, {(n_queries, n_candidates)}, "
                f"got {mask.shape}"
            )
        sets = [np.flatnonzero(row) for row in mask]
    else:
        sets = [as_integer_array(name, row, ndim=1, dtype=np.intp) for row in gold]
    counts = np.array([len(members) for members in sets])
    if not (counts.any() if allow_empty else counts.all()):
        raise ValueError(
            f"{name} must name at least one candidate per query, got none for query "
            f"{np.flatnonzero(counts == 0)[0]}"
        )
    sets = [np.sort(members) for members in sets]
    for query, members in enumerate(sets):
        if (np.diff(members) == 0).any():
            raise ValueError(
                f"{name} must name a candidate once, got one twice in query {query}"
            )
    candidates = np.concatenate(sets)
    _check_range(name, candidates, n_candidates)
    return GoldItems(candidates, _offsets(counts))


def _check_range(name: str, indices: npt.NDArray[np.intp], size: int) -> None:
    if indices.min() < 0 or indices.max() >= size:
        raise ValueError(
            f"{name} must hold indices from 0 to {size - 1}, "
            f"got values from {indices.min()} to {indices.max()}"
        )


def _offsets(counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.intp, copy=False)
