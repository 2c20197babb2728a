"""Paired comparison of systems with a baseline, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import (
    Array,
    as_list,
    as_real_array,
    check_choice,
    check_finite,
    check_flag,
    check_integer,
    check_real,
    check_rng,
)
from kernelcore.evaluation.labels import differing_facts, shared_facts
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.published import TASKS
from kernelcore.evaluation.retrieval import RetrievalResult
from kernelcore.evaluation.significance import (
    PairedTest,
    Statistic,
    fisher_randomization,
    holm,
    mcnemar,
)
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class ComparedMetric:
    """One metric of all systems, and the p-values of their differences to the baseline.

    Attributes
    ----------
    task : {"annotation", "search"}
    name : str
        ``R@1``, ``median`` or what the caller named it.
    test : str
        The test behind the p-values.
    values : ndarray of float64, shape (n_systems,)
        The metric.
    p_values : ndarray of float64, shape (n_systems,)
        Two-sided and uncorrected; NaN for the baseline itself.
    is_share : bool
        Whether it is a share in [0, 1], which tables print in percent.
    """

    task: str
    name: str
    test: str
    values: npt.NDArray[np.float64]
    p_values: npt.NDArray[np.float64]
    is_share: bool

    @property
    def adjusted_p_values(self) -> npt.NDArray[np.float64]:
        """The p-values corrected by `holm` for the number of systems."""
        adjusted = np.array(self.p_values)
        tested = ~np.isnan(adjusted)
        adjusted[tested] = holm(adjusted[tested])
        return adjusted


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Table of systems; superscripts mark significant differences from the baseline.

    Attributes
    ----------
    systems : tuple of str
        Names, in the order of the rows.
    baseline : int
        Row of the system that the others are compared with.
    metrics : tuple of ComparedMetric
        In the order of the columns.
    levels : tuple of float
        A p-value of at most the first gets one star, of at most the second two, and so on.
    correction : {"holm"} or None
        Whether the superscripts go by corrected p-values.
    facts : str
        What the systems share, for the caption.

    See Also
    --------
    compare : Makes one.
    """

    systems: tuple[str, ...]
    baseline: int
    metrics: tuple[ComparedMetric, ...]
    levels: tuple[float, ...]
    correction: str | None
    facts: str = ""

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """Metrics in columns, shape (n_systems, n_metrics)."""
        return np.stack([metric.values for metric in self.metrics], axis=1)

    @property
    def p_values(self) -> npt.NDArray[np.float64]:
        """Uncorrected p-values, shape (n_systems, n_metrics); NaN for the baseline."""
        return np.stack([metric.p_values for metric in self.metrics], axis=1)

    @property
    def adjusted_p_values(self) -> npt.NDArray[np.float64]:
        """P-values corrected within each column by `holm`; NaN for the baseline."""
        return np.stack([metric.adjusted_p_values for metric in self.metrics], axis=1)

    def to_table(self) -> Table:
        """Return the table as text cells, shares in percent, with their superscripts."""
        p_values = self.p_values if self.correction is None else self.adjusted_p_values
        n_stars = (p_values[..., np.newaxis] <= self.levels).sum(axis=-1)
        cells = [[_cell(value, of) for value in of.values] for of in self.metrics]
        groups = [(task, len(list(of))) for task, of in groupby(m.task for m in self.metrics)]
        return Table(
            columns=("system", *(metric.name for metric in self.metrics)),
            rows=tuple(zip(self.systems, *cells, strict=True)),
            groups=(("", 1), *groups),
            superscripts=frozenset(
                ((i, j + 1), "*" * int(n_stars[i, j]))
                for i, j in np.argwhere(n_stars > 0).tolist()
            ),
            caption=self._caption(),
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per system and metric.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``task``, ``metric``, ``value`` (shares in [0, 1]),
            ``difference`` to the baseline, ``p_value``, ``adjusted_p_value`` and ``test``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        rows = [
            {
                "system": system,
                "task": metric.task,
                "metric": metric.name,
                "value": metric.values[i],
                "difference": metric.values[i] - metric.values[self.baseline],
                "p_value": metric.p_values[i],
                "adjusted_p_value": metric.adjusted_p_values[i],
                "test": metric.test,
            }
            for i, system in enumerate(self.systems)
            for metric in self.metrics
        ]
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    def _caption(self) -> str:
        stars = [f"{'*' * i} p <= {level:g}" for i, level in enumerate(self.levels, start=1)]
        corrected = " after Holm's correction in each column" if self.correction else ""
        names: dict[str, dict[str, None]] = {}
        for metric in self.metrics:
            names.setdefault(metric.test, {})[metric.name] = None
        parts = [
            "shares in percent" if any(metric.is_share for metric in self.metrics) else "",
            f"superscripts: difference to {self.systems[self.baseline]}, {', '.join(stars)}"
            f"{corrected}",
            *(f"{test} of {', '.join(of)}" for test, of in names.items()),
            self.facts,
        ]
        return "; ".join(part for part in parts if part)


def _cell(value: float, metric: ComparedMetric) -> str:
    if metric.is_share:
        return f"{100 * value:.1f}"
    return f"{value:.1f}" if metric.name == "median" else f"{value:.2f}"


_FISHER = "Fisher randomisation"


def compare(
    systems: Sequence[RetrievalResult] | Sequence[str],
    *,
    baseline: str | int,
    per_query: Mapping[str, Mapping[str, npt.ArrayLike]] | None = None,
    mid_p: bool = False,
    correction: Literal["holm"] | None = None,
    levels: Sequence[float] = (0.1, 0.05, 0.01),
    n_reassignments: int = 100_000,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> Comparison:
    """Compare systems with one of them on the same queries, as Hodosh et al. [1]_ do.

    Recall at k and other successes are tested by McNemar's test, median ranks and means of
    any other number per query by Fisher's randomisation test.

    Parameters
    ----------
    systems : sequence of RetrievalResult, or of str
        At least two, of different names, on the same pool, by the same tie rule and with the
        same k; or names alone, to compare by `per_query` only.
    baseline : str or int
        Name or place of the system that the others are compared with.
    per_query : mapping of task to mapping of name to array_like, shape (n_systems, n_queries)
        Further metrics of the tasks ``annotation`` and ``search``: one value for each system
        and query. The metric is the mean over the queries. A query that does not count is NaN
        for every system. Values that are all 0 or 1 are successes.
    mid_p : bool, default=False
        Take the mid-p of McNemar's test instead of the exact p.
    correction : {"holm"}, optional
        Let the superscripts go by p-values corrected for the number of systems, column by
        column.
    levels : sequence of float, default=(0.1, 0.05, 0.01)
        Largest p-value for one star, for two, and so on.
    n_reassignments : int, default=100_000
        Reassignments of `fisher_randomization`.
    rng : numpy.random.Generator, int or None
        Source of its draws; an int is a seed.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.

    Returns
    -------
    Comparison
        Prints as text, Markdown, LaTeX and HTML; p-values are arrays and a data frame.

    Raises
    ------
    TypeError, ValueError
        If the systems were not measured alike, nothing is compared, or an argument does not
        fit.

    See Also
    --------
    mcnemar, fisher_randomization, holm : The tests.
    tie_groups : All pairs of many systems.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation import compare, evaluate
    >>> scores = np.random.default_rng(0).normal(size=(40, 40))
    >>> good = evaluate(scores + 4 * np.eye(40), ks=(1, 5), system="good")
    >>> poor = evaluate(scores + np.eye(40), ks=(1, 5), system="poor")
    >>> print(compare([poor, good], baseline="good", rng=0))  # doctest: +ELLIPSIS
            ------- annotation ------  --------- search ---------
    system      R@1       R@5  median       R@1       R@5  median
    poor    25.0***   45.0***  6.5***   32.5***   47.5***  6.5***
    good    97.5     100.0     1.0     100.0     100.0     1.0
    shares in percent; superscripts: difference to good, * p <= 0.1, ...
    """
    systems = as_list("systems", systems)
    names = tuple(
        system.system if isinstance(system, RetrievalResult) else system for system in systems
    )
    results = [system for system in systems if isinstance(system, RetrievalResult)]
    check_systems(names, results)
    per_query = {} if per_query is None else per_query
    if not isinstance(per_query, Mapping):
        raise TypeError(f"per_query must be a mapping, got {type(per_query).__name__}")
    for task in per_query:
        check_choice("per_query", task, TASKS)
    if correction is not None:
        check_choice("correction", correction, ("holm",))
    thresholds = {
        check_real("levels", p, minimum=0.0, maximum=1.0) for p in as_list("levels", levels)
    }
    row = _row_of(baseline, names)
    tests = _Tests(
        row, check_flag("mid_p", mid_p), n_reassignments, check_rng("rng", rng), n_threads
    )
    metrics: list[ComparedMetric] = []
    for task in TASKS:
        if results:
            metrics += tests.of_ranks(task, [getattr(result, task) for result in results])
        for name, values in (per_query or {}).get(task, {}).items():
            n_queries = getattr(results[0], task).n_queries if results else None
            where = f"per_query[{task!r}][{name!r}]"
            counted = _as_per_query(where, values, len(names), n_queries)
            metrics.append(tests.of_values(task, name, counted))
    if not metrics:
        raise ValueError("per_query must hold a metric where systems are names, got none")
    return Comparison(
        systems=names,
        baseline=row,
        metrics=tuple(metrics),
        levels=tuple(sorted(thresholds, reverse=True)),
        correction=correction,
        facts=shared_facts(results) if results else "",
    )


@dataclass(frozen=True)
class _Tests:
    """The tests of one comparison, with their options."""

    baseline: int
    mid_p: bool
    n_reassignments: int
    generator: np.random.Generator
    n_threads: int | None

    def of_ranks(
        self, task: str, directions: Sequence[RankingMetrics]
    ) -> Iterator[ComparedMetric]:
        ranks = np.stack([direction.ranks for direction in directions])
        for k in directions[0].ks:
            yield self._of_successes(task, f"R@{k}", ranks <= k)
        yield ComparedMetric(
            task,
            "median",
            test=_FISHER,
            values=np.median(ranks, axis=1),
            p_values=self._of_others(self._fisher(ranks, "median")),
            is_share=False,
        )

    def of_values(self, task: str, name: str, values: Array) -> ComparedMetric:
        if np.isin(values, (0, 1)).all():
            return self._of_successes(task, name, values == 1)
        return ComparedMetric(
            task,
            name,
            test=_FISHER,
            values=values.mean(axis=1),
            p_values=self._of_others(self._fisher(values, "mean")),
            is_share=bool(values.min() >= 0 and values.max() <= 1),
        )

    def _of_successes(self, task: str, name: str, successes: Array) -> ComparedMetric:
        test = mcnemar(successes, successes[self.baseline], mid_p=self.mid_p)
        return ComparedMetric(
            task,
            name,
            test=f"{'mid-p' if self.mid_p else 'exact'} McNemar test",
            values=successes.mean(axis=1),
            p_values=self._of_others(test),
            is_share=True,
        )

    def _fisher(self, values: Array, statistic: Statistic) -> PairedTest:
        return fisher_randomization(
            values,
            values[self.baseline],
            statistic=statistic,
            n_reassignments=self.n_reassignments,
            rng=self.generator,
            n_threads=self.n_threads,
        )

    def _of_others(self, test: PairedTest) -> npt.NDArray[np.float64]:
        """Return the p-values; the baseline is not tested against itself."""
        p_values = np.array(test.p_value)
        p_values[self.baseline] = np.nan
        return p_values


def check_systems(names: Sequence[Any], results: Sequence[RetrievalResult]) -> None:
    """Raise unless there are two systems of different names, measured alike."""
    if len(names) < 2:
        raise ValueError(f"systems must be at least two, got {len(names)}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"systems must hold RetrievalResult objects or names, got {type(name).__name__}"
            )
    if results and len(results) != len(names):
        raise TypeError("systems must hold RetrievalResult objects or names, got both")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"systems must have different names, got {twice!r} twice")
    differing = [fact for fact in differing_facts(results) if fact != "version"]
    if differing:
        raise ValueError(
            f"systems must be measured alike, got different {', '.join(differing)}"
        )
    for result in results[1:]:
        if result.ks != results[0].ks:
            raise ValueError(
                f"systems must report recall at the same k, got {results[0].ks} and {result.ks}"
            )
        for task in TASKS:
            if not np.array_equal(
                getattr(result, task).n_relevant, getattr(results[0], task).n_relevant
            ):
                raise ValueError(
                    "systems must be measured on the same queries, but the numbers of gold "
                    f"items in {task} of {results[0].system!r} and {result.system!r} differ"
                )


def _row_of(baseline: str | int, names: Sequence[str]) -> int:
    if isinstance(baseline, str):
        check_choice("baseline", baseline, names)
        return names.index(baseline)
    return check_integer("baseline", baseline, minimum=0, maximum=len(names) - 1)


def _as_per_query(
    name: str, values: npt.ArrayLike, n_systems: int, n_queries: int | None
) -> npt.NDArray[np.float64]:
    """Return a row per system, of the queries that count."""
    array = as_real_array(name, values, ndim=2).astype(np.float64, copy=False)
    if len(array) != n_systems or n_queries not in (None, array.shape[1]):
        columns = "n_queries" if n_queries is None else n_queries
        raise ValueError(
            f"{name} must have one row per system and one column per query, "
            f"shape ({n_systems}, {columns}), got {array.shape}"
        )
    missing = np.isnan(array)
    if (missing != missing[0]).any():
        raise ValueError(f"{name} must be NaN for the same queries in every row")
    array = check_finite(name, array[:, ~missing[0]])
    if not array.size:
        raise ValueError(f"{name} must hold at least one query that counts, got none")
    return array
