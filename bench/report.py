"""Write docs/performance.md and the README's table of speed from the stored results.

    for file in bench/bench_*.py; do
        pytest "$file" --benchmark-json="bench/results/speed/$(basename "$file" .py).json"
    done
    python bench/roofline.py
    python bench/report.py

    python bench/report.py --study hu2019  # write the tables of docs/experiments/hu2019.md

Every number in a table comes from a stored result.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from kernelcore.cli.reproduce import Studies, study_of
from kernelcore.evaluation import Table

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "bench" / "results", ROOT / "docs"
OURS = "kernelcore"
README_ROWS = {
    ("ranks of both directions", 1): "ranks of both directions from a matrix of scores",
    ("histogram intersection, float32", 2): "histogram intersection",
    ("word sequences of single captions, soft matches", 2): "word sequences, soft matches",
    ("KCCA at full rank", 1): "kernel CCA at full rank",
    ("assignments, random costs, float64", 1): "linear assignments",
    ("caption metrics, cider_d", 1): "CIDEr-D",
}
"""Work and threads of the README's rows, each as a reader would say it."""

Group: TypeAlias = dict[str, dict[str, Any]]
"""What is stored of a piece of work of one size, by peer."""


def groups_of(documents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, int], Group]:
    """Benchmarks by work, size and threads."""
    found: dict[tuple[str, str, int], Group] = {}
    for document in documents:
        for one in document["benchmarks"]:
            info = one["extra_info"]
            known = {**info, "seconds": one["stats"]["min"]}
            size = str(info["size"]) + (f", {info['n']}" if "n" in info else "")
            group = found.setdefault((info["work"], size, info["n_threads"]), {})
            group[info["peer"]] = known
    return found


def ratios(group: Group, *, ours: bool = False) -> dict[str, float]:
    """Times of peers, or of other ways of this package, in times of the first way of ours."""
    if OURS not in group:
        return {}
    return {
        peer: entry["seconds"] / group[OURS]["seconds"]
        for peer, entry in group.items()
        if peer != OURS and peer.startswith(OURS) == ours
    }


def number(value: float) -> str:
    """Three digits, for readers."""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def peer_table(groups: Mapping[tuple[str, str, int], Group]) -> Table:
    """One line for each piece of work; those in which a peer is faster stand out."""
    rows, slower = [], set()
    for (work, size, n_threads), group in groups.items():
        if OURS not in group or group[OURS].keys() & {"exponent", "extra_bytes", "sweep"}:
            continue
        theirs = sorted(ratios(group).items(), key=lambda entry: entry[1])
        if theirs and theirs[0][1] < 1:
            slower.add((len(rows), 4))
        variants = ratios(group, ours=True).items()
        rows.append((
            *(work, size, str(n_threads), duration(group[OURS]["seconds"])),
            "; ".join(f"{peer} {number(times)}" for peer, times in theirs),
            "; ".join(f"{peer.partition(', ')[2]} {number(times)}" for peer, times in variants),
        ))  # fmt: skip
    columns = ("work", "size", "threads", "kernelcore", "peers", "other ways of kernelcore")
    return Table(columns, tuple(rows), n_labels=6, emphasized=frozenset(slower))


def sweep_table(groups: Mapping[tuple[str, str, int], Group]) -> Table:
    """One line for each size, one column for each kind: the fastest peer, in times of ours."""
    rows: dict[str, dict[str, str]] = {}
    for (_, size, _), group in groups.items():
        if kind := group.get(OURS, {}).get("sweep"):
            times, peer = min((times, peer) for peer, times in ratios(group).items())
            rows.setdefault(size, {})[kind] = f"{number(times)} {peer}"
    columns = ("problems", *dict.fromkeys(kind for row in rows.values() for kind in row))
    table = tuple((size, *row.values()) for size, row in rows.items())
    return Table(columns, table, n_labels=len(columns))


def slower_than(groups: Mapping[tuple[str, str, int], Group]) -> str:
    """Name every work in which a peer is faster, with its ratio where it is smallest."""
    least: dict[str, float] = {}
    for (work, _, n_threads), group in groups.items():
        for peer, times in ratios(group).items():
            name = f"{work} on {n_threads} thread{'s' * (n_threads > 1)}, {peer}"
            least[name] = min(times, least.get(name, times))
    found = [f"{name} {number(times)}" for name, times in least.items() if times < 1]
    return f"Others are faster in: {'; '.join(found) or 'nothing'}."


def readme_table(groups: Mapping[tuple[str, str, int], Group], caption: str) -> Table:
    """Time of the longest of the sizes, and the range of the peers' ratios over all sizes."""
    rows = []
    for (work, n_threads), text in README_ROWS.items():
        by_size = {key[1]: own for key, own in groups.items() if key[::2] == (work, n_threads)}
        if not by_size:
            continue
        size = max(by_size, key=lambda size: by_size[size][OURS]["seconds"])
        times: dict[str, list[float]] = {}
        for group in by_size.values():
            for peer, one in ratios(group).items():
                times.setdefault(peer, []).append(one)
        ranges = [
            f"{peer} {' to '.join(dict.fromkeys(map(number, (min(own), max(own)))))}"
            for peer, own in sorted(times.items(), key=lambda entry: min(entry[1]))
        ]
        ours = duration(by_size[size][OURS]["seconds"])
        rows.append((f"{text}: {size}", str(n_threads), ours, "; ".join(ranges)))
    columns = ("work", "threads", "kernelcore", "others, in times of ours")
    return Table(columns, tuple(rows), n_labels=4, caption=caption)


def limits_table(limits: Mapping[str, Any]) -> Table:
    """Rates of the newest instruction set, and the shares of all."""
    threads = {key.split()[1]: own for key, own in limits.items() if key.startswith("threads")}
    *older, newest = next(iter(threads.values()))
    rows = []
    for n_threads, by_set in threads.items():
        best = by_set[newest]
        peaks = {**best["peaks"]["min_add"], **best["peaks"]["best_min_add"]}
        for work in best["shares"]:
            is_sequences = work not in peaks
            peak = best["peaks"]["sequence_steps"] if is_sequences else peaks[work]
            rate = best["sequence_steps"] if is_sequences else best["two_inputs"][work]
            one_input = "" if is_sequences else f"{best['one_input'][work] / 1e9:.1f}"
            shares = [f"{by_set[isa]['shares'][work]:.0%}" for isa in (newest, *older[::-1])]
            name = work if is_sequences else f"histogram intersection, {work}"
            rates = f"{peak / 1e9:.1f}", f"{rate / 1e9:.1f}"
            rows.append((name, n_threads, *rates, shares[0], one_input, *shares[1:]))
    columns = ["work", "threads", "limit", "kernel", "share of the limit", "one input"]
    columns += [f"share, {isa}" for isa in older[::-1]]
    return Table(
        tuple(columns),
        tuple(rows),
        n_labels=2,
        caption=f"G units a second with {newest}: minima, and pairs of words",
    )


def curves_of(groups: Mapping[tuple[str, str, int], Group]) -> Iterator[tuple[Any, ...]]:
    """Title, what is kept, sizes, seconds, and the exponent of the algorithm of each curve."""
    curves: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (work, _, _), group in groups.items():
        if "exponent" in group[OURS]:
            curves.setdefault((work, group[OURS]["size"]), []).append(group[OURS])
    for about, points in curves.items():
        points.sort(key=lambda point: point["n"])
        columns = (np.array([point[key] for point in points]) for key in ("n", "seconds"))
        yield *about, *columns, points[0]["exponent"]


def growth_table(groups: Mapping[tuple[str, str, int], Group]) -> Table:
    """Exponents of all curves."""
    rows = []
    for *about, n, seconds, exponent in curves_of(groups):
        slope = np.polyfit(np.log(n), np.log(seconds), 1)[0]
        ends = f"{n[0]:,} to {n[-1]:,}", f"{seconds[0]:.2g} to {seconds[-1]:.2g}"
        rows.append((*about, *ends, f"{slope:.2f}", str(exponent)))
    columns = ("time against", "kept", "sizes", "seconds", "exponent", "of the algorithm")
    return Table(columns, tuple(rows), n_labels=2)


def draw_growth(groups: Mapping[tuple[str, str, int], Group], path: Path) -> None:
    """A panel for each curve, with a line of the slope of the algorithm."""
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    for axes, (title, _, n, seconds, exponent) in zip(
        figure.subplots(3, 4).flat, curves_of(groups), strict=True
    ):
        axes.loglog(n, 1000 * seconds, "o-")
        axes.loglog(n, 1000 * seconds[-1] * (n / n[-1]) ** exponent, ":", color="grey")
        axes.set(xticks=n, xticklabels=[f"{n[0]:,}", *[""] * (len(n) - 2), f"{n[-1]:,}"])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(which="minor", labelleft=False, bottom=False, labelbottom=False)
        axes.set_title(title.replace(", ", "\nagainst "), fontsize="small")
    figure.supylabel("milliseconds")
    figure.savefig(path, dpi=80)


def memory_table(groups: Mapping[tuple[str, str, int], Group]) -> Table:
    """Time and memory of large problems."""
    rows = tuple(
        (
            *(work, size, f"{own['seconds']:.1f}"),
            *(f"{own[name] / 1e6:,.0f}" for name in ("extra_bytes", "peak_bytes")),
        )
        for (work, size, _), group in groups.items()
        for own in group.values()
        if "extra_bytes" in own
    )
    columns = ("work", "size", "seconds", "MB beyond the inputs", "MB of the process")
    return Table(columns, rows, n_labels=2)


def versions(groups: Mapping[tuple[str, str, int], Group]) -> str:
    """Version of each library that was measured."""
    entries = [own for group in groups.values() for own in group.values() if "version" in own]
    found = {re.match(r"\w+", own["peer"])[0]: own["version"] for own in entries}
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def machine(about: Mapping[str, Any], commit: str) -> str:
    """One line on what results were measured on."""
    return (
        f"{about['processor']}, {about['n_cores']} cores, instruction set "
        f"{about['instruction_set']}, {about['compiler']}, Python {about['python']}, "
        f"kernelcore {about['kernelcore']}, commit {commit[:10]}"
    )


def fill(page: Path, sections: Mapping[str, str]) -> None:
    """Put text between the marks of a page."""
    text = page.read_text("utf-8")
    for title, body in sections.items():
        begin, end = f"<!-- results: {title} -->", "<!-- /results -->"
        head, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"{page} must have the mark {begin}")
        text = f"{head}{begin}\n\n{body}\n\n{end}{rest.partition(end)[2]}"
    page.write_text(text, encoding="utf-8")


def study_sections(name: str) -> Iterator[tuple[str, str]]:
    """Tables of the result files of a study."""
    for section in study_of(name).sections(RESULTS):
        tables = [table.to_markdown() for table in section.tables]
        yield section.title, "\n\n".join([*section.paragraphs, *tables])


def main() -> None:
    """Write the pages from the stored results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=Studies.summaries, help="write its page alone")
    if name := parser.parse_args().study:
        fill(DOCS / "experiments" / f"{name}.md", dict(study_sections(name)))
        return
    # pytest-benchmark leaves an empty file where it ran nothing.
    paths = [path for path in sorted(RESULTS.glob("speed/*.json")) if path.stat().st_size]
    documents = [json.loads(path.read_text()) for path in paths]
    limits = json.loads((RESULTS / "roofline.json").read_text())
    groups = groups_of(documents)
    runs: dict[str, list[str]] = {}
    for path, one in zip(paths, documents, strict=True):
        run = machine(one["machine_info"], one["commit_info"]["id"])
        runs.setdefault(run, []).append(path.stem.removeprefix("bench_"))
    measured_on = "; ".join(f"{run} ({', '.join(names)})" for run, names in runs.items())
    speed = readme_table(groups, measured_on).to_markdown()
    fill(ROOT / "README.md", {"speed": speed})
    memory, limits_of = memory_table(groups), machine(limits["machine"], limits["commit"])
    sections = {
        "slower": slower_than(groups),
        "peers": f"{peer_table(groups).to_markdown()}\n\nVersions: {versions(groups)}.",
        "sweep": sweep_table(groups).to_markdown(),
        "limits": limits_table(limits).to_markdown(),
        "growth": growth_table(groups).to_markdown(),
        "memory": memory.to_markdown() if memory.rows else "Not measured yet.",
        "machine": f"Times: {measured_on}.\n\nLimits: {limits_of}.",
    }
    fill(DOCS / "performance.md", sections)
    draw_growth(groups, DOCS / "images" / "growth.png")


if __name__ == "__main__":
    main()
