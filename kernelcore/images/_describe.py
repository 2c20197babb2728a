"""Features of many photos: threads, unreadable photos, and a cache on disk."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice
from kernelcore._store import digest, load_tensors, remove_leftovers, save_tensors
from kernelcore._threads import (
    Progress,
    check_stopped,
    in_threads,
    one_blas_thread,
    one_opencv_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.errors import (
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
    describe_failures,
)
from kernelcore.images.read import (
    DecodeError,
    ImageSource,
    ImageSources,
    RGBImage,
    check_file,
    check_sources,
    content_of,
    naming,
    pixels_of,
)

OnError: TypeAlias = Literal["raise", "skip"]
Row: TypeAlias = Mapping[str, Array]
"""Arrays that describe one photo, by name."""

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_KIND = "features of one photo"


class DecodedPhoto(NamedTuple):
    """Pixels of a photo, its position in the input, and its name in errors."""

    pixels: RGBImage
    position: int
    name: str


Describe: TypeAlias = Callable[[Sequence[DecodedPhoto]], Iterable[Row]]
"""From a batch of photos to the row of each."""


@dataclass(frozen=True, eq=False)
class Described:
    """Rows of the photos that could be read, and the reasons why others could not."""

    rows: list[dict[str, Array]]
    positions: npt.NDArray[np.intp]
    failures: dict[int, str]

    def warn(self) -> None:
        """Warn about the photos that could not be read."""
        warn_of_failures(self.failures, len(self.rows) + len(self.failures))

    def stacked(self, name: str) -> Array:
        """Move the arrays of this name, which have one shape, into one array."""
        first = self.rows[0][name]
        array = np.empty((len(self.rows), *first.shape), first.dtype)
        for i, row in enumerate(self.rows):
            array[i] = row.pop(name)
        return array

    def concatenated(self, name: str) -> Array:
        """Join the arrays of this name along their first axis."""
        return np.concatenate([row.pop(name) for row in self.rows])


def describe(
    images: ImageSources,
    describe_batch: Describe,
    *,
    key: str = "",
    positions: Sequence[int] | None = None,
    batch_size: int = 1,
    max_pixels: int,
    cache_dir: str | os.PathLike[str] | None = None,
    on_error: OnError,
    n_threads: int | None,
    progress: Progress,
    description: str,
) -> Described:
    """Check the public arguments, and describe photos in batches, each by one thread.

    Parameters
    ----------
    images : ImageSources
    describe_batch : callable
    key : str
        Digest of everything but the photo that a row depends on.
    positions : sequence of int, optional
        Which of the photos to describe; the default is all of them.
    cache_dir : path, optional
        Keeps the row of each photo as soon as it is computed.
    description : str
        Name of the work for the progress bar.

    Raises
    ------
    UnreadableImagesError
        If photos cannot be read and `on_error` is "raise", or if none can.
    """
    check_sources("images", images)
    check_choice("on_error", on_error, ("raise", "skip"))
    threads = resolve_n_threads(n_threads)
    chosen = np.arange(len(images)) if positions is None else np.asarray(positions, np.intp)
    cache = None if cache_dir is None else FeatureCache(cache_dir, key)
    # Once the call must fail, other photos are only decoded: the error names all failures.
    must_fail = threading.Event()

    def work(batch: int) -> dict[int, Row | str]:
        found: dict[int, Row | str] = {}
        photos: list[DecodedPhoto] = []
        entries: list[str] = []
        for i in chosen[batch * batch_size : (batch + 1) * batch_size].tolist():
            check_stopped()
            try:
                with naming(images[i], f"images[{i}]") as name:
                    content = content_of(images[i], max_pixels)
                    entry = "" if cache is None else _digest(content)
                    row = None if cache is None else cache.load(entry)
                    if row is None:
                        photos.append(DecodedPhoto(pixels_of(content, max_pixels), i, name))
                        entries.append(entry)
                    else:
                        found[i] = row
            except UnreadableImageError as error:
                found[i] = str(error)
                if on_error == "raise":
                    must_fail.set()
        check_stopped()
        if photos and not must_fail.is_set():
            rows = describe_batch(photos)
            for decoded, entry, described in zip(photos, entries, rows, strict=True):
                found[decoded.position] = described
                if cache is not None:
                    cache.save(entry, described)
        return found

    if on_error == "raise" and not all(_is_there(images[i], max_pixels) for i in chosen):
        must_fail.set()
    batches = range(-(-len(chosen) // batch_size))
    # Libraries have one thread each, so that no result depends on the number of threads.
    with one_opencv_thread(), one_blas_thread(), reporting(progress, description) as report:
        results = in_threads(work, batches, threads, setting=one_blas_thread, report=report)
    found = {i: row for result in results for i, row in result.items()}
    failures = {i: reason for i, reason in found.items() if isinstance(reason, str)}
    check_failures(failures, len(chosen), on_error)
    rows = {i: row for i, row in found.items() if not isinstance(row, str)}
    return Described(
        [dict(row) for row in rows.values()],
        np.array(list(rows), np.intp),
        failures,
    )


def _digest(content: bytes | npt.NDArray[np.uint8]) -> str:
    if isinstance(content, bytes):
        return digest(content)
    return digest(repr(content.shape).encode() + content.tobytes())


def _is_there(source: ImageSource, max_pixels: int) -> bool:
    """Whether a file exists and has a plausible size; it is not read."""
    if isinstance(source, (str, os.PathLike)):
        try:
            check_file(source, max_pixels)
        except (OSError, DecodeError):
            return False
    return True


def check_failures(failures: Mapping[int, str], n_images: int, on_error: OnError) -> None:
    """Raise if images failed that may not, or if all did, with all names in one message."""
    if failures and (on_error == "raise" or len(failures) == n_images):
        raise UnreadableImagesError(failures, n_images)


def warn_of_failures(failures: Mapping[int, str], n_images: int) -> None:
    """Warn about images that failed, at the line outside of this package that led here."""
    if failures:
        level, frame = 1, sys._getframe()
        while frame.f_back and frame.f_code.co_filename.startswith(_PACKAGE):
            level, frame = level + 1, frame.f_back
        warnings.warn(
            describe_failures(failures, n_images), UnreadableImagesWarning, stacklevel=level
        )


class FeatureCache:
    """Rows of photos on disk, by the content of the photo.

    Files are named by content, not by path and date: a photo that is moved, copied or listed
    in another order is found again, and one that is changed is not. Files are not forced to
    the disk one by one: an entry that a power cut has damaged does not match its checksum and
    is made again.

    Parameters
    ----------
    folder : path
        Where to keep files; made if missing. Several processes may share it.
    key : str
        Digest of everything else that the rows depend on. Each key has a folder of its own
        within `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str) -> None:
        self._folder = Path(folder) / key
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._folder.iterdir():
            remove_leftovers(part)

    def load(self, photo: str) -> dict[str, Array] | None:
        """Return the row of the photo with this digest, None if it is missing or damaged."""
        try:
            return dict(load_tensors(self._path(photo), _KIND)[0])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, photo: str, row: Row) -> None:
        """Keep the row of the photo with this digest."""
        path = self._path(photo)
        path.parent.mkdir(exist_ok=True)
        save_tensors(path, _KIND, row, one_of_many=True)

    def _path(self, photo: str) -> Path:
        # 256 folders, as many file systems grow slow with a hundred thousand files in one.
        return self._folder / photo[:2] / f"{photo}.safetensors"
