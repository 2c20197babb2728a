"""Triples from the verdicts of people and from captions alone."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import (
    CaptionedImages,
    DatasetWarning,
    RelevanceJudgments,
    judged_selections,
    load_coco_captions,
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
    neighbour_selections,
)


def photos(*captions, name="garden"):
    ids = tuple("abcdefgh"[: len(captions)])
    return CaptionedImages(
        name=name,
        image_ids=ids,
        paths=(None,) * len(ids),
        captions=captions,
        caption_ids=tuple(
            tuple(f"{i}#{n}" for n in range(len(own)))
            for i, own in zip(ids, captions, strict=True)
        ),
        caption_numbers=tuple(tuple(range(len(own))) for own in captions),
    )


GARDEN = photos(("A dog.", "A pet."), ("A fox.",), ("A cat.",), ("A rose.",))
ALIKE = np.array(
    [[9, 3, 5, 1], [3, 9, 5, 5], [5, 5, 9, 2], [1, 5, 2, 9]], dtype=np.float64
)  # neighbours: a of c, b of c and d, c of a and b, d of b


def judge(scores):
    """Judgments of the pairs that are numbers in a matrix of captions by images."""
    captions = [c for ids in GARDEN.caption_ids for c in ids]
    pairs = [
        (GARDEN.image_ids[i], captions[c])
        for c, row in enumerate(scores)
        for i, score in enumerate(row)
        if score is not None
    ]
    values = [score for row in scores for score in row if score is not None]
    return RelevanceJudgments.from_pairs(
        "judges", pairs, values, image_ids=GARDEN.image_ids, caption_ids=captions
    )


def asked(selections):
    return [(t.caption_id, t.true_image_id, t.other_image_id) for t in selections]


NO = None
JUDGED = judge(
    [
        [1, 0, 0, 0.25],  # the dog: right for a, wrong for b and c, in doubt for d
        [0.5, NO, 0.5, 0],  # the pet: right for a and c
        [NO, 1, NO, NO],  # the fox: nothing wrong
        [0, NO, NO, 0],  # the cat: nothing right
        [0, 0, NO, 1],
    ]
)


def test_every_wrong_image_for_every_right_one():
    selections = judged_selections(JUDGED, GARDEN, right=0.5, wrong=0)
    assert asked(selections) == [
        ("a#0", "a", "b"),
        ("a#0", "a", "c"),
        ("a#1", "a", "d"),
        ("a#1", "c", "d"),
        ("d#0", "d", "a"),
        ("d#0", "d", "b"),
    ]
    assert selections.captions == {"a#0": "A dog.", "a#1": "A pet.", "d#0": "A rose."}
    assert selections.triple_ids[0] == "a#0 a b"
    assert selections.name == "judges, right >= 0.5, wrong <= 0"


def test_thresholds_are_part_of_what_they_bound():
    stricter = judged_selections(JUDGED, GARDEN, right=0.51, wrong=0)
    assert {t.caption_id for t in stricter} == {"a#0", "d#0"}
    looser = judged_selections(JUDGED, GARDEN, right=0.5, wrong=0.25)
    assert ("a#0", "a", "d") in asked(looser)
    assert looser.name == "judges, right >= 0.5, wrong <= 0.25"


def test_most_similar_wrong_image_alone():
    selections = judged_selections(JUDGED, GARDEN, right=0.5, wrong=0, similarity=ALIKE)
    assert asked(selections) == [
        ("a#0", "a", "c"),
        ("a#1", "a", "d"),
        ("a#1", "c", "d"),
        ("d#0", "d", "b"),
    ]
    # Of equals the first; the true image itself is never the other one.
    tied = judged_selections(JUDGED, GARDEN, right=0.5, wrong=0, similarity=np.ones((4, 4)))
    assert asked(tied)[0] == ("a#0", "a", "b")
    assert asked(tied)[-1] == ("d#0", "d", "a")


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_against_the_definition(seed, n_images):
    rng = np.random.default_rng(seed)
    dataset = photos(*[(f"Caption {i}.",) for i in range(n_images)])
    captions = [ids[0] for ids in dataset.caption_ids]
    scores = rng.integers(0, 4, (n_images, n_images))
    alike = rng.integers(0, 3, (n_images, n_images)).astype(np.float32)
    judgments = RelevanceJudgments.from_pairs(
        "j",
        [(i, c) for i in dataset.image_ids for c in captions],
        scores.ravel(),
    )
    expected = []
    for c in range(n_images):
        wrong = [i for i in range(n_images) if scores[i, c] <= 1]
        for true in range(n_images):
            if scores[true, c] < 3 or not wrong:
                continue
            other = max(wrong, key=lambda i: (alike[true, i], -i))
            expected.append((captions[c], dataset.image_ids[true], dataset.image_ids[other]))
    options = {"right": 3, "wrong": 1, "similarity": alike}
    if expected:
        assert asked(judged_selections(judgments, dataset, **options)) == expected
    else:
        with pytest.raises(ValueError, match="got none"):
            judged_selections(judgments, dataset, **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"wrong": 0.5}, ValueError, r"wrong must be below right \(0.5\), got 0.5"),
        ({"right": "1"}, TypeError, "right must be a real number"),
        ({"wrong": np.nan}, ValueError, "wrong must be finite"),
        ({"right": 2}, ValueError, "score >= 2 for one image and <= 0"),
        ({"similarity": np.ones((4, 3))}, ValueError, "of the 4 judged images, got shape"),
        ({"similarity": np.full((4, 4), np.nan)}, ValueError, "similarity must be finite"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        judged_selections(JUDGED, GARDEN, **{"right": 0.5, "wrong": 0, **options})


def test_bad_judgments_and_datasets():
    with pytest.raises(TypeError, match="judgments must be RelevanceJudgments, got list"):
        judged_selections([], GARDEN, right=1, wrong=0)
    with pytest.raises(TypeError, match="dataset must be CaptionedImages, got list"):
        judged_selections(JUDGED, [], right=1, wrong=0)
    with pytest.raises(ValueError, match="every judged caption, and 'd#0' is not there"):
        judged_selections(JUDGED, GARDEN.subset([0, 1, 2]), right=0.5, wrong=0)


WORDS = [[["dog", "run"], ["pet", "red"]], [["dog", "run", "red"]], [["rose"]]]
PETS = photos(("A dog runs.", "A red pet."), ("A red dog runs.",), ("A rose.",))
VECTORS = np.array([[1.0, 0.2], [1.0, 0.3], [0.0, 2.0]])  # the third is nearest to none


def test_the_caption_with_least_overlap_asks():
    selections = neighbour_selections(PETS, VECTORS, WORDS, max_overlap=0.7)
    assert asked(selections) == [("a#1", "a", "b"), ("c#0", "c", "b")]
    assert selections.name == "neighbours in garden, overlap <= 0.7"
    # b's caption has all its three words among those of a
    everything = neighbour_selections(PETS, VECTORS, WORDS, max_overlap=1)
    assert asked(everything)[1] == ("b#0", "b", "a")
    assert len(neighbour_selections(PETS, VECTORS, WORDS, max_overlap=0.5)) == 2
    assert len(neighbour_selections(PETS, VECTORS, WORDS, max_overlap=0.49)) == 1


def test_words_count_once_and_empty_captions_never_ask():
    pets = photos(("Dogs.", "..."), ("A cat.",))
    words = [[["dog", "dog", "cat"], []], [["cat"]]]
    selections = neighbour_selections(pets, np.eye(2), words, max_overlap=0.5)
    assert asked(selections) == [("a#0", "a", "b")]
    assert len(neighbour_selections(pets, np.eye(2), words, max_overlap=1)) == 2
    with pytest.raises(ValueError, match=r"overlap of at most 0.4 .* got none"):
        neighbour_selections(pets, np.eye(2), words, max_overlap=0.4)


def test_an_image_without_captions_never_asks():
    pets = photos(("A dog.",), ())
    selections = neighbour_selections(pets, np.eye(2), [[["dog"]], []], max_overlap=1)
    assert asked(selections) == [("a#0", "a", "b")]


def test_the_length_of_a_vector_does_not_matter():
    longer = VECTORS * np.array([[1e-6], [1e6], [3.0]])
    assert asked(neighbour_selections(PETS, longer, WORDS, max_overlap=1)) == asked(
        neighbour_selections(PETS, VECTORS.astype(np.float32), WORDS, max_overlap=1)
    )


def test_images_without_a_vector_are_left_out():
    with pytest.warns(DatasetWarning, match=r"1 images without a vector \(left out\): b"):
        selections = neighbour_selections(PETS, VECTORS * [[1], [0], [1]], WORDS, max_overlap=1)
    assert asked(selections) == [("a#0", "a", "c"), ("c#0", "c", "a")]
    with (
        pytest.warns(DatasetWarning, match="2 images"),
        pytest.raises(ValueError, match="at least 2 rows that are not zero, got 1"),
    ):
        neighbour_selections(PETS, VECTORS * [[1], [0], [0]], WORDS)


def test_neighbours_across_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    n_images = 7
    dataset = photos(*[(f"Caption {i}.",) for i in range(n_images)])
    words = [[[f"word{i}"]] for i in range(n_images)]
    vectors = rng.standard_normal((n_images, 3)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T - 3 * np.eye(n_images)
    expected = [dataset.image_ids[j] for j in cosines.argmax(axis=1)]
    module = importlib.import_module("kernelcore.datasets.selections")
    for block in (1, 3, 100):
        monkeypatch.setattr(module, "_BLOCK", block)
        selections = neighbour_selections(dataset, vectors, words)
        assert [t.other_image_id for t in selections] == expected


@pytest.mark.parametrize(
    ("vectors", "words", "error", "message"),
    [
        (VECTORS[:2], WORDS, ValueError, r"one row per image \(3\), got 2"),
        (VECTORS[0], WORDS, ValueError, "image_vectors must be a 2-D array"),
        (np.full((3, 2), np.inf), WORDS, ValueError, "image_vectors must be finite"),
        (VECTORS.astype(str), WORDS, TypeError, "image_vectors must hold real numbers"),
        (VECTORS, WORDS[:2], ValueError, r"words must have one entry per image \(3\), got 2"),
        (VECTORS, [[["dog"]], *WORDS[1:]], ValueError, "one list per caption .* of 'a'"),
        (VECTORS, ["dogs", *WORDS[1:]], ValueError, "one list per caption"),
        (VECTORS, [[["dog"], "cat"], *WORDS[1:]], TypeError, r"words\[0\] holds a string"),
    ],
)
def test_bad_vectors_and_words(vectors, words, error, message):
    with pytest.raises(error, match=message):
        neighbour_selections(PETS, vectors, words)


def test_bad_overlap_and_dataset():
    with pytest.raises(ValueError, match=r"max_overlap must be a number <= 1, got 1\.5"):
        neighbour_selections(PETS, VECTORS, WORDS, max_overlap=1.5)
    with pytest.raises(TypeError, match="dataset must be CaptionedImages"):
        neighbour_selections([], VECTORS, WORDS)


@pytest.fixture(scope="module")
def flickr8k(data_root):
    flickr = load_flickr(data_root / "flickr8k", images=data_root / "flickr8k" / "images")
    return flickr.subset(flickr.split("test"))


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
@pytest.mark.parametrize(
    ("source", "best", "thresholds"),
    [("crowd", 1, {"right": 0.5, "wrong": 0}), ("expert", 4, {"right": 3, "wrong": 2})],
)
def test_triples_from_the_judgments_of_flickr8k(data_root, flickr8k, source, best, thresholds):
    folder = data_root / "flickr8k"
    if source == "crowd":
        judged = load_flickr_crowd(folder / "CrowdFlowerAnnotations.txt")
        n_all, n_true, n_captions = 132585, 3010, 989
    else:
        judged = load_flickr_expert(folder / "ExpertAnnotations.txt")
        n_all, n_true, n_captions = 7439, 1418, 963
    pool = flickr8k.pool(2)
    gold = RelevanceJudgments.gold(flickr8k, score=best)
    judged = judged.union(gold, both="first").select(flickr8k.image_ids, pool.caption_ids)
    selections = judged_selections(judged, flickr8k, **thresholds)
    assert len(selections) == n_all
    assert len(selections.captions) == n_captions
    alike = np.random.default_rng(0).random((1000, 1000))
    nearest = judged_selections(judged, flickr8k, similarity=alike, **thresholds)
    assert len(nearest) == n_true
    assert len({(t.caption_id, t.true_image_id) for t in nearest}) == n_true
    assert {t.triple_id for t in nearest} < {t.triple_id for t in selections}


@pytest.mark.realdata
def test_neighbours_in_coco(data_root):
    coco = load_coco_captions(data_root / "coco" / "captions_val2017.json").subset(range(2000))
    words = CaptionNormalizer().fit(coco.captions).normalize_images(coco.captions)
    frequent = {w for image in words for caption in image for w in caption}
    rng = np.random.default_rng(0)
    vectors = {w: rng.standard_normal(64).astype(np.float32) for w in sorted(frequent)}
    means = np.stack([np.mean([vectors[w] for c in im for w in c], axis=0) for im in words])
    selections = neighbour_selections(coco, means, words)
    assert 500 < len(selections) < 2000
    sets = {
        i: set().union(*map(set, own)) for i, own in zip(coco.image_ids, words, strict=True)
    }
    by_caption = dict(
        zip(coco.pool().caption_ids, (set(c) for image in words for c in image), strict=True)
    )
    for t in selections:
        own = by_caption[t.caption_id]
        assert own <= sets[t.true_image_id]
        assert 4 * len(own & sets[t.other_image_id]) <= len(own)
