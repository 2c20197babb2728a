"""Histograms of groups of numbers."""

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("matplotlib")

from kernelcore.report import histograms


def test_a_line_per_group_whose_area_is_one():
    values = np.random.default_rng(0).random(1000)
    figure = histograms({"a": values, "b": 2 * values}, title="Two", quantity="size")
    drawn = figure.to_matplotlib()
    (panel,) = drawn.axes
    assert panel.get_xlabel() == "size"
    for patch in panel.patches:
        heights, edges, _ = patch.get_data()
        assert (heights * np.diff(edges)).sum() == pytest.approx(1, abs=0.006)
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["a", "b"]
    assert figure.title == "Two"
    assert figure.alt.startswith(f"Density of the size. a: mean {values.mean():.3g}")
    assert figure.to_png("dark")[:4] == b"\x89PNG"


def test_zeros_alone_are_drawn():
    (panel,) = histograms({"a": np.zeros(3)}, title="", quantity="").to_matplotlib().axes
    assert panel.patches[0].get_data().values[0] > 0


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "at least one number"),
        ({"a": [1.0], "b": []}, "at least one number"),
        ({"a": [np.nan]}, "a"),
    ],
)
def test_nothing_to_draw_is_refused(groups, message):
    refuses(ValueError, message, histograms, groups, title="", quantity="")
