"""Preprocessing of photos for a network, and its outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import as_float32, as_real_array, check_finite
from kernelcore._store import digest
from kernelcore.images._networks import FloatArray, Network, Outputs
from kernelcore.images.read import RGBImage

_VERSION = 1  # to be raised when the same network and settings give other values
_SHAPES = {2: "(b, d)", 4: "(b, d, h, w)"}


def pooled(features: FloatArray) -> FloatArray:
    """Vectors (b, d): maps are averaged."""
    return features if features.ndim == 2 else features.mean(axis=(2, 3))


@dataclass(frozen=True, eq=False)
class FeatureExtractor:
    """A network, and the preprocessing of photos for it."""

    network: Network
    size: int
    mean: FloatArray
    std: FloatArray
    batch_size: int
    max_pixels: int

    def prepare(self, image: RGBImage) -> FloatArray:
        """Bring a photo to the size and range of the network: (size, size, 3)."""
        cv2 = _extras.require("cv2")
        height, width = image.shape[:2]
        shrunk, size = (min(width, self.size), min(height, self.size)), (self.size, self.size)
        if shrunk != (width, height):
            image = cv2.resize(image, shrunk, interpolation=cv2.INTER_AREA)
        if shrunk != size:
            image = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC)
        prepared: FloatArray = (image * np.float32(1 / 255) - self.mean) / self.std
        return prepared

    def extract(self, images: Sequence[RGBImage], names: Sequence[str]) -> Outputs:
        """Return features and probabilities of classes; raise ValueError if they are of no use.

        Features are vectors (b, d) or maps (b, d, h, w), probabilities (b, k), None of a
        network that is no classifier.
        """
        from scipy.special import softmax

        features, scores = self.network(np.stack([self.prepare(image) for image in images]))
        _check("features", features, (2, 4), names)
        if scores is None:
            return features, None
        _check("scores of classes", scores, (2,), names)
        return features, softmax(scores, axis=1)

    def identity(self) -> str:
        """Digest of everything but the photo that an output depends on."""
        settings: list[Any] = [_VERSION, self.size, self.batch_size]
        settings += [self.mean.tolist(), self.std.tolist(), _extras.require("cv2").__version__]
        return digest(json.dumps(settings).encode(), self.network.identity().encode())


@dataclass(frozen=True, eq=False)
class JoinedExtractor:
    """Several networks whose vectors, scaled to length 1, are joined."""

    parts: Sequence[FeatureExtractor]
    batch_size: int
    max_pixels: int

    def extract(self, images: Sequence[RGBImage], names: Sequence[str]) -> Outputs:
        """Run each network on a batch."""
        vectors = [pooled(part.extract(images, names)[0]) for part in self.parts]
        return np.hstack([*map(of_length_one, vectors)]), None

    def identity(self) -> str:
        """Digest of everything but the photo that an output depends on."""
        return digest(b"joined", *(part.identity().encode() for part in self.parts))


def of_length_one(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale rows of any magnitude to length 1; a row of zeros stays zeros.

    A power of two brings each row's largest entry to between 1/2 and 1 first, so that no
    square overflows. That changes no other bit.
    """
    _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True, initial=0))
    inner = np.ldexp(rows, -exponents)
    lengths = np.linalg.norm(inner, axis=1, keepdims=True)
    scaled: npt.NDArray[np.float32] = inner / np.where(lengths > 0, lengths, 1)
    return scaled


def square_roots(features: npt.ArrayLike) -> npt.NDArray[np.float32]:
    r"""Take signed square roots of the entries, and scale rows to length 1.

    .. math::

        \frac{r}{\lVert r \rVert},
        \quad r_j = \operatorname{sign}(x_j) \sqrt{\lvert x_j \rvert}

    Most activations of a network are small and a few are large; roots keep the few from
    dominating products and distances.

    Parameters
    ----------
    features : array_like of shape (n_rows, n_features)

    Returns
    -------
    ndarray of float32, shape (n_rows, n_features)
        A row of zeros stays zeros.

    Raises
    ------
    TypeError, ValueError
        If the features are not rows of finite real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import square_roots
    >>> square_roots(np.array([[9.0, -16.0], [0.0, 0.0]], np.float32))
    array([[ 0.6, -0.8],
           [ 0. ,  0. ]], dtype=float32)
    """
    checked = check_finite("features", as_real_array("features", features, ndim=2))
    rows = as_float32("features", checked)
    return of_length_one(np.copysign(np.sqrt(np.abs(rows)), rows))


def _check(
    what: str, array: FloatArray, dimensions: tuple[int, ...], names: Sequence[str]
) -> None:
    if array.ndim not in dimensions or len(array) != len(names) or array.size == 0:
        shapes = " or ".join(_SHAPES[n] for n in dimensions)
        raise ValueError(
            f"the network must return {what} of shape {shapes} for b = {len(names)} photos, "
            f"got shape {array.shape}"
        )
    finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"the network must return finite {what}, got NaN or infinity for "
            f"{names[int(np.argmin(finite))]}"
        )
