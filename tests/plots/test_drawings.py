"""What each plot draws: recalls and ranks, scores, spectra, fragments and regions."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from kernelcore import plots
from kernelcore.evaluation import evaluate
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.kcca import KCCA, kernel_basis

OWNER = np.repeat(np.arange(20), 2)
TASKS = ("annotation", "search")
LINES = ["good", "(unnamed)", "expected by chance"]


@pytest.fixture
def results():
    good, poor = np.random.default_rng(0).random((2, 20, 40))
    good[OWNER, np.arange(40)] += 0.6
    both = {"good": good, "": poor}
    return [evaluate(own, caption_image=OWNER, system=name) for name, own in both.items()]


@pytest.fixture
def axes(figure):
    return figure.subplots(2)


def recalls_at(result, task, ks):
    return np.array([np.mean(result.values[task]["mean_rank"] <= k) for k in ks])


def chance_recalls(result, task, k):
    n, relevant = result.n_candidates[task][0], result.n_relevant[task][0]
    return chance_recall_at_k(n, k, n_relevant=relevant)


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def named(ax):
    return labels(ax.get_legend().get_texts())


def bars_of(panel):
    """Heights of the bars of each system, from the lowest ranks on."""
    return [[bar.get_height() for bar in bars] for bars in panel.containers]


def test_a_line_for_every_system_and_one_for_chance(results, axes):
    plots.recall_curves(results, axes=axes)
    short = plots.recall_curves(results, max_k=30)
    assert [panel.get_xlim() for panel in short] == [(1, 30), (1, 20)]
    for panel, task in zip(axes, TASKS, strict=True):
        n = results[0].n_candidates[task][0]
        ks = np.arange(1, n + 1)
        good, unnamed, chance = panel.get_lines()
        assert [line.get_label() for line in panel.get_lines()] == LINES
        assert good.get_xdata().tolist() == list(range(1, n + 1))
        assert (good.get_ydata() == 100 * recalls_at(results[0], task, ks)).all()
        assert (unnamed.get_ydata() == 100 * recalls_at(results[1], task, ks)).all()
        expected = [chance_recalls(results[0], task, k) for k in ks]
        assert chance.get_ydata() == pytest.approx(100 * np.array(expected))
        assert panel.get_xlim() == (1, n)
        assert panel.get_ylim() == (0, 100)
    assert labels(axes[0].get_xticklabels()) == ["1", "2", "5", "10", "20", "50"]


def test_the_legend_names_the_lines_once(results, figure, axes, pyplot):
    plots.recall_curves(results, axes=axes)
    assert axes[0].get_legend() is None
    assert named(axes[1]) == LINES
    assert figure.legends == []
    own = plots.recall_curves(results)[0].figure
    assert labels(own.legends[0].get_texts()) == LINES
    assert all(panel.get_legend() is None for panel in own.axes)


def test_bars_up_to_k_add_up_to_the_recall_at_k(results, axes):
    plots.rank_histogram(results, axes=axes)
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
    plots.rank_histogram(evaluate(scores, ties="min"), axes=axes)
    annotation, search = (panel.get_lines()[0] for panel in axes)
    assert annotation.get_marker() == search.get_marker() == "v"
    # annotation: ranks 1, 3 and 2; search: all tie for rank 1
    assert annotation.get_xydata().tolist() == [[1.5, 0.96]]
    assert search.get_xydata().tolist() == [[0.5, 0.96]]


SHUFFLED = [2, 0, 1, 0, 2, 1]
SCORES = np.arange(18, dtype=np.float32).reshape(3, 6)


def test_captions_stand_image_by_image_and_gold_is_framed(ax):
    plots.similarity_matrix(SCORES, SHUFFLED, ax=ax)
    (image,) = ax.get_images()
    assert image.get_array().tolist() == SCORES[:, [1, 3, 2, 5, 0, 4]].tolist()
    assert boxes(ax) == [(-0.5, -0.5, 2, 1), (1.5, 0.5, 2, 1), (3.5, 1.5, 2, 1)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("caption", "image")


def test_without_owners_the_diagonal_is_gold(ax):
    plots.similarity_matrix(np.eye(50), ax=ax)
    assert boxes(ax) == [(i - 0.5, i - 0.5, 1, 1) for i in range(40)]


def test_colours_span_the_percentiles_and_the_bar_names_them(ax):
    scores = np.arange(1000.0).reshape(25, 40)
    plots.similarity_matrix(scores, np.arange(40) % 25, ax=ax)
    (image,) = ax.get_images()
    assert image.get_clim() == tuple(np.percentile(scores, [1, 99]))
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "score"


PHOTO = np.full((30, 40, 3), 120, np.uint8)
BOXES = [[0, 0, 40, 30], [5, 5, 20, 25], [1, 2, 3, 4]]
PRODUCTS = [[0.1, 2.0, -1.0], [0.7, 1.0, -2.0], [0.2, 0.5, -3.0]]
NAMES = ["dog", "$black", "_sea"]


def boxes(ax):
    return [(*p.get_xy(), p.get_width(), p.get_height()) for p in ax.patches]


def test_a_row_per_fragment_with_its_best_region_framed(ax):
    plots.alignments(PRODUCTS, NAMES, ax=ax)
    (image,) = ax.get_images()
    assert image.get_array().tolist() == np.transpose(PRODUCTS).tolist()
    assert image.get_clim() == (-3, 3)  # 0 is the middle of the colours
    assert boxes(ax) == [(0.5, -0.5, 1, 1), (-0.5, 0.5, 1, 1), (-0.5, 1.5, 1, 1)]
    names = labels(ax.get_yticklabels())
    assert names == ["dog", r"\$black", "\u200b_sea"]
    assert ax.get_xlabel() == "region"
    plots.alignments(np.zeros((2, 1)), ["dog"], ax=ax)
    assert ax.get_images()[-1].get_clim() == (-1, 1)


def test_each_fragment_has_its_best_region_on_the_photo(ax):
    plots.aligned_regions(PHOTO, BOXES, PRODUCTS, NAMES, ax=ax)
    assert (ax.get_images()[0].get_array() == PHOTO).all()
    assert boxes(ax) == [(0, 0, 40, 30), (5, 5, 15, 20), (0, 0, 40, 30)]
    assert named(ax) == [r"\$black 2.00", "dog 0.70", "\u200b_sea -1.00"]
    assert len({patch.get_edgecolor() for patch in ax.patches}) == 3
    assert not ax.axison
    outer, other, inner = (patch.get_linewidth() for patch in ax.patches)
    assert outer > inner == other > 0  # frames of one region lie in each other
    handles = ax.get_legend().get_patches()
    assert [handle.get_linewidth() for handle in handles] == [inner] * 3
    assert [h.get_edgecolor() for h in handles] == [p.get_edgecolor() for p in ax.patches]


def test_six_fragments_are_shown(ax):
    products = np.ones((3, 1)) * np.arange(8.0)
    plots.aligned_regions(PHOTO, BOXES, products, list("abcdefgh"), ax=ax)
    assert named(ax) == [f"{name} {i}.00" for i, name in zip("765432", "hgfedc", strict=True)]


def test_a_caption_without_fragments_is_a_photo(ax):
    plots.aligned_regions(PHOTO, BOXES, np.zeros((3, 0)), [], ax=ax)
    assert boxes(ax) == []
    assert ax.get_legend() is None


def test_found_regions_stand_in_their_photos(figure):
    given = figure.subplots(1, 2)
    photos = [PHOTO, PHOTO + 1]
    found = plots.found_regions(photos, BOXES[:2], [2.0, 1.0], axes=given)
    for ax, photo, box in zip(found, photos, [(0, 0, 40, 30), (5, 5, 15, 20)], strict=True):
        assert (ax.get_images()[0].get_array() == photo).all()
        assert boxes(ax) == [box]
    assert [ax.get_title() for ax in found] == ["2.00", "1.00"]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = X + RNG.normal(size=(30, 4))


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def lines(ax):
    return {line.get_label(): line.get_ydata() for line in ax.get_lines()}


def test_eigenvalues_are_those_of_the_centred_kernel(ax):
    plots.kernel_spectrum({"photos": linear(X), "words": linear(Y)}, ax=ax)
    for name, rows in (("photos", X), ("words", Y)):
        expected = np.linalg.svd(rows - rows.mean(axis=0))[1] ** 2
        np.testing.assert_allclose(lines(ax)[name], expected / expected[0], rtol=1e-9)
    assert ax.get_lines()[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert ax.get_yscale() == "log"
    assert named(ax) == ["photos", "words"]


def test_a_basis_gives_its_eigenvalues(ax):
    basis = kernel_basis(linear(X), max_rank=2)
    plots.kernel_spectrum(basis, ax=ax)
    expected = basis.eigenvalues / basis.eigenvalues[0]
    assert ax.get_lines()[0].get_ydata().tolist() == expected.tolist()
    assert ax.get_legend() is None


def test_correlations_of_training_and_of_other_samples(ax):
    kcca = KCCA(regularization=0.01).fit(linear(X[:20]), linear(Y[:20]))
    held_out = linear(X[20:], X[:20]), linear(Y[20:], Y[:20])
    plots.canonical_correlations(kcca, held_out, ax=ax)
    x, y = kcca.transform_x(held_out[0]), kcca.transform_y(held_out[1])
    expected = [np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(x.shape[1])]
    assert lines(ax)["training"].tolist() == kcca.correlations_.tolist()
    np.testing.assert_allclose(lines(ax)["held out"], expected, rtol=1e-9)
    assert named(ax) == ["training", "held out"]


def test_a_component_that_is_constant_elsewhere_has_no_correlation(ax):
    kcca = KCCA(n_components=1).fit(linear(X), linear(Y))
    same = np.repeat(linear(X)[:1], 3, axis=0), np.repeat(linear(Y)[:1], 3, axis=0)
    plots.canonical_correlations(kcca, same, ax=ax)
    assert lines(ax)["held out"].tolist() == [0]
