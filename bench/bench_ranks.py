"""Ranks: from a matrix of scores, from embeddings without one, and the best of many vectors.

Most evaluation scripts sort every row and look for the gold item; the best plain NumPy compares
a block of rows with their gold scores and adds up. Streamed ranks are held against the matrix
product alone. Vector search reads the candidates from files and writes the results into a
store, forced to the disk; its peers have all vectors in memory, at unit length, and faiss
copies them into its index.
"""

import tempfile

import numpy as np
import pytest
from common import size

from kernelcore.distributed import best_candidates
from kernelcore.evaluation import embedding_scores, streamed_ranks
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.reference.evaluation import gold_ranks as reference

PER_IMAGE, N_DIMENSIONS = 5, 512
ROWS_PER_BLOCK = 256


def draw(n_images):
    """Distinct scores of images and captions, so that every way of ranking agrees."""
    shape = (n_images, n_images * PER_IMAGE)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def owners(n_images):
    return np.repeat(np.arange(n_images), PER_IMAGE)


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


@pytest.mark.parametrize(
    "peer",
    ["kernelcore", "kernelcore, 2 threads", "numpy, by counting", "numpy, by sorting"],
)
@pytest.mark.parametrize("n_images", [1000, 2500, 5000])
def test_both_directions(benchmark, peer, n_images):
    n_images = size(n_images, 200)
    scores, owner = draw(n_images), owners(n_images)
    benchmark.extra_info["work"] = "ranks of both directions"
    benchmark.extra_info["size"] = f"{n_images:,} x {owner.size:,}, float32"
    images, captions = np.arange(n_images)[::50], np.arange(owner.size)[::500]
    gold = [np.flatnonzero(owner == image).tolist() for image in images]
    annotation = reference(scores[images].tolist(), gold)
    search = reference(scores[:, captions].T.tolist(), owner[captions][:, np.newaxis].tolist())
    call = {
        "kernelcore": lambda: retrieval_ranks(scores, owner, n_threads=1),
        "kernelcore, 2 threads": lambda: retrieval_ranks(scores, owner, n_threads=2),
        "numpy, by counting": lambda: by_counting(scores, owner),
        "numpy, by sorting": lambda: by_sorting(scores, owner),
    }[peer]
    ranks = call()
    assert ranks[0][images].tolist() == annotation
    assert ranks[1][captions].tolist() == search
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "numpy.matmul, the product alone"])
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n", [5000, 10_000, 20_000])
def test_streamed(benchmark, peer, n, n_threads):
    n = size(n, 1000)
    benchmark.extra_info["work"] = "ranks streamed from embeddings"
    benchmark.extra_info["size"] = f"{n:,} x {n:,} x {N_DIMENSIONS}, float32"
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((2, n, N_DIMENSIONS), dtype=np.float32)
    if peer == "kernelcore":
        part = embedding_scores(images, captions[:500:50], similarity="dot")
        expected = reference(part.T.tolist(), [[caption] for caption in range(0, 500, 50)])
        options = {"similarity": "dot", "n_threads": n_threads}
        found = streamed_ranks(images, captions, **options)
        assert found.search[:500:50].tolist() == expected
        benchmark(streamed_ranks, images, captions, **options)
    else:
        benchmark(np.matmul, images, captions.T, out=np.empty((n, n), np.float32))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_faiss(queries, candidates, k):
    import faiss

    index = faiss.IndexFlatIP(N_DIMENSIONS)
    index.add(candidates)
    return index.search(queries, k)[1]


def by_torch(queries, candidates, k):
    import torch

    scores = torch.from_numpy(queries) @ torch.from_numpy(candidates).T
    return torch.topk(scores, k, dim=1).indices.numpy()


def by_numpy(queries, candidates, k):
    """One block of queries at a time: its products, the k best of them, in order."""
    found = []
    for start in range(0, len(queries), ROWS_PER_BLOCK):
        scores = queries[start : start + ROWS_PER_BLOCK] @ candidates.T
        best = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        found.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(found)


SEARCH = {"faiss.IndexFlatIP": by_faiss, "torch.topk": by_torch, "numpy.argpartition": by_numpy}


@pytest.mark.parametrize("peer", ["kernelcore", *SEARCH])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n", [10_000, 30_000, 100_000])
def test_vector_search(benchmark, tmp_path, peer, n, n_threads):
    n, k = size(n, 3000), 10
    rng = np.random.default_rng(0)
    candidates = rng.standard_normal((n, N_DIMENSIONS), dtype=np.float32)
    queries = rng.standard_normal((size(2000, 100), N_DIMENSIONS), dtype=np.float32)
    benchmark.extra_info["work"] = f"the {k} best of many vectors"
    benchmark.extra_info["size"] = f"{len(queries):,} x {n:,} x {N_DIMENSIONS}, float32"
    left, right = unit(queries), unit(candidates)
    np.save(tmp_path / "rows.npy", candidates)

    def ours():
        with tempfile.TemporaryDirectory() as folder:
            store = best_candidates(
                queries, tmp_path / "rows.npy", folder, k=k, n_threads=n_threads
            )
            return store.positions

    call = ours if peer == "kernelcore" else lambda: SEARCH[peer](left, right, k)
    best = np.argsort(-(left[:50].astype(np.float64) @ right.T), axis=1, kind="stable")[:, :k]
    assert (call()[:50] == best).mean() > 0.99  # but for scores that round alike
    benchmark(call)
