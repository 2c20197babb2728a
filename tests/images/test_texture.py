import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from kernelcore.images import oriented_energy
from kernelcore.reference.images import oriented_energy as reference_energy

IMAGE = np.random.default_rng(0).integers(0, 256, (37, 29), np.uint8)


@given(
    height=st.integers(1, 24),
    width=st.integers(1, 24),
    n_orientations=st.integers(1, 7),
    scale=st.floats(0.4, 3.0),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_equals_the_reference(height, width, n_orientations, scale, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width), np.uint8)
    scales = [scale, 1.5 * scale]
    features = oriented_energy(image, n_orientations=n_orientations, scales=scales)
    expected = reference_energy(image, n_orientations, scales)
    assert features.values.dtype == np.float32
    # Sums of grey levels up to 255 with weights that add up to 1, in float32.
    np.testing.assert_allclose(features.values, expected, atol=255 * 1e-5)
    assert features.values.max() <= 255


def test_vertical_and_horizontal_derivatives_are_scipy_gaussian_filters():
    sigma = 2.0
    across_x, across_y = oriented_energy(IMAGE, n_orientations=2, scales=[sigma]).values
    for order, energy in (((0, 1), across_x), ((1, 0), across_y)):
        double = tuple(2 * o for o in order)
        edge, bar = (
            ndimage.gaussian_filter(IMAGE.astype(float), sigma, o, mode="reflect", truncate=4)
            for o in (order, double)
        )
        edge *= sigma * np.sqrt(np.pi / 2)
        bar *= sigma**2 * np.sqrt(2 * np.pi * np.e) / 4
        np.testing.assert_allclose(
            energy, np.hypot(edge, bar), atol=0.3
        )  # SciPy's bars see some brightness


def test_flat_images_have_none_and_contrast_scales_it():
    assert oriented_energy(np.full((9, 9), 255, np.uint8)).values.max() < 1e-3
    half = oriented_energy(IMAGE // 2 * 1).values
    full = oriented_energy(IMAGE // 2 * 2).values
    np.testing.assert_allclose(full, 2 * half, atol=0.01)


def test_direction_turns_with_the_image():
    energy = oriented_energy(IMAGE, n_orientations=4).values.reshape(3, 4, 37, 29)
    turned = oriented_energy(np.rot90(IMAGE)).values  # default: six orientations
    turned4 = oriented_energy(np.rot90(IMAGE), n_orientations=4).values.reshape(3, 4, 29, 37)
    assert turned.shape == (18, 29, 37)
    np.testing.assert_allclose(turned4[:, 2], np.rot90(energy[:, 0], axes=(1, 2)), atol=0.01)


def test_colour_is_used_as_grey():
    assert (
        oriented_energy(np.repeat(IMAGE[:, :, None], 3, axis=2)).values
        == oriented_energy(IMAGE).values
    ).all()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_orientations": 0}, ValueError, "n_orientations must be an integer >= 1"),
        ({"n_orientations": 2.0}, TypeError, "n_orientations must be an integer"),
        ({"scales": []}, ValueError, "scales must hold at least one"),
        ({"scales": [1.0, 0.1]}, ValueError, r"scales\[1\] must be a number >= 0.3, got 0.1"),
        ({"scales": [np.nan]}, ValueError, r"scales\[0\] must be finite"),
        ({"scales": ["1"]}, TypeError, r"scales\[0\] must be a real number"),
    ],
)
def test_bad_input(options, error, match):
    with pytest.raises(error, match=match):
        oriented_energy(IMAGE, **options)
    with pytest.raises(TypeError, match="image must be"):
        oriented_energy("photo.jpg")
