"""The page docs/performance.md: targets, limits, peers, growth and memory, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import growth_plot
import numpy as np
import peers
import record
import roofline
import timing
from measures import NotMeasuredError, Results, newest_set, rate
from outcomes import ABSENT, Outcome, evaluate, with_unit
from targets import FILES, HI, RECALLS, STREAMED, TARGETS, WORDS, stored

from kernelcore.evaluation import Table

GROWTH = """
Word sequences stay below the square: captions share prefixes, which are read once, and more of
them fill the lanes and tiles better.
""".strip()

SHOWN = (
    (HI, 2),
    ("histogram intersection, CSR", 1),
    (WORDS, 2),
    ("word sequences, soft matches, beside Numba", 2),
    ("word sequences, exact matches, beside strkernels", 1),
    ("KCCA at full rank, smaller", 1),
    ("assignment in batches, 10 x 10, float64", 1),
    ("assignment in batches, 5 x 50, float64", 1),
    (RECALLS, 1),
    ("ranks of both directions", 1),
    (STREAMED, 2),
    ("IBM model 1", 1),
    ("caption metrics, cider_d", 1),
    ("dense SIFT, step 8, bins of 12", 1),
    ("Fisher randomisation, mean, 1 against one", 2),
)
"""Work in the README, with its threads; docs/performance.md has all."""

N_PAPER, N_DIMENSIONS = 400_000, 512
"""Images and captions of embeddings whose ranks are reckoned from a smaller run."""

INTRO = """
Every claim here is a ratio of times that were measured side by side in one process, or a share
of a limit that was measured in the same run. The first answer of everybody is checked, ours
against `kernelcore.reference` and the peers' against ours, before a time counts; ways to do the
same work take turns, the fastest round of each is read, and all of them have the same number of
threads. `python bench/run.py` measures, `python bench/report.py` writes this page from the
files in `bench/results/`: nothing on it is typed by hand but the reasons.
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


def conditions(results_file: str) -> Mapping[str, Any]:
    """What a file of results was measured on."""
    return dict(record.load(results_file)["conditions"])


def machine(results_file: str) -> str:
    """One line on what a file of results was measured on."""
    about = conditions(results_file)
    if not about:
        return "not measured here"
    return (
        f"{about['processor']}, {about['n_cores']} cores, instruction set "
        f"{about['instruction_set']}, {about['compiler']}, Python {about['python']}, "
        f"kernelcore {about['kernelcore']}, commit {'; '.join(commits(results_file))}"
    )


def commits(results_file: str) -> list[str]:
    """Every commit that a file has measurements of."""
    measurements = record.load(results_file)["measurements"].values()
    return sorted({entry["commit"] for entry in measurements})


def target_table(outcomes: list[Outcome]) -> Table:
    """Every target and what became of it."""
    return Table(
        columns=("work", "number", "result", "reason", "target", "measured", "share of limit"),
        rows=tuple(
            (
                one.target.work,
                one.target.claim,
                one.verdict,
                one.target.reason,
                f"{one.target.relation} {with_unit(one.target.bound, one.target.unit)}",
                "" if one.value is None else with_unit(one.value, one.target.unit),
                "" if one.share is None else f"{one.share:.0%}",
            )
            for one in outcomes
        ),
        n_labels=4,
        emphasized=frozenset(
            (row, 2) for row, one in enumerate(outcomes) if one.verdict == "missed"
        ),
    )


def peer_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """One line for each way to do each work, ours first."""
    for entry in results["speed"].values():
        fastest = {by: min(times) for by, times in entry["seconds"].items()}
        ours = next(iter(fastest.values()))
        for by, seconds in fastest.items():
            yield (
                entry["work"],
                entry["shape"],
                by,
                str(threads_of(by, entry["n_threads"])),
                f"{seconds:.3g}",
                with_unit(seconds / ours, ""),
            )
        for by in entry["absent"]:
            yield entry["work"], entry["shape"], by, "", ABSENT, ""


def threads_of(way: str, n_threads: int) -> int:
    """Threads that a way can use of those it is given."""
    name = peers.peer_of(way)
    return n_threads if name is None or peers.PEERS[name].has_threads else 1


def peer_table(results: Results) -> Table:
    """Everybody's times."""
    return Table(
        columns=("work", "size", "by", "threads", "seconds", "times the first"),
        rows=tuple(peer_rows(results)),
        n_labels=3,
    )


def summary() -> str:
    """Table of the README: the times of a few works and the peers' in times of ours."""
    speed = stored()["speed"]
    entries = [speed.get(timing.key_of(*shown)) for shown in SHOWN]
    rows = []
    for entry in filter(None, entries):
        fastest = {by: min(times) for by, times in entry["seconds"].items()}
        ours = next(iter(fastest.values()))
        others = [
            f"{by} {with_unit(seconds / ours, '')}" for by, seconds in list(fastest.items())[1:]
        ]
        rows.append(
            (
                entry["work"],
                entry["shape"],
                "; ".join(others),
                str(entry["n_threads"]),
                f"{ours:.3g}",
            )
        )
    return Table(
        columns=("work", "size", "others, times ours", "threads", "seconds"),
        rows=tuple(rows),
        n_labels=3,
        caption=machine("speed"),
    ).to_markdown()


def growth_table(results: Results) -> Table:
    """Exponents of all curves."""
    return Table(
        columns=("time against", "kept", "sizes", "seconds", "exponent", "of the algorithm"),
        rows=tuple(
            (
                name,
                curve["about"],
                f"{curve['sizes'][0]:,} to {curve['sizes'][-1]:,}",
                f"{curve['seconds'][0]:.2g} to {curve['seconds'][-1]:.2g}",
                f"{curve['exponent']:.2f}",
                f"{curve['expected']:g}",
            )
            for name, curve in results["growth"].items()
        ),
        n_labels=2,
        caption="CPU time of one thread, fastest of several rounds; slope of its logarithm",
    )


def scale_table(results: Results) -> Table:
    """Time and memory of work in a process of its own."""
    sizes = {
        "word sequences": "{n_captions:,} captions, one input",
        "kernel columns on demand": "two views of {n:,} samples, rank {rank}",
        "landmark KCCA": "{n_images:,} images, {n_captions:,} captions, "
        "{n_landmarks} landmarks",
        "photos": "{n_photos} photos; {n_extrapolated:,} extrapolated: "
        "{extrapolated_seconds:.0f} s",
        "evaluation from scores": "{n_images:,} x {n_captions:,}, float32",
        "evaluation from embeddings": "{n_images:,} x {n_captions:,} x {n_dimensions}, float32",
    }
    return Table(
        columns=("work", "size", "seconds", "MB beyond the inputs", "MB of the process"),
        rows=tuple(
            (
                name,
                size.format(**entry),
                f"{entry['seconds']:.1f}",
                f"{entry['extra_bytes'] / 1e6:,.0f}",
                f"{entry['peak_bytes'] / 1e6:,.0f}",
            )
            for name, size in sizes.items()
            if (entry := results["scale"].get(name)) is not None
        ),
        n_labels=2,
        caption=machine("scale"),
    )


def stage_table(results: Results) -> str:
    """Stages of one system of the study."""
    entry = results["scale"].get("Tri5Sem")
    if entry is None:
        return f"One system of the study of 2013, from photos to tests: {ABSENT}."
    return Table(
        columns=("stage of Tri5Sem", "seconds"),
        rows=tuple((name, f"{seconds:.1f}") for name, seconds in entry["stages"].items()),
        caption=f"commit {entry['commit']}",
    ).to_markdown()


def on_paper(results: Results) -> str:
    """Ranks of 400,000 x 400,000 from the rate of a smaller run."""
    try:
        multiply_adds = rate(STREAMED, n_threads=2)(results)
    except NotMeasuredError:
        return f"Ranks of {N_PAPER:,} x {N_PAPER:,}: {ABSENT}."
    hours = float(N_PAPER) ** 2 * N_DIMENSIONS / multiply_adds / 3600
    embeddings = 2 * N_PAPER * N_DIMENSIONS * np.dtype(np.float32).itemsize
    ranks = 2 * N_PAPER * np.dtype(np.float64).itemsize
    matrix = N_PAPER**2 * np.dtype(np.float32).itemsize
    return (
        f"**On paper.** Exact ranks of {N_PAPER:,} images and as many captions, streamed from "
        f"embeddings of {N_DIMENSIONS} dimensions at the rate measured above, "
        f"{multiply_adds / 1e9:.0f} G multiply-adds a second on 2 threads: {hours:.1f} hours. "
        f"The embeddings take {embeddings / 1e9:.1f} GB and the ranks {ranks / 1e6:.1f} MB; "
        f"the matrix of scores, which never exists, would take {matrix / 1e9:.0f} GB."
    )


def condition_table() -> Table:
    """Machine, versions and commit of each file."""
    return Table(
        columns=("results", "measured on"),
        rows=tuple((f"{name}.json", machine(name)) for name in FILES),
        n_labels=2,
    )


def peer_versions() -> str:
    """Versions of the peers in the run of the times."""
    versions = conditions("speed").get("peers", {})
    single = ", ".join(name for name, peer in peers.PEERS.items() if not peer.has_threads)
    return (
        "Peers: "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f". On one thread whatever they are given: {single}."
    )


def share_sentence(results: Results) -> str:
    """How near the newest instruction set comes, in one sentence."""
    by_set = results["roofline"].get("1 thread")
    if by_set is None:
        return f"Shares of the limits: {ABSENT}."
    name = newest_set(by_set)
    shares = ", ".join(f"{work} {part:.0%}" for work, part in by_set[name]["shares"].items())
    return f"Reached with {name} on one thread: {shares}."


def write(docs: Path) -> None:
    """Write the page and its picture.

    Raises
    ------
    outcomes.ReasonError
        If the reasons of the targets do not go with what was measured.
    """
    results = stored()
    outcomes = evaluate(TARGETS, results)
    picture = docs / "images" / "growth.svg"
    growth_plot.draw(results["growth"], picture)
    parts = [
        "# Performance",
        INTRO,
        "## Targets",
        target_table(outcomes).to_markdown(),
        "## Limits of the machine",
        LIMITS,
        share_sentence(results),
        roofline.to_table(record.load("roofline")).to_markdown(),
        "## Peers",
        peer_table(results).to_markdown(),
        peer_versions(),
        "## Growth",
        f"![Time against size, both logarithmic](images/{picture.name})",
        growth_table(results).to_markdown(),
        GROWTH,
        "## Memory, and whole runs",
        scale_table(results).to_markdown(),
        stage_table(results),
        on_paper(results),
        "## Measured on",
        condition_table().to_markdown(),
    ]
    (docs / "performance.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
