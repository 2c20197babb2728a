"""Rows for photos: read, described in batches on several threads, and kept in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._files import digest
from kernelcore._parallel import check_stopped
from kernelcore._progress import Progress
from kernelcore._validation import Array
from kernelcore.images._each import OnError, all_there, over_images, report_failures
from kernelcore.images._rows import Rows
from kernelcore.images.decode import ImageSource, Photo, RGBImage, UnreadableImageError

Kinds: TypeAlias = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
Look: TypeAlias = Callable[[Sequence[RGBImage], Sequence[str]], Iterable[Mapping[str, Any]]]
"""Given photos and what errors are to call them, give the row of each array for each photo."""


@dataclass(frozen=True, eq=False)
class Described:
    """Arrays with one row per photo that could be read."""

    arrays: dict[str, Array]
    rows: npt.NDArray[np.intp]
    failures: dict[int, str]


def describe(
    images: Sequence[ImageSource],
    look: Look,
    kinds: Kinds,
    *,
    recipe: str,
    batch_size: int,
    max_pixels: int,
    cache_dir: str | os.PathLike[str] | None,
    on_error: OnError,
    n_threads: int,
    progress: Progress,
) -> Described:
    """Look at photos in batches; `recipe` is the digest of what `look` depends on.

    With `cache_dir` the rows of these photos, in this order, are kept in a folder of their
    own, and only those that are missing are looked at. To be called from a public method, to
    whose caller the warning about unreadable photos is addressed.
    """
    folder = None
    if cache_dir is not None:
        folder = Path(cache_dir) / digest(recipe.encode(), *_contents(images, max_pixels))
    rows = Rows(folder, len(images), kinds)
    missing = rows.missing
    # Once the call is bound to fail, the other photos are only tried, to name all that fail.
    doomed = threading.Event()

    def work(k: int) -> dict[int, str]:
        photos: dict[int, RGBImage] = {}
        names: list[str] = []
        failures: dict[int, str] = {}
        for i in missing[k * batch_size : (k + 1) * batch_size].tolist():
            check_stopped()
            photo = Photo.of(images, i, max_pixels)
            try:
                photos[i] = photo.pixels()
                names.append(photo.name)
            except UnreadableImageError as error:
                failures[i] = str(error)
        if failures and on_error == "raise":
            doomed.set()
        check_stopped()
        if photos and not doomed.is_set():
            for i, row in zip(photos, look(list(photos.values()), names), strict=True):
                rows.put(i, row)
        return failures

    if on_error == "raise" and not all_there(images, max_pixels):
        doomed.set()
    n_batches = -(-len(missing) // batch_size)
    results = over_images(work, n_batches, n_threads, progress, "Running the network")
    failures = {i: reason for result in results for i, reason in result.items()}
    report_failures(failures, len(images), on_error)
    kept = np.delete(np.arange(len(images)), list(failures))
    arrays = rows.arrays()
    if failures:
        arrays = {name: array[kept] for name, array in arrays.items()}
    return Described(arrays, kept, failures)


def _contents(images: Sequence[ImageSource], max_pixels: int) -> list[bytes]:
    """Tell photos apart by what is in them."""
    keys = []
    for i in range(len(images)):
        try:
            keys.append(digest(Photo.of(images, i, max_pixels).content()))
        except UnreadableImageError as error:
            keys.append(str(error))
    return [key.encode() for key in keys]
