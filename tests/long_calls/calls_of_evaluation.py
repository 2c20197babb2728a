"""Long calls of ``kernelcore.evaluation``."""

from functools import partial

import numpy as np
from table import table

from kernelcore import evaluation as e

CALLS, call = table()
RNG = np.random.default_rng(0)


def numbers(n_systems, n_queries):
    return RNG.integers(1, 1000, (n_systems, n_queries)), RNG.integers(1, 1000, n_queries)


@call("evaluation.significance.fisher_randomization", 2_000_000, 3000, fast=True)
def fisher(n):
    systems = numbers(3, 5000)
    return partial(e.significance.fisher_randomization, *systems, n_reassignments=n, rng=0)


@call("evaluation.significance.fisher_randomization[median]", 500_000, 1000)
def fisher_median(n):
    systems = numbers(3, 5000)
    return partial(
        e.significance.fisher_randomization,
        *systems,
        statistic="median",
        n_reassignments=n,
        rng=0,
    )


@call("evaluation.significance.paired_bootstrap", 100_000, 1000)
def paired_bootstrap(n):
    return partial(e.significance.paired_bootstrap, *numbers(3, 5000), n_resamples=n, rng=0)


@call("evaluation.compare", 1_000_000, 1000)
def compare(n):
    results = [e.evaluate(RNG.random((500, 500)), system=name) for name in "abc"]
    compared = partial(e.compare, results, baseline="a", n_reassignments=n, rng=0)
    return lambda **run: compared(**run).metrics


def scored(n):
    return RNG.random((n, 5 * n), np.float32), np.repeat(np.arange(n), 5)


@call("evaluation.ranks.retrieval_ranks", 6000, 60, delay=0.01, may_end=True)
def retrieval_ranks(n):
    return partial(e.ranks.retrieval_ranks, *scored(n))


@call("evaluation.ranks.gold_ranks", 6000, 60, delay=0.01, may_end=True)
def gold_ranks(n):
    scores, owner = scored(n)
    return partial(e.ranks.gold_ranks, scores.T, owner)


@call("evaluation.streamed_ranks", 50_000, 600, fast=True)
def streamed_ranks(n):
    vectors = RNG.normal(size=(2, n, 100))
    return partial(e.streamed_ranks, *vectors)


@call("evaluation.embedding_scores", 6000, 30)
def embedding_scores(n):
    vectors = RNG.random((2, 6000, n), np.float32)
    return partial(e.embedding_scores, *vectors)


@call("evaluation.evaluate", 6000, 60, delay=0.01, may_end=True)
def evaluate(n):
    scores, owner = scored(n)
    return partial(e.evaluate, scores, caption_image=owner)


@call("evaluation.evaluate[vectors]", 40_000, 600, fast=True)
def evaluate_vectors(n):
    vectors = RNG.normal(size=(2, n, 100)).astype(np.float32)
    return partial(e.evaluate, image_vectors=vectors[0], caption_vectors=vectors[1])


@call("evaluation.compare[pairs]", 1_000_000, 1000)
def compare_pairs(n):
    results = [e.evaluate(RNG.random((500, 500)), system=name) for name in "abc"]
    compared = partial(e.compare, results, metrics=["mean_rank"], n_reassignments=n, rng=0)
    return lambda **run: compared(**run).metrics


@call("evaluation.agreement.krippendorff_alpha_interval", 1_000_000, 10)
def krippendorff_alpha_interval(n):
    ratings = RNG.integers(1, 5, (2000, 3))
    return partial(e.agreement.krippendorff_alpha_interval, ratings, n_resamples=n, rng=0)


def captions(n, n_references=5, length=10):
    """Texts of rare and frequent words, and references for each of them."""
    words = np.minimum(RNG.zipf(1.3, (n, n_references + 1, length)), 20_000).astype(str)
    texts = [[" ".join(words) for words in group] for group in words.tolist()]
    return [group[0] for group in texts], [group[1:] for group in texts]


def of_captions(name, long, short, **options):
    def make(n):
        return partial(getattr(e.caption_metrics, name), *captions(n), **options)

    call(f"evaluation.caption_metrics.{name}", long, short)(make)


of_captions("bleu", 150_000, 20)
of_captions("cider", 100_000, 20)
of_captions("cider_d", 100_000, 20)
of_captions("rouge_l", 150_000, 20)
of_captions("unigram_bleu", 6000, 20)


@call("evaluation.caption_metrics.coco_tokenize", 3_000_000, 10)
def coco_tokenize(n):
    texts = ['A dog, running fast; it\'s "wet".'] * n
    return lambda: [e.caption_metrics.coco_tokenize(text) for text in texts][:3]


@call("evaluation.caption_metrics.rouge_l[long captions]", 30_000, 20, delay=3.0)
def long_captions(n):
    return partial(e.caption_metrics.rouge_l, *captions(1, 100, n))
