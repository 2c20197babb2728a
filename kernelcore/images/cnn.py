"""Features and class predictions of photos from a convolutional network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import as_real_array, check_integer
from kernelcore._estimator import Estimator
from kernelcore._store import digest
from kernelcore._threads import Progress
from kernelcore.images._describe import DecodedPhoto, OnError, describe
from kernelcore.images._extractor import (
    FeatureExtractor,
    JoinedExtractor,
    pooled,
)
from kernelcore.images._lite import LITE, LITE_STRIDE
from kernelcore.images._networks import LITE0, FloatArray, Network, OnnxNetwork, TorchNetwork
from kernelcore.images.read import DEFAULT_MAX_PIXELS, ImageSources

if TYPE_CHECKING:
    import torch

_INPUT_SIZE = 224
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)
_NETWORKS = (
    f"{', '.join(map(repr, LITE))}, several of these names, a torch module or the path of an "
    ".onnx file"
)
_LITE_MEAN = (127 / 255,) * 3
_LITE_STD = (128 / 255,) * 3


@dataclass(frozen=True, eq=False)
class CNNFeatures:
    """Output of a network for photos, one row per photo.

    Attributes
    ----------
    features : ndarray of float32, shape (n_rows, n_features)
        Output of the network, averaged over the photo where it is a map.
    probabilities : ndarray of float32, shape (n_rows, n_classes), or None
        Softmax of the scores of one EfficientNet-Lite; None for other networks.
    rows : ndarray of intp, shape (n_rows,)
        Position in the input of the photo behind each row: all of them, in order, unless
        unreadable photos were skipped.
    failures : dict of int to str
        Position of each photo that was skipped, and the reason.
    """

    features: FloatArray
    probabilities: FloatArray | None
    rows: npt.NDArray[np.intp]
    failures: dict[int, str]

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        classes = (
            "" if self.probabilities is None else f", {self.probabilities.shape[1]} classes"
        )
        return f"CNNFeatures({len(self)} photos, {self.features.shape[1]} features{classes})"


class CNN(Estimator):
    """Describe photos by a network that was trained elsewhere.

    Parameters
    ----------
    network : name, sequence of names, torch module or path of an ONNX file
        "efficientnet-lite0", the default, and "efficientnet-lite2" are ImageNet classifiers
        of 4.7 and 6.1 million parameters [1]_, whose weights come with the extra ``images``.
        ONNX Runtime runs them and ONNX files on the CPU. Features of several names are
        joined: the vector of each network is scaled to length 1. Modules are copied and run
        in evaluation mode. Nothing is ever downloaded. Features are the last map of an
        EfficientNet-Lite, the last output of an ONNX file, the output of a module; maps
        (d, h, w) are averaged over the photo.
    input_size : int, optional
        Side of the square, in pixels, that whole photos are brought to, in changed
        proportions; at least 32 for EfficientNet-Lite. The default is 260 for
        EfficientNet-Lite2 and 224 for others.
    mean, std : sequence of 3 floats, optional
        Mean and spread of red, green and blue, as fractions of 1: the network gets
        ``(pixels / 255 - mean) / std``. The default is what EfficientNet-Lite was trained
        with, ``(pixels - 127) / 128``, and for others the usual values of ImageNet.
    device : str, default "cpu"
        Where torch runs modules: "cpu", "cuda", "cuda:1", ...
    batch_size : int, optional
        Photos in a forward pass. The default is 1 on a CPU, where threads take one photo
        each, and 32 elsewhere.
    max_pixels : int, default 2**26
        Files that declare more pixels are refused before they are decoded.

    See Also
    --------
    kernelcore.images.VisualWords : Features that need no trained network.

    Notes
    -----
    Sides longer than `input_size` are shrunk by averaging areas, shorter ones enlarged by cubic
    interpolation.

    On a CPU the result has the same bits for every number of threads, and by default for
    every `batch_size`. Another engine, processor or version of torch or ONNX Runtime, and with
    torch another `batch_size`, may round otherwise: to about 1e-5 of the largest value, and on
    GPUs that multiply in TF32 to about 1e-3. A cache keeps the results of different engines
    apart.

    An ONNX file is a program that may take any amount of memory and time. Run files of people
    you trust.

    Modules are called from several threads at once; use ``n_threads=1`` for stateful modules.
    The key of a module in the cache is made of its weights and its ``repr``; remove the cache
    when only the code of ``forward`` has changed.

    References
    ----------
    .. [1] M. Tan and Q. V. Le, "EfficientNet: rethinking model scaling for convolutional
       neural networks", ICML 2019; the Lite variants leave out squeeze-and-excitation and
       replace swish by ReLU6.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.images import CNN
    >>> photos = np.random.default_rng(0).integers(0, 256, (2, 60, 80, 3), np.uint8)
    >>> CNN().transform(photos)
    CNNFeatures(2 photos, 1280 features, 1000 classes)
    """

    def __init__(
        self,
        network: str | Sequence[str] | os.PathLike[str] | torch.nn.Module = LITE0,
        *,
        input_size: int | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        device: str = "cpu",
        batch_size: int | None = None,
        max_pixels: int = DEFAULT_MAX_PIXELS,
    ) -> None:
        self.network = network
        self.input_size = input_size
        self.mean = mean
        self.std = std
        self.device = device
        self.batch_size = batch_size
        self.max_pixels = max_pixels

    def fit(self, images: Any = None, y: None = None) -> CNN:
        """Return the estimator itself: there is nothing to learn."""
        return self

    def transform(
        self,
        images: ImageSources,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        on_error: OnError = "raise",
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> CNNFeatures:
        """Run the network on each photo once.

        Parameters
        ----------
        images : sequence of paths, bytes, uint8 arrays or images of Pillow
            Photos; see `read_image` for what each may be.
        cache_dir : path, optional
            Folder that keeps the features of every photo as soon as they are computed. Photos
            of the same content, network and settings are not run again, so that a call that
            was interrupted or killed goes on where it was. Processes may share it.
        on_error : {"raise", "skip"}, default "raise"
            "raise" raises one error that lists every file that cannot be read. "skip" leaves
            these files out and gives one warning that lists them.
        n_threads : int, optional
            Threads to use, each on photos of its own; the default is every core this process
            may run on. On a CPU the result is the same, bit for bit, for every value.
        progress : bool or callable, default False
            True shows a bar; a callable is called with the batches done and in all.

        Returns
        -------
        CNNFeatures
            Features, probabilities, and the photos they stand for.

        Raises
        ------
        MissingExtraError
            If the packages that the network needs are not installed.
        FileNotFoundError
            If `network` names a file that is not there, or the weights are missing.
        TypeError
            If an image, the network or a parameter is of the wrong kind.
        ValueError
            If there are no images, a parameter has a wrong value, an ONNX file or the file of
            weights is damaged, or the network returns NaN, infinity or another shape than
            (b, d) or (b, d, h, w).
        UnreadableImagesError
            If files cannot be read and `on_error` is "raise", or if none can.
        """
        extractor = self.make_extractor()

        def describe_batch(photos: Sequence[DecodedPhoto]) -> Iterator[dict[str, FloatArray]]:
            pixels, _, names = zip(*photos, strict=True)
            features, probabilities = extractor.extract(pixels, names)
            for i, vector in enumerate(pooled(features)):
                row = {"features": vector}
                if probabilities is not None:
                    row["probabilities"] = probabilities[i]
                yield row

        described = describe(
            images,
            describe_batch,
            key=digest(b"photos", extractor.identity().encode()),
            batch_size=extractor.batch_size,
            max_pixels=extractor.max_pixels,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
            description="Running the network",
        )
        described.warn()
        is_classifier = "probabilities" in described.rows[0]
        return CNNFeatures(
            described.stacked("features"),
            described.stacked("probabilities") if is_classifier else None,
            described.positions,
            described.failures,
        )

    def make_extractor(self) -> FeatureExtractor | JoinedExtractor:
        """Check the parameters and load the networks."""
        self.check_params()
        if not isinstance(self.network, (list, tuple)):
            return self._extractor_of(self.network)
        parts = [self._extractor_of(name) for name in self.network]
        return JoinedExtractor(parts, parts[0].batch_size, parts[0].max_pixels)

    def check_params(self) -> None:
        """Check all parameters but a network of one's own."""
        names: Any = [self.network]
        if isinstance(self.network, (list, tuple)):
            names = list(self.network)
            if not names or not all(isinstance(name, str) and name in LITE for name in names):
                known = ", ".join(map(repr, LITE))
                raise ValueError(f"network must be names of {known}, got {names!r:.80}")
            if len(set(names)) < len(names):
                raise ValueError(f"network must have each name once, got {names!r:.80}")
        if not isinstance(self.device, str):
            raise TypeError(f"device must be a name, got {self.device!r}")
        if self.input_size is not None:
            least = LITE_STRIDE if names[0] in LITE else 1
            check_integer("input_size", self.input_size, minimum=least, maximum=2**14)
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size, minimum=1)
        check_integer("max_pixels", self.max_pixels, minimum=1)
        self._colour("mean", _LITE_MEAN)
        if self._colour("std", _LITE_STD).min() <= 0:
            raise ValueError(f"std must be positive, got {self.std!r}")

    def _extractor_of(self, network: Any) -> FeatureExtractor:
        """Load one network."""
        is_lite = network in LITE
        if isinstance(network, (str, os.PathLike)):
            if not is_lite and Path(network).suffix.lower() != ".onnx":
                raise ValueError(f"network must be {_NETWORKS}, got {os.fspath(network)!r}")
            loaded: Network = OnnxNetwork(network)
        elif isinstance(network, _extras.require("torch").nn.Module):
            loaded = TorchNetwork(network, self.device)
        else:
            raise TypeError(f"network must be {_NETWORKS}, got {type(network).__name__}")
        size = LITE[network].input_size if is_lite else _INPUT_SIZE
        batch_size = 1 if self.device.startswith("cpu") else 32
        return FeatureExtractor(
            loaded,
            size if self.input_size is None else int(self.input_size),
            self._colour("mean", _LITE_MEAN if is_lite else _IMAGENET_MEAN),
            self._colour("std", _LITE_STD if is_lite else _IMAGENET_STD),
            batch_size if self.batch_size is None else int(self.batch_size),
            int(self.max_pixels),
        )

    def _colour(self, name: str, default: tuple[float, ...]) -> FloatArray:
        value = getattr(self, name)
        colour = as_real_array(name, default if value is None else value, ndim=1)
        if colour.shape != (3,) or not np.isfinite(colour).all():
            raise ValueError(f"{name} must be 3 finite numbers, got {value!r}")
        return colour.astype(np.float32)
