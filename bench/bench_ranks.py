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

import numpy as np
import record

from kernelcore.evaluation import embedding_scores, streamed_ranks
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.reference.ranks import gold_ranks as reference_ranks

N_IMAGES, PER_IMAGE = record.size(5000, 200), 5
ROWS_PER_BLOCK = 256
KS = (1, 5, 10)
N_RECALLS = record.size(500, 50)
N_STREAMED, N_DIMENSIONS = record.size(20_000, 1000), 512


def owners(n_images):
    return np.repeat(np.arange(n_images), PER_IMAGE)


def draw(n_images):
    """Distinct scores, so that every way of ranking agrees."""
    shape = (n_images, n_images * PER_IMAGE)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


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


def test_ranks_of_both_directions(compare):
    scores, owner = draw(N_IMAGES), owners(N_IMAGES)
    images, captions = np.arange(N_IMAGES)[::50], np.arange(owner.size)[::500]
    gold = [np.flatnonzero(owner == image).tolist() for image in images]
    annotation = reference_ranks(scores[images].tolist(), gold)
    gold = [[int(owner[caption])] for caption in captions]
    search = reference_ranks(scores[:, captions].T.tolist(), gold)

    def check(ranks):
        assert ranks[0][images].tolist() == annotation
        assert ranks[1][captions].tolist() == search

    compare(
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
        rounds=3,
    )


def recalls_by_kernelcore(scores, owner):
    ranks = retrieval_ranks(scores, owner, n_threads=1)
    return [recall_at_k(of, k) for of in (ranks.annotation, ranks.search) for k in KS]


def recalls_by_ranx(scores, owner):
    import ranx

    values = []
    for queries, relevant in tasks(scores, owner):
        documents = [str(k) for k in range(queries.shape[1])]
        run = {
            str(q): dict(zip(documents, row, strict=True))
            for q, row in enumerate(queries.tolist())
        }
        gold = {
            str(q): {documents[k]: 1 for k in np.flatnonzero(row)}
            for q, row in enumerate(relevant)
        }
        metrics = [f"hit_rate@{k}" for k in KS]
        found = ranx.evaluate(ranx.Qrels(gold), ranx.Run(run), metrics)
        values += [found[name] for name in metrics]
    return values


def recalls_by_torchmetrics(scores, owner):
    import torch
    from torchmetrics.retrieval import RetrievalHitRate

    values = []
    for queries, relevant in tasks(scores, owner):
        numbers = torch.arange(len(queries)).repeat_interleave(queries.shape[1])
        flat = [torch.from_numpy(np.ascontiguousarray(a).ravel()) for a in (queries, relevant)]
        values += [float(RetrievalHitRate(top_k=k)(*flat, numbers)) for k in KS]
    return values


def tasks(scores, owner):
    """Scores of candidates by query, and which are right, for either task."""
    relevant = owner == np.arange(len(scores))[:, np.newaxis]
    return (scores, relevant), (scores.T, relevant.T)


def test_recalls_end_to_end(compare):
    scores, owner = draw(N_RECALLS), owners(N_RECALLS)
    gold = [np.flatnonzero(owner == image).tolist() for image in range(N_RECALLS)]
    ranks = [
        np.array(reference_ranks(scores.tolist(), gold)),
        np.array(reference_ranks(scores.T.tolist(), owner[:, np.newaxis].tolist())),
    ]
    expected = [np.mean(of <= k) for of in ranks for k in KS]
    compare(
        "R@1, R@5 and R@10 of both tasks",
        {
            "kernelcore": lambda: recalls_by_kernelcore(scores, owner),
            "torchmetrics": lambda: recalls_by_torchmetrics(scores, owner),
            "ranx": lambda: recalls_by_ranx(scores, owner),
        },
        before={"ranx": lambda: recalls_by_ranx(draw(12), owners(12))},
        check=lambda values: np.testing.assert_allclose(values, expected, rtol=1e-5),
        shape=f"{N_RECALLS:,} x {owner.size:,}, float32",
    )


def test_streamed_ranks(compare):
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((2, N_STREAMED, N_DIMENSIONS), dtype=np.float32)
    product = np.empty((N_STREAMED, N_STREAMED), np.float32)
    part = embedding_scores(images, captions[:500:50], similarity="dot")
    gold = [[caption] for caption in range(0, 500, 50)]
    expected = reference_ranks(part.T.tolist(), gold)

    def check(answer):
        if answer is product:
            few = images[:20].astype(np.float64) @ captions[:20].T.astype(np.float64)
            np.testing.assert_allclose(answer[:20, :20], few, rtol=1e-3, atol=1e-3)
        else:
            assert answer.search[:500:50].tolist() == expected

    compare(
        "ranks streamed from embeddings",
        {
            "kernelcore": lambda: streamed_ranks(
                images, captions, similarity="dot", n_threads=2
            ),
            "numpy, the product alone": lambda: np.matmul(images, captions.T, out=product),
        },
        check=check,
        n_threads=2,
        rounds=4,
        seconds=20.0,
        shape=f"{N_STREAMED:,} x {N_STREAMED:,} x {N_DIMENSIONS}, float32",
        size=float(N_STREAMED) ** 2 * N_DIMENSIONS,
        unit="multiply-adds",
    )
