"""Evaluation of binary image selection."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_list, as_real_array
from kernelcore.datasets.records import DatasetWarning
from kernelcore.datasets.selections import BinarySelections
from kernelcore.evaluation._inputs import as_rows
from kernelcore.evaluation.result import Labels, Result, checked_labels

PairScorer: TypeAlias = Callable[[Sequence[str], Sequence[str]], npt.ArrayLike]
"""Takes as many image ids as caption ids and returns the score of each pair."""

_PAIRS_PER_CALL = 10_000
_N_NAMED = 3


def evaluate_selections(
    selections: BinarySelections,
    scores: npt.ArrayLike | PairScorer | Mapping[str, str],
    *,
    image_ids: Sequence[str] | None = None,
    caption_ids: Sequence[str] | None = None,
    **labels: Unpack[Labels],
) -> Result:
    r"""Evaluate binary image selection: the image that a caption describes, of two.

    .. math::

        \mathrm{accuracy} = \frac{1}{n} \sum_{(c, i, j)} [s_{ic} > s_{jc}]
        + \tfrac12 [s_{ic} = s_{jc}]

    over triples of a caption c, its true image i and another image j.

    Parameters
    ----------
    selections : BinarySelections
        The questions.
    scores : array_like of shape (n_images, n_captions), callable, or mapping
        Score of every caption for every image, higher is better, as rankers give them. Or a
        function that scores pairs: it is called with some image ids and as many caption ids
        and returns one score for each; every pair is asked for once, in an order that does
        not tell the true image. Or the selected image by triple id.
    image_ids, caption_ids : sequence of str, optional
        Ids of the rows and columns of a matrix; by default ``selections.image_ids`` and those
        of ``selections.captions``.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    Result
        Of the task ``selection``: ``accuracy``, and ``tied``, the share of triples whose
        images have the same score. A tie counts half, so that a system which gives all images
        the same score is right half of the time and no order of images helps. A triple
        without a prediction has no value.

    Raises
    ------
    TypeError, ValueError
        If the scores are not real numbers, do not fit the ids, lack an image or caption of
        the triples, or are NaN for one of them; if a prediction is for a triple that was not
        asked or names neither of its images, or there is none.

    Warns
    -----
    DatasetWarning
        If triples have no prediction: their number, and the first of them.

    See Also
    --------
    compare : Tests the difference between two systems.

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
    Result('toy', selection accuracy=0.5000)
    """
    checked = checked_labels(labels)
    if not isinstance(selections, BinarySelections):
        raise TypeError(f"selections must be BinarySelections, got {type(selections).__name__}")
    is_matrix = not callable(scores) and not isinstance(scores, Mapping)
    if not is_matrix and (image_ids is not None or caption_ids is not None):
        raise ValueError("image_ids and caption_ids must be omitted unless scores is a matrix")
    if isinstance(scores, Mapping):
        outcomes = _predicted(selections, scores)
    else:
        if callable(scores):
            true, other = _asked(selections, scores)
        else:
            true, other = _taken(selections, scores, image_ids, caption_ids)
        unknown = np.flatnonzero(np.isnan(true) | np.isnan(other))
        if unknown.size:
            triple_id = selections.triple_ids[unknown[0]]
            raise ValueError(f"scores must not hold NaN, got NaN for triple {triple_id!r}")
        outcomes = np.where(true == other, 0.5, true > other)
    tied = np.where(np.isnan(outcomes), np.nan, outcomes == 0.5)
    facts = {"selections": selections.name, "n_triples": len(selections)}
    values = {"accuracy": outcomes, "tied": tied}
    return Result({"selection": values}, facts=facts, shown=("accuracy",), **checked)


def _predicted(
    selections: BinarySelections, predictions: Mapping[str, str]
) -> npt.NDArray[np.float64]:
    """Return whether the true image was selected, NaN for triples without a prediction."""
    images = {own.triple_id: (own.true_image_id, own.other_image_id) for own in selections}
    for triple_id, selected in predictions.items():
        if selected not in images.get(triple_id, ()):
            raise ValueError(
                f"scores must name one of the two images of a triple of {selections.name}, "
                f"got {selected!r} for {triple_id!r}"
            )
    outcomes = np.full(len(selections), np.nan)
    for i, (triple_id, (true, _)) in enumerate(images.items()):
        if triple_id in predictions:
            outcomes[i] = predictions[triple_id] == true
    missing = [selections.triple_ids[i] for i in np.flatnonzero(np.isnan(outcomes))]
    if missing:
        more = f" and {len(missing) - _N_NAMED} more" if len(missing) > _N_NAMED else ""
        warnings.warn(
            f"{len(missing)} of {len(selections)} triples of {selections.name} without a "
            f"prediction (not counted): {', '.join(missing[:_N_NAMED])}{more}",
            DatasetWarning,
            stacklevel=3,
        )
    return outcomes


def _taken(
    selections: BinarySelections,
    scores: npt.ArrayLike,
    image_ids: Sequence[str] | None,
    caption_ids: Sequence[str] | None,
) -> tuple[Array, Array]:
    """Take the scores of the true and of the other image of each triple from a matrix."""
    rule = "be a sequence of strings"
    rows = selections.image_ids if image_ids is None else image_ids
    rows = as_list("image_ids", rows, rule)
    columns = tuple(
        selections.captions
        if caption_ids is None
        else as_list("caption_ids", caption_ids, rule)
    )
    matrix = as_rows("scores", scores).matrix()
    if matrix.shape != (len(rows), len(columns)):
        raise ValueError(
            f"scores must have one row for each of {len(rows)} images and one column "
            f"for each of {len(columns)} captions, got shape {matrix.shape}"
        )
    places = selections.positions(rows, columns)
    true, other = places.true_images, places.other_images
    return matrix[true, places.captions], matrix[other, places.captions]


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
