"""Features of networks of one's own: torch modules and ONNX files."""

import subprocess
import sys

import cv2
import numpy as np
import pytest
from refusals import refuses
from sklearn.base import clone

from kernelcore._extras import MissingExtraError
from kernelcore.datasets import make_scenes
from kernelcore.images import CNN

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
nn = torch.nn

EPS = np.finfo(np.float32).eps
PHOTOS = list(make_scenes(6, rng=2, size=(40, 56)).images)
RNG = np.random.default_rng(0)
IMAGENET = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])


def small(seed=0, **options):
    """A map of 7 channels."""
    body = nn.Sequential(nn.Conv2d(3, 7, 3, stride=2), nn.BatchNorm2d(7), nn.ReLU())
    rng = torch.Generator().manual_seed(seed)
    for parameter in body.parameters():
        nn.init.normal_(parameter, generator=rng)
    return CNN(body, **{"input_size": 32} | options)


class Calls(nn.Module):
    """Keeps the arguments of a function that it calls, by default the mean colour."""

    def __init__(self, function=lambda pixels: pixels.mean(dim=(2, 3))):
        super().__init__()
        self.function, self.seen = function, Shared()

    def forward(self, pixels):
        self.seen.append((pixels, torch.get_num_threads()))
        return self.function(pixels)


class Shared(list):
    """A list that copies of a module share."""

    def __deepcopy__(self, memo):
        return self


def test_a_map_is_averaged_and_a_module_left_as_it_was():
    cnn = small(mean=(0, 0, 0), std=(1, 1, 1), input_size=40)
    network, photo = cnn.network.train(), PHOTOS[0][:, :40]
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    found = cnn.transform([photo])
    assert network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])
    with torch.inference_mode():
        pixels = torch.from_numpy(photo.transpose(2, 0, 1)[None].astype(np.float32) / 255)
        features = network.eval()(pixels).mean(dim=(2, 3))
    np.testing.assert_allclose(found.features, features, rtol=1e-5, atol=1e-6)
    assert (found.features.dtype, found.probabilities) == (np.float32, None)
    assert repr(found) == "CNNFeatures(1 photos, 7 features)"


def test_torch_keeps_to_the_thread_that_calls():
    network, before = Calls(), torch.get_num_threads()
    torch.set_num_threads(2)
    CNN(network, input_size=8).transform(PHOTOS, n_threads=2)
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert [n_threads for _, n_threads in network.seen] == [1] * 6
    assert after == 2


@pytest.mark.parametrize(("batch_size", "n_threads"), [(1, 3), (2, 1), (4, 2), (64, None)])
def test_threads_change_no_bit_and_batches_the_rounding_at_most(batch_size, n_threads):
    one = small().transform(PHOTOS, n_threads=1).features
    many = small(batch_size=batch_size).transform(PHOTOS, n_threads=n_threads).features
    np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)
    assert batch_size > 1 or many.tobytes() == one.tobytes()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_nearly_the_same():
    on_gpu = small(device="cuda").transform(PHOTOS)
    np.testing.assert_allclose(on_gpu.features, small().transform(PHOTOS).features, rtol=1e-2)


def test_progress_is_told_by_batches():
    steps = []
    small(batch_size=4).transform(PHOTOS, progress=lambda done, n: steps.append((done, n)))
    assert steps == [(1, 2), (2, 2)]


def test_pixels_are_rgb_and_standardised_by_default_as_for_imagenet():
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    photo = np.full((8, 8, 3), [255, 51, 0], np.uint8)
    cnn = CNN(network, input_size=8, mean=(0.5, 0.1, 0.2), std=(0.5, 0.25, 2))
    found = cnn.transform([photo]).features[0]
    np.testing.assert_allclose(found, [1, 0.4, -0.1], atol=4 * EPS)
    found = CNN(network, input_size=8).transform([photo]).features[0]
    expected = ([1, 0.2, 0] - IMAGENET[0]) / IMAGENET[1]
    np.testing.assert_allclose(found, expected, rtol=8 * EPS, atol=4 * EPS)


def plain(photo, size):
    """The pixels that the network sees, as fractions of 1."""
    cnn = CNN(nn.Flatten(), mean=(0, 0, 0), std=(1, 1, 1), input_size=size)
    return cnn.transform([photo]).features.reshape(3, size, size)


def test_large_photos_are_averaged_and_those_of_the_right_size_left_alone():
    photo = RNG.integers(0, 256, (24, 48, 3), np.uint8)
    expected = photo.reshape(12, 2, 12, 4, 3).mean(axis=(1, 3)).transpose(2, 0, 1)
    np.testing.assert_allclose(plain(photo, 12) * 255, expected, atol=0.51)
    photo = photo[:, :24]
    np.testing.assert_array_equal(np.rint(plain(photo, 24) * 255), photo.transpose(2, 0, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_side_that_is_too_long_is_averaged_and_one_that_is_too_short_enlarged(axis):
    photo = np.zeros((4, 96, 3), np.uint8)
    photo[2:, 1::2] = 200  # thin stripes on the lower half
    seen = plain(photo if axis == 0 else photo.swapaxes(0, 1), 24)[0] * 255
    along, across = np.ptp(seen, axis=1 - axis), seen.mean(axis=1 - axis)
    assert along.max() < 1.5
    assert across[0] < 1.5
    assert abs(across[-1] - 100) < 1.5
    assert len(np.unique(across.round())) > 4


@pytest.mark.parametrize(
    ("named", "function"),
    [
        (r"\(b, d\) or \(b, d, h, w\).* \(\)", lambda x: x.sum()),
        (r"\(1, 3, 8\)", lambda x: x[:, :, 0]),
        (r"b = 1 .*\(2, 3\)", lambda x: torch.zeros(2, 3)),
        (r"\(1, 0\)", lambda x: torch.zeros(len(x), 0)),
        ("list", lambda x: [x]),
        (r"images\[0\]", lambda x: torch.full((len(x), 3), torch.nan)),
    ],
)
def test_outputs_of_no_use_are_refused(named, function):
    cnn = CNN(Calls(function), input_size=8)
    refuses(ValueError, f".*{named}", cnn.transform, PHOTOS)


def test_the_photo_is_named_that_gives_no_number():
    network = Calls(lambda x: torch.where(x[:, :, 0, 0] == 2, torch.inf, 0.0))
    photos = [*PHOTOS[:2], np.full((8, 8, 3), 255, np.uint8), PHOTOS[3]]
    cnn = CNN(network, input_size=8, mean=(-1, -1, -1), std=(1, 1, 1), batch_size=4)
    refuses(ValueError, r".*images\[2\]", cnn.transform, photos)


ODD_PARAMETERS = {
    "network": [3, "resnet"], "input_size": [0, 2.5], "mean": [(0, 0), (0, 0, np.nan)],
    "std": [(1, 0, 1), "grey"], "device": ["gpu", 0], "batch_size": [0], "max_pixels": [0],
}  # fmt: skip


def test_parameters_are_checked():
    for name, values in ODD_PARAMETERS.items():
        for value in values:
            cnn = CNN(**{"network": Calls(), name: value})
            refuses((TypeError, ValueError), name, cnn.transform, PHOTOS)


def test_parameters_are_a_scikit_learn_estimator_s():
    cnn = small(std=(1, 2, 3))
    copy = clone(cnn)
    assert copy.get_params().keys() == cnn.get_params().keys()
    assert copy.fit() is copy
    found, expected = (own.transform(PHOTOS).features for own in (copy, cnn))
    np.testing.assert_array_equal(found, expected)


def test_torch_is_loaded_only_to_be_used_and_named_where_it_is_missing(monkeypatch):
    code = "import sys, kernelcore.images; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code]).strip() == b"False"
    cnn = small()
    monkeypatch.setitem(sys.modules, "torch", None)
    refuses(MissingExtraError, r'torch, .*"kernelcore\[deep\]', cnn.transform, PHOTOS)


FILTERS = RNG.normal(size=(4, 3, 1, 1)).astype(np.float32)
WEIGHTS = RNG.normal(size=(6, 4)).astype(np.float32)


# A classifier of 6 classes: a map of 4 channels, its mean, a linear layer.
TINY = """
<ir_version: 8, opset_import: ["": 13]>
tiny (float[b, 3, 16, 16] pixels) => (float[b, 6] scores) {
    responses = Conv <kernel_shape = [1, 1]> (pixels, filters)
    map = Relu(responses)
    mean = GlobalAveragePool(map)
    flat = Flatten(mean)
    scores = Gemm <transB = 1> (flat, weights)
}
"""


def tiny(filters=FILTERS, text=TINY):
    model = onnx.parser.parse_model(text)
    for name, array in {"filters": filters, "weights": WEIGHTS}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


@pytest.fixture
def path(tmp_path):
    onnx.save(tiny(), tmp_path / "tiny.onnx")
    return tmp_path / "tiny.onnx"


def of_file(path, **options):
    return CNN(path, input_size=16, **options)


def test_features_are_the_last_output_or_the_mean_of_a_map(path):
    squares = [cv2.resize(photo, (16, 16), interpolation=cv2.INTER_AREA) for photo in PHOTOS]
    pixels = (np.stack(squares) / 255 - IMAGENET[0]) / IMAGENET[1]
    means = np.maximum(pixels @ FILTERS[:, :, 0, 0].T, 0).mean(axis=(1, 2))
    two, part = path.with_name("two.onnx"), path.with_name("map.onnx")
    outputs = TINY.replace("(float[b, 6]", "(float[b, 4, 16, 16] map, float[b, 6]")
    onnx.save(tiny(text=outputs), two)
    onnx.utils.extract_model(path, part, ["pixels"], ["map"])
    for file, expected in ((path, means @ WEIGHTS.T), (two, means @ WEIGHTS.T), (part, means)):
        found = of_file(file).transform(PHOTOS, n_threads=1)
        assert (found.probabilities, found.features.dtype) == (None, np.float32)
        np.testing.assert_allclose(found.features, expected, rtol=1e-4, atol=1e-5)
    for batch_size, n_threads in ((1, 3), (3, 2)):
        many = of_file(part, batch_size=batch_size).transform(PHOTOS, n_threads=n_threads)
        assert many.features.tobytes() == found.features.tobytes()


def test_the_cache_knows_the_file(tmp_path, path):
    other, cache = tmp_path / "other.onnx", tmp_path / "cache"
    other.write_bytes(path.read_bytes())
    for file in (path, other):
        of_file(file).transform(PHOTOS, cache_dir=cache)
    assert len(list(cache.iterdir())) == 1
    onnx.save(tiny(2 * FILTERS), other)
    of_file(other).transform(PHOTOS, cache_dir=cache)
    assert len(list(cache.iterdir())) == 2


def test_files_that_are_missing_damaged_or_do_not_fit_are_named(tmp_path, path):
    absent = of_file(tmp_path / "absent.onnx")
    refuses(FileNotFoundError, r".*absent\.onnx", absent.transform, PHOTOS)
    whole, of_map = path.read_bytes(), tiny(text=TINY.replace("Flatten(mean)", "Flatten(map)"))
    odd_name = whole.replace(b"GlobalAveragePool", b"GlobalAverageP\xefol")
    onnx.save(tiny(), path, save_as_external_data=True, size_threshold=0)
    contents = [whole[:keep] for keep in (0, 1, 60, -30)] + [odd_name, path.read_bytes()]
    for content in (*contents, b"no network", of_map.SerializeToString()):
        path.write_bytes(content)
        refuses(ValueError, r".*tiny\.onnx", of_file(path).transform, PHOTOS)
