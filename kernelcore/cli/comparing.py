"""The command ``compare``: significance tests on values for each item, of any program."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from kernelcore import evaluation
from kernelcore._store import json_value, printable, read_text, reading
from kernelcore.cli.common import given_as, say
from kernelcore.cli.options import Threads
from kernelcore.evaluation import Comparison, Result, Table
from kernelcore.evaluation.trec import Qrels, rank_run, read_qrels, read_run

_IDS = ("doc_id", "query_id", "question_id", "qid", "id", "item")
_NO_METRICS = ("doc_id", "doc", "target")  # of samples of lm-evaluation-harness

Values = Mapping[str, Mapping[str, float]]
"""Metric, item, value."""


def compare(
    files: list[Path],
    *,
    metric: list[str] | None = None,
    id: str | None = None,  # noqa: A002
    qrels: Path | None = None,
    margin: Annotated[float | None, {"min": 0.0}] = None,
    seed: Annotated[int, {"min": 0}] = 0,
    threads: Threads = None,
) -> None:
    """Compare systems.

    Parameters
    ----------
    files : list of path
        One file for each system; the others are compared with the first. Samples of
        lm-evaluation-harness or other JSON lines, CSV, results of evaluate --json, or TREC runs
        with --qrels.
    metric : list of str, optional
        Metric to compare; may be given repeatedly. Default: all that have a number.
    id : str, optional
        Field that names the item. Default: doc_id, query_id, question_id, qid, id or item.
    qrels : path, optional
        TREC file of relevant items; the files are then runs.
    margin : float, optional
        Smallest difference that matters: also test whether systems differ by less.
    seed : int
        Seed of the random reassignments.
    threads : int, optional
        Threads to use. Default: all cores.
    """
    if len(files) < 2:
        raise click.BadParameter("FILES must be at least two, one for each system")
    names = [printable(path.stem) for path in files]
    if len(set(names)) < len(names):
        names = list(map(printable, files))
    judged = None
    if qrels is not None:
        with given_as("--qrels"):
            judged = read_qrels(qrels)
    with given_as("FILES"):
        if all(path.suffix == ".json" for path in files):
            pairs = zip(files, names, strict=True)
            results = [replace(Result.load(path), system=name) for path, name in pairs]
        else:
            found = (_of_run(p, judged) if judged else _values_in(p, id) for p in files)
            results = _paired(dict(zip(names, found, strict=True)), metric)
        comparison = evaluation.compare(
            results, baseline=0, metrics=metric, margin=margin, rng=seed, n_threads=threads
        )
    say(_table(comparison, results))


def _values_in(path: Path, id_field: str | None) -> Values:
    """Return the numbers of a file of JSON lines or CSV."""
    found: dict[str, dict[str, float]] = {}
    for line, row in _rows(path):
        key = id_field or next((name for name in _IDS if name in row), "")
        if key not in row:
            wanted = id_field or " or ".join(_IDS)
            raise ValueError(f"{path}: line {line} must have the field {wanted}: see --id")
        named, part = row.get("metrics"), row.get("filter", "none")
        for name in named if isinstance(named, list) else row:
            try:
                value = float(row.get(name))  # type: ignore[arg-type]
            except (TypeError, ValueError, OverflowError):
                continue
            if name not in (key, *_NO_METRICS):
                of = found.setdefault(name if part == "none" else f"{name},{part}", {})
                if (item := str(row[key])) in of:
                    raise ValueError(f"{path}: line {line} must be a new item, got {item}")
                of[item] = value
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    text = read_text(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        comma = "," if path.suffix.lower() == ".csv" else "\t"
        reader = csv.DictReader(io.StringIO(text), delimiter=comma)
        with reading(path, "must be CSV"):
            yield from ((reader.line_num, row) for row in reader)
        return
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            with reading(path, f"must hold JSON in line {line}"):
                row = json_value(content)
            if not isinstance(row, dict):
                raise ValueError(f"{path}: line {line} must be a JSON object")
            yield line, row


def _of_run(path: Path, qrels: Qrels) -> Values:
    metrics = rank_run(read_run(path), qrels).metrics()
    return {name: dict(zip(qrels, of.tolist(), strict=True)) for name, of in metrics.items()}


def _paired(systems: Mapping[str, Values], wanted: Sequence[str] | None) -> list[Result]:
    """Pair the values of systems by item; raise unless all have the same."""
    first = next(iter(systems))
    metrics = wanted or [m for m in systems[first] if all(m in of for of in systems.values())]
    if not metrics:
        raise ValueError(f"systems must share a metric, and no other has one of {first}")
    for name, own in systems.items():
        for metric in metrics:
            if metric not in own:
                raise ValueError(f"{name} must have the metric {metric}, got {', '.join(own)}")
            odd = sorted(own[metric].keys() ^ systems[first][metric].keys())
            if odd:
                raise ValueError(
                    f"{name} and {first} must have {metric} of the same items, and "
                    f"{len(odd)} are in one alone; the first is {printable(odd[0])}"
                )
    items = dict.fromkeys(item for metric in metrics for item in systems[first][metric])
    return [
        Result(
            {"items": {m: np.array([own[m].get(i, np.nan) for i in items]) for m in metrics}},
            system=name,
        )
        for name, own in systems.items()
    ]


def _table(comparison: Comparison, results: Sequence[Result]) -> Table:
    """One row for each metric and system, with its difference to the first."""
    several = len(results) > 2
    columns = ["metric", "system", "n", "mean", "difference", "p"]
    columns += ["p (Holm)"] * several + ["p (equal)"] * (comparison.margin is not None)
    rows: list[tuple[str, ...]] = []
    tests: dict[str, list[str]] = {}
    for of in comparison.metrics:
        tests.setdefault(of.test, []).append(of.name)
        task = f"{of.task} " if len(results[0].values) > 1 else ""
        n = int(sum(~np.isnan(results[0].values[of.task][of.name])))
        p_values = [of.p_values[0]]
        p_values += [of.adjusted_p_values[0]] * several
        p_values += [of.adjusted_equivalence_p_values[0]] * (comparison.margin is not None)
        for i, name in enumerate(comparison.systems):
            cells = [task + of.name, name, str(n), f"{of.values[i]:.4g}"]
            if i:
                cells.append(f"{of.values[i] - of.values[0]:+.4g}")
                cells += [f"{p[i]:.3g}" for p in p_values]
            rows.append((*cells, *[""] * (len(columns) - len(cells))))
    caption = [f"differences to {comparison.systems[0]}"]
    caption += [f"{test} of {', '.join(names)}" for test, names in tests.items()]
    if comparison.margin is not None:
        caption.append(
            f"p (equal): two one-sided tests of a difference of {comparison.margin:g} or more"
        )
    return Table(
        columns=tuple(columns), rows=tuple(rows), n_labels=2, caption="; ".join(caption)
    )
