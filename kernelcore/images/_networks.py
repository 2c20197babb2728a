"""Networks for photos: EfficientNet-Lite, ONNX files and torch modules."""

from __future__ import annotations

import copy
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._store import digest
from kernelcore._threads import check_stopped, one_torch_thread
from kernelcore.images._lite import LITE, LITE_MAP, lite_model

if TYPE_CHECKING:
    from torch.nn import Module


FloatArray: TypeAlias = npt.NDArray[np.float32]
LITE0 = "efficientnet-lite0"
_FATAL = 4  # level of the log of ONNX Runtime


Outputs: TypeAlias = tuple[FloatArray, FloatArray | None]
"""Vectors (b, d) or maps (b, d, h, w), and scores of classes (b, k) of a classifier."""


class TorchNetwork:
    """A copy of a torch module, and the layer that gives the features."""

    def __init__(self, module: Module, layer: str | None, device: str) -> None:
        self._torch = _extras.require("torch")
        own: Any = copy.deepcopy(module).eval()
        try:  # on a CPU half as fast again with channels last
            self._module = own.to(device, memory_format=self._torch.channels_last)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device must be one that torch can use here, got {device!r}: {error}"
            ) from None
        self._layer, self._device = layer, device
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

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        with one_torch_thread(), self._torch.inference_mode():  # photos run side by side
            # Channels come last in memory already.
            pixels = self._torch.from_numpy(batch).to(self._device).permute(0, 3, 1, 2)
            self._seen.output = None
            result = self._module(pixels)
            features = result if self._layer is None else self._seen.output
            self._seen.output = None
            return self._as_array(features), None

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


class OnnxNetwork:
    """An ONNX model run by ONNX Runtime on a CPU, each photo by the thread that calls.

    Photos run one at a time, as batches are no faster: so the bits of one photo cannot depend
    on the others. Threads share the weights. A model is one file: weights that it keeps in
    other files are not read.

    Parameters
    ----------
    source : str or path
        A key of `LITE`, or the path of an ONNX file.
    layer : str or None
        The output or node that gives the features; the default is the last output, and the
        last map of an EfficientNet-Lite, which gives scores of classes too.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the model cannot be read, or has no such layer.
    """

    def __init__(self, source: str | os.PathLike[str], layer: str | None) -> None:
        self._parameters = source, layer
        self._name = os.fspath(source)
        onnx, runtime = _extras.require("onnx"), _extras.require("onnxruntime")
        if source in LITE:
            content, layer = lite_model(self._name), layer or LITE_MAP
        else:
            if not Path(source).is_file():
                raise FileNotFoundError(f"no such file: {self._name}")
            content = Path(source).read_bytes()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _FATAL  # our errors have what it logs
        try:
            model = onnx.load_model_from_string(content)
            outputs = [output.name for output in model.graph.output]
            nodes = {node.name: node.output[0] for node in model.graph.node if node.output}
            wanted = outputs[-1] if layer is None else layer
            if wanted not in outputs and wanted in nodes:
                wanted = nodes[wanted]
                model.graph.output.append(onnx.ValueInfoProto(name=wanted))
                content = model.SerializeToString()
            self._session = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            self._input = self._session.get_inputs()[0].name
        except Exception as error:  # those of protobuf and of the runtime have no common base
            raise ValueError(
                f"{self._name} is damaged, truncated or no ONNX file that can be run: {error}"
            ) from None
        if wanted not in {output.name for output in self._session.get_outputs()}:
            raise ValueError(
                f"layer must name a node or an output of {self._name}, got {layer!r}; "
                f"its last nodes are {', '.join(list(nodes)[-8:])}"
            )
        self._outputs = [wanted, outputs[-1]] if source in LITE else [wanted]
        about = ["ONNX Runtime", runtime.__version__, digest(content), self._outputs]
        self._identity = digest(json.dumps(about).encode())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parameters

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
        """Digest of the model, the layer and the version of the engine."""
        return self._identity


Network: TypeAlias = TorchNetwork | OnnxNetwork
"""A network ready to run, from several threads at once."""
