"""Several results side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kernelcore import _extras
from kernelcore._validation import check_choice
from kernelcore.evaluation.folds import FoldedResult
from kernelcore.evaluation.result import RetrievalResult, differing_facts, shared_facts
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas

Measured: TypeAlias = RetrievalResult | FoldedResult

_TASKS = ("annotation", "search")
_RANKS = {"median": "median", "mean": "mean rank"}
_LABELS = ("protocol", "dataset", "split", "pool", "version")


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

    results: Sequence[Measured | PublishedResult]
    rank: Literal["median", "mean"] = "median"

    def __post_init__(self) -> None:
        check_choice("rank", self.rank, _RANKS)
        object.__setattr__(self, "results", tuple(self.results))
        for result in self.results:
            if not isinstance(result, (RetrievalResult, FoldedResult, PublishedResult)):
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
    def _measured(self) -> list[Measured]:
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
        self, result: Measured | PublishedResult, ks: Sequence[int]
    ) -> dict[tuple[str, str], float | None]:
        """Return the printed values by task and metric; None for what is not published."""
        values: dict[tuple[str, str], float | None] = {}
        for task in _TASKS:
            metrics = getattr(result, task)
            recall = metrics.recall
            values |= {(task, f"R@{k}"): recall.get(k) for k in ks}
            values[task, _RANKS[self.rank]] = getattr(metrics, f"{self.rank}_rank")
        return values


def _chance_of(results: Sequence[Measured]) -> str:
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


def _tie_effect_of(results: Sequence[Measured]) -> str:
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


def _name(result: Measured | PublishedResult) -> str:
    if isinstance(result, PublishedResult):
        return f"{result.system} ({result.source})"
    return result.system or "(unnamed)"
