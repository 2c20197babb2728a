"""Tables of the page of a study, from its result files alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import Published, Result, ResultTable, Table
from kernelcore.evaluation.significance import fisher_randomization, holm
from kernelcore.experiments.result_files import SystemFile
from kernelcore.experiments.scores import hub_corrected_name, printed
from kernelcore.models.base import TASKS
from kernelcore.report import Section

Files: TypeAlias = Mapping[str, SystemFile]
"""The files of a study by system."""

ALL_CAPTIONS = "all captions"


def main_sections(
    files: Files,
    systems: Sequence[str],
    baseline: str,
    published: Mapping[str, Published],
    *,
    pool: str = ALL_CAPTIONS,
) -> Iterator[Section]:
    """Make the tables that a page begins with: five rows, and all systems with differences.

    Parameters
    ----------
    files : mapping of str to SystemFile
    systems : sequence of str
        In the order of the paper.
    baseline : str
        The paper's main system.
    published : mapping of str to Published
        Published row of a system, by its name here.
    pool : str
    """
    known = [name for name in (baseline, printed(baseline)) if name in {*systems, *files}]
    best = best_on_dev(files, systems)
    if best is not None:
        known += [name for name in (best, hub_corrected_name(best)) if name in files]
    first = [published[baseline]] if baseline in published else []
    yield section("Summary", result_table(files, [*first, *dict.fromkeys(known)], pool))
    rows = list(beside_published(files, systems, published))
    rows += [name for name in known if name not in rows]
    results = result_table(files, rows, pool)
    names = [name for name in rows if isinstance(name, str)]
    differences = difference_table(files, names, baseline, pool)
    yield section("Results", side_by_side(("", results), ("", differences)))


def published_rows(
    source: str,
    table: str,
    metrics: Sequence[str] = ("R@1", "R@5", "R@10", "median_rank"),
    tasks: Sequence[str] = TASKS,
) -> tuple[Published, ...]:
    """Read a published table, in percent but for ranks.

    A line has the name of a system, and the metrics of each task; "-" is not published.
    """
    rows = []
    for line in table.strip().splitlines():
        name, *cells = line.strip().rsplit(maxsplit=len(tasks) * len(metrics))
        values: dict[str, dict[str, float]] = {task: {} for task in tasks}
        for (task, metric), cell in zip(product(tasks, metrics), cells, strict=True):
            if cell != "-":
                values[task][metric] = float(cell) / (1 if metric == "median_rank" else 100)
        rows.append(Published(name, source, values))
    return tuple(rows)


def section(title: str, *tables: Table) -> Section:
    """Return a section of the tables that have rows."""
    shown = [table for table in tables if table.rows]
    return Section(title, () if shown else ("Not run.",), shown)


def beside_published(
    files: Files, systems: Iterable[str], published: Mapping[str, Published]
) -> Iterator[str | Published]:
    """Give each system, the same as printed, and its published row."""
    for name in systems:
        yield name
        if printed(name) in files:
            yield printed(name)
        if name in published:
            yield published[name]


def side_by_side(*tables: tuple[str, Table]) -> Table:
    """Join tables by the names in their first columns; what one lacks is left empty.

    The columns of a table without groups of its own stand under the heading beside it.
    """
    shown = [(heading, table) for heading, table in tables if table.rows]
    rows = {row[0]: [row[0]] for _, table in shown for row in table.rows}
    places = {name: i for i, name in enumerate(rows)}
    columns, groups, emphasized = ["system"], [("", 1)], set()
    for heading, table in shown:
        known = {row[0]: row[1:] for row in table.rows}
        for place, (i, j) in ((len(columns) - 1, own) for own in table.emphasized):
            emphasized.add((places[table.rows[i][0]], place + j))
        columns += table.columns[1:]
        (title, span), *others = table.groups or ((heading, len(table.columns)),)
        groups += [own for own in ((title, span - 1), *others) if own[1]]
        for name in rows:
            rows[name] += known.get(name, ("",) * (len(table.columns) - 1))
    return Table(
        tuple(columns),
        tuple(map(tuple, rows.values())),
        groups=tuple(groups) if any(heading for heading, _ in groups) else (),
        emphasized=frozenset(emphasized),
        caption=";\n".join(filter(None, (table.caption for _, table in shown))),
    )


def result_table(
    files: Files, rows: Iterable[str | Published], of: str, **options: Any
) -> Table:
    """Tabulate results of systems beside published rows; a system without a file is not run.

    A system with other results only is left out.

    Parameters
    ----------
    files : mapping of str to SystemFile
    rows : iterable of str or Published
        Systems by name, and published rows.
    of : str
        Name of the pool, or of the questions, in `SystemFile.results`.
    **options
        For `ResultTable`.
    """
    known: list[Result | Published] = []
    missing = []
    for row in rows:
        if isinstance(row, Published):
            known += [row] if on_test(files) else []
        elif row not in files:
            missing.append(row)
        elif of in files[row].results:
            known.append(files[row].results[of])
    if not any(isinstance(one, Result) for one in known):
        return Table(("system",), ())
    table = ResultTable(known, **options).to_table()
    return replace(table, caption="; ".join(filter(None, (table.caption, not_run(missing)))))


def not_run(systems: Sequence[str]) -> str:
    """Name systems without a file."""
    return f"not run: {', '.join(systems)}" if systems else ""


def on_test(files: Files) -> bool:
    """Whether all results are of the test split, which the published figures are of."""
    return all(own.split == "test" for file in files.values() for own in file.results.values())


def difference_table(
    files: Files, systems: Iterable[str], baseline: str, pool: str = ALL_CAPTIONS
) -> Table:
    """Test the differences of all systems to one of them, photo by photo."""
    means = {
        name: recalls_of(files[name], pool)
        for name in systems
        if name in files and pool in files[name].results
    }
    columns = ("system", "mean recall", f"difference to {baseline}", "p, Holm")
    others = [name for name in means if name != baseline]
    if baseline not in means or not others:
        return Table(columns, ())
    theirs = np.array([means[name] for name in others])
    p_values = holm(np.asarray(fisher_randomization(theirs, means[baseline], rng=0).p_value))
    tested = {
        name: (paired_gain(means[name], means[baseline]), f"{p:.2g}")
        for name, p in zip(others, p_values, strict=True)
    }
    return Table(
        columns,
        tuple(
            (name, f"{own.mean():.1f}", *tested.get(name, ("", "")))
            for name, own in means.items()
        ),
        caption="the mean recall is that of the six recalls, with the standard error of "
        "differences; p of Fisher's randomisation test with 100,000 reassignments, in which a "
        "photo and its captions are one item, after Holm's correction: it says nothing about "
        "other runs of training",
    )


def recalls_of(file: SystemFile, pool: str = ALL_CAPTIONS) -> npt.NDArray[np.float64]:
    """Mean recall of each photo in a pool, see `photo_recalls`."""
    result = file.results[pool]
    if len(result.values["search"]["R@1"]) == len(result.values["annotation"]["R@1"]):
        return photo_recalls(result)
    photos, captions = (file.arrays[name].astype(int) for name in ("photos", "captions"))
    return photo_recalls(result, np.repeat(photos, captions))


def photo_recalls(
    result: Result, owners: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.float64]:
    """Mean recall of each photo in percent, over the k and both tasks.

    The captions of a photo stay together. If all photos have equally many, the mean over the
    photos is the mean recall of the system.

    Parameters
    ----------
    result : Result
    owners : ndarray of int, optional
        Photo of each caption; by default caption i belongs to photo i.
    """
    cutoffs = [name for name in result.columns if name.startswith("R@")]
    annotation, search = (
        np.mean([result.values[task][name] for name in cutoffs], axis=0) for task in TASKS
    )
    if owners is not None:
        search = np.bincount(owners, search) / np.bincount(owners)
    recalls: npt.NDArray[np.float64] = 50 * (annotation + search)
    return recalls


def paired_gain(ours: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64]) -> str:
    """Write the mean difference of paired values, and its standard error."""
    gains = ours - theirs
    return f"{gains.mean():+.2f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.2f}"


def source_name(file: str) -> str:
    """Name of a source of judgments: that of its file without the ending."""
    return file.removesuffix("Annotations.txt")


def selection_section(
    files: Files, systems: Iterable[str], published: Sequence[Published] = ()
) -> Section:
    """Tabulate the accuracy of binary image selection for each source of triples.

    Published accuracies of the same systems stand beside ours.
    """
    names = [name for name in systems if name in files]
    by_source: dict[str, Result] = {}
    for source, result in (own for name in names for own in files[name].results.items()):
        if "selection" in result.values:
            by_source.setdefault(source, result)
    tables = []
    for source, result in by_source.items():
        table = result_table(files, names, source, uncertainty="interval")
        heading = source_name(source)
        about = f"{heading}: {result.facts['n_triples']} triples, {result.facts['selections']}"
        tables.append((heading, replace(table, caption=about)))
    if tables and published and on_test(files):
        shares = {row.system: 100 * row.values["selection"]["accuracy"] for row in published}
        rows = tuple((name, f"{share:.1f}") for name, share in shares.items())
        tables.append((published[0].source, Table(("system", "accuracy"), rows)))
    joined = side_by_side(*tables)
    about = "In percent, in brackets the 95 % interval"
    return section(
        "Binary image selection", replace(joined, caption=f"{about};\n{joined.caption}")
    )


def _figures(number: float) -> str:
    """Write four figures, and all digits before the point."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def number_table(
    rows: Mapping[str, Mapping[str, float]], *, label: str = "system", caption: str = ""
) -> Table:
    """Tabulate named numbers, of which a row may lack some."""
    columns = list(dict.fromkeys(column for own in rows.values() for column in own))
    return Table(
        (label, *columns),
        tuple(
            (name, *(_figures(own[column]) if column in own else "" for column in columns))
            for name, own in rows.items()
        ),
        caption=caption,
    )


def numbers_of(
    files: Files, systems: Iterable[str], group: str
) -> dict[str, Mapping[str, float]]:
    """Return a group of numbers of each system that has it, see `SystemFile.numbers`."""
    known = [name for name in systems if name in files and group in files[name].numbers]
    return {name: files[name].numbers[group] for name in known}


def run_section(files: Files, systems: Iterable[str]) -> Section:
    """Tabulate training, time, version and commit of each system.

    The time of a training that was resumed is that of all its epochs. Systems without epochs
    share a row with their whole time.
    """
    rows: list[tuple[str, ...]] = []
    others: dict[tuple[str, ...], list[str]] = {}
    for name, file in ((name, files[name]) for name in systems if name in files):
        run = file.machine, file.version, file.commit
        losses = [epoch["dev_loss"] for epoch in file.history]
        if not losses:
            others.setdefault(run, []).append(name)
            continue
        kept = f"{int(np.argmin(losses)) + 1} of {len(losses)}"
        trained = sum(epoch.get("seconds", 0.0) for epoch in file.history)
        minutes = f"{max(file.seconds, trained) / 60:.1f}"
        rows.append((name, kept, f"{min(losses):.4f}", minutes, *run))
    for about, names in others.items():
        minutes = f"{sum(files[name].seconds for name in names) / 60:.1f}"
        rows.append(("; ".join(names), "", "", minutes, *about))
    columns = ("system", "epoch kept", "dev loss", "minutes", "machine", "version", "commit")
    missing = not_run([name for name in systems if name not in files])
    return section("Runs", Table(columns, tuple(rows), caption=missing))


def best_on_dev(files: Files, systems: Iterable[str]) -> str | None:
    """Return the system with the lowest loss on ``dev``, None if no loss is known."""
    losses = {name: dev_loss(files[name]) for name in systems if name in files}
    known = {name: loss for name, loss in losses.items() if not np.isnan(loss)}
    return min(known, key=known.__getitem__) if known else None


def dev_loss(file: SystemFile) -> float:
    """Return the lowest loss on ``dev``, of rankers 1 less the mean recall; NaN if unknown."""
    if file.history:
        return min(epoch["dev_loss"] for epoch in file.history)
    return 1 - float(file.settings.get("best_sum_on_dev", np.nan)) / 6
