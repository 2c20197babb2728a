"""Recalls and all other metrics of both tasks, from a matrix of scores or from embeddings.

ranx takes dictionaries of queries and documents, torchmetrics a flat list of scores with the
number of the query of each. ranx is timed on inputs that were built and sorted beforehand. The
largest size is that of COCO 5K, 5,000 images and 25,000 captions.
"""

import numpy as np
import pytest
from bench_ranks import PER_IMAGE, by_counting, owners
from common import size

import kernelcore
from kernelcore.evaluation import embedding_scores
from kernelcore.evaluation.ranks import retrieval_ranks

KS = (1, 5, 10)
RECALLS = {f"R@{k}": f"hit_rate@{k}" for k in KS}
ALL = {
    **RECALLS,
    "mean_reciprocal_rank": "mrr",
    "mean_average_precision": "map",
    "nDCG@10": "ndcg@10",
}
"""Metrics by the names of this package, and of ranx."""


def draw(n_images):
    """Distinct and positive: to torchmetrics, scores up to 0 are items that were not found."""
    order = np.random.default_rng(0).permutation(n_images * n_images * PER_IMAGE)
    return (1 + order).reshape(n_images, -1).astype(np.float32)


def tasks(scores, owner):
    """Scores of candidates by query, and which are right, for either task."""
    relevant = owner == np.arange(len(scores))[:, np.newaxis]
    return (scores, relevant), (scores.T, relevant.T)


def ranx_inputs(scores, owner):
    from ranx import Qrels, Run

    inputs = []
    for queries, relevant in tasks(scores, owner):
        names = [str(k) for k in range(queries.shape[1])]
        rows, hits = enumerate(queries.tolist()), enumerate(relevant)
        run = {str(q): dict(zip(names, row, strict=True)) for q, row in rows}
        gold = {str(q): {names[k]: 1 for k in np.flatnonzero(row)} for q, row in hits}
        inputs.append((Qrels(gold), Run(run)))
    return inputs


def by_ranx(inputs, metrics):
    from ranx import evaluate

    names = list(metrics.values())
    found = [evaluate(*both, names, save_results_in_run=False) for both in inputs]
    return [[float(values[name]) for name in names] for values in found]


def by_torchmetrics(scores, owner, metrics):
    import torch
    from torchmetrics import retrieval

    makers = [retrieval.RetrievalHitRate(top_k=k) for k in KS]
    if len(metrics) > len(KS):
        makers += [retrieval.RetrievalMRR(), retrieval.RetrievalMAP()]
        makers += [retrieval.RetrievalNormalizedDCG(top_k=10)]
    values = []
    for queries, relevant in tasks(scores, owner):
        numbers = torch.arange(len(queries)).repeat_interleave(queries.shape[1])
        flat = [torch.from_numpy(np.ascontiguousarray(a).ravel()) for a in (queries, relevant)]
        values.append([float(one(*flat, numbers)) for one in makers])
    return values


def recalls(ranks):
    return [[np.mean(of <= k) for k in KS] for of in ranks]


def by_evaluate(n_threads=1, **arguments):
    options = {"captions_per_image": PER_IMAGE, "n_threads": n_threads}
    result = kernelcore.evaluate(**arguments, **options)
    return [[mean[name] for name in ALL] for mean in result.mean.values()]


@pytest.mark.parametrize(
    "peer",
    [
        *("kernelcore", "numpy, by counting", "torchmetrics.retrieval"),
        "ranx.evaluate, inputs built beforehand",
    ],
)
@pytest.mark.parametrize("n_images", [100, 250, 500])
@pytest.mark.parametrize("metrics", [RECALLS, ALL], ids=["recalls", "all"])
def test_beside_libraries(benchmark, peer, n_images, metrics):
    if metrics is ALL and peer.startswith("numpy"):
        pytest.skip("counts are enough for recalls alone")
    scores, owner = draw(size(n_images, 50)), owners(size(n_images, 50))
    names = "R@1, R@5 and R@10" if metrics is RECALLS else "R@k, MRR, MAP and nDCG@10"
    benchmark.extra_info["work"] = f"{names} of both tasks"
    benchmark.extra_info["size"] = f"{len(scores):,} x {owner.size:,}, float32"
    inputs = ranx_inputs(scores, owner) if peer.endswith("beforehand") else None

    def ours():
        if metrics is RECALLS:
            return recalls(retrieval_ranks(scores, owner, n_threads=1))
        return by_evaluate(annotation_scores=scores)

    call = {
        "kernelcore": ours,
        "numpy, by counting": lambda: recalls(by_counting(scores, owner)),
        "torchmetrics.retrieval": lambda: by_torchmetrics(scores, owner, metrics),
        "ranx.evaluate, inputs built beforehand": lambda: by_ranx(inputs, metrics),
    }[peer]
    answer = call()
    counted = recalls(by_counting(scores, owner))
    np.testing.assert_allclose([row[: len(KS)] for row in answer], counted, rtol=1e-5)
    np.testing.assert_allclose(answer, ours(), rtol=1e-5)
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, 2 threads", "numpy, by counting"])
@pytest.mark.parametrize("n_images", [1000, 2500, 5000])
def test_from_scores(benchmark, peer, n_images):
    n_images = size(n_images, 200)
    owner = owners(n_images)
    scores = np.random.default_rng(0).standard_normal((n_images, owner.size), np.float32)
    benchmark.extra_info["work"] = "evaluation from scores"
    benchmark.extra_info["size"] = f"{n_images:,} x {owner.size:,}, float32"
    call = {
        "kernelcore": lambda: by_evaluate(annotation_scores=scores),
        "kernelcore, 2 threads": lambda: by_evaluate(n_threads=2, annotation_scores=scores),
        "numpy, by counting": lambda: recalls(by_counting(scores, owner)),
    }[peer]
    expected = recalls(by_counting(scores, owner))
    np.testing.assert_allclose([row[: len(KS)] for row in call()], expected, rtol=1e-12)
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "numpy.matmul, the product alone"])
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n_images", [1000, 2500, 5000])
def test_from_embeddings(benchmark, peer, n_images, n_threads):
    n_images, n_dimensions = size(n_images, 200), size(768, 32)
    rng = np.random.default_rng(0)
    images, captions = (
        rng.standard_normal((n, n_dimensions), dtype=np.float32)
        for n in (n_images, n_images * PER_IMAGE)
    )
    benchmark.extra_info["work"] = "evaluation from embeddings"
    benchmark.extra_info["size"] = f"{n_images:,} x {len(captions):,} x {n_dimensions}, float32"
    if peer == "kernelcore":
        vectors = {"image_vectors": images, "caption_vectors": captions}
        scores = embedding_scores(images, captions)
        found = by_evaluate(n_threads=n_threads, **vectors)
        assert found == by_evaluate(annotation_scores=scores)
        benchmark(by_evaluate, n_threads=n_threads, **vectors)
    else:
        benchmark(np.matmul, images, captions.T, out=np.empty((n_images, len(captions)), "f4"))
