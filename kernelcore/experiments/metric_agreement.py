"""Agreement of caption metrics with the experts of Flickr8k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

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

_N_RESAMPLES = 200


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


def agreement_table(corpus: Corpus, store: Store, *, rng: int = 0) -> Table:
    """Correlate caption metrics with the ratings of the experts, by Kendall's tau.

    Pairs whose caption is one of the references are left out, but for the last column. The
    standard error is that of resamples of photos, with all their captions.

    Parameters
    ----------
    corpus : Corpus
        The folder of Flickr8k has the file of the experts.
    store : Store
        Keeps the metrics of all captions: METEOR takes minutes.
    rng : int, default 0
        Seed of the resamples.

    Raises
    ------
    FileNotFoundError
        If the corpus has no such file.
    """
    rated = RatedCaptions.of(corpus, load_flickr_expert(corpus.folder / EXPERT_FILE))
    source = Source(rated, rated.candidates, rated.references)
    step = Step(store, CAPTION_METRICS, _measure, source, metrics=available_metrics())
    kept = np.flatnonzero(~rated.is_reference)
    n_ratings = rated.ratings.shape[1]
    generator = np.random.default_rng(rng)
    photos = rated.photos[kept]
    n_photos = len(np.unique(photos))
    drawn = [
        _pairs_of(photos, generator.choice(np.unique(photos), n_photos))
        for _ in range(_N_RESAMPLES)
    ]

    def tau(
        values: Any, pairs: npt.NDArray[np.intp], variant: Literal["b", "c"] = "c"
    ) -> float:
        repeated, ratings = np.repeat(values[pairs], n_ratings), rated.ratings[pairs].ravel()
        found = kendalltau(repeated, ratings, variant=variant, method="asymptotic")
        return float(found.statistic)

    rows = []
    for name, measured in step.value().items():
        values = np.array(measured)
        error = np.std([tau(values, kept[pairs]) for pairs in drawn], ddof=1)
        found = tau(values, kept, "b"), tau(values, kept), error
        every = tau(values, np.arange(len(values)))
        rows.append((name, *(f"{value:.3f}" for value in (*found, every))))
    return Table(
        columns=("metric", "tau-b", "tau-c", "standard error", "tau-c with references"),
        rows=tuple(rows),
        caption=f"{len(kept):,} pairs with {len(kept) * n_ratings:,} scores of {n_photos:,} "
        f"photos; {rated.is_reference.sum()} pairs left out",
    )


def _measure(rated: Source[RatedCaptions], *, metrics: Sequence[str]) -> dict[str, list[float]]:
    found = rated.value().metrics()
    return {name: found[name].tolist() for name in metrics}


def _pairs_of(
    photos: npt.NDArray[np.intp], drawn: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the pairs of drawn photos; `photos` ascend."""
    starts, ends = (np.searchsorted(photos, drawn, side) for side in ("left", "right"))
    return np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
