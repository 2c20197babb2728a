"""Gram matrices in tiles, of all that kernels take."""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import refuses

from kernelcore.kcca import KernelColumns
from kernelcore.kernels import (
    gram_blocks,
    histogram_intersection,
)

RNG = np.random.default_rng(0)
DENSE = RNG.random((11, 6))


def assemble(blocks, shape):
    K = np.full(shape, np.nan)
    for rows, columns, values in blocks:
        assert np.isnan(K[rows, columns]).all()
        K[rows, columns] = values
    return K


@pytest.mark.parametrize("block_size", [1, 3, 4, 11, 50])
@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (histogram_intersection, DENSE),
        (histogram_intersection, sp.csr_array(DENSE > 0.5) * 1.0),
        (lambda X, Y=None: X @ (X if Y is None else Y).T, DENSE),
    ],
)
def test_tiles_make_up_the_matrix(kernel, X, block_size):
    whole = kernel(X)
    upper = assemble(gram_blocks(kernel, X, block_size=block_size), (11, 11))
    missing = np.isnan(upper)
    assert not np.triu(missing).any()
    upper[missing] = upper.T[missing]
    np.testing.assert_allclose(upper, whole, rtol=1e-13)
    found = assemble(gram_blocks(kernel, X, X, block_size=block_size), (11, 11))
    np.testing.assert_allclose(found, whole, rtol=1e-13)


def test_rectangle_of_two_inputs():
    Y = RNG.random((7, 6))
    whole = histogram_intersection(DENSE, Y)
    blocks = list(gram_blocks(histogram_intersection, DENSE, Y, block_size=4))
    assert len(blocks) == 3 * 2
    assert (assemble(blocks, (11, 7)) == whole).all()


def test_bad_input_is_named():
    refuses(TypeError, "kernel", gram_blocks, 3, DENSE)
    refuses(ValueError, "block_size", gram_blocks, histogram_intersection, DENSE, block_size=0)
    blocks = gram_blocks(lambda *inputs: np.ones(3), DENSE, block_size=4)
    refuses(ValueError, r"kernel .* \(4, 4\)", list, blocks)
    assert list(gram_blocks(histogram_intersection, DENSE[:0])) == []


def frame(X):
    return pytest.importorskip("pandas").DataFrame(X, index=range(7, 7 + len(X)))


def tensor(X):
    return pytest.importorskip("torch", reason="tensors need PyTorch: extra deep").tensor(X)


SPARSE = [sp.coo_array, sp.csc_array, sp.bsr_array, sp.dia_array, sp.dok_array, sp.lil_array]


@pytest.mark.parametrize("make", [frame, tensor, np.ndarray.tolist, *SPARSE])
def test_tiles_of_all_that_kernels_take(make):
    X, Y = make(DENSE), make(DENSE)
    expected = histogram_intersection(X, Y)
    np.testing.assert_allclose(expected, histogram_intersection(DENSE), rtol=1e-14)
    K = assemble(gram_blocks(histogram_intersection, X, Y, block_size=4), (11, 11))
    np.testing.assert_array_equal(K, expected)
    columns = KernelColumns.of(histogram_intersection, X).columns([3, 10])
    np.testing.assert_array_equal(columns, expected[:, [3, 10]])


class Elsewhere:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on another device")


@pytest.mark.parametrize("X", [np.array(1.0), 3, None, object(), "text", iter(DENSE)])
def test_what_has_no_samples_is_named(X):
    def tiles(*sides):
        return list(gram_blocks(histogram_intersection, *sides))

    refuses(TypeError, "^X must be a sequence of samples", tiles, X)
    refuses(TypeError, "^Y must be a sequence", tiles, DENSE, X if X is not None else 3)
    refuses(TypeError, "^X .* 2-D array, .* Elsewhere: on another device", tiles, Elsewhere())
