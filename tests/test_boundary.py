"""The compiled core converts nothing: what the facade did not prepare is refused."""

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
