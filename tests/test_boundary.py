"""The compiled core converts nothing: what the facade did not prepare is refused."""

from collections.abc import Iterator

import numpy as np
import pytest

from kernelcore import _core


def gram(X, Y, out, n_threads=1, report=None):
    _core.histogram_intersection(X, Y, out, n_threads, report)


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(ones(2, 6)[:, ::2], id="strided"),
        pytest.param(np.asfortranarray(ones(2, 3)), id="fortran"),
        pytest.param(ones(2, 3).astype(">f4"), id="byte-swapped"),
        pytest.param(ones(2, 3, dtype=np.float16), id="half"),
        pytest.param(ones(2, 3, dtype=np.int64), id="signed"),
        pytest.param([[1.0, 2.0, 3.0]], id="list"),
        pytest.param(None, id="none"),
    ],
)
def test_nothing_is_cast(X):
    with pytest.raises(TypeError):
        gram(X, ones(2, 3), ones(2, 2))


def test_dtypes_must_agree():
    with pytest.raises(TypeError):
        gram(ones(2, 3), ones(2, 3, dtype=np.float64), ones(2, 2))
    with pytest.raises(TypeError):
        gram(ones(2, 3), ones(2, 3), ones(2, 2, dtype=np.float64))


@pytest.mark.parametrize(
    ("X", "Y", "out"),
    [
        (ones(3), ones(2, 3), ones(2, 2)),
        (ones(2, 3), ones(2, 4), ones(2, 2)),
        (ones(2, 3), ones(2, 3), ones(2, 3)),
        (ones(2, 3), ones(2, 3), ones(4)),
    ],
)
def test_shapes_are_checked_once_more(X, Y, out):
    with pytest.raises(ValueError, match=r"matrix|bins|shape"):
        gram(X, Y, out)


def test_read_only_output_is_refused():
    out = ones(2, 2)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        gram(ones(2, 3), ones(2, 3), out)


def test_read_only_input_is_fine():
    X = ones(2, 3)
    X.flags.writeable = False
    out = np.empty((2, 2), np.float32)
    gram(X, X, out)
    assert (out == 3).all()


def test_segments_stay_inside_the_bins():
    with pytest.raises(ValueError, match="segment"):
        _core.segmented_intersection(
            ones(2, 3), ones(2, 3), [(0, 4, 1.0)], True, ones(2, 2), 1, None
        )


def test_only_square_matrices_are_symmetric():
    with pytest.raises(ValueError, match="not symmetric"):
        _core.segmented_intersection(ones(2, 3), ones(1, 3), [], True, ones(2, 1), 1, None)


def test_report_sees_every_task_and_its_error_leaves_the_call():
    X = ones(100, 3)
    seen = []
    gram(X, X, ones(100, 100), report=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 1
    assert seen.count(seen[-1]) == 1

    def fail(done, total):
        raise RuntimeError("enough")

    many = ones(2000, 3)  # so many tasks that the calling thread gets some, and reports
    for n_threads in (1, 2):
        with pytest.raises(RuntimeError, match="enough"):
            gram(many, many, ones(2000, 2000), n_threads, fail)
    out = ones(100, 100)
    gram(X, X, out)  # the process is as healthy as before
    assert (out == 3).all()


def test_unknown_instruction_set_is_refused():
    before = _core.active_isa()
    with pytest.raises(ValueError, match=r"must be one of .*, got 'v9'"):
        _core.select_isa("v9")
    assert _core.active_isa() == before


# Two images of one caption of two words each, and every argument that such a call takes.
CAPTIONS = (np.array([0, 1, 1, 2], np.int32), np.array([0, 2, 4]), np.array([0, 1, 2]))
SCALE = ones(3)
SIMILAR = np.eye(3, dtype=np.float32)
CSR = (np.arange(4), np.arange(3, dtype=np.int32), ones(3))
LINKS = (np.array([0, 2]), *np.zeros((2, 2), np.int64), np.zeros(1, np.int64), np.zeros(1))
DUALS = (np.array([0, 2]), np.array([0, 2]), ones(2), ones(2), ones(1))
QUERIES = (ones(1, 2), np.zeros((1, 2), np.int64), np.zeros((3, 2), np.int64))
SETS = (np.array([0, 1, 2]), np.array([0, 2]))
ENTRIES = (np.array([0, 1, 2]), np.zeros(2, np.int64), np.zeros(2, np.int64))

CALLS = {
    "histogram_intersection": (ones(2, 3), ones(4, 3), ones(2, 4), 1, None),
    "segmented_intersection": (
        *(ones(2, 3), ones(4, 3), [(0, 3, 1.0)], False, ones(2, 4)),
        *(1, None),
    ),
    "sparse_intersection": (CSR, CSR, 3, ones(3, 3), 1, None),
    "word_sequence": (
        *(CAPTIONS, CAPTIONS, SCALE, SIMILAR, None, 2, 0.5, False, True, ones(2, 2)),
        *(1, None),
    ),
    "word_sequence (components)": (
        *(CAPTIONS, CAPTIONS, SCALE, None, CSR, 3, 0.5, True, True, ones(2, 6)),
        *(1, None),
    ),
    "word_sequence_exact": (
        *(CAPTIONS, CAPTIONS, SCALE.astype(float), 3, 0.5, True, True, ones(2, 6)),
        *(1, None),
    ),
    "tag_rank": (
        *(CAPTIONS, CAPTIONS, np.arange(3, dtype=np.int32), 3, np.ones(3), np.ones(3)),
        *(1.0, 1.0, ones(2, 2), 1, None),
    ),
    "divide_by_masses": (ones(2, 2), np.ones(2), np.ones(2), False, True, 1),
    "count_ranks": (ones(2, 2), QUERIES, QUERIES, True, 1, None),
    "linear_assignments": (
        *(ones(4), np.array([0, 4]), np.array([[2, 2]]), 0, False, 2, None, LINKS, DUALS),
        *(1, None),
    ),
    "k_cardinality_assignments": (ones(2, 2), False, LINKS, None),
    "set_similarity": (
        *(ones(2, 2), *SETS, "AP", np.ones((2, 1), np.int64), ones(2, 1), ENTRIES),
        *(1, None),
    ),
    "word_assignment": (
        *(CAPTIONS, CAPTIONS, SCALE, SIMILAR, None, True, ones(2, 2), 1, None),
    ),
    "word_assignment (sparse)": (
        *(CAPTIONS, CAPTIONS, SCALE, None, CSR, True, ones(2, 2), 1, None),
    ),
}
# More symbols than any caption has are fine, and more rows and columns than links.
FREE = {(name, (2,)) for name in CALLS if name.startswith("word_")}
FREE.add(("k_cardinality_assignments", (0,)))

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
    array = CALLS[name]
    for i in place:
        array = array[i]
    return array


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_are_valid(name):
    compiled(name, copied(CALLS[name]))


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_an_array_of_another_dtype_is_refused(name, place):
    array = array_at(name, place)
    other = array.astype(np.float16 if array.dtype.kind == "f" else np.int8)
    with pytest.raises(TypeError):
        compiled(name, with_other(CALLS[name], place, other))


@pytest.mark.parametrize(("name", "place"), ARRAYS)
def test_an_array_of_another_shape_is_refused(name, place):
    array = array_at(name, place)
    others = [array[np.newaxis]]
    if (name, place) not in FREE:
        others += [
            np.concatenate([array, array.take([-1], axis)], axis) for axis in range(array.ndim)
        ]
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
