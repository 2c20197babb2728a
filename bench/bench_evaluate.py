"""Everything that `evaluate` gives: from a matrix of scores, and from embeddings.

5,000 images by 25,000 captions, COCO 5K, from the scores to all metrics of both tasks, beside
recalls by a one-hot array, batch by batch, which is how evaluation scripts count hits; and from
embeddings of 768 numbers, beside the matrix product alone.

R@k, MRR, MAP and nDCG@10 of both tasks beside ranx and torchmetrics, at a size that these can
hold: ranx takes dictionaries, torchmetrics a number of the query for each score. Building them
counts. bench/scale.py has the memory.
"""

import numpy as np
import pytest
import record
from bench_ranks import draw, owners, tasks

import kernelcore
from kernelcore.evaluation import embedding_scores, rank_relevant
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.reference.ranks import gold_ranks as reference_ranks

N_IMAGES, PER_IMAGE, N_DIMENSIONS = record.size(5000, 200), 5, record.size(768, 32)
N_SMALL = record.size(500, 50)
KS = (1, 5, 10)
QUERIES_AT_ONCE = 64


def all_of(result):
    """Compute every number of both tasks: metrics are computed when they are asked for."""
    sides = (result.annotation, result.search)
    return [[*side.recall.values(), side.mean_reciprocal_rank, side.mean_average_precision,
             side.ndcg[10]] for side in sides]  # fmt: skip


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


def by_ranx(scores, owner):
    import ranx

    values = []
    for queries, relevant in tasks(scores, owner):
        names = [str(k) for k in range(queries.shape[1])]
        run = {
            str(q): dict(zip(names, row, strict=True)) for q, row in enumerate(queries.tolist())
        }
        gold = {
            str(q): {names[k]: 1 for k in np.flatnonzero(row)} for q, row in enumerate(relevant)
        }
        metrics = [*(f"hit_rate@{k}" for k in KS), "mrr", "map", "ndcg@10"]
        found = ranx.evaluate(ranx.Qrels(gold), ranx.Run(run), metrics)
        values.append([float(found[name]) for name in metrics])
    return values


def by_torchmetrics(scores, owner):
    import torch
    from torchmetrics import retrieval

    values = []
    for queries, relevant in tasks(scores, owner):
        numbers = torch.arange(len(queries)).repeat_interleave(queries.shape[1])
        flat = [torch.from_numpy(np.ascontiguousarray(a).ravel()) for a in (queries, relevant)]
        metrics = [
            *(retrieval.RetrievalHitRate(top_k=k) for k in KS),
            retrieval.RetrievalMRR(),
            retrieval.RetrievalMAP(),
            retrieval.RetrievalNormalizedDCG(top_k=10),
        ]
        values.append([float(metric(*flat, numbers)) for metric in metrics])
    return values


def expected_of(scores, owner):
    values = []
    for queries, relevant in tasks(scores, owner):
        gold = [np.flatnonzero(row).tolist() for row in relevant]
        ranks = np.array(reference_ranks(queries.tolist(), gold))
        ranked = rank_relevant(np.ascontiguousarray(queries), gold)
        values.append([
            *(recall_at_k(ranks, k) for k in KS),
            np.mean(1 / ranks),
            ranked.average_precision().mean(),
            ranked.ndcg_at_k(10).mean(),
        ])  # fmt: skip
    return values


def test_evaluate_from_scores(compare):
    scores, owner = draw(N_IMAGES), owners(N_IMAGES)
    expected = by_kernelcore(annotation_scores=scores)

    def check(values):
        for ours, theirs in zip(expected, values, strict=True):
            assert theirs == pytest.approx(ours[: len(theirs)], rel=1e-12)

    compare(
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
        rounds=3,
    )


def test_evaluate_from_embeddings(compare):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((N_IMAGES, N_DIMENSIONS), dtype=np.float32)
    captions = rng.standard_normal((N_IMAGES * PER_IMAGE, N_DIMENSIONS), dtype=np.float32)
    product = np.empty((N_IMAGES, len(captions)), np.float32)
    expected = by_kernelcore(annotation_scores=embedding_scores(images, captions))

    def check(answer):
        if answer is product:
            few = images[:20].astype(np.float64) @ captions[:20].T.astype(np.float64)
            np.testing.assert_allclose(answer[:20, :20], few, rtol=1e-3, atol=1e-3)
        else:
            assert answer == expected

    vectors = {"image_vectors": images, "caption_vectors": captions}
    compare(
        "evaluation from embeddings",
        {
            "kernelcore": lambda: by_kernelcore(2, **vectors),
            "numpy, the product alone": lambda: np.matmul(images, captions.T, out=product),
        },
        check=check,
        n_threads=2,
        rounds=4,
        seconds=20.0,
        shape=f"{N_IMAGES:,} x {len(captions):,} x {N_DIMENSIONS}, float32",
        size=float(product.size) * N_DIMENSIONS,
        unit="multiply-adds",
    )


def test_evaluate_beside_libraries(compare):
    scores, owner = draw(N_SMALL), owners(N_SMALL)
    expected = expected_of(scores, owner)

    def check(values):
        np.testing.assert_allclose(values, expected, rtol=1e-5)

    compare(
        "R@k, MRR, MAP and nDCG@10 of both tasks",
        {
            "kernelcore": lambda: by_kernelcore(annotation_scores=scores),
            "torchmetrics": lambda: by_torchmetrics(scores, owner),
            "ranx": lambda: by_ranx(scores, owner),
        },
        before={"ranx": lambda: by_ranx(draw(12), owners(12))},
        check=check,
        shape=f"{N_SMALL:,} x {owner.size:,}, float32",
        rounds=3,
    )
