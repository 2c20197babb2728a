"""Dense features: colours in CIELAB, energies of texture filters, and SIFT."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses, refuses_each

from kernelcore.images import cielab, dense_sift, oriented_energy, read_image
from kernelcore.reference import images as reference

FEATURES = (cielab, oriented_energy, dense_sift)
IMAGE = np.random.default_rng(0).integers(0, 256, (37, 29), np.uint8)


def noise(*shape, seed=0, high=256):
    return np.random.default_rng(seed).integers(0, high, shape, np.uint8)


@pytest.mark.parametrize("feature", FEATURES)
def test_what_is_no_picture_is_refused(feature):
    for image in (np.zeros((2, 2, 3)), [[1, 2]], "photo.jpg"):
        refuses(TypeError, "image", feature, image)
    for shape in ((2, 2, 2), (0, 2, 3), (1, 2, 2, 3), (8,)):
        refuses(ValueError, "image", feature, np.zeros(shape, np.uint8))


def test_settings_are_checked():
    energies = {"n_orientations": [0, 2.0], "scales": [[]]}
    refuses_each(oriented_energy, energies, image=IMAGE, n_orientations=2, scales=[1.0])
    for scales, place in (([1.0, 0.1], 1), ([np.nan], 0), (["1"], 0)):
        error = TypeError, ValueError
        refuses(error, rf"scales\[{place}\]", oriented_energy, IMAGE, scales=scales)
    odd = {"step": [0, 1.5], "bin_size": [0.4, np.inf]}
    refuses_each(dense_sift, odd, image=IMAGE, step=2, bin_size=3)


def test_colours_equal_the_formula_on_a_grid():
    levels = np.arange(0, 256, 15, dtype=np.uint8)
    rgb = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(18, -1, 3)
    features = cielab(rgb)
    assert features.values.dtype == np.float32
    assert features.values.shape == (3, 18, 324)
    error = np.abs(features.points.reshape(18, 324, 3) - reference.cielab(rgb))
    assert error.max() < 0.5
    assert error.mean() < 0.1


def test_points_are_the_planes_without_a_copy():
    features = cielab(noise(5, 7, 3))
    assert features.points.shape == (35, 3)
    assert (features.points[9] == features.values[:, 1, 2]).all()
    assert np.shares_memory(features.points, features.values)
    assert features.y.tolist() == [0, 1, 2, 3, 4]
    assert features.x.tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_grey_has_no_colour_and_colour_no_other_texture_than_its_grey():
    for shape in ((4, 6), (4, 6, 1)):
        assert np.abs(cielab(noise(*shape)).values[1:]).max() < 0.1
    threefold = np.repeat(IMAGE[:, :, None], 3, axis=2)
    assert oriented_energy(IMAGE).values.shape == (18, 37, 29)  # three scales, six directions
    assert (oriented_energy(threefold).values == oriented_energy(IMAGE).values).all()


@given(
    size=st.tuples(st.integers(1, 24), st.integers(1, 24)), n_orientations=st.integers(1, 7),
    scale=st.floats(0.4, 3.0), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_energies_equal_the_reference(size, n_orientations, scale, seed):
    image, scales = noise(*size, seed=seed), [scale, 1.5 * scale]
    features = oriented_energy(image, n_orientations=n_orientations, scales=scales)
    expected = reference.oriented_energy(image, n_orientations, scales)
    assert features.values.dtype == np.float32
    # Sums of grey levels up to 255 with weights that add up to 1, in float32.
    np.testing.assert_allclose(features.values, expected, atol=255 * 1e-5)
    assert features.values.max() <= 255


@given(
    size=st.tuples(st.integers(1, 14), st.integers(1, 14)), step=st.integers(1, 6),
    bin_size=st.floats(0.5, 4.0), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_sift_equals_the_reference(size, step, bin_size, seed):
    image = noise(*size, seed=seed)
    features = dense_sift(image, step=step, bin_size=bin_size)
    assert features.values.dtype == np.float32
    expected = reference.dense_sift(image, features.y[:2], features.x[:2], bin_size)
    found = features.values[:, :2, :2].transpose(1, 2, 0)
    # OpenCV's angles are good to a third of a degree; a bin is 45 wide.
    np.testing.assert_allclose(found, expected, atol=0.02)


def opencv_sift(grey, features, bin_size):
    cv2 = pytest.importorskip("cv2")
    # Sigma 0.5 is what OpenCV takes the input to have: it adds next to no blur of its own.
    sift = cv2.SIFT_create(sigma=0.5)
    points = [(float(x), float(y)) for y in features.y for x in features.x]
    keypoints = [cv2.KeyPoint(x, y, 2 * bin_size / 3, 0.0, 0.0, 0) for x, y in points]
    kept, descriptors = sift.compute(grey, keypoints)
    assert [keypoint.pt for keypoint in kept] == points
    return descriptors


def in_bytes(features):
    return np.minimum(np.rint(512 * features.points), 255)


@pytest.mark.parametrize("bin_size", [2.0, 3.0, 4.0, 8.5])
def test_sift_agrees_with_opencv_on_the_same_grid(bin_size):
    rng = np.random.default_rng(1)
    grey = np.kron(rng.integers(0, 200, (12, 16)), np.ones((6, 6))).astype(np.uint8)
    grey += rng.integers(0, 40, grey.shape, np.uint8)
    features = dense_sift(grey, step=5, bin_size=bin_size)
    assert np.abs(in_bytes(features) - opencv_sift(grey, features, bin_size)).max() <= 1


def test_the_grid_of_sift_keeps_half_a_descriptor_from_the_border():
    features = dense_sift(np.zeros((224, 100), np.uint8), step=2, bin_size=3)
    assert features.values.shape == (128, 106, 44)
    assert features.y[[0, 1, -1]].tolist() == [6, 8, 216]
    assert features.x[[0, 1, -1]].tolist() == [6, 8, 92]
    for size, expected in ((1, [0]), (2, [0]), (3, [1]), (13, [6])):
        small = dense_sift(np.zeros((size, 1), np.uint8), step=2, bin_size=3)
        assert (small.y.tolist(), small.values.shape) == (expected, (128, 1, 1))


def test_descriptors_have_unit_length_or_are_zero():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 40:] = noise(60, 20, 3)
    lengths = np.linalg.norm(dense_sift(image).values, axis=0)
    assert lengths[0, 0] == 0
    np.testing.assert_allclose(lengths[:, 20:], 1, rtol=1e-5)
    assert set(np.unique(lengths.round(4))) == {0.0, 1.0}


@pytest.mark.realdata
def test_sift_agrees_with_opencv_on_a_photo(data_root):
    photo = read_image(data_root / "flickr8k/images/1000268201_693b08cb0e.jpg")
    grey = pytest.importorskip("cv2").cvtColor(photo, 7)
    features = dense_sift(photo, step=8)
    difference = np.abs(in_bytes(features) - opencv_sift(grey, features, 3.0))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3
