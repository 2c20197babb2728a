import io
from functools import partial

import numpy as np
import pytest
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")

from PIL import Image

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.report import query_examples

search_examples, annotation_examples = (
    partial(query_examples, task=task) for task in ("search", "annotation")
)
OWNER = np.array([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])
CAPTIONS = [f"caption {i}" for i in range(12)]


def photo(image):
    """A plain picture whose grey tells which one it is."""
    return np.full((20, 30, 3), 25 * image, dtype=np.uint8)


def image_of(thumbnail):
    pixels = np.asarray(Image.open(io.BytesIO(thumbnail.jpeg)))
    return round(pixels.mean() / 25)


@pytest.fixture
def scores():
    return np.random.default_rng(0).random((10, 12))


def test_search_lists_the_best_images(scores):
    examples = search_examples(
        scores, CAPTIONS, photo, caption_image=OWNER, n_examples=1, system="toy"
    )
    ranks = retrieval_ranks(scores, OWNER).search
    assert [example.case for example in examples] == ["good", "typical", "bad"]
    for example in examples:
        query = CAPTIONS.index(example.query)
        assert example.rank == ranks[query]
        assert (example.task, example.system, example.n_candidates) == ("search", "toy", 10)
        order = np.argsort(-scores[:, query]).tolist()
        assert [image_of(hit.content) for hit in example.hits[:5]] == order[:5]
        assert [hit.position for hit in example.hits[:5]] == [1, 2, 3, 4, 5]
        assert [hit.score for hit in example.hits[:5]] == scores[order[:5], query].tolist()
        (gold,) = [hit for hit in example.hits if hit.is_gold]
        assert image_of(gold.content) == OWNER[query]
        assert gold.position == example.rank
        assert len(example.hits) == (5 if gold.position <= 5 else 6)
    assert examples[0].rank == ranks.min()
    assert examples[2].rank == ranks.max()
    assert examples[0].rank <= examples[1].rank <= examples[2].rank


def test_annotation_lists_the_best_captions(scores):
    examples = annotation_examples(
        scores, CAPTIONS, [photo(i) for i in range(10)], caption_image=OWNER
    )
    ranks = retrieval_ranks(scores, OWNER).annotation
    assert [example.case for example in examples] == [
        "good", "good", "typical", "typical", "bad", "bad",
    ]  # fmt: skip
    order = np.argsort(ranks, kind="stable").tolist()
    shown = [image_of(example.query) for example in examples]
    assert shown == order[:2] + order[4:6] + order[-2:]
    for example, query in zip(examples, shown, strict=True):
        assert example.rank == ranks[query]
        assert example.n_candidates == 12
        best = np.argsort(-scores[query])[:5]
        assert [hit.content for hit in example.hits[:5]] == [CAPTIONS[i] for i in best]
        for hit in example.hits:
            assert hit.is_gold == (OWNER[CAPTIONS.index(hit.content)] == query)
        assert min(hit.position for hit in example.hits if hit.is_gold) == example.rank
    assert (
        examples[0].query.alt == f"Image described as: caption {OWNER.tolist().index(shown[0])}"
    )


def test_ties_stand_in_the_order_of_the_candidates():
    (example, *_) = annotation_examples(np.zeros((3, 3)), list("abc"), photo, n_examples=1)
    assert [hit.content for hit in example.hits] == ["a", "b", "c"]
    assert example.rank == 2


@pytest.mark.parametrize(
    ("n", "cases"), [(1, "g"), (2, "gb"), (3, "ggb"), (4, "ggbb"), (5, "ggtbb")]
)
def test_few_queries_are_shown_once(n, cases):
    examples = search_examples(np.eye(n), [str(i) for i in range(n)], photo)
    assert "".join(example.case[0] for example in examples) == cases
    assert len({example.query for example in examples}) == n


def test_thumbnails_are_small_and_only_made_of_what_is_shown():
    asked = []

    def load(image):
        asked.append(image)
        return np.zeros((600, 300, 3), dtype=np.uint8)

    examples = search_examples(np.eye(50), ["x"] * 50, load, n_examples=1)
    assert len(asked) == 15
    thumbnail = examples[0].hits[0].content
    assert (thumbnail.width, thumbnail.height) == (128, 256)
    assert Image.open(io.BytesIO(thumbnail.jpeg)).size == (128, 256)
    assert thumbnail.uri.startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("picture", "error", "message"),
    [
        (np.zeros((4, 4, 3)), TypeError, r"images\[0\]"),
        ("a.jpg", TypeError, r"images\[0\]"),
        (np.zeros((4, 4), np.uint8), ValueError, r"must have shape .* got \(4, 4\)"),
        (np.zeros((4, 4, 4), np.uint8), ValueError, r"must have shape \(height, width, 3\)"),
        (np.zeros((0, 4, 3), np.uint8), ValueError, r"must have shape \(height, width, 3\)"),
    ],
)
def test_pictures_must_be_rgb(picture, error, message):
    refuses(error, message, annotation_examples, [[1.0]], ["x"], [picture])


def test_refuses_what_does_not_fit():
    odd = {
        "task": ["both"],
        "captions": [["x"]],
        "n_examples": [0],
        "scores": [[[np.nan, 0], [0, 0]]],
        "caption_image": [[0, 0]],
    }
    usual = {"scores": np.eye(2), "captions": ["x", "y"], "images": photo}
    refuses_each(query_examples, odd, **usual, task="search")
