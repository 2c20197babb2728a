"""Encoded captions: lists and back, one caption of each image, refusals."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses, refuses_each

from kernelcore.captions import EncodedCaptions

IDS = st.integers(-(2**31), 20)
CAPTIONS = st.lists(st.lists(st.lists(IDS, max_size=5), max_size=4), max_size=6)


def to_lists(encoded):
    captions = np.split(encoded.word_ids, encoded.caption_offsets[1:-1])
    bounds = pairwise(encoded.image_offsets)
    return [[own.tolist() for own in captions[start:end]] for start, end in bounds]


@given(CAPTIONS)
def test_lists_come_back(captions):
    encoded = EncodedCaptions.from_lists(captions, n_words=21)
    assert to_lists(encoded) == captions
    assert len(encoded) == len(captions)
    assert encoded.n_captions == sum(map(len, captions))
    assert encoded.word_ids.dtype == np.int32
    for name in ("caption_offsets", "image_offsets", "caption_numbers"):
        assert getattr(encoded, name).dtype == np.int64


@given(CAPTIONS)
def test_caption_as_image_makes_every_caption_an_image(captions):
    alone = EncodedCaptions.from_lists(captions, n_words=21).caption_as_image()
    assert to_lists(alone) == [[caption] for image in captions for caption in image]


def test_with_caption_goes_by_the_number_and_not_by_the_position():
    texts, numbers = [[[0], [1, 1]], [[2], [3], [4]]], [[2, 0], [0, 1, 2]]
    encoded = EncodedCaptions.from_lists(texts, caption_numbers=numbers)
    assert to_lists(encoded.with_caption(2)) == [[[0]], [[4]]]
    assert encoded.with_caption(2).caption_numbers.tolist() == [2, 2]
    assert to_lists(encoded.with_caption(0)) == [[[1, 1]], [[2]]]
    refuses(ValueError, "number 1.*1 have none.*position 0", encoded.with_caption, 1)
    apart = EncodedCaptions.from_lists([[[0]], [[1]]], caption_numbers=[[0], [1]])
    refuses(ValueError, "number 1.*position 0", apart.with_caption, 1)
    assert encoded.select([1, 0]).caption_numbers.tolist() == [0, 1, 2, 2, 0]
    assert encoded.caption_as_image().caption_numbers.tolist() == [2, 0, 0, 1, 2]


def test_the_size_of_the_vocabulary_is_one_more_than_the_largest_id():
    assert EncodedCaptions.from_lists([[[3, -5]]]).n_words == 4
    assert EncodedCaptions.from_lists([[[-5]]]).n_words == 0
    assert EncodedCaptions.from_lists([]).n_words == 0


def test_invalid_parts_are_named():
    ids = [[0.0, 1, 2, 1], [True, True, False, True], [["a"]], [0, 1, 3, 1]]
    odd = {
        "word_ids": [*ids, [0, 1, 2**31, 1], [0, 1, -(2**31) - 1, 1]],
        "caption_offsets": [[0, 3, 2, 4], [1, 2, 2, 4], [0, 2, 2, 5], []],
        "image_offsets": [[0, 2, 2]],
        "n_words": [-1, 2.5],
    }
    usual = {
        "word_ids": [0, 1, 2, 1], "caption_offsets": [0, 2, 2, 4], "image_offsets": [0, 2, 3],
        "caption_numbers": [0, 1, 0], "n_words": 3,
    }  # fmt: skip
    refuses_each(EncodedCaptions, odd, **usual)
    for numbers, named in (([0, 1], "caption_numbers"), ([1, 1, 0], "number 1")):
        refuses(ValueError, named, EncodedCaptions, **usual | {"caption_numbers": numbers})
    from_lists = EncodedCaptions.from_lists
    refuses(TypeError, "images, captions, word ids", from_lists, [[1, 2], [3]])
    for numbers in ([[0]], [[0, 1], []]):
        odd = {"caption_numbers": numbers}
        refuses(ValueError, "caption_numbers", from_lists, [[[1]], [[2]]], **odd)
