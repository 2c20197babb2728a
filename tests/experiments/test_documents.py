import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import normalize

from kernelcore.evaluation.overlap import effective_number
from kernelcore.experiments.documents import explain_auc, spread

NAN = float("nan")
APART = [[f"{i}"] for i in range(80)]


SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 4))
NUMBERS = st.floats(-100, 100).filter(lambda x: x == 0 or abs(x) > 1e-3)


@given(hnp.arrays(np.float64, SHAPES, elements=NUMBERS))
def test_spread_is_half_the_mean_squared_distance_of_pairs(vectors):
    directions = normalize(vectors)
    pairs = np.square(directions[:, np.newaxis] - directions).sum(axis=2)
    assert spread(vectors) == pytest.approx(pairs.mean() / 2, abs=1e-12)
    assert 0 <= spread(vectors) <= 1 + 1e-12


def collection(n=80, seed=0, width=6):
    """Documents of which some are spread wider than others."""
    rng = np.random.default_rng(seed)
    images = [rng.normal(size=(rng.integers(1, 6), width)) + 3 * rng.random() for _ in range(n)]
    sentences = [rng.normal(size=(rng.integers(1, 9), 4)) + 1 for _ in range(n)]
    return images, sentences, rng


def test_regressions_are_those_of_scikit_learn_and_scipy():
    images, sentences, rng = collection()
    spreads = np.array([[spread(i), spread(s)] for i, s in zip(images, sentences, strict=True)])
    means = [[vectors.mean(axis=0) for vectors in part] for part in (images, sentences)]
    contents = np.column_stack([PCA(3).fit_transform(own) for own in means])
    auc = 0.5 + 0.3 * spreads[:, 0] + 0.05 * contents[:, 0] + 0.02 * rng.normal(size=80)
    auc = np.clip(auc, 0, 1)
    explained = explain_auc(auc, images, sentences, APART, n_components=3)
    for regression, columns in (
        (explained["spread"], spreads),
        (explained["content"], contents),
        (explained["spread and content"], np.column_stack([spreads, contents])),
    ):
        r2, k = LinearRegression().fit(columns, auc).score(columns, auc), columns.shape[1]
        assert regression.r2 == pytest.approx(r2)
        statistic = (r2 / k) / ((1 - r2) / (80 - k - 1))
        assert regression.p_value == pytest.approx(scipy.stats.f.sf(statistic, k, 80 - k - 1))


def test_documents_that_share_images_count_for_less():
    images, sentences, rng = collection()
    auc = np.repeat(rng.random(40), 2)  # of pairs of documents
    pairs = [[f"{i // 2}"] for i in range(80)]
    plain = explain_auc(auc, images, sentences, APART, n_components=2)["spread"]
    fewer = explain_auc(auc, images, sentences, pairs, n_components=2)["spread"]
    assert fewer.r2 == plain.r2
    n_free = effective_number(auc, pairs) - 3
    f = plain.r2 / (1 - plain.r2) * n_free / 2
    assert fewer.p_value == pytest.approx(scipy.stats.f.sf(f, 2, n_free))
    assert fewer.p_value > plain.p_value


def test_skipped_documents_are_left_out():
    images, sentences, rng = collection()
    auc = rng.random(80)
    auc[[3, 70]] = NAN
    kept = np.flatnonzero(~np.isnan(auc))
    options = {"n_components": 2}
    part = explain_auc(
        auc[kept], [images[i] for i in kept], [sentences[i] for i in kept],
        [APART[i] for i in kept], **options,
    )  # fmt: skip
    assert explain_auc(auc, images, sentences, APART, **options) == part


def test_equal_auc_explains_nothing():
    images, sentences, _ = collection(30)
    explained = explain_auc(np.full(30, 0.9), images, sentences, APART, n_components=2)
    assert np.isnan(explained["spread"].r2)
    assert np.isnan(explained["content"].p_value)


def test_constant_regressors_count_for_nothing():
    rng = np.random.default_rng(4)
    auc, sentences = rng.random(30), [rng.normal(size=(3, 2)) for _ in range(30)]
    same = [np.array([[1.0, 2.0, 0.1], [0.3, 0.1, 5.0]])] * 30
    explained = explain_auc(auc, same, sentences, APART)
    plain = explain_auc(auc, sentences, sentences, APART)
    assert explained["content"].r2 == pytest.approx(plain["content"].r2)
    nothing = explain_auc(auc, same, same, APART)
    assert (nothing["content"].r2, nothing["content"].p_value) == (0, 1)
    assert (nothing["spread"].r2, nothing["spread"].p_value) == (0, 1)
