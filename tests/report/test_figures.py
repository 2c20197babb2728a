from dataclasses import replace

import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from refusals import refuses

from kernelcore.evaluation import evaluate

pytest.importorskip("matplotlib")

from kernelcore.report import (
    ReportFigure,
    histograms,
    recall_curves,
    save_figures,
    similarity_matrix,
    training_curves,
)


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(20), 2)
    good, poor = rng.random((2, 20, 40))
    good[owner, np.arange(40)] += 0.6
    return [
        evaluate(scores, caption_image=owner, system=system)
        for scores, system in ((good, "good"), (poor, "_under $core$ 5 %"))
    ]


def curves(panel):
    return {line.get_label(): line.get_xydata() for line in panel.get_lines()}


def test_recall_curves_draw_every_system_and_chance(results):
    figure = recall_curves(results).to_matplotlib()
    annotation, search = figure.axes
    for panel, task in ((annotation, "annotation"), (search, "search")):
        n = results[0].n_candidates[task][0]
        ranks = results[0].values[task]["mean_rank"]
        lines = curves(panel)
        assert len(lines) == 3
        assert (lines["good"][:, 0] == np.arange(1, n + 1)).all()
        recalls = [100 * np.mean(ranks <= k) for k in range(1, n + 1)]
        assert lines["good"][:, 1] == pytest.approx(recalls)
        assert lines["expected by chance"][-1, 1] == 100
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "good",
        "\u200b_under \\$core\\$ 5 %",
        "expected by chance",
    ]


def test_recall_curves_stop_at_max_k(results):
    figure = recall_curves(results, max_k=30).to_matplotlib()
    assert [curves(panel)["good"][-1, 0] for panel in figure.axes] == [30, 20]


def test_recall_curves_say_what_they_show(results):
    alt = recall_curves(results).alt
    assert f"good {100 * results[0].mean['annotation']['R@10']:.1f} %" in alt
    assert f"good {100 * results[0].mean['search']['R@10']:.1f} %" in alt
    assert "expected by chance 50.0 %" in alt


def test_recall_curves_refuse_other_pools(results):
    refuses(ValueError, "results", recall_curves, [])
    with pytest.raises(ValueError, match="results"):
        recall_curves([*results, evaluate(np.eye(20), system="small")])
    uneven = np.r_[np.arange(20), np.zeros(20, int)]
    with pytest.raises(ValueError, match="results"):
        recall_curves([*results, evaluate(np.zeros((20, 40)), caption_image=uneven)])
    refuses(ValueError, "max_k", recall_curves, results, max_k=1)
    refuses(TypeError, "results", recall_curves, ["good"])


def test_many_systems_keep_apart():
    results = [evaluate(np.eye(4), system=f"system {i}") for i in range(14)]
    panel = recall_curves(results).to_matplotlib().axes[0]
    styles = {
        (line.get_color(), str(line.get_linestyle()), str(line._dash_pattern))
        for line in panel.get_lines()
    }
    assert len(styles) == 15


def test_similarity_matrix_groups_captions_by_image_and_frames_gold():
    owner = np.array([2, 0, 1, 0, 2, 1])
    scores = np.arange(18, dtype=np.float32).reshape(3, 6)
    figure = similarity_matrix(scores, owner, max_images=2, system="toy")
    axes = figure.to_matplotlib().axes[0]
    (image,) = axes.get_images()
    assert image.get_array().tolist() == scores[:2, [1, 3, 2, 5]].tolist()
    frames = [(patch.get_xy(), patch.get_width()) for patch in axes.patches]
    assert frames == [((-0.5, -0.5), 2), ((1.5, 0.5), 2)]
    assert figure.title == "Similarity matrix of toy"
    assert "first 2 of 3 images by their 4 captions" in figure.alt
    assert f"mean score is {np.mean([1, 3, 8, 11]):.3g}" in figure.alt


def test_similarity_matrix_of_equal_scores_is_drawn():
    assert similarity_matrix(np.zeros((3, 3))).to_png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("scores", "owner", "message"),
    [
        ([[np.inf, 0], [0, 0]], None, "scores"),
        ([[np.nan, 0], [0, 0]], None, "scores"),
        ([1, 2], None, "scores"),
        (np.zeros((2, 3)), None, "caption_image"),
        (np.zeros((2, 3)), [0, 1, 2], "caption_image"),
        (np.zeros((0, 0)), None, "scores"),
    ],
)
def test_similarity_matrix_refuses(scores, owner, message):
    refuses(ValueError, message, similarity_matrix, scores, owner)


def test_themes_differ_in_every_ink(results):
    light, dark = (recall_curves(results).to_matplotlib(theme) for theme in ("light", "dark"))
    for one, other in (
        (light.get_facecolor(), dark.get_facecolor()),
        *(
            (a.get_color(), b.get_color())
            for a, b in zip(
                light.axes[0].get_xticklabels(), dark.axes[0].get_xticklabels(), strict=True
            )
        ),
        (
            light.legends[0].get_texts()[0].get_color(),
            dark.legends[0].get_texts()[0].get_color(),
        ),
    ):
        assert one != other
    refuses(ValueError, "theme", recall_curves(results).to_matplotlib, "blue")


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("A.SVG", b"<?xml")]
)
def test_save_writes_the_format_of_the_name(results, tmp_path, name, start):
    recall_curves(results).save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_save_refuses_unknown_formats(results, tmp_path):
    with pytest.raises(ValueError, match=r"path ending must be one of .* got 'doc'"):
        recall_curves(results).save(tmp_path / "a.doc")


def test_a_figure_of_the_users_own_takes_the_theme():
    from matplotlib.figure import Figure

    def draw():
        figure = Figure()
        figure.subplots().plot([1, 2])
        return figure

    own = ReportFigure("Own", "A line.", draw)
    assert own.to_png("dark") != own.to_png("light")


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
        ({"a": [np.nan]}, "a must be finite"),
    ],
)
def test_nothing_to_draw_is_refused(groups, message):
    refuses(ValueError, message, histograms, groups, title="", quantity="")


HISTORIES = {
    "AP": [{"dev_loss": 0.5, "dev_auc": 0.6}, {"dev_loss": 0.3, "dev_auc": 0.8}],
    "DC": [{"dev_loss": 0.4}],
    "none": [],
}


def test_a_panel_per_quantity_and_a_line_per_system():
    figure = training_curves(HISTORIES, {"dev_loss": "Loss", "dev_auc": "AUC"})
    drawn = figure.to_matplotlib()
    loss, auc = drawn.axes
    assert [panel.get_title() for panel in (loss, auc)] == ["Loss", "AUC"]
    assert [line.get_label() for line in loss.get_lines()] == ["AP", "DC"]
    assert loss.get_lines()[0].get_xydata().tolist() == [[1, 0.5], [2, 0.3]]
    assert auc.get_lines()[0].get_ydata().tolist() == [0.6, 0.8]
    assert len(drawn.legends) == 1
    assert figure.alt == (
        "Loss and AUC by epoch. AP: 0.5 to 0.3 in 2 epochs; DC: 0.4 to 0.4 in 1 epochs; "
        "AP: 0.6 to 0.8 in 2 epochs."
    )
    assert figure.to_png("dark")[:4] == b"\x89PNG"


def test_curves_of_nothing_are_refused():
    for histories, quantities in (
        ({}, {"dev_loss": "Loss"}),
        (HISTORIES, {}),
        ({"AP": []}, {}),
    ):
        with pytest.raises(ValueError, match="something to draw"):
            training_curves(histories, quantities)


def test_figures_are_written_as_files(results, tmp_path):
    shown = [recall_curves(results), replace(recall_curves(results), title="A dog's (1) ü" * 9)]
    paths = save_figures(shown, tmp_path / "made" / "here")
    assert [path.name for path in paths] == [
        "01-recall-at-k.png",
        "02-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1-a-dog-s-1.png",
    ]
    assert sorted(paths) == sorted((tmp_path / "made" / "here").iterdir())
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths)
    assert save_figures([], tmp_path) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_on_a_narrow_screen(results, theme):
    names = ("kernel CCA, bags of words", "kernel CCA, word sequences", "a third", "a fourth")
    systems = [replace(results[0], system=name) for name in names]
    shown = [
        recall_curves(systems),
        similarity_matrix(np.eye(30), system="toy"),
        histograms({"true pairs": [1.0, 2], "others": [3.0]}, title="", quantity="cost"),
        training_curves(HISTORIES, {"dev_loss": "Loss", "dev_auc": "AUC"}),
    ]
    for figure in shown:
        drawn = figure.to_matplotlib(theme)
        assert drawn.get_size_inches()[0] <= 5
        assert_legible(drawn)
        assert_contrast(drawn)
