import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from kernelcore.reference import evaluation as reference

LEVELS = ["nominal", "ordinal", "interval"]
NAN = float("nan")
RATING = st.sampled_from([NAN, -2, 1, 2, 3.5, 10])
labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)
ratings = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(RATING, min_size=n, max_size=n), min_size=1, max_size=12)
)
# Rows are raters: the example of Krippendorff's book with four observers and twelve units.
BOOK = np.transpose([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
])  # fmt: skip


@given(pairs=labels, weights=st.sampled_from([None, "linear", "quadratic"]))
@settings(max_examples=100, deadline=None)
def test_kappa_equals_the_reference(pairs, weights):
    _, codes = np.unique(pairs, return_inverse=True)  # of the categories that occur
    first, second = codes.reshape(-1, 2).T.tolist()
    places = np.arange(5.0)
    distance = abs(places[:, None] - places)
    matrix = {None: 1 - np.eye(5), "linear": distance, "quadratic": distance**2}[weights]
    ours = cohen_kappa(first, second, weights=weights)
    expected = reference.cohen_kappa(first, second, matrix.tolist())
    assert ours == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("labels", "weights"),
    [
        *itertools.product(([1, 2, 3, 4], [-1, 1, 7, 90]), (None, "linear", "quadratic")),
        (["a", "b", "c", "d"], None),
    ],
)
def test_kappa_equals_scikit_learn(labels, weights):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=300)
    second = np.where(rng.random(300) < 0.6, first, rng.integers(4, size=300))
    first, second = np.array(labels)[first], np.array(labels)[second]
    expected = metrics.cohen_kappa_score(first, second, weights=weights)
    assert cohen_kappa(first, second, weights=weights) == pytest.approx(expected, rel=1e-12)
    assert 0.4 < expected < 0.9


@given(ratings=ratings, level=st.sampled_from(LEVELS))
@settings(max_examples=150, deadline=None)
def test_alpha_equals_the_reference(ratings, level):
    if all(np.sum(~np.isnan(unit)) < 2 for unit in ratings):
        with pytest.raises(ValueError, match="unit with at least two ratings"):
            krippendorff_alpha(ratings, level=level)
        return
    expected = reference.krippendorff_alpha(ratings, level=level)
    found = krippendorff_alpha(ratings, level=level)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_the_book(level, alpha):
    assert krippendorff_alpha(BOOK, level=level) == pytest.approx(alpha, abs=5e-4)


def test_interval_follows_its_seed_and_confidence():
    narrow = krippendorff_alpha_interval(BOOK, confidence=0.5, rng=0)
    wide = krippendorff_alpha_interval(BOOK, confidence=0.99, rng=0)
    assert wide[0] < narrow[0] < krippendorff_alpha(BOOK) < narrow[1] < wide[1] <= 1
    assert krippendorff_alpha_interval(BOOK, confidence=0.5, rng=0) == narrow
    assert krippendorff_alpha_interval(BOOK, confidence=0.5, rng=1) != narrow


def test_units_of_a_group_are_drawn_together():
    """Copies of a unit in its group say no more than the unit: the interval stays."""
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 4, size=(40, 2))
    alone = krippendorff_alpha_interval(ratings, level="interval", rng=0)
    copies, groups = np.tile(ratings, (30, 1)), np.tile(np.arange(40), 30)
    together = krippendorff_alpha_interval(copies, level="interval", groups=groups, rng=0)
    np.testing.assert_allclose(together, alone, atol=0.02)
    apart = krippendorff_alpha_interval(copies, level="interval", rng=0)
    assert apart[1] - apart[0] < 0.4 * (together[1] - together[0])


def test_groups_belong_to_all_units_also_to_those_that_do_not_count():
    gaps = [[1, np.nan], [1, 1], [2, 3], [np.nan, np.nan], [2, 2]]
    counted = krippendorff_alpha_interval(gaps[1:3] + gaps[4:], groups=[0, 0, 1], rng=0)
    assert krippendorff_alpha_interval(gaps, groups=[7, 0, 0, 0, 1], rng=0) == counted


def test_draws_without_an_alpha_are_left_out():
    low, high = krippendorff_alpha_interval([[1, 1], [1, 2]], n_resamples=50, rng=0)
    assert not np.isnan([low, high]).any()
    assert np.isnan(krippendorff_alpha_interval([[1, 1]], n_resamples=5, rng=0)).all()


def test_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)

    def sample(n_units):
        truth = rng.integers(1, 4, size=(n_units, 1))
        mistakes = rng.random((n_units, 3)) < 0.3
        return np.where(mistakes, rng.integers(1, 4, size=(n_units, 3)), truth)

    population = krippendorff_alpha(sample(100_000), level="ordinal")
    options = {"level": "ordinal", "n_resamples": 100, "confidence": 0.8, "rng": rng}
    ends = [krippendorff_alpha_interval(sample(100), **options) for _ in range(60)]
    assert 0.6 < np.mean([low < population < high for low, high in ends]) < 0.95


@pytest.mark.realdata
def test_experts_of_flickr8k_agree(data_root):
    krippendorff = pytest.importorskip("krippendorff")
    lines = (data_root / "flickr8k" / "ExpertAnnotations.txt").read_text().splitlines()
    scores = np.array([line.split("\t")[2:] for line in lines], dtype=float)
    ours = krippendorff_alpha(scores, level="ordinal")
    expected = krippendorff.alpha(scores.T, level_of_measurement="ordinal")
    assert ours == pytest.approx(expected, rel=1e-9)
    assert ours > 0.65
    low, high = krippendorff_alpha_interval(scores, level="ordinal", n_resamples=100, rng=0)
    assert low < ours < high < low + 0.05


@pytest.mark.parametrize("level", LEVELS)
def test_alpha_equals_the_package_krippendorff(level):
    krippendorff = pytest.importorskip("krippendorff")
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 5, size=(200, 1))
    noisy = np.clip(truth + rng.integers(-1, 2, size=(200, 6)), 1, 4).astype(float)
    noisy[rng.random(noisy.shape) < 0.4] = np.nan
    for given_ratings in (noisy, BOOK):
        expected = krippendorff.alpha(given_ratings.T, level_of_measurement=level)
        ours = krippendorff_alpha(given_ratings, level=level)
        assert ours == pytest.approx(expected, rel=1e-10)
