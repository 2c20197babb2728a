"""Features of many photos, a chunk of photos at a time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_ordered_list, check_flag, check_integer
from kernelcore._store import digest
from kernelcore._threads import Progress
from kernelcore.distributed.arrays import Output, open_zarr, spans, writing
from kernelcore.errors import (
    UnreadableImagesError,
    UnreadableImagesWarning,
    describe_failures,
)
from kernelcore.images.cnn import CNN

if TYPE_CHECKING:
    import zarr


class PhotoFeatures(NamedTuple):
    """Features of photos on disk.

    Attributes
    ----------
    features : zarr.Array of float32, shape (n_photos, n_features)
        One row for each photo; zeros for those that could not be read.
    failed : ndarray of bool, shape (n_photos,)
        Whether a photo could not be read.
    """

    features: zarr.Array[Any]
    failed: npt.NDArray[np.bool_]


def extract_features(
    photos: Sequence[str | os.PathLike[str]],
    extractor: CNN,
    path: str | os.PathLike[str],
    *,
    chunk_photos: int = 1024,
    retry_failed: bool = False,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> PhotoFeatures:
    """Run a network on photos, and write their features as a Zarr array.

    Parameters
    ----------
    photos : sequence of paths
        Files that all workers can read. A photo is known by its path.
    extractor : CNN
        A network that workers can load by its name or path.
    path : path
        Folder of two Zarr arrays, ``features`` and ``failed``. A second call with the same
        arguments computes what is missing.
    chunk_photos : int, default 1024
        Photos of a task, and rows of a chunk.
    retry_failed : bool, default False
        Compute chunks again in which photos could not be read.
    client, n_threads, progress
        As for `gram_to_zarr`.

    Returns
    -------
    PhotoFeatures

    Raises
    ------
    TypeError, ValueError
        If there are no photos, the network is a module of torch, an option is out of range,
        or the folder holds the result of another call.
    RuntimeError
        If a chunk failed three times for another reason than photos, or another call is
        writing into the folder.

    Warns
    -----
    UnreadableImagesWarning
        If photos could not be read in this call: which, and why.

    See Also
    --------
    kernelcore.images.CNN.transform : The same on one machine.

    Notes
    -----
    Rows are those of `CNN.transform`, bit for bit, for every number of workers and
    `chunk_photos`, where the workers have the same version of ONNX Runtime; others refuse to
    work.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.distributed import extract_features
    >>> from kernelcore.images import CNN
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = make_scenes(4, rng=0).write(Path(folder) / "scenes")
    ...     photos = sorted(Path(folder).rglob("*.png"))
    ...     found = extract_features(photos, CNN(), Path(folder) / "features")
    >>> found.features.shape, found.failed
    ((4, 1280), array([False, False, False, False]))
    """
    given = as_ordered_list("photos", photos)
    for i, photo in enumerate(given):
        if not isinstance(photo, (str, os.PathLike)):
            raise TypeError(f"photos[{i}] must be a path, got {type(photo).__name__}")
    paths = [os.fspath(Path(photo).absolute()) for photo in given]
    if not paths:
        raise ValueError("photos must hold at least one path, got none")
    if not isinstance(extractor, CNN):
        raise TypeError(f"extractor must be a CNN, got {type(extractor).__name__}")
    if not isinstance(extractor.network, (str, os.PathLike)):
        raise TypeError(
            "extractor must have a network that workers can load by its name or path, got "
            f"{type(extractor.network).__name__}"
        )
    step = min(check_integer("chunk_photos", chunk_photos, minimum=1), len(paths))
    check_flag("retry_failed", retry_failed)
    width = extractor.transform([np.zeros((1, 1, 3), np.uint8)], n_threads=1).features.shape[1]
    identity = extractor.make_extractor().identity()
    about = {"network": identity, "photos": digest("\0".join(paths).encode())}
    with writing(path, client, n_threads, progress) as folder:
        shape = len(paths), width
        features = folder.begin("features", shape, (step, width), np.float32, about)
        failed = folder.begin("failed", shape[:1], (step,), np.int8, about)
        places = spans(len(paths), step)
        if retry_failed:
            for number, span in enumerate(places):
                if failed.chunk(number).exists() and failed.read(span).any():
                    failed.chunk(number).unlink()
        calls = [(extractor, identity, paths[span], span) for span in places]
        found = folder.fill("chunks of photos", [features, failed], _write_features, calls)
        failures = dict(item for part in found for item in part.items())
        if failures:
            warnings.warn(
                describe_failures(failures, len(paths)), UnreadableImagesWarning, stacklevel=2
            )
        return PhotoFeatures(open_zarr(features.path), failed.read() != 0)


def _write_features(  # noqa: PLR0917
    features: Output, failed: Output, cnn: CNN, identity: str, paths: list[str], span: slice
) -> dict[int, str]:
    """Run the network on the photos of a chunk; return why photos could not be read."""
    if cnn.make_extractor().identity() != identity:
        raise RuntimeError("workers must have the same network and version of ONNX Runtime")
    failures: dict[int, str] = {}
    try:
        rows = cnn.transform(paths, n_threads=1).features
    except UnreadableImagesError as error:
        failures = dict(error.failures)
        rest = [place for place in range(len(paths)) if place not in failures]
        rows = np.zeros((len(paths), open_zarr(features.path).shape[1]), np.float32)
        if rest:
            rows[rest] = cnn.transform([paths[place] for place in rest], n_threads=1).features
    features.write(span, rows)
    failed.write(span, np.isin(np.arange(len(paths)), list(failures)).astype(np.int8))
    return {span.start + place: why for place, why in failures.items()}
