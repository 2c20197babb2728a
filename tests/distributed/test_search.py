"""Exact search, and indices of FAISS."""

from importlib.util import find_spec

import numpy as np
import pytest

from kernelcore.distributed import VectorIndex, best_candidates, write_rows

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(500, 8)).astype(np.float32)
QUERIES = RNG.normal(size=(20, 8)).astype(np.float32)


def sorted_best(queries, rows, k, similarity):
    left, right = queries.astype(np.float64), rows.astype(np.float64)
    if similarity == "cosine":
        left /= np.linalg.norm(left, axis=1, keepdims=True)
        right /= np.linalg.norm(right, axis=1, keepdims=True)
    scores = left @ right.T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("k", [1, 7, 500, 900])
def test_the_best_are_those_of_a_sort(tmp_path, similarity, k):
    best = best_candidates(
        QUERIES, ROWS, tmp_path, k=k, similarity=similarity, block_rows=64, n_threads=2
    )
    order, scores = sorted_best(QUERIES, ROWS, k, similarity)
    np.testing.assert_allclose(best.scores, scores, rtol=1e-5, atol=1e-5)
    assert (best.positions == order).mean() > 0.99  # but for scores that round alike


def test_counts_are_vectors_too(tmp_path):
    counts = np.random.default_rng(3).integers(0, 256, size=(60, 8)).astype(np.uint8)
    best = best_candidates(counts, counts, tmp_path, k=1)
    np.testing.assert_array_equal(best.positions[:, 0], np.arange(60))
    np.testing.assert_allclose(best.scores, 1.0)


def test_of_equal_candidates_the_first_comes_first(tmp_path):
    rows = np.tile(ROWS[:50], (6, 1))
    best = best_candidates(QUERIES, rows, tmp_path, k=6, block_rows=70)
    assert (np.diff(best.positions, axis=1) == 50).all()
    assert (best.positions[:, 0] < 50).all()


@pytest.mark.parametrize("order", ["ascending", "descending", "level"])
def test_the_best_of_many_tiles_are_exact_in_any_order(tmp_path, order):
    """Small integers have exact scores: every tie of a sort is a tie here."""
    rng = np.random.default_rng(1)
    rows = rng.integers(-3, 4, size=(5000, 4)).astype(np.float32)
    if order == "level":
        rows[:, 0] = 0.0
    else:
        rows[:, 0] = np.arange(5000) // 7 * (1 if order == "ascending" else -1)
    queries = np.hstack([np.ones((9, 1)), rng.integers(-2, 3, size=(9, 3))]).astype(np.float32)
    best = best_candidates(
        queries, rows, tmp_path, k=12, similarity="dot", block_rows=4096, n_threads=1
    )
    positions, scores = sorted_best(queries, rows, 12, "dot")
    np.testing.assert_array_equal(best.positions, positions)
    np.testing.assert_array_equal(best.scores, scores)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"similarity": "l2"}, "similarity must be"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"candidates": ROWS[:, :3]}, "candidates must have as many dimensions"),
        ({"queries": [[np.nan] * 8]}, "queries must be finite"),
    ],
)
def test_bad_input_is_named(tmp_path, changes, message):
    given = {"queries": QUERIES, "candidates": ROWS} | changes
    queries, candidates = given.pop("queries"), given.pop("candidates")
    with pytest.raises(ValueError, match=message):
        best_candidates(queries, candidates, tmp_path, **given)


needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="needs faiss-cpu")


@needs_faiss
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_an_exact_index_finds_the_best(similarity, tmp_path):
    index = VectorIndex(write_rows(tmp_path, ROWS), similarity=similarity)
    best = index.search(QUERIES, k=5)
    order, scores = sorted_best(QUERIES, ROWS, 5, similarity)
    np.testing.assert_array_equal(best.positions, order)
    np.testing.assert_allclose(best.scores, scores, rtol=1e-5)
    assert index.recall(QUERIES) == 1.0


@needs_faiss
@pytest.mark.parametrize("kind", ["exact", "lists"])
def test_rows_are_added_and_removed(kind, tmp_path):
    ids = np.arange(1000, 1400)
    index = VectorIndex(ROWS[:400], ids, kind=kind, n_probes=1000)
    index.add(ROWS[400:], np.arange(100))
    assert len(index) == 500
    assert index.remove([1000, 5, 77_777]) == 2
    assert len(index) == 498
    assert not {1000, 5} & set(index.ids().tolist())
    found = index.search(ROWS[[0, 1, 405, 406]], k=1).positions[:, 0]
    assert found[1] == 1001
    assert found[3] == 6
    assert not {1000, 5} & set(found.tolist())
    index.add(ROWS[:1], [1000])
    assert index.search(ROWS[:1], k=1).positions.tolist() == [[1000]]
    index.save(tmp_path / "index")
    again = VectorIndex.load(tmp_path / "index")
    np.testing.assert_array_equal(again.ids(), index.ids())
    np.testing.assert_array_equal(
        again.search(QUERIES).positions, index.search(QUERIES).positions
    )
    with pytest.raises(ValueError, match="ids must be new, got 1001"):
        again.add(ROWS[:1], [1001])
    assert again.remove(again.ids()) == 499
    with pytest.raises(ValueError, match="the index must hold a vector"):
        again.search(QUERIES)


@needs_faiss
def test_recall_of_an_approximate_index_is_measured():
    index = VectorIndex(ROWS, kind="lists", n_lists=50, n_probes=2)
    exact = sorted_best(QUERIES, ROWS, 10, "cosine")[0]
    found = index.search(QUERIES, k=10).positions
    shared = [len(set(a) & set(b)) / 10 for a, b in zip(exact, found, strict=True)]
    assert index.recall(QUERIES, k=10) == pytest.approx(np.mean(shared))
    assert index.recall(QUERIES, k=10) < 1.0
    with pytest.raises(ValueError, match="queries must hold a vector"):
        index.recall(QUERIES[:0])


@needs_faiss
def test_a_damaged_index_is_never_read_by_faiss(tmp_path):
    VectorIndex(ROWS).save(tmp_path / "index")
    path = tmp_path / "index" / "index.faiss"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not as it was written"):
        VectorIndex.load(tmp_path / "index")


@needs_faiss
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {"ids": [1]}, "ids must be 500 different numbers"),
        (ROWS, {"ids": np.zeros(500, int)}, "ids must be 500 different numbers"),
        (ROWS, {"kind": "graph"}, "kind must be"),
        (ROWS, {"similarity": "l2"}, "similarity must be"),
        (ROWS, {"kind": "lists", "n_lists": 501}, "n_lists must be"),
        (np.zeros((0, 3)), {}, "rows must not be empty"),
        ([[np.inf]], {}, "rows must be finite"),
        ([[1e30, -1e30]], {"similarity": "dot"}, "rows must have no vector longer than"),
        ([[1e-60, 0.0]], {"similarity": "dot"}, "rows must fit into float32"),
    ],
)
def test_bad_indices_are_named(rows, options, message):
    with pytest.raises(ValueError, match=message):
        VectorIndex(rows, **options)
