"""Results that carry the settings under which they were obtained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import as_list
from kernelcore.evaluation._gold import as_caption_image, captions_by_image, one_each
from kernelcore.evaluation.labelled_result import LabelledResult
from kernelcore.evaluation.ranking_metrics import RankingMetrics
from kernelcore.evaluation.ranks import Ties, as_both_scores, ranks_of
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas

    from kernelcore.evaluation.result_table import ResultTable


@dataclass(frozen=True)
class RetrievalResult(LabelledResult[RankingMetrics]):
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

    def to_table(self) -> Table:
        """Return a table of one row, recalls in percent."""
        return self._as_table().to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per direction; see `ResultTable.to_frame`."""
        return self._as_table().to_frame()

    def _as_table(self) -> ResultTable:
        from kernelcore.evaluation.result_table import ResultTable

        return ResultTable([self])


def evaluate(
    annotation_scores: npt.ArrayLike,
    search_scores: npt.ArrayLike | None = None,
    *,
    caption_image: npt.ArrayLike | None = None,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    system: str = "",
    protocol: str = "",
    dataset: str = "",
    split: str = "",
    pool: str = "",
    settings: Mapping[str, Any] | None = None,
) -> RetrievalResult:
    """Measure image annotation and image search from a matrix of scores.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions)
        Score of every caption for every image; higher is better.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    ks : sequence of int, default=(1, 5, 10)
        The k of the recalls that are reported.
    system, protocol, dataset, split, pool : str, optional
        Labels that travel with the numbers.
    settings : mapping of str to Any, optional
        Settings of the system, to travel with the numbers: anything JSON can hold.

    Returns
    -------
    RetrievalResult

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers, hold NaN or differ in shape, or another
        argument does not fit them.

    Notes
    -----
    An image with several captions is ranked by the best of them in annotation; in search,
    each caption is a query of its own. One pass over the scores per direction.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013.

    Examples
    --------
    >>> from kernelcore.evaluation import evaluate
    >>> scores = [[0.9, 0.8, 0.1], [0.2, 0.7, 0.3]]
    >>> result = evaluate(scores, caption_image=[0, 1, 1], ks=(1, 2), system="toy")
    >>> print(result)  # doctest: +ELLIPSIS
            ---- annotation ----  ------ search -----
    system    R@1    R@2  median   R@1    R@2  median
    toy     100.0  100.0     1.0  66.7  100.0     1.0
    R@k in percent; 2 images, 3 captions, ties mean, kernelcore ...
    """
    by_image, by_caption, search_name = as_both_scores(annotation_scores, search_scores)
    owner = as_caption_image(caption_image, by_image.shape)
    captions, images = captions_by_image(owner), one_each(owner)
    cutoffs = tuple(as_list("ks", ks))
    if by_caption is by_image:
        ranks = ranks_of(search_name, by_image, ties, None, rows=captions, columns=images)
    else:
        ranks = [
            *ranks_of("annotation_scores", by_image, ties, None, rows=captions),
            *ranks_of(search_name, by_caption, ties, None, columns=images),
        ]
    return RetrievalResult(
        annotation=RankingMetrics(
            ranks=ranks[0],
            n_relevant=np.diff(captions.offsets),
            n_candidates=by_image.shape[1],
            ties=ties,
            ks=cutoffs,
        ),
        search=RankingMetrics(
            ranks=ranks[1],
            n_relevant=np.diff(images.offsets),
            n_candidates=by_image.shape[0],
            ties=ties,
            ks=cutoffs,
        ),
        system=system,
        protocol=protocol,
        dataset=dataset,
        split=split,
        pool=pool,
        settings={} if settings is None else settings,
    )
