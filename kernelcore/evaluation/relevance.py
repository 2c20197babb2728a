"""Metrics and results for several relevant items per query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    as_integer_array,
    as_list,
    as_real_array,
    check_choice,
    check_integer,
    check_real,
)
from kernelcore.datasets.judgments import RelevanceJudgments
from kernelcore.evaluation.labels import PoolLabels, checked_labels
from kernelcore.evaluation.ranked_relevance import RankedRelevance, ranked_relevance_of
from kernelcore.evaluation.ranks import TIE_RULES, Ties, as_both_scores
from kernelcore.evaluation.result import Column, ResultTable, TwoTaskResult
from kernelcore.evaluation.table import Shown

_STORED = ("n_relevant", "n_candidates", "ties", "ks")


@dataclass(frozen=True, eq=False, repr=False)
class RelevanceMetrics(Shown):
    """Metrics of one direction by query, and their means.

    Attributes
    ----------
    per_query : mapping of str to ndarray of float64, shape (n_queries,)
        Values in [0, 1] by the name of their mean: ``S@k``, ``P@k``, ``recall@k`` and
        ``F1@k`` for each of `ks`, then ``R-precision``, ``MAP``, ``mAP@R`` and ``MRR``; see
        `RankedRelevance` for what they are. NaN for a query without relevant items.
        Paired significance tests compare these.
    n_relevant : ndarray of int64, shape (n_queries,)
        Relevant items of each query, at least one of them above 0.
    n_candidates : int
        Candidates that each query ranks.
    ties : str
        The tie rule of `rank_relevant`.
    ks : tuple of int
        The k of the metrics that have one, ascending.

    Raises
    ------
    TypeError, ValueError
        If a part does not fit the others or a value lies outside [0, 1].

    See Also
    --------
    relevance_metrics : Computes them.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_relevant, relevance_metrics
    >>> ranked = rank_relevant([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]], [[0, 2], []])
    >>> metrics = relevance_metrics(ranked, ks=(1,))
    >>> metrics
    RelevanceMetrics(S@1=1.0000, R-precision=0.5000, MAP=0.8333, 1 of 2 queries judged, ...)
    >>> metrics.per_query["R-precision"], metrics.mean["recall@1"]
    (array([0.5, nan]), 0.5)
    """

    per_query: Mapping[str, npt.NDArray[np.float64]]
    n_relevant: npt.NDArray[np.int64]
    n_candidates: int
    ties: str = "mean"
    ks: tuple[int, ...] = (1, 5, 10)

    def __post_init__(self) -> None:
        relevant = as_integer_array("n_relevant", self.n_relevant, ndim=1, dtype=np.int64)
        relevant = relevant.copy()
        relevant.flags.writeable = False
        if not (relevant.size and relevant.min() >= 0 and relevant.max() > 0):
            raise ValueError("n_relevant must be >= 0, and above 0 for one query at least")
        check_choice("ties", self.ties, TIE_RULES)
        ks = as_ks(self.ks)
        names = _names(ks)
        if not isinstance(self.per_query, Mapping) or set(self.per_query) != set(names):
            raise ValueError(
                f"per_query must map {', '.join(names)}, got {self.per_query!r:.60}"
            )
        values = {name: _as_shares(name, self.per_query[name], relevant) for name in names}
        for name, value in (
            ("per_query", values),
            ("n_relevant", relevant),
            ("n_candidates", check_integer("n_candidates", self.n_candidates, minimum=1)),
            ("ks", ks),
        ):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RelevanceMetrics) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (*(f"S@{k}" for k in self.ks), "R-precision", "MAP")
        numbers = [f"{name}={self.mean[name]:.4f}" for name in shown]
        return (
            f"RelevanceMetrics({', '.join(numbers)}, {self.n_judged} of {self.n_queries} "
            f"queries judged, n_candidates={self.n_candidates})"
        )

    @property
    def n_queries(self) -> int:
        """Number of queries, with relevant items or without."""
        return len(self.n_relevant)

    @property
    def n_judged(self) -> int:
        """Number of queries with relevant items: the means are over these."""
        return int(np.count_nonzero(self.n_relevant))

    @property
    def mean(self) -> dict[str, float]:
        """Mean of each metric over the queries with relevant items, in [0, 1]."""
        judged = self.n_relevant > 0
        return {name: float(np.mean(values[judged])) for name, values in self.per_query.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return means and values by query as plain values; None where a query has none."""
        return {
            "n_queries": self.n_queries,
            "n_judged": self.n_judged,
            "n_candidates": self.n_candidates,
            "ties": self.ties,
            **self.mean,
            "ks": list(self.ks),
            "n_relevant": self.n_relevant.tolist(),
            "per_query": {
                name: [None if np.isnan(value) else value for value in values.tolist()]
                for name, values in self.per_query.items()
            },
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RelevanceMetrics:
        """Restore what `to_dict` gave; the means are computed anew."""
        per_query = {
            name: np.array(values, dtype=np.float64)
            for name, values in document["per_query"].items()
        }
        return cls(per_query, **{name: document[name] for name in _STORED})


def relevance_metrics(
    ranked: RankedRelevance, *, ks: Sequence[int] = (1, 5, 10)
) -> RelevanceMetrics:
    """Compute every metric of rankings with any number of relevant items per query.

    Parameters
    ----------
    ranked : RankedRelevance
        Where the relevant items stand: what `rank_relevant` or `rank_lists` found.
    ks : sequence of int, default=(1, 5, 10)
        The k of success, precision, recall and F1.

    Returns
    -------
    RelevanceMetrics

    Raises
    ------
    TypeError, ValueError
        If `ranked` is something else or a k is not an integer >= 1.

    See Also
    --------
    evaluate_relevance : Both directions of a matrix of images by captions.

    Examples
    --------
    >>> from kernelcore.evaluation import rank_lists, relevance_metrics
    >>> ranked = rank_lists([["a", "b", "c", "d"]], [{"b", "c"}])
    >>> relevance_metrics(ranked, ks=(2,)).mean
    {'S@2': 1.0, 'P@2': 0.5, 'recall@2': 0.5, 'F1@2': 0.5,
     'R-precision': 0.5, 'MAP': 0.583..., 'mAP@R': 0.25, 'MRR': 0.5}
    """
    if not isinstance(ranked, RankedRelevance):
        raise TypeError(f"ranked must be RankedRelevance, got {type(ranked).__name__}")
    ks = as_ks(ks)
    columns = [
        by_query(k)
        for by_query in (
            ranked.success_at_k,
            ranked.precision_at_k,
            ranked.recall_at_k,
            ranked.f1_at_k,
        )
        for k in ks
    ]
    columns += [
        ranked.r_precision(),
        ranked.average_precision(),
        ranked.average_precision_at_r(),
        ranked.reciprocal_rank(),
    ]
    return RelevanceMetrics(
        dict(zip(_names(ks), columns, strict=True)),
        n_relevant=ranked.n_relevant,
        n_candidates=ranked.n_candidates,
        ties=ranked.ties,
        ks=ks,
    )


def as_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the k of the metrics, ascending and each once."""
    return tuple(sorted({check_integer("ks", k, minimum=1) for k in as_list("ks", ks)}))


def _names(ks: tuple[int, ...]) -> list[str]:
    cut = [f"{metric}@{k}" for metric in ("S", "P", "recall", "F1") for k in ks]
    return [*cut, "R-precision", "MAP", "mAP@R", "MRR"]


def _as_shares(
    name: str, values: npt.ArrayLike, n_relevant: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return values in [0, 1], NaN exactly where there is nothing relevant."""
    shares = np.array(as_real_array(f"per_query[{name!r}]", values, ndim=1), np.float64)
    if shares.shape != n_relevant.shape:
        raise ValueError(
            f"per_query[{name!r}] must have one value per query ({len(n_relevant)}), "
            f"got {len(shares)}"
        )
    if (np.isnan(shares) != (n_relevant == 0)).any():
        raise ValueError(
            f"per_query[{name!r}] must be NaN for queries without relevant items, and for no "
            "others"
        )
    if np.nanmin(shares) < 0 or np.nanmax(shares) > 1:
        raise ValueError(
            f"per_query[{name!r}] must lie in [0, 1], "
            f"got values from {np.nanmin(shares)} to {np.nanmax(shares)}"
        )
    shares.flags.writeable = False
    return shares


@dataclass(frozen=True)
class RelevanceResult(TwoTaskResult[RelevanceMetrics]):
    """Both directions of one system on one pool, by relevance that people judged.

    Attributes
    ----------
    annotation : RelevanceMetrics
        Queries are images, candidates are captions.
    search : RelevanceMetrics
        Queries are captions, candidates are images.
    system, protocol, dataset, split, pool : str
        The system, the protocol, the dataset, its split and the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.
    relevance : str
        What makes an item relevant.

    Raises
    ------
    TypeError, ValueError
        If the directions do not belong together, a label is not one line of text, or the
        settings do not fit into JSON.

    See Also
    --------
    evaluate_relevance : Makes one from a matrix of scores.
    ResultTable : Puts several side by side.
    """

    relevance: str = ""

    _kind = "relevance result"
    _metrics = RelevanceMetrics
    _labels = (*TwoTaskResult._labels, "relevance")

    def _columns(self, table: ResultTable) -> list[Column]:
        names = (*(f"S@{k}" for k in self.ks), "R-precision", "MAP", "mAP@R")
        return [self._column(name) for name in names]

    @classmethod
    def _notes(cls, results: Sequence[Any], table: ResultTable) -> str:
        """Say over how many queries the means are, where some are left out."""
        counts = {(r.annotation.n_judged, r.search.n_judged) for r in results}
        images, captions = counts.pop()
        complete = (images, captions) == (results[0].n_images, results[0].n_captions)
        if counts or complete:
            return ""
        return f"; means over {images} images and {captions} captions with relevant items"


def evaluate_relevance(
    annotation_scores: npt.ArrayLike,
    search_scores: npt.ArrayLike | None = None,
    *,
    judgments: RelevanceJudgments,
    threshold: float,
    search_judgments: RelevanceJudgments | None = None,
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    **labels: Unpack[PoolLabels],
) -> RelevanceResult:
    """Measure image annotation and image search where many captions fit many images.

    Parameters
    ----------
    annotation_scores : array_like of shape (n_images, n_captions)
        Score of every caption for every image; higher is better.
    search_scores : array_like of shape (n_images, n_captions), optional
        Scores for image search where a model has others for that task, in the same
        orientation: rows are images.
    judgments : RelevanceJudgments
        Judgments of the pool, whose images are the rows and whose captions are the columns:
        what `RelevanceJudgments.select` gives.
    threshold : float
        Pairs with at least this score are relevant. All others are not, judged or unjudged.
    search_judgments : RelevanceJudgments, optional
        Judgments for search where they were collected apart, on the same pool.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `rank_relevant`.
    ks : sequence of int, default=(1, 5, 10)
        The k of success, precision, recall and F1.
    **labels : str or mapping, optional
        `system`, `protocol`, `dataset`, `split` and `pool`, one line of text each, and
        `settings`, a mapping of anything JSON can hold: they are stored in the result.

    Returns
    -------
    RelevanceResult

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers, hold NaN or differ in shape, the judgments
        are of another pool, no query of a direction has a relevant item, or another argument
        is out of range.

    Notes
    -----
    A query without relevant items is left out of the means; `RelevanceMetrics.n_judged` says
    how many are left. Relevance that nobody judged counts as none, so that systems which took
    part in choosing what was judged have an advantage over later ones.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task: data, models and evaluation metrics", JAIR 47, 2013, section 5.3.

    Examples
    --------
    >>> from kernelcore.datasets import RelevanceJudgments
    >>> from kernelcore.evaluation import evaluate_relevance
    >>> crowd = RelevanceJudgments.from_pairs(
    ...     "crowd", [("a", "a#0"), ("a", "b#0"), ("b", "b#0")], [1, 0.6, 1]
    ... )
    >>> pool = crowd.select(["a", "b"], ["a#0", "b#0"])
    >>> scores = [[0.2, 0.9], [0.8, 0.3]]
    >>> result = evaluate_relevance(scores, judgments=pool, threshold=0.5, ks=(1, 2))
    >>> print(result)  # doctest: +ELLIPSIS
               ------------- annotation ------------  --------------- search --------------
    system      S@1    S@2  R-precision   MAP  mAP@R   S@1    S@2  R-precision   MAP  mAP@R
    (unnamed)  50.0  100.0         50.0  75.0   50.0  50.0  100.0         50.0  75.0   50.0
    In percent; relevant by crowd >= 0.5, 2 images, 2 captions, ties mean, kernelcore ...

    Other metrics, by their names in `RelevanceMetrics.mean`:

    >>> from kernelcore.evaluation import ResultTable
    >>> print(ResultTable([result], metrics=["S@1", "MRR"]))  # doctest: +ELLIPSIS
               - annotation -  - search -
    system      S@1      MRR   S@1    MRR
    (unnamed)  50.0     75.0  50.0   75.0
    In percent; relevant by crowd >= 0.5, 2 images, 2 captions, ties mean, kernelcore ...
    """
    checked = checked_labels(labels)
    by_image, by_caption, search_name = as_both_scores(annotation_scores, search_scores)
    by_search = judgments if search_judgments is None else search_judgments
    check_pool("judgments", judgments, by_image.shape)
    check_pool("search_judgments", by_search, by_image.shape)
    threshold = check_real("threshold", threshold)
    annotation = ranked_relevance_of(
        "annotation_scores", by_image, judgments.relevant_captions(threshold), ties
    )
    search = ranked_relevance_of(
        search_name, by_caption.T, by_search.relevant_images(threshold), ties
    )
    names = dict.fromkeys((judgments.name, by_search.name))
    return RelevanceResult(
        annotation=relevance_metrics(annotation, ks=ks),
        search=relevance_metrics(search, ks=ks),
        **checked,
        relevance=f"{' and '.join(names)} >= {threshold:.6g}",
    )


def check_pool(name: str, judgments: RelevanceJudgments, shape: tuple[int, ...]) -> None:
    """Refuse judgments of another number of images or captions than the scores have."""
    if not isinstance(judgments, RelevanceJudgments):
        raise TypeError(f"{name} must be RelevanceJudgments, got {type(judgments).__name__}")
    pool = len(judgments.image_ids), len(judgments.caption_ids)
    if pool != shape:
        raise ValueError(
            f"{name} must be of the pool of the scores, {shape[0]} images and {shape[1]} "
            f"captions, got {pool[0]} and {pool[1]}; RelevanceJudgments.select brings them "
            "into its order"
        )
