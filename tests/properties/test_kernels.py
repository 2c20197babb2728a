"""Every kernel of the table against its reference, on drawn samples."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import strategies as some
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_table import EPS, KERNELS, N_WORDS

from kernelcore.images import SpatialHistograms

COMPILED = [name for name in KERNELS if name != "custom"]


@st.composite
def histograms(draw: Any, dtype: Any) -> tuple[Any, Any]:
    """Rows of two sides, of few wide bins or many narrow ones."""
    width = draw(some.sizes(600, 1))
    most = 40 if width < 70 else 9
    is_count = np.dtype(dtype).kind == "u"
    kind = some.counts(dtype) if is_count else some.reals(dtype, signed=False)
    shapes = [(draw(some.sizes(most)), width) for _ in range(2)]
    left, right = (draw(some.arrays(dtype, shape, kind)) for shape in shapes)
    return left, right


@st.composite
def rows(draw: Any, dense: Any) -> Any:
    """A sparse matrix that sums to `dense`: any format and order, with zeros."""
    at = np.nonzero((dense != 0) | draw(st.booleans()))
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(at[0]))
    places = tuple(axis[order] for axis in at)
    values = dense[places]
    if draw(st.booleans()) and dense.dtype.kind == "u":  # in two halves
        values = np.concatenate([values // 2, values - values // 2])
        places = tuple(np.tile(axis, 2) for axis in places)
    coo = sp.coo_array((values, places), dense.shape)
    return coo.asformat(draw(st.sampled_from(["csr", "csc", "coo", "lil"])))


@st.composite
def pyramids(draw: Any) -> tuple[Any, Any]:
    n_levels, n_words = draw(st.integers(1, 4)), draw(some.sizes(33, 1))
    sides = []
    for _ in range(2):
        shape = draw(some.sizes(9)), 4 ** (n_levels - 1), n_words
        cells = draw(some.arrays(np.int64, shape, st.integers(0, 400)))
        cells[:, 0, 0] += 1  # no image without points
        sides.append(SpatialHistograms.from_finest(cells, n_levels))
    return sides[0], sides[1]


def sides_of(name: str) -> st.SearchStrategy[tuple[Any, Any]]:
    """Samples of two sides, as the reference takes them."""
    kernel = KERNELS[name]
    if kernel.encode is not None:
        return st.tuples(some.captions(N_WORDS), some.captions(N_WORDS))
    if name.startswith("spatial_pyramid"):
        return pyramids()
    return histograms(kernel.draw(np.random.default_rng(0), 1).dtype)


@pytest.mark.parametrize("name", COMPILED)
@given(data=st.data())
@settings(max_examples=8)
def test_drawn_samples_give_the_reference_and_no_other_bits(name: str, data: Any) -> None:
    kernel, draw = KERNELS[name], data.draw
    left, right = draw(sides_of(name))
    X, Y = (kernel.encode(side) if kernel.encode else side for side in (left, right))
    if "sparse" in name and kernel.encode is None:
        X, Y = draw(rows(left)), draw(rows(right))
    if draw(st.booleans()):
        right, Y = left, None
    with some.instruction_set(draw(some.ISAS)):
        plain = kernel.call(X, Y, n_threads=1)
        out = draw(some.outs(plain))
        if isinstance(X, np.ndarray):
            X, Y = draw(some.LAYOUTS)(X), None if Y is None else draw(some.LAYOUTS)(Y)
        K = kernel.call(X, Y, out=out, n_threads=draw(some.THREADS))
    assert out is None or K is out
    np.testing.assert_array_equal(K, plain)
    expected = np.reshape(kernel.expected(left, right), K.shape)
    if K.dtype.kind == "u":
        np.testing.assert_array_equal(K, expected)
        return
    # Sparse bins are added one by one; below the smallest normal number nothing is relative.
    width = left.shape[1] if isinstance(left, np.ndarray) else 0
    tiny = width * float(np.finfo(K.dtype).smallest_subnormal)
    scale = 0.0 if width else kernel.rtol * max(1.0, np.abs(expected).max(initial=0.0))
    rtol = kernel.rtol + 2 * width * EPS[np.float64]
    np.testing.assert_allclose(K, expected, rtol=rtol, atol=scale + tiny)
