"""How often a system selects the right one of two images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import (
    as_list,
    as_real_array,
)
from kernelcore.datasets.judgments import as_ids
from kernelcore.evaluation.labels import Labelled, differing_facts, shared_facts
from kernelcore.evaluation.metrics import wilson_interval
from kernelcore.evaluation.significance import PairedTest, mcnemar
from kernelcore.evaluation.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class SelectionResult(Labelled):
    """Binary image selection by one system.

    Attributes
    ----------
    triple_ids : tuple of str
        Id of each triple, no two the same.
    outcomes : ndarray of float64, shape (n_triples,)
        1 where the system selected the true image, 0 where it selected the other, 0.5 where
        both had the same score, NaN where it did not answer.
    selections : str
        What asked; one line.
    system, protocol, dataset, split : str
        What was measured, on what. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If a part does not fit the others, an outcome is another number, no triple was
        answered, a label is not one line of text, or the settings do not fit into JSON.

    See Also
    --------
    evaluate_selections, evaluate_selection_predictions : Make one.
    compare_selections : Tests the difference between two.
    selection_table : Puts several side by side.

    Examples
    --------
    >>> from kernelcore.evaluation import SelectionResult
    >>> result = SelectionResult(["a", "b", "c"], [1, 0.5, float("nan")], system="toy")
    >>> result
    SelectionResult('toy', accuracy=0.7500, 2 of 3 triples, 1 tied)
    >>> SelectionResult.from_json(result.to_json()) == result
    True
    """

    triple_ids: tuple[str, ...]
    outcomes: npt.NDArray[np.float64]
    selections: str = ""

    _kind = "selection result"
    _labels = (*Labelled._labels, "selections")

    def __post_init__(self) -> None:
        super().__post_init__()
        triple_ids = as_ids("triple_ids", self.triple_ids)
        outcomes = np.array(as_real_array("outcomes", self.outcomes, ndim=1), dtype=np.float64)
        if len(outcomes) != len(triple_ids):
            raise ValueError(
                f"outcomes must have one entry per triple ({len(triple_ids)}), "
                f"got {len(outcomes)}"
            )
        answers = outcomes[~np.isnan(outcomes)]
        odd = answers[~np.isin(answers, (0.0, 0.5, 1.0))]
        if odd.size:
            raise ValueError(f"outcomes must be 0, 0.5, 1 or NaN, got {odd[0]}")
        if not answers.size:
            raise ValueError(
                f"outcomes must hold at least one answer, got none to {len(outcomes)} triples"
            )
        outcomes.flags.writeable = False
        object.__setattr__(self, "triple_ids", triple_ids)
        object.__setattr__(self, "outcomes", outcomes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SelectionResult) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"SelectionResult({self.system!r}, accuracy={self.accuracy:.4f}, "
            f"{self.n_answered} of {self.n_triples} triples, {self.n_tied} tied)"
        )

    @property
    def n_triples(self) -> int:
        """Number of triples, answered or not."""
        return len(self.triple_ids)

    @property
    def n_answered(self) -> int:
        """Triples that the accuracy is over."""
        return int(np.count_nonzero(~np.isnan(self.outcomes)))

    @property
    def n_tied(self) -> int:
        """Triples whose images had the same score."""
        return int(np.count_nonzero(self.outcomes == 0.5))

    @property
    def accuracy(self) -> float:
        """Share of the answered triples whose true image was selected; a tie counts half."""
        return float(np.nanmean(self.outcomes))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Wilson interval of the accuracy; see `wilson_interval`.

        It takes triples for independent, which those that share images or captions are not
        quite: the true interval is somewhat wider.
        """
        return wilson_interval(self.accuracy, self.n_answered, confidence=confidence)

    def to_table(self) -> Table:
        """Return a table of one row, in percent; see `selection_table`."""
        return selection_table([self])

    def _numbers(self) -> dict[str, Any]:
        low, high = self.interval()
        return {
            "n_triples": self.n_triples,
            "n_answered": self.n_answered,
            "n_tied": self.n_tied,
            "accuracy": self.accuracy,
            "interval": [low, high],
            "triple_ids": list(self.triple_ids),
            "outcomes": [None if np.isnan(x) else x for x in self.outcomes.tolist()],
        }

    @classmethod
    def _as_fields(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "triple_ids": tuple(document["triple_ids"]),
            "outcomes": np.array(document["outcomes"], dtype=np.float64),
        }


@dataclass(frozen=True)
class PublishedSelection:
    """A row of a published table, to stand beside results of our own.

    Attributes
    ----------
    system : str
        Name of the system in the publication.
    source : str
        The publication and its collection, short: "COCO-BISON, Hu et al. 2019".
    accuracy : float
        As a share in [0, 1].
    """

    system: str
    source: str
    accuracy: float


def selection_table(results: Sequence[SelectionResult | PublishedSelection]) -> Table:
    """Put results of binary image selection side by side, in percent.

    What all measured results share stands once, in the caption; what differs gets a column.
    Where nothing differs, the best measured accuracy is bold; published numbers are printed,
    not judged.

    Parameters
    ----------
    results : sequence of SelectionResult or PublishedSelection
        One row each; at least one was measured.

    Returns
    -------
    Table
        Accuracy, its 95 % Wilson interval, and how many triples were tied.

    Raises
    ------
    TypeError
        If something else is among the results.
    ValueError
        If nothing was measured.

    Examples
    --------
    >>> from kernelcore.evaluation import PublishedSelection, SelectionResult, selection_table
    >>> ours = SelectionResult(["a", "b"], [1, 0], system="ours", selections="garden")
    >>> print(selection_table([ours, PublishedSelection("theirs", "Doe 2019", 0.8)]))
    ... # doctest: +ELLIPSIS
    system             accuracy     interval  ties
    ours                   50.0  9.5 to 90.5     0
    theirs (Doe 2019)      80.0          n/a   n/a
    In percent; garden, 2 triples, 2 answered, kernelcore ...
    """
    results = as_list("results", results)
    for result in results:
        if not isinstance(result, (SelectionResult, PublishedSelection)):
            raise TypeError(
                "results must hold SelectionResult or PublishedSelection objects, "
                f"got {type(result).__name__}"
            )
    measured = [result for result in results if isinstance(result, SelectionResult)]
    if not measured:
        raise ValueError("results must hold at least one measured result, got none")
    differing = differing_facts(measured)
    n_labels = 1 + len(differing)
    best = max(result.accuracy for result in measured)
    return Table(
        columns=("system", *differing, "accuracy", "interval", "ties"),
        rows=tuple(_row(result, differing) for result in results),
        n_labels=n_labels,
        emphasized=frozenset(
            (i, n_labels)
            for i, result in enumerate(results)
            if isinstance(result, SelectionResult) and result.accuracy == best
            if len(measured) > 1 and not differing
        ),
        caption=f"In percent; {shared_facts(measured)}",
    )


def compare_selections(
    result: SelectionResult, baseline: SelectionResult, *, mid_p: bool = False
) -> PairedTest:
    """McNemar's test between two systems that were asked the same.

    Parameters
    ----------
    result, baseline : SelectionResult
        Results over the same triples in the same order.
    mid_p : bool, default=False
        As for `mcnemar`.

    Returns
    -------
    PairedTest
        ``difference`` is that of the shares of triples whose true image was selected. A tie
        is no success here. Triples that one of the two did not answer are left out.

    Raises
    ------
    TypeError, ValueError
        If the results are not over the same triples, or no triple was answered by both.

    Examples
    --------
    >>> from kernelcore.evaluation import SelectionResult, compare_selections
    >>> triples = [f"{i}" for i in range(8)]
    >>> ours = SelectionResult(triples, [1, 1, 1, 1, 1, 1, 1, 0])
    >>> theirs = SelectionResult(triples, [0, 0, 0, 0, 0, 0, 1, 0])
    >>> test = compare_selections(ours, theirs)
    >>> print(test.difference, test.p_value)
    0.75 0.03125
    """
    for name, value in (("result", result), ("baseline", baseline)):
        if not isinstance(value, SelectionResult):
            raise TypeError(f"{name} must be a SelectionResult, got {type(value).__name__}")
    if result.triple_ids != baseline.triple_ids:
        raise ValueError(
            "baseline must be over the triples of result, in the same order, and is over others"
        )
    answered = ~np.isnan(result.outcomes + baseline.outcomes)
    if not answered.any():
        raise ValueError("result and baseline must have answered a triple both, got none")
    return mcnemar(
        result.outcomes[answered] == 1, baseline.outcomes[answered] == 1, mid_p=mid_p
    )


def _row(
    result: SelectionResult | PublishedSelection, differing: Sequence[str]
) -> tuple[str, ...]:
    facts = (str(getattr(result, fact, "")) for fact in differing)
    accuracy = f"{100 * result.accuracy:.1f}"
    if isinstance(result, PublishedSelection):
        return f"{result.system} ({result.source})", *facts, accuracy, "n/a", "n/a"
    low, high = result.interval()
    interval = f"{100 * low:.1f} to {100 * high:.1f}"
    return result.system or "(unnamed)", *facts, accuracy, interval, str(result.n_tied)
