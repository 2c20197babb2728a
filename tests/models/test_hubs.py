"""Hub correction: the definition, and its order of candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.evaluation import evaluate
from kernelcore.models import hub_corrected, kcca_ranker
from kernelcore.reference.matching import hub_corrected as by_definition

RNG = np.random.default_rng(0)


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
    options = {"n_neighbors": k}
    corrected = hub_corrected(scores, bank, task=task, **options)
    assert corrected.dtype == dtype
    np.testing.assert_allclose(
        corrected,
        by_definition(scores.tolist(), bank.tolist(), task=task, **options),
        rtol=1e-5,
        atol=1e-5,
    )


def test_blocks_change_nothing(monkeypatch):
    scores, bank = RNG.normal(size=(7, 50)), RNG.normal(size=(20, 50))
    whole = hub_corrected(scores, bank, task="annotation")
    monkeypatch.setattr(kcca_ranker, "_BLOCK", 45)
    blocks = hub_corrected(scores, bank, task="annotation")
    np.testing.assert_array_equal(blocks, whole)


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
    assert after.mean["annotation"]["R@1"] > before.mean["annotation"]["R@1"] + 0.05
    assert after.mean["search"]["R@1"] > before.mean["search"]["R@1"] + 0.05


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
