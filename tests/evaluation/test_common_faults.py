"""Four faults of common evaluation code, as docs/clip_vectors.md shows them.

The functions below are what scripts do; each test shows what goes wrong and what `evaluate`
gives in its place.
"""

import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from kernelcore.evaluation import evaluate
from kernelcore.reference.evaluation import gold_ranks as reference_ranks

PAGE = Path(__file__).parents[2] / "docs" / "clip_vectors.md"


def clip_like(n_images=400, n_dimensions=64, seed=0):
    """Unit vectors that lie close together, as embeddings of CLIP do, in half precision."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n_images, n_dimensions)) + 6
    noise = 2 * rng.standard_normal((5 * n_images, n_dimensions))
    captions = np.repeat(images, 5, axis=0) + noise
    return [
        (part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float16)
        for part in (images, captions)
    ]


def one_hot_recall(scores, positive, k):
    """Recall at k by a one-hot array of queries by k by candidates."""
    top = np.argsort(-scores, axis=1)[:, :k]
    hits = np.eye(scores.shape[1], dtype=np.int64)[top] * positive[:, np.newaxis, :]
    return float((hits.sum(axis=(1, 2)) > 0).mean())


def positives(n_images, n_captions):
    return np.arange(n_images) == (np.arange(n_captions) // 5)[:, np.newaxis]


def exact_recall(scores, k):
    """Share of captions whose image has fewer than k others at or above its score."""
    own = scores[np.arange(len(scores)), np.arange(len(scores)) // 5]
    return float(np.mean((scores >= own[:, np.newaxis]).sum(axis=1) <= k))


def test_half_precision_scores_tie_and_the_vectors_do_not():
    images, captions = clip_like()
    exact = captions.astype(np.float64) @ images.T.astype(np.float64)
    in_half = exact.astype(np.float16)  # what a product under autocast gives
    result = evaluate(
        image_vectors=images, caption_vectors=captions, captions_per_image=5, similarity="dot"
    )
    ranks = reference_ranks(exact.tolist(), [[j // 5] for j in range(len(exact))])
    assert result.values["search"]["mean_rank"].tolist() == ranks
    assert max(result.tie_effect["search"].values()) < 0.001
    rounded = [evaluate(in_half.T, captions_per_image=5, ties=rule) for rule in ("max", "min")]
    effect = rounded[0].tie_effect["search"]["R@1"]
    assert effect > 0.02  # the tie rule decides on some of the queries
    low, high = (of.mean["search"]["R@1"] for of in rounded)
    assert low < result.mean["search"]["R@1"] < high
    assert high - low == pytest.approx(effect)


def test_a_list_that_is_cut_off_flatters_the_ranks_behind_it():
    images, captions = clip_like(n_dimensions=4)
    result = evaluate(image_vectors=images, caption_vectors=captions, captions_per_image=5)
    ranks, cut = result.values["search"]["mean_rank"], 100
    mean = result.mean["search"]
    found = ranks[ranks <= cut]  # queries whose image the list does not have are left out
    assert len(found) < 0.9 * len(ranks)
    assert found.mean() < 0.7 * mean["mean_rank"]
    assert np.minimum(ranks, cut + 1).mean() < 0.9 * mean["mean_rank"]
    assert (1 / found).mean() > 1.1 * mean["mean_reciprocal_rank"]
    assert ranks.max() > 3 * cut


def test_a_one_hot_array_takes_k_times_the_memory_of_the_scores():
    images, captions = clip_like(n_images=60)
    scores = (captions.astype(np.float32) @ images.astype(np.float32).T).copy()
    positive = positives(60, 300)

    def peak(work):
        work()
        tracemalloc.start()
        try:
            value = work()
            return value, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    theirs, one_hot = peak(lambda: one_hot_recall(scores, positive, 10))
    result, ours = peak(lambda: evaluate(scores.T, captions_per_image=5))
    assert result.mean["search"]["R@10"] == theirs == exact_recall(scores, 10)
    assert one_hot > 10 * 2 * scores.nbytes  # int64 where scores are float32
    assert ours < one_hot / 5


@pytest.mark.parametrize("constant", [0.0, 0.25])
def test_without_a_rule_for_ties_a_model_that_knows_nothing_is_perfect(constant):
    scores = np.full((50, 250), constant, np.float32)
    own = scores[np.arange(250) // 5, np.arange(250)]
    by_counting = 1 + (scores > own).sum(axis=0)  # rank = 1 + candidates with a greater score
    assert (by_counting == 1).all()
    first = np.argsort(-scores, axis=1, kind="stable")[:, :1]  # or by the order of the file
    assert (first[:1] // 5 == 0).all()
    result = evaluate(scores, captions_per_image=5)
    assert [result.mean["search"][f"R@{k}"] for k in (1, 5, 10)] == [0, 0, 0]
    assert result.mean["search"]["mean_rank"] == 25.5
    assert result.mean["annotation"]["mean_rank"] == pytest.approx(251 / 6)
    assert result.tie_effect["search"] == {"R@1": 1.0, "R@5": 1.0, "R@10": 1.0}
    assert "ties move R@k by at most 100.0" in str(result)


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")
def test_the_programs_of_the_page_run_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    images, captions = clip_like(n_images=20)
    np.save(tmp_path / "a.npy", images)
    np.save(tmp_path / "b.npy", captions)
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"```python\n(from kernelcore import evaluate\n.*?)```", text, re.S)
    assert code is not None
    assert len([line for line in code[1].splitlines() if line]) == 3
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(compile(code[1], "clip_vectors.md", "exec"), found)
    command = re.search(r"^    kernelcore (evaluate .*)$", text, re.M)
    assert command is not None
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kernelcore", *command[1].split()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(found["result"].summary()) in done.stdout
    assert str(found["result"]).splitlines()[-1] in done.stdout
