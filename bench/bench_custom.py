"""A user's pair function: our tiles and threads, a plain Numba loop, and scikit-learn.

A chi-square kernel of rows, and the longest common subsequence of ragged items. scikit-learn
calls the same compiled function from Python, once for each pair of rows.
"""

from itertools import pairwise

import numpy as np
import pytest

from kernelcore.kernels import custom
from kernelcore.reference.custom import custom as reference_custom

numba = pytest.importorskip("numba", reason="user kernels need Numba: extra jit")


@numba.njit
def chi2(x, y):
    total = 0.0
    for k in range(len(x)):
        if x[k] + y[k] > 0:
            total += (x[k] - y[k]) ** 2 / (x[k] + y[k])
    return np.exp(-total)


@numba.njit
def common_subsequence(x, y):
    lengths = np.zeros(len(y) + 1)
    for a in x:
        diagonal = 0.0
        for j in range(len(y)):
            above = lengths[j + 1]
            lengths[j + 1] = diagonal + 1 if a == y[j] else max(above, lengths[j])
            diagonal = above
    return lengths[-1]


def loop(values, offsets, fn):
    """What a user writes without us; `values` and `offsets` are those of ragged items."""
    n = len(offsets) - 1
    K = np.empty((n, n))
    for i in numba.prange(n):
        for j in range(n):
            x = values[offsets[i] : offsets[i + 1]]
            K[i, j] = fn(x, values[offsets[j] : offsets[j + 1]])
    return K


LOOP, PARALLEL_LOOP = numba.njit(loop), numba.njit(loop, parallel=True)
WHO = ("kernelcore", "kernelcore_one_thread", "kernelcore_two_inputs_one_thread")
PEERS = ("numba_loop", "numba_prange", "scikit_learn")


def make(who, fn, values, offsets):
    """Return a function without arguments that computes the matrix."""
    items = [values[start:end] for start, end in pairwise(offsets)]
    is_ragged = len({len(item) for item in items}) > 1
    X = items if is_ragged else np.stack(items)
    if who in WHO:
        gram = custom(fn)
        other = X if "two_inputs" in who else None
        n_threads = 1 if "one_thread" in who else None
        return lambda: gram(X, other, n_threads=n_threads)
    if who == "scikit_learn":
        peer = pytest.importorskip("sklearn.metrics.pairwise")
        if is_ragged:
            pytest.skip("scikit-learn takes no ragged items")
        return lambda: peer.pairwise_kernels(X, metric=fn)
    compiled = LOOP if who == "numba_loop" else PARALLEL_LOOP
    return lambda: compiled(values, offsets, fn)


@pytest.mark.parametrize("work", ["chi2 of 10", "chi2 of 500", "common subsequence"])
@pytest.mark.parametrize("who", [*WHO, *PEERS])
def test_custom(benchmark, who, work):
    rng = np.random.default_rng(0)
    n = 600
    if work == "common subsequence":
        fn, lengths = common_subsequence, rng.integers(0, 25, n)
        values = rng.integers(0, 30, lengths.sum())
    else:
        fn, lengths = chi2, np.full(n, int(work.split()[-1]))
        values = rng.random(lengths.sum())
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    gram = make(who, fn, values, offsets)
    few = [[values[start:end]] for start, end in pairwise(offsets[:9])]
    expected = reference_custom(fn.py_func, few, few)
    np.testing.assert_allclose(gram()[:8, :8], expected, rtol=1e-12)
    benchmark.group = f"user kernel, {work}, {n} items"
    benchmark.pedantic(gram, rounds=2 if who == "scikit_learn" else 9)
