"""Landmark features of rows on disk: any kernel as the product of short vectors."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer, check_real
from kernelcore._store import check_tensor, digest, load_tensors, reading, tensor_bytes
from kernelcore._threads import Progress
from kernelcore.distributed.functions import (
    KernelLike,
    check_stored_kernel,
    describe_kernel,
    kernel_of,
)
from kernelcore.distributed.pivots import choose_pivots
from kernelcore.distributed.rows import (
    BLOCK,
    SHARD_ROWS,
    RowFiles,
    RowsLike,
    as_row_files,
    begin_rows,
    check_shard_rows,
    open_rows,
    shard_name,
    shard_span,
)
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.kcca.gram_schmidt import features_of
from kernelcore.kernels.prepared import COUNTS

_FILE = "landmarks.safetensors"
_CHOICE = "choice of landmarks"
_KIND = "landmarks of a kernel"
_TENSORS = ("positions", "rows", "triangle")


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Chosen rows and their triangle: everything that features of new rows need.

    Attributes
    ----------
    kernel : dict
        Module, name and options of the kernel.
    positions : ndarray of intp, shape (n_landmarks,)
        Places of the landmarks among the rows that they were chosen from.
    rows : ndarray of shape (n_landmarks, n_columns)
        The landmarks.
    triangle : ndarray of shape (n_landmarks, n_landmarks)
        L, lower triangular: the kernel of the landmarks is L L'.
    """

    kernel: dict[str, Any]
    positions: npt.NDArray[np.intp]
    rows: Array
    triangle: Array

    def transform(self, rows: Array) -> Array:
        """Return the features of rows, a block at a time, on one thread.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_landmarks)
        """
        kernel = kernel_of(self.kernel)
        features = np.empty((len(rows), len(self.positions)), self.triangle.dtype)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            values = kernel(block, self.rows).astype(self.triangle.dtype, copy=False)
            features_of(self.triangle, values, out=features[start : start + BLOCK])
        return features

    def tensors(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in _TENSORS}

    @classmethod
    def from_tensors(
        cls, kernel: Any, tensors: Any, given: Mapping[str, Any] | None = None
    ) -> Landmarks:
        """Return the landmarks of the output of `tensors`; check that its parts fit."""
        triangle = check_tensor("triangle", tensors["triangle"], (None, None))
        m = len(triangle)
        check_tensor("triangle", triangle, (m, m))
        rows = tensors["rows"]
        check_tensor("rows", rows, (m, None), (np.float32, np.float64, *COUNTS))
        positions = check_tensor("positions", tensors["positions"], (m,), np.intp)
        if not m or not (triangle.diagonal() > 0).all():
            raise ValueError("triangle must have a positive diagonal")
        return cls(check_stored_kernel(kernel, given), positions, rows, triangle)

    @property
    def identity(self) -> str:
        """Digest of everything that features depend on."""
        parts = (self.rows, self.triangle)
        return digest(
            json.dumps(self.kernel, sort_keys=True).encode(),
            *(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data for part in parts),
        )


def landmark_features(
    kernel: KernelLike,
    X: RowsLike,
    store: str | os.PathLike[str],
    *,
    n_landmarks: int = 1000,
    tolerance: float = 0.0,
    shard_rows: int = SHARD_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> RowFiles:
    r"""Choose landmarks among rows on disk, and write the features of all rows.

    .. math:: \phi(x) = L^{-1} \big(k(x, z_1), \dots, k(x, z_m)\big)^\top, \qquad
        \langle \phi(x), \phi(y) \rangle \approx k(x, y)

    Parameters
    ----------
    kernel : callable or str
        As for `gram_to_store`.
    X : array_like of shape (n_rows, n_columns), path or list of paths
        As for `gram_to_store`.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    n_landmarks : int, default 1000
        Largest number m of landmarks, and of features.
    tolerance : float, default 0.0
        Stop choosing landmarks once no more than this share of the kernel's trace is left out.
    shard_rows : int, default 65536
        Rows of a file of features, and of a task: a power of two, at least 4096.
    executor : distributed.Client or concurrent.futures.Executor, optional
        Who computes; by default threads of this process.
    n_threads : int, optional
        Threads without an executor; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws bars (extra ``cli``); a callable is called with (pieces done, pieces).

    Returns
    -------
    RowFiles
        The features. `load_landmarks` reads the landmarks.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, the kernel cannot be imported, is negative for a row
        with itself or returns another shape, or the folder holds another store.
    PiecesFailedError
        If a part of the rows failed three times.
    ClusterLostError
        If the workers are gone.

    See Also
    --------
    kernelcore.kcca.LandmarkFeatures : The same on one machine, for any samples.

    Notes
    -----
    Landmarks are those of `LandmarkFeatures`, unless two residuals differ by no more than
    rounding. They are chosen in rounds, each of which is one pass over the rows; a round has at
    most twice as many landmarks as the last one, and at most 64. The result is the same, bit
    for bit, for every executor, number of workers and `shard_rows`. Takes O(n m^2) time,
    and disk space for n m numbers twice, half of which is given back at the end.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import landmark_features
    >>> X = np.random.default_rng(0).random((500, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     features = landmark_features("histogram_intersection", X, folder, n_landmarks=50)
    ...     features.shape
    (500, 50)
    """
    about = describe_kernel("kernel", kernel)
    most = check_integer("n_landmarks", n_landmarks, minimum=1)
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    step = check_shard_rows(shard_rows)
    folder = Path(store).absolute()
    run = partial(complete, executor=executor, n_threads=n_threads, progress=progress)
    with working_on(folder):
        rows = as_row_files("X", X, folder / "X", shard_rows=step)
        inputs = {"X": rows.to_json()}
        settings = {"kernel": about, "n_landmarks": most, "tolerance": eta}
        choice = Store.begin(folder, _CHOICE, 1, settings, inputs)
        landmarks = _chosen(choice, rows, step, run)
        target = begin_rows(
            folder / "features",
            "landmark features",
            (len(rows), len(landmarks.positions)),
            landmarks.triangle.dtype,
            shard_rows=step,
            settings={"landmarks": landmarks.identity, "kernel": about},
            inputs=inputs,
        )
        run(target)
    return open_rows(target.folder)


def load_landmarks(
    store: str | os.PathLike[str], *, kernel: KernelLike | None = None
) -> Landmarks:
    """Read the landmarks that `landmark_features` chose.

    Parameters
    ----------
    store : path
        Folder that it wrote into.
    kernel : callable or str, optional
        Their kernel, as for `landmark_features`. It may be omitted for kernels of this package:
        a file never chooses another function to be called.

    Returns
    -------
    Landmarks

    Raises
    ------
    FileNotFoundError, ValueError
        If there are none, the file is damaged, or it was made with another kernel.
    """
    given = None if kernel is None else describe_kernel("kernel", kernel)
    return _read(Path(store), given)


def _read(folder: Path, given: Mapping[str, Any] | None) -> Landmarks:
    path = folder / _FILE
    with reading(path):
        tensors, metadata = load_tensors(path, _KIND)
        found = Landmarks.from_tensors(metadata["kernel"], tensors, given)
        tensors.exactly(*_TENSORS)
        return found


def make(store: Store, number: int) -> Piece:
    """Compute the features of a shard."""
    landmarks = _read(store.folder.parent, store.settings["kernel"])
    if landmarks.identity != store.settings["landmarks"]:
        raise ValueError(f"{store.folder.parent} holds other landmarks than the features have")
    X = RowFiles.from_json(store.inputs["X"])
    parts = [landmarks.transform(rows) for _, rows in X.blocks(*shard_span(store, number))]
    return Piece({shard_name(number): np.concatenate(parts)})


def need(store: Store) -> int:
    """Estimate the memory of a shard: its features twice, landmarks, and one block of rows."""
    X = RowFiles.from_json(store.inputs["X"])
    m = int(store.settings["n_columns"])
    n_rows = min(int(store.settings["shard_rows"]), int(store.settings["n_rows"]))
    itemsize = int(np.dtype(str(store.settings["dtype"])).itemsize)
    block = min(BLOCK, n_rows) * (3 * X.row_bytes + 3 * 8 * m)
    return 2 * n_rows * m * itemsize + block + 3 * m * (X.row_bytes + 8 * m)


def _chosen(store: Store, rows: RowFiles, step: int, run: Any) -> Landmarks:
    """Return the landmarks of a store; choose them if they are not there."""
    settings, rounds = store.settings, store.folder / "rounds"
    if store.is_done(0):
        found = _read(store.folder, settings["kernel"])
    else:
        chosen = choose_pivots(
            rows,
            settings["kernel"],
            rounds,
            n_pivots=settings["n_landmarks"],
            tolerance=settings["tolerance"],
            part_rows=step,
            run=run,
        )
        if not len(chosen.positions):
            raise ValueError(
                "kernel must not be zero on all rows of X, and tolerance must be below 1, got "
                f"no landmark for tolerance {settings['tolerance']}"
            )
        found = Landmarks(settings["kernel"], chosen.positions, chosen.rows, chosen.triangle)
        content = tensor_bytes(_KIND, found.tensors(), {"kernel": found.kernel})
        store.put(0, Piece({_FILE: np.frombuffer(content, np.uint8)}))
    shutil.rmtree(rounds, ignore_errors=True)
    return found
