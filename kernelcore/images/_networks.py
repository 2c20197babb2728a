"""Networks for photos: EfficientNet-Lite, ONNX files and torch modules."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._store import digest
from kernelcore._threads import check_stopped, one_torch_thread
from kernelcore.images._lite import LITE, lite_model

if TYPE_CHECKING:
    from torch.nn import Module


FloatArray: TypeAlias = npt.NDArray[np.float32]
LITE0 = "efficientnet-lite0"
_FATAL = 4  # level of the log of ONNX Runtime


Outputs: TypeAlias = tuple[FloatArray, FloatArray | None]
"""Vectors (b, d) or maps (b, d, h, w), and scores of classes (b, k) of a classifier."""


class TorchNetwork:
    """A copy of a torch module."""

    def __init__(self, module: Module, device: str) -> None:
        self._torch = _extras.require("torch")
        own: Any = copy.deepcopy(module).eval()
        try:  # on a CPU half as fast again with channels last
            self._module = own.to(device, memory_format=self._torch.channels_last)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device must be one that torch can use here, got {device!r}: {error}"
            ) from None
        self._device = device

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        with one_torch_thread(), self._torch.inference_mode():  # photos run side by side
            # Channels come last in memory already.
            pixels = self._torch.from_numpy(batch).to(self._device).permute(0, 3, 1, 2)
            return self._as_array(self._module(pixels)), None

    def identity(self) -> str:
        """Digest of architecture, weights and settings; code within `forward` is not seen."""
        about = [type(self._module).__qualname__, repr(self._module)]
        about += [self._torch.__version__, self._torch.device(self._device).type]
        parts = (
            part
            for name, tensor in self._module.state_dict().items()
            for part in (name.encode(), self._as_array(tensor).tobytes())
        )
        return digest(json.dumps(about).encode(), *parts)

    def _as_array(self, output: Any) -> FloatArray:
        if not isinstance(output, self._torch.Tensor):
            raise ValueError(f"the network must return a tensor, got {type(output).__name__}")
        array: FloatArray = output.detach().to("cpu", self._torch.float32).numpy()
        return array


class OnnxNetwork:
    """An ONNX model run by ONNX Runtime on a CPU, each photo by the thread that calls.

    Photos run one at a time, as batches are no faster: so the bits of one photo cannot depend
    on the others. Threads share the weights. A model is one file: weights that it keeps in
    other files are not read.

    Parameters
    ----------
    source : str or path
        A key of `LITE`, whose features are its map, or the path of an ONNX file, whose last
        output they are.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the model cannot be read.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self._name = os.fspath(source)
        runtime = _extras.require("onnxruntime")
        if self._name in LITE:
            content = lite_model(self._name)
        else:
            if not Path(source).is_file():
                raise FileNotFoundError(f"no such file: {self._name}")
            content = Path(source).read_bytes()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _FATAL  # our errors have what it logs
        try:
            self._session = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            self._input = self._session.get_inputs()[0].name
            outputs = [output.name for output in self._session.get_outputs()]
            self._outputs = outputs if self._name in LITE else [outputs[-1]]
        except Exception as error:  # those of protobuf and of the runtime have no common base
            raise ValueError(
                f"{self._name} is damaged, truncated or no ONNX file that can be run: {error}"
            ) from None
        about = ["ONNX Runtime", runtime.__version__, digest(content), self._outputs]
        self._identity = digest(json.dumps(about).encode())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._name,)

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        results = []
        for photo in batch.transpose(0, 3, 1, 2):
            check_stopped()
            pixels = {self._input: np.ascontiguousarray(photo[None])}
            try:
                results.append(self._session.run(self._outputs, pixels))
            except Exception as error:
                raise ValueError(
                    f"{self._name} cannot be run on {pixels[self._input].shape}: {error}"
                ) from None
        features, *scores = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
        return features, scores[0] if scores else None

    def identity(self) -> str:
        """Digest of the model and the version of the engine."""
        return self._identity


Network: TypeAlias = TorchNetwork | OnnxNetwork
"""A network ready to run, from several threads at once."""
