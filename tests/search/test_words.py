"""Unknown words, and scores divided among the words of a sentence."""

import difflib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelcore.search import unknown_words, word_shares
from kernelcore.search.words import spelled_alike

SENTENCES = ["A red dog chases a cat near the tree.", "dog dog dog", "zeppelin dog"]
SENTENCES += ["the zeppelin", ""]


@pytest.fixture(scope="module", params=["bag_of_words", "similar_words"])
def ranker(request, train):
    return train(request.param)


@pytest.fixture(scope="module")
def vectors(ranker, files):
    return ranker.embed_images(files[40:])


@pytest.mark.parametrize("sentence", SENTENCES)
def test_shares_sum_to_the_cosine(ranker, vectors, sentence):
    words, shares = word_shares(ranker, sentence, vectors)
    assert shares.shape == (len(words) + 1, len(vectors))
    captions = ranker.captions_
    row = captions.gram(captions.encode([[sentence]]))
    place = ranker.ranker_.embed_captions(row)[0]
    directions = ranker.directions(vectors)
    cosines = directions @ place[: directions.shape[1]]
    np.testing.assert_allclose(shares.sum(axis=0), cosines, atol=2e-5)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_parts_of_a_kernel_row_sum_to_it(ranker, sentence):
    captions = ranker.captions_
    [words] = captions.normalizer([sentence])
    parts = captions.parts(words)
    assert parts.shape == (len(words), 40)
    row = captions.gram(captions.encode([[sentence]]))[0]
    np.testing.assert_allclose(parts.sum(axis=0), row, atol=1e-6)


def test_equal_words_share_alike_and_unknown_ones_have_nothing(ranker):
    captions = ranker.captions_
    parts = captions.parts(["dog", "dog", "zeppelin"])
    np.testing.assert_allclose(parts[0], parts[1], atol=1e-12)
    assert np.abs(parts[2]).max() == 0
    assert parts[0].max() > 0


def test_a_subsequence_counts_for_each_of_its_words(ranker):
    captions = ranker.captions_
    if captions.kernel == "bag_of_words":
        pytest.skip("a bag has no subsequences")
    alone = captions.parts(["dog"])[0]
    together = captions.parts(["dog", "cat"])
    reversed_ = captions.parts(["cat", "dog"])
    assert not np.allclose(together[0], reversed_[1])  # order matters
    assert not np.allclose(together[0] / together[0].max(), alone / alone.max())


def test_words_are_named_as_they_stand_in_the_sentence(ranker, vectors):
    words, _ = word_shares(ranker, "Two DOGS chasing the boy's T-shirt", vectors)
    assert words[0] == "Two"
    assert words[1:3] == ["DOGS", "chasing"]


def test_unknown_words_are_named_with_the_nearest(ranker):
    found = unknown_words(ranker.captions_, "a Dgo and the catt, a zeppelin, a Dgo")
    assert list(found) == ["Dgo", "catt", "zeppelin"]
    assert "cat" in found["catt"]
    assert found["zeppelin"] == ()
    assert unknown_words(ranker.captions_, "a dog") == {}
    assert unknown_words(ranker.captions_, "a chaser")["chaser"][0] in {"chases", "chasing"}
    assert unknown_words(ranker.captions_, "") == {}


WORDS = st.text("aabcdo", min_size=1, max_size=12)


@example(["aaaaaaabbb"], "aaaaaaaccc")  # a ratio of exactly 0.7
@given(st.lists(WORDS, max_size=30), WORDS)
def test_words_that_are_spelled_alike_are_those_of_difflib(words, word):
    assert spelled_alike(words, word) == difflib.get_close_matches(word, words, 3, 0.7)
