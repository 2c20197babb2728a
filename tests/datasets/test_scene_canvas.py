import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.datasets.scenes.canvas import Figure, mix, shade

SIZE = (60, 80)
WHITE = (255.0, 255.0, 255.0)


def coverage(paint, *, foot=(40.0, 30.0), scale=1.0, **options):
    """Share of each pixel that one shape covers, by painting it white on black."""
    figure = Figure(SIZE, foot, scale, **options)
    paint(figure)
    pixels = np.zeros((*SIZE, 3))
    (shape,) = figure.shapes
    shape.paint(pixels, WHITE)
    assert (pixels[..., 0] == pixels[..., 2]).all()
    return pixels[..., 0] / 255.0


def centroid(share):
    rows, columns = np.indices(share.shape) + 0.5
    return (share * columns).sum() / share.sum(), (share * rows).sum() / share.sum()


@pytest.mark.parametrize(
    ("paint", "area", "center"),
    [
        (lambda f: f.add("disc", WHITE, (2, 3, 9)), np.pi * 81, (42, 27)),
        (lambda f: f.add("ellipse", WHITE, (2, 3, 14, 6)), np.pi * 84, (42, 27)),
        (lambda f: f.add("ring", WHITE, (0, 0, 10, 4)), np.pi * (12**2 - 8**2), (40, 30)),
        (lambda f: f.add("limb", WHITE, (-8, 0, 5, 12, 0, 5)), 200 + np.pi * 25, (42, 30)),
        (lambda f: f.add("polygon", WHITE, (-9, -6, 11, -6, 11, 8, -9, 8)), 280, (41, 29)),
        (lambda f: f.add("polygon", WHITE, (0, 0, 18, 0, 0, 12)), 108, (46, 26)),
        (lambda f: f.add("polygon", WHITE, (0, 12, 18, 0, 0, 0)), 108, (46, 26)),
    ],
    ids=["disc", "ellipse", "ring", "limb", "square", "triangle", "clockwise"],
)
def test_area_and_place_of_shapes(paint, area, center):
    share = coverage(paint)
    assert share.sum() == pytest.approx(area, rel=0.03)
    assert centroid(share) == pytest.approx(center, abs=0.3)
    assert share.max() == 1.0


def test_polygon_that_is_not_convex():
    arrow = (-10, -10, 10, -10, 10, 10, 0, 0, -10, 10)
    share = coverage(lambda f: f.add("polygon", WHITE, arrow))
    assert share.sum() == pytest.approx(300, rel=0.02)
    assert share[30 - 6, 40] == 0.0  # in the notch, above the middle
    assert share[30 + 6, 40] == 1.0


def test_limb_tapers():
    share = coverage(lambda f: f.add("limb", WHITE, (-15, 0, 8, 15, 0, 2)))
    assert (share[:, 26] > 0.5).sum() > 2 * (share[:, 53] > 0.5).sum() > 0


def test_edges_are_smooth():
    share = coverage(lambda f: f.add("disc", WHITE, (0, 0, 10)))
    partial = (share > 0.02) & (share < 0.98)
    assert 40 < partial.sum() < 120


@given(
    tilt=st.floats(-1, 1),
    x=st.floats(-8, 8),
    y=st.floats(-8, 8),
)
def test_facing_left_mirrors_the_picture(tilt, x, y):
    def paint(figure):
        figure.add("ellipse", WHITE, (x, y, 7, 3))

    right = coverage(paint, direction=1, tilt=tilt)
    left = coverage(paint, direction=-1, tilt=tilt)
    np.testing.assert_allclose(left, right[:, ::-1], atol=1e-9)


def test_tilt_turns_the_front_up():
    figure = Figure(SIZE, (40.0, 30.0), 1.0, tilt=np.tan(np.pi / 12))
    assert figure.place(10, 0) == pytest.approx((40 + 10 * np.cos(np.pi / 6), 25))
    turned = Figure(SIZE, (40.0, 30.0), 1.0, direction=-1, tilt=np.tan(np.pi / 12))
    assert turned.place(10, 0) == pytest.approx((40 - 10 * np.cos(np.pi / 6), 25))


@pytest.mark.parametrize("center", [(-40.0, 30.0), (200.0, 30.0), (40.0, -60.0), (40.0, 300.0)])
def test_shapes_outside_the_picture_paint_nothing(center):
    share = coverage(lambda f: f.add("disc", WHITE, (0, 0, 10)), foot=center)
    assert share.sum() == 0.0


def test_shapes_are_cut_at_the_edge():
    share = coverage(lambda f: f.add("disc", WHITE, (0, 0, 10)), foot=(0.0, 0.0))
    assert share.sum() == pytest.approx(np.pi * 25, rel=0.05)


def test_a_figure_has_one_rim_around_all_of_it():
    figure = Figure(SIZE, (40.0, 30.0), 1.0)
    figure.add("disc", WHITE, (-5, 0, 10))
    figure.add("disc", WHITE, (5, 0, 10))
    figure.add("disc", (200.0, 0.0, 0.0), (0, 0, 2), rim=False)
    pixels = np.full((*SIZE, 3), 100.0)
    figure.draw(pixels)
    assert (pixels[30, 30:38] == 255).all()  # no line where the discs meet
    np.testing.assert_array_equal(pixels[29, 40], (200.0, 0.0, 0.0))
    # Above, below and beside the pair there is a line darker than its white fill.
    for row, column in ((19, 35), (40, 35), (30, 24), (30, 55)):
        assert 100 < pixels[row, column, 0] < 150
    assert figure.box() == (25, 20, 55, 40)


def test_a_light_mixes_into_the_colours():
    figure = Figure(SIZE, (40.0, 30.0), 1.0)
    figure.add("disc", (200.0, 100.0, 0.0), (0, 0, 10))
    pixels = np.zeros((*SIZE, 3))
    figure.draw(pixels, ((0.0, 0.0, 100.0), 0.25))
    np.testing.assert_allclose(pixels[30, 40], (150.0, 75.0, 25.0))


def test_colour_arithmetic():
    assert shade((100.0, 200.0, 10.0), 1.5) == (150.0, 255.0, 15.0)
    assert shade((100.0, 200.0, 10.0), 0.5) == (50.0, 100.0, 5.0)
    assert mix((0.0, 100.0, 200.0), (100.0, 100.0, 0.0), 0.25) == (25.0, 100.0, 150.0)
