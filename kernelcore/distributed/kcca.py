r"""Kernel CCA of many photos and captions: landmark features, and one triangular factor.

All that CCA needs of the features of both views is the factor R of

.. math:: \big[\, 1 \;\; F_x \;\; F_y \,\big] = Q R

with a row for each pair of a caption and its photo. The column of ones centres the rest: R
without its first row and column is the factor of the centred features. Parts of the rows are
factorised alone, and their factors are combined one after another: neither the parts nor the
order, and with them the bits, depend on workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_choice, check_integer, check_real
from kernelcore._estimator import params_to_json
from kernelcore._store import check_tensor, load_tensors, reading, save_tensors
from kernelcore._threads import Progress, check_stopped, one_blas_thread
from kernelcore.distributed.arrays import (
    Matrix,
    MatrixLike,
    Output,
    array_digest,
    kernel_name,
    one_thread_kernel,
    open_zarr,
    spans,
    writing,
)
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.kcca import LandmarkFeatures
from kernelcore.kcca.basis import KernelBasis, basis_of
from kernelcore.kcca.decompositions import thin_svd
from kernelcore.kcca.kcca import KCCA, KCCAFactorization, Pair, as_pair
from kernelcore.kernels import histogram_intersection
from kernelcore.kernels.gram import FeatureCenterer
from kernelcore.kernels.prepared import COUNTS

View: TypeAlias = Literal["images", "captions"]
Kernel: TypeAlias = Callable[..., Any]

_KIND = "kernel CCA over landmarks"
_VIEWS = ("images", "captions")
_BLOCK = 4096  # rows that are worked on at once: arrays of one shape give one result
_TASK_ROWS = 65_536  # a whole number of blocks


@dataclass(frozen=True, eq=False)
class LandmarkKCCA:
    """Kernel CCA of photos and captions over landmarks.

    Attributes
    ----------
    images, captions : LandmarkFeatures
        The landmarks of each view.
    kcca : KCCA
        Kernel CCA of their features.

    See Also
    --------
    fit_landmark_kcca : Learns one.
    embed : Projects rows on disk.
    """

    images: LandmarkFeatures
    captions: LandmarkFeatures
    kcca: KCCA

    def embed(self, view: View, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project rows of a view in memory, shape (n, n_columns), into the joint space."""
        matrix = as_real_array("rows", rows, ndim=2, keep=COUNTS)
        landmarks = self.landmarks(view, matrix)
        project = self.kcca.transform_x if view == "images" else self.kcca.transform_y
        parts = []
        with one_blas_thread():
            for block in spans(len(matrix), _BLOCK):
                check_stopped()
                parts.append(project(landmarks.transform(matrix[block])))
        return np.concatenate(parts).astype(landmarks.triangle_.dtype)

    def landmarks(self, view: View, rows: Array | Matrix) -> LandmarkFeatures:
        """Return the landmarks of a view, if rows have the columns of its training rows."""
        found: LandmarkFeatures = getattr(self, check_choice("view", view, _VIEWS))
        if not len(rows) or rows.shape[1] != found.n_features_in_:
            raise ValueError(
                f"rows must have {found.n_features_in_} columns, got shape {rows.shape}"
            )
        return found

    def tensors(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {
            "images_rows": self.images._items,
            "images_triangle": self.images.triangle_,
            "captions_rows": self.captions._items,
            "captions_triangle": self.captions.triangle_,
            **self.kcca.tensors(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one safetensors file, whole or not at all."""
        about = {
            "kernels": [kernel_name(view.kernel) for view in (self.images, self.captions)],
            "params": params_to_json(self.kcca.get_params()),
        }
        save_tensors(path, _KIND, self.tensors(), about)

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
            about = metadata.exactly("kernels", "params")
            functions = [one_thread_kernel(kernel) for kernel in kernels]
            given = [kernel_name(function) for function in functions]
            if about["kernels"] != given:
                raise ValueError(f"kernels must be {about['kernels']}, got {given}")
            parts = dict(tensors)
            images, captions = (
                _landmarks(view, function, parts)
                for view, function in zip(_VIEWS, functions, strict=True)
            )
            kcca = KCCA.from_json(about["params"]).restore(parts)
            for name, view in (("x_feature_means", images), ("y_feature_means", captions)):
                check_tensor(name, parts[name], (len(view.triangle_),))
        return cls(images, captions, kcca)


def _landmarks(view: str, kernel: Kernel, parts: dict[str, Array]) -> LandmarkFeatures:
    """Take the landmarks of a view out of the arrays of a model; check that they fit."""
    name = f"{view}_rows"
    rows = check_tensor(name, parts.pop(name), (None, None), (np.float32, np.float64, *COUNTS))
    name, m = f"{view}_triangle", len(rows)
    triangle = check_tensor(name, parts.pop(name), (m, m))
    if not m or not (triangle.diagonal() > 0).all():
        raise ValueError(f"{name} must have a positive diagonal")
    landmarks = LandmarkFeatures(kernel, n_landmarks=m, n_threads=1)
    landmarks._items, landmarks.triangle_ = rows, triangle
    landmarks.landmarks_, landmarks.n_features_in_ = np.arange(m), rows.shape[1]
    return landmarks


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
    >>> model.embed("images", X[:5]).shape
    (5, 2)
    """
    eta = check_real("tolerance", tolerance, minimum=0.0, maximum=1.0)
    kappa = as_pair("regularization", regularization, minimum=0.0)
    most = check_integer("n_landmarks", n_landmarks, minimum=1)
    n_sampled = check_integer("sample_rows", sample_rows, minimum=1)
    if n_components is not None:
        check_integer("n_components", n_components, minimum=1)
    functions = [one_thread_kernel(kernel) for kernel in kernels]
    with writing(path, client, n_threads, progress) as folder:
        rows = [folder.matrix("images", images), folder.matrix("captions", captions)]
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
        parts = spans(len(owner), _TASK_ROWS)
        width = 1 + sum(len(own.landmarks_) for own in landmarks)
        shape = len(parts), width, width
        factors = folder.begin("factors", shape, (1, *shape[1:]), np.float64, about)
        calls = [(rows, landmarks, owner[span], span.start, k) for k, span in enumerate(parts)]
        folder.fill("factors", [factors], _write_factor, calls)
        with one_blas_thread():
            triangle = triangle_of(factors.read(slice(k, k + 1))[0] for k in range(len(parts)))
            bases = _bases(triangle, landmarks, len(owner), eta)
            solved = KCCA.from_factorization(
                KCCAFactorization(*bases), n_components, regularization=kappa
            )
        model = LandmarkKCCA(landmarks[0], landmarks[1], solved)
        model.save(folder.path / "model.safetensors")
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
    with writing(path, client, n_threads, progress) as folder:
        matrix = folder.matrix("rows", rows)
        dtype = model.landmarks(view, matrix).triangle_.dtype
        k, step = len(model.kcca.correlations_), min(_TASK_ROWS, len(matrix))
        digests = [array_digest(array) for array in model.tensors().values()]
        about = {"rows": matrix.digest(), "view": view, "model": digests}
        vectors = folder.begin("", (len(matrix), k), (step, k), dtype, about)
        calls = [(model, view, matrix, span) for span in spans(len(matrix), step)]
        folder.fill("chunks of rows", [vectors], _write_vectors, calls)
        return open_zarr(vectors.path)


def _write_vectors(
    vectors: Output, model: LandmarkKCCA, view: View, rows: Matrix, span: slice
) -> None:
    """Project some rows, read a block at a time."""
    blocks = spans(span.stop, _BLOCK, start=span.start)
    vectors.write(span, np.concatenate([model.embed(view, rows.read(b)) for b in blocks]))


def _write_factor(  # noqa: PLR0917
    output: Output,
    rows: list[Matrix],
    landmarks: list[LandmarkFeatures],
    owner: npt.NDArray[np.intp],
    start: int,
    number: int,
) -> None:
    """Compute the factor of some captions and their images."""

    def blocks() -> Iterator[Array]:
        for block in spans(len(owner), _BLOCK):
            check_stopped()
            own, place = np.unique(owner[block], return_inverse=True)
            left = landmarks[0].transform(rows[0].read(own))[place]
            here = slice(start + block.start, start + block.stop)
            right = landmarks[1].transform(rows[1].read(here))
            yield np.hstack([np.ones((len(right), 1)), left, right])

    output.write(number, triangle_of(blocks()))


def triangle_of(blocks: Iterable[Array]) -> Array:
    """Return R of the QR decomposition of blocks below each other."""
    triangle: Any = None
    for block in blocks:
        above = np.zeros((block.shape[1], block.shape[1])) if triangle is None else triangle
        triangle = np.linalg.qr(np.vstack([above, block]), mode="r")
    return np.asarray(triangle)


def _bases(
    triangle: Array, landmarks: list[LandmarkFeatures], n_pairs: int, tolerance: float
) -> Iterator[KernelBasis]:
    """Give the basis of the centred features of each view, from the factor of both."""
    m = len(landmarks[0].landmarks_)
    means = triangle[0, 1:] / triangle[0, 0]
    for name, part, own in zip(_VIEWS, (slice(m), slice(m, None)), landmarks, strict=True):
        try:
            yield basis_of(
                thin_svd(triangle[1:, 1:][:, part]),
                FeatureCenterer(means[part]),
                n_pairs,
                tolerance=tolerance,
                max_rank=None,
                given_as=own.triangle_.dtype,
            )
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
