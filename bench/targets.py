"""What is to be reached, and how each number is formed from stored results: data.

python bench/targets.py  # what became of each target
"""

from __future__ import annotations

import sys

import record
from measures import (
    Measure,
    Results,
    best_peer,
    found,
    rate,
    ratio,
    scaled,
    seconds,
    slowest,
)
from outcomes import ReasonError, Target, describe, evaluate, outcome_of

FILES = ("speed", "roofline", "growth", "scale")

HI = "histogram intersection, float32, two inputs"
COUNTS = "histogram intersection of counts"
PYRAMIDS = [f"spatial pyramid, photos of {sizes}" for sizes in ("one size", "many sizes")]
WORDS = "word sequences, one input"
KCCA = "KCCA at full rank, as published"
RANKS = "ranks of both directions"
RECALLS = "R@1, R@5 and R@10 of both tasks"
STREAMED = "ranks streamed from embeddings"
BAGS = "bag of words, cosine"
LANDMARKS = "landmark features, random landmarks"
PARTIAL = "partial Gram-Schmidt, float64"
ONE_INPUT = "kernelcore, one input"


def _share(name: str) -> Measure:
    return found("roofline", "1 thread", "best set", "shares", name)


def _over_one_intersection(work: str) -> Measure:
    one = "kernelcore, one intersection"
    return slowest(*(ratio(seconds(work, n_threads=n), seconds(work, one, n)) for n in (1, 2)))


def _assignments(shape: str, *, reason: str = "") -> tuple[Target, ...]:
    batch, bounded = (
        f"assignment {kind}, {shape}, float64" for kind in ("in batches", "with a bound")
    )
    work = f"20,000 assignments {shape}"
    return (
        Target(
            work,
            "times the best peer, 1 thread",
            *(">=", 3.0, "x"),
            ratio(best_peer(batch), seconds(batch)),
            reason=reason,
        ),
        Target(
            work,
            "times the best peer, which has one thread, on 2 threads",
            *(">=", 6.0, "x"),
            ratio(best_peer(batch), seconds(bounded, "kernelcore, 2 threads")),
            reason=reason,
        ),
        Target(
            work,
            "half as many links, in times of all links",
            *("<=", 1.5, "x"),
            ratio(seconds(bounded, "kernelcore, half as many links"), seconds(bounded)),
        ),
    )


TARGETS: tuple[Target, ...] = (
    Target(
        "histogram intersection, float32, 2,000 x 13,440",
        "two inputs, times faiss, 2 threads",
        *(">=", 1.5, "x"),
        ratio(seconds(HI, "faiss", 2), seconds(HI, n_threads=2)),
        _share("float32"),
    ),
    Target(
        "histogram intersection, float32, 2,000 x 13,440",
        "two inputs, times SciPy, which has one thread, on 2 threads",
        *(">=", 20.0, "x"),
        ratio(seconds(HI, "scipy", 2), seconds(HI, n_threads=2)),
    ),
    Target(
        "histogram intersection, float32, 2,000 x 13,440",
        "one input, times faiss, 2 threads",
        *(">=", 3.0, "x"),
        ratio(seconds(HI, "faiss", 2), seconds(HI, ONE_INPUT, 2)),
    ),
    Target(
        "histogram intersection, float32, 2,000 x 13,440",
        "one input, times SciPy, which has one thread, on 2 threads",
        *(">=", 40.0, "x"),
        ratio(seconds(HI, "scipy", 2), seconds(HI, ONE_INPUT, 2)),
    ),
    Target(
        "histogram intersection, float32, 2,000 x 13,440",
        "share of the fastest minimum + addition from registers, 1 thread",
        *(">=", 0.7, "%"),
        _share("float32"),
        _share("float32"),
        reason="the rest goes into packing panels, memory and adding up lanes",
    ),
    Target(
        "histogram intersection of counts",
        "uint8, times our float32, 1 thread",
        *(">=", 4.0, "x"),
        ratio(seconds(COUNTS, "kernelcore, float32"), seconds(COUNTS, "kernelcore, uint8")),
        _share("uint8"),
        reason="a vector holds four times as many bytes, so they would have to come as close "
        "to their own limit as floats do; sums of bytes go through absolute differences, which "
        "half of the vector units can do",
    ),
    Target(
        "histogram intersection of counts",
        "uint16, times our float32, 1 thread",
        *(">=", 2.5, "x"),
        ratio(seconds(COUNTS, "kernelcore, float32"), seconds(COUNTS, "kernelcore, uint16")),
        _share("uint16"),
    ),
    Target(
        "histogram intersection, CSR, 1,000 x 500 x 20,000 at 0.5 %",
        "times scikit-learn, 1 thread",
        *(">=", 8.0, "x"),
        ratio(
            seconds("histogram intersection, CSR", "scikit-learn"),
            seconds("histogram intersection, CSR"),
        ),
    ),
    *(
        Target(
            work,
            "in times of one intersection of weighted cells",
            *("<=", 1.1, "x"),
            _over_one_intersection(work),
        )
        for work in PYRAMIDS
    ),
    Target(
        "word sequences, soft matches, 30,000 captions",
        "2 threads",
        *("<=", 5.0, "s"),
        seconds(WORDS, n_threads=2),
        _share("word sequences"),
    ),
    Target(
        "word sequences, soft matches, 30,000 captions",
        "2 threads, stretch",
        *("<=", 3.0, "s"),
        seconds(WORDS, n_threads=2),
        _share("word sequences"),
    ),
    Target(
        "word sequences, soft matches",
        "times a Numba dynamic programme, 2 threads",
        *(">=", 15.0, "x"),
        ratio(
            seconds("word sequences, soft matches, beside Numba", "numba", 2),
            seconds("word sequences, soft matches, beside Numba", n_threads=2),
        ),
    ),
    Target(
        "word sequences, exact matches",
        "times strkernels, 1 thread",
        *(">=", 100.0, "x"),
        ratio(
            seconds("word sequences, exact matches, beside strkernels", "strkernels"),
            seconds("word sequences, exact matches, beside strkernels"),
        ),
        reason="strkernels compares bytes: all but the 60 most frequent words are one symbol "
        "here, so that nearly every pair of captions matches in many places, and what is "
        "gained from pairs that share no word is lost",
    ),
    Target(
        "word sequences, soft matches, 30,000 captions",
        "memory beyond captions and result",
        *("<=", 200.0, "MB"),
        scaled(1e-6, found("scale", "word sequences", "extra_bytes")),
    ),
    Target(
        "word sequences, exact matches, 30,000 captions",
        "times soft matches, 2 threads",
        *(">=", 3.0, "x"),
        ratio(seconds(WORDS, n_threads=2), seconds(WORDS, "kernelcore, exact matches", 2)),
    ),
    Target(
        "KCCA, n = 3,000, full rank",
        "times cca-zoo, 1 thread",
        *(">=", 20.0, "x"),
        ratio(seconds(KCCA, "cca-zoo"), seconds(KCCA)),
        reason="both sides are LAPACK: decompositions of two matrices and of their product "
        "here, one generalised problem of twice the size there",
    ),
    *(
        Target(
            "bag of words, cosine, 3,000 images",
            f"times scikit-learn, {n} thread{'s' * (n > 1)}",
            *(">=", 1.0, "x"),
            ratio(seconds(BAGS, "scikit-learn", n), seconds(BAGS, n_threads=n)),
        )
        for n in (1, 2)
    ),
    *(
        Target(
            "landmark features, n = 30,000, 300 landmarks",
            f"times scikit-learn, {n} thread{'s' * (n > 1)}",
            *(">=", 1.0, "x"),
            ratio(seconds(LANDMARKS, "scikit-learn", n), seconds(LANDMARKS, n_threads=n)),
        )
        for n in (1, 2)
    ),
    *(
        Target(
            "partial Gram-Schmidt, n = 3,000, rank 300",
            f"{what}, in times of NumPy without checks, {n} thread{'s' * (n > 1)}",
            *("<=", most, "x"),
            ratio(seconds(PARTIAL, by, n), seconds(PARTIAL, "numpy, by definition", n)),
        )
        for n in (1, 2)
        for what, by, most in (
            ("with all checks", "kernelcore", 1.2),
            ("from a prepared matrix", "kernelcore, prepared", 1.0),
        )
    ),
    Target(
        "KCCA by partial Gram-Schmidt, n = 3,000, rank 300",
        "Gram matrices given",
        *("<=", 0.2, "s"),
        seconds("KCCA by partial Gram-Schmidt, Gram matrices given", n_threads=2),
    ),
    Target(
        "KCCA by columns on demand, n = 30,000, rank 300",
        "memory beyond the samples, in Gram matrices of one view",
        *("<=", 1.0, "x"),
        ratio(
            found("scale", "kernel columns on demand", "extra_bytes"),
            found("scale", "kernel columns on demand", "matrix_bytes"),
        ),
    ),
    Target(
        "KCCA grid, 6 kappa x 15 n, n = 6,000, rank 1,000",
        "in times of one fit",
        *("<=", 2.0, "x"),
        ratio(
            seconds("KCCA grid of 6 x 15 settings", n_threads=2),
            seconds("KCCA grid of 6 x 15 settings", "kernelcore, one fit", 2),
        ),
    ),
    *_assignments("10 x 10", reason="so small a problem is mostly its fixed cost"),
    *_assignments("5 x 50"),
    *_assignments("5 x 86"),
    Target(
        "caption against caption, lookup and assignment",
        "all words similar, pairs a second on 1 thread",
        *(">=", 1e6, "/s"),
        rate("word assignment, all of words similar, all"),
    ),
    Target(
        "caption against caption, lookup and assignment",
        "2 % of all words similar, pairs a second on 1 thread",
        *(">=", 1e6, "/s"),
        rate("word assignment, 2 % of words similar, all"),
    ),
    *(
        Target(
            "one dense assignment 2,000 x 2,000",
            f"float{bits}, times lapjv, 1 thread",
            *(">=", 1.0, "x"),
            ratio(
                seconds(f"one dense assignment, float{bits}", "lapjv"),
                seconds(f"one dense assignment, float{bits}"),
            ),
        )
        for bits in (32, 64)
    ),
    Target(
        "ranks of 5,000 x 25,000, both directions",
        "times sorting every row and column, 1 thread",
        *(">=", 10.0, "x"),
        ratio(seconds(RANKS, "numpy, by sorting"), seconds(RANKS)),
    ),
    Target(
        "R@k of both directions from the scores, 500 x 2,500",
        "times torchmetrics, 1 thread",
        *(">=", 100.0, "x"),
        ratio(seconds(RECALLS, "torchmetrics"), seconds(RECALLS)),
    ),
    Target(
        "R@k of both directions from the scores, 500 x 2,500",
        "times ranx, 1 thread",
        *(">=", 100.0, "x"),
        ratio(seconds(RECALLS, "ranx"), seconds(RECALLS)),
    ),
    Target(
        "ranks streamed from embeddings, 20,000 x 20,000 x 512",
        "in times of the product alone, 2 threads",
        *("<=", 1.2, "x"),
        ratio(
            seconds(STREAMED, n_threads=2),
            seconds(STREAMED, "numpy, the product alone", 2),
        ),
        ratio(
            rate(STREAMED, n_threads=2),
            found("roofline", "2 threads", "best set", "peaks", "fma", "float32"),
        ),
        reason="tiles of one fixed shape, each on one thread of BLAS, make a score depend on "
        "its two vectors alone; one product on all threads shares more of the packing",
    ),
    Target(
        "Fisher randomisation, 100,000 x 1,000 queries, 30 systems",
        "means, 2 threads",
        *("<=", 10.0, "s"),
        seconds("Fisher randomisation, mean, 30 against one", n_threads=2),
    ),
    Target(
        "Fisher randomisation, 100,000 x 1,000 queries, 30 systems",
        "medians, 2 threads",
        *("<=", 10.0, "s"),
        seconds("Fisher randomisation, median, 30 against one", n_threads=2),
    ),
    Target(
        "IBM model 1, 20,000 sentence pairs, 5 iterations",
        "in times of sil-thot, 1 thread",
        *("<=", 1.0, "x"),
        ratio(seconds("IBM model 1"), seconds("IBM model 1", "sil-thot")),
    ),
    Target(
        "Lin word kernel, 5,000 nouns",
        "1 thread",
        *("<=", 10.0, "s"),
        seconds("Lin's similarity"),
    ),
    Target(
        "CIDEr-D, 1,000 captions x 5 references",
        "times pycocoevalcap, 1 thread",
        *(">=", 10.0, "x"),
        ratio(
            seconds("caption metrics, cider_d", "pycocoevalcap"),
            seconds("caption metrics, cider_d"),
        ),
    ),
    Target(
        "dense SIFT, 500 x 375, step 8",
        "times OpenCV, keypoints as large as the step, 1 thread",
        *(">=", 10.0, "x"),
        ratio(
            seconds("dense SIFT, step 8, bins of 12", "opencv"),
            seconds("dense SIFT, step 8, bins of 12"),
        ),
        reason="most of the time are the orientations of all pixels, whatever the grid",
    ),
    Target(
        "whole Tri5Sem experiment",
        "all but the photos' features, 2 threads",
        *("<=", 180.0, "s"),
        found("scale", "Tri5Sem", "seconds_without_photos"),
    ),
    Target(
        "features of 8,000 photos",
        "codebooks, and a sample's time for the rest, extrapolated",
        *("<=", 600.0, "s"),
        found("scale", "photos", "extrapolated_seconds"),
    ),
    Target(
        "growth of a Gram matrix",
        "exponent of time in images",
        *("<=", 2.1, ""),
        found("growth", "histogram intersection, images", "exponent"),
    ),
    Target(
        "growth of landmark features",
        "exponent of time in images",
        *("<=", 1.1, ""),
        found("growth", "landmark features, images", "exponent"),
    ),
    Target(
        "landmark KCCA, 100,000 images x 5 captions",
        "memory of the process",
        *("<=", 8.0, "GB"),
        scaled(1e-9, found("scale", "landmark KCCA", "peak_bytes")),
    ),
    Target(
        "landmark KCCA, 100,000 images x 5 captions",
        "exponent of time in images",
        *("<=", 1.1, ""),
        found("scale", "landmark KCCA", "exponent"),
    ),
)


def stored() -> Results:
    """All measurements by file."""
    return {name: record.load(name)["measurements"] for name in FILES}


def main() -> None:
    for outcome in (outcome_of(target, stored()) for target in TARGETS):
        print(f"{outcome.verdict:18}{describe(outcome)}")
    try:
        evaluate(TARGETS, stored())
    except ReasonError as error:
        sys.exit(f"\nreasons to write or to remove:\n{error}")


if __name__ == "__main__":
    main()
