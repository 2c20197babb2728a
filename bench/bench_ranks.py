"""Ranks of both directions: from a matrix of scores, and from embeddings without one.

5,000 images by 25,000 captions, from the score matrix to the ranks. `argsort` is what most
evaluation scripts do: sort every row, look for the gold item. `count` is the best plain NumPy:
compare a block of rows with their gold scores and add up.

R@10 and the mean reciprocal rank of annotation, 1,000 images by 1,000 captions, beside ranx,
which takes dictionaries of queries and documents; building them counts.

20,000 images by 20,000 captions of 512 dimensions, from the embeddings to the ranks, beside the
matrix product alone (`product_numpy`), on the same number of threads.
"""

import time
import warnings

import numpy as np
import pytest

from kernelcore.evaluation import (
    annotation_ranks,
    embedding_scores,
    mean_reciprocal_rank,
    recall_at_k,
    retrieval_ranks,
    streamed_ranks,
)
from kernelcore.reference.ranks import gold_ranks as reference_ranks

N_IMAGES, PER_IMAGE = 5000, 5
OWNER = np.repeat(np.arange(N_IMAGES), PER_IMAGE)
ROWS_PER_BLOCK = 256
N_STREAMED, N_DIMENSIONS = 20_000, 512


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def scores(request):
    """Distinct scores, so that every way of ranking agrees."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((N_IMAGES, OWNER.size), dtype=request.param)


def by_kernelcore(scores):
    return retrieval_ranks(scores, OWNER)


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


def metrics_by_kernelcore(scores):
    ranks = annotation_ranks(scores)
    return recall_at_k(ranks, 10), mean_reciprocal_rank(ranks)


def metrics_by_ranx(scores):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranx = pytest.importorskip("ranx")
        names = [str(k) for k in range(len(scores))]
        run = ranx.Run(
            {
                name: dict(zip(names, row, strict=True))
                for name, row in zip(names, scores.tolist(), strict=True)
            }
        )
        gold = ranx.Qrels({name: {name: 1} for name in names})
        values = ranx.evaluate(gold, run, ["hit_rate@10", "mrr"])
    return values["hit_rate@10"], values["mrr"]


@pytest.mark.parametrize(
    "how", [metrics_by_kernelcore, metrics_by_ranx], ids=["kernelcore", "ranx"]
)
def test_metrics_end_to_end(benchmark, how):
    scores = np.random.default_rng(0).standard_normal((1000, 1000))
    benchmark.group = "R@10 and MRR from 1000 x 1000 scores, float64"
    values = benchmark.pedantic(how, args=(scores,), rounds=3, warmup_rounds=1)
    assert values == pytest.approx(metrics_by_kernelcore(scores), abs=1e-12)


@pytest.fixture(scope="module")
def embeddings():
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, N_STREAMED, N_DIMENSIONS), dtype=np.float32)


def test_streamed_ranks(benchmark, embeddings, capsys):
    """The product runs between our rounds, so that both see the same machine."""
    images, captions = embeddings
    product, seconds = np.empty((N_STREAMED, N_STREAMED), np.float32), []

    def multiply():
        start = time.perf_counter()
        np.matmul(images, captions.T, out=product)
        seconds.append(time.perf_counter() - start)

    benchmark.group = f"ranks of {N_STREAMED} x {N_STREAMED} x {N_DIMENSIONS} embeddings"
    ranks = benchmark.pedantic(
        streamed_ranks,
        args=(images, captions),
        kwargs={"similarity": "dot"},
        setup=multiply,
        rounds=4,
    )
    ratio = benchmark.stats["min"] / min(seconds)
    benchmark.extra_info |= {"product_numpy": min(seconds), "ratio": ratio}
    with capsys.disabled():
        print(f"\nstreamed ranks: {ratio:.2f} times the product alone")
    part = embedding_scores(images, captions[:500], similarity="dot")
    gold = [[caption] for caption in range(500)]
    expected = reference_ranks(part[:, ::50].T.tolist(), gold[::50])
    assert ranks.search[:500:50].tolist() == expected
