"""What is promised to the last bit on every instruction set, and what is not.

Sums whose order is fixed and products by powers of two come out equal on all of them. Where a
product is added to a sum, a processor may round once or twice: `word_sequence` with similar
words and `tag_rank` agree to the bounds in their headers only.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelcore import _core, kernels, matching
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images.pyramid import SpatialHistograms

RNG = np.random.default_rng(13)
X, Y = RNG.random((40, 3001)), RNG.random((23, 3001))
COUNTS = RNG.integers(0, 300, (30, 189))
QUARTERS = RNG.integers(0, 300, (30, 4, 50))
CELLS = np.concatenate([QUARTERS.sum(axis=1, keepdims=True), QUARTERS], axis=1)
PYRAMIDS = SpatialHistograms(CELLS, CELLS[:, 0].sum(axis=-1), 2)
LENGTHS = [RNG.integers(1, 12, RNG.integers(1, 4)) for _ in range(40)]
WORDS = [[RNG.integers(0, 30, n).tolist() for n in own] for own in LENGTHS]
TEXTS = EncodedCaptions.from_lists(WORDS, n_words=30)
FACTORS = RNG.random((30, 4))
SOFT = FACTORS @ FACTORS.T / 4
COSTS = {n: RNG.standard_normal((2, n, n + 30)) for n in (5, 60, 200, 300)}
COSTS[270] = RNG.integers(0, 4, (1, 270, 300)).astype(float)  # with ties
SCORES = RNG.integers(0, 40, (60, 300)).astype(float)


def solved(costs, **options):
    found = matching.linear_assignments(costs, return_duals=True, **options)
    duals = (side for d in found.duals for side in d)
    return [found.row_ind, found.col_ind, found.totals, *duals]


# What gives arrays of the same bits for each dtype
OPTIONS = ({}, {"k": 9}, {"threshold": -0.4}, {"maximize": True})
BIT_EQUAL = {
    "histogram_intersection": lambda dtype: [
        kernels.histogram_intersection(X.astype(dtype), Y.astype(dtype))
    ],
    "histogram_intersection of counts": lambda dtype: [
        kernels.histogram_intersection(COUNTS.astype(counts)) for counts in ("u1", "u2", "u4")
    ],
    "histogram_intersection of sparse rows": lambda dtype: [
        kernels.histogram_intersection(csr_array((X * (X > 0.9)).astype(dtype)))
    ],
    "spatial_pyramid": lambda dtype: [kernels.spatial_pyramid(PYRAMIDS, dtype=dtype)],
    "word_sequence of exact matches": lambda dtype: [
        kernels.word_sequence(TEXTS, gap_decay=0.7, dtype=dtype)
    ],
    "word_assignment": lambda dtype: [
        kernels.word_assignment(TEXTS, word_kernel=SOFT, dtype=dtype)
    ],
    "linear_assignments": lambda dtype: [
        part
        for costs in COSTS.values()
        for options in OPTIONS
        for part in solved(costs.astype(dtype), **options)
    ],
    "linear_assignments of costs that are scaled": lambda dtype: [
        part
        for n, costs in COSTS.items()  # their sums are finite
        for part in solved((costs * (np.finfo(dtype).max / 4 / n)).astype(dtype))
    ],
    "k_cardinality_assignments": lambda dtype: [
        matching.k_cardinality_assignments(COSTS[60][0].astype(dtype)).totals
    ],
    "set_similarity": lambda dtype: [
        matching.set_similarity(X.astype(dtype), [0, 1, 40], [0, 200, 3001], method=method)
        for method in ("AP", "DC", "TK")
    ],
    "retrieval_ranks": lambda dtype: [
        getattr(retrieval_ranks(SCORES.astype(dtype), np.arange(300) // 5), task)
        for task in ("search", "annotation")
    ],
}


@pytest.mark.parametrize("name", BIT_EQUAL)
def test_bits_are_equal_on_every_instruction_set(name):
    before, digests = _core.active_isa(), {}
    try:
        for isa in _core.supported_isas():
            _core.select_isa(isa)
            parts = [part for dtype in ("f4", "f8") for part in BIT_EQUAL[name](dtype)]
            digests[isa] = [np.asarray(part).tobytes() for part in parts]
    finally:
        _core.select_isa(before)
    assert all(digest == digests[before] for digest in digests.values())
