"""What the paper's prose claims, tested one by one on what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import (
    RelevanceResult,
    RetrievalResult,
    Table,
    fisher_randomization,
    holm,
    paired_bootstrap,
    rank_correlation,
)
from kernelcore.experiments.hodosh2013.systems import SYSTEMS
from kernelcore.report import Section

LEVEL = 0.05
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not significant"

_TASKS = ("annotation", "search")
_N_DRAWS = 1000

_Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what became of it.

    Attributes
    ----------
    text : str
    verdict : str
        "holds", "does not hold", "not significant", or "not run" where a system is missing.
    evidence : str
        The numbers behind the verdict.
    p_value : float or None
        Two-sided; the largest of several after Holm's correction.
    """

    text: str
    verdict: str
    evidence: str = ""
    p_value: float | None = None


def claims_section(claims: Sequence[Claim]) -> Section:
    """Tabulate the claims."""
    return Section(
        "Claims of the paper",
        (
            "Two systems are compared by the hits of a query, the sum over both tasks of how "
            "many of R@1, R@5 and R@10 it counts for (an image and its caption are one query), "
            "with Fisher's randomisation test. A claim about several pairs holds if every pair "
            "is as claimed with p <= 0.05 after Holm's correction, does not hold if one is "
            "significantly the other way round, and is not significant otherwise.",
        ),
        (
            Table(
                columns=("claim", "verdict", "evidence", "p"),
                rows=tuple(
                    (
                        c.text,
                        c.verdict,
                        c.evidence,
                        "" if c.p_value is None else f"{c.p_value:.2g}",
                    )
                    for c in claims
                ),
                n_labels=3,
            ),
        ),
    )


def check_claims(
    results: Mapping[str, RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    *,
    seed: int,
) -> list[Claim]:
    """Test every claim for which the systems were run and, where needed, people judged."""
    hits = {name: _hits(result) for name, result in results.items()}
    neighbours = [name for name, s in SYSTEMS.items() if s.ranker == "nearest_neighbour"]
    others = [name for name, s in SYSTEMS.items() if s.ranker == "kcca"]
    lexical = [
        f"Tri5_{similarity}"
        for similarity in (
            "D_out", "D_ic", "D_out,ic", "A", "A,D_out", "A,D_ic", "A,D_out,ic"
        )
    ]  # fmt: skip

    def ordered(text: str, pairs: Sequence[tuple[str, str]]) -> Claim:
        missing = {name for pair in pairs for name in pair} - set(results)
        if missing:
            return Claim(text, "not run", f"without {', '.join(sorted(missing))}")
        return _ordered(text, pairs, hits, seed)

    claims = [
        ordered(
            "Nearest neighbours are below every kernel CCA",
            [(better, worse) for better in others for worse in neighbours],
        ),
        _below_on_every_metric("... on every metric", results, worse=neighbours, better=others),
        ordered("BoW1 is below BoW5", [("BoW5", "BoW1")]),
        ordered("BoW1 is below TagRank", [("TagRank", "BoW1")]),
        _alike("BoW5 and TagRank are about the same", "BoW5", "TagRank", hits, seed),
        ordered(
            "Every lexical similarity but WordNet's beats plain Tri5",
            [(name, "Tri5") for name in lexical],
        ),
        _not_above("Tri5_Lin is at or below Tri5", "Tri5_Lin", "Tri5", hits, seed),
        ordered(
            "Tri5Sem is the best system",
            [("Tri5Sem", name) for name in SYSTEMS if name != "Tri5Sem"],
        ),
    ]
    if relevance:
        claims += _success_is_twice_recall(results, relevance, seed)
        claims += _correlations(results, relevance, seed)
    return claims


def _hits(result: RetrievalResult) -> _Values:
    ranks = np.stack([getattr(result, task).ranks for task in _TASKS])
    hits: _Values = np.sum([ranks <= k for k in result.ks], axis=(0, 1)).astype(np.float64)
    return hits


def _compare(better: _Values, worse: _Values, seed: int) -> tuple[float, float]:
    test = fisher_randomization(better, worse, rng=seed)
    return float(test.difference), float(test.p_value)


def _ordered(
    text: str, pairs: Sequence[tuple[str, str]], hits: Mapping[str, _Values], seed: int
) -> Claim:
    """Whether the first of each pair is above the second."""
    pairs = sorted(pairs, key=lambda pair: pair[1])
    tests = [
        fisher_randomization(
            np.stack([hits[better] for better, _ in group]), hits[worse], rng=seed
        )
        for worse, group in groupby(pairs, key=lambda pair: pair[1])
    ]
    differences = np.concatenate([test.difference for test in tests])
    p_values = holm(np.concatenate([test.p_value for test in tests]))
    significant = p_values <= LEVEL
    if (significant & (differences < 0)).any():
        verdict = FAILS
    else:
        verdict = HOLDS if (significant & (differences > 0)).all() else UNDECIDED
    closest = int(differences.argmin())
    evidence = f"{pairs[closest][0]} - {pairs[closest][1]}: {differences[closest]:+.3f} hits"
    if len(pairs) > 1:
        n_held = int((significant & (differences > 0)).sum())
        evidence = f"{n_held} of {len(pairs)} pairs significantly; closest: {evidence}"
    return Claim(text, verdict, evidence, float(p_values.max()))


def _below_on_every_metric(
    text: str,
    results: Mapping[str, RetrievalResult],
    *,
    worse: Sequence[str],
    better: Sequence[str],
) -> Claim:
    """Whether the best of some systems is below the worst of others, whatever is measured."""
    if not {*worse, *better} <= set(results):
        return Claim(text, "not run")
    values = {
        name: [
            value
            for task in _TASKS
            for of in (getattr(result, task),)
            for value in (*of.recall.values(), -of.median_rank)
        ]
        for name, result in results.items()
    }
    highest = np.max([values[name] for name in worse], axis=0)
    lowest = np.min([values[name] for name in better], axis=0)
    n_below = int((highest < lowest).sum())
    evidence = f"all below all in {n_below} of {len(lowest)} metrics"
    return Claim(text, HOLDS if n_below == len(lowest) else FAILS, evidence)


def _alike(text: str, first: str, second: str, hits: Mapping[str, _Values], seed: int) -> Claim:
    """Whether two systems do not differ significantly."""
    if not {first, second} <= set(hits):
        return Claim(text, "not run")
    difference, p = _compare(hits[first], hits[second], seed)
    evidence = f"{first} - {second}: {difference:+.3f} hits"
    return Claim(text, HOLDS if p > LEVEL else FAILS, evidence, p)


def _not_above(
    text: str, lower: str, upper: str, hits: Mapping[str, _Values], seed: int
) -> Claim:
    """Whether the first system is not significantly above the second."""
    if not {lower, upper} <= set(hits):
        return Claim(text, "not run")
    difference, p = _compare(hits[lower], hits[upper], seed)
    evidence = f"{lower} - {upper}: {difference:+.3f} hits"
    verdict = (
        FAILS if difference > 0 and p <= LEVEL else HOLDS if difference <= 0 else UNDECIDED
    )
    return Claim(text, verdict, evidence, p)


def _success_is_twice_recall(
    results: Mapping[str, RetrievalResult], relevance: Mapping[str, RelevanceResult], seed: int
) -> Iterator[Claim]:
    name = "Tri5Sem" if "Tri5Sem" in results else list(results)[-1]
    for task in _TASKS:
        first = (getattr(results[name], task).ranks == 1).astype(np.float64)
        success = np.asarray(getattr(relevance[name], task).per_query["S@1"], np.float64)
        test = paired_bootstrap(success, 2 * first, rng=seed)
        difference, p = float(test.difference), float(test.p_value)
        verdict = UNDECIDED if p > LEVEL else HOLDS if difference > 0 else FAILS
        ratio = success.mean() / first.mean() if first.any() else np.inf
        yield Claim(
            f"{task}: S@1 is at least about twice R@1",
            verdict,
            f"{name}: S@1 / R@1 = {ratio:.2f}",
            p,
        )


def _correlations(
    results: Mapping[str, RetrievalResult], relevance: Mapping[str, RelevanceResult], seed: int
) -> Iterator[Claim]:
    """Whether R@5, R@10 and the median order systems as R-precision does, R@1 less so."""
    if len(results) < 3:
        return
    for task in _TASKS:
        ranks = np.stack([getattr(result, task).ranks for result in results.values()])
        precision = np.stack(
            [getattr(relevance[name], task).per_query["R-precision"] for name in results]
        )
        found = _spearman(ranks, precision)
        generator = np.random.default_rng(seed)
        drawn = []
        for _ in range(_N_DRAWS):
            queries = generator.integers(0, ranks.shape[1], ranks.shape[1])
            of = _spearman(ranks[:, queries], precision[:, queries])
            drawn.append(min(of[1:]) - of[0])
        difference = min(found[1:]) - found[0]
        n_opposite = np.count_nonzero(np.sign(difference) * np.array(drawn) <= 0)
        p = min(1.0, 2 * (n_opposite + 1) / (_N_DRAWS + 1))
        verdict = UNDECIDED if p > LEVEL else HOLDS if difference > 0 else FAILS
        yield Claim(
            f"{task}: R@5, R@10 and the median order systems as R-precision does, R@1 less so",
            verdict,
            "Spearman's rho with R-precision: "
            + ", ".join(
                f"{name} {rho:.3f}"
                for name, rho in zip(("R@1", "R@5", "R@10", "median"), found, strict=True)
            ),
            p,
        )


def _spearman(ranks: Any, precision: _Values) -> list[float]:
    """Correlation of R-precision with R@1, R@5, R@10 and the median, over systems."""
    reference = np.nanmean(precision, axis=1)
    metrics: list[Callable[[Any], _Values]] = [
        *(lambda of, k=k: (of <= k).mean(axis=1) for k in (1, 5, 10)),
        lambda of: -np.median(of, axis=1),
    ]
    return [rank_correlation(metric(ranks), reference).spearman for metric in metrics]
