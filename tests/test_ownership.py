"""Checked records own their arrays: what a caller does later never reaches compiled code."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refuses

from kernelcore.captions import EncodedCaptions, SentenceFragments, SentenceTrees, Vocabulary
from kernelcore.datasets import RelevanceJudgments
from kernelcore.images import Codebook, SpatialHistograms
from kernelcore.kcca import KernelColumns
from kernelcore.kernels import (
    GramCenterer,
    bag_of_words,
    bag_of_words_f1,
    tag_rank,
    word_assignment,
    word_sequence,
)
from kernelcore.lexical import WordKernel, WordVectors, ibm1

INT32 = {"word_ids", "relation_ids", "first_ids", "second_ids", "heads"}


def captions():
    return {
        "word_ids": [0, 1, 2, 1, 0, 2, 2, 1],
        "caption_offsets": [0, 3, 4, 8],
        "image_offsets": [0, 2, 3],
        "caption_numbers": [0, 1, 0],
        "n_words": 3,
    }


def integers(given):
    """Arrays of the very dtypes that the records keep, so that none would have to be copied."""
    return {
        name: np.array(value, np.int32 if name in INT32 else np.int64)
        if isinstance(value, list)
        else value
        for name, value in given.items()
    }


FRAGMENTS = {
    "relation_ids": [0, 1, 0],
    "first_ids": [2, 0, 1],
    "second_ids": [1, 2, 0],
    "offsets": [0, 2, 2, 3],
    "n_relations": 2,
    "n_words": 3,
}
TREES = {
    "word_ids": [0, 1, 2, 3],
    "relation_ids": [0, 1, 2, 2],
    "heads": [1, 2, -1, -1],
    "offsets": [0, 3, 4],
    "n_relations": 3,
    "n_words": 4,
}
IDS = ("a", "b")
RECORDS = {
    EncodedCaptions: integers(captions()),
    SentenceFragments: integers(FRAGMENTS),
    SentenceTrees: integers(TREES),
    SpatialHistograms: {
        "counts": np.array([[[3, 3]], [[1, 0]]], np.uint16),
        "totals": np.array([6, 1]),
        "n_levels": 1,
    },
    Codebook: {"centers": np.eye(2, dtype=np.float32)},
    Vocabulary: {
        "words": IDS,
        "counts": np.array([3, 2]),
        "document_frequency": np.array([2, 2]),
        "n_documents": 2,
    },
    WordVectors: {"words": IDS, "vectors": np.eye(2, dtype=np.float32)},
    WordKernel: {"words": IDS, "matrix": np.eye(2, dtype=np.float32)},
    KernelColumns: {"columns": abs, "diagonal": np.ones(2)},
    RelevanceJudgments: {
        "name": "two",
        "image_ids": IDS,
        "caption_ids": IDS,
        "images": np.array([0, 1]),
        "captions": np.array([0, 1]),
        "scores": np.array([1.0, 0.5]),
    },
}
CASES = [
    pytest.param(kind, name, id=f"{kind.__name__}-{name}")
    for kind, given in RECORDS.items()
    for name, value in given.items()
    if isinstance(value, np.ndarray)
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_record_keeps_what_it_was_given(kind, name):
    given = {
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in RECORDS[kind].items()
    }
    record = kind(**given)
    before = getattr(record, name).copy()
    given[name][:] = 77
    np.testing.assert_array_equal(getattr(record, name), before)


@pytest.mark.parametrize(
    ("kind", "name"), [case for case in CASES if case.values[0] is not WordKernel]
)
def test_nobody_can_write_into_a_record(kind, name):
    array = getattr(kind(**RECORDS[kind]), name)
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 77
    while array is not None:
        assert not array.flags.writeable
        array = array.base


RESTORED = (EncodedCaptions, SentenceFragments, SentenceTrees, SpatialHistograms)


@pytest.mark.parametrize("kind", RESTORED)
@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda record: pickle.loads(pickle.dumps(record))]
)
def test_a_restored_record_is_as_safe(kind, again):
    record = kind(**RECORDS[kind])
    restored = again(record)
    assert type(restored) is kind
    for name, value in RECORDS[kind].items():
        if isinstance(value, np.ndarray):
            array = getattr(restored, name)
            np.testing.assert_array_equal(array, getattr(record, name))
            assert array.dtype == getattr(record, name).dtype
            assert not array.flags.writeable
        else:
            assert getattr(restored, name) == value


def test_a_pickle_cannot_bring_in_what_the_constructor_refuses():
    record = EncodedCaptions(**integers(captions()))
    object.__setattr__(record, "word_ids", np.full(8, 10**8, np.int32))
    refuses(ValueError, "word_ids", pickle.loads, pickle.dumps(record))


WEIGHTS = np.ones(3)
KERNELS = {
    "word_sequence": lambda X: word_sequence(X, word_weights=WEIGHTS),
    "word_assignment": lambda X: word_assignment(X, word_weights=WEIGHTS),
    "tag_rank": tag_rank,
    "bag_of_words": lambda X: bag_of_words_f1(X) + bag_of_words(X),
    "ibm1": lambda X: ibm1(X, X).probabilities.toarray(),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "name", ["word_ids", "caption_offsets", "image_offsets", "caption_numbers"]
)
def test_captions_changed_by_their_maker_do_not_reach_the_core(kernel, name):
    """Each of these 20 ended in a crash, a hang or a wrong matrix."""
    given = integers(captions())
    X = EncodedCaptions(**given)
    expected = KERNELS[kernel](X)
    given[name][:] = 2**30
    assert getattr(X, name).max() < 2**30  # before the core would read it
    np.testing.assert_array_equal(KERNELS[kernel](X), expected)


def test_a_sparse_word_kernel_keeps_its_own_structure():
    matrix = sp.csr_array(np.eye(3))
    kernel = WordKernel(["a", "b", "c"], matrix)
    matrix.indices[:] = 2
    np.testing.assert_array_equal(kernel.to_dense(), np.eye(3))
    for part in (kernel.matrix.indices, kernel.matrix.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 10**6


def test_a_centerer_keeps_its_own_means():
    means = np.array([1.0, 3.0])
    centerer = GramCenterer.from_means(means)
    means[:] = 77
    np.testing.assert_array_equal(centerer.column_means_, [1.0, 3.0])
