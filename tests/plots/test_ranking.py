"""Recall curves, histograms of ranks, and the matrix of scores."""

import numpy as np
import pytest
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from kernelcore.evaluation import Result, evaluate
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.plots import rank_histogram, recall_curves, similarity_matrix

OWNER = np.repeat(np.arange(20), 2)
TASKS = ("annotation", "search")


@pytest.fixture
def results():
    good, poor = np.random.default_rng(0).random((2, 20, 40))
    good[OWNER, np.arange(40)] += 0.6
    return [
        evaluate(good, caption_image=OWNER, system="good"),
        evaluate(poor, caption_image=OWNER, system=""),
    ]


@pytest.fixture
def axes(figure):
    return figure.subplots(2)


def recalls_at(result, task, ks):
    return np.array([np.mean(result.values[task]["mean_rank"] <= k) for k in ks])


def chance_recalls(result, task, k):
    return chance_recall_at_k(
        result.n_candidates[task][0], k, n_relevant=result.n_relevant[task][0]
    )


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def bars_of(panel):
    """Heights of the bars of each system, from the lowest ranks on."""
    return [[bar.get_height() for bar in bars] for bars in panel.containers]


def test_a_line_for_every_system_and_one_for_chance(results, axes):
    recall_curves(results, axes=axes)
    short = recall_curves(results, max_k=30)
    assert [panel.get_xlim() for panel in short] == [(1, 30), (1, 20)]
    for panel, task in zip(axes, TASKS, strict=True):
        n = results[0].n_candidates[task][0]
        ks = np.arange(1, n + 1)
        good, unnamed, chance = panel.get_lines()
        assert [line.get_label() for line in (good, unnamed, chance)] == [
            "good",
            "(unnamed)",
            "expected by chance",
        ]
        assert good.get_xdata().tolist() == list(range(1, n + 1))
        assert (good.get_ydata() == 100 * recalls_at(results[0], task, ks)).all()
        assert (unnamed.get_ydata() == 100 * recalls_at(results[1], task, ks)).all()
        expected = [chance_recalls(results[0], task, k) for k in ks]
        assert chance.get_ydata() == pytest.approx(100 * np.array(expected))
        assert panel.get_xlim() == (1, n)
        assert panel.get_ylim() == (0, 100)
        assert panel.get_xscale() == "log"
    assert [panel.get_title() for panel in axes] == ["Image annotation", "Image search"]
    assert labels(axes[0].get_xticklabels()) == ["1", "2", "5", "10", "20", "50"]


def test_large_pools_are_marked_by_powers_of_ten(axes, pyplot):
    scores = np.random.default_rng(0).random((3, 6000))
    result = evaluate(scores, caption_image=np.arange(6000) % 3)
    annotation, search = recall_curves(result, axes=axes)
    assert labels(annotation.get_xticklabels()) == ["1", "10", "100", "1k", "10k"]
    assert labels(search.get_xticklabels()) == ["1", "2", "5"]
    annotation, _ = rank_histogram(result)
    assert labels(annotation.get_xticklabels()) == ["1", "10", "100", "1k", "10k"]


def test_the_legend_names_the_lines_once(results, figure, axes, pyplot):
    recall_curves(results, axes=axes)
    assert axes[0].get_legend() is None
    names = ["good", "(unnamed)", "expected by chance"]
    assert labels(axes[1].get_legend().get_texts()) == names
    assert figure.legends == []
    own = recall_curves(results)[0].figure
    assert labels(own.legends[0].get_texts()) == names
    assert all(panel.get_legend() is None for panel in own.axes)


def test_bars_up_to_k_add_up_to_the_recall_at_k(results, axes):
    rank_histogram(results, axes=axes)
    ends = {"annotation": [1, 2, 5, 10, 20, 50], "search": [1, 2, 5, 10, 20]}
    for panel, (task, places) in zip(axes, ends.items(), strict=True):
        assert labels(panel.get_xticklabels()) == [str(place) for place in places]
        for result, heights in zip(results, bars_of(panel), strict=True):
            recalls = 100 * recalls_at(result, task, np.array(places))
            np.testing.assert_allclose(np.cumsum(heights), recalls)
        (chance,) = [patch for patch in panel.patches if not hasattr(patch, "get_height")]
        n = results[0].n_candidates[task][0]
        expected = 100 * chance_recalls(results[0], task, np.minimum(places, n))
        np.testing.assert_allclose(np.cumsum(chance.get_data().values), expected)


def test_triangles_stand_at_the_median_ranks(axes):
    scores = np.array([[3.0, 1, 2], [3, 1, 2], [3, 1, 2]])
    rank_histogram(evaluate(scores, ties="min"), axes=axes)
    annotation, search = (panel.get_lines()[0] for panel in axes)
    assert annotation.get_marker() == search.get_marker() == "v"
    # annotation: ranks 1, 3 and 2; search: all tie for rank 1
    assert annotation.get_xydata().tolist() == [[1.5, 0.96]]
    assert search.get_xydata().tolist() == [[0.5, 0.96]]


@pytest.mark.parametrize("draw", [recall_curves, rank_histogram])
def test_what_cannot_be_compared_is_refused(draw, results):
    refuses(ValueError, "results", draw, [])
    refuses(TypeError, "results", draw, ["good"])
    refuses(TypeError, "results", draw, 3)
    refuses(ValueError, "results", draw, [Result({"links": {"AUC": [0.5]}})])
    refuses(ValueError, "results", draw, [*results, evaluate(np.eye(20), system="small")])
    uneven = np.r_[np.arange(20), np.zeros(20, int)]
    other = evaluate(np.zeros((20, 40)), caption_image=uneven)
    refuses(ValueError, "results", draw, [*results, other])
    refuses(ValueError, "max_k", recall_curves, results, max_k=1)


def test_medians_of_many_systems_stand_above_their_bars(axes):
    results = [evaluate(np.eye(4), system=f"system {i}") for i in range(20)]
    rank_histogram(results, axes=axes)
    for panel in axes:
        heights = [line.get_ydata()[0] for line in panel.get_lines()[:20]]
        assert heights == sorted(heights, reverse=True)
        assert len(set(heights)) == 20
        assert 100 / panel.get_ylim()[1] < heights[-1]


SHUFFLED = [2, 0, 1, 0, 2, 1]
SCORES = np.arange(18, dtype=np.float32).reshape(3, 6)


@pytest.fixture
def ax(figure):
    return figure.subplots()


def frames(ax):
    return [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in ax.patches]


def test_captions_stand_image_by_image_and_gold_is_framed(ax):
    similarity_matrix(SCORES, SHUFFLED, ax=ax)
    (image,) = ax.get_images()
    assert image.get_array().tolist() == SCORES[:, [1, 3, 2, 5, 0, 4]].tolist()
    assert frames(ax) == [(-0.5, -0.5, 2, 1), (1.5, 0.5, 2, 1), (3.5, 1.5, 2, 1)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("caption", "image")


def test_without_owners_the_diagonal_is_gold(ax):
    similarity_matrix(np.eye(50), ax=ax)
    assert frames(ax) == [(i - 0.5, i - 0.5, 1, 1) for i in range(40)]


def test_colours_span_the_percentiles_and_the_bar_names_them(ax):
    scores = np.arange(1000.0).reshape(25, 40)
    similarity_matrix(scores, np.arange(40) % 25, ax=ax)
    (image,) = ax.get_images()
    assert image.get_clim() == tuple(np.percentile(scores, [1, 99]))
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "score"


def test_what_is_no_matrix_of_scores_is_refused():
    odd = {
        "scores": [[[np.inf, 0, 0, 0, 0, 0]] * 3, [1, 2], np.zeros((0, 6)), [["a"]]],
        "caption_image": [[0, 1, 2], [0, 1, 2, 3, 0, 1], [0] * 6],
        "max_images": [0, 2.5],
    }
    usual = {"scores": SCORES, "caption_image": SHUFFLED, "max_images": 2}
    refuses_each(similarity_matrix, odd, **usual)
    refuses(ValueError, "caption_image", similarity_matrix, SCORES)
