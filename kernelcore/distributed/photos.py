"""Features of many photos, a shard of photos at a time."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._check import as_ordered_list, check_flag, check_integer
from kernelcore._store import digest, json_value, make_folder, read_text, reading, replacing
from kernelcore._threads import Progress
from kernelcore.distributed.rows import (
    RowFiles,
    begin_rows,
    open_rows,
    shard_name,
    shard_span,
)
from kernelcore.distributed.store import ABOUT, Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.errors import UnreadableImagesError, UnreadableImagesWarning
from kernelcore.images.cnn import CNN

_NETWORK_BYTES = 400 << 20  # of libraries, the weights and the maps of a photo
_PHOTO_BYTES = 7 * (1 << 24)  # of a photo of 16 million pixels while it is brought to size


@dataclass(frozen=True)
class PhotoFeatures:
    """Features of photos in a store.

    Attributes
    ----------
    rows : RowFiles
        One row for each photo, in their order; zeros for those that could not be read.
    photos : list of str
    failures : dict of int to str
        Positions of the photos that could not be read, and the reasons.
    """

    rows: RowFiles
    photos: list[str]
    failures: dict[int, str]


def extract_features(
    photos: Sequence[str | os.PathLike[str]],
    cnn: CNN,
    store: str | os.PathLike[str],
    *,
    shard_photos: int = 1024,
    retry_failed: bool = False,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> PhotoFeatures:
    """Run a network on photos, and write their features.

    Parameters
    ----------
    photos : sequence of paths
        Files that all workers can read.
    cnn : CNN
        The network: the default one or an ONNX file, on the CPU.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    shard_photos : int, default 1024
        Photos of a task, and rows of a file.
    retry_failed : bool, default False
        Compute shards again in which photos could not be read.
    executor : distributed.Client or concurrent.futures.Executor, optional
        Who computes; by default threads of this process.
    n_threads : int, optional
        Threads without an executor; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (shards done, shards).

    Returns
    -------
    PhotoFeatures

    Raises
    ------
    TypeError, ValueError
        If there are no photos, the network is a module of torch or runs on another device, an
        option is out of range, or the folder holds another store.
    PiecesFailedError
        If a shard failed three times for another reason than photos.
    ClusterLostError
        If the workers are gone.

    See Also
    --------
    kernelcore.images.CNN.transform : The same on one machine.

    Notes
    -----
    Rows are those of `CNN.transform`, bit for bit, for every executor and `shard_photos`, as
    long as the workers have the same version of ONNX Runtime; others refuse to work. A photo
    is known by its path.

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
    >>> found.rows.shape, found.failures
    ((4, 1280), {})
    """
    paths = [
        _path(f"photos[{i}]", one) for i, one in enumerate(as_ordered_list("photos", photos))
    ]
    if not paths:
        raise ValueError("photos must hold at least one path, got none")
    if not isinstance(cnn, CNN):
        raise TypeError(f"cnn must be a CNN, got {type(cnn).__name__}")
    settings = _settings_of(cnn)
    step = check_integer("shard_photos", shard_photos, minimum=1)
    check_flag("retry_failed", retry_failed)
    extractor = cnn.make_extractor()
    with extractor.running():
        black = np.zeros((1, 1, 3), np.uint8)
        width = extractor.extract([black], ["a black photo"]).pooled().shape[1]
    settings |= {"identity": extractor.identity(), "photos": _digest(paths)}
    folder = Path(store).absolute()
    with working_on(folder):
        target = begin_rows(
            folder,
            "photos",
            (len(paths), width),
            np.float32,
            shard_rows=step,
            settings=settings,
        )
        for number in range(target.n_pieces):
            _write_names(target, number, paths[slice(*shard_span(target, number))])
        if retry_failed:
            for number in target.done():
                if target.facts(number)["failures"]:
                    target.remove_mark(number)
        complete(target, executor, n_threads=n_threads, progress=progress)
    return open_features(folder)


def open_features(store: str | os.PathLike[str]) -> PhotoFeatures:
    """Open a complete store of `extract_features`.

    Parameters
    ----------
    store : path

    Returns
    -------
    PhotoFeatures

    Raises
    ------
    FileNotFoundError, ValueError
        If the folder holds no store, one of another kind, or one that is not complete.
    """
    found = Store.open(store)
    if found.kind != "photos":
        raise ValueError(f"{found.folder} must hold features of photos, got {found.kind}")
    rows = open_rows(store)
    photos: list[str] = []
    failures: dict[int, str] = {}
    for number in range(found.n_pieces):
        start, _ = shard_span(found, number)
        photos += _names(found, number)
        with reading(found.folder / ABOUT):
            for place, reason in found.facts(number)["failures"].items():
                failures[start + int(place)] = str(reason)
    return PhotoFeatures(rows, photos, failures)


def make(store: Store, number: int) -> Piece:
    """Run the network on the photos of a shard."""
    cnn = CNN(**store.settings["cnn"])
    if cnn.make_extractor().identity() != store.settings["identity"]:
        raise RuntimeError("workers must have the same network and version of ONNX Runtime")
    names = _names(store, number)
    features = np.zeros((len(names), int(store.settings["n_columns"])), np.float32)
    failures: dict[int, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableImagesWarning)
        try:
            found = cnn.transform(names, on_error="skip", n_threads=1)
            features[found.rows] = found.features
            failures = found.failures
        except UnreadableImagesError as error:  # none can be read
            failures = error.failures
    return Piece({shard_name(number): features}, {"failures": failures})


def need(store: Store) -> int:
    """Estimate the memory of a shard: the network, a photo of 16 megapixels, and the rows."""
    n_rows = min(int(store.settings["shard_rows"]), int(store.settings["n_rows"]))
    return _NETWORK_BYTES + _PHOTO_BYTES + 3 * 4 * n_rows * int(store.settings["n_columns"])


def _settings_of(cnn: CNN) -> dict[str, Any]:
    """Return the parameters of a network as values of JSON."""
    params = cnn.get_params()
    if not isinstance(params["network"], (str, os.PathLike)):
        raise TypeError(
            "cnn must have a network that workers can load by its name or path, got "
            f"{type(params['network']).__name__}"
        )
    if params["device"] not in ("cpu", "cpu:0"):
        raise ValueError(f"cnn must run on the CPU, got the device {params['device']!r}")
    if Path(params["network"]).suffix:
        params["network"] = os.fspath(Path(params["network"]).absolute())
    plain = {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in params.items()
    }
    return {"cnn": json.loads(json.dumps(plain))}


def _path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, got {type(value).__name__}")
    path = os.fspath(Path(os.fspath(value)).absolute())
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a name in UTF-8, got {path!r:.200}") from None
    return path


def _digest(paths: Sequence[str]) -> str:
    return digest(json.dumps(paths).encode())


def _write_names(store: Store, number: int, paths: Sequence[str]) -> None:
    path = store.folder / _names_file(number)
    text = json.dumps(paths, ensure_ascii=False, indent=0) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    make_folder(path.parent)
    with replacing(path, one_of_many=True, forced=True) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _names(store: Store, number: int) -> list[str]:
    path = store.folder / _names_file(number)
    start, stop = shard_span(store, number)
    with reading(path):
        names = json_value(read_text(path))
        if not isinstance(names, list) or len(names) != stop - start:
            raise ValueError(f"it must list {stop - start} photos")
    return [str(name) for name in names]


def _names_file(number: int) -> str:
    return f"photos/{number:06d}.json"
