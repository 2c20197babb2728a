import cv2
import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

PHOTOS = list(make_scenes(5, rng=4, size=(40, 48)).images)
RNG = np.random.default_rng(0)
FILTERS = RNG.normal(size=(4, 3, 1, 1)).astype(np.float32)
WEIGHTS = RNG.normal(size=(6, 4)).astype(np.float32)


def write(path):
    """A classifier of 6 classes: a map "map" of 4 channels, its mean, a linear layer."""
    nodes = [
        helper.make_node(
            "Conv", ["pixels", "filters"], ["responses"], name="conv", kernel_shape=[1, 1]
        ),
        helper.make_node("Relu", ["responses"], ["map"], name="map"),
        helper.make_node("GlobalAveragePool", ["map"], ["mean"], name="mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("Gemm", ["flat", "weights"], ["scores"], name="scores", transB=1),
    ]
    weights = {"filters": FILTERS, "weights": WEIGHTS}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, ["b", 3, 16, 16])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["b", 6])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("network") / "tiny.onnx")


def expected(photos):
    """Mean of the map, and scores of the classes."""
    pixels = np.stack([cv2.resize(p, (16, 16), interpolation=cv2.INTER_AREA) for p in photos])
    pixels = (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    features = np.maximum(pixels @ FILTERS[:, :, 0, 0].T, 0).mean(axis=(1, 2))
    return features, features @ WEIGHTS.T


def test_features_are_what_the_network_returns(path):
    found = CNN(path, input_size=16).transform(PHOTOS)
    assert found.probabilities is None
    assert found.features.dtype == np.float32
    np.testing.assert_allclose(found.features, expected(PHOTOS)[1], rtol=1e-4, atol=1e-5)


def cut(path):
    """Write the part of the network that ends with its map."""
    onnx.utils.extract_model(path, path.with_name("map.onnx"), ["pixels"], ["map"])
    return path.with_name("map.onnx")


def test_a_map_is_averaged(path):
    found = CNN(cut(path), input_size=16).transform(PHOTOS)
    features, _ = expected(PHOTOS)
    np.testing.assert_allclose(found.features, features, rtol=1e-4, atol=1e-5)


def test_of_several_outputs_the_last_gives_the_features(tmp_path, path):
    model = onnx.load(path)
    map_info = helper.make_tensor_value_info("map", onnx.TensorProto.FLOAT, ["b", 4, 16, 16])
    model.graph.output.insert(0, map_info)
    onnx.save(model, tmp_path / "two.onnx")
    last = CNN(tmp_path / "two.onnx", input_size=16).transform(PHOTOS)
    np.testing.assert_allclose(last.features, expected(PHOTOS)[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("batch_size", "n_threads"), [(1, 3), (3, 2)])
def test_threads_and_batches_change_no_bit(path, batch_size, n_threads):
    path = cut(path)
    one = CNN(path, input_size=16).transform(PHOTOS, n_threads=1).features
    cnn = CNN(path, input_size=16, batch_size=batch_size)
    assert cnn.transform(PHOTOS, n_threads=n_threads).features.tobytes() == one.tobytes()


def test_the_cache_knows_the_file(tmp_path, path):
    other = tmp_path / "other.onnx"
    other.write_bytes(path.read_bytes())
    for file in (path, other):
        CNN(file, input_size=16).transform(PHOTOS, cache_dir=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1
    model = onnx.load(other)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(2 * FILTERS, "filters"))
    onnx.save(model, other)
    CNN(other, input_size=16).transform(PHOTOS, cache_dir=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*absent\.onnx"):
        CNN(tmp_path / "absent.onnx").transform(PHOTOS)


@pytest.mark.parametrize("keep", [0, 1, 60, -30])
def test_a_damaged_file_is_named(tmp_path, path, keep):
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"damaged\.onnx is damaged, truncated or no ONNX"):
        CNN(damaged, input_size=16).transform(PHOTOS)


def test_a_name_that_is_no_text_is_refused(tmp_path, path):
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(
        path.read_bytes().replace(b"GlobalAveragePool", b"GlobalAverageP\xefol")
    )
    with pytest.raises(ValueError, match=r"damaged\.onnx is damaged, truncated or no ONNX"):
        CNN(damaged, input_size=16).transform(PHOTOS)


def test_weights_in_other_files_are_not_read(tmp_path, path):
    model = onnx.load(path)
    onnx.save(model, tmp_path / "x.onnx", save_as_external_data=True, size_threshold=0)
    with pytest.raises(ValueError, match=r"x\.onnx is damaged, truncated or no ONNX"):
        CNN(tmp_path / "x.onnx", input_size=16).transform(PHOTOS)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ValueError, match="damaged, truncated or no ONNX"):
        CNN(tmp_path / "text.onnx").transform(PHOTOS)


def test_layers_that_do_not_fit_is_refused(tmp_path):
    file = write(tmp_path / "tiny.onnx")
    model = onnx.load(file)
    model.graph.node[3].CopyFrom(helper.make_node("Flatten", ["map"], ["flat"], name="flat"))
    onnx.save(model, file)
    with pytest.raises(ValueError, match=r"tiny\.onnx (cannot be|is .* can be) run"):
        CNN(file, input_size=16).transform(PHOTOS)
