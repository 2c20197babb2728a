"""Long calls of ``kernelcore.evaluation``."""

import numpy as np
from table import Table

from kernelcore import evaluation as e

CALLS = Table()
RNG = np.random.default_rng(0)


def numbers(n_systems):
    return RNG.integers(1, 1000, (n_systems, 5000)), RNG.integers(1, 1000, 5000)


def drawing(name, count, long, short, tag="", *, fast=False, **options):
    """Enter a function that draws `count` samples of the values of three systems."""
    function = getattr(e.significance, name)

    def make(n):
        systems = numbers(3)
        return lambda **run: function(*systems, **{count: n}, rng=0, **options, **run)

    CALLS.add(f"evaluation.significance.{name}{tag}", long, short, make, fast=fast)


def compare(n, **options):
    results = [e.evaluate(RNG.random((500, 500)), system=name) for name in "abc"]
    options |= {"n_reassignments": n, "rng": 0}
    return lambda **run: e.compare(results, **options, **run).metrics


def scored(n):
    return RNG.random((n, 5 * n), np.float32), np.repeat(np.arange(n), 5)


def evaluate(n):
    scores, owner = scored(n)
    return lambda **run: e.evaluate(scores, caption_image=owner, **run)


def evaluate_vectors(n):
    images, captions = RNG.normal(size=(2, n, 100)).astype(np.float32)
    return lambda **run: e.evaluate(image_vectors=images, caption_vectors=captions, **run)


at_once = {"delay": 0.01, "may_end": True}
drawing("fisher_randomization", "n_reassignments", 2_000_000, 3000, fast=True)
drawing(
    "fisher_randomization", "n_reassignments", 500_000, 1000, "[median]", statistic="median"
)
drawing("paired_bootstrap", "n_resamples", 100_000, 1000)
CALLS.add("evaluation.compare", 1_000_000, 1000, lambda n: compare(n, baseline="a"))
CALLS.add(
    "evaluation.compare[pairs]", 1_000_000, 1000, lambda n: compare(n, metrics=["mean_rank"])
)
CALLS.add("evaluation.ranks.retrieval_ranks", 6000, 60, scored, **at_once)
CALLS.add(
    "evaluation.ranks.gold_ranks", 6000, 60, lambda n: [scored(n)[0].T, scored(n)[1]], **at_once
)
CALLS.add(
    "evaluation.streamed_ranks", 50_000, 600, lambda n: RNG.normal(size=(2, n, 100)), fast=True
)
CALLS.add(
    "evaluation.embedding_scores", 6000, 30, lambda n: RNG.random((2, 6000, n), np.float32)
)
CALLS.add("evaluation.evaluate", 6000, 60, evaluate, **at_once)
CALLS.add("evaluation.evaluate[vectors]", 40_000, 600, evaluate_vectors, fast=True)
