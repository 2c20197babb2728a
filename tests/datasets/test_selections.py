"""Binary image selection: the type, the files of COCO-BISON, and triples made of verdicts."""

import importlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses, refuses_each

from kernelcore.datasets import (
    BinarySelections,
    CaptionedImages,
    DatasetWarning,
    RelevanceJudgments,
    SelectionTriple,
    judged_selections,
    load_bison,
    load_coco_captions,
    load_flickr_crowd,
    load_flickr_expert,
    neighbour_selections,
)


def photos(*captions, name="garden", ids="abcdefgh"):
    ids = tuple(ids[: len(captions)])
    named = zip(ids, captions, strict=True)
    return CaptionedImages(
        name=name,
        image_ids=ids,
        paths=(None,) * len(ids),
        captions=captions,
        caption_ids=tuple(tuple(f"{i}#{n}" for n in range(len(own))) for i, own in named),
        caption_numbers=tuple(tuple(range(len(own))) for own in captions),
    )


def triple(triple_id="0", caption="A dog.", caption_id="7#0", true="7", other="8"):
    return SelectionTriple(triple_id, caption, caption_id, true, other)


PETS = photos(("A dog.", "A puppy."), ("A cat.",), ("An owl.",), ids="789")
CAT = {"caption": "A cat.", "caption_id": "8#0", "true": "8", "other": "9"}


def test_ids_and_captions_in_the_order_they_come():
    triples = triple("b", true="9", other="7"), triple("a"), triple("c", **CAT)
    selections = BinarySelections("pets", list(triples))
    assert selections.image_ids == ("9", "7", "8")
    assert selections.captions == {"7#0": "A dog.", "8#0": "A cat."}
    assert selections.triple_ids == ("b", "a", "c")
    assert tuple(selections) == selections.triples == triples


def test_positions_in_a_matrix():
    positions = BinarySelections("pets", [triple(), triple("1", **CAT)]).positions
    places = positions(["9", "8", "7", "unused"], ["unused", "8#0", "7#0"])
    assert [own.tolist() for own in places] == [[2, 1], [1, 0], [2, 1]]
    refuses(ValueError, "image_ids .* 1 .*'9'", positions, ["8", "7"], ["8#0", "7#0"])
    refuses(ValueError, "caption_ids .* 1 .*'7#0'", positions, ["9", "8", "7"], ["8#0"])
    refuses(ValueError, "image_ids .*'7'", positions, ["7", "7"], ["7#0"])
    refuses(TypeError, "caption_ids", positions, ["9", "8", "7"], [70, 80])


def test_select_needs_both_images():
    triples = [triple(), triple("1", other="9"), triple("2", true="9", other="8")]
    selections = BinarySelections("pets", triples)
    assert selections.select(["7", "8", "owl"]).triple_ids == ("0",)
    assert selections.select({"9", "8"}).triple_ids == ("2",)
    refuses(ValueError, "triple", selections.select, [])


def test_bad_triples_are_refused():
    refuses(ValueError, "other_image_id .*true_image_id", triple, true="7", other="7")
    refuses(TypeError, "other_image_id .*8", triple, other=8)
    refuses(TypeError, "name", BinarySelections, 3, [triple()])
    for error, named, triples in (
        (ValueError, "triples", []),
        (TypeError, "triples .*'a'", ["a"]),
        (ValueError, "triple_id .*'0'", [triple()] * 2),
        (ValueError, "'7#0' .*'A dog.' .*'A cat.'", [triple(), triple("1", "A cat.")]),
    ):
        refuses(error, named, BinarySelections, "x", triples)


def question(bison_id=0, caption_id="7#0", true=7, candidates=(7, 8)):
    shown = [{"image_id": i, "image_filename": f"{i}.jpg"} for i in candidates]
    ids = {"bison_id": bison_id, "caption_id": caption_id, "true_image_id": true}
    return {**ids, "image_candidates": shown}


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def bison(folder, *data):
    return write(folder / "bison.json", {"info": {}, "data": data})


def test_load_bison(tmp_path):
    data = question(), question(5, "8#0", 8, (9, 8)), question("x", "7#1")
    selections = load_bison(bison(tmp_path, *data), PETS)
    assert selections.name == "bison"
    assert selections.triples == (
        triple(), triple("5", **CAT), triple("x", "A puppy.", "7#1")
    )  # fmt: skip


def test_captions_from_a_coco_file(tmp_path):
    folder = tmp_path / "alone"  # photos of the same names may lie beside the test's own folder
    folder.mkdir()
    captions = [{"id": 70, "image_id": 7, "caption": "A dog."}]
    coco = {"images": [{"id": 7, "file_name": "7.jpg"}], "annotations": captions}
    found = load_bison(bison(folder, question(0, 70)), write(folder / "captions.json", coco))
    assert found.triples == (triple(caption_id="70"),)


def test_unknown_captions_are_left_out_and_counted(tmp_path):
    data = question(0), question(1, 1), question(2, 2)
    with pytest.warns(DatasetWarning, match="2 triples .*: 1, 2"):
        assert load_bison(bison(tmp_path, *data), PETS).triple_ids == ("0",)
    refuses(ValueError, ".*2 triples .*: 1, 2", load_bison, bison(tmp_path, *data[1:]), PETS)


@pytest.mark.parametrize(
    ("named", "content"),
    [
        ("bison.json", '{"data": ['),
        ("'data'", []),
        (r"data\[0\] .*'bison_id'", {"data": [{}]}),
        (r"data\[0\] .* 9 and 7, 8", {"data": [question(true=9)]}),
        *(("image_candidates", {"data": [question(candidates=odd)]})
          for odd in ((7,), (7, 8, 9), (7, 7), (7, 8, 8))),
        (r"image_candidates\[1\] .*'image_id'",
         {"data": [question() | {"image_candidates": [{"image_id": 7}, {}]}]}),
        ("bison.json .*'0'", {"data": [question(), question()]}),
    ],
)  # fmt: skip
def test_damaged_annotations(tmp_path, named, content):
    path = write(tmp_path / "bison.json", content)
    refuses(ValueError, f".*{named}", load_bison, path, PETS)


def test_missing_files(tmp_path):
    refuses(FileNotFoundError, ".*bison.json", load_bison, tmp_path / "bison.json", PETS)
    captions = tmp_path / "captions.json"
    both = bison(tmp_path, question()), captions
    refuses(FileNotFoundError, ".*captions.json", load_bison, *both)


GARDEN = photos(("A dog.", "A pet."), ("A fox.",), ("A cat.",), ("A rose.",))


def judge(scores):
    """Judgments of the pairs that are numbers in a matrix of captions by images."""
    captions = [c for ids in GARDEN.caption_ids for c in ids]
    known = [(c, i) for c, i in np.ndindex(np.shape(scores)) if scores[c][i] is not None]
    pairs = [(GARDEN.image_ids[i], captions[c]) for c, i in known]
    values = [score for row in scores for score in row if score is not None]
    ids = {"image_ids": GARDEN.image_ids, "caption_ids": captions}
    return RelevanceJudgments.from_pairs("judges", pairs, values, **ids)


def asked(selections):
    return [(t.caption_id, t.true_image_id, t.other_image_id) for t in selections]


NO = None
JUDGED = judge([
    [1, 0, 0, 0.25],  # the dog: right for a, wrong for b and c, in doubt for d
    [0.5, NO, 0.5, 0],  # the pet: right for a and c
    [NO, 1, NO, NO],  # the fox: nothing wrong
    [0, NO, NO, 0],  # the cat: nothing right
    [0, 0, NO, 1],
])  # fmt: skip


def judged(**options):
    return judged_selections(JUDGED, GARDEN, **{"right": 0.5, "wrong": 0, **options})


def test_every_wrong_image_for_every_right_one():
    selections = judged()
    assert asked(selections) == [
        ("a#0", "a", "b"), ("a#0", "a", "c"), ("a#1", "a", "d"), ("a#1", "c", "d"),
        ("d#0", "d", "a"), ("d#0", "d", "b"),
    ]  # fmt: skip
    assert selections.captions == {"a#0": "A dog.", "a#1": "A pet.", "d#0": "A rose."}
    assert selections.triple_ids[0] == "a#0 a b"
    assert selections.name == "judges, right >= 0.5, wrong <= 0"


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_against_the_definition(seed, n_images):
    rng = np.random.default_rng(seed)
    dataset = photos(*[(f"Caption {i}.",) for i in range(n_images)])
    captions = [ids[0] for ids in dataset.caption_ids]
    scores = rng.integers(0, 4, (n_images, n_images))
    alike = rng.integers(0, 3, (n_images, n_images)).astype(np.float32)
    pairs = [(i, c) for i in dataset.image_ids for c in captions]
    judgments = RelevanceJudgments.from_pairs("j", pairs, scores.ravel())
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
        refuses(ValueError, "judgments", judged_selections, judgments, dataset, **options)


def test_bad_verdicts_are_refused():
    odd = {"similarity": [np.ones((4, 3)), np.full((4, 4), np.nan)], "wrong": [0.5, np.nan]}
    odd |= {"right": ["1"], "judgments": [[]], "dataset": [[]]}
    usual = {"judgments": JUDGED, "dataset": GARDEN, "right": 0.5, "wrong": 0}
    refuses_each(judged_selections, odd, **usual)
    beyond = GARDEN.subset([0, 1, 2])
    both = {"right": 0.5, "wrong": 0}
    refuses(ValueError, "dataset .*'d#0'", judged_selections, JUDGED, beyond, **both)
    refuses(ValueError, ".*score >= 2 .*<= 0", judged, right=2)


WORDS = [[["dog", "run"], ["pet", "red"]], [["dog", "run", "red"]], [["rose"]]]
DOGS = photos(("A dog runs.", "A red pet."), ("A red dog runs.",), ("A rose.",))
VECTORS = np.array([[1.0, 0.2], [1.0, 0.3], [0.0, 2.0]])  # the third is nearest to none


def test_the_caption_with_least_overlap_asks():
    selections = neighbour_selections(DOGS, VECTORS, WORDS, max_overlap=0.7)
    assert asked(selections) == [("a#1", "a", "b"), ("c#0", "c", "b")]
    assert selections.name == "neighbours in garden, overlap <= 0.7"
    # b's caption has all its three words among those of a
    everything = neighbour_selections(DOGS, VECTORS, WORDS, max_overlap=1)
    assert asked(everything)[1] == ("b#0", "b", "a")
    assert len(neighbour_selections(DOGS, VECTORS, WORDS, max_overlap=0.5)) == 2
    assert len(neighbour_selections(DOGS, VECTORS, WORDS, max_overlap=0.49)) == 1


def test_words_count_once_and_empty_captions_never_ask():
    pets = photos(("Dogs.", "..."), ("A cat.",))
    words = [[["dog", "dog", "cat"], []], [["cat"]]]
    selections = neighbour_selections(pets, np.eye(2), words, max_overlap=0.5)
    assert asked(selections) == [("a#0", "a", "b")]
    assert len(neighbour_selections(pets, np.eye(2), words, max_overlap=1)) == 2
    refuses(
        ValueError, "dataset .* 0.4", neighbour_selections, pets, np.eye(2), words,
        max_overlap=0.4,
    )  # fmt: skip


def test_an_image_without_captions_never_asks():
    pets = photos(("A dog.",), ())
    selections = neighbour_selections(pets, np.eye(2), [[["dog"]], []], max_overlap=1)
    assert asked(selections) == [("a#0", "a", "b")]


def test_images_without_a_vector_are_left_out():
    with pytest.warns(DatasetWarning, match=r"1 images without a vector \(left out\): b"):
        selections = neighbour_selections(DOGS, VECTORS * [[1], [0], [1]], WORDS, max_overlap=1)
    assert asked(selections) == [("a#0", "a", "c"), ("c#0", "c", "a")]
    with (
        pytest.warns(DatasetWarning, match="2 images"),
        pytest.raises(ValueError, match="at least 2 rows that are not zero, got 1"),
    ):
        neighbour_selections(DOGS, VECTORS * [[1], [0], [0]], WORDS)


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


def test_bad_vectors_and_words_are_refused():
    odd = {
        "image_vectors": [VECTORS[:2], VECTORS[0], np.full_like(VECTORS, np.inf),
                          VECTORS.astype(str)],
        "words": [WORDS[:2], [[["dog"]], *WORDS[1:]], ["dogs", *WORDS[1:]],
                  [[["dog"], "cat"], *WORDS[1:]]],
        "max_overlap": [1.5],
        "dataset": [[]],
    }  # fmt: skip
    usual = {"dataset": DOGS, "image_vectors": VECTORS, "words": WORDS}
    refuses_each(neighbour_selections, odd, **usual, max_overlap=0.7)


@pytest.mark.realdata
def test_bison_over_coco_captions(data_root, tmp_path):
    coco = load_coco_captions(data_root / "coco" / "captions_val2017.json")
    pool, data = coco.pool(), []
    for i in range(100):
        images = int(coco.image_ids[pool.caption_image[5 * i]]), int(coco.image_ids[-1 - i])
        data.append(question(i, int(pool.caption_ids[5 * i]), images[0], images))
    selections = load_bison(bison(tmp_path, *data), coco)
    assert [t.caption for t in selections] == [pool.captions[5 * i] for i in range(100)]


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
@pytest.mark.parametrize(
    ("source", "best", "thresholds"),
    [("crowd", 1, {"right": 0.5, "wrong": 0}), ("expert", 4, {"right": 3, "wrong": 2})],
)
def test_triples_from_the_judgments_of_flickr8k(data_root, flickr8k, source, best, thresholds):
    folder = data_root / "flickr8k"
    if source == "crowd":
        verdicts = load_flickr_crowd(folder / "CrowdFlowerAnnotations.txt")
        n_all, n_true, n_captions = 132585, 3010, 989
    else:
        verdicts = load_flickr_expert(folder / "ExpertAnnotations.txt")
        n_all, n_true, n_captions = 7439, 1418, 963
    pool = flickr8k.pool(2)
    gold = RelevanceJudgments.gold(flickr8k, score=best)
    pool = verdicts.union(gold, both="first").select(flickr8k.image_ids, pool.caption_ids)
    selections = judged_selections(pool, flickr8k, **thresholds)
    assert len(selections) == n_all
    assert len(selections.captions) == n_captions
    alike = np.random.default_rng(0).random((1000, 1000))
    nearest = judged_selections(pool, flickr8k, similarity=alike, **thresholds)
    assert len(nearest) == n_true
    assert len({(t.caption_id, t.true_image_id) for t in nearest}) == n_true
    assert {t.triple_id for t in nearest} < {t.triple_id for t in selections}
