"""Costs against sizes."""

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("matplotlib")

from kernelcore.plots import growth_curves

QUADRATIC = {10: 3.0, 20: 12.0, 40: 48.0}


@pytest.fixture
def ax(figure):
    return figure.subplots()


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_points_lie_on_the_fitted_power(ax):
    growth_curves({"Gram $K$": {40: 48.0, 10: 3.0, 20: 12.0}}, size="captions", ax=ax)
    fitted, points = ax.get_lines()
    assert points.get_xydata().tolist() == [[10, 3], [20, 12], [40, 48]]
    np.testing.assert_allclose(fitted.get_xydata(), points.get_xydata(), rtol=1e-12)
    assert legend(ax) == [r"Gram \$K\$, exponent 2.00"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("captions", "seconds")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["10", "20", "40"]


def test_the_fit_is_by_least_squares_of_the_logarithms(ax):
    costs = {1: 1.0, 2: 3.0, 4: 5.0, 8: 20.0}
    growth_curves({"a": costs}, quantity="bytes", ax=ax)
    x, y = np.log(list(costs)), np.log(list(costs.values()))
    slope, level = np.linalg.lstsq(np.stack([x, np.ones(4)], axis=1), y, rcond=None)[0]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.exp(slope * x + level))
    assert legend(ax) == [f"a, exponent {slope:.2f}"]
    assert ax.get_ylabel() == "bytes"


def test_a_known_exponent_is_drawn_through_the_middle(ax):
    growth_curves({"a": QUADRATIC, "b": QUADRATIC}, exponents={"b": 1.0}, ax=ax)
    assert legend(ax) == ["a, exponent 2.00", "b, exponent 1.00"]
    np.testing.assert_allclose(ax.get_lines()[2].get_ydata(), [6, 12, 24])


def test_curves_differ_in_colours_and_then_in_marks(ax):
    growth_curves({str(i): QUADRATIC for i in range(8)}, legend=False, ax=ax)
    points = ax.get_lines()[1::2]
    looks = {(line.get_color(), line.get_marker()) for line in points}
    assert len(looks) == 8
    assert len({line.get_color() for line in points}) == 6
    assert ax.get_legend() is None


def test_many_sizes_are_left_to_matplotlib(ax):
    growth_curves({"a": {n: n for n in range(1, 20)}}, ax=ax)
    assert len(ax.get_xticks()) < 19


@pytest.mark.parametrize(
    ("curves", "named"),
    [
        ({}, "curves"),
        ([QUADRATIC], "curves"),
        ({"a": {10: 1.0}}, r"curves\['a'\]"),
        ({"a": [1.0, 2.0]}, r"curves\['a'\]"),
        ({"a": {10: 1.0, 20: 0.0}}, r"curves\['a'\]"),
        ({"a": {-10: 1.0, 20: 1.0}}, r"curves\['a'\]"),
        ({"a": {10: np.inf, 20: 1.0}}, r"curves\['a'\]"),
        ({"a": {"10": 1.0, "20": 1.0}}, r"curves\['a'\]"),
        ({"a": QUADRATIC, "b": {1: None, 2: None}}, r"curves\['b'\]"),
    ],
)
def test_what_is_no_curve_is_refused(curves, named):
    with pytest.raises((TypeError, ValueError), match=f"^{named} must"):
        growth_curves(curves)


def test_options_are_checked(ax):
    refuses(ValueError, "exponents", growth_curves, {"a": QUADRATIC}, exponents={"b": 1.0})
    refuses(TypeError, "exponents", growth_curves, {"a": QUADRATIC}, exponents={"a": "2"})
    refuses(TypeError, "legend", growth_curves, {"a": QUADRATIC}, legend=None)
