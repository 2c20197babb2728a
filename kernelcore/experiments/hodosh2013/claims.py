"""Claims in the text of the paper, each tested on our results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import RelevanceResult, RetrievalResult, Table
from kernelcore.evaluation.significance import (
    PairedTest,
    fisher_randomization,
    holm,
    mcnemar,
    paired_bootstrap,
    rank_correlation,
)
from kernelcore.experiments.hodosh2013.systems import BASELINE, SYSTEMS
from kernelcore.models.base import TASKS
from kernelcore.report import Section

LEVEL = 0.05
HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "not significant", "not run"
ALIKE = 0.12
"""Largest difference in hits of systems that are about the same: 2 points of each recall."""
HIGH = 0.9
"""Least rank correlation that is called high."""

_FISHER, _BOOTSTRAP = "randomisation", "bootstrap"

_Values: TypeAlias = npt.NDArray[np.float64]
_Pairs: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Draws:
    """Random draws of the tests.

    Attributes
    ----------
    rng : int
    n_reassignments : int
        Of the randomisation tests.
    n_resamples : int
        Of the queries, for rank correlations.
    n_threads : int or None
    """

    rng: int = 0
    n_reassignments: int = 100_000
    n_resamples: int = 1000
    n_threads: int | None = None

    def randomization(
        self, systems: Any, baseline: Any, *, statistic: Literal["mean", "median"] = "mean"
    ) -> PairedTest:
        """Fisher's test with these draws."""
        return fisher_randomization(
            systems,
            baseline,
            statistic=statistic,
            n_reassignments=self.n_reassignments,
            rng=self.rng,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the result of its test.

    Attributes
    ----------
    text : str
    verdict : str
        `HOLDS`, `FAILS`, `UNDECIDED`, or `NOT_RUN` if a system is missing.
    evidence : str
        The numbers of the test.
    test : str
    p_value : float or None
        Two-sided; the largest of several after Holm's correction.
    """

    text: str
    verdict: str
    evidence: str = ""
    test: str = ""
    p_value: float | None = None


def claims_section(claims: Sequence[Claim]) -> Section:
    """Tabulate the claims."""
    return Section(
        "Claims of the paper",
        (
            "An image and its caption are one query. Its hits are the number of R@1, R@5 and "
            "R@10, over both tasks, for which it counts: 0 to 6. Systems are compared by hits "
            "with Fisher's randomisation test. Claims about every metric use McNemar's test "
            "for recalls and Fisher's for medians. A claim about several pairs holds if every "
            "pair is as claimed with p <= 0.05 after Holm's correction. It does not hold if a "
            "pair differs significantly in the other direction. Otherwise it is not "
            "significant.",
            "Two systems are about the same if the 95 % bootstrap interval of their difference "
            f"is within {ALIKE} hits. A rank correlation is high from {HIGH}. Correlations are "
            "tested by resampling the queries.",
        ),
        (
            Table(
                columns=("claim", "verdict", "evidence", "test", "p"),
                rows=tuple(
                    (
                        claim.text,
                        claim.verdict,
                        claim.evidence,
                        claim.test,
                        "" if claim.p_value is None else f"{claim.p_value:.2g}",
                    )
                    for claim in claims
                ),
                n_labels=4,
            ),
        ),
    )


def check_claims(
    results: Mapping[str, RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    *,
    draws: Draws,
) -> list[Claim]:
    """Test every claim for which there are systems and, if needed, judgments."""
    hits = {name: _hits(result) for name, result in results.items()}
    neighbours = [name for name, s in SYSTEMS.items() if s.ranker == "nearest_neighbour"]
    others = [name for name, s in SYSTEMS.items() if s.ranker == "kcca"]
    above_neighbours = [(better, worse) for better in others for worse in neighbours]
    lexical = [
        name
        for name, s in SYSTEMS.items()
        if s.lexical and s.lexical != ("Lin",) and (s.weights, s.ranker) == ("none", "kcca")
    ]

    def needing(systems: set[str], text: str, test: Callable[[str], Claim]) -> Claim:
        missing = systems - set(results)
        if missing:
            return Claim(text, NOT_RUN, f"without {', '.join(sorted(missing))}")
        return test(text)

    def ordered(text: str, pairs: _Pairs) -> Claim:
        systems = {name for pair in pairs for name in pair}
        return needing(systems, text, lambda text: _ordered(text, pairs, hits, draws))

    claims = [
        ordered("Nearest neighbours are below every kernel CCA", above_neighbours),
        needing(
            {*neighbours, *others},
            "... on every metric",
            lambda text: _ordered_everywhere(text, above_neighbours, results, draws),
        ),
        ordered("BoW1 is below BoW5", [("BoW5", "BoW1")]),
        ordered("BoW1 is below TagRank", [("TagRank", "BoW1")]),
        needing(
            {"BoW5", "TagRank"},
            "BoW5 and TagRank are about the same",
            lambda text: _alike(text, "BoW5", "TagRank", hits, draws),
        ),
        ordered(
            "Every lexical similarity but WordNet's beats plain Tri5",
            [(name, "Tri5") for name in lexical],
        ),
        needing(
            {"Tri5_Lin", "Tri5"},
            "Tri5_Lin is at or below Tri5",
            lambda text: _not_above(text, "Tri5_Lin", "Tri5", hits, draws),
        ),
        ordered(
            f"{BASELINE} is the best system",
            [(BASELINE, name) for name in SYSTEMS if name != BASELINE],
        ),
    ]
    if relevance:
        for task in TASKS:
            text = f"{task}: S@1 is at least about twice R@1"
            test = partial(_twice, task=task, results=results, relevance=relevance, draws=draws)
            claims.append(needing({BASELINE}, text, test))
            if len(results) > 2:
                claims += _correlations(task, results, relevance, draws)
    return claims


def _hits(result: RetrievalResult) -> _Values:
    ranks = np.stack([getattr(result, task).ranks for task in TASKS])
    hits: _Values = np.sum([ranks <= k for k in result.ks], axis=(0, 1)).astype(np.float64)
    return hits


def _ordered(text: str, pairs: _Pairs, hits: Mapping[str, _Values], draws: Draws) -> Claim:
    """Test whether the first system of each pair has more hits than the second."""

    def test(better: _Values, worse: _Values) -> Any:
        return draws.randomization(better, worse)

    pairs, differences, p_values = _test_pairs(pairs, hits, test)
    adjusted = holm(p_values)
    closest = int(differences.argmin())
    evidence = f"{pairs[closest][0]} - {pairs[closest][1]}: {differences[closest]:+.3f} hits"
    if len(pairs) > 1:
        n_held = int(((adjusted <= LEVEL) & (differences > 0)).sum())
        evidence = f"{n_held} of {len(pairs)} pairs significantly; closest: {evidence}"
    return Claim(text, _verdict(differences, adjusted), evidence, _FISHER, adjusted.max())


def _ordered_everywhere(
    text: str, pairs: _Pairs, results: Mapping[str, RetrievalResult], draws: Draws
) -> Claim:
    """Test whether the first system of each pair is better on each metric."""
    differences, p_values = [], []
    for task in TASKS:
        ranks = {name: getattr(result, task).ranks for name, result in results.items()}
        tests: list[Callable[[Any, Any], Any]] = [
            *(
                lambda better, worse, k=k: mcnemar(better, worse, k=k)
                for k in next(iter(results.values())).ks
            ),
            # of negated ranks, so that more is better
            lambda better, worse: draws.randomization(-better, -worse, statistic="median"),
        ]
        for test in tests:
            _, difference, p = _test_pairs(pairs, ranks, test)
            differences.append(difference)
            p_values.append(p)
    everything = np.concatenate(differences)
    adjusted = holm(np.concatenate(p_values))
    n_held = int(((adjusted <= LEVEL) & (everything > 0)).sum())
    return Claim(
        text,
        _verdict(everything, adjusted),
        f"{n_held} of {len(everything)} pairs and metrics significantly, "
        f"{int((everything > 0).sum())} in all",
        "McNemar, randomisation",
        adjusted.max(),
    )


def _test_pairs(
    pairs: _Pairs, values: Mapping[str, Any], test: Callable[[Any, Any], Any]
) -> tuple[_Pairs, _Values, _Values]:
    """Return the pairs, sorted by the second system, their differences and p-values."""
    pairs = sorted(pairs, key=lambda pair: pair[1])
    found = [
        test(np.stack([values[better] for better, _ in group]), values[worse])
        for worse, group in groupby(pairs, key=lambda pair: pair[1])
    ]
    differences = np.concatenate([one.difference for one in found])
    return pairs, differences, np.concatenate([one.p_value for one in found])


def _verdict(differences: _Values, p_values: _Values) -> str:
    significant = p_values <= LEVEL
    if (significant & (differences < 0)).any():
        return FAILS
    return HOLDS if (significant & (differences > 0)).all() else UNDECIDED


def _alike(
    text: str, first: str, second: str, hits: Mapping[str, _Values], draws: Draws
) -> Claim:
    """Test whether the difference of two systems is small."""
    test = paired_bootstrap(hits[first], hits[second], rng=draws.rng, n_threads=draws.n_threads)
    low, high = float(test.low), float(test.high)
    if max(-low, high) < ALIKE:
        verdict = HOLDS
    else:
        verdict = FAILS if low > ALIKE or high < -ALIKE else UNDECIDED
    evidence = (
        f"{first} - {second}: {float(test.difference):+.3f} hits [{low:+.3f}, {high:+.3f}]"
    )
    return Claim(text, verdict, evidence, _BOOTSTRAP, float(test.p_value))


def _not_above(
    text: str, lower: str, upper: str, hits: Mapping[str, _Values], draws: Draws
) -> Claim:
    """Test whether the first system is significantly above the second."""
    test = draws.randomization(hits[lower], hits[upper])
    difference, p = float(test.difference), float(test.p_value)
    evidence = f"{lower} - {upper}: {difference:+.3f} hits"
    verdict = HOLDS if difference <= 0 else FAILS if p <= LEVEL else UNDECIDED
    return Claim(text, verdict, evidence, _FISHER, p)


def _twice(
    text: str,
    *,
    task: str,
    results: Mapping[str, RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    draws: Draws,
) -> Claim:
    """Test whether the first result is relevant twice as often as it is gold."""
    first = (getattr(results[BASELINE], task).ranks == 1).astype(np.float64)
    success = np.asarray(getattr(relevance[BASELINE], task).per_query["S@1"], np.float64)
    test = paired_bootstrap(success, 2 * first, rng=draws.rng, n_threads=draws.n_threads)
    verdict = _verdict(np.atleast_1d(test.difference), np.atleast_1d(test.p_value))
    evidence = f"{BASELINE}: S@1 {100 * success.mean():.1f}, R@1 {100 * first.mean():.1f}"
    return Claim(text, verdict, evidence, _BOOTSTRAP, float(test.p_value))


def _correlations(
    task: str,
    results: Mapping[str, RetrievalResult],
    relevance: Mapping[str, RelevanceResult],
    draws: Draws,
) -> Iterator[Claim]:
    """Test whether R@5, R@10 and the median correlate with R-precision, and R@1 less."""
    ranks = np.stack([getattr(result, task).ranks for result in results.values()])
    precision = np.stack(
        [getattr(relevance[name], task).per_query["R-precision"] for name in results]
    )
    generator = np.random.default_rng(draws.rng)
    found = _spearman(ranks, precision)
    drawn = []
    for _ in range(draws.n_resamples):
        queries = generator.integers(0, ranks.shape[1], ranks.shape[1])
        drawn.append(_spearman(ranks[:, queries], precision[:, queries]))
    named = zip(("R@1", "R@5", "R@10", "median"), found, strict=True)
    evidence = "Spearman: " + ", ".join(f"{name} {rho:.3f}" for name, rho in named)
    alike = "R@5, R@10 and the median order the systems like R-precision"
    claims = {
        f"{task}: {alike}": _least_above_high,
        f"{task}: ... and R@1 less than these": _least_above_first,
    }
    for text, measure in claims.items():
        difference = float(measure(found))
        if np.isnan(difference):
            yield Claim(text, UNDECIDED, f"a metric ties all systems; {evidence}", _BOOTSTRAP)
            continue
        agree = np.sign(difference) * measure(np.array(drawn)) > 0
        p = min(1.0, 2 * (int((~agree).sum()) + 1) / (draws.n_resamples + 1))
        verdict = _verdict(np.array([difference]), np.array([p]))
        yield Claim(text, verdict, evidence, _BOOTSTRAP, p)


def _spearman(ranks: Any, precision: _Values) -> _Values:
    """Return the correlation of R-precision with R@1, R@5, R@10 and the median rank."""
    reference = np.nanmean(precision, axis=1)
    metrics = [*((ranks <= k).mean(axis=1) for k in (1, 5, 10)), -np.median(ranks, axis=1)]
    return np.array([rank_correlation(metric, reference).spearman for metric in metrics])


def _least_above_high(rho: _Values) -> _Values:
    """Return the least margin of R@5, R@10 and the median over a high correlation."""
    above: _Values = rho[..., 1:].min(axis=-1) - HIGH
    return above


def _least_above_first(rho: _Values) -> _Values:
    """Return the least margin of R@5, R@10 and the median over the correlation of R@1."""
    above: _Values = rho[..., 1:].min(axis=-1) - rho[..., 0]
    return above
