"""Training photos as vectors, and their radial basis function kernel with other photos."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._estimator import params_to_json
from kernelcore._store import check_tensor, digest, load_tensors, reading, save_tensors
from kernelcore._threads import Progress, one_blas_thread, resolve_n_threads
from kernelcore.images import CNN, square_roots
from kernelcore.images._describe import OnError, report_failures, unreadable_files
from kernelcore.images._extractor import of_length_one
from kernelcore.images._lite import LITE, LITE_FEATURES
from kernelcore.images._networks import LITE0
from kernelcore.images.read import DEFAULT_MAX_PIXELS
from kernelcore.models.base import count, take_images
from kernelcore.models.photo_inputs import (
    PRECOMPUTED,
    Extractor,
    Feature,
    Photos,
    Rows,
    as_vectors,
    digests,
    is_matrix,
)

Scaling: TypeAlias = Literal["square_roots", "length"]
"""Scaling of feature vectors: `kernelcore.images.square_roots`, or length 1 alone."""

SCALINGS: tuple[Scaling, ...] = ("square_roots", "length")
_LEAST_SPREAD = 1e-12  # more than the rounding between equal rows of length 1


class FeatureKernel:
    r"""Radial basis function of rows, with a width from the training rows.

    .. math:: k(x, y) = \exp(-\lVert x - y \rVert^2 / s)

    with s the mean squared distance of the training rows.

    Parameters
    ----------
    rows : ndarray of float32, shape (n_training, n_features)
        Training rows.

    Raises
    ------
    ValueError
        If all training rows are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models.vector_view import FeatureKernel
    >>> kernel = FeatureKernel(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    >>> kernel.gram().round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]], dtype=float32)
    """

    def __init__(self, rows: npt.NDArray[np.float32]) -> None:
        self._mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._rows, self._squares = self._centred(rows)
        self.spread = 2.0 * float(self._squares.mean(dtype=np.float64))
        if self.spread < _LEAST_SPREAD:
            raise ValueError("images must not all have the same feature vector after scaling")

    def gram(self, X: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Compare rows with the training rows; these with each other by default.

        Parameters
        ----------
        X : ndarray of float32, shape (n_rows, n_features), optional

        Returns
        -------
        ndarray of float32, shape (n_rows, n_training)
        """
        rows, squares = (self._rows, self._squares) if X is None else self._centred(X)
        with one_blas_thread():
            products = rows @ self._rows.T
        squared = squares[:, np.newaxis] + self._squares - np.float32(2.0) * products
        squared = np.maximum(squared, np.float32(0.0))
        kernel: npt.NDArray[np.float32] = np.exp(-squared / np.float32(self.spread))
        if X is None:
            np.fill_diagonal(kernel, 1.0)  # without the rounding of the difference
        return kernel

    def _centred(
        self, rows: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Subtract the mean of the training rows; return the rows and their squared lengths.

        The mean changes no distance, but cancelling it later would leave rounding errors.
        """
        centred = rows - self._mean
        return centred, np.einsum("ij,ij->i", centred, centred)


def scaled(features: npt.NDArray[np.float32], scaling: Scaling) -> npt.NDArray[np.float32]:
    """Return the rows scaled to length 1, of their square roots or as they are.

    A row of zeros stays zeros.
    """
    return square_roots(features) if scaling == "square_roots" else of_length_one(features)


NETWORK = "network"
_VECTORS = "vectors.safetensors"
_NETWORK = "network.onnx"
_KIND = "photo vectors"
_making_kernels = threading.Lock()  # of all views: one in each could not be copied


@dataclass(frozen=True, eq=False)
class VectorView:
    """Photos as vectors, for example of a network, compared by `FeatureKernel`.

    Attributes
    ----------
    extractor : CNN, Extractor or None
        Turns photos into vectors; None where callers give vectors.
    vectors : ndarray of float32, shape (n_training, n_features)
        Training photos.
    absent : str
        Class of the extractor, where a file could not hold it.
    network_digest : str
        Of the ONNX file that described the training photos.
    """

    extractor: CNN | Extractor | None
    vectors: npt.NDArray[np.float32]
    absent: str = ""
    network_digest: str = ""
    _kernels: dict[Scaling, FeatureKernel] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return int(self.vectors.shape[1])

    @property
    def feature(self) -> Feature:
        """The extractor, or "precomputed" where there is none."""
        return PRECOMPUTED if self.extractor is None else self.extractor

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """Square roots for a network, as most activations are small; both for other vectors."""
        return SCALINGS[:1] if isinstance(self.extractor, CNN) else SCALINGS

    def fit(self, photos: Photos, **options: Any) -> VectorView:
        """Return the view with the digest of its network; nothing is learned."""
        is_lite0 = isinstance(self.extractor, CNN) and self.extractor.network == LITE0
        if is_lite0 and cast(CNN, self.extractor).layer is None and is_matrix(photos):
            n_features = self.given(photos).shape[1]
            if n_features != LITE_FEATURES:
                raise ValueError(
                    f"images must have the {LITE_FEATURES} features of {LITE0} if they are "
                    f'vectors, got {n_features}; features="precomputed" takes any'
                )
        return replace(self, network_digest=self._digest_of_network())

    def describe(
        self,
        photos: Photos,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> tuple[npt.NDArray[np.float32], Rows]:
        """Run the extractor; a matrix in place of photos is taken as a network's own output.

        With "skip", files that cannot be read are left out before an extractor of another
        package is called.
        """
        if self.extractor is None or (isinstance(self.extractor, CNN) and is_matrix(photos)):
            vectors = self.given(photos)
            rows = np.arange(len(vectors))
        elif isinstance(self.extractor, CNN):
            self._check_network()
            described = self.extractor.transform(
                cast(Any, photos),  # checked there
                cache_dir=cache_dir,
                on_error=on_error,
                n_threads=n_threads,
                progress=progress,
            )
            vectors, rows = described.features, described.rows
        else:
            rows = np.arange(count(photos))
            if on_error == "skip" and not (is_matrix(photos) or isinstance(photos, Mapping)):
                failures = unreadable_files(
                    cast(Any, photos),
                    DEFAULT_MAX_PIXELS,
                    resolve_n_threads(n_threads),
                    progress,
                )
                report_failures(failures, len(rows), on_error)
                rows = np.delete(rows, list(failures))
                photos = take_images(photos, rows) if failures else photos
            name = f"transform of {type(self.extractor).__name__}"
            vectors = as_vectors(name, cast(Extractor, self.extractor).transform(photos))
            if len(vectors) != len(rows):
                raise ValueError(
                    f"{name} must give one row for each photo ({len(rows)}), got {len(vectors)}"
                )
        n_features = self.vectors.shape[1]
        if len(self) and vectors.shape[1] != n_features:
            raise ValueError(
                f"images must have the features of the training photos ({n_features}), "
                f"got {vectors.shape[1]}"
            )
        return vectors, rows

    def given(self, photos: Any) -> npt.NDArray[np.float32]:
        """Check the vectors that a caller passes in place of photos."""
        try:
            return as_vectors("images", photos)
        except (TypeError, ValueError, OSError) as error:
            if not self.absent:
                raise
            raise ValueError(
                "images must be vectors, because the model was saved without its extractor "
                f"{self.absent}; pass it as load(..., features={self.absent}(...)) ({error})"
            ) from error

    def of(self, description: npt.NDArray[np.float32]) -> VectorView:
        """Return the view of other training photos."""
        return replace(self, vectors=np.array(description))

    def known(self, items: Rows) -> npt.NDArray[np.float32]:
        """Return the vectors of some training photos."""
        return self.vectors[items]

    def digests(self, description: npt.NDArray[np.float32] | None = None) -> list[bytes]:
        """Digests of the vectors of photos, by default of the training photos."""
        return digests(self.vectors if description is None else description)

    def gram(
        self,
        description: npt.NDArray[np.float32] | None = None,
        *,
        scaling: Scaling | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Radial basis function of the scaled vectors."""
        how = scaling or SCALINGS[0]
        with _making_kernels:
            kernel = self._kernels.get(how)
            if kernel is None:
                kernel = FeatureKernel(scaled(self.vectors, how))
                self._kernels.clear()  # one copy of the vectors is enough
                self._kernels[how] = kernel
        return kernel.gram(None if description is None else scaled(description, how))

    def about(self) -> dict[str, Any]:
        """Return the network with its parameters, or the class of an extractor."""
        if self.extractor is None:
            return {"kind": PRECOMPUTED, "absent": self.absent}
        if isinstance(self.extractor, CNN):
            params = params_to_json(self.extractor.get_params(deep=False))
            if self._onnx_file() is not None:
                params["network"] = _NETWORK
            if isinstance(params["network"], (str, list)):
                return {"kind": NETWORK, "params": params, "digest": self.network_digest}
        return {"kind": PRECOMPUTED, "absent": type(self.extractor).__name__}

    def save(self, folder: Path) -> None:
        """Write the vectors, and a copy of the ONNX file that made them."""
        save_tensors(folder / _VECTORS, _KIND, {"vectors": self.vectors}, {})
        network = self._onnx_file()
        if network is not None:
            self._check_network()
            shutil.copyfile(network, folder / _NETWORK)
            # The network may refer to other files, which are not copied: check that it runs.
            network_of(folder, params_to_json(self._copied_params())).make_extractor()

    def _copied_params(self) -> dict[str, Any]:
        return {**cast(CNN, self.extractor).get_params(deep=False), "network": _NETWORK}

    def _digest_of_network(self) -> str:
        network = self._onnx_file()
        return "" if network is None else digest(network.read_bytes())

    def _check_network(self) -> None:
        """Raise if the ONNX file is not the one that described the training photos."""
        if self.network_digest and self._digest_of_network() != self.network_digest:
            raise ValueError(
                f"{self._onnx_file()} must be the network that described the training photos, "
                "and it has changed since"
            )

    def _onnx_file(self) -> Path | None:
        network = self.extractor.network if isinstance(self.extractor, CNN) else LITE0
        if isinstance(network, (str, os.PathLike)) and network not in LITE:
            return Path(network)
        return None

    @classmethod
    def load(
        cls, folder: Path, extractor: CNN | Extractor | None, absent: str, network_digest: str
    ) -> VectorView:
        """Load the output of `save`; a damaged file raises ValueError."""
        with reading(folder / _VECTORS):
            tensors, about = load_tensors(folder / _VECTORS, _KIND)
            about.exactly()
            vectors = tensors.exactly("vectors")["vectors"]
            check_tensor("vectors", vectors, (None, None), np.float32)
        view = cls(extractor, vectors, absent, network_digest)
        view._check_network()
        return view


def network_of(folder: Path, params: Mapping[str, Any]) -> CNN:
    """Return the network that `VectorView.about` described."""
    network = params["network"]
    several = isinstance(network, list) and len(network) > 0
    names = network if several else [network]
    if network != _NETWORK and not all(isinstance(one, str) and one in LITE for one in names):
        known = ", ".join(map(repr, (*LITE, _NETWORK)))
        raise ValueError(f"network must be one of {known}, or several, got {network!r:.80}")
    named = os.fspath(folder / _NETWORK) if network == _NETWORK else network
    named = tuple(network) if several else named
    cnn = CNN().set_params(**{**params, "network": named})
    cnn.check_params()
    return cnn
