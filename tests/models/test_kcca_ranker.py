from functools import partial

import numpy as np
import pytest
from refusals import refuses
from sklearn.metrics.pairwise import cosine_similarity

from kernelcore.captions import Vocabulary
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.kcca import KCCA, factorize
from kernelcore.kernels import bag_of_words, ridge
from kernelcore.models import KCCARanker, NearestNeighbourRanker, select_kcca


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(90, 3))
IMAGES = np.hstack([SHARED, RNG.normal(size=(90, 5))]) @ RNG.normal(size=(8, 8))
CAPTIONS = np.hstack([SHARED, RNG.normal(size=(90, 4))]) @ RNG.normal(size=(7, 7))
TRAIN, TEST = slice(0, 60), slice(60, 90)
KX, KX_NEW = linear(IMAGES[TRAIN]), linear(IMAGES[TEST], IMAGES[TRAIN])
KY, KY_NEW = linear(CAPTIONS[TRAIN]), linear(CAPTIONS[TEST], CAPTIONS[TRAIN])


def unit_diagonal(K):
    return K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))


@pytest.mark.parametrize("power", [0.0, 1.0, 4.0])
def test_scores_are_cosines_of_weighted_projections(power):
    ranker = KCCARanker(4, regularization=0.5, correlation_power=power).fit(KX, KY)
    kcca = KCCA(4, regularization=0.5).fit(KX, KY)
    weights = np.diag(kcca.correlations_ ** (power / 2))
    views = kcca.transform_x(KX_NEW) @ weights, kcca.transform_y(KY_NEW) @ weights
    scores = ranker.scores(KX_NEW, KY_NEW)
    np.testing.assert_allclose(scores, cosine_similarity(*views), atol=1e-12)


@pytest.mark.parametrize("power", [1e4, 1e6])
def test_under_a_huge_power_the_best_component_decides(power):
    ranker = KCCARanker(4, regularization=0.5, correlation_power=power).fit(KX, KY)
    one = KCCARanker(1, regularization=0.5).fit(KX, KY)
    np.testing.assert_allclose(ranker.scores(KX[:9], KY[:7]), one.scores(KX[:9], KY[:7]))
    grid = {"n_components_grid": [4], "regularization_grid": [0.5]}
    grid["correlation_power_grid"] = [power]
    selection = select_kcca(factorize(KX, KY), KX_NEW, KY_NEW, **grid)
    assert selection.recalls[0, :, 2].min() > 0.5


def test_functions_and_precomputed_kernels_agree():
    precomputed = KCCARanker(3).fit(KX, KY).scores(KX_NEW, KY_NEW)
    functions = KCCARanker(3, image_kernel=linear, text_kernel=linear)
    functions.fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
    np.testing.assert_array_equal(functions.scores(IMAGES[TEST], CAPTIONS[TEST]), precomputed)
    mixed = KCCARanker(3, text_kernel=linear).fit(KX, CAPTIONS[TRAIN])
    np.testing.assert_array_equal(mixed.scores(KX_NEW, CAPTIONS[TEST]), precomputed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_stays(dtype):
    ranker = KCCARanker(3, correlation_power=3.0, max_rank=6)
    ranker.fit(KX.astype(dtype), KY.astype(dtype))
    assert ranker.scores(KX_NEW.astype(dtype), KY_NEW.astype(dtype)).dtype == dtype


@pytest.mark.parametrize("is_constant", [False, True])
def test_ridge_multiplies_the_training_diagonal(is_constant):
    Ky = unit_diagonal(KY) if is_constant else KY
    explicit = KCCARanker(3).fit(KX, ridge(Ky, 2.0)).scores(KX_NEW, KY_NEW)
    before = Ky.copy()
    option = KCCARanker(3, ridge=(1.0, 2.0)).fit(KX, Ky)
    np.testing.assert_array_equal(Ky, before)
    np.testing.assert_array_equal(option.scores(KX_NEW, KY_NEW), explicit)
    assert (KCCARanker(3).fit(KX, Ky).scores(KX_NEW, KY_NEW) != explicit).any()


@pytest.mark.parametrize("max_rank", [None, 7, 12])
def test_under_a_constant_diagonal_a_ridge_shifts_the_eigenvalues(max_rank):
    """Where a largest rank cuts the null space, another factorisation may cut it elsewhere."""
    grams = unit_diagonal(KX), unit_diagonal(KY)
    options = {"decomposition": "eigen", "max_rank": max_rank}
    fitted = KCCARanker(3, ridge=(3.0, 1.5), **options).fit(*grams)
    shifted = KCCARanker.from_factorization(factorize(*grams, **options), 3, ridge=(3.0, 1.5))
    np.testing.assert_array_equal(fitted.scores(*grams), shifted.scores(*grams))


def test_from_factorization_is_the_fitted_ranker():
    options = {"regularization": (0.3, 0.9), "correlation_power": 2.0, "ridge": (1.0, 3.0)}
    Kx, Ky = unit_diagonal(KX), unit_diagonal(KY)
    factorization = factorize(Kx, Ky, decomposition="eigen", tolerance=0.0)
    quick = KCCARanker.from_factorization(factorization, 4, **options)
    fitted = KCCARanker(4, decomposition="eigen", tolerance=0.0, **options).fit(Kx, Ky)
    expected = fitted.scores(KX_NEW, KY_NEW)
    np.testing.assert_allclose(quick.scores(KX_NEW, KY_NEW), expected, atol=1e-9)


def test_saved_and_loaded(tmp_path):
    ranker = KCCARanker(3, regularization=(0.1, 1.0), ridge=2.0, correlation_power=3.0)
    ranker.fit(KX, KY).save(tmp_path / "ranker.safetensors")
    again = KCCARanker.load(tmp_path / "ranker.safetensors")
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.scores(KX_NEW, KY_NEW), ranker.scores(KX_NEW, KY_NEW))


FEATURES = np.random.default_rng(0).random((12, 5))


def test_pairs_of_repeated_images_are_those_of_the_repeated_rows():
    owners = np.repeat(np.arange(4), 3)
    new = FEATURES[:3], FEATURES[3:6]
    for precomputed in (False, True):
        kernels = ["precomputed"] * 2 if precomputed else [linear] * 2
        images, rows = FEATURES[:4], new
        captions, repeated = FEATURES, FEATURES[owners]
        if precomputed:
            rows = linear(new[0], images), linear(new[1], captions)
            expected = linear(new[0], repeated), rows[1]
            items = linear(images), linear(captions)
            whole = linear(repeated), items[1]
        else:
            expected, items, whole = new, (images, captions), (repeated, captions)
        for make in (
            lambda own: NearestNeighbourRanker(*own),
            lambda own: KCCARanker(2, image_kernel=own[0], text_kernel=own[1]),
        ):
            short = make(kernels).fit(*items, caption_image=owners)
            long = make(kernels).fit(*whole)
            np.testing.assert_allclose(short.scores(*rows), long.scores(*expected), atol=1e-8)
            if precomputed:
                named = r"per training image \(4\)"
                refuses(ValueError, named, short.scores, expected[0], rows[1])


@pytest.mark.realdata
def test_two_halves_of_real_captions_find_each_other(data_root):
    """Captions 0 and 1 of a photo stand in for the photo, captions 2 to 4 describe it."""
    texts: dict[str, list[list[str]]] = {}
    token_file = data_root / "flickr8k" / "Flickr8k.lemma.token.txt"
    for line in token_file.read_text(encoding="utf-8").splitlines()[:5000]:
        image, text = line.split("\t")
        texts.setdefault(image.split("#")[0], []).append(text.lower().split())
    captions = [image for image in texts.values() if len(image) == 5]
    vocabulary = Vocabulary.from_captions(captions[:800], min_count=2)
    parts = slice(0, 2), slice(2, 5)
    halves = [vocabulary.encode([image[part] for image in captions]) for part in parts]
    train, test = np.arange(800), np.arange(800, len(captions))
    kernel = partial(bag_of_words, word_weights=np.sqrt(vocabulary.idf()), dtype=np.float32)
    kernels = {"image_kernel": kernel, "text_kernel": kernel, "decomposition": "eigen"}
    ranker = KCCARanker(100, regularization=1.0, correlation_power=3.0, **kernels)
    ranker.fit(*(half.select(train) for half in halves))
    scores = ranker.scores(*(half.select(test) for half in halves))
    assert scores.dtype == np.float32
    for ranks in retrieval_ranks(scores):
        assert np.median(ranks) <= 4  # of about 200
