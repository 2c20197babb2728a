"""Captions joined by image, stems, and the vectors of what they stand for."""

import numpy as np
import pytest

pytest.importorskip("torch")

from kernelcore.deep import join_captions
from kernelcore.deep.order_texts import stem_vectors, stems
from kernelcore.lexical import WordVectors


def test_captions_are_joined_in_their_order():
    texts, images = join_captions(["one", "two", "three", "four", "five"], [3, 0, 3, 7, 0])
    assert texts == ["two five", "one three", "four"]
    assert images.tolist() == [0, 3, 7]
    assert images.dtype == np.intp


def test_nothing_is_joined_of_nothing():
    texts, images = join_captions([], np.zeros(0, int))
    assert texts == []
    assert images.shape == (0,)


@pytest.mark.parametrize(
    ("owners", "error", "message"),
    [
        ([0], ValueError, "caption_image must have one entry per caption"),
        ([0, -1], ValueError, "caption_image must be non-negative"),
        ([0.5, 1.0], TypeError, "caption_image must"),
        (["a", "b"], TypeError, "caption_image must"),
        ([[0, 1]], ValueError, "caption_image must"),
    ],
)
def test_owners_that_are_none_are_refused(owners, error, message):
    with pytest.raises(error, match=message):
        join_captions(["a", "b"], owners)


def test_stems_are_of_content_words():
    assert stems("The dogs ARE running, through the snow-field!") == [
        "dog",
        "run",
        "snow",
        "field",
    ]


def test_a_stem_has_the_vector_of_its_most_frequent_word():
    vectors = WordVectors(
        ["run", "running", "runs", "dogs", "dog", "the"], np.eye(6, dtype=np.float32)
    )
    texts = ["The running runs running", "runs runner dog dogs", "runners run"]
    found = stem_vectors(texts, vectors)
    # "running" and "runs" come twice each; neither "runner" nor the stop word has a part
    assert found.words == ("dog", "run")
    np.testing.assert_array_equal(found["run"], vectors["running"])
    np.testing.assert_array_equal(found["dog"], vectors["dog"])
    empty = stem_vectors(["nothing known"], vectors)
    assert (len(empty.words), empty.n_dimensions) == (0, 6)
