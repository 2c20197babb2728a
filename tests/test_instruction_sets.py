"""What is promised to the last bit on every instruction set, and what is not.

Sums whose order is fixed and products by powers of two come out equal on all of them. Where a
product is added to a sum, a processor may round once or twice: `word_sequence` with similar
words and `tag_rank` agree to the bounds in their headers only.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelcore import _core
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images.pyramid import SpatialHistograms
from kernelcore.kernels import (
    histogram_intersection,
    spatial_pyramid,
    word_assignment,
    word_sequence,
)
from kernelcore.matching import k_cardinality_assignments, linear_assignments, set_similarity

RNG = np.random.default_rng(13)
X, Y = RNG.random((40, 3001)), RNG.random((23, 3001))
COUNTS = RNG.integers(0, 300, (30, 189))
QUARTERS = RNG.integers(0, 300, (30, 4, 50))
CELLS = np.concatenate([QUARTERS.sum(axis=1, keepdims=True), QUARTERS], axis=1)
TEXTS = EncodedCaptions.from_lists(
    [
        [RNG.integers(0, 30, RNG.integers(1, 12)).tolist() for _ in range(RNG.integers(1, 4))]
        for _ in range(40)
    ],
    n_words=30,
)
FACTORS = RNG.random((30, 4))
SOFT = FACTORS @ FACTORS.T / 4
COSTS = {n: RNG.standard_normal((2, n, n + 30)) for n in (5, 60, 200, 300)}
SCORES = RNG.integers(0, 40, (60, 300)).astype(float)


def solved(costs, **options):
    found = linear_assignments(costs, return_duals=True, **options)
    return [
        found.row_ind,
        found.col_ind,
        found.totals,
        *(side for d in found.duals for side in d),
    ]


def of_each_dtype(call):
    return lambda: [part for dtype in ("f4", "f8") for part in call(dtype)]


BIT_EQUAL = {
    "histogram_intersection": of_each_dtype(
        lambda dtype: [histogram_intersection(X.astype(dtype), Y.astype(dtype))]
    ),
    "histogram_intersection of counts": lambda: [
        histogram_intersection(COUNTS.astype(dtype)) for dtype in ("u1", "u2", "u4")
    ],
    "histogram_intersection of sparse rows": of_each_dtype(
        lambda dtype: [histogram_intersection(csr_array((X * (X > 0.9)).astype(dtype)))]
    ),
    "spatial_pyramid": of_each_dtype(
        lambda dtype: [
            spatial_pyramid(SpatialHistograms(CELLS, CELLS[:, 0].sum(axis=-1), 2), dtype=dtype)
        ]
    ),
    "word_sequence of exact matches": of_each_dtype(
        lambda dtype: [word_sequence(TEXTS, gap_decay=0.7, dtype=dtype)]
    ),
    "word_assignment": of_each_dtype(
        lambda dtype: [word_assignment(TEXTS, word_kernel=SOFT, dtype=dtype)]
    ),
    "linear_assignments": of_each_dtype(
        lambda dtype: [
            part
            for costs in COSTS.values()
            for options in ({}, {"k": 9}, {"threshold": -0.4}, {"maximize": True})
            for part in solved(costs.astype(dtype), **options)
        ]
    ),
    "linear_assignments of costs that are scaled": of_each_dtype(
        lambda dtype: [
            part
            for n, costs in COSTS.items()
            # their sums are finite
            for part in solved((costs * (np.finfo(dtype).max / 4 / n)).astype(dtype))
        ]
    ),
    "k_cardinality_assignments": of_each_dtype(
        lambda dtype: [k_cardinality_assignments(COSTS[60][0].astype(dtype)).totals]
    ),
    "set_similarity": of_each_dtype(
        lambda dtype: [
            set_similarity(X.astype(dtype), [0, 1, 40], [0, 200, 3001], method=method)
            for method in ("AP", "DC", "TK")
        ]
    ),
    "retrieval_ranks": of_each_dtype(
        lambda dtype: [
            retrieval_ranks(SCORES.astype(dtype), np.arange(300) // 5).search,
            retrieval_ranks(SCORES.astype(dtype), np.arange(300) // 5).annotation,
        ]
    ),
}


@pytest.mark.parametrize("name", BIT_EQUAL)
def test_bits_are_equal_on_every_instruction_set(name):
    before, digests = _core.active_isa(), {}
    try:
        for isa in _core.supported_isas():
            _core.select_isa(isa)
            digests[isa] = [np.asarray(part).tobytes() for part in BIT_EQUAL[name]()]
    finally:
        _core.select_isa(before)
    assert all(digest == digests[before] for digest in digests.values())
