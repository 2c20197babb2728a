"""Figures of report pages: plots with a title, an alternative text, and two themes."""

from dataclasses import replace

import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from refusals import refuses

from kernelcore.evaluation import evaluate

pytest.importorskip("matplotlib")

from kernelcore.report import ReportFigure, recall_figure, save_figures, similarity_figure

OWNER = np.repeat(np.arange(20), 2)
SCORES = np.random.default_rng(0).random((20, 40))
SCORES[OWNER, np.arange(40)] += 0.6
GOOD = evaluate(SCORES, caption_image=OWNER, system="good")
OTHERS = [replace(GOOD, system=f"kernel CCA, word sequences {i}") for i in range(3)]
SCORES = np.arange(42.0 * 84).reshape(42, 84)
FIGURES = {"Recall at k": recall_figure([GOOD, *OTHERS])}
FIGURES["Similarity matrix"] = similarity_figure(SCORES, np.arange(84) % 42)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("title", FIGURES)
def test_a_figure_has_a_title_a_description_and_legible_texts(title, theme):
    figure = FIGURES[title]
    assert figure.title == title
    told = f"good {100 * GOOD.mean['annotation']['R@10']:.1f} %", "mean score is 1.68e+03"
    assert any(number in figure.alt for number in told)
    drawn = figure.to_matplotlib(theme)
    assert_legible(drawn)
    if figure.size[0] <= 5:  # a narrow screen shows it in full size
        assert_contrast(drawn)
    assert figure.to_png(theme)[:4] == b"\x89PNG"


def test_a_figure_of_the_users_own_takes_the_theme_and_the_size():
    own = ReportFigure("Own", "A line.", lambda figure: figure.subplots().plot([1, 2]), (3, 2))
    light, dark = (own.to_matplotlib(theme) for theme in ("light", "dark"))
    assert light.get_facecolor() != dark.get_facecolor()
    labels = [drawn.axes[0].get_xticklabels()[0].get_color() for drawn in (light, dark)]
    assert labels[0] != labels[1]
    assert light.get_size_inches().tolist() == [3, 2]
    refuses(ValueError, "theme", own.to_matplotlib, "blue")


def test_figures_are_written_as_files(tmp_path):
    figure = FIGURES["Recall at k"]
    shown = [figure, replace(figure, title="A dog's (1) ü" * 9)]
    paths = save_figures(shown, tmp_path / "made" / "here")
    names = ["01-recall-at-k.png", f"02-{'-'.join(['a-dog-s-1'] * 6)}.png"]
    assert [path.name for path in paths] == names
    assert sorted(paths) == sorted((tmp_path / "made" / "here").iterdir())
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths)
    assert save_figures([], tmp_path) == []


def test_what_does_not_fit_is_refused_before_anything_is_drawn():
    refuses(ValueError, "results", recall_figure, [])
    refuses(ValueError, "scores", similarity_figure, [[np.nan, 0], [0, 0]])
