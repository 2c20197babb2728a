"""Preprocessing of photos for a network, and its outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._store import digest
from kernelcore.images._networks import FloatArray, Network
from kernelcore.images.read import RGBImage

_VERSION = 1  # to be raised when the same network and settings give other values
_CROP = 0.875  # side of the central square, as is usual on ImageNet
_SHAPES = {2: "(b, d)", 4: "(b, d, h, w)"}


class Activations(NamedTuple):
    """Features of a batch of photos, and probabilities of classes."""

    features: FloatArray
    """Vectors (b, d) or maps (b, d, h, w)."""
    probabilities: FloatArray | None
    """Probabilities of classes (b, k), of a classifier."""

    def pooled(self) -> FloatArray:
        """Vectors (b, d): maps are averaged."""
        return self.features if self.features.ndim == 2 else self.features.mean(axis=(2, 3))

    def rows(self) -> list[dict[str, FloatArray]]:
        """Return the vector of each photo, and its probabilities if there are any."""
        columns = {"features": self.pooled()}
        if self.probabilities is not None:
            columns["probabilities"] = self.probabilities
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]

    def mean_with_mirrored(self, other: Activations) -> Activations:
        """Return the means of this and of the same for the mirror images of the photos."""
        features, probabilities = other
        if features.ndim == 4:
            features = features[..., ::-1]  # each cell where it lies in the photo
        half = np.float32(0.5)
        mean = half * (self.features + features)
        if self.probabilities is None or probabilities is None:
            return Activations(mean, None)
        return Activations(mean, half * (self.probabilities + probabilities))


@dataclass(frozen=True, eq=False)
class FeatureExtractor:
    """A network, and the preprocessing of photos for it."""

    network: Network
    size: int
    crop: bool
    mean: FloatArray
    std: FloatArray
    batch_size: int
    max_pixels: int
    mirror: bool = False

    def running(self) -> AbstractContextManager[None]:
        """Limit the library that runs the network to one thread."""
        return self.network.running()

    def prepare(self, image: RGBImage) -> FloatArray:
        """Bring a photo to the size and range of the network: (size, size, 3)."""
        cv2 = _extras.require("cv2")
        if self.crop:
            image = central_square(image)
        height, width = image.shape[:2]
        shrunk, size = (min(width, self.size), min(height, self.size)), (self.size, self.size)
        if shrunk != (width, height):
            image = cv2.resize(image, shrunk, interpolation=cv2.INTER_AREA)
        if shrunk != size:
            image = cv2.resize(image, size, interpolation=cv2.INTER_CUBIC)
        prepared: FloatArray = (image * np.float32(1 / 255) - self.mean) / self.std
        return prepared

    def extract(self, images: Sequence[RGBImage], names: Sequence[str]) -> Activations:
        """Run the network on a batch; raise ValueError if it returns nothing of use."""
        found = self._run(images, names)
        if not self.mirror:
            return found
        mirrored = [np.ascontiguousarray(image[:, ::-1]) for image in images]
        return found.mean_with_mirrored(self._run(mirrored, names))

    def identity(self) -> str:
        """Digest of everything but the photo that an output depends on."""
        settings: list[Any] = [_VERSION, self.size, self.crop, self.batch_size]
        settings += [self.mean.tolist(), self.std.tolist(), _extras.require("cv2").__version__]
        settings += ["mirror"] if self.mirror else []
        return digest(json.dumps(settings).encode(), self.network.identity().encode())

    def _run(self, images: Sequence[RGBImage], names: Sequence[str]) -> Activations:
        from scipy.special import softmax

        features, scores = self.network(np.stack([self.prepare(image) for image in images]))
        _check("features", features, (2, 4), names)
        if scores is None:
            return Activations(features, None)
        _check("scores of classes", scores, (2,), names)
        return Activations(features, softmax(scores, axis=1))


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


@dataclass(frozen=True, eq=False)
class JoinedExtractor:
    """Several networks whose vectors, scaled to length 1, are joined."""

    parts: tuple[FeatureExtractor, ...]

    @property
    def batch_size(self) -> int:
        """Photos that are given to a network at once."""
        return self.parts[0].batch_size

    @property
    def max_pixels(self) -> int:
        """Most pixels of a file."""
        return self.parts[0].max_pixels

    @contextmanager
    def running(self) -> Iterator[None]:
        """Limit the libraries that run the networks to one thread."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.running())
            yield

    def extract(self, images: Sequence[RGBImage], names: Sequence[str]) -> Activations:
        """Run each network on a batch."""
        vectors = (part.extract(images, names).pooled() for part in self.parts)
        return Activations(np.hstack([*map(of_length_one, vectors)]), None)

    def identity(self) -> str:
        """Digest of everything but the photo that an output depends on."""
        return digest(b"joined", *(part.identity().encode() for part in self.parts))


def central_square(image: RGBImage) -> RGBImage:
    """Central square of 7/8 of the shorter side."""
    height, width = image.shape[:2]
    side = max(1, round(_CROP * min(height, width)))
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


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
