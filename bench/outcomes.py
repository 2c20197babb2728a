"""Targets, and what became of them.

A missed target has a reason. A reason for a target that is met, or none for one that is
missed, is an error: the prose is to be written anew whenever that changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from measures import Measure, NotMeasuredError, Results

Verdict: TypeAlias = Literal["met", "missed", "not measured here"]
MET: Verdict = "met"
MISSED: Verdict = "missed"
ABSENT: Verdict = "not measured here"


@dataclass(frozen=True)
class Target:
    """A number to reach.

    Attributes
    ----------
    work : str
        What is done.
    claim : str
        What the number says.
    relation : {">=", "<="}
    bound : float
    unit : str
        "x" for a multiple, "%" for a share, which is stored as a fraction.
    measure : Measure
        How the number is formed.
    share : Measure, optional
        Part of a measured limit of the machine that is reached.
    reason : str
        Why it is missed.
    """

    work: str
    claim: str
    relation: Literal[">=", "<="]
    bound: float
    unit: str
    measure: Measure
    share: Measure | None = None
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """A target and what was measured."""

    target: Target
    value: float | None
    share: float | None
    verdict: Verdict


class ReasonError(ValueError):
    """Reasons that do not go with what was measured."""


def evaluate(targets: Sequence[Target], results: Results) -> list[Outcome]:
    """Measure every target.

    Raises
    ------
    ReasonError
        If a missed target has no reason, or a met one has; names all of them.
    """
    outcomes = [outcome_of(target, results) for target in targets]
    wrong = [
        f"{describe(outcome)}: {'needs a reason' if outcome.verdict == MISSED else 'is met'}"
        for outcome in outcomes
        if outcome.verdict != ABSENT
        and (outcome.verdict == MISSED) != bool(outcome.target.reason)
    ]
    if wrong:
        raise ReasonError("\n".join(wrong))
    return outcomes


def outcome_of(target: Target, results: Results) -> Outcome:
    """Measure one target, whatever its reason."""
    value, share = number(target.measure, results), None
    if target.share is not None:
        share = number(target.share, results)
    if value is None:
        return Outcome(target, None, share, ABSENT)
    reached = value >= target.bound if target.relation == ">=" else value <= target.bound
    return Outcome(target, value, share, MET if reached else MISSED)


def number(measure: Measure, results: Results) -> float | None:
    """Value of a measure, None where it was not measured."""
    try:
        return measure(results)
    except NotMeasuredError:
        return None


def describe(outcome: Outcome) -> str:
    """One line for the terminal."""
    target = outcome.target
    value = "" if outcome.value is None else f"{with_unit(outcome.value, target.unit)}, "
    bound = with_unit(target.bound, target.unit)
    return f"{target.work}, {target.claim}: {value}{target.relation} {bound}"


def with_unit(value: float, unit: str) -> str:
    """Format a number for readers."""
    if unit == "%":
        return f"{value:.0%}"
    if unit == "/s":
        return f"{value / 1e6:.2g} M/s"
    text = f"{value:.3g}" if value < 100 else f"{value:,.0f}"
    return f"{text}{unit}" if unit == "x" else f"{text} {unit}".rstrip()
