"""Pairwise tests of many systems, and letters for groups of systems that do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import (
    Array,
    as_array,
    as_list,
    check_choice,
    check_flag,
    check_real,
    check_rng,
)
from kernelcore.evaluation.comparing import check_systems
from kernelcore.evaluation.labels import shared_facts
from kernelcore.evaluation.published import TASKS
from kernelcore.evaluation.retrieval import RetrievalResult, metrics_by_query
from kernelcore.evaluation.significance import fisher_randomization, holm, mcnemar
from kernelcore.evaluation.table import Table, Tabular

if TYPE_CHECKING:
    import pandas

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class GroupedMetric:
    """One metric of all systems, every pair of them tested, and the letters they get.

    Attributes
    ----------
    task : {"annotation", "search"}
    name : str
    values : ndarray of float64, shape (n_systems,)
        The metric.
    p_values : ndarray of float64, shape (n_systems, n_systems)
        Two-sided p-value of each pair, uncorrected; 1 on the diagonal.
    adjusted_p_values : ndarray of float64, shape (n_systems, n_systems)
        The same corrected by `holm` for the number of pairs.
    letters : tuple of str
        Letters of each system: two systems share one unless they differ significantly.
    """

    task: str
    name: str
    values: npt.NDArray[np.float64]
    p_values: npt.NDArray[np.float64]
    adjusted_p_values: npt.NDArray[np.float64]
    letters: tuple[str, ...]

    @property
    def n_tied_neighbours(self) -> int:
        """Number of systems that do not differ from the next better system."""
        order = _best_first(self.name, self.values)
        marks = [_marks(self.letters[system]) for system in order]
        return sum(bool(better & worse) for better, worse in pairwise(marks))


@dataclass(frozen=True, eq=False)
class TieGroups(Tabular):
    """Table of systems whose superscripts say which of them differ.

    Attributes
    ----------
    systems : tuple of str
        Names, in the order of the rows.
    metrics : tuple of GroupedMetric
        In the order of the columns.
    alpha : float
        Largest adjusted p-value of a pair that differs.
    facts : str
        What the systems share, for the caption.

    See Also
    --------
    tie_groups : Makes one.
    """

    systems: tuple[str, ...]
    metrics: tuple[GroupedMetric, ...]
    alpha: float
    facts: str = ""

    def to_table(self) -> Table:
        """Return the table as text cells, with letters as superscripts."""
        cells = [[_cell(of.name, value) for value in of.values] for of in self.metrics]
        groups = [(task, len(list(of))) for task, of in groupby(m.task for m in self.metrics)]
        tied = ", ".join(
            f"{of.task} {of.name} {of.n_tied_neighbours} of {len(self.systems) - 1}"
            for of in self.metrics
        )
        return Table(
            columns=("system", *(metric.name for metric in self.metrics)),
            rows=tuple(zip(self.systems, *cells, strict=True)),
            groups=(("", 1), *groups),
            superscripts=frozenset(
                ((i, j + 1), letters)
                for j, metric in enumerate(self.metrics)
                for i, letters in enumerate(metric.letters)
            ),
            caption=";\n".join(
                part
                for part in (
                    "R@k, MAP and nDCG in percent",
                    f"systems with a common letter do not differ at {self.alpha:g}, all pairs "
                    "tested, after Holm's correction in each column",
                    f"neighbours that do not differ: {tied}",
                    self.facts,
                )
                if part
            ),
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per system and metric.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``task``, ``metric``, ``value`` (shares in [0, 1]) and
            ``letters``.

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
                "letters": metric.letters[i],
            }
            for i, system in enumerate(self.systems)
            for metric in self.metrics
        ]
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame


def tie_groups(
    systems: Sequence[RetrievalResult],
    *,
    metrics: Sequence[str] | None = None,
    alpha: float = 0.05,
    mid_p: bool = False,
    n_reassignments: int = 100_000,
    rng: np.random.Generator | int | None = None,
    n_threads: int | None = None,
) -> TieGroups:
    """Test all pairs of systems on the same queries and put those that do not differ in groups.

    Recalls are tested by McNemar's test, the others by Fisher's randomisation test. P-values
    are corrected by Holm's method for the number of pairs, n (n - 1) / 2, in each column.

    Parameters
    ----------
    systems : sequence of RetrievalResult
        At least two, of different names, on the same pool, by the same tie rule and with the
        same k.
    metrics : sequence of str, optional
        ``R@k`` and ``nDCG@k`` for the k of the results, ``median rank``, ``mean rank``,
        ``MRR`` and ``MAP``. The default is all recalls, whose test takes almost no time.
    alpha : float, default=0.05
        Largest adjusted p-value of two systems that differ, between 0 and 1.
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
    TieGroups
        Prints as text, Markdown, LaTeX and HTML; p-values are arrays.

    Raises
    ------
    TypeError, ValueError
        If the systems were not measured alike or an argument does not fit.

    See Also
    --------
    compare : One system against all others.
    compact_letters : The letters alone.

    Notes
    -----
    Systems that share a letter were not told apart by these queries; they need not be equal.

    References
    ----------
    .. [1] H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
       comparisons", Journal of Computational and Graphical Statistics 13(2), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.evaluation import evaluate, tie_groups
    >>> noise = np.random.default_rng(0).normal(size=(3, 90, 90))
    >>> models = [evaluate(scores + gain * np.eye(90), ks=(1,), system=name)
    ...           for scores, gain, name in zip(noise, (4, 4, 2), ("one", "two", "poor"))]
    >>> print(tie_groups(models))  # doctest: +ELLIPSIS
            - annotation -  - search -
    system             R@1         R@1
    one              90.0a       92.2a
    two              94.4a       93.3a
    poor             36.7b       32.2b
    R@k, MAP and nDCG in percent; systems with a common letter do not differ at 0.05, ...
    """
    results = as_list("systems", systems)
    for result in results:
        if not isinstance(result, RetrievalResult):
            raise TypeError(
                f"systems must hold RetrievalResult objects, got {type(result).__name__}"
            )
    names = tuple(result.system for result in results)
    check_systems(names, results)
    alpha = check_real("alpha", alpha, minimum=0.0, maximum=1.0)
    generator = check_rng("rng", rng)
    mid_p = check_flag("mid_p", mid_p)
    by_query = {
        task: [metrics_by_query(getattr(result, task)) for result in results] for task in TASKS
    }
    known = [
        name
        for name in by_query["search"][0]
        if all(name in values for of in by_query.values() for values in of)
    ]
    wanted = [name for name in known if name.startswith("R@")]
    if metrics is not None:
        wanted = [check_choice("metrics", name, known) for name in as_list("metrics", metrics)]
        if not wanted or len(set(wanted)) < len(wanted):
            raise ValueError(f"metrics must be different names, at least one, got {wanted}")
    grouped = []
    for task in TASKS:
        for name in wanted:
            values = np.stack([numbers[name] for numbers in by_query[task]])
            p_values = np.ones((len(names), len(names)))
            for i in range(len(names) - 1):
                if name.startswith("R@"):
                    test = mcnemar(values[i + 1 :] == 1, values[i] == 1, mid_p=mid_p)
                else:
                    test = fisher_randomization(
                        values[i + 1 :],
                        values[i],
                        statistic="median" if name == "median rank" else "mean",
                        n_reassignments=n_reassignments,
                        rng=generator,
                        n_threads=n_threads,
                    )
                p_values[i, i + 1 :] = p_values[i + 1 :, i] = test.p_value
            grouped.append(_grouped(task, name, values, p_values, alpha))
    return TieGroups(names, tuple(grouped), alpha, shared_facts(results))


def compact_letters(different: npt.ArrayLike) -> list[str]:
    """Letters for systems: two systems share a letter if and only if they do not differ.

    Parameters
    ----------
    different : array_like of bool, shape (n_systems, n_systems)
        Whether two systems differ; symmetric, False on the diagonal. The letters follow the
        order of the systems: put the best first.

    Returns
    -------
    list of str
        One or more letters of each system. After z come a2, b2, and so on.

    Raises
    ------
    TypeError, ValueError
        If `different` is not a symmetric boolean matrix whose diagonal is False.

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

    >>> from kernelcore.evaluation import compact_letters
    >>> compact_letters([[False, False, True], [False, False, False], [True, False, False]])
    ['a', 'ab', 'b']
    """
    matrix = as_array("different", different, ndim=2)
    if matrix.dtype != bool:
        raise TypeError(f"different must hold booleans, got dtype {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"different must be a square matrix, got shape {matrix.shape}")
    if (matrix != matrix.T).any() or matrix.diagonal().any():
        raise ValueError("different must be symmetric, and False on the diagonal")
    alike = ~matrix
    has_letter = np.zeros_like(alike)
    groups = []
    for i, j in np.argwhere(np.triu(alike)).tolist():
        if i == j and alike[i].sum() > 1:
            continue  # a letter of its own is for a system that differs from all others
        if not has_letter[i, j]:
            members = _joined(alike, [i, j])
            has_letter[np.ix_(members, members)] = True
            groups.append(members)
    letters = [""] * len(alike)
    for number, members in enumerate(sorted(groups)):
        again, letter = divmod(number, len(_ALPHABET))
        for member in members:
            letters[member] += _ALPHABET[letter] + (str(again + 1) if again else "")
    return letters


def _joined(alike: Array, members: list[int]) -> list[int]:
    """Let all systems join that differ from no member, in their order."""
    candidates = np.logical_and.reduce(alike[members])
    joined: list[int] = []
    for system in range(len(alike)):
        if candidates[system]:
            joined.append(system)
            candidates &= alike[system]
    return joined


def _grouped(
    task: str, name: str, values: Array, p_values: npt.NDArray[np.float64], alpha: float
) -> GroupedMetric:
    pairs = np.triu_indices(len(p_values), 1)
    adjusted = np.ones_like(p_values)
    adjusted[pairs] = adjusted.T[pairs] = holm(p_values[pairs])
    summed = np.median(values, axis=1) if name == "median rank" else np.mean(values, axis=1)
    order = _best_first(name, summed)
    letters = [""] * len(order)
    ordered = adjusted[np.ix_(order, order)] <= alpha
    np.fill_diagonal(ordered, val=False)
    for system, text in zip(order, compact_letters(ordered), strict=True):
        letters[system] = text
    return GroupedMetric(task, name, summed, p_values, adjusted, tuple(letters))


def _best_first(name: str, values: Array) -> list[int]:
    order = np.argsort(values if name.endswith("rank") else -values, kind="stable")
    return [int(system) for system in order]


def _marks(letters: str) -> set[str]:
    """Return the letters one by one; a number belongs to the letter before it."""
    marks: list[str] = []
    for character in letters:
        if character.isdigit():
            marks[-1] += character
        else:
            marks.append(character)
    return set(marks)


def _cell(name: str, value: float) -> str:
    if name == "MRR":
        return f"{value:.3f}"
    return f"{value:.1f}" if name.endswith("rank") else f"{100 * value:.1f}"
