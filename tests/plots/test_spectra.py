"""Eigenvalues of kernels, and correlations."""

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("matplotlib")

from kernelcore.errors import NotFittedError
from kernelcore.kcca import KCCA, kernel_basis
from kernelcore.models import KCCARanker
from kernelcore.plots import (
    canonical_correlations,
    kernel_spectrum,
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
    kernel_spectrum(basis, ax=ax)
    expected = basis.eigenvalues / basis.eigenvalues[0]
    assert ax.get_lines()[0].get_ydata().tolist() == expected.tolist()
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
    for odd in ([0.5], "kcca", KCCARanker()):
        refuses(TypeError, "kcca", canonical_correlations, odd)
    K = linear(X)
    for odd in ((K,), (K, K, K), (K, K[:5]), (K[:1], K[:1]), (K[:, :5], K), 3):
        refuses((TypeError, ValueError), "held_out", canonical_correlations, kcca, odd)
