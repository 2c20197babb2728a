r"""Kernel CCA of many photos and captions: landmark features, and one triangular factor.

All that CCA needs of the features of both views is the factor R of

.. math:: \big[\, 1 \;\; F_x \;\; F_y \,\big] = Q R

with a row for each pair of a caption and its photo. The column of ones centres the rest: R
without its first row and column is the factor of the centred features. Blocks of `BLOCK` rows
are factorised alone. Factors are then combined in pairs of neighbours, again and again, as in
a tournament. Shards hold a power of two of blocks, so the pairs, and with them the bits, do not
depend on shards or workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer, check_real
from kernelcore._store import read_npy
from kernelcore._threads import Progress, one_blas_thread
from kernelcore.distributed.functions import KernelLike
from kernelcore.distributed.landmark_model import (
    VIEWS,
    LandmarkKCCA,
    LandmarkView,
    View,
    described_kernels,
)
from kernelcore.distributed.landmarks import Landmarks, landmark_features, load_landmarks
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
    write_rows,
)
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.kcca.basis import FeatureCenterer, basis_of
from kernelcore.kcca.decompositions import thin_svd
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair

MODEL_FILE = "model.safetensors"


def fit_landmark_kcca(
    images: RowsLike,
    captions: RowsLike,
    store: str | os.PathLike[str],
    *,
    image_kernel: KernelLike = "histogram_intersection",
    caption_kernel: KernelLike = "histogram_intersection",
    caption_image: npt.ArrayLike | None = None,
    n_landmarks: int = 300,
    n_components: int | None = None,
    regularization: Pair = 0.1,
    tolerance: float = 1e-6,
    shard_rows: int = SHARD_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> LandmarkKCCA:
    """Learn a joint space of photos and captions that lie on disk.

    Parameters
    ----------
    images, captions : array_like of shape (n, n_columns), path or list of paths
        Rows of both views: stores of rows, ``.npy`` files, or arrays, which are written into
        the store first.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    image_kernel, caption_kernel : callable or str
        Kernels of the views, as for `gram_to_store`.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    n_landmarks : int, default 300
        Largest number of landmarks of each view.
    n_components : int, optional
        Number of components; the default is all that the features allow.
    regularization : float or (float, float), default 0.1
        As for `kernelcore.kcca.KCCA`.
    tolerance : float, default 1e-6
        Share of the trace of each kernel that may be left out, of the landmarks and then of
        the centred features.
    shard_rows : int, default 65536
        Rows of a task: a power of two, at least 4096.
    executor : distributed.Client or concurrent.futures.Executor, optional
        Who computes; by default threads of this process.
    n_threads : int, optional
        Threads without an executor; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws bars (extra ``cli``); a callable is called with (pieces done, pieces).

    Returns
    -------
    LandmarkKCCA
        It is in the store, too: ``model.safetensors``.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range or the folder holds another store, or a kernel cannot be
        imported, is negative for a row with itself or returns another shape.
    PiecesFailedError
        If a piece failed three times.
    ClusterLostError
        If the workers are gone.

    See Also
    --------
    kernelcore.kcca.feature_basis : The same on one machine.
    embed : Projects rows on disk by the model.

    Notes
    -----
    Training pairs are all captions, each with its image. The result is the same, bit for bit,
    for every executor, number of workers and `shard_rows`. It equals that of `KCCA` over
    `feature_basis` of the landmark features up to rounding and the signs of components. A call
    with another `regularization` or `n_components` repeats the last step only.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kernelcore.distributed import fit_landmark_kcca
    >>> X = np.random.default_rng(0).random((300, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = fit_landmark_kcca(X, X[:, ::-1], folder, n_landmarks=20, n_components=2)
    >>> model.embed_images(X[:5]).shape
    (5, 2)
    """
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    kappa = as_pair("regularization", regularization, minimum=0.0)
    step = check_shard_rows(shard_rows)
    if n_components is not None:
        check_integer("n_components", n_components, minimum=1)
    folder = Path(store).absolute()
    run = partial(complete, executor=executor, n_threads=n_threads, progress=progress)
    with working_on(folder):
        rows = {
            name: as_row_files(name, value, folder / name / "X", shard_rows=step)
            for name, value in zip(VIEWS, (images, captions), strict=True)
        }
        owner = as_caption_image(caption_image, (len(rows["images"]), len(rows["captions"])))
        features = {
            name: landmark_features(
                kernel,
                rows[name],
                folder / name,
                n_landmarks=n_landmarks,
                tolerance=eta,
                shard_rows=step,
                executor=executor,
                n_threads=n_threads,
                progress=progress,
            )
            for name, kernel in zip(VIEWS, (image_kernel, caption_kernel), strict=True)
        }
        inputs = {name: one.to_json() for name, one in features.items()}
        owners = write_rows(folder / "owner", owner[:, np.newaxis].astype(np.float64))
        target = Store.begin(
            folder / "triangles",
            "triangles",
            -(-len(owner) // step),
            {"part_rows": step},
            inputs | {"owner": owners.to_json()},
        )
        run(target)
        with one_blas_thread():
            triangle = combined(_triangles(target))
            landmarks = [
                load_landmarks(folder / name, kernel=kernel)
                for name, kernel in zip(VIEWS, (image_kernel, caption_kernel), strict=True)
            ]
            model = _solved(
                triangle,
                landmarks,
                n_pairs=len(owner),
                kappa=kappa,
                n_components=n_components,
                tolerance=eta,
            )
        model.save(folder / MODEL_FILE)
    return model


def embed(
    model: str | os.PathLike[str],
    view: View,
    rows: RowsLike,
    store: str | os.PathLike[str],
    *,
    kernels: Mapping[str, KernelLike] | None = None,
    shard_rows: int = SHARD_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> RowFiles:
    """Project rows on disk into the joint space of a model, and write the vectors.

    Parameters
    ----------
    model : path
        Store of `fit_landmark_kcca`, or a file of `LandmarkKCCA.save`, that workers can read.
    view : {"images", "captions"}
        What the rows are.
    rows : array_like of shape (n_rows, n_columns), path or list of paths
        As for `fit_landmark_kcca`.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    kernels : dict of str to callable or str, optional
        The kernels of the model, as for `LandmarkKCCA.load`.
    shard_rows : int, default 65536
        Rows of a file, and of a task: a power of two, at least 4096.
    executor, n_threads, progress
        As in `fit_landmark_kcca`.

    Returns
    -------
    RowFiles
        The vectors, which `streamed_ranks` and `best_candidates` take.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the folder holds another store.
    FileNotFoundError
        If there is no model.
    PiecesFailedError
        If a shard failed three times.
    ClusterLostError
        If the workers are gone.
    """
    check_choice("view", view, VIEWS)
    step = check_shard_rows(shard_rows)
    path = Path(model).absolute()
    path = path / MODEL_FILE if path.is_dir() else path
    given = described_kernels("kernels", kernels)
    learned = LandmarkKCCA.read(path, given)
    folder = Path(store).absolute()
    with working_on(folder):
        files = as_row_files("rows", rows, folder / "X", shard_rows=step)
        n_columns = learned.view(view).landmarks.rows.shape[1]
        if files.n_columns != n_columns:
            raise ValueError(f"rows must have {n_columns} columns, got {files.n_columns}")
        target = begin_rows(
            folder,
            "embeddings",
            (len(files), len(learned.correlations)),
            learned.view(view).landmarks.triangle.dtype,
            shard_rows=step,
            settings={"view": view, "model": learned.identity, "kernels": given},
            inputs={"rows": files.to_json(), "model": {"path": str(path), "digest": ""}},
        )
        complete(target, executor, n_threads=n_threads, progress=progress)
    return open_rows(folder)


def make(store: Store, number: int) -> Piece:
    """Compute the factor of a part of the pairs, or the projections of a shard."""
    if store.kind == "embeddings":
        learned = LandmarkKCCA.read(store.inputs["model"]["path"], store.settings["kernels"])
        if learned.identity != store.settings["model"]:
            raise ValueError(f"{store.inputs['model']['path']} holds another model")
        rows = RowFiles.from_json(store.inputs["rows"])
        view = learned.view(store.settings["view"])
        parts = [view.transform(block) for _, block in rows.blocks(*shard_span(store, number))]
        return Piece({shard_name(number): np.concatenate(parts)})
    images, captions, owner = (
        RowFiles.from_json(store.inputs[name]) for name in (*VIEWS, "owner")
    )
    start = number * int(store.settings["part_rows"])
    stop = min(start + int(store.settings["part_rows"]), len(captions))

    def blocks() -> Iterator[Array]:
        for span, right in captions.blocks(start, stop):
            own = owner.read(span.start, span.stop)[:, 0].astype(np.intp)
            left = images.take(own)
            yield _triangle(np.hstack([np.ones((len(own), 1)), left, right]))

    return Piece({_triangle_name(number): combined(blocks())})


def need(store: Store) -> int:
    """Estimate the memory of a piece."""
    if store.kind == "embeddings":
        rows = RowFiles.from_json(store.inputs["rows"])
        width = int(store.settings["n_columns"])
        n_rows = min(int(store.settings["shard_rows"]), int(store.settings["n_rows"]))
        size = Path(store.inputs["model"]["path"]).stat().st_size
        m = int((size / 8) ** 0.5)  # landmarks, at most: their triangles are in the file
        return 2 * size + BLOCK * (3 * rows.row_bytes + 24 * m) + 2 * 8 * n_rows * width
    left, right, owner = (RowFiles.from_json(store.inputs[name]) for name in (*VIEWS, "owner"))
    width = 1 + left.n_columns + right.n_columns
    depth = (-(-len(owner) // BLOCK)).bit_length()
    block = min(BLOCK, len(owner))
    return 8 * (5 * block * width + (depth + 6) * width * width)


def combined(triangles: Iterable[Array]) -> Array:
    """Combine the factors of neighbours in pairs, then those of pairs, to the last one.

    The pairs depend on the number of factors alone. At most one factor for each power of two
    is in memory.
    """
    waiting: list[tuple[int, Array]] = []  # level and factor, levels descending
    for triangle in triangles:
        level, whole = 0, triangle
        while waiting and waiting[-1][0] == level:
            whole = _triangle(np.vstack([waiting.pop()[1], whole]))
            level += 1
        waiting.append((level, whole))
    while len(waiting) > 1:  # those without a neighbour of their size
        right, left = waiting.pop()[1], waiting.pop()[1]
        waiting.append((0, _triangle(np.vstack([left, right]))))
    return waiting[0][1]


def _triangle(rows: Array) -> Array:
    """Return R of the rows; fewer rows than columns are filled with zeros."""
    n_columns = rows.shape[1]
    if len(rows) < n_columns:
        rows = np.vstack([rows, np.zeros((n_columns - len(rows), n_columns))])
    factor: Any = np.linalg.qr(rows, mode="r")  # whose type depends on the mode
    return np.asarray(factor)


def _triangles(store: Store) -> Iterator[Array]:
    for number in range(store.n_pieces):
        yield read_npy(store.folder / _triangle_name(number))


def _triangle_name(number: int) -> str:
    return f"factors/{number:06d}.npy"


def _solved(
    triangle: Array,
    landmarks: list[Landmarks],
    *,
    n_pairs: int,
    kappa: tuple[float, float],
    n_components: int | None,
    tolerance: float,
) -> LandmarkKCCA:
    """Solve CCA from the factor of the features of both views."""
    m = len(landmarks[0].positions)
    means = triangle[0, 1:] / triangle[0, 0]
    spans = (slice(0, m), slice(m, None))
    bases = []
    for name, span, own in zip(VIEWS, spans, landmarks, strict=True):
        try:
            basis = basis_of(
                thin_svd(triangle[1:, 1:][:, span]),
                FeatureCenterer(means[span]),
                n_pairs,
                tolerance=tolerance,
                max_rank=None,
                given_as=own.triangle.dtype,
            )
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        bases.append(basis)
    factorization = KCCAFactorization(*bases)
    directions = factorization.directions(regularization=kappa, n_components=n_components)
    views = [
        LandmarkView(own, means[span], basis.expansion[:, : len(weights)] @ weights)
        for own, span, basis, weights in zip(
            landmarks, spans, bases, directions[1:], strict=True
        )
    ]
    return LandmarkKCCA(views[0], views[1], directions.correlations)
