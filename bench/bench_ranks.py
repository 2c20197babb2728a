"""Ranks of both directions: from a matrix of scores, and from embeddings without one.

5,000 images by 25,000 captions, from the score matrix to the ranks. Most evaluation scripts
sort every row and look for the gold item; the best plain NumPy compares a block of rows with
their gold scores and adds up.

R@1, R@5 and R@10 of both tasks beside ranx, which takes dictionaries of queries and documents,
and torchmetrics, which takes one flat list of scores with the number of the query of each;
building them counts.

20,000 images by 20,000 captions of 512 dimensions, from the embeddings to the ranks, beside the
matrix product alone.
"""

import data
import numpy as np
import pytest
from results import target

from kernelcore.evaluation import embedding_scores, streamed_ranks
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

N_IMAGES, PER_IMAGE = data.size(5000, 200), 5
ROWS_PER_BLOCK = 256
KS = (1, 5, 10)
N_RECALLS = data.size(500, 50)
N_STREAMED, N_DIMENSIONS = data.size(20_000, 1000), 512


def owners(n_images):
    return np.repeat(np.arange(n_images), PER_IMAGE)


def draw(n_images):
    """Distinct scores, so that every way of ranking agrees."""
    shape = (n_images, n_images * PER_IMAGE)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def tasks(scores, owner):
    """Scores of candidates by query, and which are right, for either task."""
    relevant = owner == np.arange(len(scores))[:, np.newaxis]
    return (scores, relevant), (scores.T, relevant.T)


def by_sorting(scores, owner):
    annotation, search = np.empty(len(scores)), np.empty(owner.size)
    for image, row in enumerate(scores):
        order = np.argsort(-row)
        annotation[image] = 1 + np.flatnonzero(owner[order] == image)[0]
    for caption, column in enumerate(scores.T):
        search[caption] = 1 + np.flatnonzero(np.argsort(-column) == owner[caption])[0]
    return annotation, search


def by_counting(scores, owner):
    own = scores[owner, np.arange(owner.size)]
    best = own.reshape(len(scores), PER_IMAGE).max(axis=1)
    annotation, search = np.ones(len(scores)), np.ones(owner.size)
    for start in range(0, len(scores), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        annotation[block] += np.count_nonzero(scores[block] > best[block, np.newaxis], axis=1)
        search += np.count_nonzero(scores[block] > own, axis=0)
    return annotation, search


@pytest.mark.ways(
    "kernelcore", "kernelcore, 2 threads", "numpy, by counting", "numpy, by sorting"
)
def test_ranks_of_both_directions(measure):
    scores, owner = draw(N_IMAGES), owners(N_IMAGES)
    images, captions = np.arange(N_IMAGES)[::50], np.arange(owner.size)[::500]
    gold = [np.flatnonzero(owner == image).tolist() for image in images]
    annotation = reference_ranks(scores[images].tolist(), gold)
    gold = [[int(owner[caption])] for caption in captions]
    search = reference_ranks(scores[:, captions].T.tolist(), gold)

    def check(ranks):
        assert ranks[0][images].tolist() == annotation
        assert ranks[1][captions].tolist() == search

    measure(
        "ranks of both directions",
        {
            "kernelcore": lambda: retrieval_ranks(scores, owner, n_threads=1),
            "kernelcore, 2 threads": lambda: retrieval_ranks(scores, owner, n_threads=2),
            "numpy, by counting": lambda: by_counting(scores, owner),
            "numpy, by sorting": lambda: by_sorting(scores, owner),
        },
        check=check,
        shape=f"{N_IMAGES:,} x {owner.size:,}, float32",
        size=float(scores.size),
        unit="scores",
        targets=[target("speed >= 10 x numpy, by sorting")],
    )


def recalls_by_kernelcore(scores, owner):
    ranks = retrieval_ranks(scores, owner, n_threads=1)
    return [[np.mean(of <= k) for k in KS] for of in (ranks.annotation, ranks.search)]


def by_ranx(scores, owner, others=()):
    """Recalls and other metrics of both tasks."""
    import ranx

    values, metrics = [], [*(f"hit_rate@{k}" for k in KS), *others]
    for queries, relevant in tasks(scores, owner):
        names = [str(k) for k in range(queries.shape[1])]
        rows, hits = enumerate(queries.tolist()), enumerate(relevant)
        run = {str(q): dict(zip(names, row, strict=True)) for q, row in rows}
        gold = {str(q): {names[k]: 1 for k in np.flatnonzero(row)} for q, row in hits}
        found = ranx.evaluate(ranx.Qrels(gold), ranx.Run(run), metrics)
        values.append([float(found[name]) for name in metrics])
    return values


def by_torchmetrics(scores, owner, others=lambda retrieval: ()):
    """Recalls and other metrics of both tasks."""
    import torch
    from torchmetrics import retrieval

    values = []
    for queries, relevant in tasks(scores, owner):
        numbers = torch.arange(len(queries)).repeat_interleave(queries.shape[1])
        flat = [torch.from_numpy(np.ascontiguousarray(a).ravel()) for a in (queries, relevant)]
        recalls = [retrieval.RetrievalHitRate(top_k=k) for k in KS]
        values.append([float(one(*flat, numbers)) for one in (*recalls, *others(retrieval))])
    return values


@pytest.mark.readme
@pytest.mark.ways("kernelcore", "torchmetrics", "ranx")
def test_recalls_end_to_end(measure):
    scores, owner = draw(N_RECALLS), owners(N_RECALLS)
    gold = [np.flatnonzero(owner == image).tolist() for image in range(N_RECALLS)]
    ranks = [
        np.array(reference_ranks(scores.tolist(), gold)),
        np.array(reference_ranks(scores.T.tolist(), owner[:, np.newaxis].tolist())),
    ]
    expected = [[np.mean(of <= k) for k in KS] for of in ranks]
    measure(
        "R@1, R@5 and R@10 of both tasks",
        {
            "kernelcore": lambda: recalls_by_kernelcore(scores, owner),
            "torchmetrics": lambda: by_torchmetrics(scores, owner),
            "ranx": lambda: by_ranx(scores, owner),
        },
        check=lambda values: np.testing.assert_allclose(values, expected, rtol=1e-5),
        shape=f"{N_RECALLS:,} x {owner.size:,}, float32",
        targets=[target("speed >= 100 x torchmetrics"), target("speed >= 100 x ranx")],
    )


def check_product(product, images, captions):
    """Compare a few entries of the product of two sets of vectors with float64."""
    few = images[:20].astype(np.float64) @ captions[:20].T.astype(np.float64)
    np.testing.assert_allclose(product[:20, :20], few, rtol=1e-3, atol=1e-3)


@pytest.mark.ways("kernelcore", "numpy, the product alone")
def test_streamed_ranks(measure):
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((2, N_STREAMED, N_DIMENSIONS), dtype=np.float32)
    product = np.empty((N_STREAMED, N_STREAMED), np.float32)
    part = embedding_scores(images, captions[:500:50], similarity="dot")
    gold = [[caption] for caption in range(0, 500, 50)]
    expected = reference_ranks(part.T.tolist(), gold)

    def check(answer):
        if answer is product:
            check_product(product, images, captions)
        else:
            assert answer.search[:500:50].tolist() == expected

    options = {"similarity": "dot", "n_threads": 2}
    measure(
        "ranks streamed from embeddings",
        {
            "kernelcore": lambda: streamed_ranks(images, captions, **options),
            "numpy, the product alone": lambda: np.matmul(images, captions.T, out=product),
        },
        check=check,
        n_threads=2,
        shape=f"{N_STREAMED:,} x {N_STREAMED:,} x {N_DIMENSIONS}, float32",
        size=float(N_STREAMED) ** 2 * N_DIMENSIONS,
        unit="multiply-adds",
        limit={"kernelcore": "fma float32"},
        targets=[
            target(
                "time <= 1.2 x numpy, the product alone",
                reason="tiles of one fixed shape, each on one thread of BLAS, make a score "
                "depend on its two vectors alone; one product on all threads shares more of "
                "the packing",
            )
        ],
    )
