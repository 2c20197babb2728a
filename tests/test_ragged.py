"""One contract for all records of ragged rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore._ragged import check_offsets, offsets_of, take_ragged
from kernelcore.captions import EncodedCaptions, SentenceFragments, SentenceTrees
from kernelcore.images import RegionFeatures, SpatialHistograms

RNG = np.random.default_rng(0)


def rows_of(offsets, *columns):
    return [tuple(c[start:end].tolist() for c in columns) for start, end in pairwise(offsets)]


def captions_of(record):
    words = rows_of(record.caption_offsets, record.word_ids)
    captions = list(zip(words, record.caption_numbers.tolist(), strict=True))
    return [captions[start:end] for start, end in pairwise(record.image_offsets)]


# Valid fields of each record, and its items as plain lists, found without the record's code
RECORDS = {
    EncodedCaptions: (
        {
            "word_ids": [0, 1, -7, 1, 2, 2, 0],
            "caption_offsets": [0, 2, 2, 4, 7],
            "image_offsets": [0, 2, 2, 3, 4],
            "caption_numbers": [1, 0, 0, 5],
            "n_words": 3,
        },
        captions_of,
    ),
    SentenceFragments: (
        {
            "relation_ids": [0, 1, 0, 1],
            "first_ids": [2, 0, -4, 1],
            "second_ids": [1, 2, 0, 0],
            "offsets": [0, 2, 2, 3, 4],
            "n_relations": 2,
            "n_words": 3,
        },
        lambda r: rows_of(r.offsets, r.relation_ids, r.first_ids, r.second_ids),
    ),
    SentenceTrees: (
        {
            "word_ids": [0, 1, 2, -7, 3, 0],
            "relation_ids": [0, 1, 2, 2, 0, 0],
            "heads": [1, 2, -1, 2, -1, 0],
            "offsets": [0, 4, 4, 6],
            "n_relations": 3,
            "n_words": 4,
        },
        lambda r: rows_of(r.offsets, r.word_ids, r.relation_ids, r.heads, r.heights),
    ),
    SpatialHistograms: (
        {
            "counts": [
                [[3, 3], [1, 0], [0, 2], [2, 0], [0, 1]],
                [[0, 1], *[[0, 0]] * 3, [0, 1]],
            ],
            "totals": [6, 1],
            "n_levels": 2,
        },
        lambda r: list(zip(r.counts.tolist(), r.totals.tolist(), strict=True)),
    ),
    RegionFeatures: (
        {
            "offsets": [0, 2, 3, 3],
            "boxes": RNG.random((3, 4), np.float32),
            "scores": np.array([0.5, np.nan, 1.0], np.float32),
            "labels": [0, -1, 2],
            "features": RNG.random((3, 5), np.float32),
            "sizes": [[3, 4], [5, 6], [7, 8]],
            "rows": [0, 2, 3],
            "failures": {1: "no photo"},
        },
        lambda r: [
            (str(own), size, row)
            for own, size, row in zip(
                rows_of(r.offsets, r.boxes, r.scores, r.labels, r.features),
                r.sizes.tolist(),
                r.rows.tolist(),
                strict=True,
            )
        ],
    ),
}
KINDS = pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)


def example(kind, **changes):
    return kind(**(RECORDS[kind][0] | changes))


def arrays_of(record):
    values = {name: getattr(record, name) for name in RECORDS[type(record)][0]}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


@KINDS
@given(data=st.data())
def test_select_takes_items_in_order_and_repeatedly(kind, data):
    record, items = example(kind), RECORDS[kind][1]
    own = items(record)
    assert len(record) == len(own) > 1
    chosen = data.draw(st.lists(st.integers(0, len(own) - 1), max_size=6))
    selected = record.select(chosen)
    assert type(selected) is kind
    assert items(selected) == [own[i] for i in chosen]
    again = kind(**{name: getattr(selected, name) for name in RECORDS[kind][0]})
    for name, array in arrays_of(again).items():  # as if it had been checked
        np.testing.assert_array_equal(array, getattr(selected, name))
        assert array.dtype == getattr(record, name).dtype == getattr(selected, name).dtype
        for one in (array, getattr(selected, name)):
            assert one.flags.c_contiguous
            with pytest.raises(ValueError, match="read-only"):
                one[...] = 0


@KINDS
@pytest.mark.parametrize(
    ("indices", "error"),
    [([9], ValueError), ([-1], ValueError), ([0.5], TypeError), ([True, False], TypeError)],
)
def test_select_refuses_other_positions(kind, indices, error):
    refuses(error, "indices", example(kind).select, indices)


@KINDS
def test_saved_records_come_back(kind, tmp_path):
    record = example(kind).select([1, 0])
    record.save(tmp_path / "record")
    again = kind.load(tmp_path / "record")
    for name in RECORDS[kind][0]:
        np.testing.assert_array_equal(getattr(again, name), getattr(record, name))
        assert type(getattr(again, name)) is type(getattr(record, name))
    for name, array in arrays_of(again).items():
        assert array.dtype == getattr(record, name).dtype
    for other in RECORDS:
        if other is not kind:
            refuses(ValueError, str(tmp_path / "record"), other.load, tmp_path / "record")


@KINDS
def test_wrong_arrays_and_sizes_are_named(kind):
    arrays = arrays_of(example(kind))
    for name, array in arrays.items():
        for odd in (array.astype(complex), array.astype(float), array[None], [[["a"]]]):
            refuses((TypeError, ValueError), name, example, kind, **{name: odd})
        longer = np.concatenate([array, array[-1:] + 1])
        refuses(ValueError, "|".join(arrays), example, kind, **{name: longer})
    for name, value in RECORDS[kind][0].items():
        if isinstance(value, int):
            for odd in (-1, 2.5, 2**40):
                refuses((TypeError, ValueError), name, example, kind, **{name: odd})


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
    assert [taken[start:end] for start, end in pairwise(new_offsets)] == [
        rows[i] for i in chosen
    ]


@pytest.mark.parametrize(
    "offsets",
    [[], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [0, 2**63 - 1, -2, 3]],  # no step is negative
)
def test_wrong_offsets_are_refused(offsets):
    refuses(ValueError, "starts", check_offsets, "starts", np.array(offsets, np.int64), 3)
