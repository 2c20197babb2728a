"""The ten best of 100,000 vectors for 2,000 queries of 512 dimensions, by cosines.

Ours reads the candidates from files and writes the results into a store, forced to the disk.
The peers have all vectors in memory, at unit length; faiss copies them into its index.
"""

import tempfile

import data
import numpy as np
import pytest
from results import target

from kernelcore.distributed import best_candidates

N_CANDIDATES, N_QUERIES = data.size(100_000, 3000), data.size(2000, 100)
N_DIMENSIONS, K = 512, 10
N_CHECKED = 50


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def indexed(candidates):
    import faiss

    index = faiss.IndexFlatIP(N_DIMENSIONS)
    index.add(candidates)
    return index


def by_numpy(queries, candidates):
    """One block of queries at a time: its products, the k best of them, in order."""
    found = []
    for start in range(0, len(queries), 256):
        scores = queries[start : start + 256] @ candidates.T
        best = np.argpartition(-scores, K, axis=1)[:, :K]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        found.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(found)


def by_torch(queries, candidates):
    import torch

    scores = torch.from_numpy(queries) @ torch.from_numpy(candidates).T
    return torch.topk(scores, K, dim=1).indices.numpy()


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    rng = np.random.default_rng(0)
    candidates = rng.standard_normal((N_CANDIDATES, N_DIMENSIONS), dtype=np.float32)
    queries = rng.standard_normal((N_QUERIES, N_DIMENSIONS), dtype=np.float32)
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, candidates)
    return queries, candidates, path


@pytest.mark.ways("kernelcore", "faiss", "torch", "numpy")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_best_of_many_vectors(measure, vectors, n_threads):
    queries, candidates, rows = vectors
    left, right = unit(queries), unit(candidates)
    scores = left[:N_CHECKED].astype(np.float64) @ right.astype(np.float64).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :K]

    def ours():
        with tempfile.TemporaryDirectory() as folder:
            return best_candidates(queries, rows, folder, k=K, n_threads=n_threads).positions

    def check(positions):
        assert positions.shape == (N_QUERIES, K)
        assert (positions[:N_CHECKED] == best).mean() > 0.99  # but for scores that round alike

    measure(
        "the best of many vectors",
        {
            "kernelcore": ours,
            "faiss": lambda: indexed(right).search(left, K)[1],
            "torch": lambda: by_torch(left, right),
            "numpy": lambda: by_numpy(left, right),
        },
        check=check,
        n_threads=n_threads,
        shape=f"{N_QUERIES:,} x {N_CANDIDATES:,}, {N_DIMENSIONS} dimensions, float32",
        size=float(N_QUERIES) * N_CANDIDATES,
        unit="scores",
        targets=[target("speed >= 1 x numpy")],
    )
