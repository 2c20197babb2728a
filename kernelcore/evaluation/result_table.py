"""Tables of results of several systems, and published rows beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from kernelcore import _extras
from kernelcore._check import as_list, check_choice, check_real
from kernelcore.evaluation.result import (
    LABELS,
    RANKS,
    Result,
    as_mapping,
    check_line,
    differing_facts,
    fact_of,
    shared_facts,
    text_of,
)
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Published:
    """A row of a published table, to stand beside results of our own.

    Attributes
    ----------
    system : str
        Name of the system in the publication.
    source : str
        The publication and its collection, short: "MSCOCO, Hessel et al. 2019".
    values : mapping of str to float, or of task to such a mapping
        Numbers by the names that `Result.mean` has, shares in [0, 1]:
        ``{"search": {"R@1": 0.08, "median_rank": 34}}``, or ``{"accuracy": 0.8}`` where the
        results have one task. Leave out what is not published.

    Raises
    ------
    TypeError, ValueError
        If `system` or `source` is not one line of text, or `values` holds anything but finite
        numbers.

    See Also
    --------
    ResultTable : Prints it, and refuses numbers that none of its results has.
    """

    system: str
    source: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("system", "source"):
            check_line(name, getattr(self, name))
        values: dict[str, Any] = {}
        for key, value in as_mapping("values", self.values).items():
            where = f"values[{key!r}]"
            values[key] = (
                {name: check_real(f"{where}[{name!r}]", value[name]) for name in value}
                if isinstance(value, Mapping)
                else check_real(where, value)
            )
        object.__setattr__(self, "values", values)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values; what is not published is missing."""
        labels = {"system": self.system, "source": self.source}
        return {"kind": "published result", **labels, "mean": self.values}


Row: TypeAlias = Result | Published
Uncertainty: TypeAlias = Literal["standard_error", "interval"]


@dataclass(frozen=True)
class ResultTable(Tabular):
    r"""Table of the results of several systems and of published rows, one row each.

    Facts that all results share (data set, split, pool, sizes, tie rule, version) stand in the
    caption. A fact that differs gets a column, so that nobody overlooks that two results come
    from different pools. Shares are printed in percent. If no fact differs, the best measured
    value of each column is bold in Markdown, LaTeX and HTML. Published numbers are never bold.

    Attributes
    ----------
    results : tuple of Result or Published
        In the order of the rows, all of the same tasks; at least one was measured.
    metrics : sequence of str, optional
        Metrics to print, by their names in `Result.mean`. The default is `Result.shown`.
    uncertainty : {"standard_error", "interval"}, optional
        What is printed behind every mean: its standard error, or its 95 % interval.

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If nothing was measured, the results do not have the same columns, or a published
        number is none that a measured result has.

    Examples
    --------
    >>> from kernelcore.evaluation import Published, ResultTable, evaluate
    >>> ours = evaluate([[0.9, 0.1], [0.8, 0.3]], ks=(1,), system="ours", split="test")
    >>> theirs = Published(
    ...     "theirs", "Doe 2013", {"annotation": {"R@1": 0.5, "median_rank": 1.5}}
    ... )
    >>> print(ResultTable([ours, theirs]).to_markdown())  # doctest: +ELLIPSIS
    | system | annotation R@1 | annotation median\_rank | search R@1 | search median\_rank |
    | :-- | --: | --: | --: | --: |
    | ours | 50.0 | 1.5 | 100.0 | 1.0 |
    | theirs (Doe 2013) | 50.0 | 1.5 | n/a | n/a |
    <BLANKLINE>
    shares in percent; split test, 2 images, 2 captions, ties mean, kernelcore ...
    """

    results: Sequence[Row]
    metrics: Sequence[str] | None = None
    uncertainty: Uncertainty | None = None

    def __post_init__(self) -> None:
        results = tuple(as_list("results", self.results))
        object.__setattr__(self, "results", results)
        for result in results:
            if not isinstance(result, (Result, Published)):
                raise TypeError(
                    f"results must hold Result or Published, got {type(result).__name__}"
                )
        if self.uncertainty is not None:
            check_choice("uncertainty", self.uncertainty, ("standard_error", "interval"))
        if not self._measured:
            raise ValueError("results must hold at least one measured result, got none")
        if self.metrics is not None:
            object.__setattr__(self, "metrics", tuple(as_list("metrics", self.metrics)))
            for of in (of for own in self._measured for of in own.values.values()):
                for name in self.metrics:
                    check_choice("metrics", name, of)
        first, *others = (
            (tuple(own.values), () if self.metrics else own.columns) for own in self._measured
        )
        for other in others:
            if other != first:
                raise ValueError(f"results must have the same columns, got {first} and {other}")
        for row in results:
            if isinstance(row, Published):
                self._check_published(row)

    def to_table(self) -> Table:
        """Return the table as text cells, which print in every format."""
        measured = self._measured
        tasks, metrics = tuple(measured[0].values), self.metrics or measured[0].columns
        columns = [(task, name) for task in tasks for name in metrics]
        differing = differing_facts(measured)
        rows = [self._cells(row, columns) for row in self.results]
        emphasized = set()
        if len(measured) > 1 and not differing:
            for place, (task, name) in enumerate(columns, start=1):
                best = min if name in RANKS else max
                means = [(i, _number(row, task, name)) for i, row in enumerate(self.results)]
                own = [(i, v) for i, v in means if isinstance(self.results[i], Result)]
                top = best(value for _, value in own if value is not None)
                emphasized |= {(i, place) for i, value in own if value == top}
        n_labels = 1 + len(differing)
        return Table(
            columns=("system", *differing, *(name for _, name in columns)),
            rows=tuple(
                (
                    name_of(row),
                    *(
                        str(fact_of(row, f)) if isinstance(row, Result) else ""
                        for f in differing
                    ),
                    *cells,
                )
                for row, cells in zip(self.results, rows, strict=True)
            ),
            n_labels=n_labels,
            groups=(("", n_labels), *((task, len(metrics)) for task in tasks))
            if len(tasks) > 1
            else (),
            emphasized=frozenset(emphasized),
            caption=";\n".join(self._caption(columns)),
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per result and task.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``source`` (empty for what was measured), ``task``, the labels
            and facts, and the metrics, shares in [0, 1]; what a publication does not give is
            missing.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        rows = []
        for row in self.results:
            for task in self._measured[0].values:
                labels: dict[str, Any] = {"system": row.system, "source": "", "task": task}
                if isinstance(row, Published):
                    labels["source"] = row.source
                    numbers = row.values.get(task, row.values)
                else:
                    labels |= {name: getattr(row, name) for name in LABELS[1:]}
                    labels |= row.facts
                    numbers = row.mean[task]
                plain = {k: v for k, v in numbers.items() if not isinstance(v, Mapping)}
                rows.append({**labels, **plain})
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    @property
    def _measured(self) -> list[Result]:
        return [result for result in self.results if isinstance(result, Result)]

    def _check_published(self, row: Published) -> None:
        """Raise a ValueError for a published number that no measured result has."""
        for task, value in row.values.items():
            own = value if isinstance(value, Mapping) else {task: value}
            tasks = [task] if isinstance(value, Mapping) else list(self._measured[0].values)
            for name in own:
                if not any(
                    name in one.values.get(t, {}) for one in self._measured for t in tasks
                ):
                    raise ValueError(
                        "results must publish numbers that a measured result has, "
                        f"got {name!r} of {name_of(row)}"
                    )

    def _cells(self, row: Row, columns: Sequence[tuple[str, str]]) -> list[str]:
        cells = [text_of(name, _number(row, task, name)) for task, name in columns]
        if isinstance(row, Published) or self.uncertainty is None:
            return cells
        if self.uncertainty == "standard_error":
            errors = row.standard_error
            behind = [
                ""
                if np.isnan(errors[task][name])
                else f" ± {text_of(name, errors[task][name])}"
                for task, name in columns
            ]
        else:
            ends = row.interval()
            behind = [
                f" ({' to '.join(text_of(name, end) for end in ends[task][name])})"
                for task, name in columns
            ]
        return [cell + more for cell, more in zip(cells, behind, strict=True)]

    def _caption(self, columns: Sequence[tuple[str, str]]) -> list[str]:
        """Return facts, chance and the effect of ties, as far as they are known."""
        measured = self._measured
        lines = [f"shares in percent; {shared_facts(measured)}"]
        if self.uncertainty == "standard_error":
            shared = any(result.items is not None for result in measured)
            taken = ", shared items taken into account" if shared else ""
            lines[0] += f"; ± standard error{taken}"
        if self.uncertainty == "interval":
            lines[0] += "; in brackets the 95 % interval"
        lines += _left_out(measured)
        systems: dict[str, list[str]] = {}
        for result in measured:
            chance = result.chance
            shares = [
                " ".join([task, *(f"{100 * chance[task][name]:.3g}" for name in names)])
                for task, own in groupby(columns, key=lambda column: column[0])
                if (
                    names := [n for _, n in own if n in chance.get(task, ()) and n not in RANKS]
                )
            ]
            systems.setdefault(", ".join(shares), []).append(name_of(result))
        for expected, names in systems.items():
            of = f" of {', '.join(names)}" if len(systems) > 1 else ""
            lines += [f"chance{of}: {expected}"] if expected else []
        effects = [
            own.tie_effect[task][name]
            for own in measured
            for task, name in columns
            if name.startswith("R@") and name in own.tie_effect.get(task, ())
        ]
        if effects:
            lines.append(f"ties move R@k by at most {100 * max(effects):.1f}")
        return lines


def _left_out(measured: Sequence[Result]) -> list[str]:
    """Say over how many queries the means are, where some have no value."""
    counts = dict.fromkeys(
        tuple(
            (task, int(np.count_nonzero(~np.isnan(first))), len(first))
            for task, of in result.values.items()
            for first in [next(iter(of.values()))]
        )
        for result in measured
    )
    if len(counts) > 1 or all(known == total for _, known, total in next(iter(counts))):
        return []
    parts = [
        f"{known} of {total} queries of {task}" for task, known, total in next(iter(counts))
    ]
    return [f"means over {' and '.join(parts)}"]


def _number(row: Row, task: str, name: str) -> float | None:
    """Return a mean, None where a publication does not give it."""
    if isinstance(row, Result):
        return row.mean[task].get(name)
    value: float | None = row.values.get(task, row.values).get(name)
    return value


def name_of(row: Row) -> str:
    """Return the name of a row of a table."""
    if isinstance(row, Published):
        return f"{row.system} ({row.source})"
    return row.system or "(unnamed)"
