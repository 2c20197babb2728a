"""Results of an evaluation: values of every query with labels, and tables of results."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import numpy as np

import kernelcore
from kernelcore import _extras
from kernelcore._check import as_integer_array, as_list, as_real_array, check_choice, check_real
from kernelcore._store import load_json, reading, save_json
from kernelcore._threads import cached_property
from kernelcore.evaluation.metrics import (
    Floats,
    Integers,
    chance_recall_at_k,
    mean_over_folds,
    resampled_means,
    wilson_interval,
)
from kernelcore.evaluation.overlap import as_items, overlap_standard_error
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas

TASKS = ("annotation", "search")
RANKS = ("median_rank", "mean_rank")
"""Metrics that are no shares: a small value is good, and tables print it as it is."""

LABELS = ("system", "protocol", "dataset", "split", "pool", "version")
_SUCCESSES = ("R@", "S@", "accuracy", "tied")  # metrics whose values are 0, a half or 1
_BY_QUERY = ("n_relevant", "n_candidates", "fold", "group")
_ENDS = [(1 - 0.95) / 2, (1 + 0.95) / 2]  # of an interval, as quantiles
_FACTS = {
    "protocol": "{}",
    "dataset": "{}",
    "split": "split {}",
    "pool": "pool {}",
    "selections": "{}",
    "relevance": "relevant by {}",
    "n_images": "{} images",
    "n_captions": "{} captions",
    "n_folds": "means over {} folds",
    "n_documents": "{} documents",
    "n_triples": "{} triples",
    "ties": "ties {}",
    "version": "kernelcore {}",
}


class Labels(TypedDict, total=False):
    """Labels that a result stores: keyword arguments of `evaluate` and its like.

    All but `settings` are one line of text. `settings` holds the settings of the system,
    anything JSON can hold; NumPy scalars become plain numbers.
    """

    system: str
    protocol: str
    dataset: str
    split: str
    pool: str
    settings: Mapping[str, Any]


def checked_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels for a result; another keyword argument is a TypeError."""
    for name in labels:
        if name not in Labels.__annotations__:
            known = ", ".join(Labels.__annotations__)
            raise TypeError(f"{name} is not an argument; labels are {known}")
    return {"settings": {}, **labels}


class Metrics(dict[str, Any]):
    """Metrics of a task by name. A function is called when its metric is asked for first."""

    def __getitem__(self, name: str) -> Floats:
        found = super().__getitem__(name)
        values: Floats = found() if callable(found) else found
        values.flags.writeable = False
        self[name] = values
        return values

    def __iter__(self) -> Iterator[str]:  # so that a copy as a dict asks for every metric
        return super().__iter__()

    def __repr__(self) -> str:
        return repr(dict(self))

    get, items, values = Mapping.get, Mapping.items, Mapping.values  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, repr=False)
class Result(Tabular):
    """Values of every query by task and metric, with labels, settings, files and tables.

    Attributes
    ----------
    values : mapping of str to mapping of str to ndarray of float64, shape (n_queries,)
        Task, metric, one value for each query; NaN where a query has none. The tasks are
        ``annotation`` and ``search``, ``links``, or ``selection``. Paired significance tests
        compare these.
    system, protocol, dataset, split, pool : str
        The system, the protocol, the dataset, its split and the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    facts : mapping of str to Any
        Sizes and rules of the measurement: ``n_images``, ``n_captions``, ``ties``, ...
    shown : tuple of str
        Metrics that tables print by default; all of them if it is empty.
    n_relevant, n_candidates : mapping of str to ndarray of int64, shape (n_queries,)
        By task: relevant candidates of each query, and candidates that it ranks.
    fold : mapping of str to ndarray of int64, shape (n_queries,)
        By task: the fold of each query, from 0. If it is given, means are means over folds.
    group : mapping of str to ndarray of int64, shape (n_queries,)
        By task: the group of each query, such as the image of a caption. If it is given,
        `compare` and standard errors take into account that queries of a group depend on each
        other.
    tie_effect : mapping of str to mapping of str to float
        By task and metric: the mean with ties in favour of the system less that against it.
    items : sequence of sequence of str, optional
        Items of each query, such as the photos of a document. If they are given, standard
        errors take into account that queries which share items depend on each other.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If a part does not fit the others, a metric has no value for any query, a label is not
        one line of text, or the settings do not fit into JSON.

    See Also
    --------
    evaluate, evaluate_relevance, evaluate_links, evaluate_selections : Make results.
    compare : Tests the differences between results.
    ResultTable : Puts several side by side.

    Examples
    --------
    >>> from kernelcore.evaluation import Result
    >>> result = Result({"links": {"AUC": [0.9, 0.7, float("nan")]}}, system="toy")
    >>> result
    Result('toy', links AUC=0.8000)
    >>> result.mean["links"], result.standard_error["links"]
    ({'AUC': 0.8}, {'AUC': 0.1})
    >>> Result.from_dict(result.to_dict()) == result
    True
    """

    values: Mapping[str, Mapping[str, Floats]]
    system: str = ""
    protocol: str = ""
    dataset: str = ""
    split: str = ""
    pool: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    shown: Sequence[str] = ()
    n_relevant: Mapping[str, Integers] = field(default_factory=dict)
    n_candidates: Mapping[str, Integers] = field(default_factory=dict)
    fold: Mapping[str, Integers] = field(default_factory=dict)
    group: Mapping[str, Integers] = field(default_factory=dict)
    tie_effect: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    items: Sequence[Sequence[str]] | None = None
    version: str = kernelcore.__version__

    def __post_init__(self) -> None:
        own: dict[str, Any] = {"values": _checked_values(self.values)}
        sizes = {task: len(next(iter(of.values()))) for task, of in own["values"].items()}
        for name in LABELS:
            check_line(name, getattr(self, name))
        for name in ("settings", "facts"):
            own[name] = _as_json(name, getattr(self, name))
        for name in _BY_QUERY:
            own[name] = _integers_by_query(name, getattr(self, name), sizes)
        own["shown"] = tuple(as_list("shown", self.shown))
        for values in own["values"].values():
            for metric in own["shown"]:
                check_choice("shown", metric, values)
        _check_effects(self.tie_effect, own["values"])
        for task, total in own["n_candidates"].items():
            if (own["n_relevant"].get(task, total) > total).any():
                raise ValueError(f"n_relevant[{task!r}] must not exceed n_candidates")
        for task, fold in own["fold"].items():
            if len(np.unique(fold)) <= fold.max():
                raise ValueError(f"fold[{task!r}] must have a query of each fold from 0 on")
        if self.items is not None:
            own["items"] = as_items("items", self.items, max(sizes.values()), str)
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = [
            f"{task} " + ", ".join(f"{name}={of[name]:.4f}" for name in self.columns)
            for task, of in self.mean.items()
        ]
        return f"Result({', '.join([repr(self.system), *numbers])})"

    @property
    def columns(self) -> tuple[str, ...]:
        """Metrics that tables print by default."""
        return tuple(self.shown) or tuple(next(iter(self.values.values())))

    @cached_property
    def mean(self) -> dict[str, dict[str, float]]:
        """Mean of each metric by task over the queries with a value; shares in [0, 1].

        ``median_rank`` is a median. With folds, each is the mean of its values by fold.
        """
        return {
            task: {name: mean_over_folds(name, of[name], self.fold.get(task)) for name in of}
            for task, of in self.values.items()
        }

    @property
    def standard_error(self) -> dict[str, dict[str, float]]:
        """Standard error of each mean by task.

        NaN for a median and for a single query. With `items`, or a `group`, it is the
        `kernelcore.evaluation.overlap.overlap_standard_error`, otherwise that of independent
        queries.
        """
        return {
            task: {name: self._standard_error(name, of[name], task) for name in of}
            for task, of in self.values.items()
        }

    def shared_items(self, task: str) -> Sequence[Sequence[Any]] | None:
        """Return what queries of a task may share: items, or their group; None if nothing."""
        groups = self.group.get(task)
        return self.items if groups is None else groups[:, np.newaxis].tolist()

    def _standard_error(self, name: str, values: Floats, task: str) -> float:
        known = np.flatnonzero(~np.isnan(values)).tolist()
        if name == "median_rank" or len(known) < 2:
            return float("nan")
        items = self.shared_items(task)
        if items is not None:
            return overlap_standard_error(values[known], [items[i] for i in known])
        return float(np.std(values[known], ddof=1) / np.sqrt(len(known)))

    @property
    def chance(self) -> dict[str, dict[str, float]]:
        """What a random order is expected to reach, for ``R@k``, ``S@k`` and ``mean_rank``.

        Known where a result has `n_relevant` and `n_candidates`.
        """
        chance: dict[str, dict[str, float]] = {}
        for task, of in self.values.items():
            if task not in self.n_relevant or task not in self.n_candidates:
                continue
            relevant, total = self.n_relevant[task], self.n_candidates[task]
            # Most queries share their pool, and logarithms of factorials take time.
            pools, pool = np.unique(
                total * (relevant.max() + 1) + relevant, return_inverse=True
            )
            n, m = np.divmod(pools, relevant.max() + 1)
            expected = {
                name: chance_recall_at_k(n, int(name[2:]), n_relevant=m)[pool]
                for name in of
                if name[:2] in {"R@", "S@"} and name[2:].isdigit()
            }
            if "mean_rank" in of:
                expected["mean_rank"] = (total + 1) / (relevant + 1)
            chance[task] = {
                name: mean_over_folds(name, values, self.fold.get(task))
                for name, values in expected.items()
            }
        return chance

    @property
    def rsum(self) -> float:
        """Sum of all ``R@k`` in percent, as published: at most 600 of two tasks and three k."""
        return sum(
            100 * value
            for of in self.mean.values()
            for name, value in of.items()
            if name.startswith("R@")
        )

    def interval(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Interval of each mean, by task and metric, that holds the true one in 95 % of cases.

        It is `wilson_interval` for shares of successes without folds (``R@k``, ``S@k``,
        ``accuracy``, ``tied``), and the percentile interval of a bootstrap for all else: the
        queries are drawn anew 1,000 times, with replacement, within each fold.

        Notes
        -----
        Both speak of other queries from the same source, drawn independently. Captions of one
        image and triples that share images are not independent, so their true intervals are
        somewhat wider.
        """
        rng = np.random.default_rng(0)
        intervals: dict[str, dict[str, tuple[float, float]]] = {}
        for task, of in self.values.items():
            drawn = resampled_means(of, self.fold.get(task), rng)
            low, high = np.nanquantile(drawn, _ENDS, axis=0).tolist()
            intervals[task] = dict(zip(of, zip(low, high, strict=True), strict=True))
            for name, values in of.items():
                if task not in self.fold and name.startswith(_SUCCESSES):
                    n_known = int(np.count_nonzero(~np.isnan(values)))
                    intervals[task][name] = wilson_interval(self.mean[task][name], n_known)
        return intervals

    def summary(self) -> Table:
        """Tabulate every metric with its 95 % interval, the effect of ties, and chance.

        Returns
        -------
        Table
            One row per metric. What is not known is left empty.

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> summary = evaluate([[0.9, 0.4], [0.9, 0.3]], ks=(1,)).summary()
        >>> summary.rows[0][:5]
        ('R@1', '50.0', '9.5 to 90.5', '0.0', '50.0')
        """
        intervals, chance = self.interval(), self.chance
        headings = ("value", "95%", "ties", "chance")
        facts = ", ".join(filter(None, (self.system, shared_facts([self]))))
        rsum = f"; rsum {self.rsum:.1f}" if self.rsum else ""
        rows = []
        for name in dict.fromkeys(name for of in self.values.values() for name in of):
            cells = [name]
            for task, of in self.mean.items():
                ends = intervals[task].get(name, ())
                cells += [
                    text_of(name, of.get(name)),
                    " to ".join(text_of(name, end) for end in ends),
                    text_of(name, self.tie_effect.get(task, {}).get(name), ""),
                    text_of(name, chance.get(task, {}).get(name), ""),
                ]
            rows.append(tuple(cells))
        return Table(
            columns=("metric", *headings * len(self.mean)),
            rows=tuple(rows),
            groups=(("", 1), *((task, len(headings)) for task in self.mean)),
            caption=f"shares in percent{rsum};\nties: the mean with ties in favour of the "
            f"system less that against it;\n{facts}",
        )

    def to_table(self) -> Table:
        """Return a table of one row, shares in percent; see `ResultTable`."""
        return ResultTable([self]).to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with a row for each task; see `ResultTable.to_frame`."""
        return ResultTable([self]).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return labels, means and the values of every query as plain values."""
        own = {part.name: _plain(getattr(self, part.name)) for part in fields(self)}
        return {"kind": "result", "mean": self.mean, **own}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Result:
        """Restore a result from `to_dict`; means over queries are computed again."""
        if not isinstance(document, Mapping) or document.get("kind") != "result":
            raise ValueError("document must say that it holds a result, and it does not")
        try:
            own = {part.name: document[part.name] for part in fields(cls)}
            own["values"] = {
                task: {name: np.array(array, np.float64) for name, array in of.items()}
                for task, of in own["values"].items()
            }
        except KeyError as error:
            raise ValueError(f"document must hold {error}, and it does not") from None
        except AttributeError:
            raise ValueError("document must map tasks to metrics to values") from None
        return cls(**own)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON of `to_dict` and its checksum to a file, whole or not at all."""
        save_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a file that `save` wrote; a damaged one is a ValueError."""
        with reading(path):
            return cls.from_dict(load_json(path))


def check_line(name: str, label: Any) -> None:
    """Raise unless a label is one line of printable text."""
    if not isinstance(label, str):
        raise TypeError(f"{name} must be a string, got {label!r}")
    if not label.isprintable():
        raise ValueError(f"{name} must be one line of printable text, got {label!r}")


def as_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping from strings."""
    if not isinstance(value, Mapping) or not all(
        issubclass(kind, str) for kind in {*map(type, value)}
    ):
        raise TypeError(f"{name} must be a mapping from strings, got {value!r:.60}")
    return value


def _checked_values(values: Any) -> dict[str, Mapping[str, Floats]]:
    checked: dict[str, Mapping[str, Floats]] = {}
    for task, of in as_mapping("values", values).items():
        if isinstance(of, Metrics):  # computed here
            checked[task] = of
            continue
        own: dict[str, Floats] = {}
        checked[task] = own
        for name, array in as_mapping(f"values[{task!r}]", of).items():
            where = f"values[{task!r}][{name!r}]"
            own[name] = np.array(as_real_array(where, array, ndim=1), np.float64)
            own[name].flags.writeable = False
            if np.isinf(own[name]).any() or np.isnan(own[name]).all():
                raise ValueError(f"{where} must be finite or NaN, with one number at least")
        sizes = list(map(len, own.values()))
        if len(set(sizes)) != 1:
            raise ValueError(
                f"values[{task!r}] must hold metrics of the same queries, at least one, "
                f"got {sizes} values"
            )
    if not checked:
        raise ValueError("values must hold a task, got none")
    return checked


def _integers_by_query(name: str, by_task: Any, sizes: dict[str, int]) -> dict[str, Integers]:
    checked = {}
    for task, array in as_mapping(name, by_task).items():
        check_choice(name, task, sizes)
        own = as_integer_array(f"{name}[{task!r}]", array, ndim=1, dtype=np.int64).copy()
        if len(own) != sizes[task] or own.min() < (name == "n_candidates"):
            raise ValueError(
                f"{name}[{task!r}] must hold a count for each query ({sizes[task]}), "
                f"got {len(own)} from {own.min() if len(own) else 0} on"
            )
        own.flags.writeable = False
        checked[task] = own
    return checked


def _check_effects(tie_effect: Any, values: dict[str, Any]) -> None:
    for task, of in as_mapping("tie_effect", tie_effect).items():
        check_choice("tie_effect", task, values)
        for name, effect in as_mapping(f"tie_effect[{task!r}]", of).items():
            check_choice(f"tie_effect[{task!r}]", name, values[task])
            check_real(f"tie_effect[{task!r}][{name!r}]", effect)


def _as_json(name: str, mapping: Any) -> dict[str, Any]:
    """Return a copy as JSON will give it back: tuples become lists."""
    copy = {}
    for key, value in as_mapping(name, mapping).items():
        try:
            copy[key] = json.loads(json.dumps(value, default=_as_plain, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}[{key!r}] must fit into JSON: {error}") from None
    return copy


def _as_plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"got {value!r} of type {type(value).__name__}")


def _plain(value: Any) -> Any:
    """Return arrays as lists, NaN in them as None."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, np.ndarray):
        return [None if math.isnan(number) else number for number in value.tolist()]
    return value


def text_of(name: str, value: float | None, missing: str = "n/a") -> str:
    """Return a number as tables print it: ranks as they are, shares in percent."""
    if value is None:
        return missing
    return f"{value:.1f}" if name in RANKS else f"{100 * value:.1f}"


def fact_of(row: Row, fact: str) -> Any:
    """Return a label, a size or a rule of a result, empty if it has none."""
    if isinstance(row, Published):
        return ""
    return getattr(row, fact) if fact in LABELS else row.facts.get(fact, "")


def differing_facts(results: Sequence[Result]) -> list[str]:
    """Names of the labels, sizes and rules in which the results differ."""
    first = results[0]
    return [f for f in _FACTS if any(fact_of(own, f) != fact_of(first, f) for own in results)]


def shared_facts(results: Sequence[Result]) -> str:
    """Return what all results have in common, for the caption of their table."""
    differing = differing_facts(results)
    return ", ".join(
        template.format(fact_of(results[0], fact))
        for fact, template in _FACTS.items()
        if fact not in differing and fact_of(results[0], fact) != ""
    )


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
    uncertainty: Literal["standard_error", "interval"] | None = None

    def __post_init__(self) -> None:
        results = tuple(as_list("results", self.results))
        object.__setattr__(self, "results", results)
        for row in results:
            if not isinstance(row, Row):
                kind = type(row).__name__
                raise TypeError(f"results must hold Result or Published, got {kind}")
        if self.uncertainty is not None:
            check_choice("uncertainty", self.uncertainty, ("standard_error", "interval"))
        if not self._measured:
            raise ValueError("results must hold at least one measured result, got none")
        if self.metrics is not None:
            object.__setattr__(self, "metrics", tuple(as_list("metrics", self.metrics)))
            for of in (of for own in self._measured for of in own.values.values()):
                for name in self.metrics:
                    check_choice("metrics", name, of)
        columns = dict.fromkeys(
            (*own.values, *(() if self.metrics else own.columns)) for own in self._measured
        )
        if len(columns) > 1:
            raise ValueError(f"results must have the same columns, got {list(columns)}")
        for row in results:
            if isinstance(row, Published):
                self._check_published(row)

    @property
    def _measured(self) -> list[Result]:
        return [result for result in self.results if isinstance(result, Result)]

    def _check_published(self, row: Published) -> None:
        """Raise a ValueError for a published number that no measured result has."""
        for key, value in row.values.items():
            tasks = (key,) if isinstance(value, Mapping) else tuple(self._measured[0].values)
            known = {n for own in self._measured for t in tasks for n in own.values.get(t, ())}
            for name in value if isinstance(value, Mapping) else (key,):
                if name not in known:
                    raise ValueError(
                        "results must publish numbers that a measured result has, "
                        f"got {name!r} of {_name_of(row)}"
                    )

    def to_table(self) -> Table:
        """Return the table as text cells, which print in every format."""
        measured = self._measured
        tasks, metrics = tuple(measured[0].values), self.metrics or measured[0].columns
        columns = [(task, name) for task in tasks for name in metrics]
        differing = differing_facts(measured)
        emphasized = set()
        if len(measured) > 1 and not differing:
            own = [(i, row) for i, row in enumerate(self.results) if isinstance(row, Result)]
            for place, (task, name) in enumerate(columns, start=1):
                values = {i: row.mean[task][name] for i, row in own}
                best = (min if name in RANKS else max)(values.values())
                emphasized |= {(i, place) for i, value in values.items() if value == best}
        n_labels = 1 + len(differing)
        groups = (("", n_labels), *((task, len(metrics)) for task in tasks))
        return Table(
            columns=("system", *differing, *(name for _, name in columns)),
            rows=tuple(self._row(row, differing, columns) for row in self.results),
            n_labels=n_labels,
            groups=groups if len(tasks) > 1 else (),
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
                else:
                    labels |= {name: getattr(row, name) for name in LABELS[1:]}
                    labels |= row.facts
                rows.append({**labels, **_means(row, task)})
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    def _row(
        self, row: Row, differing: Sequence[str], columns: Sequence[tuple[str, str]]
    ) -> tuple[str, ...]:
        """Return name, facts and means of a row, with what is known of their uncertainty."""
        cells = [text_of(name, _means(row, task).get(name)) for task, name in columns]
        if isinstance(row, Result) and self.uncertainty is not None:
            is_error = self.uncertainty == "standard_error"
            behind: Mapping[str, Any] = row.standard_error if is_error else row.interval()
            spread = [_spread(name, behind[task][name]) for task, name in columns]
            cells = list(map("".join, zip(cells, spread, strict=True)))
        return (_name_of(row), *(str(fact_of(row, fact)) for fact in differing), *cells)

    def _caption(self, columns: Sequence[tuple[str, str]]) -> list[str]:
        """Return facts, chance and the effect of ties, as far as they are known."""
        measured = self._measured
        facts = f"shares in percent; {shared_facts(measured)}"
        if self.uncertainty == "standard_error":
            shared = any(result.items is not None or bool(result.group) for result in measured)
            taken = ", shared items taken into account" if shared else ""
            facts += f"; ± standard error{taken}"
        if self.uncertainty == "interval":
            facts += "; in brackets the 95 % interval"
        answered = {_answered(result) for result in measured}
        lines = [facts, *(answered if len(answered) == 1 else ())]
        systems: dict[str, list[str]] = {}
        names = dict.fromkeys(name for _, name in columns if name not in RANKS)
        for result in measured:
            shares = [
                " ".join([task, *(f"{100 * of[name]:.3g}" for name in names if name in of)])
                for task, of in result.chance.items()
                if not names.keys().isdisjoint(of)
            ]
            systems.setdefault(", ".join(shares), []).append(_name_of(result))
        for expected, own in systems.items():
            of = f" of {', '.join(own)}" if len(systems) > 1 else ""
            lines.append(f"chance{of}: {expected}" if expected else "")
        effects = [
            own.tie_effect[task][name]
            for own in measured
            for task, name in columns
            if name.startswith("R@") and name in own.tie_effect.get(task, ())
        ]
        if effects:
            lines.append(f"ties move R@k by at most {100 * max(effects):.1f}")
        return [line for line in lines if line]


def _answered(result: Result) -> str:
    """Say over how many queries the means are, where some have no value."""
    parts, is_known = [], []
    for task, of in result.values.items():
        known = ~np.isnan(next(iter(of.values())))
        parts.append(f"{np.count_nonzero(known)} of {len(known)} queries of {task}")
        is_known.append(known.all())
    return "" if all(is_known) else f"means over {' and '.join(parts)}"


def _means(row: Row, task: str) -> Mapping[str, float]:
    """Return the means of a task; a publication may give some of them."""
    if isinstance(row, Result):
        return row.mean[task]
    numbers: Mapping[str, Any] = row.values.get(task, row.values)
    return {name: value for name, value in numbers.items() if not isinstance(value, Mapping)}


def _spread(name: str, of: float | tuple[float, float]) -> str:
    """Write a standard error or the ends of an interval, to stand behind a mean."""
    if isinstance(of, tuple):
        return f" ({' to '.join(text_of(name, end) for end in of)})"
    return "" if np.isnan(of) else f" ± {text_of(name, of)}"


def _name_of(row: Row) -> str:
    if isinstance(row, Published):
        return f"{row.system} ({row.source})"
    return row.system or "(unnamed)"
