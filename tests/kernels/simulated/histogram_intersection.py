"""Run by test_cuda_simulated.py where CUDA is simulated."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import kernels
from kernelcore.kernels.cuda import _intersection_kernel, histogram_intersection
from kernelcore.kernels.cuda._intersection_kernel import Block
from kernelcore.reference.histogram_intersection import (
    histogram_intersection as reference_intersection,
)

SMALL, THIN = (
    Block(side=2, outputs=2, bins=2, chunk=4),
    Block(side=4, outputs=1, bins=4, chunk=8),
)
FACADE = sys.modules["kernelcore.kernels.cuda.histogram_intersection"]
FLOATS = [np.float32, np.float64]


@pytest.fixture
def blocks(monkeypatch):
    """Choose how the work is divided: blocks as large as real ones take a second each."""

    def choose(block, tile_side=4096):
        for real in FLOATS:
            monkeypatch.setitem(_intersection_kernel.BLOCKS, real, block)
        monkeypatch.setattr(FACADE, "_TILE_SIDE", tile_side)

    choose(SMALL)
    return choose


def random_histograms(rng, n, d, dtype):
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, (n, d), dtype=dtype, endpoint=True)
    return rng.random((n, d)).astype(dtype)


def check(X, Y, result, n_added=4):
    wide = [A if A.dtype.kind == "u" else A.astype(np.float64) for A in (X, Y)]
    expected = reference_intersection(*wide)
    if X.dtype.kind == "u":
        assert result.dtype == np.uint64
        assert (result == expected).all()
    else:
        assert result.dtype == X.dtype
        assert (np.abs(result - expected) <= n_added * np.finfo(X.dtype).eps * expected).all()


# Sizes around a thread, a block, a tile of two blocks, the bins read at once and a chunk.
SHAPES = [(1, 1, 1), (4, 4, 4), (5, 3, 9), (9, 6, 5)]


@pytest.mark.parametrize(
    ("block", "dtype"),
    [
        *((SMALL, dtype) for dtype in (*FLOATS, np.uint8, np.uint16, np.uint32)),
        (THIN, np.float32),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_reference(blocks, block, dtype, shape):
    blocks(block, tile_side=8)
    m, n, d = shape
    rng = np.random.default_rng(d)
    X, Y = random_histograms(rng, m, d, dtype), random_histograms(rng, n, d, dtype)
    check(X, Y, histogram_intersection(X, Y))
    K = histogram_intersection(X)
    check(X, X, K)
    assert (K == K.T).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_blocks(dtype):
    rng = np.random.default_rng(0)
    X, Y = random_histograms(rng, 3, 9, dtype), random_histograms(rng, 2, 9, dtype)
    check(X, Y, histogram_intersection(X, Y), n_added=9)


@pytest.mark.parametrize(("dtype", "top"), [(np.uint16, 2**16 - 1), (np.uint32, 2**32 - 1)])
def test_chunks_of_full_counts_are_exact(blocks, dtype, top):
    """As many bins in a chunk as the real blocks have, odd sums and the largest counts."""
    blocks(Block(side=4, outputs=1, bins=16, chunk=256))
    X = np.full((2, 259), top, dtype)
    X[1, ::3] -= 1
    check(X, X, histogram_intersection(X))


def test_tiles_have_the_bits_of_the_whole(blocks):
    X = np.random.default_rng(1).random((7, 9)).astype(np.float32)
    whole = histogram_intersection(X).tobytes()
    assert histogram_intersection(X, X.copy()).tobytes() == whole
    blocks(SMALL, tile_side=4)
    assert histogram_intersection(X).tobytes() == whole
    assert histogram_intersection(X, X.copy()).tobytes() == whole


def test_half_of_a_symmetric_matrix_is_computed(blocks):
    """Progress counts tiles: 3 + 2 + 1 of them, against 9."""
    blocks(SMALL, tile_side=4)
    X, seen = np.ones((11, 2)), []
    tell = seen.append
    histogram_intersection(X, progress=lambda *step: tell(step))
    assert seen == [(done, 6) for done in range(1, 7)]
    seen.clear()
    histogram_intersection(X, X, progress=lambda *step: tell(step))
    assert seen[-1] == (9, 9)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda X: X.repeat(2, 1)[:, ::2], id="strided"),
        pytest.param(np.asfortranarray, id="fortran"),
        pytest.param(lambda X: X.astype(X.dtype.newbyteorder()), id="byte-swapped"),
        pytest.param(lambda X: X.tolist(), id="list"),
        pytest.param(lambda X: X.astype(np.int64), id="int64"),
    ],
)
def test_any_layout_and_real_dtype(change):
    X = np.random.default_rng(4).integers(0, 9, (3, 5)).astype(np.float32)
    X.flags.writeable = False
    K = histogram_intersection(change(X))
    expected = kernels.histogram_intersection(change(X))
    assert K.dtype == expected.dtype
    np.testing.assert_array_equal(K, expected)


@pytest.mark.usefixtures("blocks")
def test_out_is_used_and_checked(tmp_path):
    X = np.random.default_rng(5).random((5, 3)).astype(np.float32)
    out = np.memmap(tmp_path / "K.bin", np.float32, "w+", shape=(5, 5))
    assert histogram_intersection(X, out=out) is out
    check(X, X, np.asarray(out))
    with pytest.raises(TypeError, match="out must have dtype float32, got float64"):
        histogram_intersection(X, out=np.empty((5, 5)))
    square = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="out must not overlap an input"):
        histogram_intersection(square, out=square)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("m", "n", "d"), [(0, 3, 4), (3, 0, 4), (0, 0, 0), (2, 3, 0)])
def test_empty_input(m, n, d):
    K = histogram_intersection(np.ones((m, d)), np.ones((n, d)))
    assert K.shape == (m, n)
    assert (K == 0).all()


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        ([[0.0, np.nan]], None, ValueError, r"X must be finite, got nan at \[0, 1\]"),
        ([[1, 2], [3, -4]], None, ValueError, r"X must be non-negative, got -4.0 at \[1, 1\]"),
        ([[1]], [[np.inf]], ValueError, r"Y must be finite, got inf"),
        ([[1, 2]], [[1, 2, 3]], ValueError, r"Y must have as many bins as X \(2\), got 3"),
        (["a"], None, TypeError, "X must hold real numbers"),
        (sp.eye_array(2).tocsr(), None, TypeError, "X and Y must be dense arrays here"),
        ([[1]], sp.eye_array(1).tocsr(), TypeError, "X and Y must be dense arrays here"),
    ],
)
def test_bad_input_is_named(X, Y, error, message):
    with pytest.raises(error, match=message):
        histogram_intersection(X, Y)


def test_the_example(run_examples):
    run_examples(histogram_intersection)
