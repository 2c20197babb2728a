import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.datasets import RelevanceJudgments, make_scenes

PAIRS = [("b", "c1"), ("a", "c2"), ("b", "c0"), ("a", "c0")]
SCORES = [0.5, 1.0, 0.25, 0.75]


@pytest.fixture
def judgments():
    ratings = np.array([[1, 0], [1, np.nan], [0, 0], [1, 1]])
    return RelevanceJudgments.from_pairs("people", PAIRS, SCORES, ratings=ratings)


def lists(arrays):
    return [array.tolist() for array in arrays]


def test_pairs_are_kept_in_order_with_their_scores_and_ratings(judgments):
    assert judgments.image_ids == ("b", "a")
    assert judgments.caption_ids == ("c1", "c2", "c0")
    assert judgments.images.tolist() == [0, 0, 1, 1]
    assert judgments.captions.tolist() == [0, 2, 1, 2]
    assert judgments.scores.tolist() == [0.5, 0.25, 1.0, 0.75]
    assert np.array_equal(
        judgments.ratings, [[1, 0], [0, 0], [1, np.nan], [1, 1]], equal_nan=True
    )
    assert len(judgments) == 4
    for part in ("images", "captions", "scores", "ratings"):
        assert not getattr(judgments, part).flags.writeable


def test_relevant_items_of_both_orientations(judgments):
    assert lists(judgments.relevant_captions(0.5)) == [[0], [1, 2]]
    assert lists(judgments.relevant_images(0.5)) == [[0], [1], [1]]
    assert lists(judgments.relevant_images(0.25)) == [[0], [1], [0, 1]]
    assert lists(judgments.relevant_captions(2)) == [[], []]


def test_scores_of_pairs(judgments):
    found = judgments.scores_of([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    assert np.array_equal(found, [0.5, np.nan, 0.25, np.nan, 1, 0.75], equal_nan=True)
    with pytest.raises(ValueError, match="one entry per image"):
        judgments.scores_of([0], [0, 1])
    with pytest.raises(ValueError, match=r"images must lie in \[0, 2\)"):
        judgments.scores_of([2], [0])


def test_select_brings_a_pool_into_its_order(judgments):
    pool = judgments.select(["x", "a"], ["c0", "c9", "c2"])
    assert (pool.image_ids, pool.caption_ids) == (("x", "a"), ("c0", "c9", "c2"))
    assert lists(pool.relevant_captions(0)) == [[], [0, 2]]
    assert pool.scores.tolist() == [0.75, 1.0]
    assert np.array_equal(pool.ratings, [[1, 1], [1, np.nan]], equal_nan=True)


@given(st.data())
def test_select_keeps_the_score_of_every_pair_inside(data):
    ids = [f"i{n}" for n in range(5)]
    pairs = data.draw(st.sets(st.tuples(st.sampled_from(ids), st.sampled_from(ids))))
    scores = {pair: float(n) for n, pair in enumerate(sorted(pairs))}
    judgments = RelevanceJudgments.from_pairs("all", scores, list(scores.values()))
    rows, columns = (data.draw(st.lists(st.sampled_from(ids), unique=True)) for _ in range(2))
    pool = judgments.select(rows, columns)
    kept = {
        (rows[i], columns[j]): score
        for i, j, score in zip(pool.images, pool.captions, pool.scores, strict=True)
    }
    assert kept == {p: s for p, s in scores.items() if p[0] in rows and p[1] in columns}


def test_union_takes_the_greater_score_or_the_first(judgments):
    other = RelevanceJudgments.from_pairs(
        "gold", [("a", "c2"), ("a", "c0"), ("z", "c0"), ("b", "c7")], [0.5, 1, 1, 1]
    )
    both = judgments.union(other)
    assert both.name == "people + gold"
    assert both.image_ids == ("b", "a", "z")
    assert both.caption_ids == ("c1", "c2", "c0", "c7")
    assert both.scores_of([1, 1, 2, 0, 0], [1, 2, 2, 3, 0]).tolist() == [1, 1, 1, 1, 0.5]
    assert len(both) == 6
    assert both.ratings is None
    first = judgments.union(other, both="first")
    assert first.scores_of([1, 1, 2, 0, 0], [1, 2, 2, 3, 0]).tolist() == [1, 0.75, 1, 1, 0.5]
    with pytest.raises(TypeError, match="other must be RelevanceJudgments, got list"):
        judgments.union([])
    with pytest.raises(ValueError, match="both must be one of 'max', 'first'"):
        judgments.union(other, both="mean")


def test_gold_is_every_caption_with_its_image():
    scenes = make_scenes(4, rng=0).dataset
    gold = RelevanceJudgments.gold(scenes, score=4)
    assert gold.image_ids == scenes.image_ids
    assert lists(gold.relevant_captions(4)) == [[5 * i + j for j in range(5)] for i in range(4)]
    assert lists(gold.relevant_images(4)) == [[i] for i in range(4) for _ in range(5)]


def test_without_pairs():
    empty = RelevanceJudgments.from_pairs("none", [], [], image_ids=["a"], caption_ids=["c"])
    assert lists(empty.relevant_captions(0)) == [[]]
    assert np.isnan(empty.scores_of([0], [0])).all()
    assert repr(empty) == "RelevanceJudgments('none', 0 pairs of 1 images and 1 captions)"
    assert len(empty.union(empty)) == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"images": [0, 2]}, ValueError, r"images must lie in \[0, 2\)"),
        ({"captions": [-1, 0]}, ValueError, r"captions must lie in \[0, 2\)"),
        ({"captions": [0]}, ValueError, r"captions must have one entry per pair \(2\), got 1"),
        ({"scores": [1.0]}, ValueError, r"scores must have one entry per pair \(2\), got 1"),
        ({"scores": [1.0, np.nan]}, ValueError, "scores must be finite, got nan"),
        ({"scores": ["1", "2"]}, TypeError, "scores must hold real numbers"),
        ({"images": [0.0, 1.0]}, TypeError, "images must hold integers"),
        ({"images": [0, 0]}, ValueError, r"judged once, got \('a', 'x'\) repeatedly"),
        ({"image_ids": ("a", "a")}, ValueError, "image_ids must be unique, got 'a'"),
        ({"caption_ids": (1, 2)}, TypeError, "caption_ids must be a sequence of strings"),
        ({"image_ids": "ab"}, TypeError, "image_ids must be a sequence of strings"),
        ({"ratings": [[1.0]]}, ValueError, r"one row per pair \(2\), got 1"),
        ({"ratings": [[1.0], [np.inf]]}, ValueError, "ratings must be finite"),
    ],
)
def test_parts_that_do_not_fit(change, error, message):
    parts = {
        "image_ids": ("a", "b"),
        "caption_ids": ("x", "y"),
        "images": [0, 1],
        "captions": [0, 0],
        "scores": [1.0, 2.0],
    }
    RelevanceJudgments("fits", **parts)
    with pytest.raises(error, match=message):
        RelevanceJudgments("does not", **parts | change)


def test_the_arrays_of_the_caller_stay_writable():
    images, captions, scores = np.array([0]), np.array([0]), np.array([1.0])
    judgments = RelevanceJudgments("mine", ("a",), ("c",), images, captions, scores)
    scores[0] = 9
    assert scores.flags.writeable
    assert judgments.scores.tolist() == [1.0]
