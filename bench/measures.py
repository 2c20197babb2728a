"""Numbers formed from stored results.

A measure is a function of all results; it raises `NotMeasuredError` where one of its parts is
missing, because a peer is not installed or a benchmark has not been run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import peers
import timing

Results: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Measurements by file and key."""
Measure: TypeAlias = Callable[[Results], float]

OURS = "kernelcore"


class NotMeasuredError(LookupError):
    """A result that a number needs is not stored."""


def entry(results: Results, work: str, n_threads: int) -> Mapping[str, Any]:
    """What was measured of a piece of work."""
    key = timing.key_of(work, n_threads)
    try:
        return dict(results["speed"][key])
    except KeyError:
        raise NotMeasuredError(key) from None


def seconds(work: str, by: str = OURS, n_threads: int = 1) -> Measure:
    """Fastest round of one way to do the work."""

    def measure(results: Results) -> float:
        times = entry(results, work, n_threads)["seconds"]
        if by not in times:
            raise NotMeasuredError(f"{work} by {by}")
        return float(min(times[by]))

    return measure


def best_peer(work: str, n_threads: int = 1) -> Measure:
    """Fastest round of the fastest peer."""

    def measure(results: Results) -> float:
        times = entry(results, work, n_threads)["seconds"]
        others = [min(values) for by, values in times.items() if peers.peer_of(by) is not None]
        if not others:
            raise NotMeasuredError(f"{work} by a peer")
        return float(min(others))

    return measure


def rate(work: str, by: str = OURS, n_threads: int = 1) -> Measure:
    """Units of work a second."""

    def measure(results: Results) -> float:
        size = float(entry(results, work, n_threads)["size"])
        return size / seconds(work, by, n_threads)(results)

    return measure


def ratio(above: Measure, below: Measure) -> Measure:
    """Quotient of two measures."""
    return lambda results: above(results) / below(results)


def scaled(factor: float, measure: Measure) -> Measure:
    """The measure in another unit."""
    return lambda results: factor * measure(results)


def slowest(*measures: Measure) -> Measure:
    """Greatest of several measures."""
    return lambda results: max(measure(results) for measure in measures)


def found(file: str, *path: str) -> Measure:
    """A number of another file of results; "best set" is the newest instruction set."""

    def measure(results: Results) -> float:
        value: Any = results.get(file, {})
        for part in path:
            if not isinstance(value, Mapping):
                raise NotMeasuredError(f"{file}: {', '.join(path)}")
            name = newest_set(value) if part == "best set" else part
            if name not in value:
                raise NotMeasuredError(f"{file}: {', '.join(path)}")
            value = value[name]
        return float(value)

    return measure


def newest_set(by_set: Mapping[str, Any]) -> str:
    """Name of the instruction set with the widest vectors."""
    return max(name for name in by_set if name != "commit")
