"""Word vectors that are learned from a text, and vectors of several sources."""

import itertools

import numpy as np
import pytest

from kernelcore.lexical import WordVectors, join_word_vectors, learn_word_vectors


def drawn(n_sentences=60, n_words=12, seed=0):
    """Sentences of up to nine words; some words stand together more often than others."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n_sentences):
        topic = rng.integers(3)
        ids = 4 * topic + rng.zipf(1.6, rng.integers(0, 10)) % 4
        stray = rng.random(len(ids)) < 0.2
        ids[stray] = rng.integers(n_words, size=stray.sum())
        sentences.append([f"w{i}" for i in ids])
    return sentences


def information(sentences, words, window):
    """Positive pointwise mutual information by the formula, with plain loops."""
    counts = np.zeros((len(words), len(words)))
    for sentence in sentences:
        for (i, w), (j, c) in itertools.permutations(enumerate(sentence), 2):
            if abs(i - j) <= window and w in words and c in words:
                counts[words.index(w), words.index(c)] += 1
    of_words, contexts = counts.sum(axis=1), counts.sum(axis=0) ** 0.75
    matrix = np.zeros_like(counts)
    for w, c in itertools.product(range(len(words)), repeat=2):
        if counts[w, c]:
            share = contexts[c] / contexts.sum()
            matrix[w, c] = max(0.0, np.log(counts[w, c] / (of_words[w] * share)))
    return matrix


def cosines(vectors):
    return vectors.vectors.astype(float) @ vectors.vectors.T.astype(float)


@pytest.mark.parametrize(
    ("window", "min_count", "n_dimensions"),
    [(5, 1, 4), (1, 1, 7), (2, 12, 3), (40, 1, 11), (3, 30, 2)],
)
def test_vectors_are_those_of_the_formula(window, min_count, n_dimensions):
    sentences = drawn()
    options = {"n_dimensions": n_dimensions, "window": window, "min_count": min_count}
    learned = learn_word_vectors(sentences, **options)
    counts = {word: sum(s.count(word) for s in sentences) for s in sentences for word in s}
    frequent = [word for word in counts if counts[word] >= min_count]
    assert list(learned.words) == sorted(frequent, key=lambda word: (-counts[word], word))
    matrix = information(sentences, list(learned.words), window)
    left, values, _ = np.linalg.svd(matrix)
    factors = left[:, :n_dimensions] * np.sqrt(values[:n_dimensions])
    lengths = np.linalg.norm(factors, axis=1, keepdims=True)
    units = np.where(lengths > 1e-9, factors / np.maximum(lengths, 1e-9), 0.0)
    np.testing.assert_allclose(cosines(learned), units @ units.T, atol=1e-5)
    signs = np.sign((learned.vectors * units).sum(axis=0))
    np.testing.assert_allclose(learned.vectors, units * signs, atol=1e-5)


def test_the_order_of_sentences_and_the_kind_of_input_do_not_matter():
    sentences = drawn()
    learned = learn_word_vectors(sentences, n_dimensions=5, min_count=1)
    shuffled = [sentences[i] for i in np.random.default_rng(1).permutation(len(sentences))]
    for other in (sentences, map(iter, sentences), shuffled, tuple(map(tuple, sentences))):
        found = learn_word_vectors(other, n_dimensions=5, min_count=1)
        assert found.words == learned.words
        assert found.vectors.tobytes() == learned.vectors.tobytes()


def test_entries_beyond_the_rank_and_words_without_company_are_zero():
    texts = [["a", "b"], ["a", "b"], ["c", "d"], ["lonely"]]
    learned = learn_word_vectors(texts, n_dimensions=4, min_count=1)
    assert np.isfinite(learned.vectors).all()
    assert not learned["lonely"].any()
    lengths = np.linalg.norm(learned.vectors, axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 1, 1, 0], rtol=1e-6)
    assert (abs(learned.vectors) > 0).any(axis=0).all()  # a and b, c and d: of rank 4
    one = learn_word_vectors([["a", "b"], ["a", "c"]], n_dimensions=2, min_count=1)
    assert np.isfinite(one.vectors).all()
    np.testing.assert_allclose(cosines(one)[1, 2], 1, rtol=1e-6)  # b and c stand by a alone


@pytest.mark.parametrize(
    "sentences",
    [
        [["a"], ["b"], ["c"], []],  # no pair
        [["a", "rare", "b", "scarce", "a", "b", "a"]],  # one sentence
        [["a", "b", "c"] * 9],  # all stand together as often as by chance
        [[], ["a", "b"], [], ["c", "a"]],
    ],
)
def test_odd_texts_give_finite_vectors(sentences):
    for window in (1, 100):
        found = learn_word_vectors(sentences, n_dimensions=1, window=window, min_count=1)
        assert np.isfinite(found.vectors).all()
        lengths = np.linalg.norm(found.vectors, axis=1)
        assert ((abs(lengths - 1) < 1e-6) | (lengths == 0)).all()


def test_the_number_of_threads_of_blas_changes_no_bit():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    sentences = drawn(400, 12)
    found = []
    for n_threads in (1, 2):
        with threadpoolctl.threadpool_limits(n_threads):
            found.append(learn_word_vectors(sentences, n_dimensions=8, min_count=1))
    assert found[0].vectors.tobytes() == found[1].vectors.tobytes()


def test_sources_count_the_same_and_missing_words_are_zero():
    one = WordVectors(["dog", "cat", "none"], [[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    two = WordVectors(["newt", "dog"], [[-5.0], [0.5]])
    both = join_word_vectors(one, two)
    assert both.words == ("dog", "cat", "none", "newt")
    expected = [[0.6, 0.8, 1], [0, 1, 0], [0, 0, 0], [0, 0, -1]]
    np.testing.assert_allclose(both.vectors, expected, rtol=1e-6)
    chosen = join_word_vectors(one, two, words=iter(["newt", "yak", "dog"]))
    assert chosen.words == ("newt", "dog")
    np.testing.assert_allclose(chosen.vectors, [expected[3], expected[0]], rtol=1e-6)
    nothing = join_word_vectors(one, two, words=[])
    assert (len(nothing), nothing.n_dimensions) == (0, 3)
