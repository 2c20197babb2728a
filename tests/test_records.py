"""Records of checked arrays: what they take, own and give back.

What a caller does later to the arrays that made a record never reaches compiled code.
"""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore._ragged import check_offsets, offsets_of, take_ragged
from kernelcore.captions import EncodedCaptions, SentenceFragments, SentenceTrees, Vocabulary
from kernelcore.datasets import RelevanceJudgments
from kernelcore.images import Codebook, RegionFeatures, SpatialHistograms
from kernelcore.kcca import KernelColumns
from kernelcore.kernels import GramCenterer
from kernelcore.lexical import WordKernel, WordVectors

RNG = np.random.default_rng(0)
EYE = np.eye(2, dtype=np.float32)
IDS = ("a", "b")


def rows_of(offsets, *columns):
    return [tuple(c[start:end].tolist() for c in columns) for start, end in pairwise(offsets)]


def captions_of(record):
    words = rows_of(record.caption_offsets, record.word_ids)
    captions = list(zip(words, record.caption_numbers.tolist(), strict=True))
    return [captions[start:end] for start, end in pairwise(record.image_offsets)]


def regions_of(r):
    rows = rows_of(r.offsets, r.boxes, r.scores, r.labels, r.features)
    return list(zip(map(str, rows), r.sizes.tolist(), r.rows.tolist(), strict=True))


# Valid fields of each record of ragged rows, and its items as plain lists, found without the
# record's code
RAGGED = {
    EncodedCaptions: (
        {
            "word_ids": [0, 1, -7, 1, 2, 2, 0], "caption_offsets": [0, 2, 2, 4, 7],
            "image_offsets": [0, 2, 2, 3, 4], "caption_numbers": [1, 0, 0, 5], "n_words": 3,
        },
        captions_of,
    ),
    SentenceFragments: (
        {
            "relation_ids": [0, 1, 0, 1], "first_ids": [2, 0, -4, 1],
            "second_ids": [1, 2, 0, 0], "offsets": [0, 2, 2, 3, 4],
            "n_relations": 2, "n_words": 3,
        },
        lambda r: rows_of(r.offsets, r.relation_ids, r.first_ids, r.second_ids),
    ),
    SentenceTrees: (
        {
            "word_ids": [0, 1, 2, -7, 3, 0], "relation_ids": [0, 1, 2, 2, 0, 0],
            "heads": [1, 2, -1, 2, -1, 0], "offsets": [0, 4, 4, 6],
            "n_relations": 3, "n_words": 4,
        },
        lambda r: rows_of(r.offsets, r.word_ids, r.relation_ids, r.heads, r.heights),
    ),
    SpatialHistograms: (
        {
            "n_levels": 2, "totals": [6, 1], "counts":
            [[[3, 3], [1, 0], [0, 2], [2, 0], [0, 1]], [[0, 1], *[[0, 0]] * 3, [0, 1]]],
        },
        lambda r: list(zip(r.counts.tolist(), r.totals.tolist(), strict=True)),
    ),
    RegionFeatures: (
        {
            "offsets": [0, 2, 3, 3], "boxes": RNG.random((3, 4), np.float32),
            "scores": np.array([0.5, np.nan, 1.0], np.float32), "labels": [0, -1, 2],
            "features": RNG.random((3, 5), np.float32), "sizes": [[3, 4], [5, 6], [7, 8]],
            "rows": [0, 2, 3], "failures": {1: "no photo"},
        },
        regions_of,
    ),
}  # fmt: skip
# Other records, with arrays of the very dtypes that they keep
PLAIN = {
    Codebook: {"centers": EYE},
    Vocabulary: {
        "words": IDS, "n_documents": 2,
        "counts": np.array([3, 2]), "document_frequency": np.array([2, 2]),
    },
    WordVectors: {"words": IDS, "vectors": EYE},
    WordKernel: {"words": IDS, "matrix": EYE},
    KernelColumns: {"columns": abs, "diagonal": np.ones(2)},
    RelevanceJudgments: {
        "name": "two", "image_ids": IDS, "caption_ids": IDS, "images": np.array([0, 1]),
        "captions": np.array([0, 1]), "scores": np.array([1.0, 0.5]),
    },
}  # fmt: skip
KINDS = pytest.mark.parametrize("kind", RAGGED, ids=lambda kind: kind.__name__)


def example(kind, **changes):
    return kind(**(RAGGED[kind][0] | changes))


def fields_of(record):
    return {name: getattr(record, name) for name in RAGGED[type(record)][0]}


def arrays_of(record):
    values = fields_of(record)
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def arguments(kind):
    """Arguments of a record, its arrays such that none would have to be copied."""
    given = fields_of(example(kind)) if kind in RAGGED else PLAIN[kind]
    return {key: v.copy() if isinstance(v, np.ndarray) else v for key, v in given.items()}


@pytest.mark.parametrize("kind", [*RAGGED, *PLAIN], ids=lambda kind: kind.__name__)
def test_a_record_owns_its_arrays_and_nobody_can_write_into_them(kind):
    names = [key for key, value in arguments(kind).items() if isinstance(value, np.ndarray)]
    assert names
    for name in names:
        given_arrays = arguments(kind)
        array = getattr(kind(**given_arrays), name)
        before = array.copy()
        given_arrays[name][...] = 77
        np.testing.assert_array_equal(array, before)
        if kind is not WordKernel:
            refuses(ValueError, "read-only", array.fill, 77)
            while array is not None:
                assert not array.flags.writeable
                array = array.base


def test_a_sparse_word_kernel_owns_its_structure_and_a_centerer_its_means():
    matrix, means = sp.csr_array(np.eye(2)), np.array([1.0, 3.0])
    kernel, centerer = WordKernel(IDS, matrix), GramCenterer.from_means(means)
    matrix.indices[:] = 1
    means[:] = 77
    np.testing.assert_array_equal(kernel.to_dense(), np.eye(2))
    np.testing.assert_array_equal(centerer.column_means_, [1.0, 3.0])
    for part in (kernel.matrix.indices, kernel.matrix.indptr):
        refuses(ValueError, "read-only", part.fill, 10**6)


@KINDS
@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda record: pickle.loads(pickle.dumps(record))]
)
def test_a_restored_record_is_as_safe(kind, again):
    record = example(kind)
    restored = again(record)
    assert type(restored) is kind
    for name, value in fields_of(record).items():
        np.testing.assert_array_equal(getattr(restored, name), value)
    for name, array in arrays_of(restored).items():
        assert array.dtype == getattr(record, name).dtype
        assert not array.flags.writeable


def test_a_pickle_cannot_bring_in_what_the_constructor_refuses():
    record = example(EncodedCaptions)
    object.__setattr__(record, "word_ids", np.full(7, 10**8, np.int32))
    refuses(ValueError, "word_ids", pickle.loads, pickle.dumps(record))


@KINDS
@given(data=st.data())
def test_select_takes_items_in_order_and_repeatedly(kind, data):
    record, items = example(kind), RAGGED[kind][1]
    own = items(record)
    assert len(record) == len(own) > 1
    chosen = data.draw(st.lists(st.integers(0, len(own) - 1), max_size=6))
    selected = record.select(chosen)
    assert type(selected) is kind
    assert items(selected) == [own[i] for i in chosen]
    again = kind(**fields_of(selected))
    for name, array in arrays_of(again).items():  # as if it had been checked
        np.testing.assert_array_equal(array, getattr(selected, name))
        assert array.dtype == getattr(record, name).dtype == getattr(selected, name).dtype
        assert getattr(selected, name).flags.c_contiguous
        refuses(ValueError, "read-only", getattr(selected, name).fill, 0)


@KINDS
def test_what_is_no_position_array_or_size_is_refused_by_name(kind):
    for indices, error in (([9], ValueError), ([-1], ValueError), ([0.5], TypeError)):
        refuses(error, "indices", example(kind).select, indices)
    refuses(TypeError, "indices", example(kind).select, [True, False])
    arrays = arrays_of(example(kind))
    for name, array in arrays.items():
        for odd in (array.astype(complex), array.astype(float), array[None], [[["a"]]]):
            refuses((TypeError, ValueError), name, example, kind, **{name: odd})
        longer = np.concatenate([array, array[-1:] + 1])
        refuses(ValueError, "|".join(arrays), example, kind, **{name: longer})
    for name, value in RAGGED[kind][0].items():
        for odd in (-1, 2.5, 2**40) if isinstance(value, int) else ():
            refuses((TypeError, ValueError), name, example, kind, **{name: odd})


@KINDS
def test_saved_records_come_back(kind, tmp_path):
    record = example(kind).select([1, 0])
    record.save(tmp_path / "record")
    again = kind.load(tmp_path / "record")
    for name, value in fields_of(record).items():
        np.testing.assert_array_equal(getattr(again, name), value)
        assert type(getattr(again, name)) is type(value)
    for name, array in arrays_of(again).items():
        assert array.dtype == getattr(record, name).dtype
    for other in RAGGED.keys() - {kind}:
        refuses(ValueError, str(tmp_path / "record"), other.load, tmp_path / "record")


@KINDS
def test_integers_of_every_layout_are_taken(kind):
    for name, array in arrays_of(example(kind)).items():
        if array.dtype.kind not in "iu":
            continue
        twice = np.repeat(array.astype(np.int64), 2, axis=0)[::2]
        for given_array in (array.tolist(), twice, array.astype(array.dtype.newbyteorder())):
            record = example(kind, **{name: given_array})
            np.testing.assert_array_equal(getattr(record, name), array)
            assert getattr(record, name).dtype == array.dtype


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=5), st.data())
def test_rows_of_a_ragged_array(rows, data):
    offsets = offsets_of([len(row) for row in rows])
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    positions, new_offsets = take_ragged(offsets, np.array(chosen, np.intp))
    flat = [value for row in rows for value in row]
    taken = [flat[i] for i in positions]
    assert [taken[i:j] for i, j in pairwise(new_offsets)] == [rows[i] for i in chosen]


@pytest.mark.parametrize(
    "offsets",
    [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [0, 2**63 - 1, -2, 3]],  # no step is negative
)
def test_wrong_offsets_are_refused(offsets):
    refuses(ValueError, "starts", check_offsets, "starts", np.array(offsets, np.int64), 3)
