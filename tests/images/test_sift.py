import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.images import dense_sift, read_image
from kernelcore.reference.images import dense_sift as reference_sift


@given(
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    step=st.integers(1, 6),
    bin_size=st.floats(0.5, 4.0),
    seed=st.integers(0, 99),
)
@settings(max_examples=15, deadline=None)
def test_equals_the_reference(height, width, step, bin_size, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)
    features = dense_sift(image, step=step, bin_size=bin_size)
    assert features.values.dtype == np.float32
    expected = reference_sift(image, features.y[:2], features.x[:2], bin_size)
    # OpenCV's angles are good to a third of a degree; a bin is 45 wide.
    np.testing.assert_allclose(
        features.values[:, :2, :2].transpose(1, 2, 0), expected, atol=0.02
    )


def opencv_sift(grey, features, bin_size):
    cv2 = pytest.importorskip("cv2")
    # Sigma 0.5 is what OpenCV takes the input to have: it adds next to no blur of its own.
    sift = cv2.SIFT_create(sigma=0.5)
    points = [(float(x), float(y)) for y in features.y for x in features.x]
    keypoints = [cv2.KeyPoint(x, y, 2 * bin_size / 3, 0.0, 0.0, 0) for x, y in points]
    kept, descriptors = sift.compute(grey, keypoints)
    assert [keypoint.pt for keypoint in kept] == points
    return descriptors


@pytest.mark.parametrize("bin_size", [2.0, 3.0, 4.0, 8.5])
def test_agrees_with_opencv_on_the_same_grid(bin_size):
    rng = np.random.default_rng(1)
    grey = np.kron(rng.integers(0, 200, (12, 16)), np.ones((6, 6))).astype(np.uint8)
    grey += rng.integers(0, 40, grey.shape, np.uint8)
    features = dense_sift(grey, step=5, bin_size=bin_size)
    ours = np.minimum(np.rint(512 * features.points), 255)
    assert np.abs(ours - opencv_sift(grey, features, bin_size)).max() <= 1


@pytest.mark.realdata
def test_agrees_with_opencv_on_a_photo(data_root):
    photo = read_image(data_root / "flickr8k/images/1000268201_693b08cb0e.jpg")
    grey = pytest.importorskip("cv2").cvtColor(photo, 7)
    features = dense_sift(photo, step=8)
    ours = np.minimum(np.rint(512 * features.points), 255)
    difference = np.abs(ours - opencv_sift(grey, features, 3.0))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3


@pytest.mark.realdata
@pytest.mark.parametrize("bin_size", [3.0, 12.0, 24.0])
def test_agrees_with_opencv_in_direction_on_photos(data_root, bin_size):
    photos = sorted((data_root / "flickr8k/images").glob("*.jpg"))[::2000]
    assert len(photos) > 2
    for path in photos:
        photo = read_image(path)
        features = dense_sift(photo, step=8, bin_size=bin_size)
        grey = pytest.importorskip("cv2").cvtColor(photo, 7)
        theirs = opencv_sift(grey, features, bin_size).astype(np.float64)
        is_textured = theirs.any(axis=1)
        cosines = np.einsum("ij,ij->i", features.points, theirs)[is_textured]
        cosines /= np.linalg.norm(theirs[is_textured], axis=1)  # ours have unit length
        assert np.median(cosines) >= 0.999
        assert cosines.min() >= 0.95


def test_grid_keeps_half_a_descriptor_from_the_border():
    features = dense_sift(np.zeros((224, 100), np.uint8), step=2, bin_size=3)
    assert features.values.shape == (128, 106, 44)
    assert features.y[[0, 1, -1]].tolist() == [6, 8, 216]
    assert features.x[[0, 1, -1]].tolist() == [6, 8, 92]


@pytest.mark.parametrize(("size", "expected"), [(1, [0]), (2, [0]), (3, [1]), (13, [6])])
def test_small_images_have_a_point(size, expected):
    features = dense_sift(np.zeros((size, 1), np.uint8), step=2, bin_size=3)
    assert features.y.tolist() == expected
    assert features.values.shape == (128, 1, 1)


def test_unit_length_or_zero():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 40:] = np.random.default_rng(0).integers(0, 256, (60, 20, 3), np.uint8)
    lengths = np.linalg.norm(dense_sift(image).values, axis=0)
    assert lengths[0, 0] == 0
    np.testing.assert_allclose(lengths[:, 20:], 1, rtol=1e-5)
    assert set(np.unique(lengths.round(4))) == {0.0, 1.0}


def test_contrast_and_brightness_do_not_matter():
    image = np.random.default_rng(0).integers(0, 60, (40, 40), np.uint8)
    plain = dense_sift(image).values
    np.testing.assert_allclose(dense_sift(4 * image).values, plain, atol=1e-5)
    np.testing.assert_allclose(dense_sift(image + 100).values, plain, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"step": 0}, ValueError, "step must be an integer >= 1"),
        ({"step": 1.5}, TypeError, "step must be an integer"),
        ({"bin_size": 0.4}, ValueError, "bin_size must be a number >= 0.5"),
        ({"bin_size": np.inf}, ValueError, "bin_size must be finite"),
    ],
)
def test_bad_input(options, error, match):
    with pytest.raises(error, match=match):
        dense_sift(np.zeros((8, 8), np.uint8), **options)
    with pytest.raises(ValueError, match="image must have shape"):
        dense_sift(np.zeros(8, np.uint8))
