"""Claims of the paper: what each says, how it is tested, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import Table
from kernelcore.evaluation.significance import holm, mcnemar, paired_bootstrap
from kernelcore.experiments.hodosh2013.draws import Draws, bootstrap_p_value
from kernelcore.report import Section

LEVEL = 0.05
HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "does not hold", "not shown", "not run"
FISHER, MCNEMAR, BOOTSTRAP = "randomisation", "McNemar", "bootstrap"

Floats: TypeAlias = npt.NDArray[np.float64]
Pairs: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the result of its test.

    Attributes
    ----------
    text : str
    verdict : str
        `HOLDS`, `FAILS`, `UNDECIDED`, or `NOT_RUN` if something is missing.
    evidence : str
        The numbers of the test.
    test : str
    p_value : float or None
        Two-sided, after Holm's correction: the largest if all of several tests have to be
        significant, the smallest if none may be.
    """

    text: str
    verdict: str
    evidence: str = ""
    test: str = ""
    p_value: float | None = None


class Measure(NamedTuple):
    """One value of each system for each query.

    Attributes
    ----------
    values : mapping of str to ndarray of float64, shape (n_queries,)
        By system; more is better. NaN where a query has no value.
    kind : {"success", "mean", "median"}
        What is compared: shares of successes, which are 0 or 1, means or medians.
    """

    values: Mapping[str, Floats]
    kind: Literal["success", "mean", "median"] = "mean"


class _Tested(NamedTuple):
    """Difference of two systems on a measure, and its p-value."""

    measure: str
    first: str
    second: str
    difference: float
    p_value: float
    test: str = FISHER

    def __str__(self) -> str:
        return f"{self.first} - {self.second}: {self.difference:+.3f} {self.measure}"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Tests of claims about differences of systems.

    Attributes
    ----------
    measures : mapping of str to Measure
    draws : Draws
    """

    measures: Mapping[str, Measure]
    draws: Draws

    def above(self, text: str, pairs: Pairs, on: Sequence[str]) -> Claim:
        """Test whether the first system of each pair is above the second on each measure."""
        if missing := self._missing(pairs, on):
            return Claim(text, NOT_RUN, f"without {', '.join(missing)}")
        tested = list(self._tests(pairs, on))
        p_values = holm([one.p_value for one in tested])
        differences = np.array([one.difference for one in tested])
        weakest = int((np.sign(differences) * (1 - p_values)).argmin())
        evidence = str(tested[weakest])
        if len(tested) > 1:
            n_held = int(((p_values <= LEVEL) & (differences > 0)).sum())
            evidence = (
                f"{n_held} of {len(tested)} significantly, {int((differences > 0).sum())} in "
                f"all; weakest: {evidence}"
            )
        verdict = verdict_of(differences, p_values)
        return Claim(text, verdict, evidence, _names(tested), float(p_values.max()))

    def alike(
        self, text: str, pairs: Pairs, on: Sequence[str], *, may_be_below: bool = False
    ) -> Claim:
        """Test whether no pair differs significantly on any measure.

        The first systems may be below the second ones if the claim allows it.
        """
        if missing := self._missing(pairs, on):
            return Claim(text, NOT_RUN, f"without {', '.join(missing)}")
        tested = list(self._tests(pairs, on))
        p_values = holm([one.p_value for one in tested])
        if may_be_below:
            p_values = np.where([one.difference > 0 for one in tested], p_values, 1.0)
        furthest = int(p_values.argmin())
        evidence = f"{len(tested)} tests; furthest apart: " if len(tested) > 1 else ""
        evidence += f"{tested[furthest]}{self._interval(tested[furthest])}"
        verdict = FAILS if p_values[furthest] <= LEVEL else HOLDS
        return Claim(text, verdict, evidence, _names(tested), float(p_values[furthest]))

    def _missing(self, pairs: Pairs, on: Sequence[str]) -> list[str]:
        missing = [name for name in on if name not in self.measures]
        if missing:
            return missing
        known = set.intersection(*(set(self.measures[name].values) for name in on))
        return sorted({name for pair in pairs for name in pair} - known)

    def _tests(self, pairs: Pairs, on: Sequence[str]) -> Iterator[_Tested]:
        """Test all pairs on all measures; all means by the same reassignments."""
        means = []
        for name in on:
            values, kind = self.measures[name]
            if kind == "mean":
                means += [(name, first, second) for first, second in pairs]
            elif kind == "median":
                yield from self._of_medians(name, pairs)
            else:
                for first, second in pairs:
                    ours, theirs = (of == 1 for of in _known(values[first], values[second]))
                    if len(ours):
                        found = mcnemar(ours, theirs)
                        result = float(found.difference), float(found.p_value)
                    else:
                        result = 0.0, 1.0
                    yield _Tested(name, first, second, *result, MCNEMAR)
        if means:
            rows = np.stack(
                [
                    self.measures[name].values[first] - self.measures[name].values[second]
                    for name, first, second in means
                ]
            )
            for one, row, p in zip(means, rows, self.draws.sign_flips(rows), strict=True):
                known = row[~np.isnan(row)]
                yield _Tested(*one, float(known.mean()) if len(known) else 0.0, float(p))

    def _of_medians(self, name: str, pairs: Pairs) -> Iterator[_Tested]:
        """Test the medians of all pairs with the same second system at once."""
        values = self.measures[name].values
        ordered = sorted(pairs, key=lambda pair: pair[1])
        for second, group in groupby(ordered, key=lambda pair: pair[1]):
            systems = [first for first, _ in group]
            found = self.draws.randomization(
                np.stack([values[first] for first in systems]),
                values[second],
                statistic="median",
            )
            results = zip(systems, found.difference, found.p_value, strict=True)
            for first, difference, p in results:
                yield _Tested(name, first, second, float(difference), float(p))

    def _interval(self, one: _Tested) -> str:
        """Return the 95 % bootstrap interval of a difference as text."""
        values, kind = self.measures[one.measure]
        first, second = _known(values[one.first], values[one.second])
        if not len(first):
            return ""
        found = paired_bootstrap(
            first,
            second,
            statistic="median" if kind == "median" else "mean",
            rng=self.draws.rng,
            n_threads=self.draws.n_threads,
        )
        return f" [{float(found.low):+.3f}, {float(found.high):+.3f}]"


def verdict_of(differences: npt.ArrayLike, p_values: npt.ArrayLike) -> str:
    """Return the verdict on a claim that all differences are positive."""
    differences, significant = np.asarray(differences), np.asarray(p_values) <= LEVEL
    if (significant & (differences < 0)).any():
        return FAILS
    return HOLDS if (significant & (differences > 0)).all() else UNDECIDED


def drawn_claim(
    text: str, observed: npt.ArrayLike, drawn: Sequence[Floats], evidence: str
) -> Claim:
    """Test whether all of several numbers are positive, by their bootstrap standard errors.

    Parameters
    ----------
    text : str
    observed : array_like of float, shape (n_numbers,)
        NaN where a number is not defined.
    drawn : sequence of ndarray of float64, shape (n_resamples,)
        The same numbers in resamples; NaN where one is not defined.
    evidence : str
    """
    numbers = np.asarray(observed, dtype=np.float64)
    if np.isnan(numbers).any():
        return Claim(text, UNDECIDED, f"not defined; {evidence}", BOOTSTRAP)
    found = [bootstrap_p_value(*of) for of in zip(numbers, drawn, strict=True)]
    p_values = holm(found)
    verdict = verdict_of(numbers, p_values)
    return Claim(text, verdict, evidence, BOOTSTRAP, float(p_values.max()))


def claims_section(claims: Sequence[Claim]) -> Section:
    """Tabulate the claims."""
    return Section(
        "Claims of the paper",
        (
            "An image and its caption are one query. Its hits are the number of R@1, R@5 and "
            "R@10, over both tasks, for which it counts: 0 to 6. Successes (R@k, S@k, an "
            "expert score at or above a threshold) are compared by McNemar's test; medians, "
            "and means of hits, R-precision, BLEU, ROUGE and expert scores by Fisher's "
            "randomisation test. Median ranks have a minus sign, so that more is better. "
            "Expert scores are compared on the images where both first captions were judged; "
            "an image's own caption that no expert saw counts as 4. P-values are corrected by "
            "Holm's method for the tests of one claim.",
            "A claim that systems are above others holds if every difference is in this "
            f"direction with p <= {LEVEL}. It does not hold if one is significant in the other "
            "direction. Otherwise it is not shown. A claim of no significant difference holds "
            "if none is significant here either. That does not show that the systems are "
            "equal, so the difference furthest apart stands beside it with its 95 % interval.",
            "S@1 is at least twice R@1 if first results are relevant but not gold at least as "
            "often as they are gold. Kappas and correlations are tested by their standard "
            "errors over resamples of the images, correlations above zero as Fisher's z. The "
            "paper says that some metrics correlate well and others not highly, without a "
            "bound. The claims here are that a correlation is above zero, and that one is "
            "above another. A number is lost where it cannot be read in the text that we have.",
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


def _known(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the values of the queries that both systems have."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return first[both], second[both]


def _names(tested: Iterable[_Tested]) -> str:
    return ", ".join(dict.fromkeys(one.test for one in tested))
