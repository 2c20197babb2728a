"""The model of kernel CCA over landmarks: two views that project rows into a joint space."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_choice
from kernelcore._store import check_tensor, digest, load_tensors, reading, save_tensors
from kernelcore._threads import one_blas_thread
from kernelcore.distributed.functions import KernelLike, describe_kernel
from kernelcore.distributed.landmarks import Landmarks
from kernelcore.distributed.rows import BLOCK
from kernelcore.kernels.prepared import COUNTS

_KIND = "kernel CCA over landmarks"
VIEWS = ("images", "captions")
View: TypeAlias = Literal["images", "captions"]


def described_kernels(
    name: str, kernels: Mapping[str, KernelLike] | None
) -> dict[str, dict[str, Any]]:
    """Describe the kernels of views; see `describe_kernel`."""
    for view in kernels or {}:
        check_choice(f"each key of {name}", view, VIEWS)
    return {
        view: describe_kernel(f"{name}[{view!r}]", kernel)
        for view, kernel in (kernels or {}).items()
    }


@dataclass(frozen=True, eq=False)
class LandmarkView:
    """One view of the model: landmarks, and what turns their features into projections.

    Attributes
    ----------
    landmarks : Landmarks
    means : ndarray of float64, shape (n_landmarks,)
        Means of the features in training.
    coefficients : ndarray of float64, shape (n_landmarks, n_components)
    """

    landmarks: Landmarks
    means: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]

    def transform(self, rows: Array) -> Array:
        """Project rows, a block at a time."""
        parts = [
            (self.landmarks.transform(rows[k : k + BLOCK]) - self.means) @ self.coefficients
            for k in range(0, len(rows), BLOCK)
        ]
        return np.concatenate(parts).astype(self.landmarks.triangle.dtype)


@dataclass(frozen=True, eq=False)
class LandmarkKCCA:
    """Kernel CCA of photos and captions over landmarks.

    Attributes
    ----------
    images, captions : LandmarkView
        The two views.
    correlations : ndarray of float64, shape (n_components,)
        Regularised canonical correlations, descending.
    """

    images: LandmarkView
    captions: LandmarkView
    correlations: npt.NDArray[np.float64]

    def embed_images(self, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project rows of photos into the joint space.

        Parameters
        ----------
        rows : array_like of shape (n_images, n_columns)
            Rows as in training.

        Returns
        -------
        ndarray of shape (n_images, n_components)
        """
        return self._embed("images", rows)

    def embed_captions(self, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Project rows of captions into the joint space.

        Parameters
        ----------
        rows : array_like of shape (n_captions, n_columns)
            Rows as in training.

        Returns
        -------
        ndarray of shape (n_captions, n_components)
        """
        return self._embed("captions", rows)

    def view(self, name: str) -> LandmarkView:
        """Return the view ``"images"`` or ``"captions"``."""
        return self.images if name == "images" else self.captions

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one safetensors file, whole or not at all."""
        tensors: dict[str, Array] = {"correlations": self.correlations}
        for name in VIEWS:
            view = self.view(name)
            own = {"means": view.means, "coefficients": view.coefficients}
            for key, array in (view.landmarks.tensors() | own).items():
                tensors[f"{name}_{key}"] = array
        kernels = {name: self.view(name).landmarks.kernel for name in VIEWS}
        save_tensors(path, _KIND, tensors, {"kernels": kernels})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        kernels: Mapping[str, KernelLike] | None = None,
    ) -> LandmarkKCCA:
        """Read the file of `save`.

        Parameters
        ----------
        path : path
        kernels : dict of str to callable or str, optional
            The kernels of ``"images"`` and ``"captions"``, as for `fit_landmark_kcca`. Kernels
            of this package may be omitted: a file never chooses another function to be called.

        Raises
        ------
        FileNotFoundError
            If there is no file.
        ValueError
            If the file is damaged or was made with other kernels.
        """
        return cls.read(path, described_kernels("kernels", kernels))

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], given: Mapping[str, Mapping[str, Any]]
    ) -> LandmarkKCCA:
        """Read the file of `save`, with kernels as `describe_kernel` describes them."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            kernels = metadata.exactly("kernels")["kernels"]
            correlations = check_tensor(
                "correlations", tensors["correlations"], (None,), np.float64
            )
            views = []
            for name in VIEWS:
                own = {
                    key.removeprefix(f"{name}_"): array
                    for key, array in tensors.items()
                    if key.startswith(f"{name}_")
                }
                landmarks = Landmarks.from_tensors(kernels[name], own, given.get(name))
                m = len(landmarks.triangle)
                means = check_tensor("means", own["means"], (m,), np.float64)
                shape = (m, len(correlations))
                weights = check_tensor("coefficients", own["coefficients"], shape, np.float64)
                views.append(LandmarkView(landmarks, means, weights))
        return cls(views[0], views[1], correlations)

    @property
    def identity(self) -> str:
        """Digest of everything that projections depend on."""
        parts: list[bytes] = []
        for name in VIEWS:
            view = self.view(name)
            parts.append(view.landmarks.identity.encode())
            parts += [view.means.tobytes(), view.coefficients.tobytes()]
        return digest(*parts)

    def _embed(self, name: str, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        view = self.view(name)
        matrix = as_real_array("rows", rows, ndim=2, keep=(*COUNTS, np.float16))
        if matrix.dtype == np.float16:  # as rows on disk are read
            matrix = matrix.astype(np.float32)
        n_columns = view.landmarks.rows.shape[1]
        if not len(matrix) or matrix.shape[1] != n_columns:
            raise ValueError(f"rows must have {n_columns} columns, got shape {matrix.shape}")
        with one_blas_thread():
            return view.transform(matrix)
