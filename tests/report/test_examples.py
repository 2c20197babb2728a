import io
from functools import partial

import numpy as np
import pytest
from refusals import refuses_each

pytest.importorskip("matplotlib")

from PIL import Image

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.report import query_examples

search_examples = partial(query_examples, task="search")
OWNER = np.array([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])
CAPTIONS = [f"caption {i}" for i in range(12)]


def photo(image):
    """A plain picture whose grey tells which one it is."""
    return np.full((20, 30, 3), 25 * image, dtype=np.uint8)


def image_of(thumbnail):
    pixels = np.asarray(Image.open(io.BytesIO(thumbnail.jpeg)))
    return round(pixels.mean() / 25)


def number_of(content):
    return CAPTIONS.index(content) if isinstance(content, str) else image_of(content)


@pytest.fixture
def scores():
    return np.random.default_rng(0).random((10, 12))


@pytest.mark.parametrize("task", ["search", "annotation"])
def test_the_best_candidates_are_listed_and_the_gold_one(task, scores):
    by_query = scores.T if task == "search" else scores
    ranks = getattr(retrieval_ranks(scores, OWNER), task)
    labels = {"caption_image": OWNER, "task": task, "system": "toy"}
    examples = query_examples(scores, CAPTIONS, photo, **labels)
    queries = [number_of(example.query) for example in examples]
    order, middle = np.argsort(ranks, kind="stable").tolist(), len(ranks) // 2
    assert queries == [*order[:2], *order[middle - 1 : middle + 1], *order[-2:]]
    cases = [example.case for example in examples]
    assert cases == ["good"] * 2 + ["typical"] * 2 + ["bad"] * 2
    for example, query in zip(examples, queries, strict=True):
        assert (example.task, example.system) == (task, "toy")
        assert example.n_candidates == by_query.shape[1]
        best = np.argsort(-by_query[query])[:5].tolist()
        assert [number_of(hit.content) for hit in example.hits[:5]] == best
        assert [hit.position for hit in example.hits[:5]] == [1, 2, 3, 4, 5]
        assert [hit.score for hit in example.hits[:5]] == by_query[query, best].tolist()
        for hit in example.hits:
            image, caption = number_of(hit.content), query
            if task == "annotation":
                image, caption = caption, image
            assert hit.is_gold == (OWNER[caption] == image)
        gold = min(hit.position for hit in example.hits if hit.is_gold)
        assert gold == example.rank == ranks[query]
        assert len(example.hits) == (5 if gold <= 5 else 6)


@pytest.mark.parametrize(
    ("n", "cases"), [(1, "g"), (2, "gb"), (3, "ggb"), (4, "ggbb"), (5, "ggtbb")]
)
def test_few_queries_are_shown_once(n, cases):
    examples = search_examples(np.eye(n), [str(i) for i in range(n)], photo)
    assert "".join(example.case[0] for example in examples) == cases
    assert len({example.query for example in examples}) == n
    tied = search_examples(np.zeros((n, n)), list("abcde"[:n]), [photo(i) for i in range(n)])
    assert [image_of(hit.content) for hit in tied[0].hits] == list(range(n))
    assert tied[0].rank == (n + 1) / 2


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


def test_refuses_what_does_not_fit():
    odd = {
        "task": ["both"], "captions": [["x"]], "n_examples": [0],
        "scores": [[[np.nan, 0], [0, 0]]], "caption_image": [[0, 0]],
        "images": [
            [np.zeros(shape, kind)] * 2
            for shape, kind in (
                ((4, 4, 3), float), ((4, 4), "u1"), ((4, 4, 4), "u1"), ((0, 4, 3), "u1"),
            )
        ]
    }  # fmt: skip
    usual = {"scores": np.eye(2), "captions": ["x", "y"], "images": photo}
    refuses_each(query_examples, odd, **usual, task="search")
