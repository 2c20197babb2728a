"""Figures of report pages: plots with a title, an alternative text, and two themes."""

from dataclasses import replace

import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from refusals import refuses

from kernelcore.evaluation import evaluate

pytest.importorskip("matplotlib")

from kernelcore.report import ReportFigure, recall_figure, save_figures, similarity_figure
from kernelcore.report.figures import (
    alignment_figure,
    histogram_figure,
    region_figure,
    training_figure,
)

OWNER = np.repeat(np.arange(20), 2)
SCORES = np.random.default_rng(0).random((20, 40))
SCORES[OWNER, np.arange(40)] += 0.6
GOOD = evaluate(SCORES, caption_image=OWNER, system="good")
OTHERS = [replace(GOOD, system=f"kernel CCA, word sequences {i}") for i in range(3)]
PHOTO = np.full((30, 40, 3), 120, np.uint8)
BOXES = [[0, 0, 40, 30], [5, 5, 20, 25], [1, 2, 3, 4]]
PRODUCTS = [[0.1, 2.0, -1.0], [0.7, 1.0, -2.0], [0.2, 0.5, -3.0]]
NAMES = ["dog", "$black", "_sea"]
ALIGNED = {"picture": PHOTO, "boxes": BOXES, "products": PRODUCTS, "fragments": NAMES}
HISTORIES = {
    "AP": [{"dev_loss": 0.5, "dev_auc": 0.6}, {"dev_loss": 0.3, "dev_auc": 0.8}],
    "DC": [{"dev_loss": 0.4}],
    "none": [],
}
QUANTITIES = {"dev_loss": "Loss", "dev_auc": "AUC"}

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
    "histograms": (
        histogram_figure({"a": [1.0, 2], "b": [3.0]}, title="Two", quantity="cost"),
        "Two",
        "Density of the cost. a: mean 1.5, median 1.5 of 2; b: mean 3, median 3 of 1.",
    ),
    "training": (
        training_figure(HISTORIES, QUANTITIES),
        "Training",
        "Loss and AUC by epoch. AP: 0.5 to 0.3 in 2 epochs; DC: 0.4 to 0.4 in 1 epochs; "
        "AP: 0.6 to 0.8 in 2 epochs.",
    ),
    "alignment": (
        alignment_figure(
            **ALIGNED,
            title="A dog.",
            ranked=[("A dog.", True), ("The $sea.", False)],
        ),
        "A dog.",
        "A photo of 40 by 30 pixels with the best region of 3 fragments: $black 2.00; dog "
        "0.70; _sea -1.00. Below are the 2 captions ranked first, 1 of them its own.",
    ),
    "no fragments": (
        alignment_figure(PHOTO, BOXES, np.zeros((3, 0)), [], title="Hm."),
        "Hm.",
        "A photo of 40 by 30 pixels with the best region of 0 fragments: .",
    ),
    "regions": (
        region_figure([PHOTO] * 7, [BOXES[1]] * 7, np.arange(7, 0, -1), title="dog"),
        "dog",
        "7 regions with score 7.00 to 1.00, each drawn as a box in its photo.",
    ),
    "one region": (
        region_figure([PHOTO], BOXES[:1], [1.5], title="dog"),
        "dog",
        "1 region with score 1.50, each drawn as a box in its photo.",
    ),
}


def legend(panel):
    return [text.get_text() for text in panel.get_legend().get_texts()]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_title_a_description_and_legible_texts(name, theme):
    figure, title, alt = FIGURES[name]
    assert figure.title == title
    assert figure.alt.startswith(alt)
    drawn = figure.to_matplotlib(theme)
    if name != "no fragments":
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


def test_a_line_per_group_whose_area_is_one():
    values = np.random.default_rng(0).random(1000)
    groups = {"a": values, "b": 2 * values}
    (panel,) = histogram_figure(groups, title="", quantity="size").to_matplotlib().axes
    assert panel.get_xlabel() == "size"
    for patch in panel.patches:
        heights, edges, _ = patch.get_data()
        assert (heights * np.diff(edges)).sum() == pytest.approx(1, abs=0.006)
    assert legend(panel) == ["a", "b"]
    zeros = histogram_figure({"a": np.zeros(3)}, title="", quantity="").to_matplotlib()
    assert zeros.axes[0].patches[0].get_data().values[0] > 0


def test_a_panel_per_quantity_and_a_line_per_system():
    drawn = training_figure(HISTORIES, QUANTITIES).to_matplotlib()
    loss, auc = drawn.axes
    assert [panel.get_title() for panel in (loss, auc)] == ["Loss", "AUC"]
    assert [line.get_label() for line in loss.get_lines()] == ["AP", "DC"]
    assert loss.get_lines()[0].get_xydata().tolist() == [[1, 0.5], [2, 0.3]]
    assert auc.get_lines()[0].get_ydata().tolist() == [0.6, 0.8]
    assert len(drawn.legends) == 1


def test_captions_ranked_first_are_marked():
    photo, captions = FIGURES["alignment"][0].to_matplotlib().axes
    assert legend(photo) == [r"\$black 2.00", "dog 0.70", "\u200b_sea -1.00"]
    texts = [text.get_text() for text in captions.texts]
    assert texts == ["\u2713", "A dog.", "\u2717", r"The \$sea."]


REFUSED = [
    ("results", recall_figure, {"results": []}),
    ("results", recall_figure, {"results": [GOOD, evaluate(np.eye(20), system="small")]}),
    ("scores", similarity_figure, {"scores": [[np.nan, 0], [0, 0]]}),
    ("caption_image", similarity_figure, {"scores": np.zeros((2, 3))}),
    ("at least one number", histogram_figure, {"groups": {}, "title": "", "quantity": ""}),
    ("a must be", histogram_figure, {"groups": {"a": [np.nan]}, "title": "", "quantity": ""}),
    ("to draw", training_figure, {"histories": {"AP": []}, "quantities": QUANTITIES}),
    ("to draw", training_figure, {"histories": HISTORIES, "quantities": {}}),
    ("picture", alignment_figure, {**ALIGNED, "title": "", "picture": PHOTO / 2}),
    ("boxes", alignment_figure, {**ALIGNED, "title": "", "boxes": BOXES[:2]}),
    (
        "one entry per region",
        region_figure,
        {"pictures": [PHOTO], "boxes": BOXES, "scores": [1.0], "title": ""},
    ),
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
