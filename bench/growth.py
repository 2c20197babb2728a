"""Measure how time grows with the size of a problem.

    python bench/growth.py

Each curve changes one size and keeps the others. Sizes take turns, and the fastest of several
short rounds counts: CPU time of one thread, so that what others take of the machine is not
ours. A line through the logarithms gives the exponent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import data
import numpy as np
import record

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.kcca import LandmarkFeatures, partial_gram_schmidt
from kernelcore.kernels import histogram_intersection, word_sequence
from kernelcore.reference.histogram_intersection import (
    histogram_intersection as reference_intersection,
)
from kernelcore.reference.ranks import gold_ranks as reference_ranks
from kernelcore.reference.word_sequence import word_sequence as reference_sequence

N_ROUNDS = record.size(5, 2)
SECONDS = 4.0
"""A size takes no further turn once it has had this long."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class Curve:
    """Work of growing size.

    Attributes
    ----------
    sizes : tuple of int
    make : callable
        Returns, for a size, the call to time; checks its answer on the smallest one.
    expected : float
        Exponent that the algorithm has where nothing but its leading term counts.
    about : str
        What is kept.
    """

    sizes: tuple[int, ...]
    make: Callable[[int], Call]
    expected: float
    about: str


def intersection(n: int, n_bins: int) -> Call:
    X = np.random.default_rng(0).random((n, n_bins), np.float32)
    few = X[:3].astype(np.float64)
    np.testing.assert_allclose(
        histogram_intersection(X[:3]), reference_intersection(few, few), rtol=1e-5
    )
    return lambda: histogram_intersection(X, n_threads=1)


def sequences(n_captions: int, length: int, n_words: int) -> Call:
    captions = data.drawn_captions(n_captions // data.N_CAPTIONS, n_words, length)
    kernel = data.soft_word_kernel(n_words)
    few = captions.select(range(1))
    similar, lists = kernel.todok(), data.as_lists(few)
    expected = reference_sequence(lists, lists, lambda a, b: similar.get((a, b), 0.0))
    options = {"word_kernel": kernel, "n_threads": 1}
    np.testing.assert_allclose(
        word_sequence(few, normalize=False, **options), expected, rtol=1e-4
    )
    return lambda: word_sequence(captions, **options)


def gram_schmidt(n: int, rank: int) -> Call:
    K = data.rbf(*[np.random.default_rng(0).normal(size=(n, 20))] * 2)
    result = partial_gram_schmidt(K, tolerance=0.0, max_rank=rank)
    F, few = result.features, result.pivots[:20]
    np.testing.assert_allclose(F[few] @ F.T, K[few], atol=1e-6)
    return lambda: partial_gram_schmidt(K, tolerance=0.0, max_rank=rank)


def landmarks(n: int) -> Call:
    X = np.random.default_rng(0).random((n, 500), np.float32)

    def features() -> np.ndarray:
        estimator = LandmarkFeatures(
            lambda A, B: histogram_intersection(A, B, n_threads=1), n_landmarks=100
        )
        return estimator.fit_transform(X)

    F = features()
    self_similar = X.sum(axis=1)
    assert ((F**2).sum(axis=1) <= self_similar * (1 + 1e-3)).all()
    return features


def ranks(n: int) -> Call:
    scores = np.random.default_rng(0).random((n, n), np.float32)
    owner = np.arange(n)
    found = retrieval_ranks(scores, owner, n_threads=1).annotation[:3]
    assert found.tolist() == reference_ranks(scores[:3].tolist(), [[0], [1], [2]])
    return lambda: retrieval_ranks(scores, owner, n_threads=1)


CURVES: Mapping[str, Curve] = {
    "histogram intersection, images": Curve(
        (250, 500, 1000, 2000), lambda n: intersection(n, 2000), 2, "2,000 bins, one input"
    ),
    "histogram intersection, bins": Curve(
        (1000, 2000, 4000, 8000, 16_000),
        lambda d: intersection(400, d),
        1,
        "400 images, one input",
    ),
    "word sequences, captions": Curve(
        (1250, 2500, 5000, 10_000), lambda n: sequences(n, 8, 3000), 2, "8 words each"
    ),
    "word sequences, words in a caption": Curve(
        (4, 8, 16, 32), lambda length: sequences(2500, length, 3000), 2, "2,500 captions"
    ),
    "word sequences, vocabulary": Curve(
        (500, 1000, 2000, 4000, 8000),
        lambda n_words: sequences(2500, 8, n_words),
        0,
        "2,500 captions of 8 words, 1 % of all words similar",
    ),
    "partial Gram-Schmidt, rank": Curve(
        (200, 400, 800, 1600), lambda rank: gram_schmidt(2000, rank), 2, "2,000 samples"
    ),
    "landmark features, images": Curve(
        (10_000, 20_000, 40_000, 80_000), landmarks, 1, "100 landmarks, 500 bins"
    ),
    "ranks, images and captions": Curve(
        (1000, 2000, 4000), ranks, 2, "both directions from the scores"
    ),
}


def measure(curve: Curve) -> dict[str, Any]:
    """Time of every size, and the exponent."""
    sizes = curve.sizes[:2] if record.SMALL else curve.sizes
    calls = [curve.make(size) for size in sizes]
    times: list[list[float]] = [[] for _ in sizes]
    for _ in range(N_ROUNDS):
        for call, taken in zip(calls, times, strict=True):
            if sum(taken) > SECONDS:
                continue
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    fastest = [min(taken) for taken in times]
    return {
        "sizes": sizes,
        "seconds": fastest,
        "exponent": float(np.polyfit(np.log(sizes), np.log(fastest), 1)[0]),
        "expected": curve.expected,
        "about": curve.about,
    }


def main() -> None:
    for name, curve in CURVES.items():
        found = measure(curve)
        record.store("growth", name, found)
        print(f"{name}: exponent {found['exponent']:.2f}, expected {curve.expected:g}")


if __name__ == "__main__":
    main()
