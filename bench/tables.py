"""Numbers and tables from the stored benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from results import TARGET, threads_of

from kernelcore.evaluation import Table

ABSENT = "not measured here"


@dataclass(frozen=True)
class Benchmark:
    """One way to do some work.

    Attributes
    ----------
    way : str
    passes : dict of str to float
        Seconds of the fastest round by pass.
    info : dict
        Its `extra_info`, see `measure` in conftest.py.
    """

    way: str
    passes: Mapping[str, float]
    info: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """Fastest round."""
        return min(self.passes.values())

    def cells(self, *names: str) -> tuple[str, ...]:
        """Cells of a table; those that the benchmark does not tell are empty."""
        return tuple(str(self.info.get(name, "")) for name in names)


Group: TypeAlias = dict[str, Benchmark]
"""Measured ways to do the same work on the same number of threads."""


def groups_of(document: Mapping[str, Any]) -> dict[str, Group]:
    """All groups of a file of results."""
    found: dict[str, Group] = {}
    for one in document.get("benchmarks", []):
        info = one["extra_info"]
        way = Benchmark(info["way"], info["passes"], info)
        found.setdefault(one["group"], {})[way.way] = way
    return found


def first_of(group: Group) -> Benchmark | None:
    """Our way that all others are compared with; None where it was not measured."""
    return next((one for one in group.values() if "ways" in one.info), None)


def peers_of(group: Group) -> list[Benchmark]:
    """Ways of others."""
    return [one for one in group.values() if one.info.get("is_peer")]


def ratio(above: Benchmark, below: Benchmark) -> float | None:
    """Quotient of two times: the median of those taken within one pass."""
    shared = above.passes.keys() & below.passes.keys()
    return median(above.passes[k] / below.passes[k] for k in shared) if shared else None


def exponent(group: Group) -> float:
    """Slope of the logarithm of time over the logarithm of size: the median over passes."""
    sizes = np.log([float(size) for size in group])
    passes = [one.passes for one in group.values()]
    shared = set.intersection(*map(set, passes))
    return median(
        float(np.polyfit(sizes, np.log([seconds[k] for seconds in passes]), 1)[0])
        for k in shared
    )


def share(one: Benchmark, limits: Mapping[str, Any]) -> float | None:
    """Part of a measured limit of the machine that a way reaches."""
    by_set = limits.get("measurements", {}).get(threads_of(one.info["n_threads"]))
    limit = one.info.get("limit")
    if by_set is None or limit is None:
        return None
    best = by_set[newest_set(by_set)]
    if limit in best["shares"]:
        return float(best["shares"][limit])
    kind, dtype = limit.split()
    return float(one.info["size"] / one.seconds / best["peaks"][kind][dtype])


def newest_set(by_set: Mapping[str, Any]) -> str:
    """Name of the instruction set with the widest vectors."""
    return max(name for name in by_set if name != "commit")


def value_of(
    text: str, one: Benchmark, group: Group, limits: Mapping[str, Any]
) -> tuple[float | None, bool]:
    """Measure the number of a target, and say whether it is reached."""
    number, relation, bound, beside = TARGET.fullmatch(text).groups()
    if number in ("speed", "time"):
        others = peers_of(group) if beside == "best peer" else [group.get(beside)]
        times = [ratio(other, one) for other in others if other is not None]
        known = [value for value in times if value is not None]
        least = min(known, default=None)
        value = least if least is None or number == "speed" else 1 / least
    elif number == "seconds":
        value = one.seconds
    elif number == "rate":
        value = one.info["size"] / one.seconds
    elif number == "share":
        value = share(one, limits)
    elif number == "exponent":
        value = exponent(group) if len(group) > 1 else None
    else:
        value = one.info.get(number)
    if value is None:
        return None, False
    return value, value >= float(bound) if relation == ">=" else value <= float(bound)


def number_text(value: float | None) -> str:
    """Format a number for readers."""
    if value is None:
        return ABSENT
    if value >= 1e6:
        return f"{value / 1e6:,.3g} million" if value < 1e9 else f"{value / 1e9:,.3g} billion"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def target_table(groups: Mapping[str, Group], limits: Mapping[str, Any]) -> Table:
    """Every target of the measured benchmarks and what became of it."""
    rows, missed = [], set()
    for name, group in groups.items():
        for one in group.values():
            for target in one.info.get("targets", ()):
                value, is_met = value_of(target["text"], one, group, limits)
                result = "met" if is_met else ABSENT if value is None else "missed"
                reason = (target["reason"] or "not explained") if result == "missed" else ""
                part = share(one, limits)
                if result == "missed":
                    missed.add((len(rows), 3))
                about = (f"{name}: {one.way}", *one.cells("shape"), target["text"])
                percent = "" if part is None else f"{part:.0%}"
                rows.append((*about, result, reason, number_text(value), percent))
    return Table(
        columns=("work and way", "size", "target", "result", "reason", "measured", "share"),
        rows=tuple(rows),
        n_labels=5,
        emphasized=frozenset(missed),
    )


def slower_than(groups: Mapping[str, Group]) -> list[tuple[float, str, Benchmark, Benchmark]]:
    """All peers that are faster: their time in times of ours, the group, and both."""
    found = []
    for name, group in groups.items():
        if (ours := first_of(group)) is not None:
            times = [(ratio(peer, ours), name, ours, peer) for peer in peers_of(group)]
            found += [one for one in times if one[0] is not None and one[0] < 1]
    return sorted(found, key=lambda one: one[0])


def slower_table(groups: Mapping[str, Group]) -> Table:
    """Everything in which a peer is faster."""
    rows = [
        (
            *(name, *ours.cells("shape"), peer.way),
            *(f"{ours.seconds:.3g}", f"{peer.seconds:.3g}", number_text(times)),
        )
        for times, name, ours, peer in slower_than(groups)
    ]
    columns = ("work", "size", "slower than", "seconds", "theirs", "time, relative to ours")
    return Table(columns=columns, rows=tuple(rows), n_labels=3)


def missing_of(group: Group) -> list[str]:
    """Ways that a benchmark has and that were not measured."""
    ours = first_of(group)
    return [] if ours is None else [way for way in ours.info["ways"] if way not in group]


def peer_rows(groups: Mapping[str, Group]) -> Iterator[tuple[str, ...]]:
    """One line for each way to do each work, ours first."""
    for group in groups.values():
        ours, some = first_of(group), next(iter(group.values()))
        if "exponent" in some.info or "extra_bytes" in some.info:
            continue
        if ours is None:
            yield (*some.cells("work", "shape"), "kernelcore", "", ABSENT, "", "")
        for one in group.values():
            about = (*one.cells("work", "shape"), one.way, *one.cells("n_threads"))
            times = number_text(ratio(one, ours) if ours else None)
            yield (*about, f"{one.seconds:.3g}", times, str(len(one.passes)))
        for way in missing_of(group):
            yield (*some.cells("work", "shape"), way, "", ABSENT, "", "")


def peer_table(groups: Mapping[str, Group]) -> Table:
    """Everybody's times."""
    columns = ("work", "size", "by", "threads", "seconds", "times the first", "passes")
    return Table(columns=columns, rows=tuple(peer_rows(groups)), n_labels=3)


FRONT = {
    "R@1, R@5 and R@10 of both tasks, 1 thread": "recalls of 500 photos and 2,500 captions",
    "histogram intersection, float32, two inputs, 2 threads": (
        "histogram intersections of 2,000 by 2,000 photos, 13,440 bins"
    ),
    "word sequences, exact matches, beside strkernels, 1 thread": (
        "word sequences that 5,000 captions share"
    ),
    "KCCA at full rank, smaller, 1 thread": "kernel CCA of 2,000 items, full rank",
    "assignment in batches, 10 x 10, float64, 1 thread": "20,000 assignments of 10 to 10",
    "caption metrics, cider_d, 1 thread": "CIDEr-D of 1,000 captions, 5 references each",
}
"""Groups in the README, each as a reader would say it."""


def summary_table(groups: Mapping[str, Group], caption: str) -> Table:
    """Table of the README: the times of a few works and the peers' in times of ours."""
    rows = []
    for name, work in FRONT.items():
        ours = first_of(groups.get(name, {}))
        if ours is None:
            rows.append((work, ABSENT, ""))
            continue
        found = [(ratio(peer, ours), peer.way) for peer in peers_of(groups[name])]
        ratios = sorted((one for one in found if one[0] is not None), reverse=True)
        texts = [f"{way} {number_text(times)}" for times, way in ratios]
        texts += [f"{way} {ABSENT}" for way in missing_of(groups[name])]
        rows.append((work, time_text(ours.seconds), ", ".join(texts)))
    columns = ("work", "kernelcore", "others, in times of ours")
    return Table(columns=columns, rows=tuple(rows), n_labels=3, caption=caption)


def time_text(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def curves(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Groups whose ways are sizes, in their order."""
    found = {}
    for group in groups.values():
        ordered = {way: group[way] for way in sorted(group, key=lambda w: w.zfill(9))}
        info = next(iter(ordered.values())).info
        if "exponent" in info and len(group) > 1:
            found[info["work"].removeprefix("growth of ")] = ordered
    return found


def growth_table(groups: Mapping[str, Group]) -> Table:
    """Exponents of all curves."""
    rows = []
    for name, group in curves(groups).items():
        smallest, *_, largest = group.values()
        sizes = f"{int(smallest.way):,} to {int(largest.way):,}"
        seconds = f"{smallest.seconds:.2g} to {largest.seconds:.2g}"
        about = (name, *smallest.cells("shape"), sizes, seconds, f"{exponent(group):.2f}")
        rows.append((*about, *smallest.cells("exponent")))
    return Table(
        columns=("time against", "kept", "sizes", "seconds", "exponent", "of the algorithm"),
        rows=tuple(rows),
        n_labels=2,
        caption="Fastest round; slope of the logarithm, the median over passes",
    )


def memory_table(groups: Mapping[str, Group]) -> Table:
    """Time and memory of large problems."""
    ways = [one for group in groups.values() for one in group.values()]
    rows = [
        (
            *(*one.cells("work", "shape"), f"{one.seconds:.1f}"),
            *(f"{one.info[name] / 1e6:,.0f}" for name in ("extra_bytes", "peak_bytes")),
        )
        for one in ways
        if "extra_bytes" in one.info
    ]
    columns = ("work", "size", "seconds", "MB beyond the inputs", "MB of the process")
    return Table(columns=columns, rows=tuple(rows), n_labels=2)
