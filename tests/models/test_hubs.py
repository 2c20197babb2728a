"""Hub correction: the definition, its order of candidates, and where its bank comes from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.captions import Vocabulary
from kernelcore.evaluation import evaluate
from kernelcore.kernels import word_sequence
from kernelcore.models import ChanceRanker, HubCorrection, KCCARanker, hub_corrected, hubs
from kernelcore.reference.hub_corrected import hub_corrected as by_definition

RNG = np.random.default_rng(0)


@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3),
    k=st.integers(1, 8),
    task=st.sampled_from(["annotation", "search"]),
    method=st.sampled_from(hubs.METHODS),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_is_the_definition(shape, k, task, method, dtype, seed):  # noqa: PLR0917
    n_images, n_captions, n_bank = shape
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_images, n_captions)).astype(dtype)
    of_bank = (n_bank, n_captions) if task == "annotation" else (n_images, n_bank)
    bank = rng.integers(-3, 4, of_bank).astype(dtype)
    options = {"method": method, "n_neighbors": k, "inverse_temperature": 0.7}
    corrected = hub_corrected(scores, bank, task=task, **options)
    assert corrected.dtype == dtype
    np.testing.assert_allclose(
        corrected,
        by_definition(scores.tolist(), bank.tolist(), task=task, **options),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("method", hubs.METHODS)
def test_blocks_change_nothing(monkeypatch, method):
    scores, bank = RNG.normal(size=(7, 50)), RNG.normal(size=(20, 50))
    whole = hub_corrected(scores, bank, task="annotation", method=method)
    monkeypatch.setattr(hubs, "_BLOCK", 45)
    blocks = hub_corrected(scores, bank, task="annotation", method=method)
    np.testing.assert_array_equal(blocks, whole)


@pytest.mark.parametrize("method", hubs.METHODS)
def test_hubs_lose_their_rank(method):
    """Captions have more or less of what all images have."""
    rng = np.random.default_rng(3)
    signal, common = rng.normal(size=(300, 20)), rng.normal(size=20)
    captions = signal + np.abs(rng.normal(size=(300, 1))) * common
    images = signal + rng.normal(size=signal.shape) + common
    unit = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (images, captions)]
    scores = unit[0][150:] @ unit[1][150:].T
    of_images, of_captions = unit[0][:150] @ unit[1][150:].T, unit[0][150:] @ unit[1][:150].T
    before = evaluate(scores)
    after = evaluate(
        hub_corrected(scores, of_images, task="annotation", method=method),
        hub_corrected(scores, of_captions, task="search", method=method),
    )
    k = 1 if method == "csls" else 5
    assert after.annotation.recall[k] > before.annotation.recall[k] + 0.05
    assert after.search.recall[k] > before.search.recall[k] + (0.05 if k == 1 else 0.03)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def kcca():
    return KCCARanker(3, image_kernel=linear, text_kernel=linear)


@pytest.fixture(scope="module")
def items():
    images = RNG.normal(size=(60, 5))
    return images, images @ RNG.normal(size=(5, 4)) + 0.1 * RNG.normal(size=(60, 4))


@pytest.mark.parametrize("task", ["annotation", "search"])
def test_the_bank_is_drawn_from_the_training_items(items, task):
    images, captions = items
    ranker = HubCorrection(kcca(), n_bank=10, n_neighbors=3).fit(images[:40], captions[:40])
    drawn = [
        [int(np.flatnonzero((whole == row).all(axis=1))[0]) for row in part]
        for whole, part in (
            (images, ranker.bank_images_),
            (captions, ranker.bank_captions_),
        )
    ]
    assert all(len(set(rows)) == 10 and max(rows) < 40 for rows in drawn)
    alone = kcca().fit(images[:40], captions[:40])
    bank = (
        alone.scores(images[drawn[0]], captions[40:])
        if task == "annotation"
        else alone.scores(images[40:], captions[drawn[1]])
    )
    expected = hub_corrected(
        alone.scores(images[40:], captions[40:]), bank, task=task, n_neighbors=3
    )
    np.testing.assert_array_equal(
        ranker.scores(images[40:], captions[40:], task=task), expected
    )


def test_a_score_does_not_depend_on_what_else_is_asked(items):
    images, captions = items
    ranker = HubCorrection(kcca()).fit(images[:40], captions[:40])
    for task in ("annotation", "search"):
        whole = ranker.scores(images[40:], captions[40:], task=task)
        part = ranker.scores(images[42:45], captions[50:], task=task)
        np.testing.assert_allclose(part, whole[2:5, 10:], rtol=1e-10)


def test_a_fitted_ranker_gets_a_bank(items):
    images, captions = items
    fitted = kcca().fit(images[:40], captions[:40])
    given = HubCorrection(fitted).set_bank(images[:40], captions[:40])
    fresh = HubCorrection(kcca()).fit(images[:40], captions[:40])
    np.testing.assert_array_equal(
        given.scores(images[40:], captions[40:]), fresh.scores(images[40:], captions[40:])
    )


def test_captions_of_the_bank_stand_alone():
    """A query is one caption, so a bag of several would be no peer of it."""
    words = [[["a", "dog"], ["it", "runs"]], [["the", "sea"]], [["a", "boat"]]]
    encoded = Vocabulary.from_captions(words, min_count=1).encode(words)
    images = np.eye(3)
    ranker = KCCARanker(1, image_kernel=linear, text_kernel=word_sequence)
    assert len(HubCorrection(ranker).fit(images, encoded).bank_captions_) == 4
    nested = [["a dog", "it runs"], ["the sea"], ["a boat"]]
    assert HubCorrection(ChanceRanker()).fit(images, nested).bank_captions_ == [
        *("a dog", "it runs", "the sea", "a boat")
    ]


ONES = np.ones((2, 3))
ANNOTATION = {"task": "annotation"}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            (ONES, np.ones((4, 2))),
            {"task": "annotation"},
            r"bank must have the captions .*\(3\)",
        ),
        ((ONES, np.ones((4, 3))), {"task": "search"}, r"bank must have the images .*\(2\)"),
        ((ONES, np.ones((0, 3))), ANNOTATION, "bank must hold at least one query"),
        ((ONES, np.full((4, 3), np.nan)), ANNOTATION, "bank must be finite"),
        ((ONES * np.inf, ONES), ANNOTATION, "scores must be finite"),
        ((ONES * 1.7e308, ONES), ANNOTATION, "scores must be so small"),
        ((ONES, ONES), {"task": "both"}, "task must be one of"),
        ((ONES, ONES), {**ANNOTATION, "method": "softmax"}, "method must be one of"),
        (
            (ONES, ONES),
            {**ANNOTATION, "inverse_temperature": 0.0},
            "inverse_temperature must be a number > 0",
        ),
        (
            (ONES * 1.7e308, ONES * -1.7e308),
            {**ANNOTATION, "method": "z_score"},
            "scores must be so small",
        ),
        ((ONES, ONES), {"task": "search", "n_neighbors": 0}, "n_neighbors must be an integer"),
    ],
)
def test_bad_arguments_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        hub_corrected(*arguments, **options)


@pytest.mark.parametrize("name", ["n_neighbors", "n_bank"])
def test_bad_parameters_are_named(items, name):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1, got 0"):
        HubCorrection(kcca(), **{name: 0}).fit(*items)


def test_only_rankers_are_corrected(items):
    with pytest.raises(TypeError, match="ranker must have the methods fit and scores"):
        HubCorrection("ranker").fit(*items)


def test_a_candidate_that_the_bank_scores_alike_has_deviation_one():
    """Also where rounding sets the scores apart."""
    bank = np.array([[0.1, 0.1], [0.1, 0.3], [np.nextafter(0.1, 1), 0.5]])
    corrected = hub_corrected([[0.4, 0.3]], bank, task="annotation", method="z_score")
    np.testing.assert_allclose(corrected, [[0.3, 0.0]], atol=1e-12)


def test_the_inverted_softmax_ranks_as_the_published_ratio():
    scores, bank = RNG.normal(size=(6, 9)), RNG.normal(size=(30, 9))
    for beta in (0.5, 20.0):
        ratio = np.exp(beta * scores) / np.exp(beta * bank).sum(axis=0)
        ours = hub_corrected(
            scores,
            bank,
            task="annotation",
            method="inverted_softmax",
            inverse_temperature=beta,
        )
        np.testing.assert_array_equal(ours.argsort(axis=1), ratio.argsort(axis=1))


def test_large_scores_do_not_overflow_the_inverted_softmax():
    options = {"method": "inverted_softmax", "inverse_temperature": 1e3}
    corrected = hub_corrected([[1e5, 2e5]], [[1e5, 2e5]], task="annotation", **options)
    np.testing.assert_allclose(corrected, [[0.0, 0.0]])


@pytest.mark.parametrize("method", hubs.METHODS)
def test_a_ranker_is_corrected_by_the_formula_that_is_asked_for(items, method):
    images, captions = items
    options = {"method": method, "inverse_temperature": 5.0}
    ranker = HubCorrection(kcca(), **options).fit(images[:40], captions[:40])
    plain = ranker.ranker.scores(images[40:], captions[40:])
    bank = ranker.ranker.scores(images[:40], captions[40:])
    np.testing.assert_array_equal(
        ranker.scores(images[40:], captions[40:]),
        hub_corrected(plain, bank, task="annotation", **options),
    )
