r"""Kernel CCA of many photos and captions: landmark features, and one triangular factor.

All that CCA needs of the features of both views is the factor R of

.. math:: \big[\, 1 \;\; F_x \;\; F_y \,\big] = Q R

with a row for each pair of a caption and its photo. The column of ones centres the rest: R
without its first row and column is the factor of the centred features. Blocks of rows are
factorised alone. Factors are then combined in pairs of neighbours, again and again, as in a
tournament: the pairs, and with them the bits, do not depend on workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_choice, check_integer, check_real
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import Progress, check_stopped, one_blas_thread
from kernelcore.distributed.arrays import (
    Matrix,
    MatrixLike,
    Output,
    Task,
    array_digest,
    as_matrix,
    begin,
    check_complete,
    chunk_file,
    complete,
    kernel_name,
    one_thread_kernel,
    only_writer,
    open_zarr,
    read_part,
    spans,
)
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.kcca import LandmarkFeatures
from kernelcore.kcca.basis import FeatureCenterer, basis_of
from kernelcore.kcca.decompositions import thin_svd
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair
from kernelcore.kernels import histogram_intersection
from kernelcore.kernels.prepared import COUNTS

View: TypeAlias = Literal["images", "captions"]
Kernel: TypeAlias = Callable[..., Any]

_KIND = "kernel CCA over landmarks"
_VIEWS = ("images", "captions")
_BLOCK = 4096  # rows that are worked on at once: arrays of one shape give one result
_TASK_ROWS = 65_536  # a whole number of blocks


@dataclass(frozen=True, eq=False)
class LandmarkView:
    """One view of the model: landmarks, and what turns their features into projections.

    Attributes
    ----------
    landmarks : LandmarkFeatures
    means : ndarray of float64, shape (n_landmarks,)
        Means of the features in training.
    coefficients : ndarray of float64, shape (n_landmarks, n_components)
    """

    landmarks: LandmarkFeatures
    means: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]

    def project(self, rows: Array) -> Array:
        """Project rows, a block at a time."""
        parts = [
            (self.landmarks.transform(rows[block]) - self.means) @ self.coefficients
            for block in spans(len(rows), _BLOCK)
        ]
        return np.concatenate(parts).astype(self.landmarks.triangle_.dtype)

    def tensors(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {
            "rows": self.landmarks._items,
            "triangle": self.landmarks.triangle_,
            "means": self.means,
            "coefficients": self.coefficients,
        }

    @classmethod
    def from_tensors(cls, kernel: Kernel, tensors: Any) -> LandmarkView:
        """Return the view of the output of `tensors`; check that its parts fit."""
        means = check_tensor("means", tensors["means"], (None,), np.float64)
        m = len(means)
        rows = check_tensor(
            "rows", tensors["rows"], (m, None), (np.float32, np.float64, *COUNTS)
        )
        landmarks = LandmarkFeatures(kernel, n_landmarks=m, n_threads=1)
        landmarks.triangle_ = check_tensor("triangle", tensors["triangle"], (m, m))
        landmarks.landmarks_ = np.arange(m)
        landmarks.n_features_in_ = rows.shape[1]
        landmarks._items = rows
        weights = check_tensor("coefficients", tensors["coefficients"], (m, None), np.float64)
        if not m or not (landmarks.triangle_.diagonal() > 0).all():
            raise ValueError("triangle must have a positive diagonal")
        return cls(landmarks, means, weights)


@dataclass(frozen=True, eq=False)
class LandmarkKCCA:
    """Kernel CCA of photos and captions over landmarks.

    Attributes
    ----------
    images, captions : LandmarkView
        The two views.
    correlations : ndarray of float64, shape (n_components,)

    See Also
    --------
    fit_landmark_kcca : Learns one.
    embed : Projects rows on disk.
    """

    images: LandmarkView
    captions: LandmarkView
    correlations: npt.NDArray[np.float64]

    def embed_images(self, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project rows of photos in memory, shape (n, n_columns), into the joint space."""
        return self._embed(self.images, rows)

    def embed_captions(self, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project rows of captions in memory, shape (n, n_columns), into the joint space."""
        return self._embed(self.captions, rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one safetensors file, whole or not at all."""
        tensors: dict[str, Array] = {"correlations": self.correlations}
        kernels = {}
        for name in _VIEWS:
            view: LandmarkView = getattr(self, name)
            kernels[name] = kernel_name(view.landmarks.kernel)
            for key, array in view.tensors().items():
                tensors[f"{name}_{key}"] = array
        save_tensors(path, _KIND, tensors, {"kernels": kernels})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        kernels: tuple[Kernel, Kernel] = (histogram_intersection, histogram_intersection),
    ) -> LandmarkKCCA:
        """Read the file of `save`.

        Parameters
        ----------
        path : path
        kernels : (callable, callable), default histogram intersection
            The kernels of images and captions, as for `fit_landmark_kcca`: a file never
            chooses a function to be called.

        Raises
        ------
        FileNotFoundError
            If there is no file.
        ValueError
            If the file is damaged or was made with other kernels.
        """
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            names = metadata.exactly("kernels")["kernels"]
            views = []
            for name, kernel in zip(_VIEWS, kernels, strict=True):
                function = one_thread_kernel(kernel)
                given = kernel_name(function)
                if names[name] != given:
                    raise ValueError(f"kernels must be those of {names}, got {given}")
                own = {
                    key.removeprefix(f"{name}_"): array
                    for key, array in tensors.items()
                    if key.startswith(f"{name}_")
                }
                views.append(LandmarkView.from_tensors(function, own))
            n = len(views[0].coefficients.T)
            check_tensor("coefficients", views[1].coefficients, (None, n), np.float64)
            correlations = check_tensor(
                "correlations", tensors["correlations"], (n,), np.float64
            )
        return cls(views[0], views[1], correlations)

    def _embed(self, view: LandmarkView, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        matrix = as_real_array("rows", rows, ndim=2, keep=COUNTS)
        n_columns = view.landmarks.n_features_in_
        if not len(matrix) or matrix.shape[1] != n_columns:
            raise ValueError(f"rows must have {n_columns} columns, got shape {matrix.shape}")
        with one_blas_thread():
            return view.project(matrix)


def fit_landmark_kcca(
    images: MatrixLike,
    captions: MatrixLike,
    path: str | os.PathLike[str],
    *,
    kernels: tuple[Kernel, Kernel] = (histogram_intersection, histogram_intersection),
    caption_image: npt.ArrayLike | None = None,
    n_landmarks: int = 300,
    sample_rows: int = 20_000,
    n_components: int | None = None,
    regularization: Pair = 0.1,
    tolerance: float = 1e-6,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> LandmarkKCCA:
    """Learn a joint space of photos and captions that lie on disk.

    Parameters
    ----------
    images, captions : array_like of shape (n, n_columns), or path
        Rows of both views, as for `gram_to_zarr`.
    path : path
        Folder of a Zarr array, ``factors``, and of the model, ``model.safetensors``. A second
        call with the same arguments computes what is missing.
    kernels : (callable, callable), default histogram intersection
        Kernels of images and captions, as for `gram_to_zarr`.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    n_landmarks : int, default 300
        Largest number of landmarks of each view.
    sample_rows : int, default 20000
        Landmarks are chosen by partial Gram-Schmidt among so many rows of each view, which
        stand at equal distances in it. This happens in the process of the caller.
    n_components : int, optional
        Number of components; the default is all that the features allow.
    regularization : float or (float, float), default 0.1
        As for `kernelcore.kcca.KCCA`.
    tolerance : float, default 1e-6
        Share of the trace of each kernel that may be left out, of the landmarks and then of
        the centred features.
    client, n_threads, progress
        As for `gram_to_zarr`.

    Returns
    -------
    LandmarkKCCA

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, a kernel is zero or returns another shape, or the
        folder holds the result of another call.
    RuntimeError
        If a task failed three times, or another call is writing into the folder.

    See Also
    --------
    kernelcore.kcca.feature_basis : The same on one machine.
    embed : Projects rows on disk by the model.

    Notes
    -----
    Training pairs are all captions, each with its image. The result is the same, bit for bit,
    for every number of workers. It equals that of `KCCA` over `feature_basis` of the landmark
    features up to rounding and the signs of components. A call with another `regularization`
    or `n_components` repeats the last step only.

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
    most = check_integer("n_landmarks", n_landmarks, minimum=1)
    n_sampled = check_integer("sample_rows", sample_rows, minimum=1)
    if n_components is not None:
        check_integer("n_components", n_components, minimum=1)
    functions = [one_thread_kernel(kernel) for kernel in kernels]
    with only_writer(path) as folder:
        rows = [
            as_matrix(name, value, folder / "inputs")
            for name, value in zip(_VIEWS, (images, captions), strict=True)
        ]
        owner = as_caption_image(caption_image, (len(rows[0]), len(rows[1])))
        landmarks = [
            LandmarkFeatures(kernel, n_landmarks=most, tolerance=eta, n_threads=1).fit(
                one.read(np.unique(np.linspace(0, len(one) - 1, n_sampled).astype(np.intp)))
            )
            for one, kernel in zip(rows, functions, strict=True)
        ]
        about = {
            "kernels": [kernel_name(kernel) for kernel in kernels],
            "inputs": [one.digest() for one in rows],
            "caption_image": array_digest(owner),
            "landmarks": [array_digest(own.triangle_) for own in landmarks],
        }
        factors, parts = folder / "factors", spans(len(owner), _TASK_ROWS)
        width = 1 + sum(len(own.landmarks_) for own in landmarks)
        shape = len(parts), width, width
        begin(factors, Output(shape, (1, width, width), np.float64), about)
        views = list(zip(rows, landmarks, strict=True))
        tasks = [
            Task(
                f"factor {number} of {folder}",
                _write_factor,
                (views, owner[span], span.start, number, os.fspath(factors)),
                (chunk_file(factors, number, 0, 0),),
            )
            for number, span in enumerate(parts)
        ]
        complete(tasks, client, n_threads=n_threads, progress=progress, description="factors")
        with one_blas_thread():
            triangle = combined(
                read_part(factors, (slice(number, number + 1),))[0]
                for number in range(len(parts))
            )
            model = _solved(
                triangle,
                landmarks,
                n_pairs=len(owner),
                kappa=kappa,
                n_components=n_components,
                tolerance=eta,
            )
        model.save(folder / "model.safetensors")
    return model


def embed(
    model: LandmarkKCCA,
    view: View,
    rows: MatrixLike,
    path: str | os.PathLike[str],
    *,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Any:
    """Project rows on disk into the joint space of a model, and write the vectors.

    Parameters
    ----------
    model : LandmarkKCCA
        What `fit_landmark_kcca` returns, or `LandmarkKCCA.load`.
    view : {"images", "captions"}
        What the rows are.
    rows : array_like of shape (n_rows, n_columns), or path
        As for `fit_landmark_kcca`.
    path : path
        Folder of the Zarr array. A second call with the same arguments computes what is
        missing.
    client, n_threads, progress
        As for `gram_to_zarr`.

    Returns
    -------
    zarr.Array of shape (n_rows, n_components)
        The vectors, which `streamed_ranks` and `best_candidates` take.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `fit_landmark_kcca`.
    """
    if not isinstance(model, LandmarkKCCA):
        raise TypeError(f"model must be a LandmarkKCCA, got {type(model).__name__}")
    check_choice("view", view, _VIEWS)
    own: LandmarkView = getattr(model, view)
    with only_writer(path) as folder:
        matrix = as_matrix("rows", rows, folder / "inputs")
        n_columns = own.landmarks.n_features_in_
        if matrix.shape[1] != n_columns:
            raise ValueError(f"rows must have {n_columns} columns, got {matrix.shape[1]}")
        about = {
            "rows": matrix.digest(),
            "model": {name: array_digest(array) for name, array in own.tensors().items()},
        }
        k, step = len(model.correlations), min(_TASK_ROWS, len(matrix))
        output = Output((len(matrix), k), (step, k), own.landmarks.triangle_.dtype)
        begin(folder, output, about)
        tasks = [
            Task(
                f"rows {span.start} to {span.stop - 1} of {folder}",
                _write_vectors,
                (own, matrix, span, os.fspath(folder)),
                (chunk_file(folder, number, 0),),
            )
            for number, span in enumerate(spans(len(matrix), step))
        ]
        complete(tasks, client, n_threads=n_threads, progress=progress, description="vectors")
        found = open_zarr(folder)
        check_complete(found)
    return found


def _write_vectors(view: LandmarkView, rows: Matrix, span: slice, path: str) -> None:
    parts = []
    for block in spans(span.stop - span.start, _BLOCK):
        check_stopped()
        own = slice(span.start + block.start, span.start + block.stop)
        parts.append(view.project(rows.read(own)))
    open_zarr(path, "r+")[span] = np.concatenate(parts)


def _write_factor(
    views: list[tuple[Matrix, LandmarkFeatures]],
    owner: npt.NDArray[np.intp],
    start: int,
    number: int,
    path: str,
) -> None:
    """Compute the factor of some captions and their images."""

    def factors() -> Iterable[Array]:
        for block in spans(len(owner), _BLOCK):
            check_stopped()
            own, place = np.unique(owner[block], return_inverse=True)
            left = views[0][1].transform(views[0][0].read(own))[place]
            here = slice(start + block.start, start + block.stop)
            right = views[1][1].transform(views[1][0].read(here))
            yield _triangle(np.hstack([np.ones((len(right), 1)), left, right]))

    open_zarr(path, "r+")[number] = combined(factors())


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


def _solved(
    triangle: Array,
    landmarks: list[LandmarkFeatures],
    *,
    n_pairs: int,
    kappa: tuple[float, float],
    n_components: int | None,
    tolerance: float,
) -> LandmarkKCCA:
    """Solve CCA from the factor of the features of both views."""
    m = len(landmarks[0].landmarks_)
    means = triangle[0, 1:] / triangle[0, 0]
    parts = slice(0, m), slice(m, None)
    bases = []
    for name, part, own in zip(_VIEWS, parts, landmarks, strict=True):
        try:
            basis = basis_of(
                thin_svd(triangle[1:, 1:][:, part]),
                FeatureCenterer(means[part]),
                n_pairs,
                tolerance=tolerance,
                max_rank=None,
                given_as=own.triangle_.dtype,
            )
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        bases.append(basis)
    directions = KCCAFactorization(*bases).directions(
        regularization=kappa, n_components=n_components
    )
    views = [
        LandmarkView(own, means[part], basis.expansion[:, : len(weights)] @ weights)
        for own, part, basis, weights in zip(
            landmarks, parts, bases, directions[1:], strict=True
        )
    ]
    return LandmarkKCCA(views[0], views[1], directions.correlations)
