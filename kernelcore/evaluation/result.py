"""Results: labelled numbers of one system, published rows, and tables of both."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import kernelcore
from kernelcore import _extras
from kernelcore._check import as_list, check_choice, check_flag
from kernelcore._store import json_value, load_json, reading, save_json
from kernelcore.evaluation.labels import (
    as_settings,
    check_label,
    differing_facts,
    shared_facts,
)
from kernelcore.evaluation.metrics import TaskMetrics
from kernelcore.evaluation.published import TASKS, Published, places
from kernelcore.evaluation.table import Table, Tabular, plain

if TYPE_CHECKING:
    import pandas

_RANKS = ("median", "mean")


class Column(NamedTuple):
    """A column of numbers in a table of results.

    Attributes
    ----------
    key : str
        Name of the number in `Result.mean`.
    heading : str
    task : {"annotation", "search", ""}
        Where results have numbers of both tasks, the task of this one.
    is_share : bool
        Whether it is printed in percent.
    best : callable or None
        Which of several values is emphasized: `max`, `min`, or none.
    """

    key: str
    heading: str
    task: str = ""
    is_share: bool = True
    best: Callable[[Iterable[float]], float] | None = max

    def value(self, row: Result | Published) -> float | None:
        """Return the number of a row, None where a publication does not give it."""
        numbers = row.values if isinstance(row, Published) else row.mean
        of_task = numbers.get(self.task, {}) if self.task else numbers
        value: float | None = of_task.get(self.key)
        return value

    def text(self, value: float | None) -> str:
        """Return the text of a cell."""
        if value is None:
            return "n/a"
        return f"{100 * value:.1f}" if self.is_share else f"{value:.1f}"


_Result = TypeVar("_Result", bound="Result")


@dataclass(frozen=True, kw_only=True)
class Result(Tabular):
    """Base of results: numbers of one system, with labels, settings, files and tables.

    Attributes
    ----------
    system, protocol, dataset, split : str
        The system, the protocol, the dataset and its split. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.
    """

    system: str = ""
    protocol: str = ""
    dataset: str = ""
    split: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    version: str = kernelcore.__version__

    _kind: ClassVar[str]
    _labels: ClassVar[tuple[str, ...]] = ("system", "protocol", "dataset", "split", "version")
    _tasks: ClassVar[tuple[str, ...]] = ("",)  # whose columns a table repeats
    _options: ClassVar[tuple[str, ...]] = ()  # of a table that this kind knows
    _unit: ClassVar[str] = "In percent"

    def __post_init__(self) -> None:
        for name in self._labels:
            check_label(name, getattr(self, name))
        object.__setattr__(self, "settings", as_settings(self.settings))

    @property
    @abstractmethod
    def mean(self) -> Mapping[str, Any]:
        """The main numbers by name, shares in [0, 1]; of two tasks, a mapping for each task."""

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return all numbers as plain values."""

    @classmethod
    @abstractmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a document of `_numbers`; a missing one is a KeyError."""

    @abstractmethod
    def _columns(self, table: ResultTable) -> list[Column]:
        """Return the columns of one task that a table prints unless it is given `metrics`."""

    @classmethod
    def _column(cls, metric: str) -> Column:
        """Return the column of one of `values`."""
        return Column(metric, metric)

    def _cell(self, column: Column, table: ResultTable) -> str:
        """Return the text of a cell."""
        return column.text(column.value(self))

    @classmethod
    def _notes(cls, results: Sequence[Any], table: ResultTable) -> str:
        """Return the end of the caption of a table."""
        return ""

    def to_table(self) -> Table:
        """Return a table of one row, shares in percent; see `ResultTable`."""
        return ResultTable([self]).to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame of one row, or one per task; see `ResultTable.to_frame`."""
        return ResultTable([self]).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return all labels and numbers as plain values, with the numbers of every query."""
        return {
            "kind": self._kind,
            **{name: getattr(self, name) for name in self._labels},
            "settings": dict(self.settings),
            **self._numbers(),
        }

    @classmethod
    def from_dict(cls: type[_Result], document: Mapping[str, Any]) -> _Result:
        """Restore a result from `to_dict`; means over queries are computed again."""
        if not isinstance(document, Mapping) or document.get("kind") != cls._kind:
            raise ValueError(f"document must say that it holds a {cls._kind}, and it does not")
        try:
            return cls(
                settings=document["settings"],
                **{name: document[name] for name in cls._labels},
                **cls._as_fields(document),
            )
        except KeyError as error:
            raise ValueError(f"document must hold {error}, and it does not") from None

    def to_json(self) -> str:
        """Return the JSON text of `to_dict`."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls: type[_Result], text: str) -> _Result:
        """Restore a result from `to_json`; damaged text is a ValueError."""
        try:
            document = json_value(text)
        except (RecursionError, ValueError) as error:
            raise ValueError(f"text must be the JSON of a {cls._kind}: {error}") from None
        return cls.from_dict(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON of `to_dict` and its checksum to a file, whole or not at all."""
        save_json(path, self.to_dict())

    @classmethod
    def load(cls: type[_Result], path: str | os.PathLike[str]) -> _Result:
        """Read a file that `save` wrote; a damaged one is a ValueError."""
        with reading(path):
            return cls.from_dict(load_json(path))


_Metrics = TypeVar("_Metrics", bound=TaskMetrics)


@dataclass(frozen=True)
class TwoTaskResult(Result, Generic[_Metrics]):
    """Base of results of image annotation and image search on one pool."""

    annotation: _Metrics
    search: _Metrics
    pool: str = ""

    _metrics: ClassVar[type[Any]]
    _labels: ClassVar[tuple[str, ...]] = (*Result._labels[:-1], "pool", "version")
    _tasks = TASKS

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.n_images, self.n_captions) != (
            self.search.n_candidates,
            self.search.n_queries,
        ):
            raise ValueError(
                "annotation and search must rank the same images and captions, got "
                f"{self.n_images} and {self.n_captions} against "
                f"{self.search.n_candidates} and {self.search.n_queries}"
            )
        for name in ("ties", "ks"):
            here, there = getattr(self.annotation, name), getattr(self.search, name)
            if here != there:
                raise ValueError(
                    f"annotation and search must share {name}, got {here!r} and {there!r}"
                )

    @property
    def n_images(self) -> int:
        """Images in the pool: queries of annotation, candidates of search."""
        return self.annotation.n_queries

    @property
    def n_captions(self) -> int:
        """Captions in the pool: candidates of annotation, queries of search."""
        return self.annotation.n_candidates

    @property
    def ties(self) -> str:
        """The tie rule of the ranks."""
        return self.annotation.ties

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of the metrics that are reported."""
        return self.annotation.ks

    @property
    def mean(self) -> Mapping[str, Any]:
        """The main numbers of each task by name, shares in [0, 1]."""
        return {task: getattr(self, task).mean for task in TASKS}

    def _numbers(self) -> dict[str, Any]:
        return {"annotation": self.annotation.to_dict(), "search": self.search.to_dict()}

    @classmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {task: cls._metrics.from_dict(document[task]) for task in TASKS}


@dataclass(frozen=True)
class ResultTable(Tabular):
    """Results of several systems and published rows, one row each.

    Facts that all results share (data set, split, pool, sizes, tie rule, version) stand in the
    caption. A fact that differs gets a column, so that nobody overlooks that two results come
    from different pools. Shares are printed in percent. If no fact differs, the best measured
    value of each column is bold in Markdown, LaTeX and HTML. Published numbers are never bold.

    Attributes
    ----------
    results : tuple of Result or Published
        In the order of the rows, all of one kind; at least one was measured.
    rank : {"median", "mean"}
        Which rank is printed behind the recalls of `evaluate`.
    metrics : sequence of str, optional
        Metrics to print, by their names in `Result.mean`. The default depends on the kind of
        the results.
    standard_errors : bool
        Whether the standard error is printed behind every mean of `evaluate_links`.

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If nothing was measured, the results do not have the same columns, an option does not
        fit them, or a published number is neither in a column nor in `Result.mean` of one.

    Examples
    --------
    >>> from kernelcore.evaluation import Published, ResultTable, evaluate
    >>> ours = evaluate([[0.9, 0.1], [0.8, 0.3]], ks=(1,), system="ours", split="test")
    >>> theirs = Published(
    ...     "theirs", "Doe 2013", {"annotation": {"R@1": 0.5, "median_rank": 1.5}}
    ... )
    >>> print(ResultTable([ours, theirs]).to_markdown())  # doctest: +ELLIPSIS
    | system | annotation R@1 | annotation median | search R@1 | search median |
    | :-- | --: | --: | --: | --: |
    | ours | 50.0 | 1.5 | 100.0 | 1.0 |
    | theirs (Doe 2013) | 50.0 | 1.5 | n/a | n/a |
    <BLANKLINE>
    R@k in percent; split test, 2 images, 2 captions, ties mean, kernelcore ...

    Binary selections, where a tie counts half:

    >>> from kernelcore.evaluation import SelectionResult
    >>> ours = SelectionResult(["a", "b"], [1, 0], system="ours", selections="garden")
    >>> print(ResultTable([ours, Published("theirs", "Doe 2019", {"accuracy": 0.8})]))
    ... # doctest: +ELLIPSIS
    system             accuracy     interval  ties
    ours                   50.0  9.5 to 90.5     0
    theirs (Doe 2019)      80.0          n/a   n/a
    In percent; garden, 2 triples, 2 answered, kernelcore ...
    """

    results: Sequence[Result | Published]
    rank: Literal["median", "mean"] = "median"
    metrics: Sequence[str] | None = None
    standard_errors: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", tuple(as_list("results", self.results)))
        check_choice("rank", self.rank, _RANKS)
        check_flag("standard_errors", self.standard_errors)
        for result in self.results:
            if not isinstance(result, (Result, Published)):
                raise TypeError(
                    "results must hold results of kernelcore.evaluation or Published rows, "
                    f"got {type(result).__name__}"
                )
        if not self._measured:
            raise ValueError("results must hold at least one measured result, got none")
        given = {"rank": self.rank != "median", "standard_errors": self.standard_errors}
        for name, is_given in given.items():
            if is_given and name not in self._measured[0]._options:
                raise ValueError(f"{name} must be left out for a {self._measured[0]._kind}")
        if self.metrics is not None:
            object.__setattr__(self, "metrics", self._known_metrics(self.metrics))
        first, *others = (self._columns_of(result) for result in self._measured)
        for other in others:
            if other != first:
                raise ValueError(
                    "results must have the same columns, "
                    f"got {_headings(first)} and {_headings(other)}"
                )
        self._check_published()

    def to_table(self) -> Table:
        """Return the table as text cells, which print in every format."""
        measured = self._measured
        columns = self._columns_of(measured[0])
        differing = differing_facts(measured)
        best = {
            column: column.best(value for _, value in self._values(column))
            for column in columns
            if column.best and len(measured) > 1 and not differing
        }
        n_labels = 1 + len(differing)
        groups = [(task, len(list(own))) for task, own in groupby(c.task for c in columns)]
        return Table(
            columns=("system", *differing, *(column.heading for column in columns)),
            rows=tuple(
                (
                    name_of(result),
                    *(str(getattr(result, fact, "")) for fact in differing),
                    *(self._cell(result, column) for column in columns),
                )
                for result in self.results
            ),
            n_labels=n_labels,
            groups=(("", n_labels), *groups) if any(task for task, _ in groups) else (),
            emphasized=frozenset(
                (row, n_labels + place)
                for place, column in enumerate(columns)
                if column in best
                for row, value in self._values(column)
                if value == best[column]
            ),
            caption=f"{measured[0]._unit}; {shared_facts(measured)}"
            f"{measured[0]._notes(measured, self)}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return every result as plain values, shares in [0, 1]."""
        return {"results": [result.to_dict() for result in self.results]}

    def to_json(self) -> str:
        """Return the JSON text of `to_dict`."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per result, or per result and task.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``source`` (empty for what was measured), ``task`` where there
            are two, the labels and sizes, and the metrics, shares in [0, 1]; what a
            publication does not give is missing.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        first = self._measured[0]
        rows = []
        for result in self.results:
            document = result.to_dict()
            named = {name: document.get(name, "") for name in ("system", "source")}
            labels = {name: document.get(name) for name in first._labels if name != "system"}
            for task in first._tasks:
                own = {"task": task} if task else {}
                numbers = plain(document.get(task, {}) if task else document)
                rows.append({**named, **own, **labels, **numbers})
                rows[-1].pop("kind", None)
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    @property
    def _measured(self) -> list[Result]:
        return [result for result in self.results if isinstance(result, Result)]

    def _check_published(self) -> None:
        """Raise a ValueError for a published number that the table has no place for."""
        rows = [row for row in self.results if isinstance(row, Published)]
        if not rows:
            return
        first = self._measured[0]
        known: set[tuple[str, ...]] = {
            (c.task, c.key) if c.task else (c.key,) for c in self._columns_of(first)
        }
        known |= {(task,) for task in first._tasks if task}
        known.update(*(places(result.mean) for result in self._measured))
        for row in rows:
            for place in places(row.values):
                if place not in known:
                    where = "".join(f"[{key!r}]" for key in place)
                    raise ValueError(
                        "results must publish numbers that a measured result has, "
                        f"got values{where} of {name_of(row)}"
                    )

    def _columns_of(self, result: Result) -> list[Column]:
        columns = result._columns(self)
        if self.metrics is not None:
            columns = [result._column(name) for name in self.metrics]
        return [column._replace(task=task) for task in result._tasks for column in columns]

    def _known_metrics(self, metrics: Sequence[str]) -> tuple[str, ...]:
        """Return the names of metrics that every result has."""
        names = tuple(as_list("metrics", metrics))
        for result in self._measured:
            known = result.mean.get(result._tasks[0], result.mean)
            for name in names:
                if not isinstance(name, str):
                    raise TypeError(f"metrics must hold names, got {type(name).__name__}")
                if name not in known:
                    raise ValueError(
                        f"metrics must be among {', '.join(known)} of every result, "
                        f"got {name!r}"
                    )
        return names

    def _values(self, column: Column) -> list[tuple[int, float]]:
        """Return the row and the value of each measured result."""
        return [
            (row, value)
            for row, result in enumerate(self.results)
            if isinstance(result, Result) and (value := column.value(result)) is not None
        ]

    def _cell(self, result: Result | Published, column: Column) -> str:
        if isinstance(result, Published):
            return column.text(column.value(result))
        return result._cell(column, self)


def _headings(columns: Iterable[Column]) -> str:
    return ", ".join(f"{column.task} {column.heading}".strip() for column in columns)


def name_of(result: Result | Published) -> str:
    """Return the name of a row of a table."""
    if isinstance(result, Published):
        return f"{result.system} ({result.source})"
    return result.system or "(unnamed)"
