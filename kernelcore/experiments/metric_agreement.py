"""Agreement of caption metrics with the experts of Flickr8k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import RelevanceJudgments, load_flickr_expert
from kernelcore.evaluation import Table
from kernelcore.evaluation.caption_metrics import DocumentFrequencies, coco_tokenize
from kernelcore.experiments.captioning import (
    CAPTION_METRICS,
    available_metrics,
    measure_captions,
)
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.judged import EXPERT_FILE
from kernelcore.experiments.steps import Source, Step, Store
from kernelcore.report import Section

_N_RESAMPLES = 200
_N_PARTS = 5


@dataclass(frozen=True, eq=False)
class RatedCaptions:
    """Captions that experts rated for photos, with the photos' own captions as references.

    Attributes
    ----------
    candidates : list of str
    references : list of list of str
        All captions of the photo.
    ratings : ndarray of float64, shape (n_captions, n_ratings)
    photos : ndarray of intp, shape (n_captions,)
        Number of the photo of each pair.
    is_reference : ndarray of bool, shape (n_captions,)
        Whether the caption, as tokens, is one of its references.
    frequencies : DocumentFrequencies
        Of the captions of all rated photos, one document per photo.
    """

    candidates: list[str]
    references: list[list[str]]
    ratings: npt.NDArray[np.float64]
    photos: npt.NDArray[np.intp]
    is_reference: npt.NDArray[np.bool_]
    frequencies: DocumentFrequencies

    @classmethod
    def of(cls, corpus: Corpus, judgments: RelevanceJudgments) -> RatedCaptions:
        """Find the texts of all judged pairs.

        Parameters
        ----------
        corpus : Corpus
        judgments : RelevanceJudgments
            With the single ratings.

        Raises
        ------
        ValueError
            If the corpus lacks a judged photo or caption, or the judgments have no ratings.
        """
        dataset, ratings = corpus.dataset, judgments.ratings
        if ratings is None:
            raise ValueError(f"judgments must have ratings, got none in {judgments!r}")
        texts = {
            caption_id: text
            for ids, captions in zip(dataset.caption_ids, dataset.captions, strict=True)
            for caption_id, text in zip(ids, captions, strict=True)
        }
        own = dict(zip(dataset.image_ids, map(list, dataset.captions), strict=True))
        unknown = (
            set(judgments.image_ids) - own.keys() | set(judgments.caption_ids) - texts.keys()
        )
        if unknown:
            raise ValueError(f"judgments must be of the corpus, got {min(unknown)!r}")
        candidates = [texts[judgments.caption_ids[i]] for i in judgments.captions]
        references = [own[judgments.image_ids[i]] for i in judgments.images]
        tokens = {image_id: [coco_tokenize(t) for t in own[image_id]] for image_id in own}
        is_reference = [
            coco_tokenize(text) in tokens[judgments.image_ids[i]]
            for text, i in zip(candidates, judgments.images, strict=True)
        ]
        rated = [tokens[judgments.image_ids[i]] for i in np.unique(judgments.images)]
        return cls(
            candidates,
            references,
            ratings,
            judgments.images,
            np.array(is_reference),
            DocumentFrequencies.from_references(rated),
        )

    def metrics(self) -> dict[str, npt.NDArray[np.float64]]:
        """Measure each candidate against its references by each metric."""
        found = measure_captions(
            self.candidates, self.references, document_frequencies=self.frequencies
        )
        return {name: scores.captions for name, scores in found.items()}


def agreement_section(corpus: Corpus, store: Store, *, rng: int = 0) -> Section | None:
    """Correlate caption metrics with the ratings of the experts.

    Parameters
    ----------
    corpus : Corpus
        The folder of Flickr8k has the file of the experts.
    store : Store
        Keeps the metrics of all captions: METEOR takes minutes.
    rng : int, default 0
        Seed of the resamples.

    Returns
    -------
    Section or None
        None if the corpus has no such file.
    """
    path = corpus.folder / EXPERT_FILE
    if not path.is_file():
        return None
    rated = RatedCaptions.of(corpus, load_flickr_expert(path))
    source = Source(rated, rated.candidates, rated.references)
    step = Step(store, CAPTION_METRICS, _measure, source, metrics=available_metrics())
    metrics = {name: np.array(values) for name, values in step.value().items()}
    return Section(
        "Caption metrics and people",
        (
            "Experts gave captions of other photos scores from 1 to 4 for how well they "
            "describe a photo. Each metric compares the caption with the five captions of the "
            "photo. Kendall's tau is over all single scores, three for each pair. Pairs whose "
            "caption is one of the references are left out, but for the last column. tau-c "
            "corrects for the four values that scores have and metrics have not. The standard "
            f"error is that of {_N_RESAMPLES} resamples of photos, with all their captions.",
            "The second table has the mean score of a pair, and its standard deviation, in "
            "each fifth of the pairs by the metric, from the lowest on. Ties are divided in "
            "the order of the file. The paper shows such means for captions of a system.",
        ),
        (_tau_table(rated, metrics, rng), _parts_table(rated, metrics)),
    )


def kendall_tau(
    first: npt.ArrayLike, second: npt.ArrayLike, *, variant: Literal["b", "c"]
) -> float:
    r"""Kendall's tau-b or tau-c of two variables.

    With C concordant and D discordant pairs of items, P pairs in all, :math:`T_1` and
    :math:`T_2` pairs tied in the one and the other, n items, and m the smaller number of
    distinct values:

    .. math::

        \tau_b = \frac{C - D}{\sqrt{(P - T_1)(P - T_2)}}, \quad
        \tau_c = \frac{2 (C - D)}{n^2 (m - 1) / m}

    Parameters
    ----------
    first, second : array_like of shape (n_items,)
        At least three items.
    variant : {"b", "c"}

    Returns
    -------
    float
        NaN where all values of a variable are equal.

    Raises
    ------
    ValueError
        If the variables do not have the same length, at least 3.

    Examples
    --------
    >>> from kernelcore.experiments.metric_agreement import kendall_tau
    >>> metric, scores = [0.1, 0.4, 0.4, 0.9], [1, 1, 2, 2]
    >>> [round(kendall_tau(metric, scores, variant=v), 3) for v in ("b", "c")]
    [0.671, 0.75]
    """
    from scipy.stats import kendalltau

    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 3:
        raise ValueError(
            "first and second must have one value for each of the same items, at least 3, "
            f"got shapes {x.shape} and {y.shape}"
        )
    return float(kendalltau(x, y, variant=variant, method="asymptotic").statistic)


def _measure(rated: Source[RatedCaptions], *, metrics: Sequence[str]) -> dict[str, list[float]]:
    found = rated.value().metrics()
    return {name: found[name].tolist() for name in metrics}


def _tau_table(
    rated: RatedCaptions, metrics: Mapping[str, npt.NDArray[np.float64]], rng: int
) -> Table:
    kept = np.flatnonzero(~rated.is_reference)
    n_ratings = rated.ratings.shape[1]
    generator = np.random.default_rng(rng)
    photos = rated.photos[kept]
    n_photos = len(np.unique(photos))
    drawn = [
        _pairs_of(photos, generator.choice(np.unique(photos), n_photos))
        for _ in range(_N_RESAMPLES)
    ]
    rows = []
    for name, values in metrics.items():

        def tau(
            pairs: npt.NDArray[np.intp],
            variant: Literal["b", "c"] = "c",
            values: npt.NDArray[np.float64] = values,
        ) -> float:
            repeated = np.repeat(values[pairs], n_ratings)
            return kendall_tau(repeated, rated.ratings[pairs].ravel(), variant=variant)

        error = np.std([tau(kept[pairs]) for pairs in drawn], ddof=1)
        found = tau(kept, "b"), tau(kept), error, tau(np.arange(len(values)))
        rows.append((name, *(f"{value:.3f}" for value in found)))
    return Table(
        columns=("metric", "tau-b", "tau-c", "standard error", "tau-c with references"),
        rows=tuple(rows),
        caption=f"{len(kept):,} pairs with {len(kept) * n_ratings:,} scores of {n_photos:,} "
        f"photos; {rated.is_reference.sum()} pairs left out",
    )


def _pairs_of(
    photos: npt.NDArray[np.intp], drawn: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the pairs of drawn photos; `photos` ascend."""
    starts, ends = (np.searchsorted(photos, drawn, side) for side in ("left", "right"))
    return np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])


def _parts_table(rated: RatedCaptions, metrics: Mapping[str, npt.NDArray[np.float64]]) -> Table:
    kept = ~rated.is_reference
    scores = rated.ratings[kept].mean(axis=1)
    rows = []
    for name, values in metrics.items():
        order = np.argsort(values[kept], kind="stable")
        parts = np.array_split(scores[order], _N_PARTS)
        rows.append((name, *(f"{part.mean():.2f} ± {part.std():.2f}" for part in parts)))
    columns = ("metric", *(f"fifth {i + 1}" for i in range(_N_PARTS)))
    return Table(columns=columns, rows=tuple(rows), caption=f"{kept.sum():,} pairs")
