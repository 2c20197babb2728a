import subprocess
import sys

import cv2
import numpy as np
import pytest

from kernelcore._extras import MissingExtraError
from kernelcore.datasets import make_scenes
from kernelcore.images import (
    CNN,
    CNNFeatures,
    UnreadableImagesError,
    UnreadableImagesWarning,
)

torch = pytest.importorskip("torch")
nn = torch.nn

EPS = np.finfo(np.float32).eps
PHOTOS = list(make_scenes(6, rng=2, size=(40, 56)).images)


class Means(nn.Module):
    """Mean colour, and a map of it."""

    def __init__(self):
        super().__init__()
        self.same = nn.Identity()

    def forward(self, pixels):
        return self.same(pixels).mean(dim=(2, 3))


class Small(nn.Module):
    """A classifier of 5 classes over a map of 7 channels."""

    def __init__(self, seed=0):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 7, 3, stride=2), nn.BatchNorm2d(7), nn.ReLU())
        self.head = nn.Linear(7, 5)
        rng = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=rng)
        self.dropout = nn.Dropout(0.5)

    def forward(self, pixels):
        return self.head(self.dropout(self.body(pixels)).mean(dim=(2, 3)))


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(len(PHOTOS))]
    for path, photo in zip(paths, PHOTOS, strict=True):
        assert cv2.imwrite(str(path), photo[:, :, ::-1])
    return paths


def small(network=None, **options):
    return CNN(network or Small().body, **{"input_size": 32} | options)


# -- what comes out of it


def test_a_map_is_averaged():
    network = Small().eval()
    cnn = small(mean=(0, 0, 0), std=(1, 1, 1), input_size=40)
    photo = PHOTOS[0][:, :40]
    found = cnn.transform([photo])
    with torch.inference_mode():
        pixels = torch.from_numpy(photo.transpose(2, 0, 1)[None].astype(np.float32) / 255)
        features = network.body(pixels).mean(dim=(2, 3))
    np.testing.assert_allclose(found.features, features, rtol=1e-5, atol=1e-6)
    assert found.features.dtype == np.float32
    assert repr(found) == "CNNFeatures(1 photos, 7 features)"


def test_features_are_what_the_network_returns():
    found = CNN(Small(), input_size=32).transform(PHOTOS)
    assert found.features.shape == (6, 5)
    assert found.probabilities is None
    assert repr(found) == "CNNFeatures(6 photos, 5 features)"


def test_a_module_is_left_as_it_was():
    network = Small().train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    CNN(network, input_size=32).transform(PHOTOS)
    assert network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_number_of_threads_changes_no_bit_and_torch_gets_its_own_back():
    before = torch.get_num_threads()
    one = small().transform(PHOTOS, n_threads=1)
    assert torch.get_num_threads() == before
    many = small().transform(PHOTOS, n_threads=3)
    assert one.features.tobytes() == many.features.tobytes()


class Asking(Means):
    """Asks how many threads torch has."""

    answers = None  # a list while a test listens

    def forward(self, pixels):
        self.answers.append(torch.get_num_threads())
        return super().forward(pixels)


def test_torch_keeps_to_the_thread_that_calls(monkeypatch):
    monkeypatch.setattr(Asking, "answers", [])
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    CNN(Asking(), input_size=8).transform(PHOTOS, n_threads=2)
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert Asking.answers == [1] * 6
    assert after == 2


@pytest.mark.parametrize("batch_size", [2, 4, 64])
def test_the_size_of_batches_changes_the_rounding_at_most(batch_size):
    one = small().transform(PHOTOS)
    batched = small(batch_size=batch_size).transform(PHOTOS)
    np.testing.assert_allclose(batched.features, one.features, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_nearly_the_same():
    on_gpu = small(device="cuda").transform(PHOTOS)
    np.testing.assert_allclose(on_gpu.features, small().transform(PHOTOS).features, rtol=1e-2)


def test_photos_may_be_files_or_pixels(files):
    np.testing.assert_array_equal(
        small().transform(files).features, small().transform(PHOTOS).features
    )


def test_progress_is_told_by_batches():
    steps = []
    small(batch_size=4).transform(PHOTOS, progress=lambda done, n: steps.append((done, n)))
    assert steps == [(1, 2), (2, 2)]


# -- the cache


class StoppedError(Exception):
    pass


class Counting(Means):
    """Counts its calls, and gives up at one of them."""

    calls = 0
    stop_at = None

    def forward(self, pixels):
        type(self).calls += 1
        if self.stop_at is not None and self.calls >= self.stop_at:
            raise StoppedError
        return super().forward(pixels)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(Counting, "calls", 0)
    monkeypatch.setattr(Counting, "stop_at", None)
    return Counting


def test_a_stopped_run_goes_on_where_it_was(tmp_path, counting, monkeypatch):
    cnn = CNN(counting(), input_size=8)
    monkeypatch.setattr(counting, "stop_at", 4)
    with pytest.raises(StoppedError):
        cnn.transform(PHOTOS, cache_dir=tmp_path, n_threads=1)
    monkeypatch.setattr(counting, "stop_at", None)
    monkeypatch.setattr(counting, "calls", 0)
    found = cnn.transform(PHOTOS, cache_dir=tmp_path, n_threads=1)
    assert counting.calls == 3
    np.testing.assert_array_equal(found.features, cnn.transform(PHOTOS).features)


def test_what_is_kept_depends_on_photos_network_and_settings(tmp_path, files):
    def entries(cnn, photos):
        found = cnn.transform(photos, cache_dir=tmp_path / "cache")
        assert found.features.tobytes() == cnn.transform(photos).features.tobytes()
        return len(list(tmp_path.rglob("cache/**/*.safetensors")))

    n = entries(small(), files)
    assert n == len(files)
    for known in ([str(path) for path in files], files[::-1], files[:-1], PHOTOS):
        assert entries(small(), known) == n + (len(PHOTOS) if known is PHOTOS else 0)
    n += len(PHOTOS)
    for cnn in [
        small(Small()),
        small(input_size=33),
        small(std=(1, 1, 1)),
        small(mean=(0, 0, 0)),
        small(batch_size=2),
        small(Small(seed=1).body),
    ]:
        n += len(files)
        assert entries(cnn, files) == n
    cv2.imwrite(str(files[0]), PHOTOS[0][:20])
    assert entries(small(), files) == n + 1


def test_threads_and_the_limit_of_pixels_leave_the_cache_alone(tmp_path, files):
    cache = tmp_path / "cache"
    small().transform(files, cache_dir=cache, n_threads=1)
    small(max_pixels=5000).transform(files, cache_dir=cache, n_threads=2)
    assert len(list(cache.iterdir())) == 1


# -- what cannot be read


def test_damaged_photos_are_all_named(files):
    files[1].write_bytes(files[1].read_bytes()[:100])
    files[4].unlink()
    with pytest.raises(UnreadableImagesError, match="2 of 6 images cannot be read") as caught:
        small().transform(files)
    assert set(caught.value.failures) == {1, 4}


def test_nothing_is_computed_once_a_file_is_missing(files, counting):
    files[4].unlink()
    with pytest.raises(UnreadableImagesError):
        CNN(counting(), input_size=8).transform(files)
    assert counting.calls == 0


def test_damaged_photos_are_skipped_and_tried_again(tmp_path, files):
    whole = files[1].read_bytes()
    expected = small().transform(files)
    files[1].write_bytes(whole[:100])
    with pytest.warns(UnreadableImagesWarning, match=r"1 of 6 .*\n.*1\.png") as caught:
        found = small().transform(files, on_error="skip", cache_dir=tmp_path / "cache")
    assert caught[0].filename == __file__
    assert isinstance(found, CNNFeatures)
    assert found.rows.tolist() == [0, 2, 3, 4, 5]
    assert list(found.failures) == [1]
    np.testing.assert_array_equal(found.features, expected.features[found.rows])
    with pytest.warns(UnreadableImagesWarning):
        again = small().transform(files, on_error="skip", cache_dir=tmp_path / "cache")
    assert again.features.tobytes() == found.features.tobytes()


# -- what is refused


class Returns(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, pixels):
        return self.function(pixels)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.sum(), r"features of shape \(b, d\) or \(b, d, h, w\).* got shape \(\)"),
        (lambda x: x[:, :, 0], r"got shape \(1, 3, 8\)"),
        (lambda x: torch.zeros(2, 3), r"b = 1 photos, got shape \(2, 3\)"),
        (lambda x: torch.zeros(len(x), 0), r"got shape \(1, 0\)"),
        (lambda x: [x], "must return a tensor, got list"),
        (lambda x: torch.full((len(x), 3), torch.nan), r"NaN or infinity for images\[0\]"),
    ],
)
def test_outputs_of_no_use_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        CNN(Returns(function), input_size=8).transform(PHOTOS)


def test_the_photo_is_named_that_gives_no_number():
    network = Returns(lambda x: torch.log(x.mean(dim=(2, 3)) + 1e-9))
    photos = [*PHOTOS[:2], np.zeros((8, 8, 3), np.uint8), PHOTOS[3]]
    cnn = CNN(network, input_size=8, mean=(-1, -1, -1), std=(1, 1, 1), batch_size=4)
    cnn.transform(photos)
    network.function = lambda x: torch.where(x[:, :, 0, 0] == 2, torch.inf, 0.0)
    photos[2][...] = 255
    with pytest.raises(ValueError, match=r"NaN or infinity for images\[2\]"):
        cnn.transform(photos)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"network": 3}, TypeError, "network must be .* got int"),
        ({"network": "resnet"}, ValueError, "network must be .* got 'resnet'"),
        ({"input_size": 0}, ValueError, "input_size"),
        ({"input_size": 2.5}, TypeError, "input_size"),
        ({"mean": (0, 0)}, ValueError, "mean must be 3 finite numbers"),
        ({"mean": (0, 0, np.nan)}, ValueError, "mean must be 3 finite numbers"),
        ({"std": (1, 0, 1)}, ValueError, "std must be positive"),
        ({"std": "grey"}, TypeError, "std"),
        ({"device": "gpu"}, ValueError, "device must be one that torch can use.*'gpu'"),
        ({"device": 0}, TypeError, "device must be a name"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"max_pixels": 0}, ValueError, "max_pixels"),
    ],
)
def test_parameters_are_checked(options, error, message):
    cnn = CNN(**{"network": Small()} | options)
    with pytest.raises(error, match=message):
        cnn.transform(PHOTOS)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"images": []}, ValueError),
        ({"images": "photo.png"}, TypeError),
        ({"images": [np.zeros((4, 4), np.float32)]}, TypeError),
        ({"images": PHOTOS, "on_error": "ignore"}, ValueError),
        ({"images": PHOTOS, "n_threads": 0}, ValueError),
    ],
)
def test_arguments_are_checked(arguments, error):
    with pytest.raises(error):
        small().transform(**arguments)


def test_parameters_are_a_scikit_learn_estimator_s():
    from sklearn.base import clone

    cnn = small(std=(1, 2, 3))
    copy = clone(cnn)
    assert copy.get_params().keys() == cnn.get_params().keys()
    assert copy.fit() is copy
    np.testing.assert_array_equal(
        copy.transform(PHOTOS).features, cnn.transform(PHOTOS).features
    )


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'torch, .*"kernelcore\[deep\]"'):
        small().transform(PHOTOS)


def test_torch_is_loaded_only_to_be_used():
    code = "import sys, kernelcore.images; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
