"""EfficientNet-Lite0 without torch: its graph, put together in memory and run by OpenCV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager

import numpy as np

from kernelcore._files import digest
from kernelcore._parallel import check_stopped
from kernelcore.images._lite0_weights import lite0_weights_path, read_lite0_weights
from kernelcore.images._networks import FloatArray, OpenCVModel, Outputs
from kernelcore.images._onnx_model import OnnxGraph, Shape
from kernelcore.images._opencv import one_opencv_thread

LITE0_STRIDE = 32  # pixels along the side of a cell of the map

# Side of the filters, stride of the first block, number of blocks.
_STAGES = ((3, 1, 1), (3, 2, 2), (5, 2, 2), (3, 2, 3), (5, 1, 3), (5, 2, 4), (3, 1, 1))
_EPSILON = 1e-3  # of batch normalisation
_LARGEST = np.float32(6)  # of ReLU6
_MAP, _SCORES = "map", "scores"


def lite0_graph(weights: Mapping[str, FloatArray], *, classifier: bool) -> bytes:
    """Put the network together as an ONNX model.

    Parameters
    ----------
    weights : mapping of str to ndarray of float32
        What `read_lite0_weights` returns.
    classifier : bool
        Whether the scores of the classes are an output, after the map.

    Returns
    -------
    bytes
        A model from pixels (b, 3, h, w) to "map" (b, 1280, h // 32, w // 32) and
        "scores" (b, 1000). Batch normalisation is part of the filters, multiplied in float64.

    Notes
    -----
    A stride of two pads one pixel less in front than behind, at every size as it is right at
    224: so does the network of the package.
    """
    graph = OnnxGraph()
    bounds = [graph.constant(np.float32(0)), graph.constant(_LARGEST)]

    def convolved(
        x: str, layer: str, norm: str, side: int = 1, stride: int = 1, *, deep: bool = True
    ) -> str:
        gamma, beta, mean, variance = (
            weights[f"{norm}.{name}"].astype(np.float64)
            for name in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / np.sqrt(variance + _EPSILON)
        filters = weights[f"{layer}.weight"].reshape(side, side, -1, len(scale)) * scale
        before, after = (side - stride) // 2, (side - stride + 1) // 2
        return graph.node(
            "Conv",
            [
                x,
                graph.constant(filters.transpose(3, 2, 0, 1).astype(np.float32)),
                graph.constant((beta - mean * scale).astype(np.float32)),
            ],
            kernel_shape=[side, side],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=1 if deep else len(scale),
        )

    def rectified(x: str, name: str = "") -> str:
        return graph.node("Clip", [x, *bounds], name=name)

    x = rectified(convolved("pixels", "_conv_stem", "_bn0", 3, 2))
    i = 0
    for side, first_stride, n_blocks in _STAGES:
        for k in range(n_blocks):
            block, given, stride = f"_blocks.{i}", x, 1 if k else first_stride
            if i > 0:
                x = rectified(convolved(x, f"{block}._expand_conv", f"{block}._bn0"))
            layer, norm = f"{block}._depthwise_conv", f"{block}._bn1"
            x = rectified(convolved(x, layer, norm, side, stride, deep=False))
            x = convolved(x, f"{block}._project_conv", f"{block}._bn2")
            if k > 0:
                x = graph.node("Add", [x, given])
            i += 1
    x = rectified(convolved(x, "_conv_head", "_bn1"), _MAP)
    pixels: dict[str, Shape] = {"pixels": ("b", 3, "h", "w")}
    outputs: dict[str, Shape] = {_MAP: ("b", len(weights["_bn1.bias"]), "rows", "columns")}
    if not classifier:
        return graph.model(pixels, outputs)
    bias = weights["_fc.bias"]
    matrix = weights["_fc.weight"].reshape(-1, len(bias))
    x = graph.node("Flatten", [graph.node("GlobalAveragePool", [x])])
    graph.node("Gemm", [x, graph.constant(matrix), graph.constant(bias)], name=_SCORES)
    return graph.model(pixels, {**outputs, _SCORES: ("b", len(bias))})


class Lite0Network:
    """EfficientNet-Lite0 on a CPU; features are its last map of 1,280 channels.

    Photos run one at a time, as batches are no faster: so the bits of one photo cannot depend
    on the others. Each thread has a copy of the network, of 70 MB.
    """

    def __init__(self, *, classifier: bool) -> None:
        weights = read_lite0_weights(lite0_weights_path())
        graph = lite0_graph(weights, classifier=classifier)
        self._digest = digest(graph)
        self._outputs = [_MAP, _SCORES] if classifier else [_MAP]
        self._model = OpenCVModel(np.frombuffer(graph, np.uint8), "EfficientNet-Lite0")

    def running(self) -> AbstractContextManager[None]:
        """Keep OpenCV to the calling thread."""
        return one_opencv_thread()

    def __call__(self, batch: FloatArray) -> Outputs:
        """Run on prepared pixels of shape (b, h, w, 3)."""
        seen = []
        for i in range(len(batch)):
            check_stopped()
            seen.append(self._model.run(batch[i : i + 1], self._outputs))
        results = {
            name: np.concatenate([outputs[name] for outputs in seen]) for name in self._outputs
        }
        return Outputs(results[_MAP], results.get(_SCORES))

    def identity(self) -> str:
        """Digest of the weights, the graph and the version of OpenCV, which runs it."""
        about = ["OpenCV", self._model.version, self._digest]
        return digest(json.dumps(about).encode())
