import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from kernelcore import _core
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.ranks import TIE_RULES, gold_ranks, retrieval_ranks
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
    problem=problems(), ties=st.sampled_from(TIE_RULES), dtype=st.sampled_from(["f4", "f8"]),
    layout=st.sampled_from(sorted(LAYOUTS)),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_equals_the_reference(problem, ties, dtype, layout):
    scores, gold = problem
    array = LAYOUTS[layout](np.array(scores, dtype=dtype))
    ranks = gold_ranks(array, gold, ties=ties)
    assert ranks.dtype == np.float64
    assert ranks == pytest.approx(reference_ranks(scores, gold, ties=ties), rel=1e-14)


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "i4"])
def test_equals_rankdata_of_scipy(ties, dtype):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 40, (30, 2500)).astype(dtype)
    gold = rng.integers(0, 2500, 30)
    method = "average" if ties == "mean" else ties
    expected = rankdata(-scores.astype(float), method=method, axis=1)[np.arange(30), gold]
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
    expected = reference_ranks(scores.tolist(), [[0], [1, 2], [3], [5, 0]])
    assert gold_ranks(scores, ragged) == pytest.approx(expected)


def test_input_is_read_in_place_and_left_alone():
    for order in "CF":
        scores = np.array(np.random.default_rng(7).random((3, 4)), dtype="f4", order=order)
        scores.flags.writeable = False
        assert np.shares_memory(as_rows("scores", scores).matrix(), scores)
        assert (gold_ranks(scores, [0, 1, 2]) >= 1).all()


def test_scores_whose_nan_is_gone_when_it_is_looked_for(monkeypatch):
    """Another thread may write into the scores while they are counted."""
    monkeypatch.setattr(_core, "count_ranks", lambda *arguments: True)
    with pytest.raises(ValueError, match=r"scores must not hold NaN.* must not change"):
        gold_ranks([[1.0, 2.0]], [0])
