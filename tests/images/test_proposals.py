import copy
import math
import pickle

import numpy as np
import pytest

from kernelcore.images import Boxes, FastestDet, Grid, proposals, read_image
from kernelcore.images.proposals import find_regions, without_scores

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (60, 90, 3), np.uint8)


# -- grids


@pytest.mark.parametrize("level", [1, 2, 3, 5])
def test_windows_of_a_level_cover_the_photo_and_share_halves(level):
    corners = Grid((level,)).propose(PHOTO).corners
    assert corners.shape == (level**2, 4)
    widths, heights = (corners[:, 2:] - corners[:, :2]).T
    np.testing.assert_allclose(widths, 2 * 90 / (level + 1), rtol=1e-5)
    np.testing.assert_allclose(heights, 2 * 60 / (level + 1), rtol=1e-5)
    for axis, length in ((0, 90), (1, 60)):
        starts = np.unique(corners[:, axis])
        np.testing.assert_allclose(
            starts, np.arange(level) * length / (level + 1), rtol=1e-5, atol=1e-5
        )
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


def test_a_grid_fits_a_single_pixel():
    corners = Grid().propose(PHOTO[:1, :1]).corners
    assert (corners[:, :2] < corners[:, 2:]).all()
    assert corners.max() <= 1 + 1e-6


@pytest.mark.parametrize(
    ("levels", "error"),
    [
        ((), ValueError),
        ((0,), ValueError),
        ((65,), ValueError),
        ((2.5,), TypeError),
        (3, TypeError),
        ("23", TypeError),
    ],
)
def test_levels_are_checked(levels, error):
    with pytest.raises(error, match="levels"):
        Grid(levels)


# -- the whole photo, and what proposers add


class Fixed:
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
        return "fixed"


def test_the_whole_photo_comes_first_and_proposers_fill_up():
    first = Fixed([[1, 2, 3, 4]], [0.5], [7])
    second = Fixed([[0, 0, 5, 5], [2, 2, 9, 9], [3, 3, 9, 9]])
    boxes = find_regions(PHOTO, [first, second], 4)
    expected = [[0, 0, 90, 60], [1, 2, 3, 4], [0, 0, 5, 5], [2, 2, 9, 9]]
    assert boxes.corners.tolist() == expected
    assert boxes.corners.dtype == np.float32
    np.testing.assert_array_equal(boxes.scores, [np.nan, 0.5, np.nan, np.nan])
    assert boxes.labels.tolist() == [-1, 7, -1, -1]


def test_nobody_is_asked_when_there_are_enough():
    first, second = Fixed([[1, 2, 3, 4]]), Fixed([[0, 0, 5, 5]])
    assert len(find_regions(PHOTO, [first, second], 2).corners) == 2
    assert second.n_calls == 0
    assert len(find_regions(PHOTO, [first], 1).corners) == 1
    assert first.n_calls == 1


def test_boxes_are_cut_at_the_border_and_left_out_beyond_it():
    proposer = Fixed(
        [[-5, -5, 10, 10], [80, 50, 999, 999], [90, 0, 95, 9], [5, 5, 5, 9], [7, 9, 6, 10]]
    )
    boxes = find_regions(PHOTO, [proposer], 20)
    assert boxes.corners[1:].tolist() == [[0, 0, 10, 10], [80, 50, 90, 60]]
    filled = find_regions(PHOTO, [proposer, Fixed([[1, 1, 2, 2]] * 5)], 6)
    assert filled.corners[3:].tolist() == [[1, 1, 2, 2]] * 3


# -- the detector


def detections(output, threshold, overlap, height, width):
    """Boxes of a FastestDet map, cell by cell: (corners, score, class)."""
    _, n_rows, n_columns = output.shape
    found = []
    for i in range(n_rows):
        for j in range(n_columns):
            presence, t_x, t_y, t_w, t_h, *classes = output[:, i, j].tolist()
            x = (j + math.tanh(t_x)) / n_columns * width
            y = (i + math.tanh(t_y)) / n_rows * height
            half_w = width / (1 + math.exp(-t_w)) / 2
            half_h = height / (1 + math.exp(-t_h)) / 2
            corners = [
                max(x - half_w, 0),
                max(y - half_h, 0),
                min(x + half_w, width),
                min(y + half_h, height),
            ]
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


def write_detector(path, output, channels=(0, 0, 0)):
    """An ONNX file that returns `output`, the mean of `channels` added to the presence."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["mean"], name="mean"),
        helper.make_node("Conv", ["mean", "mix"], ["mixed"], name="mix", kernel_shape=[1, 1]),
        helper.make_node("Add", ["mixed", "output"], ["map"], name="map"),
    ]
    mix = np.zeros((8, 3, 1, 1), np.float32)
    mix[0, :, 0, 0] = channels
    weights = {"mix": mix, "output": output[None]}
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("pixels", kind, [1, 3, 352, 352])],
        [helper.make_tensor_value_info("map", kind, [1, *output.shape])],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
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


@pytest.fixture
def bounds(monkeypatch):
    """Set the lowest score and the largest overlap."""

    def set_bounds(score=0.25, overlap=0.45):
        monkeypatch.setattr(proposals, "_LOWEST_SCORE", score)
        monkeypatch.setattr(proposals, "_LARGEST_OVERLAP", overlap)

    return set_bounds


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.6])
@pytest.mark.parametrize("overlap", [0.1, 0.45, 1.0])
def test_boxes_are_those_of_the_map_cell_by_cell(
    detector_file, output, bounds, threshold, overlap
):
    bounds(threshold, overlap)
    found = FastestDet(detector_file).propose(PHOTO)
    expected = detections(output, threshold, overlap, 60, 90)
    np.testing.assert_allclose(found.corners, [box[0] for box in expected], atol=1e-4)
    np.testing.assert_allclose(found.scores, [box[1] for box in expected], rtol=1e-5)
    assert found.labels.tolist() == [box[2] for box in expected]


@pytest.mark.parametrize(("score", "n"), [(0.25, 1), (0.2499, 0)])
def test_the_threshold_is_the_lowest_score_kept(tmp_path, score, n):
    output = np.zeros((8, 1, 1), np.float32)
    output[0], output[5] = score, 1
    path = write_detector(tmp_path / "half.onnx", output)
    found = FastestDet(path).propose(PHOTO)
    assert found.scores.shape == found.labels.shape == (n,)
    assert found.corners.shape == (n, 4)


def test_lesser_boxes_of_a_class_are_left_out(detector_file, bounds):
    counts = []
    for overlap in (0.1, 0.45, 1):
        bounds(0, overlap)
        counts.append(len(FastestDet(detector_file).propose(PHOTO).labels))
    assert 3 < counts[0] < counts[1] < counts[2] == 30


def test_a_detector_can_be_copied(detector_file):
    detector = FastestDet(detector_file, class_names=["a", "b", "c"])
    for copied in (copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))):
        assert copied == detector
        assert copied.identity() == detector.identity()
        np.testing.assert_array_equal(
            copied.propose(PHOTO).corners, detector.propose(PHOTO).corners
        )


def test_class_names_may_come_from_a_file(tmp_path, detector_file):
    (tmp_path / "names.txt").write_text("cat \ndog\n\n", encoding="utf-8")
    assert FastestDet(detector_file, class_names=tmp_path / "names.txt").class_names == (
        "cat",
        "dog",
    )


def test_files_of_a_detector_are_checked(tmp_path, detector_file):
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        FastestDet(tmp_path / "absent.onnx")
    with pytest.raises(FileNotFoundError, match=r"names\.txt"):
        FastestDet(detector_file, class_names=tmp_path / "names.txt")
    (tmp_path / "cut.onnx").write_bytes(detector_file.read_bytes()[:-50])
    with pytest.raises(ValueError, match="damaged, truncated"):
        FastestDet(tmp_path / "cut.onnx")


@pytest.mark.realdata
def test_fastestdet_finds_what_captions_speak_of(data_root):
    models, photos = data_root / "models", data_root / "flickr8k" / "images"
    detector = FastestDet(models / "FastestDet.onnx", class_names=models / "coco.names")
    assert len(detector.class_names) == 80
    captions = {}
    for line in (data_root / "flickr8k" / "Flickr8k.token.txt").read_text().splitlines():
        name, _, text = line.partition("\t")
        captions.setdefault(name.split("#")[0], []).append(text.lower())
    names = [name for name in captions if (photos / name).is_file()][:80]
    dog = detector.class_names.index("dog")
    said, seen = [], []
    for name in names:
        image = read_image(photos / name)
        boxes = detector.propose(image)
        assert (np.diff(boxes.scores) <= 0).all()
        assert (boxes.corners >= 0).all()
        assert (boxes.corners <= [*image.shape[1::-1], *image.shape[1::-1]]).all()
        said.append(sum("dog" in text for text in captions[name]))
        seen.append(boxes.scores[boxes.labels == dog].max(initial=0))
    said, seen = np.array(said), np.array(seen)
    assert (seen[said == 5] > 0.4).mean() > 0.6
    assert (seen[said == 0] > 0.4).mean() < 0.1
