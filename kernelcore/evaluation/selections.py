"""Binary image selection: how often a system selects the right one of two images."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, as_real_array
from kernelcore.datasets.judgments import as_ids
from kernelcore.datasets.records import DatasetWarning
from kernelcore.datasets.selections import BinarySelections
from kernelcore.evaluation.labels import Labels, checked_labels
from kernelcore.evaluation.metrics import wilson_interval
from kernelcore.evaluation.ranks import as_scores
from kernelcore.evaluation.result import Column, Result, ResultTable
from kernelcore.evaluation.significance import PairedTest, mcnemar

PairScorer: TypeAlias = Callable[[Sequence[str], Sequence[str]], npt.ArrayLike]
"""Takes as many image ids as caption ids and returns the score of each pair."""

_PAIRS_PER_CALL = 10_000
_N_NAMED = 3

_IDS = "be a sequence of strings"


@dataclass(frozen=True, eq=False, repr=False)
class SelectionResult(Result):
    """Binary image selection by one system.

    Attributes
    ----------
    triple_ids : tuple of str
        Id of each triple, no two the same.
    outcomes : ndarray of float64, shape (n_triples,)
        1 where the system selected the true image, 0 where it selected the other, 0.5 where
        both had the same score, NaN where it did not answer.
    selections : str
        Name of the questions; one line.
    system, protocol, dataset, split : str
        The system, the protocol, the dataset and its split. One line each.
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
    ResultTable : Puts several side by side.

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
    _labels = (*Result._labels, "selections")

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
        """Number of answered triples: the accuracy is over these."""
        return int(np.count_nonzero(~np.isnan(self.outcomes)))

    @property
    def n_tied(self) -> int:
        """Number of triples whose images had the same score."""
        return int(np.count_nonzero(self.outcomes == 0.5))

    @property
    def accuracy(self) -> float:
        """Share of the answered triples whose true image was selected; a tie counts half."""
        return float(np.nanmean(self.outcomes))

    @property
    def mean(self) -> dict[str, float]:
        """The accuracy by its name."""
        return {"accuracy": self.accuracy}

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Wilson interval of the accuracy; see `wilson_interval`.

        It assumes that triples are independent. Triples that share images or captions are
        not, so the true interval is somewhat wider.
        """
        return wilson_interval(self.accuracy, self.n_answered, confidence=confidence)

    def _columns(self, table: ResultTable) -> list[Column]:
        others = (Column(name, name, best=None) for name in ("interval", "ties"))
        return [Column("accuracy", "accuracy"), *others]

    def _cell(self, column: Column, table: ResultTable) -> str:
        if column.key == "interval":
            low, high = self.interval()
            return f"{100 * low:.1f} to {100 * high:.1f}"
        return str(self.n_tied) if column.key == "ties" else super()._cell(column, table)

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


def evaluate_selections(
    selections: BinarySelections,
    scores: npt.ArrayLike | PairScorer,
    *,
    image_ids: Sequence[str] | None = None,
    caption_ids: Sequence[str] | None = None,
    **labels: Unpack[Labels],
) -> SelectionResult:
    r"""Measure how often the image that a caption describes has the better score.

    .. math::

        \mathrm{accuracy} = \frac{1}{n} \sum_{(c, i, j)} [s_{ic} > s_{jc}]
        + \tfrac12 [s_{ic} = s_{jc}]

    over triples of a caption c, its true image i and another image j.

    Parameters
    ----------
    selections : BinarySelections
        The questions.
    scores : array_like of shape (n_images, n_captions), or callable
        Score of every caption for every image, higher is better, as rankers give them. Or a
        function that scores pairs: it is called with some image ids and as many caption ids
        and returns one score for each; every pair is asked for once, in an order that does
        not tell the true image.
    image_ids, caption_ids : sequence of str, optional
        Ids of the rows and columns of a matrix; by default ``selections.image_ids`` and those
        of ``selections.captions``.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset` and `split`, one line of text each, and `settings`, a
        mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    SelectionResult
        A tie counts half, so that a system which gives all images the same score is right
        half of the time and no order of images helps.

    Raises
    ------
    TypeError, ValueError
        If the scores are not real numbers, do not fit the ids, lack an image or caption of
        the triples, or are NaN for one of them.

    See Also
    --------
    evaluate_selection_predictions : The same from the selected images.
    compare_selections : Tests the difference between two systems.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> from kernelcore.datasets import BinarySelections, SelectionTriple
    >>> from kernelcore.evaluation import evaluate_selections
    >>> garden = BinarySelections(
    ...     "garden",
    ...     [
    ...         SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "fox.jpg"),
    ...         SelectionTriple("1", "A fox sleeps.", "fox#0", "fox.jpg", "dog.jpg"),
    ...     ],
    ... )
    >>> evaluate_selections(garden, [[0.9, 0.4], [0.2, 0.3]], system="toy")
    SelectionResult('toy', accuracy=0.5000, 2 of 2 triples, 0 tied)
    """
    checked = checked_labels(labels, Labels)
    _check_selections(selections)
    true, other = _both_scores(selections, scores, image_ids, caption_ids)
    return SelectionResult(
        selections.triple_ids,
        np.where(true == other, 0.5, true > other),
        selections.name,
        **checked,
    )


def evaluate_selection_predictions(
    selections: BinarySelections,
    predictions: Mapping[str, str],
    **labels: Unpack[Labels],
) -> SelectionResult:
    """Measure how often the selected image is the one that the caption describes.

    Parameters
    ----------
    selections : BinarySelections
        The questions.
    predictions : mapping of str to str
        Selected image by triple id, as `kernelcore.datasets.load_bison_predictions` reads
        them.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset` and `split`, one line of text each, and `settings`, a
        mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    SelectionResult
        Its accuracy is over the triples that were predicted.

    Raises
    ------
    TypeError
        If `predictions` is not a mapping.
    ValueError
        If a prediction is for a triple that was not asked or names neither of its images, or
        if there is none.

    Warns
    -----
    DatasetWarning
        If triples have no prediction: their number, and the first of them.

    Examples
    --------
    >>> from kernelcore.datasets import BinarySelections, SelectionTriple
    >>> from kernelcore.evaluation import evaluate_selection_predictions
    >>> triple = SelectionTriple("0", "A dog digs.", "dog#0", "dog.jpg", "fox.jpg")
    >>> garden = BinarySelections("garden", [triple])
    >>> evaluate_selection_predictions(garden, {"0": "fox.jpg"}).accuracy
    0.0
    """
    checked = checked_labels(labels, Labels)
    _check_selections(selections)
    if not isinstance(predictions, Mapping):
        raise TypeError(f"predictions must be a mapping, got {type(predictions).__name__}")
    asked = set(selections.triple_ids)
    unknown = [triple_id for triple_id in predictions if triple_id not in asked]
    if unknown:
        raise ValueError(
            f"predictions must be for triples of {selections.name}, and {len(unknown)} are "
            f"not, the first is {unknown[0]!r}"
        )
    outcomes = np.full(len(selections), np.nan)
    for i, triple in enumerate(selections):
        if triple.triple_id not in predictions:
            continue
        selected = predictions[triple.triple_id]
        if selected not in (triple.true_image_id, triple.other_image_id):
            raise ValueError(
                "predictions must name one of the two images of a triple, "
                f"got {selected!r} for {triple.triple_id!r}"
            )
        outcomes[i] = selected == triple.true_image_id
    missing = [selections.triple_ids[i] for i in np.flatnonzero(np.isnan(outcomes))]
    if missing:
        more = f" and {len(missing) - _N_NAMED} more" if len(missing) > _N_NAMED else ""
        warnings.warn(
            f"{len(missing)} of {len(selections)} triples of {selections.name} without a "
            f"prediction (not counted): {', '.join(missing[:_N_NAMED])}{more}",
            DatasetWarning,
            stacklevel=2,
        )
    return SelectionResult(
        selections.triple_ids,
        outcomes,
        selections.name,
        **checked,
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


def _check_selections(selections: Any) -> None:
    if not isinstance(selections, BinarySelections):
        raise TypeError(f"selections must be BinarySelections, got {type(selections).__name__}")


def _both_scores(
    selections: BinarySelections,
    scores: npt.ArrayLike | PairScorer,
    image_ids: Sequence[str] | None,
    caption_ids: Sequence[str] | None,
) -> tuple[Array, Array]:
    """Scores of the true and of the other image of each triple."""
    if callable(scores):
        if image_ids is not None or caption_ids is not None:
            raise ValueError(
                "image_ids and caption_ids must be omitted where scores is a function"
            )
        true, other = _asked(selections, scores)
    else:
        rows = (
            selections.image_ids if image_ids is None else as_list("image_ids", image_ids, _IDS)
        )
        columns = (
            selections.captions
            if caption_ids is None
            else as_list("caption_ids", caption_ids, _IDS)
        )
        matrix = as_scores("scores", scores)
        if matrix.shape != (len(rows), len(columns)):
            raise ValueError(
                f"scores must have one row for each of {len(rows)} images and one column "
                f"for each of {len(columns)} captions, got shape {matrix.shape}"
            )
        places = selections.positions(rows, tuple(columns))
        true = matrix[places.true_images, places.captions]
        other = matrix[places.other_images, places.captions]
    unknown = np.flatnonzero(np.isnan(true) | np.isnan(other))
    if unknown.size:
        raise ValueError(
            "scores must not hold NaN, got NaN for triple "
            f"{selections.triple_ids[unknown[0]]!r}"
        )
    return true, other


def _asked(selections: BinarySelections, scorer: PairScorer) -> tuple[Array, Array]:
    """Ask for the score of every pair once, in the order of their ids."""
    true, other = (
        [(getattr(triple, image), triple.caption_id) for triple in selections]
        for image in ("true_image_id", "other_image_id")
    )
    pairs = sorted({*true, *other})
    parts = []
    for start in range(0, len(pairs), _PAIRS_PER_CALL):
        images, captions = zip(*pairs[start : start + _PAIRS_PER_CALL], strict=True)
        part = as_real_array("scores", scorer(images, captions), ndim=1)
        if len(part) != len(images):
            raise ValueError(
                f"scores must return one score per pair ({len(images)}), got {len(part)}"
            )
        parts.append(part)
    values = np.concatenate(parts)
    place = {pair: i for i, pair in enumerate(pairs)}
    return values[[place[pair] for pair in true]], values[[place[pair] for pair in other]]
