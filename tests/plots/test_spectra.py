"""Eigenvalues of kernels, correlations, recalls by a parameter, and similar words."""

import numpy as np
import pytest
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from kernelcore.errors import NotFittedError
from kernelcore.kcca import KCCA, factorize, kernel_basis
from kernelcore.lexical import WordKernel
from kernelcore.models import KCCARanker, select_kcca
from kernelcore.plots import (
    canonical_correlations,
    kernel_spectrum,
    regularization_path,
    word_neighbors,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = X + RNG.normal(size=(30, 4))


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


@pytest.fixture
def ax(figure):
    return figure.subplots()


def lines(ax):
    return {line.get_label(): line.get_ydata() for line in ax.get_lines()}


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def test_eigenvalues_are_those_of_the_centred_kernel(ax):
    kernel_spectrum({"photos": linear(X), "words": linear(Y)}, ax=ax)
    for name, rows in (("photos", X), ("words", Y)):
        expected = np.linalg.svd(rows - rows.mean(axis=0))[1] ** 2
        np.testing.assert_allclose(lines(ax)[name], expected / expected[0], rtol=1e-9)
    assert ax.get_lines()[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert ax.get_yscale() == "log"
    assert labels(ax.get_legend().get_texts()) == ["photos", "words"]


def test_a_basis_gives_its_eigenvalues(ax):
    basis = kernel_basis(linear(X), max_rank=2)
    kernel_spectrum({"two": basis}, legend=False, ax=ax)
    expected = basis.eigenvalues / basis.eigenvalues[0]
    assert lines(ax)["two"].tolist() == expected.tolist()
    assert ax.get_legend() is None


@pytest.mark.parametrize(
    ("kernels", "named"),
    [
        ({}, "kernels"),
        ([[1.0, 2.0], [0.0, 1.0]], "kernels"),
        (np.ones((3, 3)), "kernels"),
        ({"photos": linear(X), "words": [[np.nan]]}, r"kernels\['words'\]"),
    ],
)
def test_what_is_no_kernel_is_refused(kernels, named):
    with pytest.raises((TypeError, ValueError), match=f"^{named} must"):
        kernel_spectrum(kernels)


def test_correlations_of_training_and_of_other_samples(ax):
    kcca = KCCA(regularization=0.01).fit(linear(X[:20]), linear(Y[:20]))
    held_out = linear(X[20:], X[:20]), linear(Y[20:], Y[:20])
    canonical_correlations(kcca, held_out, ax=ax)
    x, y = kcca.transform_x(held_out[0]), kcca.transform_y(held_out[1])
    expected = [np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(x.shape[1])]
    assert lines(ax)["training"].tolist() == kcca.correlations_.tolist()
    np.testing.assert_allclose(lines(ax)["held out"], expected, rtol=1e-9)
    assert labels(ax.get_legend().get_texts()) == ["training", "held out"]
    bottom, top = ax.get_ylim()
    assert bottom <= min(0, *expected)
    assert top > 1


def test_a_component_that_is_constant_elsewhere_has_no_correlation(ax):
    kcca = KCCA(n_components=1).fit(linear(X), linear(Y))
    same = np.repeat(linear(X)[:1], 3, axis=0), np.repeat(linear(Y)[:1], 3, axis=0)
    canonical_correlations(kcca, same, ax=ax)
    assert lines(ax)["held out"].tolist() == [0]


def test_correlations_that_do_not_fit_are_refused():
    kcca = KCCA().fit(linear(X), linear(Y))
    refuses(NotFittedError, "fitted", canonical_correlations, KCCA())
    for odd in ([], [[0.5]], [np.nan], "kcca", KCCARanker()):
        refuses((TypeError, ValueError), "kcca", canonical_correlations, odd)
    K = linear(X)
    for odd in ((K,), (K, K, K), (K, K[:5]), (K[:1], K[:1]), (K[:, :5], K), 3):
        refuses((TypeError, ValueError), "held_out", canonical_correlations, kcca, odd)
    refuses(TypeError, "held_out", canonical_correlations, [0.5], (K, K))


@pytest.fixture(scope="module")
def selection():
    return select(n_components_grid=[1, 2, 4], regularization_grid=[10.0, 0.1, (0.1, 10.0)])


def select(**grid):
    factorization = factorize(linear(X[:20]), linear(Y[:20]))
    dev = linear(X[20:], X[:20]), linear(Y[20:], Y[:20])
    return select_kcca(factorization, *dev, **grid)


def best(selection, parameter, value):
    """Mean recalls of both tasks of the best setting with this value."""
    places = [i for i, one in enumerate(selection.settings) if getattr(one, parameter) == value]
    place = max(places, key=lambda i: selection.recalls[i].sum())
    return (100 * selection.recalls[place].mean(axis=1)).tolist()


def test_each_value_shows_the_best_of_its_settings(selection, ax):
    regularization_path(selection, "n_components", ax=ax)
    annotation, recall, chosen = ax.get_lines()
    assert [line.get_label() for line in ax.get_lines()] == ["annotation", "search", "chosen"]
    assert annotation.get_xdata().tolist() == [1, 2, 4]
    for place, value in enumerate([1, 2, 4]):
        expected = best(selection, "n_components", value)
        assert [annotation.get_ydata()[place], recall.get_ydata()[place]] == expected
    assert set(chosen.get_xdata()) == {selection.best().n_components}
    assert ax.get_xscale() == "log"
    assert labels(ax.get_xticklabels()) == ["1", "2", "4"]
    assert ax.get_xlabel() == "n_components"


def test_values_that_are_no_scale_stand_side_by_side(selection, ax):
    regularization_path(selection, ax=ax)
    assert ax.get_xscale() == "linear"
    assert labels(ax.get_xticklabels()) == ["10", "0.1", "0.1, 10"]
    annotation = ax.get_lines()[0]
    assert annotation.get_xdata().tolist() == [0, 1, 2]
    assert annotation.get_ydata()[1] == best(selection, "regularization", (0.1, 0.1))[0]


def test_every_second_of_many_values_is_marked(ax):
    values = [10.0**k for k in range(-6, 4)] + [0.0]
    regularization_path(select(n_components_grid=[2], regularization_grid=values), ax=ax)
    assert ax.get_lines()[0].get_xdata().tolist() == list(range(11))
    # 0 has no place on a logarithmic scale
    assert labels(ax.get_xticklabels()) == ["0", "1e-05", "0.001", "0.1", "10", "1000"]


def test_what_was_not_searched_is_refused(selection):
    refuses(TypeError, "selection", regularization_path, [0.1, 1.0])
    for odd in ("max_rank", 3, ["n_components"]):
        refuses(ValueError, "parameter", regularization_path, selection, odd)


KERNEL = WordKernel(
    ["bike", "cycle", "$dog", "wheel"],
    [[1, 0.5, -0.2, 0.75], [0.5, 1, 0, 0], [-0.2, 0, 1, 0], [0.75, 0, 0, 1]],
)


def test_the_most_similar_word_is_at_the_top(ax):
    word_neighbors(KERNEL, "bike", ax=ax)
    assert labels(ax.get_yticklabels()) == ["wheel", "cycle"]
    (bars,) = ax.containers
    assert [bar.get_width() for bar in bars] == [0.75, 0.5]
    assert [text.get_text() for text in ax.texts] == ["0.75", "0.50"]
    low, high = ax.get_ylim()
    assert low > high
    assert ax.get_title() == "Words similar to “bike”"
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] > 1


def test_a_word_that_is_like_no_other(ax):
    word_neighbors(KERNEL, "$dog", ax=ax)
    assert labels(ax.get_yticklabels()) == []
    assert [text.get_text() for text in ax.texts] == ["none"]
    assert ax.get_title() == r"Words similar to “\$dog”"
    ax.figure.draw_without_rendering()


def test_what_is_no_word_of_a_kernel_is_refused(figure):
    odd = {"kernel": [[[1.0]], {"bike": "cycle"}], "word": ["car", 3], "k": [0, 1.5]}
    axes = figure.subplots()
    refuses_each(word_neighbors, odd, kernel=KERNEL, word="bike", k=2, ax=axes)
