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

FIGURES = {
    "recalls": (
        recall_figure([GOOD, *OTHERS]),
        "Recall at k",
        f"Image annotation, recall at 10: good {100 * GOOD.mean['annotation']['R@10']:.1f} %",
    ),
    "scores": (
        similarity_figure(np.arange(42.0 * 84).reshape(42, 84), np.arange(84) % 42),
        "Similarity matrix",
        "Scores of the first 40 of 42 images by their 80 captions. The pairs that belong "
        "together are framed; their mean score is 1.68e+03, that of all pairs shown 1.68e+03.",
    ),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_title_a_description_and_legible_texts(name, theme):
    figure, title, alt = FIGURES[name]
    assert figure.title == title
    assert figure.alt.startswith(alt)
    drawn = figure.to_matplotlib(theme)
    assert_legible(drawn)
    if figure.size[0] <= 5:  # a narrow screen shows it in full size
        assert_contrast(drawn)
    assert figure.to_png(theme)[:4] == b"\x89PNG"


def test_recalls_stand_under_each_other_with_one_legend():
    drawn = recall_figure([GOOD, replace(GOOD, system="_under $core$")]).to_matplotlib()
    assert [panel.get_lines()[0].get_xdata()[-1] for panel in drawn.axes] == [40, 20]
    (names,) = drawn.legends
    texts = [text.get_text() for text in names.get_texts()]
    assert texts == ["good", "\u200b_under \\$core\\$", "expected by chance"]
    assert "expected by chance 50.0 %" in recall_figure(GOOD).alt


REFUSED = [
    ("results", recall_figure, {"results": []}),
    ("results", recall_figure, {"results": [GOOD, evaluate(np.eye(20), system="small")]}),
    ("scores", similarity_figure, {"scores": [[np.nan, 0], [0, 0]]}),
    ("caption_image", similarity_figure, {"scores": np.zeros((2, 3))}),
]


@pytest.mark.parametrize(("named", "function", "options"), REFUSED)
def test_what_does_not_fit_is_refused_before_anything_is_drawn(named, function, options):
    refuses((TypeError, ValueError), named, function, **options)


def test_a_figure_of_the_users_own_takes_the_theme_and_the_size():
    own = ReportFigure("Own", "A line.", lambda figure: figure.subplots().plot([1, 2]), (3, 2))
    light, dark = (own.to_matplotlib(theme) for theme in ("light", "dark"))
    assert light.get_facecolor() != dark.get_facecolor()
    labels = [drawn.axes[0].get_xticklabels()[0].get_color() for drawn in (light, dark)]
    assert labels[0] != labels[1]
    assert light.get_size_inches().tolist() == [3, 2]
    refuses(ValueError, "theme", own.to_matplotlib, "blue")


def test_figures_are_written_as_files(tmp_path):
    figure = FIGURES["recalls"][0]
    shown = [figure, replace(figure, title="A dog's (1) ü" * 9)]
    paths = save_figures(shown, tmp_path / "made" / "here")
    assert [path.name for path in paths] == [
        "01-recall-at-k.png",
        "02-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1.png",
    ]
    assert sorted(paths) == sorted((tmp_path / "made" / "here").iterdir())
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths)
    assert save_figures([], tmp_path) == []
