"""A user's pair function: our tiles and threads, a plain Numba loop, and scikit-learn.

A chi-square kernel of rows, and the longest common subsequence of ragged items. Scikit-learn
calls the same compiled function from Python, once for each pair of rows.
"""

from itertools import pairwise

import numpy as np
import pytest
from common import size

from kernelcore.kernels import custom
from kernelcore.reference.kernels import custom as reference_custom

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


@numba.njit(parallel=True)
def loop(values, offsets, fn):
    """What a user writes without us; `values` and `offsets` are those of ragged items."""
    n = len(offsets) - 1
    K = np.empty((n, n))
    for i in numba.prange(n):
        for j in range(n):
            x = values[offsets[i] : offsets[i + 1]]
            K[i, j] = fn(x, values[offsets[j] : offsets[j + 1]])
    return K


def drawn_items(work, n):
    """Rows of one length, or ragged items."""
    rng = np.random.default_rng(0)
    if work == "common subsequence":
        lengths = rng.integers(0, 25, n)
        return rng.integers(0, 30, lengths.sum()), lengths
    lengths = np.full(n, int(work.split()[-1]))
    return rng.random(lengths.sum()), lengths


@pytest.mark.parametrize(
    "peer",
    [
        *("kernelcore", "kernelcore, two inputs", "numba, a loop"),
        "sklearn.metrics.pairwise.pairwise_kernels",
    ],
)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n", [300, 600, 1200])
@pytest.mark.parametrize("work", ["chi2 of 10", "chi2 of 500", "common subsequence"])
def test_custom(benchmark, peer, work, n, n_threads):
    from sklearn.metrics.pairwise import pairwise_kernels

    benchmark.extra_info["work"] = f"user kernel, {work}"
    values, lengths = drawn_items(work, size(n, 60))
    benchmark.extra_info["size"] = f"{len(lengths):,} items"
    is_ragged = work == "common subsequence"
    if peer.startswith("sklearn") and (is_ragged or n_threads > 1):
        pytest.skip("scikit-learn takes rows, and one thread")
    fn = common_subsequence if is_ragged else chi2
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    items = [values[start:end] for start, end in pairwise(offsets)]
    X = items if is_ragged else np.stack(items)
    gram = custom(fn)
    call = {
        "kernelcore": lambda: gram(X, n_threads=n_threads),
        "kernelcore, two inputs": lambda: gram(X, X, n_threads=n_threads),
        "numba, a loop": lambda: loop(values, offsets, fn),
        "sklearn.metrics.pairwise.pairwise_kernels": lambda: pairwise_kernels(X, metric=fn),
    }[peer]
    few = [[item] for item in items[:8]]
    expected = reference_custom(fn.py_func, few, few)
    np.testing.assert_allclose(call()[:8, :8], expected, rtol=1e-12)
    benchmark(call)
