"""DC, TK and AP of all pairs of sets of a minibatch, with the entries for gradients."""

import numpy as np
import pytest

from kernelcore.matching import set_similarity
from kernelcore.reference.matching import set_similarity as reference_similarity

N_SETS, SIZE = 11, 10


@pytest.mark.parametrize(
    ("method", "k"), [("DC", None), ("TK", "half"), ("AP", None), ("AP", "half")]
)
def test_set_similarity(measure, method, k):
    offsets = np.arange(N_SETS + 1) * SIZE
    S = np.random.default_rng(0).uniform(-1, 1, (N_SETS * SIZE,) * 2).astype(np.float32)
    few = slice(0, 2 * SIZE)
    expected = reference_similarity(S[few, few], offsets[:3], offsets[:3], method=method, k=k)
    measure(
        f"similarity of sets, {method}{'' if k is None else f', k {k}'}",
        {
            "kernelcore": lambda: set_similarity(
                S, offsets, offsets, method=method, k=k, return_selected=True, n_threads=1
            )
        },
        check=lambda found: np.testing.assert_allclose(
            found.values[:2, :2], expected, rtol=1e-4
        ),
        shape=f"{N_SETS} x {N_SETS} pairs of sets of {SIZE}",
    )
