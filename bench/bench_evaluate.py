"""Everything that `evaluate` gives: from a matrix of scores, and from embeddings.

5,000 images by 25,000 captions, COCO 5K, from the scores to all metrics of both tasks, beside
recalls by a one-hot array, batch by batch, which is how evaluation scripts count hits; and from
embeddings of 768 numbers, beside the matrix product alone.

R@k, MRR, MAP and nDCG@10 of both tasks beside ranx and torchmetrics, at a size that these can
hold: ranx takes dictionaries, torchmetrics a number of the query for each score. Building them
counts. bench/bench_scale.py has the memory.
"""

import data
import numpy as np
import pytest
from bench_ranks import (
    KS,
    PER_IMAGE,
    by_ranx,
    by_torchmetrics,
    check_product,
    draw,
    owners,
    tasks,
)

import kernelcore
from kernelcore.evaluation import embedding_scores, rank_relevant
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

N_IMAGES, N_DIMENSIONS = data.size(5000, 200), data.size(768, 32)
N_SMALL = data.size(500, 50)
QUERIES_AT_ONCE = 64


NAMES = ("R@1", "R@5", "R@10", "mean_reciprocal_rank", "mean_average_precision", "nDCG@10")


def all_of(result):
    """Return every number of both tasks."""
    return [[mean[name] for name in NAMES] for mean in result.mean.values()]


def by_kernelcore(n_threads=1, **arguments):
    return all_of(
        kernelcore.evaluate(**arguments, captions_per_image=PER_IMAGE, n_threads=n_threads)
    )


def by_one_hot(scores, owner):
    """Recalls of both tasks; a batch of queries by k by candidates holds the hits."""
    values = []
    for queries, relevant in tasks(scores, owner):
        hits = np.zeros(len(KS))
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            batch = slice(start, start + QUERIES_AT_ONCE)
            for number, k in enumerate(KS):
                top = np.argpartition(-queries[batch], k, axis=1)[:, :k]
                one_hot = np.zeros((*top.shape, queries.shape[1]), dtype=np.uint8)
                np.put_along_axis(one_hot, top[..., np.newaxis], 1, axis=2)
                found = (one_hot * relevant[batch][:, np.newaxis]).sum(axis=(1, 2))
                hits[number] += np.count_nonzero(found)
        values.append((hits / len(queries)).tolist())
    return values


def expected_of(scores, owner):
    values = []
    for queries, relevant in tasks(scores, owner):
        gold = [np.flatnonzero(row).tolist() for row in relevant]
        ranks = np.array(reference_ranks(queries.tolist(), gold))
        ranked = rank_relevant(np.ascontiguousarray(queries), gold)
        values.append([
            *(np.mean(ranks <= k) for k in KS),
            np.mean(1 / ranks),
            ranked.average_precision().mean(),
            ranked.ndcg_at_k(10).mean(),
        ])  # fmt: skip
    return values


@pytest.mark.ways("kernelcore", "kernelcore, 2 threads", "numpy, recalls by one-hot")
def test_evaluate_from_scores(measure):
    scores, owner = draw(N_IMAGES), owners(N_IMAGES)
    expected = by_kernelcore(annotation_scores=scores)

    def check(values):
        for ours, theirs in zip(expected, values, strict=True):
            assert theirs == pytest.approx(ours[: len(theirs)], rel=1e-12)

    measure(
        "evaluation from scores",
        {
            "kernelcore": lambda: by_kernelcore(annotation_scores=scores),
            "kernelcore, 2 threads": lambda: by_kernelcore(2, annotation_scores=scores),
            "numpy, recalls by one-hot": lambda: by_one_hot(scores, owner),
        },
        check=check,
        shape=f"{N_IMAGES:,} x {owner.size:,}, float32",
        size=float(scores.size),
        unit="scores",
    )


@pytest.mark.ways("kernelcore", "numpy, the product alone")
def test_evaluate_from_embeddings(measure):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((N_IMAGES, N_DIMENSIONS), dtype=np.float32)
    captions = rng.standard_normal((N_IMAGES * PER_IMAGE, N_DIMENSIONS), dtype=np.float32)
    product = np.empty((N_IMAGES, len(captions)), np.float32)
    expected = by_kernelcore(annotation_scores=embedding_scores(images, captions))

    def check(answer):
        if answer is product:
            check_product(product, images, captions)
        else:
            assert answer == expected

    vectors = {"image_vectors": images, "caption_vectors": captions}
    measure(
        "evaluation from embeddings",
        {
            "kernelcore": lambda: by_kernelcore(2, **vectors),
            "numpy, the product alone": lambda: np.matmul(images, captions.T, out=product),
        },
        check=check,
        n_threads=2,
        shape=f"{N_IMAGES:,} x {len(captions):,} x {N_DIMENSIONS}, float32",
        size=float(product.size) * N_DIMENSIONS,
        unit="multiply-adds",
    )


def other_torchmetrics(retrieval):
    return (
        retrieval.RetrievalMRR(),
        retrieval.RetrievalMAP(),
        retrieval.RetrievalNormalizedDCG(top_k=10),
    )


@pytest.mark.ways("kernelcore", "torchmetrics", "ranx")
def test_evaluate_beside_libraries(measure):
    owner = owners(N_SMALL)
    # Distinct and positive: torchmetrics takes scores up to 0 for items that were not found.
    order = np.random.default_rng(0).permutation(N_SMALL * owner.size)
    scores = (1 + order).reshape(N_SMALL, -1).astype(np.float32)
    expected = expected_of(scores, owner)

    def check(values):
        np.testing.assert_allclose(values, expected, rtol=1e-5)

    measure(
        "R@k, MRR, MAP and nDCG@10 of both tasks",
        {
            "kernelcore": lambda: by_kernelcore(annotation_scores=scores),
            "torchmetrics": lambda: by_torchmetrics(scores, owner, other_torchmetrics),
            "ranx": lambda: by_ranx(scores, owner, ("mrr", "map", "ndcg@10")),
        },
        check=check,
        shape=f"{N_SMALL:,} x {owner.size:,}, float32",
    )
