"""A network and how photos are prepared for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from kernelcore import _extras
from kernelcore._files import digest
from kernelcore.images._networks import FloatArray, Network, Outputs
from kernelcore.images.decode import RGBImage

_VERSION = 1  # to be raised whenever the same network and settings come to give other values
_CROP = 0.875  # side of the central square, as is usual on ImageNet


@dataclass(frozen=True, eq=False)
class Lens:
    """A network and how photos are prepared for it."""

    network: Network
    size: int
    crop: bool
    mean: FloatArray
    std: FloatArray
    batch_size: int
    max_pixels: int

    def running(self) -> AbstractContextManager[None]:
        """Keep the library that runs the network to the calling thread."""
        return self.network.running()

    def prepare(self, image: RGBImage) -> FloatArray:
        """Bring a photo to the size and range of the network: (size, size, 3)."""
        cv2 = _extras.require("cv2")
        if self.crop:
            image = central_square(image)
        smaller = min(image.shape[:2]) >= self.size
        if image.shape[:2] != (self.size, self.size):
            how = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
            image = cv2.resize(image, (self.size, self.size), interpolation=how)
        prepared: FloatArray = (image * np.float32(1 / 255) - self.mean) / self.std
        return prepared

    def see(self, images: Sequence[RGBImage]) -> Outputs:
        """Run the network on a batch; raise ValueError if it returns no use."""
        outputs = self.network(np.stack([self.prepare(image) for image in images]))
        for name, array, dimensions in (
            ("features", outputs.features, (2, 4)),
            ("scores of classes", outputs.logits, (2,)),
        ):
            if array is None:
                continue
            if array.ndim not in dimensions or len(array) != len(images) or array.size == 0:
                shapes = " or ".join({2: "(b, d)", 4: "(b, d, h, w)"}[n] for n in dimensions)
                raise ValueError(
                    f"the network must return {name} of shape {shapes} for b = {len(images)} "
                    f"photos, got shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"the network must return finite {name}, got NaN or infinity")
        return outputs

    def identity(self) -> str:
        """Digest of all that an output depends on besides the photo."""
        settings = [_VERSION, self.size, self.crop, self.batch_size]
        settings += [self.mean.tolist(), self.std.tolist(), _extras.require("cv2").__version__]
        return digest(json.dumps(settings).encode(), self.network.identity().encode())


def central_square(image: RGBImage) -> RGBImage:
    """Central square of 7/8 of the shorter side."""
    height, width = image.shape[:2]
    side = max(1, round(_CROP * min(height, width)))
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]
