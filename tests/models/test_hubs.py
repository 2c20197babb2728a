"""Hub correction: the definition, its order of candidates, and where its bank comes from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.captions import Vocabulary
from kernelcore.evaluation import evaluate
from kernelcore.kernels import word_sequence
from kernelcore.models import ChanceRanker, HubCorrection, KCCARanker, hub_corrected, hubs

RNG = np.random.default_rng(0)


def by_definition(scores, bank, task, k):
    """One score at a time."""
    S, B = np.array(scores, float), np.array(bank, float)
    if task == "search":
        return by_definition(S.T, B.T, "annotation", k).T
    corrected = np.empty_like(S)
    for q in range(S.shape[0]):
        for c in range(S.shape[1]):
            nearest = sorted(B[:, c], reverse=True)[:k]
            corrected[q, c] = 2 * S[q, c] - sum(nearest) / len(nearest)
    return corrected


@given(
    shape=st.tuples(*[st.integers(1, 6)] * 3),
    k=st.integers(1, 8),
    task=st.sampled_from(["annotation", "search"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_is_the_definition(shape, k, task, dtype, seed):
    n_images, n_captions, n_bank = shape
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_images, n_captions)).astype(dtype)
    of_bank = (n_bank, n_captions) if task == "annotation" else (n_images, n_bank)
    bank = rng.integers(-3, 4, of_bank).astype(dtype)
    corrected = hub_corrected(scores, bank, task=task, n_neighbors=k)
    assert corrected.dtype == dtype
    np.testing.assert_allclose(
        corrected, by_definition(scores, bank, task, k), rtol=1e-5, atol=1e-5
    )


def test_blocks_change_nothing(monkeypatch):
    scores, bank = RNG.normal(size=(7, 50)), RNG.normal(size=(20, 50))
    whole = hub_corrected(scores, bank, task="annotation")
    monkeypatch.setattr(hubs, "_BLOCK", 45)
    np.testing.assert_array_equal(hub_corrected(scores, bank, task="annotation"), whole)


def test_hubs_lose_their_rank():
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
        hub_corrected(scores, of_images, task="annotation"),
        hub_corrected(scores, of_captions, task="search"),
    )
    assert after.annotation.recall[1] > before.annotation.recall[1] + 0.05
    assert after.search.recall[1] > before.search.recall[1] + 0.05


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
