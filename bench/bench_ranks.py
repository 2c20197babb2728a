"""Ranks of 5,000 images by 25,000 captions, both directions, against NumPy.

`argsort` is what most evaluation scripts do: sort every row, look for the gold item.
`count` is the best plain NumPy: compare a block of rows with their gold scores and add up.
Every way starts from the score matrix and ends with the ranks of both directions.
"""

import numpy as np
import pytest

from kernelcore.evaluation import annotation_ranks, search_ranks
from kernelcore.reference.ranks import gold_ranks as reference_ranks

N_IMAGES, PER_IMAGE = 5000, 5
OWNER = np.repeat(np.arange(N_IMAGES), PER_IMAGE)
ROWS_PER_BLOCK = 256


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def scores(request):
    """Distinct scores, so that every way of ranking agrees."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((N_IMAGES, OWNER.size), dtype=request.param)


def by_kernelcore(scores):
    return annotation_ranks(scores, OWNER), search_ranks(scores, OWNER)


def by_argsort(scores):
    annotation = np.empty(N_IMAGES)
    for image, row in enumerate(scores):
        order = np.argsort(-row)
        annotation[image] = 1 + np.flatnonzero(OWNER[order] == image)[0]
    search = np.empty(OWNER.size)
    for caption, column in enumerate(scores.T):
        search[caption] = 1 + np.flatnonzero(np.argsort(-column) == OWNER[caption])[0]
    return annotation, search


def by_count(scores):
    own = scores[OWNER, np.arange(OWNER.size)]
    best = own.reshape(N_IMAGES, PER_IMAGE).max(axis=1)
    annotation, search = np.ones(N_IMAGES), np.ones(OWNER.size)
    for start in range(0, N_IMAGES, ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        annotation[block] += np.count_nonzero(scores[block] > best[block, np.newaxis], axis=1)
        search += np.count_nonzero(scores[block] > own, axis=0)
    return annotation, search


def check(scores, annotation, search):
    few = range(0, N_IMAGES, 1000)
    gold = [np.flatnonzero(image == OWNER).tolist() for image in few]
    assert annotation[few].tolist() == reference_ranks(scores[few].tolist(), gold)
    few = range(0, OWNER.size, 5000)
    gold = [[int(OWNER[caption])] for caption in few]
    assert search[few].tolist() == reference_ranks(scores[:, few].T.tolist(), gold)


@pytest.mark.parametrize(
    ("rank", "rounds"),
    [(by_kernelcore, 5), (by_count, 3), (by_argsort, 1)],
    ids=["kernelcore", "count", "argsort"],
)
def test_ranks_of_both_directions(benchmark, scores, rank, rounds):
    check(scores, *by_kernelcore(scores))
    benchmark.group = f"ranks of {N_IMAGES} x {OWNER.size}, {scores.dtype}"
    annotation, search = benchmark.pedantic(rank, args=(scores,), rounds=rounds)
    check(scores, annotation, search)
    benchmark.extra_info["G_scores_per_s"] = scores.size / benchmark.stats["min"] / 1e9
