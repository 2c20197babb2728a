from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from kernelcore import _core
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    gold_ranks,
    retrieval_ranks,
)
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda scores: np.repeat(scores, 2, axis=1)[:, ::2],
    "reversed": lambda scores: np.ascontiguousarray(scores[::-1, ::-1])[::-1, ::-1],
    "swapped": lambda scores: scores.astype(scores.dtype.newbyteorder()),
}


@st.composite
def problems(draw):
    """Few distinct scores, so that there are many ties; one to all candidates are gold."""
    n_queries, n_candidates = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    score = st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 2.0, np.inf])
    row = st.lists(score, min_size=n_candidates, max_size=n_candidates)
    gold = st.sets(st.integers(0, n_candidates - 1), min_size=1)
    scores = draw(st.lists(row, min_size=n_queries, max_size=n_queries))
    return scores, [sorted(draw(gold)) for _ in range(n_queries)]


@given(
    problem=problems(),
    ties=st.sampled_from(TIE_RULES),
    dtype=st.sampled_from(["f4", "f8"]),
    layout=st.sampled_from(sorted(LAYOUTS)),
)
@settings(max_examples=300, deadline=None)
def test_equals_the_reference(problem, ties, dtype, layout):
    scores, gold = problem
    array = LAYOUTS[layout](np.array(scores, dtype=dtype))
    ranks = gold_ranks(array, gold, ties=ties)
    assert ranks.dtype == np.float64
    assert ranks == pytest.approx(reference_ranks(scores, gold, ties=ties), rel=1e-14)


@pytest.mark.parametrize(
    ("ties", "method"),
    [("mean", "average"), ("min", "min"), ("max", "max"), ("ordinal", "ordinal")],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_rankdata_of_scipy(ties, method, dtype):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 40, (30, 2500)).astype(dtype)
    gold = rng.integers(0, 2500, 30)
    expected = rankdata(-scores, method=method, axis=1)[np.arange(30), gold]
    assert (gold_ranks(scores, gold, ties=ties) == expected).all()
    assert (gold_ranks(np.asfortranarray(scores), gold, ties=ties) == expected).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_counts_across_blocks_and_tiles(order):
    """More scores than are counted between two looks for Ctrl-C, more columns than a tile."""
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 50, (4500, 4100)).astype(np.float32, order=order)
    gold = rng.integers(0, 4100, 4500)
    mine = scores[np.arange(4500), gold][:, np.newaxis]
    greater, equal = (scores > mine).sum(axis=1), scores == mine
    before = (equal & (np.arange(4100) < gold[:, np.newaxis])).sum(axis=1)
    assert (gold_ranks(scores, gold) == greater + (equal.sum(axis=1) + 1) / 2).all()
    assert (gold_ranks(scores, gold, ties="ordinal") == greater + before + 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 8), (67, 90), (130, 1100), (65, 2049)])
def test_one_pass_on_every_instruction_set(isa, dtype, shape):
    """Rows, columns and both, with what is left over beside vectors, strips and tiles."""
    n_images, n_captions = shape
    rng = np.random.default_rng(n_captions)
    owner = rng.permutation(np.arange(n_captions) % n_images)
    scores = rng.integers(-3, 4, shape).astype(dtype)
    own = scores[owner, np.arange(n_captions)]
    best = np.array([own[owner == image].max() for image in range(n_images)])[:, np.newaxis]
    greater = [1 + (scores > best).sum(axis=1), 1 + (scores > own).sum(axis=0)]
    below = [(scores < best).sum(axis=1), (scores < own).sum(axis=0)]
    for n_threads in (1, 3):
        options = {"ties": "min", "n_threads": n_threads}
        ranks = retrieval_ranks(scores, owner, **options)
        assert (ranks.annotation == greater[0]).all()
        assert (ranks.search == greater[1]).all()
        last = retrieval_ranks(scores, owner, ties="max", n_threads=n_threads)
        gold_at_best = [(own[owner == i] == best[i]).sum() for i in range(n_images)]
        assert (last.annotation == n_captions - below[0] - gold_at_best + 1).all()
        assert (last.search == n_images - below[1]).all()


def test_the_core_converts_nothing():
    scores, gold, first = np.zeros((2, 3)), np.zeros((1, 2)), np.zeros((1, 2), np.int64)
    counts = np.empty((2, 2), np.int64)
    assert not _core.count_ranks(scores, (gold, first, counts), None, False, 1, None)
    assert counts.tolist() == [[0, 0], [3, 3]]
    with pytest.raises(TypeError):
        _core.count_ranks(scores, (gold.astype("f4"), first, counts), None, False, 1, None)
    with pytest.raises(TypeError):
        _core.count_ranks(scores.T, (gold, first, counts), None, False, 1, None)
    with pytest.raises(ValueError, match="output has the wrong shape"):
        _core.count_ranks(scores, (gold, first, counts), None, True, 1, None)
    with pytest.raises(ValueError, match="every query needs gold scores"):
        _core.count_ranks(scores, None, (gold, first, counts), False, 1, None)
    counts.flags.writeable = False
    with pytest.raises(ValueError, match=r"read-only|not writeable"):
        _core.count_ranks(scores, (gold, first, counts), None, False, 1, None)


def test_mean_is_what_breaking_ties_at_random_gives():
    rng = np.random.default_rng(2)
    scores = np.array([[3.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    gold = [[1, 3]]
    noise = rng.random((20_000, 6)) * 0.5
    broken = gold_ranks(scores + noise, gold * 20_000)
    assert gold_ranks(scores, gold) == [1 + 5 / 3]
    assert broken.mean() == pytest.approx(1 + 5 / 3, abs=0.03)


def test_tie_rules_of_one_row():
    row, gold = [[5, 7, 5, 5, 9]], [[2, 3]]
    assert gold_ranks(row, gold, ties="min") == [3]
    assert gold_ranks(row, gold, ties="max") == [4]
    assert gold_ranks(row, gold, ties="ordinal") == [4]
    assert gold_ranks(row, gold, ties="mean") == [2 + 4 / 3]


def test_constant_scores_rank_in_the_middle():
    assert (gold_ranks(np.zeros((4, 1000)), [0, 1, 500, 999]) == 500.5).all()


def test_a_single_candidate_is_first():
    assert gold_ranks([[-np.inf], [3]], [0, 0]).tolist() == [1, 1]


@given(seed=st.integers(0, 10_000), ties=st.sampled_from(["mean", "min", "max"]))
@settings(max_examples=50, deadline=None)
def test_order_of_queries_and_candidates_does_not_matter(seed, ties):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (6, 9)).astype(float)
    gold = rng.integers(0, 9, 6)
    ranks = gold_ranks(scores, gold, ties=ties)
    rows, columns = rng.permutation(6), rng.permutation(9)
    assert (gold_ranks(scores[rows], gold[rows], ties=ties) == ranks[rows]).all()
    moved = np.argsort(columns)[gold]
    assert (gold_ranks(scores[:, columns], moved, ties=ties) == ranks).all()
    assert (gold_ranks(np.exp(scores), gold, ties=ties) == ranks).all()


def test_forms_of_gold_agree():
    scores = np.random.default_rng(3).integers(0, 3, (4, 6)).astype(np.float32)
    sets = [[0, 5], [2, 1], [3, 4], [5, 0]]
    mask = np.zeros((4, 6), dtype=bool)
    for row, members in zip(mask, sets, strict=True):
        row[members] = True
    for ties in TIE_RULES:
        expected = gold_ranks(scores, sets, ties=ties)
        assert (gold_ranks(scores, mask, ties=ties) == expected).all()
        assert (gold_ranks(scores, mask.tolist(), ties=ties) == expected).all()
        assert (gold_ranks(scores, np.array(sets), ties=ties) == expected).all()
    ragged = [[0], [1, 2], (3,), np.array([5, 0], dtype=np.uint8)]
    assert gold_ranks(scores, ragged) == pytest.approx(
        reference_ranks(scores.tolist(), [[0], [1, 2], [3], [5, 0]])
    )


def test_both_directions_of_one_matrix():
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 5, (7, 20)).astype(np.float32)
    owner = np.concatenate([np.arange(7), rng.integers(0, 7, 13)])
    own = [np.flatnonzero(owner == image).tolist() for image in range(7)]
    for ties in TIE_RULES:
        annotation, search = retrieval_ranks(scores, owner, ties=ties)
        assert annotation == pytest.approx(reference_ranks(scores.tolist(), own, ties=ties))
        assert search == pytest.approx(
            reference_ranks(scores.T.tolist(), [[image] for image in owner], ties=ties)
        )
        turned = retrieval_ranks(np.asfortranarray(scores), owner, ties=ties)
        assert (turned.annotation == annotation).all()
        assert (turned.search == search).all()


def test_default_is_one_caption_per_image():
    scores = np.random.default_rng(5).random((5, 5))
    ranks = retrieval_ranks(scores)
    assert (ranks.annotation == gold_ranks(scores, np.arange(5))).all()
    assert (ranks.search == gold_ranks(scores.T, np.arange(5))).all()


@pytest.mark.parametrize("dtype", ["f2", "i1", "u8", "?", "i4"])
def test_other_real_numbers(dtype):
    scores = np.random.default_rng(6).integers(0, 2, (6, 9)).astype(dtype)
    gold = np.arange(6)
    assert (gold_ranks(scores, gold) == gold_ranks(scores.astype(float), gold)).all()


def test_input_is_read_in_place_and_left_alone():
    for order in "CF":
        scores = np.array(np.random.default_rng(7).random((3, 4)), dtype="f4", order=order)
        scores.flags.writeable = False
        assert np.shares_memory(as_rows("scores", scores).matrix(), scores)
        assert (gold_ranks(scores, [0, 1, 2]) >= 1).all()


@pytest.mark.parametrize(
    ("dtype", "order", "ranks"),
    [
        (dtype, order, ranks)
        for dtype in ("f4", "f8")
        for order in "CF"
        for ranks in (retrieval_ranks, partial(gold_ranks, gold=range(4)))
    ],
)
@pytest.mark.parametrize("where", [(0, 0), (3, 1), (1, 3), (3, 3)])
def test_nan_is_refused_and_found(dtype, order, ranks, where):
    scores = np.zeros((4, 4), dtype=dtype, order=order)
    scores[where] = np.nan
    row, column = where
    with pytest.raises(
        ValueError, match=rf"scores must not hold NaN, got NaN at \[{row}, {column}\]"
    ):
        ranks(scores)


@pytest.mark.parametrize("scores", [np.zeros((0, 3)), np.zeros((3, 0)), [[]]])
def test_empty_scores_are_refused(scores):
    with pytest.raises(ValueError, match="scores must not be empty"):
        gold_ranks(scores, [0])


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([[1, 2], [3]], ValueError, "scores must be a 2-D array, got rows of unequal length"),
        ([1.0, 2.0], ValueError, r"scores must be a 2-D array, got shape \(2,\)"),
        (np.zeros((2, 2, 2), order="F"), ValueError, "scores must be a 2-D array"),
        ([["a", "b"]], TypeError, "scores must hold real numbers"),
        ([[1j, 2]], TypeError, "scores must hold real numbers"),
        ([[None, 1.0]], TypeError, "scores must hold real numbers"),
        ([[2**60, 1]], ValueError, r"scores must hold integers of at most 2\*\*53"),
    ],
)
def test_scores_must_be_a_matrix_of_numbers(scores, error, message):
    with pytest.raises(error, match=message):
        gold_ranks(scores, [0])


@pytest.mark.parametrize(
    ("gold", "error", "message"),
    [
        (0, TypeError, "gold must be an array or a sequence"),
        ([0], ValueError, r"gold must have one entry per query \(2\), got 1"),
        ([0, 3], ValueError, "gold must lie in .*, got values from 0 to 3"),
        ([-1, 0], ValueError, "gold must lie in"),
        ([[0], [3]], ValueError, "gold must lie in"),
        ([[0], [-1]], ValueError, "gold must lie in"),
        ([0.0, 1.0], TypeError, "gold must hold integers"),
        ([True, False], TypeError, "gold must hold integers"),
        ([[0], []], ValueError, "at least one candidate per query, got none for query 1"),
        (
            [[0], [1, 1]],
            ValueError,
            "gold must name a candidate once, got one twice in query 1",
        ),
        (np.zeros((2, 2), bool), ValueError, "gold must have the shape of scores"),
        (np.eye(2, 3, k=2, dtype=bool), ValueError, "got none for query 1"),
    ],
)
def test_gold_must_fit(gold, error, message):
    with pytest.raises(error, match=message):
        gold_ranks(np.zeros((2, 3)), gold)


@pytest.mark.parametrize(
    ("owner", "error", "message"),
    [
        (None, ValueError, "caption_image must be given .* got 2 images and 3 captions"),
        ([0, 1], ValueError, r"caption_image must have one entry per caption \(3\), got 2"),
        ([0, 1, 2], ValueError, "caption_image must lie in"),
        ([0, -1, 1], ValueError, "caption_image must lie in"),
        ([0, 0, 0], ValueError, "caption_image must name every image .* first is image 1"),
        ([0.0, 1.0, 1.0], TypeError, "caption_image must hold integers"),
    ],
)
def test_caption_image_must_fit(owner, error, message):
    with pytest.raises(error, match=message):
        retrieval_ranks(np.zeros((2, 3)), owner)


@pytest.mark.parametrize("ties", ["average", "", None, 1])
def test_unknown_tie_rule(ties):
    with pytest.raises(ValueError, match="ties must be one of 'mean', 'min', 'max', 'ordinal'"):
        gold_ranks([[1.0]], [0], ties=ties)


def test_scores_whose_nan_is_gone_when_it_is_looked_for(monkeypatch):
    """Another thread may write into the scores while they are counted."""
    monkeypatch.setattr(_core, "count_ranks", lambda *arguments: True)
    with pytest.raises(ValueError, match=r"scores must not hold NaN.* must not change"):
        gold_ranks([[1.0, 2.0]], [0])
