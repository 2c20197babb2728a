import numpy as np
import pytest

from kernelcore.images import cielab
from kernelcore.reference.images import cielab as reference_cielab


def test_equals_the_formula_on_a_grid_of_all_colours():
    levels = np.arange(0, 256, 15, dtype=np.uint8)
    rgb = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(18, -1, 3)
    features = cielab(rgb)
    assert features.values.dtype == np.float32
    assert features.values.shape == (3, 18, 324)
    error = np.abs(features.points.reshape(18, 324, 3) - reference_cielab(rgb))
    assert error.max() < 0.5
    assert error.mean() < 0.1


def test_primaries_in_the_right_order():
    # Values of the standard's own tables, rounded.
    rgb = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8)
    expected = [[53.2, 80.1, 67.2], [87.7, -86.2, 83.2], [32.3, 79.2, -107.9]]
    np.testing.assert_allclose(cielab(rgb).points, expected, atol=0.5)


def test_points_are_the_planes_without_a_copy():
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    features = cielab(image)
    assert features.points.shape == (35, 3)
    assert (features.points[9] == features.values[:, 1, 2]).all()
    assert np.shares_memory(features.points, features.values)
    assert features.y.tolist() == [0, 1, 2, 3, 4]
    assert features.x.tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1)])
def test_grey_has_no_colour(shape):
    grey = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert np.abs(cielab(grey).values[1:]).max() < 0.1


@pytest.mark.parametrize(
    ("image", "error", "match"),
    [
        (np.zeros((2, 2, 3)), TypeError, "image must be .* uint8, got an array of float64"),
        ([[1, 2]], TypeError, r"image must be .* got \[\[1, 2\]\]"),
        (np.zeros((2, 2, 2), np.uint8), ValueError, r"image must have shape .* \(2, 2, 2\)"),
        (np.zeros((0, 2, 3), np.uint8), ValueError, r"and pixels, got \(0, 2, 3\)"),
        (np.zeros((1, 2, 2, 3), np.uint8), ValueError, "image must have shape"),
    ],
)
def test_bad_input(image, error, match):
    with pytest.raises(error, match=match):
        cielab(image)
