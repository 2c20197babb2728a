"""What a network is given: size and colours of a photo."""

import numpy as np
import pytest

from kernelcore.datasets import make_scenes
from kernelcore.images import (
    CNN,
)

torch = pytest.importorskip("torch")
nn = torch.nn

EPS = np.finfo(np.float32).eps
PHOTOS = list(make_scenes(1, rng=2, size=(40, 56)).images)


def means():
    """A network of the mean colour."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def test_pixels_are_rgb_and_standardised():
    photo = np.zeros((8, 8, 3), np.uint8)
    photo[..., 0], photo[..., 1], photo[..., 2] = 255, 51, 0
    cnn = CNN(means(), input_size=8, mean=(0.5, 0.1, 0.2), std=(0.5, 0.25, 2))
    found = cnn.transform([photo]).features[0]
    np.testing.assert_allclose(found, [1, 0.4, -0.1], atol=4 * EPS)


def test_colours_default_to_those_of_imagenet():
    photo = np.full((8, 8, 3), 255, np.uint8)
    found = CNN(means(), input_size=8).transform([photo]).features[0]
    expected = (1 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(found, expected, rtol=8 * EPS)


def plain(photo, **options):
    """The pixels that the network sees, as fractions of 1."""
    size = options["input_size"]
    cnn = CNN(nn.Flatten(), mean=(0, 0, 0), std=(1, 1, 1), **options)
    return cnn.transform([photo]).features.reshape(3, size, size)


def test_large_photos_are_averaged():
    photo = np.random.default_rng(0).integers(0, 256, (24, 48, 3), np.uint8)
    seen = plain(photo, input_size=12)
    expected = photo.reshape(12, 2, 12, 4, 3).mean(axis=(1, 3)).transpose(2, 0, 1)
    np.testing.assert_allclose(seen * 255, expected, atol=0.51)


def test_small_photos_are_enlarged_without_steps():
    photo = np.repeat(np.array([[[0], [255]]], np.uint8), 3, axis=2)
    seen = plain(photo, input_size=16)
    assert len(np.unique(seen)) > 8
    assert seen[0, 3, 0] < 0.01
    assert seen[0, 3, -1] > 0.99


@pytest.mark.parametrize("axis", [0, 1])
def test_a_side_that_is_too_long_is_averaged_and_one_that_is_too_short_enlarged(axis):
    photo = np.zeros((4, 96, 3), np.uint8)
    photo[2:, 1::2] = 200  # thin stripes on the lower half
    seen = plain(photo if axis == 0 else photo.swapaxes(0, 1), input_size=24)[0] * 255
    along, across = np.ptp(seen, axis=1 - axis), seen.mean(axis=1 - axis)
    assert along.max() < 1.5
    assert across[0] < 1.5
    assert abs(across[-1] - 100) < 1.5
    assert len(np.unique(across.round())) > 4


def test_photos_of_the_right_size_are_left_alone():
    photo = PHOTOS[0][:40, :40]
    np.testing.assert_array_equal(
        np.rint(plain(photo, input_size=40) * 255), photo.transpose(2, 0, 1)
    )
