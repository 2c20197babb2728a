"""DC, TK and AP of all pairs of sets of a minibatch, with the entries for gradients."""

import numpy as np
import pytest

from kernelcore.matching import set_similarity
from kernelcore.reference.set_similarity import set_similarity as reference_similarity

N_SETS, SIZE = 11, 10


@pytest.mark.parametrize(
    ("method", "k"), [("DC", None), ("TK", "half"), ("AP", None), ("AP", "half")]
)
def test_set_similarity(benchmark, method, k):
    offsets = np.arange(N_SETS + 1) * SIZE
    S = np.random.default_rng(0).uniform(-1, 1, (N_SETS * SIZE,) * 2).astype(np.float32)
    few = slice(0, 2 * SIZE)
    np.testing.assert_allclose(
        set_similarity(S, offsets, offsets, method=method, k=k)[:2, :2],
        reference_similarity(S[few, few], offsets[:3], offsets[:3], method=method, k=k),
        rtol=1e-4,
    )
    benchmark.group = f"{N_SETS} x {N_SETS} pairs of sets of {SIZE}, 1 thread"
    benchmark.pedantic(
        lambda: set_similarity(
            S, offsets, offsets, method=method, k=k, return_selected=True, n_threads=1
        ),
        rounds=200,
        warmup_rounds=5,
    )
