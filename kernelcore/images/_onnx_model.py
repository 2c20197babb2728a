"""ONNX models put together in memory: as much of the format as a network of convolutions needs.

The format is one of Protocol Buffers: a message is a sequence of fields, each a number, a
kind, and a varint or bytes. The numbers of the fields are those of ``onnx.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kernelcore.images._networks import FloatArray

Attribute: TypeAlias = int | Sequence[int]
Shape: TypeAlias = Sequence[int | str]

_IR_VERSION, _OPSET = 8, 13
_FLOAT = 1  # of TensorProto.DataType
_INT, _INTS = 2, 7  # of AttributeProto.AttributeType


class OnnxGraph:
    """Nodes and constants, added in the order in which they run.

    Examples
    --------
    >>> import cv2
    >>> import numpy as np
    >>> from kernelcore.images._onnx_model import OnnxGraph
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
