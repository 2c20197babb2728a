"""Similarities by the company that words keep, against the definition; tagged corpora."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.lexical import Distributional, read_tagged_corpus

TOKENS = st.sampled_from(["dog", "run", "grass", "cat", "pool"])
CAPTIONS = st.lists(st.lists(st.lists(TOKENS, max_size=4), max_size=3), min_size=1, max_size=5)


def by_definition(contexts, words, vectors_over, threshold):
    """Cosines of positive pointwise mutual information, one pair of words at a time."""
    n = len(contexts)

    def p(*wanted):
        return sum(set(wanted) <= set(context) for context in contexts) / n

    def information(w, v):
        return max(0.0, math.log2(p(w, v) / (p(w) * p(v)))) if p(w, v) else 0.0

    vectors = np.array([[information(w, v) for v in vectors_over] for w in words])
    vectors = vectors.reshape(len(words), len(vectors_over))
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors @ vectors.T / np.maximum(np.outer(lengths, lengths), 1e-300)
    cosines[cosines < threshold] = 0
    np.fill_diagonal(cosines, 1)
    return cosines


@given(CAPTIONS, st.sampled_from(["caption", "image"]), st.sampled_from([1, 2]))
def test_equals_the_definition(captions, context, min_count):
    model = Distributional(min_count, context=context, threshold=0.1).fit(captions)
    contexts = [caption for image in captions for caption in image]
    if context == "image":
        contexts = [[token for caption in image for token in caption] for image in captions]
    words = model.vocabulary_.words
    tokens = [token for image in captions for caption in image for token in caption]
    assert set(words) == {w for w in tokens if tokens.count(w) >= min_count}
    expected = by_definition(contexts, words, words, 0.1)
    got = model.word_kernel().to_dense()
    # Which side of the threshold rounding takes is open.
    clear = np.abs(by_definition(contexts, words, words, 0.0) - 0.1) > 1e-6
    np.testing.assert_allclose(got[clear], expected[clear], atol=1e-6)


FEW = [[["dog", "run"], ["dog", "grass"], ["cat", "grass"], ["cat", "run"], ["emu"]]]


def test_some_words_keep_the_vectors_over_all():
    model = Distributional(1).fit(FEW)
    kernel = model.word_kernel(["cat", "zebra", "dog"])
    whole = model.word_kernel()
    assert kernel.words == ("cat", "zebra", "dog")
    assert kernel.similarity("cat", "dog") == pytest.approx(whole.similarity("cat", "dog"))
    assert kernel.similarity("cat", "dog") > 0
    assert kernel.most_similar("zebra") == []
    assert model.word_kernel([]).words == ()


def test_information_is_in_bits():
    # dog and run meet in half of the contexts and never stand apart: log2(1/2 / 1/4)
    model = Distributional(1).fit([[["dog", "run"], ["dog", "run", "run"], ["cat"], ["cat"]]])
    assert model.vocabulary_.words == ("run", "cat", "dog")
    np.testing.assert_allclose(model.vectors_.toarray(), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_the_last_slash_divides_word_and_tag_and_line_feeds_alone_end_a_sentence(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("either/or/cc  Käse/nn\n\na/at\u2028dog/nn\x0b./.\n", encoding="utf-8")
    expected = [[("either/or", "cc"), ("Käse", "nn")], [("a", "at"), ("dog", "nn"), (".", ".")]]
    assert read_tagged_corpus(path) == expected


@pytest.mark.realdata
def test_the_brown_corpus_is_read(data_root):
    sentences = read_tagged_corpus(data_root / "brown" / "brown_tagged.txt")
    assert len(sentences) == 57_340
    assert sentences[0][:2] == [("The", "at"), ("Fulton", "np-tl")]


def test_the_threshold_cuts_small_similarities():
    value = Distributional(1).fit(FEW).word_kernel().similarity("cat", "dog")
    for threshold, expected in ((value - 1e-4, value), (value + 1e-4, 0)):
        kernel = Distributional(1, threshold=threshold).fit(FEW).word_kernel()
        assert kernel.similarity("cat", "dog") == pytest.approx(expected)
