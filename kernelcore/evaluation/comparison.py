"""Significance tests between systems, metric by metric, and their table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import (
    Array,
    as_list,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_rng,
)
from kernelcore.evaluation.metrics import Floats
from kernelcore.evaluation.overlap import equivalence_test, overlap_test
from kernelcore.evaluation.result import RANKS, Result, differing_facts, shared_facts, text_of
from kernelcore.evaluation.significance import PairedTest, fisher_randomization, holm, mcnemar
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas

_LEVELS = (0.05, 0.01, 0.001)  # largest p-values of one star, of two and of three
_ALPHA = 0.05  # largest corrected p-value of a pair that differs, or that is equivalent
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class ComparedMetric:
    """One metric of all systems, and the p-values of their differences.

    Attributes
    ----------
    task, name : str
        The metric, as in `Result.values`.
    test : str
        The test behind the p-values.
    values : ndarray of float64, shape (n_systems,)
        The means.
    p_values : ndarray of float64, shape (n_systems, n_systems)
        Two-sided p-value of each pair, uncorrected; NaN for pairs that are not tested.
    equivalence_p_values : ndarray of float64, shape (n_systems, n_systems)
        P-value of the two one-sided tests that a pair differs by the margin or more, NaN
        where it is not tested.
    """

    task: str
    name: str
    test: str
    values: Floats
    p_values: Floats
    equivalence_p_values: Floats

    @property
    def adjusted_p_values(self) -> Floats:
        """The p-values corrected by `holm` for the number of pairs that are tested."""
        return _adjusted(self.p_values)

    @property
    def adjusted_equivalence_p_values(self) -> Floats:
        """The p-values of equivalence, corrected in the same way."""
        return _adjusted(self.equivalence_p_values)


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Table of systems; superscripts mark significant differences.

    Attributes
    ----------
    systems : tuple of str
        Names, in the order of the rows.
    metrics : tuple of ComparedMetric
        In the order of the columns.
    baseline : int or None
        Row of the system that the others are compared with; None where all pairs are tested.
    correction : {"holm"} or None
        Whether the stars go by corrected p-values.
    margin : float or None
        The smallest difference that matters.
    facts : str
        What the systems share, for the caption.

    See Also
    --------
    compare : Makes one.
    """

    systems: tuple[str, ...]
    metrics: tuple[ComparedMetric, ...]
    baseline: int | None
    correction: str | None
    margin: float | None
    facts: str

    def to_table(self) -> Table:
        """Return the table as text cells, shares in percent, with their superscripts."""
        marks = {
            ((i, j), mark)
            for j, metric in enumerate(self.metrics, start=1)
            for i, mark in enumerate(self._marks(metric))
            if mark
        }
        cells = [[text_of(of.name, value) for value in of.values] for of in self.metrics]
        groups = [(task, len(list(of))) for task, of in groupby(m.task for m in self.metrics)]
        return Table(
            columns=("system", *(metric.name for metric in self.metrics)),
            rows=tuple(zip(self.systems, *cells, strict=True)),
            groups=(("", 1), *groups) if len(groups) > 1 else (),
            superscripts=frozenset(marks),
            caption=self._caption(),
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row for each metric and pair that is tested.

        Returns
        -------
        pandas.DataFrame
            Columns ``task``, ``metric``, ``system``, ``other``, ``value`` of the system
            (shares in [0, 1]), ``difference`` to the other, ``p_value``,
            ``adjusted_p_value``, the corrected ``equivalence_p_value``, and ``test``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        rows = []
        for metric in self.metrics:
            adjusted = metric.adjusted_p_values
            equivalence = metric.adjusted_equivalence_p_values
            for i, j in np.argwhere(~np.isnan(metric.p_values)).tolist():
                if not (i < j if self.baseline is None else j == self.baseline):
                    continue  # the same pair again
                rows.append(
                    {
                        "task": metric.task,
                        "metric": metric.name,
                        "system": self.systems[i],
                        "other": self.systems[j],
                        "value": metric.values[i],
                        "difference": metric.values[i] - metric.values[j],
                        "p_value": metric.p_values[i, j],
                        "adjusted_p_value": adjusted[i, j],
                        "equivalence_p_value": equivalence[i, j],
                        "test": metric.test,
                    }
                )
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    def _marks(self, metric: ComparedMetric) -> Sequence[str]:
        """Return letters, or stars and a sign of equivalence to the baseline."""
        if self.baseline is None:
            sign = 1 if metric.name in RANKS else -1
            order = np.argsort(sign * metric.values, kind="stable")
            differs = metric.adjusted_p_values[np.ix_(order, order)] <= _ALPHA
            letters = compact_letters(differs)
            return [letters[place] for place in np.argsort(order)]
        p_values = metric.adjusted_p_values if self.correction else metric.p_values
        equivalent = metric.adjusted_equivalence_p_values[self.baseline] <= _ALPHA
        n_stars = (p_values[self.baseline, :, np.newaxis] <= _LEVELS).sum(axis=1)
        return ["*" * int(n) + "=" * int(e) for n, e in zip(n_stars, equivalent, strict=True)]

    def _caption(self) -> str:
        if self.baseline is None:
            about = (
                f"systems with a common letter do not differ at {_ALPHA:g}, all pairs "
                "tested, after Holm's correction in each column"
            )
        else:
            stars = [f"{'*' * i} p <= {p:g}" for i, p in enumerate(_LEVELS, start=1)]
            corrected = " after Holm's correction in each column" if self.correction else ""
            name = self.systems[self.baseline]
            about = f"superscripts: difference to {name}, {', '.join(stars)}{corrected}"
            if self.margin is not None:
                about += (
                    f", = less than {100 * self.margin:g} percentage points apart at "
                    f"{_ALPHA:g} by two one-sided tests and Holm's correction"
                )
        tests: dict[str, dict[str, None]] = {}
        for metric in self.metrics:
            tests.setdefault(metric.test, {})[metric.name] = None
        named = (f"{test} of {', '.join(of)}" for test, of in tests.items())
        return "; ".join(filter(None, ("shares in percent", about, *named, self.facts)))


def compare(
    *systems: Result | Sequence[Result],
    baseline: str | int | None = None,
    metrics: Sequence[str] | None = None,
    margin: float | None = None,
    correction: Literal["holm"] | None = None,
    mid_p: bool = False,
    n_reassignments: int = 100_000,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> Comparison:
    """Test the differences between systems on the same queries.

    Recall at k and other successes are tested by McNemar's test, median ranks and means of
    any other number per query by Fisher's randomisation test, and means over documents that
    share items by `overlap_test`. Hodosh et al. [1]_ compare systems in this way. Where
    several captions of an image are queries, they succeed and fail together: all are tested
    by Fisher's randomisation test, which then swaps the results of whole images.

    Parameters
    ----------
    *systems : Result, or a sequence of Result
        At least two, of different names, on the same pool, by the same rules and of the same
        metrics. Queries without a value in one of them are left out.
    baseline : str or int, optional
        Name or place of the system that the others are compared with: one star for a p-value
        of at most 0.05, two for 0.01, three for 0.001. Without it, all pairs are tested, and
        letters say which do not differ at a corrected p-value of 0.05 [2]_.
    metrics : sequence of str, optional
        Metrics to compare, by their names in `Result.values`. The default is `Result.shown`.
    margin : float, optional
        The smallest difference of shares that matters, 0.02 say. It asks for
        `equivalence_test` of each pair and share too: that two systems do not differ
        significantly does not show that they are equal. With a baseline, "=" marks systems
        that are equivalent to it at a corrected p-value of 0.05; the data frame has all pairs.
    correction : {"holm"}, optional
        Let the stars go by p-values corrected for the number of systems, column by column.
        Letters always do.
    mid_p : bool, default=False
        Take the mid-p of McNemar's test instead of the exact p.
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
        If the systems were not measured alike or an argument does not fit.

    See Also
    --------
    mcnemar, fisher_randomization, holm : The tests.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 4.
    .. [2] H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
       comparisons", Journal of Computational and Graphical Statistics 13(2), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation import compare, evaluate
    >>> scores = np.random.default_rng(0).normal(size=(40, 40))
    >>> good = evaluate(scores + 4 * np.eye(40), ks=(1, 5), system="good")
    >>> poor = evaluate(scores + np.eye(40), ks=(1, 5), system="poor")
    >>> print(compare(poor, good, baseline="good", rng=0))  # doctest: +ELLIPSIS
            --------- annotation ---------  ------------ search -----------
    system      R@1       R@5  median_rank       R@1       R@5  median_rank
    poor    25.0***   45.0***       6.5***   32.5***   47.5***       6.5***
    good    97.5     100.0          1.0     100.0     100.0          1.0
    shares in percent; superscripts: difference to good, * p <= 0.05, ...

    All pairs:

    >>> print(compare(poor, good, metrics=["R@1"], rng=0))  # doctest: +ELLIPSIS
            - annotation -  - search -
    system             R@1         R@1
    poor             25.0b       32.5b
    good             97.5a      100.0a
    shares in percent; systems with a common letter do not differ at 0.05, all pairs ...
    """
    results = _as_results(systems)
    names = tuple(result.system for result in results)
    row = None if baseline is None else _row_of(baseline, names)
    wanted = results[0].columns if metrics is None else tuple(as_list("metrics", metrics))
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"metrics must be different names, at least one, got {wanted}")
    if margin is not None:
        margin = check_real("margin", margin, minimum=0.0)
    if correction is not None:
        check_choice("correction", correction, ("holm",))
    options: dict[str, Any] = {
        "n_reassignments": check_integer("n_reassignments", n_reassignments, minimum=1),
        "rng": check_rng("rng", rng),
        "n_threads": n_threads,
    }
    mid_p = check_flag("mid_p", mid_p)
    return Comparison(
        systems=names,
        metrics=tuple(
            _compared(results, task, name, row=row, mid_p=mid_p, margin=margin, **options)
            for task in results[0].values
            for name in wanted
        ),
        baseline=row,
        correction=correction,
        margin=margin,
        facts=shared_facts(results),
    )


def _as_results(systems: tuple[Any, ...]) -> list[Result]:
    """Return two results or more of different names, measured alike."""
    is_list = len(systems) == 1 and not isinstance(systems[0], Result)
    given = as_list("systems", systems[0] if is_list else systems)
    for result in given:
        if not isinstance(result, Result):
            raise TypeError(f"systems must hold Result objects, got {type(result).__name__}")
    if len(given) < 2:
        raise ValueError(f"systems must be at least two, got {len(given)}")
    names = [result.system for result in given]
    if len(set(names)) != len(names):
        raise ValueError(f"systems must have different names, got {', '.join(names)}")
    differing = [fact for fact in differing_facts(given) if fact != "version"]
    if differing:
        raise ValueError(
            f"systems must be measured alike, got different {', '.join(differing)}"
        )
    queries = [
        [(task, list(of), len(next(iter(of.values())))) for task, of in result.values.items()]
        for result in given
    ]
    for result, own in zip(given, queries, strict=True):
        if own != queries[0] or any(
            result.shared_items(task) != given[0].shared_items(task) for task, *_ in own
        ):
            raise ValueError(
                "systems must have the same metrics of the same queries, and those of "
                f"{names[0]!r} and {result.system!r} differ"
            )
    return given


def _row_of(baseline: str | int, names: tuple[str, ...]) -> int:
    if isinstance(baseline, str):
        return names.index(check_choice("baseline", baseline, names))
    return check_integer("baseline", baseline, minimum=0, maximum=len(names) - 1)


def _compared(
    results: Sequence[Result],
    task: str,
    name: str,
    *,
    row: int | None,
    mid_p: bool,
    margin: float | None,
    **options: Any,
) -> ComparedMetric:
    """Test one metric of all pairs, on the queries that all systems have a value of."""
    check_choice("metrics", name, results[0].values[task])
    values = np.stack([result.values[task][name] for result in results])
    known = np.flatnonzero(~np.isnan(values).any(axis=0)).tolist()
    if not known:
        raise ValueError(f"systems must have a query of {task} that all answered, got none")
    values, items, groups = values[:, known], None, results[0].group.get(task)
    if (shared := results[0].shared_items(task)) is not None:
        items = [shared[i] for i in known]
    test: Callable[[Array, Array], PairedTest]
    if name == "median_rank" or groups is not None:
        options["statistic"] = "median" if name == "median_rank" else "mean"
        of_groups = None if groups is None else groups[known]
        test_name = "Fisher randomisation" + ("" if groups is None else " of whole images")
        test = partial(fisher_randomization, groups=of_groups, **options)
    elif items is not None:
        test_name, test = "t test with shared items", partial(overlap_test, items=items)
    elif np.isin(values, (0, 1)).all():
        values, test = values == 1, partial(mcnemar, mid_p=mid_p)
        test_name = f"{'mid-p' if mid_p else 'exact'} McNemar test"
    else:
        test_name, test = "Fisher randomisation", partial(fisher_randomization, **options)
    n = len(results)
    found, equivalence = np.full((2, n, n), np.nan)
    for i in range(n - 1) if row is None else [row]:
        others = [j for j in range(n) if (j > i if row is None else j != i)]
        found[i, others] = found[others, i] = test(values[others], values[i]).p_value
        if margin is not None and name not in RANKS:
            numbers = values.astype(np.float64)
            tested = equivalence_test(numbers[others], numbers[i], margin, items=items)
            equivalence[i, others] = equivalence[others, i] = tested.p_value
    means = np.array([result.mean[task][name] for result in results])
    return ComparedMetric(task, name, test_name, means, found, equivalence)


def _adjusted(p_values: Floats) -> npt.NDArray[np.float64]:
    """Correct the p-values of all pairs, each once; NaN stays where nothing was tested."""
    adjusted = np.full_like(p_values, np.nan)
    pairs = [
        (i, j) for i, j in combinations(range(len(p_values)), 2) if not np.isnan(p_values[i, j])
    ]
    corrected = holm(np.array([p_values[pair] for pair in pairs]))
    for (i, j), p in zip(pairs, corrected, strict=True):
        adjusted[i, j] = adjusted[j, i] = p
    return adjusted


def compact_letters(different: Array) -> list[str]:
    """Letters for systems: two systems share a letter if and only if they do not differ.

    Parameters
    ----------
    different : ndarray of bool, shape (n_systems, n_systems)
        Whether two systems differ; symmetric, False on the diagonal. The letters follow the
        order of the systems: put the best first.

    Returns
    -------
    list of str
        One or more letters of each system. After z come a2, b2, and so on.

    Notes
    -----
    A letter is a set of systems of which no two differ and which no other system could join.
    Sets are made for one pair after the other that has no letter yet, so that there are at
    most as many as pairs, where the number of all such sets may be exponential. No set is
    left out that is needed, but a smaller number of letters may do.

    References
    ----------
    .. [1] H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
       comparisons", Journal of Computational and Graphical Statistics 13(2), 2004.

    Examples
    --------
    The first differs from the last, the second from neither:

    >>> import numpy as np
    >>> from kernelcore.evaluation.comparison import compact_letters
    >>> compact_letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    ['a', 'ab', 'b']
    """
    same: Array = ~different
    has_letter = different & same  # of each pair: none so far
    groups = []
    for i, j in zip(*same.nonzero(), strict=True):
        is_alone = i == j and same[i].sum() == 1  # it differs from all others
        if (i < j or is_alone) and not has_letter[i, j]:
            members = _joined(same, [i, j])
            for member in members:
                has_letter[member, members] = True
            groups.append(members)
    letters = [""] * len(same)
    for number, members in enumerate(sorted(groups)):
        again, letter = divmod(number, len(_ALPHABET))
        for member in members:
            letters[member] += _ALPHABET[letter] + (str(again + 1) if again else "")
    return letters


def _joined(same: Array, members: list[int]) -> list[int]:
    """Let all systems join that differ from no member, in their order."""
    candidates: Array = np.logical_and.reduce(same[members])
    joined: list[int] = []
    for system in range(len(same)):
        if candidates[system]:
            joined.append(system)
            candidates &= same[system]
    return joined
