"""The compiled core converts nothing: what the facade did not prepare is refused."""

import functools
from collections.abc import Iterator

import numpy as np
import pytest
from refusals import refuses

from kernelcore import _core


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def test_what_is_read_only_is_read_and_not_written():
    X, out = ones(2, 3), np.empty((2, 2), np.float32)
    X.flags.writeable = False
    _core.histogram_intersection(X, X, out, 1, None)
    assert (out == 3).all()
    out.flags.writeable = False
    refuses(ValueError, "writeable", _core.histogram_intersection, X, X, out, 1, None)


def test_segments_stay_inside_the_bins_and_only_square_matrices_are_symmetric():
    X, call = ones(2, 3), _core.segmented_intersection
    refuses(ValueError, "segment", call, X, X, [(0, 4, 1.0)], True, ones(2, 2), 1, None)
    refuses(ValueError, "symmetric", call, X, X[:1], [], True, ones(2, 1), 1, None)


def test_a_column_has_no_more_rows_than_it_can_count(tmp_path):
    scores = np.memmap(tmp_path / "scores", np.float32, "w+", shape=(2**31, 1))  # all holes
    queries = ones(1, 1), np.zeros((1, 1), np.int64), np.zeros((2, 1), np.int64)
    refuses(ValueError, "rows", _core.count_ranks, scores, None, queries, False, 1, None)


def test_unknown_instruction_set_is_refused():
    before = _core.active_isa()
    refuses(ValueError, "'v9'", _core.select_isa, "v9")
    assert _core.active_isa() == before


# Two images of one caption of two words each, and every argument that such a call takes.
CAPTIONS = (np.array([0, 1, 1, 2], np.int32), np.array([0, 2, 4]), np.array([0, 1, 2]))
SCALE = ones(3)
SIMILAR = np.eye(3, dtype=np.float32)
CSR = (np.arange(4), np.arange(3, dtype=np.int32), ones(3))
QUERIES = (ones(1, 2), np.zeros((1, 2), np.int64), np.zeros((3, 2), np.int64))
CHOSEN = np.ones((2, 1), np.int64)
SETS = (np.array([0, 1, 2]), np.array([0, 2]))
ENTRIES = (np.array([0, 1, 2]), np.zeros(2, np.int64), np.zeros(2, np.int64))

OF_WORDS = CAPTIONS, CAPTIONS, SCALE
ARGUMENTS = {  # but for the number of threads and the report
    "histogram_intersection": (ones(2, 3), ones(4, 3), ones(2, 4)),
    "segmented_intersection": (ones(2, 3), ones(4, 3), [(0, 3, 1.0)], False, ones(2, 4)),
    "sparse_intersection": (CSR, CSR, 3, ones(3, 3)),
    "word_sequence": (*OF_WORDS, SIMILAR, None, 2, 0.5, False, True, ones(2, 2)),
    "word_sequence (components)": (*OF_WORDS, None, CSR, 3, 0.5, True, True, ones(2, 6)),
    "word_sequence_exact": (*OF_WORDS[:2], np.ones(3), 3, 0.5, True, True, ones(2, 6)),
    "tag_rank": (
        *(CAPTIONS, CAPTIONS, np.arange(3, dtype=np.int32), 3, np.ones(3), np.ones(3)),
        *(1.0, 1.0, ones(2, 2)),
    ),
    "count_ranks": (ones(2, 2), QUERIES, QUERIES, True),
    "count_ranks_of_products": (ones(2, 3), ones(2, 3), QUERIES, QUERIES, True),
    "dot_products": (ones(2, 3), ones(4, 3), ones(2, 4)),
    "paired_dot_products": (ones(2, 3), ones(2, 3), np.array([1, 0]), ones(2)),
    "best_products": (ones(2, 3), ones(4, 3), 7, np.zeros((2, 1), np.int64), ones(2, 1)),
    "linear_assignments": (ones(2, 2, 2), np.array([2, 1]), False, 2, None, True),
    "set_similarity": (ones(2, 2), *SETS, "AP", CHOSEN, ones(2, 1), ENTRIES),
    "word_assignment": (*OF_WORDS, SIMILAR, None, True, ones(2, 2)),
    "word_assignment (sparse)": (*OF_WORDS, None, CSR, True, ones(2, 2)),
}
CALLS = {name: (*arguments, 1, None) for name, arguments in ARGUMENTS.items()}
CALLS["divide_by_masses"] = (ones(2, 2), np.ones(2), np.ones(2), False, True, 1)
CALLS["k_cardinality_assignments"] = (ones(2, 2), False, 2, None)
CALLS["unit_rows"] = (ones(2, 3), ones(2, 3), None)
# More symbols than any caption has are fine, more rows and columns than links, vectors that no
# other one is paired with, and candidates.
FREE = {(name, (2,)) for name in CALLS if name.startswith("word_")}
FREE |= {(f"{kind}_assignments", (0,)) for kind in ("linear", "k_cardinality")}
FREE.add(("paired_dot_products", (0,)))
FREE.add(("best_products", (1,)))

Place = tuple[int, ...]


def places(arguments: object, place: Place = ()) -> Iterator[tuple[Place, np.ndarray]]:
    """Every array among the arguments, those in tuples too, and the way to it."""
    if isinstance(arguments, np.ndarray):
        yield place, arguments
    elif isinstance(arguments, tuple):
        for i, part in enumerate(arguments):
            yield from places(part, (*place, i))


def with_other(arguments, place, array):
    """Copies of the arguments, but for one array."""
    if not place:
        return array
    return tuple(
        with_other(part, place[1:], array) if i == place[0] else copied(part)
        for i, part in enumerate(arguments)
    )


def copied(argument):
    if isinstance(argument, tuple):
        return tuple(map(copied, argument))
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def compiled(name, arguments):
    return getattr(_core, name.split()[0])(*arguments)


ARRAYS = [(name, place) for name in CALLS for place, _ in places(CALLS[name])]


def array_at(name, place):
    return functools.reduce(lambda found, i: found[i], place, CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_are_valid(name):
    compiled(name, copied(CALLS[name]))


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_nothing_is_cast(name, place):
    array = array_at(name, place)
    others = [array.tolist(), array.astype(array.dtype.newbyteorder())]
    # Elsewhere the result may have the other dtype of floats.
    dtypes = ["f2", "i1", "i4", "i8", *(["f4", "f8"] if "intersection" in name else [])]
    others += [array.astype(dtype) for dtype in dtypes if dtype != array.dtype]
    others += [np.repeat(array, 2, axis=-1)[..., ::2], np.asfortranarray(array)]
    for other in others:
        if (
            isinstance(other, np.ndarray)
            and other.dtype == array.dtype
            and other.flags.c_contiguous
        ):
            continue
        with pytest.raises(TypeError):
            compiled(name, with_other(CALLS[name], place, other))


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_an_array_of_another_shape_is_refused(name, place):
    array = array_at(name, place)
    others = [array[np.newaxis]]
    if (name, place) not in FREE:
        axes = range(array.ndim)
        others += [np.concatenate([array, array.take([-1], axis)], axis) for axis in axes]
    for other in others:
        with pytest.raises(ValueError, match=r"."):
            compiled(name, with_other(CALLS[name], place, np.ascontiguousarray(other)))


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_an_empty_array_is_refused(name, place):
    array = array_at(name, place)
    if name.startswith("word_") and place == (2,):
        pytest.skip("the facade makes one value per symbol")
    with pytest.raises(ValueError, match=r"."):
        compiled(name, with_other(CALLS[name], place, np.empty_like(array[:0])))
