"""Results of image search and annotation, alone and side by side in a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._files import digest
from kernelcore._validation import check_choice
from kernelcore.evaluation.labels import (
    DirectionMetrics,
    LabelledResult,
    differing_facts,
    shared_facts,
)
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.summary import summary_table
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas

_TASKS = ("annotation", "search")
_RANKS = {"median": "median", "mean": "mean rank"}
_LABELS = ("protocol", "dataset", "split", "pool", "version")


class RankedMetrics(DirectionMetrics, Protocol):
    """Metrics of one direction, as results of ranking use them."""

    @property
    def ranks(self) -> npt.NDArray[np.float64]: ...  # noqa: D102
    @property
    def recall(self) -> dict[int, float]: ...  # noqa: D102


_Ranked = TypeVar("_Ranked", bound=RankedMetrics)


@dataclass(frozen=True)
class RankedResult(LabelledResult[_Ranked]):
    """Base class of results of ranking: sum of recalls, signature and tables."""

    @property
    def rsum(self) -> float:
        """Sum of the recalls of both tasks, as shares: at most 6 for three k (600 percent)."""
        return sum(self.annotation.recall.values()) + sum(self.search.recall.values())

    @property
    def signature(self) -> str:
        """One line to print under a table: whoever gets the same line has the same ranks.

        It names what the ranks depend on, and ends with a digest of the rank of every query.
        """
        ranks = (np.asarray(side.ranks, "<f8") for side in (self.annotation, self.search))
        parts = {
            "kernelcore": self.version,
            "images": self.n_images,
            "captions": self.n_captions,
            "folds": getattr(self, "n_folds", None),
            "similarity": self.settings.get("similarity"),
            "ties": self.ties,
            "k": ",".join(map(str, self.ks)),
            "ranks": digest(*(array.tobytes() for array in ranks))[:12],
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)

    def _numbers(self) -> dict[str, Any]:
        return {"signature": self.signature, "rsum": self.rsum, **super()._numbers()}

    def summary(
        self,
        *,
        n_resamples: int = 1000,
        confidence: float = 0.95,
        rng: np.random.Generator | int | None = 0,
    ) -> Table:
        """Return every metric with its interval, the effect of ties, and chance.

        Parameters
        ----------
        n_resamples : int, default=1000
            How many times the queries are drawn anew for the bootstrap intervals.
        confidence : float, default=0.95
            Share of the resampled values inside an interval, between 0 and 1.
        rng : numpy.random.Generator, int or None, default=0
            Source of the draws; an int is a seed.

        Returns
        -------
        Table
            One row per metric and, for each task, the value, the percentile interval of
            `bootstrap_interval`, the difference between ties in favour of the system and
            against it, and what a random order is expected to reach. Recalls, MAP and nDCG
            are in percent. What is not known is left empty.

        Raises
        ------
        TypeError, ValueError
            If an option is out of range.

        Notes
        -----
        An interval speaks of other queries from the same source. Captions of one image are
        drawn as if they were independent, which makes the intervals of search narrow.

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> print(evaluate([[0.9, 0.4], [0.9, 0.3]], ks=(1,)).summary())
                     ------------ annotation ------------  -------------- search --------------
        metric       value             95%   ties  chance  value             95%   ties  chance
        R@1           50.0    0.0 to 100.0    0.0   50.00    0.0      0.0 to 0.0   50.0   50.00
        ...
        rsum 50.0; R@k, MAP, nDCG and rsum in percent;
        ...
        """
        return summary_table(self, n_resamples, confidence, rng)

    def to_table(self) -> Table:
        """Return a table of one row, recalls in percent."""
        return self._as_table().to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per direction; see `ResultTable.to_frame`."""
        return self._as_table().to_frame()

    def _as_table(self) -> ResultTable:
        return ResultTable([self])


@dataclass(frozen=True)
class RetrievalResult(RankedResult[RankingMetrics]):
    """Both directions of one system on one pool of images and captions.

    Attributes
    ----------
    annotation : RankingMetrics
        Queries are images, candidates are captions.
    search : RankingMetrics
        Queries are captions, candidates are images.
    system, protocol, dataset, split, pool : str
        What was measured, on what, and which captions formed the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If the directions do not belong together, a label is not one line of text, or the
        settings do not fit into JSON.

    See Also
    --------
    evaluate : Makes one from a matrix of scores.

    Examples
    --------
    >>> from kernelcore.evaluation import RetrievalResult, evaluate
    >>> result = evaluate([[0.9, 0.4], [0.1, 0.3]], system="toy", split="test")
    >>> RetrievalResult.from_json(result.to_json()) == result
    True
    """

    _kind = "retrieval result"
    _metrics = RankingMetrics


@dataclass(frozen=True)
class PublishedMetrics:
    """Numbers of one direction as a publication gives them; what it does not give is left out.

    Attributes
    ----------
    recall : mapping of int to float
        Recall at k as a share in [0, 1], by k.
    median_rank, mean_rank : float or None
    """

    recall: Mapping[int, float] = field(default_factory=dict)
    median_rank: float | None = None
    mean_rank: float | None = None


@dataclass(frozen=True)
class PublishedResult:
    """A row of a published table, to stand beside results of our own.

    Attributes
    ----------
    system : str
        Name of the system in the publication.
    source : str
        The publication, short: "Hodosh et al. 2013".
    annotation, search : PublishedMetrics
    """

    system: str
    source: str
    annotation: PublishedMetrics = PublishedMetrics()
    search: PublishedMetrics = PublishedMetrics()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values; those not published are missing."""
        document: dict[str, Any] = {
            "kind": "published result",
            "system": self.system,
            "source": self.source,
        }
        for task in _TASKS:
            metrics: PublishedMetrics = getattr(self, task)
            document[task] = {f"R@{k}": share for k, share in metrics.recall.items()}
            for name in ("median_rank", "mean_rank"):
                if getattr(metrics, name) is not None:
                    document[task][name] = getattr(metrics, name)
        return document


@dataclass(frozen=True)
class ResultTable:
    """Results of several systems, one row each, both directions.

    What all results share (data set, split, pool, sizes, tie rule, version) stands once, in
    the caption; what differs gets a column, so that numbers of different pools are never
    compared unawares. Recalls are printed in percent. Where nothing differs, the best
    measured value of a column is bold in Markdown, LaTeX and HTML; published numbers are
    printed, not judged.

    Attributes
    ----------
    results : tuple of RetrievalResult, FoldedResult or PublishedResult
        In the order of the rows; at least one was measured.
    rank : {"median", "mean"}
        Which rank is printed behind the recalls.

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If nothing was measured, the results report recall at different k, or `rank` is
        neither.

    Examples
    --------
    >>> from kernelcore.evaluation import (
    ...     PublishedMetrics, PublishedResult, ResultTable, evaluate
    ... )
    >>> ours = evaluate([[0.9, 0.1], [0.8, 0.3]], ks=(1,), system="ours", split="test")
    >>> theirs = PublishedResult("theirs", "Doe 2013", PublishedMetrics({1: 0.5}, 1.5))
    >>> print(ResultTable([ours, theirs]).to_markdown())  # doctest: +ELLIPSIS
    | system | annotation R@1 | annotation median | search R@1 | search median |
    | :-- | --: | --: | --: | --: |
    | ours | 50.0 | 1.5 | 100.0 | 1.0 |
    | theirs (Doe 2013) | 50.0 | 1.5 | n/a | n/a |
    <BLANKLINE>
    R@k in percent; split test, 2 images, 2 captions, ties mean, kernelcore ...
    """

    results: Sequence[RankedResult[Any] | PublishedResult]
    rank: Literal["median", "mean"] = "median"

    def __post_init__(self) -> None:
        check_choice("rank", self.rank, _RANKS)
        object.__setattr__(self, "results", tuple(self.results))
        for result in self.results:
            if not isinstance(result, (RankedResult, PublishedResult)):
                raise TypeError(
                    "results must hold RetrievalResult, FoldedResult or PublishedResult "
                    f"objects, got {type(result).__name__}"
                )
        if not self._measured:
            raise ValueError("results must hold at least one measured result, got none")
        ks = sorted({result.ks for result in self._measured})
        if len(ks) > 1:
            raise ValueError(
                f"results must report recall at the same k, got {' and '.join(map(str, ks))}"
            )

    def __str__(self) -> str:
        return str(self.to_table())

    def to_table(self) -> Table:
        """Return the table as text cells, which print in every format."""
        ks = self._measured[0].ks
        headings = [*(f"R@{k}" for k in ks), _RANKS[self.rank]]
        differing = differing_facts(self._measured)
        best = {} if differing or len(self._measured) == 1 else self._best()
        n_labels = 1 + len(differing)
        rows, emphasized = [], set()
        for i, result in enumerate(self.results):
            cells = [_name(result), *(str(getattr(result, fact, "")) for fact in differing)]
            for key, value in self._values(result, ks).items():
                if not isinstance(result, PublishedResult) and value == best.get(key):
                    emphasized.add((i, len(cells)))
                cells.append(_cell(value, key))
            rows.append(tuple(cells))
        return Table(
            columns=("system", *differing, *headings, *headings),
            rows=tuple(rows),
            n_labels=n_labels,
            groups=(("", n_labels), *((task, len(headings)) for task in _TASKS)),
            emphasized=frozenset(emphasized),
            caption=";\n".join(
                line
                for line in (
                    f"R@k in percent; {shared_facts(self._measured)}",
                    _chance_of(self._measured),
                    _tie_effect_of(self._measured),
                )
                if line
            ),
        )

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_table().to_html()

    def to_markdown(self) -> str:
        """Return a Markdown table, recalls in percent."""
        return self.to_table().to_markdown()

    def to_latex(self) -> str:
        """Return a LaTeX table, recalls in percent; see `Table.to_latex`."""
        return self.to_table().to_latex()

    def to_dict(self) -> dict[str, Any]:
        """Return every result as plain values, recalls as shares in [0, 1]."""
        return {"results": [result.to_dict() for result in self.results]}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per result and direction.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``source`` (empty for what was measured), ``task``, the
            labels and sizes, ``R@k`` as shares in [0, 1] and the other metrics; what a
            publication does not give is missing.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        rows = []
        for result in self.results:
            document = result.to_dict()
            for task in _TASKS:
                row = {name: document.get(name, "") for name in ("system", "source")}
                row |= {"task": task}
                row |= {label: document.get(label) for label in _LABELS}
                row |= {
                    name: value
                    for name, value in document[task].items()
                    if not isinstance(value, list)
                }
                rows.append(row)
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    @property
    def _measured(self) -> list[RankedResult[Any]]:
        return [result for result in self.results if not isinstance(result, PublishedResult)]

    def _best(self) -> dict[tuple[str, str], float]:
        """Best measured value of each task and metric."""
        columns: dict[tuple[str, str], list[float]] = {}
        for result in self._measured:
            for key, value in self._values(result, result.ks).items():
                columns.setdefault(key, []).append(value)  # type: ignore[arg-type]
        return {
            key: max(values) if key[1].startswith("R@") else min(values)
            for key, values in columns.items()
        }

    def _values(
        self, result: RankedResult[Any] | PublishedResult, ks: Sequence[int]
    ) -> dict[tuple[str, str], float | None]:
        """Return the printed values by task and metric; None for what is not published."""
        values: dict[tuple[str, str], float | None] = {}
        for task in _TASKS:
            metrics = getattr(result, task)
            recall = metrics.recall
            values |= {(task, f"R@{k}"): recall.get(k) for k in ks}
            values[task, _RANKS[self.rank]] = getattr(metrics, f"{self.rank}_rank")
        return values


def _chance_of(results: Sequence[RankedResult[Any]]) -> str:
    """Return what a random order would reach, once for all results of one pool."""
    systems: dict[str, list[str]] = {}
    for result in results:
        shares = ", ".join(
            " ".join([task, *(f"{100 * share:.3g}" for share in chance.values())])
            for task in _TASKS
            if (chance := getattr(result, task).chance_recall)
        )
        systems.setdefault(shares, []).append(_name(result))
    if len(systems) == 1:
        return f"chance: {next(iter(systems))}"
    return ";\n".join(f"chance of {', '.join(of)}: {shares}" for shares, of in systems.items())


def _tie_effect_of(results: Sequence[RankedResult[Any]]) -> str:
    """Return the most that the order of ties makes of a recall, where that is known."""
    directions = [getattr(result, task) for result in results for task in _TASKS]
    effects = [
        effect
        for direction in directions
        if direction.has_places
        for effect in direction.tie_effect.values()
    ]
    return f"ties move R@k by at most {100 * max(effects):.1f}" if effects else ""


def _cell(value: float | None, key: tuple[str, str]) -> str:
    if value is None:
        return "n/a"
    return f"{100 * value:.1f}" if key[1].startswith("R@") else f"{value:.1f}"


def _name(result: RankedResult[Any] | PublishedResult) -> str:
    if isinstance(result, PublishedResult):
        return f"{result.system} ({result.source})"
    return result.system or "(unnamed)"
