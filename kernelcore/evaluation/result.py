"""Results of an evaluation: values of every query with labels, and their tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

import kernelcore
from kernelcore._check import (
    as_integer_array,
    as_list,
    as_real_array,
    check_choice,
    check_integer,
    check_real,
    check_rng,
)
from kernelcore._store import load_json, reading, save_json
from kernelcore._threads import cached_property
from kernelcore.evaluation.metrics import (
    Floats,
    Integers,
    chance_by_query,
    mean_over_folds,
    resampled_means,
    wilson_interval,
)
from kernelcore.evaluation.overlap import overlap_standard_error
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas

    from kernelcore.evaluation.result_table import ResultTable

TASKS = ("annotation", "search")
RANKS = ("median_rank", "mean_rank")
"""Metrics that are no shares: a small value is good, and tables print it as it is."""

LABELS = ("system", "protocol", "dataset", "split", "pool", "version")
_SUCCESSES = ("R@", "S@", "accuracy", "tied")  # metrics whose values are 0, a half or 1
_BY_QUERY = ("n_relevant", "n_candidates", "fold")
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
    settings: Mapping[str, Any] | None


def checked_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels for a result; another keyword argument is a TypeError."""
    for name in labels:
        if name not in Labels.__annotations__:
            known = ", ".join(Labels.__annotations__)
            raise TypeError(f"{name} is not an argument; labels are {known}")
    settings = labels.get("settings")
    return {**labels, "settings": {} if settings is None else settings}


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
    tie_effect: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    items: Sequence[Sequence[str]] | None = None
    version: str = kernelcore.__version__

    def __post_init__(self) -> None:
        own: dict[str, Any] = {"values": _checked_values(self.values)}
        sizes = {task: len(next(iter(of.values()))) for task, of in own["values"].items()}
        for name in LABELS:
            check_line(name, getattr(self, name))
        own["settings"] = _as_json("settings", self.settings)
        own["facts"] = _as_json("facts", self.facts)
        for name in _BY_QUERY:
            own[name] = _integers_by_query(name, getattr(self, name), sizes)
        own["shown"] = tuple(as_list("shown", self.shown))
        for values in own["values"].values():
            for metric in own["shown"]:
                check_choice("shown", metric, values)
        own["tie_effect"] = _checked_effects(self.tie_effect, own["values"])
        for task, total in own["n_candidates"].items():
            if (own["n_relevant"].get(task, total) > total).any():
                raise ValueError(f"n_relevant[{task!r}] must not exceed n_candidates")
        for task, fold in own["fold"].items():
            if len(np.unique(fold)) <= fold.max():
                raise ValueError(f"fold[{task!r}] must have a query of each fold from 0 on")
        if self.items is not None:
            own["items"] = checked_items("items", self.items, max(sizes.values()))
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
        """Standard error of each mean by task, of independent queries unless `items` are given.

        NaN for a median and for a single query. With `items` it is the
        `kernelcore.evaluation.overlap.overlap_standard_error`.
        """
        return {
            task: {name: self._standard_error(name, of[name]) for name in of}
            for task, of in self.values.items()
        }

    @property
    def chance(self) -> dict[str, dict[str, float]]:
        """What a random order is expected to reach, for ``R@k``, ``S@k`` and ``mean_rank``.

        Known where a result has `n_relevant` and `n_candidates`.
        """
        chance: dict[str, dict[str, float]] = {}
        for task, of in self.values.items():
            relevant, total = self.n_relevant.get(task), self.n_candidates.get(task)
            if relevant is None or total is None:
                continue
            expected = {
                name: chance_by_query(total, relevant, int(name[2:]))
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
        """Sum of all ``R@k``, as shares: at most 6 for two tasks and three k (600 percent)."""
        return sum(
            value
            for of in self.mean.values()
            for name, value in of.items()
            if name.startswith("R@")
        )

    def interval(
        self,
        confidence: float = 0.95,
        *,
        n_resamples: int = 1000,
        rng: np.random.Generator | int | None = 0,
    ) -> dict[str, dict[str, tuple[float, float]]]:
        """Confidence interval of each mean, by task and metric.

        It is `wilson_interval` for shares of successes without folds (``R@k``, ``S@k``,
        ``accuracy``, ``tied``), and the percentile interval of a bootstrap over the queries
        for all else.

        Parameters
        ----------
        confidence : float, default=0.95
            Share of such intervals that hold the true value, between 0 and 1.
        n_resamples : int, default=1000
            How many times the queries are drawn anew, with replacement, within each fold.
        rng : numpy.random.Generator, int or None, default=0
            Source of the draws; an int is a seed.

        Returns
        -------
        dict of str to dict of str to (float, float)

        Raises
        ------
        TypeError, ValueError
            If an option is out of range.

        Notes
        -----
        Both speak of other queries from the same source, drawn independently. Captions of one
        image and triples that share images are not independent, so their true intervals are
        somewhat wider.
        """
        confidence = check_real("confidence", confidence, minimum=0.0, maximum=1.0)
        n_resamples = check_integer("n_resamples", n_resamples, minimum=1)
        generator = check_rng("rng", rng)
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        intervals: dict[str, dict[str, tuple[float, float]]] = {}
        for task, of in self.values.items():
            drawn = resampled_means(of, self.fold.get(task), n_resamples, generator)
            low, high = np.nanquantile(drawn, ends, axis=0)
            intervals[task] = dict(
                zip(of, zip(low.tolist(), high.tolist(), strict=True), strict=True)
            )
            for name, values in of.items():
                if task not in self.fold and name.startswith(_SUCCESSES):
                    n_known = int(np.count_nonzero(~np.isnan(values)))
                    intervals[task][name] = wilson_interval(
                        self.mean[task][name], n_known, confidence=confidence
                    )
        return intervals

    def summary(
        self,
        *,
        confidence: float = 0.95,
        n_resamples: int = 1000,
        rng: np.random.Generator | int | None = 0,
    ) -> Table:
        """Tabulate every metric with its interval, the effect of ties, and chance.

        Parameters
        ----------
        confidence, n_resamples, rng
            As for `interval`.

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
        intervals = self.interval(confidence, n_resamples=n_resamples, rng=rng)
        headings = ("value", f"{100 * confidence:g}%", "ties", "chance")
        names = list(dict.fromkeys(name for of in self.values.values() for name in of))
        chance = self.chance
        facts = ", ".join(filter(None, (self.system, shared_facts([self]))))
        rsum = f"; rsum {100 * self.rsum:.1f}" if self.rsum else ""
        rows = []
        for name in names:
            cells = [name]
            for task, of in self.mean.items():
                low, high = intervals[task].get(name, (None, None))
                cells += [
                    text_of(name, of.get(name)),
                    f"{text_of(name, low)} to {text_of(name, high)}" if name in of else "",
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
        return _table_of(self).to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with a row for each task; see `ResultTable.to_frame`."""
        return _table_of(self).to_frame()

    def to_dict(self) -> dict[str, Any]:
        """Return labels, means and the values of every query as plain values."""
        by_query = {
            name: {task: array.tolist() for task, array in getattr(self, name).items()}
            for name in _BY_QUERY
        }
        return {
            "kind": "result",
            **{name: getattr(self, name) for name in LABELS},
            "settings": self.settings,
            "facts": self.facts,
            "mean": self.mean,
            "shown": list(self.shown),
            "values": {
                task: {
                    name: [None if np.isnan(v) else v for v in array.tolist()]
                    for name, array in of.items()
                }
                for task, of in self.values.items()
            },
            **by_query,
            "tie_effect": self.tie_effect,
            "items": None if self.items is None else [list(own) for own in self.items],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Result:
        """Restore a result from `to_dict`; means over queries are computed again."""
        if not isinstance(document, Mapping) or document.get("kind") != "result":
            raise ValueError("document must say that it holds a result, and it does not")
        names = ("settings", "facts", "shown", "tie_effect", "items", *LABELS, *_BY_QUERY)
        try:
            values = {
                task: {name: np.array(array, np.float64) for name, array in of.items()}
                for task, of in document["values"].items()
            }
            return cls(values, **{name: document[name] for name in names})
        except KeyError as error:
            raise ValueError(f"document must hold {error}, and it does not") from None
        except AttributeError:
            raise ValueError("document must map tasks to metrics to values") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON of `to_dict` and its checksum to a file, whole or not at all."""
        save_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a file that `save` wrote; a damaged one is a ValueError."""
        with reading(path):
            return cls.from_dict(load_json(path))

    def _standard_error(self, name: str, values: Floats) -> float:
        known = np.flatnonzero(~np.isnan(values)).tolist()
        if name == "median_rank" or len(known) < 2:
            return float("nan")
        if self.items is not None:
            return overlap_standard_error(values[known], [self.items[i] for i in known])
        return float(np.std(values[known], ddof=1) / np.sqrt(len(known)))


def check_line(name: str, label: Any) -> str:
    """Return `label` if it is one line of text."""
    if not isinstance(label, str):
        raise TypeError(f"{name} must be a string, got {label!r}")
    if not label.isprintable():
        raise ValueError(f"{name} must be one line of printable text, got {label!r}")
    return label


def _checked_values(values: Any) -> dict[str, dict[str, Floats]]:
    checked: dict[str, dict[str, Floats]] = {}
    for task, of in as_mapping("values", values).items():
        checked[task] = {}
        for name, array in as_mapping(f"values[{task!r}]", of).items():
            where = f"values[{task!r}][{name!r}]"
            own = np.array(as_real_array(where, array, ndim=1), np.float64)
            first = next(iter(checked[task].values()), own)
            if len(own) != len(first):
                raise ValueError(
                    f"{where} must have a value for each query ({len(first)}), got {len(own)}"
                )
            if np.isinf(own).any() or np.isnan(own).all():
                raise ValueError(f"{where} must be finite or NaN, with one number at least")
            own.flags.writeable = False
            checked[task][name] = own
        if not checked[task]:
            raise ValueError(f"values[{task!r}] must hold a metric, got none")
    if not checked:
        raise ValueError("values must hold a task, got none")
    return checked


def as_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a mapping from strings."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a mapping from strings, got {value!r:.60}")
    return value


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


def _checked_effects(tie_effect: Any, values: dict[str, Any]) -> dict[str, dict[str, float]]:
    checked: dict[str, dict[str, float]] = {}
    for task, of in as_mapping("tie_effect", tie_effect).items():
        check_choice("tie_effect", task, values)
        for name, effect in as_mapping(f"tie_effect[{task!r}]", of).items():
            where = f"tie_effect[{task!r}]"
            check_choice(where, name, values[task])
            checked.setdefault(task, {})[name] = check_real(f"{where}[{name!r}]", effect)
    return checked


def checked_items(name: str, items: Any, n_queries: int) -> tuple[tuple[str, ...], ...]:
    """Return the items of each query, such as the photos of each document."""
    given = as_list(name, items)
    if len(given) != n_queries:
        raise ValueError(
            f"{name} must have one entry per query ({n_queries}), got {len(given)}"
        )
    for own in given:
        if isinstance(own, str) or not isinstance(own, Iterable):
            raise TypeError(f"{name} must hold a sequence for each query, got {own!r}")
        if not all(isinstance(item, str) for item in own):
            raise TypeError(f"{name} must hold sequences of strings, got {own!r}")
    return tuple(map(tuple, given))


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


def text_of(name: str, value: float | None, missing: str = "n/a") -> str:
    """Return a number as tables print it: ranks as they are, shares in percent."""
    if value is None:
        return missing
    return f"{value:.1f}" if name in RANKS else f"{100 * value:.1f}"


def fact_of(result: Result, fact: str) -> Any:
    """Return a label, a size or a rule of a result, empty if it has none."""
    return getattr(result, fact) if fact in LABELS else result.facts.get(fact, "")


def differing_facts(results: Sequence[Result]) -> list[str]:
    """Names of the labels, sizes and rules in which the results differ."""
    return [fact for fact in _FACTS if len({fact_of(own, fact) for own in results}) > 1]


def shared_facts(results: Sequence[Result]) -> str:
    """Return what all results have in common, for the caption of their table."""
    differing = differing_facts(results)
    return ", ".join(
        template.format(fact_of(results[0], fact))
        for fact, template in _FACTS.items()
        if fact not in differing and fact_of(results[0], fact) != ""
    )


def _table_of(result: Result) -> ResultTable:
    from kernelcore.evaluation.result_table import ResultTable  # noqa: PLC0415: it prints these

    return ResultTable([result])
