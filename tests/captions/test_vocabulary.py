"""Vocabularies: counts, order, frequencies of documents, and ids of unknown words."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import output_of
from refusals import refuses, refuses_each

from kernelcore._store import save_json
from kernelcore.captions import Vocabulary
from kernelcore.captions.vocabulary import unknown_word_id

TOKENS = st.sampled_from(["dog", "cat", "run", "ä", "zoo", "b"])
CAPTIONS = st.lists(st.lists(st.lists(TOKENS, max_size=5), max_size=3), max_size=6)


@given(CAPTIONS, st.integers(1, 4))
def test_counts_and_document_frequencies(captions, min_count):
    vocabulary = Vocabulary.from_captions(captions, min_count=min_count)
    flat = [[token for caption in image for token in caption] for image in captions]
    counts = Counter(token for image in flat for token in image)
    assert set(vocabulary) == {word for word, n in counts.items() if n >= min_count}
    assert vocabulary.counts.tolist() == [counts[word] for word in vocabulary]
    containing = [sum(word in image for image in flat) for word in vocabulary]
    assert vocabulary.document_frequency.tolist() == containing
    assert vocabulary.n_documents == len(captions)
    assert all(vocabulary.index[word] == i for i, word in enumerate(vocabulary.words))


@given(CAPTIONS, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_images(captions, random):
    words = Vocabulary.from_captions(captions).words
    random.shuffle(captions)
    assert Vocabulary.from_captions(captions).words == words


def test_words_are_ordered_by_falling_count_then_alphabet():
    assert Vocabulary.from_captions([[["b", "c", "a", "c"]]]).words == ("c", "a", "b")


def test_idf_is_the_formula_clipped_at_zero():
    captions = [[["every", "some"]], [["every"], ["some"]], [["every"]], [["every", "rare"]]]
    vocabulary = Vocabulary.from_captions(captions)
    assert vocabulary.words == ("every", "some", "rare")
    np.testing.assert_allclose(vocabulary.idf(), [0, np.log(4 / 3), np.log(4 / 2)])
    assert vocabulary.unknown_idf == pytest.approx(np.log(4))
    assert (vocabulary.idf() < vocabulary.unknown_idf).all()
    assert Vocabulary([], [], [], 0).unknown_idf == 0
    assert Vocabulary([], [], [], 0).idf().shape == (0,)


def test_unknown_words_match_themselves_only():
    vocabulary = Vocabulary.from_captions([[["dog"]]])
    encoded = vocabulary.encode([[["cat", "dog", "cat", "cow"]]])
    cat, dog, cat_again, cow = encoded.word_ids.tolist()
    assert dog == 0
    assert cat == cat_again < 0
    assert cow < 0
    assert cow != cat
    assert vocabulary.encode([[["cow"]]]).word_ids.tolist() == [cow]


def test_the_id_of_an_unknown_word_is_the_same_in_every_process():
    code = "from kernelcore.captions.vocabulary import unknown_word_id as f; print(f('Käse'))"
    assert int(output_of(code, PYTHONHASHSEED="77")) == unknown_word_id("Käse")


@given(st.text())
def test_ids_of_unknown_words_are_negative_and_fit(word):
    assert -(2**31) <= unknown_word_id(word) <= -1


def test_ids_of_unknown_words_spread():
    ids = {unknown_word_id(f"word{i}") for i in range(10_000)}
    assert len(ids) > 9_990
    assert min(ids) < -(2**31) * 0.99
    assert max(ids) > -(2**31) * 0.01


def test_unknown_words_can_be_dropped():
    vocabulary = Vocabulary.from_captions([[["dog", "run"]]])
    encoded = vocabulary.encode([[["run", "cat", "dog"]], [["cat"]]], unknown="drop")
    assert encoded.word_ids.tolist() == [1, 0]
    assert encoded.caption_offsets.tolist() == [0, 2, 2]
    refuses(ValueError, "unknown", vocabulary.encode, [], unknown="skip")


def test_encoding_keeps_numbers_and_size_and_decoding_names_known_words():
    vocabulary = Vocabulary.from_captions([[["dog", "run"]]])
    encoded = vocabulary.encode([[["dog"]]], caption_numbers=[[4]])
    assert encoded.caption_numbers.tolist() == [4]
    assert encoded.n_words == len(vocabulary) == 2
    assert "dog" in vocabulary
    assert "cat" not in vocabulary
    assert vocabulary.decode([1, -3, 0]) == ["run", None, "dog"]
    refuses(ValueError, "word_ids", vocabulary.decode, [2])


@pytest.mark.parametrize("captions", [["a dog"], [["a dog"]], [[["a", 3]]]])
def test_wrong_nesting_is_named(captions):
    vocabulary = Vocabulary.from_captions([[["a"]]])
    for call in (Vocabulary.from_captions, vocabulary.encode):
        refuses(TypeError, "images, captions, tokens", call, captions)


def test_invalid_parts_and_other_files_are_named(tmp_path):
    valid = {"words": ["a", "b"], "counts": [2, 1], "document_frequency": [2, 1]}
    odd = {
        "words": [["a", "a"], ["a", 1]], "counts": [[1], [1.5, 1], [1, -1]],
        "document_frequency": [[3, 1]], "n_documents": [-1],
    }  # fmt: skip
    refuses_each(Vocabulary, odd, **valid, n_documents=9)
    refuses(ValueError, "document_frequency", Vocabulary, **valid, n_documents=0)
    save_json(tmp_path / "other", {"words": []})
    refuses(ValueError, "vocabulary", Vocabulary.load, tmp_path / "other")
    refuses(FileNotFoundError, "nowhere", Vocabulary.load, "nowhere")
