"""Write docs/performance.md and the table of speed in the README from the stored results.

    python bench/run.py && python bench/roofline.py  # measure
    python bench/report.py
    python bench/report.py --study hu2019  # write the tables of docs/experiments/hu2019.md

Every number in a table comes from a stored result.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import growth_plot
import peers
import results
import roofline
import run
import scaling_tables
import tables

from kernelcore.cli.reproduce import Studies, study_of
from kernelcore.evaluation import Table

BEGIN, END = "<!-- tables: written by bench/report.py -->", "<!-- /tables -->"
DOCS = results.ROOT / "docs"
STREAMED = "ranks streamed from embeddings, 2 threads"
N_PAPER, N_DIMENSIONS = 400_000, 512
"""Images and captions of embeddings whose ranks are extrapolated from a smaller run."""

INTRO = """
Each number is the time of one way to do some work, as a benchmark of pytest-benchmark. All ways
to do the same work on the same number of threads are a group and run one after the other, in
several passes. The table gives the fastest round of all passes; a ratio of two times is taken
within a pass, and the table gives its median. A way that takes more than four seconds is
measured once, in the first pass. The answer of each way is checked before its time counts:
ours against `kernelcore.reference`, the peers' against ours. A share is a part of a limit that
`bench/roofline.py` measured. `python bench/run.py` measures, `python bench/report.py` writes
this page from `bench/results/`. A peer that is not installed is said to be not measured.
""".strip()

SLOWER = """
All comparisons in which a peer takes less time than kernelcore on the same number of threads.
""".strip()

LIMITS = """
Minimum + addition, multiply-add and the recurrence of word sequences run on registers alone,
with enough independent sums to hide their latency (`bench/roofline.cpp`). Floats >= 0 are
ordered like their bits: the limit takes the faster of comparing them as floats and as integers.
Word sequences of length 3 without gap decay take five operations for each pair of words and
lane, `run1 += m`, `run2 += m kept1`, `run3 += m kept2`, `kept1 += run1`, `kept2 += run2`, two
of them fused. The pairs that cannot be avoided are counted: each word of a row with each
different prefix of all columns, halved by symmetry. What the kernel does beyond that, loads and
stores, looking up similarities, prefixes that two tiles of columns read twice, lanes of shorter
captions, is in its share. Counts are compared in a narrower type where a block of bins fits
into it, and may pass the limit of their own.
""".strip()

GROWTH = """
Word sequences stay below the square: captions share prefixes, which are read once, and more of
them fill the lanes and tiles better.
""".strip()


def machine(about: Mapping[str, Any], commits: Iterable[str]) -> str:
    """One line on what results were measured on."""
    if not about:
        return tables.ABSENT
    return (
        f"{about['processor']}, {about['n_cores']} cores, instruction set "
        f"{about['instruction_set']}, {about['compiler']}, Python {about['python']}, "
        f"kernelcore {about['kernelcore']}, commit {'; '.join(sorted(set(commits)))}"
    )


def machine_of_speed(speed: Mapping[str, Any]) -> str:
    """One line on what the times were measured on."""
    commits = [one["extra_info"]["commit"] for one in speed.get("benchmarks", [])]
    return machine(speed.get("machine_info", {}), commits)


def machine_of_roofline(limits: Mapping[str, Any]) -> str:
    """One line on what the limits were measured on."""
    commits = [by_set["commit"] for by_set in limits.get("measurements", {}).values()]
    return machine(limits.get("conditions", {}), commits)


def speed_summary(speed: Mapping[str, Any]) -> str:
    """Table of the README, and the number of comparisons that a peer wins."""
    groups = tables.groups_of(speed)
    table = tables.summary_table(groups, machine_of_speed(speed)).to_markdown()
    slower = tables.slower_than(groups)
    works = "; ".join(f"{name} ({peer.way})" for _, name, _, peer in slower) or "none"
    link = "[All times, targets and limits](docs/performance.md)"
    return f"{table}\n\nComparisons in which a peer is faster: {works}. {link}."


def on_paper(groups: Mapping[str, tables.Group]) -> str:
    """Ranks of 400,000 x 400,000 from the rate of a smaller run."""
    ours = tables.first_of(groups.get(STREAMED, {}))
    if ours is None:
        return f"Ranks of {N_PAPER:,} x {N_PAPER:,}: {tables.ABSENT}."
    multiply_adds = ours.info["size"] / ours.seconds
    hours = float(N_PAPER) ** 2 * N_DIMENSIONS / multiply_adds / 3600
    embeddings, ranks = 2 * N_PAPER * N_DIMENSIONS * 4, 2 * N_PAPER * 8
    return (
        f"**On paper.** Exact ranks of {N_PAPER:,} images and as many captions, streamed from "
        f"embeddings of {N_DIMENSIONS} dimensions at the rate measured above, "
        f"{multiply_adds / 1e9:.0f} G multiply-adds a second on 2 threads: {hours:.1f} hours. "
        f"The embeddings take {embeddings / 1e9:.1f} GB and the ranks {ranks / 1e6:.1f} MB; "
        f"the matrix of scores, which never exists, would take {N_PAPER**2 * 4 / 1e9:.0f} GB."
    )


def stages(groups: Mapping[str, tables.Group]) -> str:
    """Stages of one system of the study of 2013."""
    group = groups.get("Tri5Sem, time and memory")
    if group is None:
        return f"One system of the study of 2013, from photos to tests: {tables.ABSENT}."
    found = next(iter(group.values())).info["stages"]
    rows = tuple((name, f"{seconds:.1f}") for name, seconds in found.items())
    return Table(columns=("stage of Tri5Sem", "seconds"), rows=rows).to_markdown()


def peer_versions(about: Mapping[str, Any]) -> str:
    """Versions of the peers in the run of the times."""
    versions = ", ".join(f"{name} {number}" for name, number in about.get("peers", {}).items())
    single = ", ".join(name for name, peer in peers.PEERS.items() if not peer.has_threads)
    return f"Peers: {versions}. On one thread whatever they are given: {single}."


def not_run(speed: Mapping[str, Any], functions: Iterable[str]) -> str:
    """Name the test functions of which nothing is stored."""
    stored = {one["fullname"].partition("[")[0] for one in speed.get("benchmarks", [])}
    names = [f"`{name}`" for name in functions if name not in stored]
    return f"Not measured here: {', '.join(names)}." if names else "All benchmarks were run."


def page(speed: Mapping[str, Any], limits: Mapping[str, Any], functions: Iterable[str]) -> str:
    """Text of docs/performance.md."""
    groups = tables.groups_of(speed)
    parts = [
        "# Performance",
        INTRO,
        not_run(speed, functions),
        "## Targets",
        tables.target_table(groups, limits).to_markdown(),
        "## Slower than",
        SLOWER,
        tables.slower_table(groups).to_markdown() if tables.slower_than(groups) else "None.",
        "## Limits of the machine",
        LIMITS,
        roofline.to_table(limits).to_markdown() if limits else f"Limits: {tables.ABSENT}.",
        "## Peers",
        tables.peer_table(groups).to_markdown(),
        peer_versions(speed.get("machine_info", {})),
        "## Growth",
        "![Time against size, both logarithmic](images/growth.svg)",
        tables.growth_table(groups).to_markdown(),
        GROWTH,
        "## Memory, and whole runs",
        tables.memory_table(groups).to_markdown(),
        stages(groups),
        on_paper(groups),
        "## Measured on",
        f"Times and memory: {machine_of_speed(speed)}.",
        f"Limits: {machine_of_roofline(limits)}.",
    ]
    return "\n\n".join(parts) + "\n"


def rewrite(path: Path, sections: Mapping[str, str]) -> None:
    """Put the sections between the two marks of a page."""
    text = "\n\n".join(f"**{heading}**\n\n{table}" for heading, table in sections.items())
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.S)
    text = pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", path.read_text("utf-8"))
    path.write_text(text, encoding="utf-8")


def rewrite_study(name: str) -> None:
    """Put the tables of the result files of a study between the marks of its page."""
    page = DOCS / "experiments" / f"{name}.md"
    text = page.read_text("utf-8")
    for section in study_of(name).sections(results.FOLDER):
        begin, end = f"<!-- results: {section.title} -->", "<!-- /results -->"
        body = "\n\n".join(
            [*section.paragraphs, *(own.to_markdown() for own in section.tables)]
        )
        head, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"{page} must have the mark {begin}")
        text = f"{head}{begin}\n\n{body}\n\n{end}{rest.partition(end)[2]}"
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Write the pages from the stored results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=Studies.summaries, help="write its page alone")
    if name := parser.parse_args().study:
        rewrite_study(name)
        return
    speed, limits = results.load("speed"), results.load("roofline")
    rewrite(
        results.ROOT / "README.md",
        {"Speed beside peers, side by side in one process": speed_summary(speed)},
    )
    scaling = results.load("scaling")
    measured_on = machine(scaling.get("machine", {}), [scaling.get("commit", "")])
    rewrite(DOCS / "scaling.md", scaling_tables.sections(scaling, measured_on))
    growth_plot.draw(tables.curves(tables.groups_of(speed)), DOCS / "images" / "growth.svg")
    text = page(speed, limits, run.collect(["-m", "slow or not slow"]))
    (DOCS / "performance.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
