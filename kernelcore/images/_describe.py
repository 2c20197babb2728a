"""Features of many photos: threads, unreadable photos, and the two caches on disk.

`FeatureCache` has a file for each photo and finds it wherever the photo comes again; `Rows`
has one mapped file for all photos of a call, for features that may be larger than memory.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._store import (
    cached_value,
    digest,
    load_tensors,
    npy_header,
    reading,
    remove_leftovers,
    replacing,
    save_tensors,
)
from kernelcore._threads import (
    Progress,
    check_stopped,
    in_threads,
    one_blas_thread,
    one_opencv_thread,
    reporting,
)
from kernelcore.errors import (
    UnreadableImageError,
    UnreadableImagesError,
    UnreadableImagesWarning,
    describe_failures,
)
from kernelcore.images.read import (
    ImageSources,
    Photo,
    RGBImage,
)

OnError: TypeAlias = Literal["raise", "skip"]
Kinds: TypeAlias = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
Look: TypeAlias = Callable[[Sequence[RGBImage], Sequence[str]], Iterable[Mapping[str, Any]]]
"""From photos and their names in errors to the row of each array for each photo."""

_INTERNALS = (str(Path(__file__).parents[1]) + os.sep, contextlib.__file__)
_KIND = "visual words of one image"
_CHECKSUMS = "checksums"
_PIECE = 2**20  # bytes written at once
_gathered: ContextVar[dict[int, str] | None] = ContextVar("gathered", default=None)
_Result = TypeVar("_Result")


def over_images(
    work: Callable[[int], _Result],
    n_images: int,
    n_threads: int,
    progress: Progress,
    description: str,
) -> list[_Result]:
    """Results of `work` for the numbers below `n_images`, in order.

    Libraries are kept to one thread each, and threads share no other state: the result for
    an image does not depend on `n_threads`.
    """
    with (
        one_opencv_thread(),
        one_blas_thread(),
        reporting(progress, description) as report,
    ):
        return in_threads(
            work, range(n_images), n_threads, setting=one_blas_thread, report=report
        )


def all_there(images: ImageSources, max_pixels: int) -> bool:
    """Tell whether every file exists and has a plausible size, without reading any."""
    try:
        for i in range(len(images)):
            Photo.of(images, i, max_pixels).check_there()
    except UnreadableImageError:
        return False
    return True


def unreadable_files(
    images: Sequence[Any], max_pixels: int, n_threads: int, progress: Progress
) -> dict[int, str]:
    """Try to decode the files among the images; return the reasons of failures by position.

    It is for extractors of other libraries, which skip no files. Images that are neither a
    path nor bytes are not read.
    """

    def work(i: int) -> str:
        check_stopped()
        if isinstance(images[i], (str, os.PathLike, bytes)):
            try:
                Photo.of(images, i, max_pixels).pixels()
            except UnreadableImageError as error:
                return str(error)
        return ""

    reasons = over_images(work, len(images), n_threads, progress, "Trying files")
    return {i: reason for i, reason in enumerate(reasons) if reason}


def report_failures(failures: Mapping[int, str], n_images: int, on_error: OnError) -> None:
    """Raise or warn about the images that failed, all in one message."""
    if failures and (on_error == "raise" or len(failures) == n_images):
        raise UnreadableImagesError(failures, n_images)
    gathered = _gathered.get()
    if gathered is None:
        _warn(failures, n_images)
    else:
        gathered.update(failures)


@contextmanager
def warning_once(n_images: int) -> Iterator[None]:
    """Gather the warnings of a block that describes the same images repeatedly into one."""
    failures: dict[int, str] = {}
    token = _gathered.set(failures)
    try:
        yield
    finally:
        _gathered.reset(token)
    _warn(dict(sorted(failures.items())), n_images)


def _warn(failures: Mapping[int, str], n_images: int) -> None:
    """Warn about images, at the line outside of this package that led here."""
    if failures:
        level, frame = 1, sys._getframe()
        while frame.f_back and frame.f_code.co_filename.startswith(_INTERNALS):
            level, frame = level + 1, frame.f_back
        warnings.warn(
            describe_failures(failures, n_images), UnreadableImagesWarning, stacklevel=level
        )


class FeatureCache:
    """Counts of visual words by the content of the image they were taken from.

    Files are named by content, not by path and date: a photo that is moved, copied or listed
    in another order is found again, and one that is changed is not.

    Parameters
    ----------
    folder : path
        Where to keep files; made if missing. Several processes may share it.
    recipe : str
        Digest of everything else that the counts depend on. Each recipe has a folder of its
        own within `folder`.
    """

    def __init__(self, folder: str | os.PathLike[str], recipe: str) -> None:
        self._folder = Path(folder) / recipe
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in self._folder.iterdir():
            remove_leftovers(part)

    def value(self, image: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """Return the counts of the image with this digest; `make` and keep them if need be.

        Thousands of files are not forced to the disk one by one: an entry that a power cut
        has damaged does not match its digest and is made again.
        """
        # 256 folders, as many file systems grow slow with a hundred thousand files in one.
        path = self._folder / image[:2] / f"{image}.safetensors"
        return cached_value(path, make, _save_counts, _load_counts)


def _save_counts(counts: Mapping[str, Array], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    save_tensors(path, _KIND, counts, one_of_many=True)


def _load_counts(path: Path) -> dict[str, Array]:
    return load_tensors(path, _KIND)[0]


class Rows:
    """Arrays whose rows are filled in any order, in memory or in files that keep them.

    A folder holds one ``.npy`` file for each array and one of checksums, in which 0 stands
    for a row that is missing. A row is written before its checksum, so a run that is killed
    loses the rows in hand; rows that do not match their checksum count as missing.

    Parameters
    ----------
    folder : path or None
        Where the files are, made if missing; None keeps the rows in memory.
    n_rows : int
        Number of photos.
    kinds : mapping of str to (shape, dtype)
        Shape and type of one row of each array.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        n_rows: int,
        kinds: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]],
    ) -> None:
        shapes = {
            name: ((n_rows, *shape), np.dtype(dtype)) for name, (shape, dtype) in kinds.items()
        }
        if folder is None:
            self._arrays = {name: np.zeros(*kind) for name, kind in shapes.items()}
            self._checksums: Array = np.zeros(n_rows, np.uint32)
            return
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        self._arrays = {name: _mapped(home, name, *kind) for name, kind in shapes.items()}
        self._checksums = _mapped(home, _CHECKSUMS, (n_rows,), np.dtype(np.uint32))
        for i in np.flatnonzero(self._checksums).tolist():
            if self._checksums[i] != self._checksum(i):
                self._checksums[i] = 0

    @property
    def missing(self) -> npt.NDArray[np.intp]:
        """Positions of the rows that are not there yet."""
        return np.flatnonzero(self._checksums == 0)

    def put(self, i: int, row: Mapping[str, npt.ArrayLike]) -> None:
        """Fill row `i` of every array; different rows may be filled at the same time."""
        for name, array in self._arrays.items():
            array[i] = row[name]
        self._checksums[i] = self._checksum(i)

    def arrays(self) -> dict[str, Array]:
        """Flush the files and return the arrays, read-only."""
        for array in (*self._arrays.values(), self._checksums):
            if isinstance(array, np.memmap):
                with _naming(array.filename):
                    array.flush()
        views = {name: array.view() for name, array in self._arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def _checksum(self, i: int) -> int:
        checksum = 0
        for array in self._arrays.values():
            checksum = zlib.crc32(array[i].tobytes(), checksum)
        return checksum or 1


def _holds(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether the header of a file declares such an array; mapping restores a lost end."""
    try:
        with reading(path), path.open("rb") as file:
            return npy_header(file) == (shape, False, dtype)
    except (FileNotFoundError, ValueError):
        return False


@contextmanager
def _naming(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Put the name of a mapped file into its errors, which NumPy leaves out."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None or path is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _mapped(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Map a file for reading and writing; a file of another shape is replaced."""
    path = folder / f"{name}.npy"
    if _holds(path, shape, dtype):
        with _naming(path):
            return np.lib.format.open_memmap(path, mode="r+")
    with replacing(path) as temporary, temporary.open("wb") as file:
        about = {"shape": shape, "fortran_order": False, "descr": dtype.str}
        np.lib.format.write_array_header_1_0(file, about)
        n_bytes = math.prod(shape) * dtype.itemsize
        for start in range(0, n_bytes, _PIECE):  # of a mapped file a full disk is a crash
            file.write(bytes(min(_PIECE, n_bytes - start)))
    with _naming(path):
        return np.lib.format.open_memmap(path, mode="r+")


@dataclass(frozen=True, eq=False)
class Described:
    """Arrays with one row per photo that could be read."""

    arrays: dict[str, Array]
    rows: npt.NDArray[np.intp]
    failures: dict[int, str]


def describe(
    images: ImageSources,
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
    """Compute features in batches of photos; `recipe` is the digest of the settings of `look`.

    With `cache_dir` the rows of these photos, in this order, are kept in a folder of their
    own, and only missing rows are computed.
    """
    folder = None
    if cache_dir is not None:
        folder = Path(cache_dir) / digest(recipe.encode(), *_contents(images, max_pixels))
    rows = Rows(folder, len(images), kinds)
    missing = rows.missing
    # Once the call must fail, other photos are only decoded: the error names all failures.
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


def _contents(images: ImageSources, max_pixels: int) -> list[bytes]:
    """Digests of the contents of the photos."""
    keys = []
    for i in range(len(images)):
        try:
            keys.append(digest(Photo.of(images, i, max_pixels).content()))
        except UnreadableImageError as error:
            keys.append(str(error))
    return [key.encode() for key in keys]
