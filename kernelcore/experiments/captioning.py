"""Metrics of captions that systems write, and their agreement with experts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from kernelcore._check import Array
from kernelcore.datasets import load_flickr_expert
from kernelcore.evaluation import Table
from kernelcore.evaluation.caption_metrics import (
    DocumentFrequencies,
    bleu,
    cider_d,
    coco_tokenize,
    meteor,
    rouge_l,
)
from kernelcore.evaluation.caption_metrics._corpus import CaptionScores
from kernelcore.experiments.corpus import Corpus, Pool
from kernelcore.experiments.judged import EXPERT_FILE
from kernelcore.experiments.steps import Kind, Source, Step, Store

METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "METEOR")
"""What `measure_captions` measures; METEOR only where Java is installed."""

_KEPT = Kind.json("caption-metrics", 1)
_N_RESAMPLES = 200

NEAREST = "caption of the nearest photo"
PEOPLE = "people"


def available_metrics() -> tuple[str, ...]:
    """Return the metrics that run here: METEOR needs Java and pycocoevalcap."""
    has_java = shutil.which("java") is not None and find_spec("pycocoevalcap") is not None
    return METRICS if has_java else METRICS[:-1]


def measure_captions(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    document_frequencies: DocumentFrequencies | None = None,
) -> dict[str, CaptionScores]:
    """Compare captions with references by all metrics that run here.

    Parameters
    ----------
    candidates : sequence of str, length n_captions
        Raw text; `kernelcore.evaluation.caption_metrics.coco_tokenize` cuts it.
    references : sequence of sequence of str, length n_captions
    document_frequencies : DocumentFrequencies, optional
        For CIDEr-D; the default is to count them in `references`.

    Returns
    -------
    dict of str to CaptionScores
        By the names of `available_metrics`.

    Examples
    --------
    >>> from kernelcore.experiments.captioning import measure_captions
    >>> found = measure_captions(["a dog runs", "two boats"], [["A dog runs."], ["The sea."]])
    >>> round(found["BLEU-1"].corpus, 2), found["ROUGE-L"].captions
    (0.6, array([1., 0.]))
    """
    tokens = [coco_tokenize(text) for text in candidates]
    sets = [[coco_tokenize(text) for text in own] for own in references]
    n_grams = bleu(tokens, sets)
    found = {
        f"BLEU-{n + 1}": CaptionScores(float(n_grams.corpus[n]), n_grams.captions[:, n])
        for n in range(len(n_grams.corpus))
    }
    found["ROUGE-L"] = rouge_l(tokens, sets)
    found["CIDEr-D"] = cider_d(tokens, sets, document_frequencies=document_frequencies)
    if "METEOR" in available_metrics():
        found["METEOR"] = meteor(tokens, sets)
    return found


def references_of(pool: Pool) -> list[list[str]]:
    """Return the captions of each photo of a pool, photos in the order of `Corpus.files`."""
    sets: dict[int, list[str]] = {photo: [] for photo in np.unique(pool.photos).tolist()}
    for photo, text in zip(pool.photos.tolist(), pool.texts, strict=True):
        sets[photo].append(text)
    return list(sets.values())


def nearest_captions(corpus: Corpus, features: Array, split: str) -> list[str]:
    """Take for each photo of a split the first caption of the nearest training photo.

    Parameters
    ----------
    corpus : Corpus
    features : ndarray of shape (n_photos, n_features)
        A description of the photos of ``corpus.files``. The nearest photo has the greatest
        cosine.
    split : str

    Returns
    -------
    list of str
        One for each photo of the split, in the order of ``corpus.files``.
    """
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    units = features / np.where(lengths > 0, lengths, 1)
    cosines = units[corpus.photos(split)] @ units[corpus.photos("train")].T
    captions = references_of(corpus.pools["train"])
    return [captions[i][0] for i in cosines.argmax(axis=1)]


def written_numbers(
    written: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], store: Store
) -> dict[str, dict[str, float]]:
    """Measure written captions, and the first caption of each photo by the others, times 100.

    Parameters
    ----------
    written : mapping of str to sequence of str
        One caption per photo by each system.
    references : sequence of sequence of str
        Captions of each photo.
    store : Store
        Keeps the metrics: METEOR takes half a minute for 1,000 captions.

    Returns
    -------
    dict of str to dict of str to float
        By system, with all references; where each photo has several, also of people and of all
        systems with all references but the first.
    """
    measured = [(name, captions, references) for name, captions in written.items()]
    others = [own[1:] for own in references]
    if all(others):
        with_people = {PEOPLE: [own[0] for own in references], **written}
        measured += [(f"{n}, fewer references", own, others) for n, own in with_people.items()]
    found, known = {}, available_metrics()
    for name, captions, sets in measured:
        step = Step(store, _KEPT, _measure, list(captions), list(sets), metrics=known)
        found[name] = {metric: 100 * value for metric, value in step.value().items()}
    return found


def _measure(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, metrics: Sequence[str]
) -> dict[str, float]:
    found = measure_captions(candidates, references)
    return {metric: float(found[metric].corpus) for metric in metrics}


def agreement_table(corpus: Corpus, store: Store, *, rng: int = 0) -> Table:
    """Correlate caption metrics with the ratings of the experts, by Kendall's tau.

    A caption is compared with all captions of the photo. The document frequencies of CIDEr-D
    are those of the captions of all rated photos. Pairs whose caption is one of the references
    are left out, but for the last column. The standard error is that of resamples of photos,
    with all their captions.

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
    judged, dataset = load_flickr_expert(corpus.folder / EXPERT_FILE), corpus.dataset
    scores: Any = judged.ratings
    texts = {
        caption_id: text
        for ids, captions in zip(dataset.caption_ids, dataset.captions, strict=True)
        for caption_id, text in zip(ids, captions, strict=True)
    }
    captions_of = dict(zip(dataset.image_ids, map(list, dataset.captions), strict=True))
    candidates = [texts[judged.caption_ids[i]] for i in judged.captions]
    references = [captions_of[judged.image_ids[i]] for i in judged.images]
    tokens = {
        i: [coco_tokenize(text) for text in captions_of[judged.image_ids[i]]]
        for i in np.unique(judged.images)
    }

    def measure(_: Any, *, metrics: Sequence[str]) -> dict[str, list[float]]:
        frequencies = DocumentFrequencies.from_references(list(tokens.values()))
        found = measure_captions(candidates, references, document_frequencies=frequencies)
        return {name: found[name].captions.tolist() for name in metrics}

    source = Source(None, candidates, references)
    step = Step(store, _KEPT, measure, source, metrics=available_metrics())
    pairs = zip(candidates, judged.images, strict=True)
    is_reference = np.array([coco_tokenize(text) in tokens[i] for text, i in pairs])
    kept, n_ratings = np.flatnonzero(~is_reference), scores.shape[1]
    photos, generator = judged.images[kept], np.random.default_rng(rng)
    every = np.unique(photos)
    drawn = [
        _pairs_of(photos, generator.choice(every, len(every))) for _ in range(_N_RESAMPLES)
    ]

    def tau(values: Any, pairs: Any, variant: Literal["b", "c"] = "c") -> float:
        repeated, ratings = np.repeat(values[pairs], n_ratings), scores[pairs].ravel()
        found = kendalltau(repeated, ratings, variant=variant, method="asymptotic")
        return float(found.statistic)

    rows = []
    for name, measured in step.value().items():
        values = np.array(measured)
        error = np.std([tau(values, kept[pairs]) for pairs in drawn], ddof=1)
        found = tau(values, kept, "b"), tau(values, kept), error, tau(values, slice(None))
        rows.append((name, *(f"{value:.3f}" for value in found)))
    return Table(
        columns=("metric", "tau-b", "tau-c", "standard error", "tau-c with references"),
        rows=tuple(rows),
        caption=f"{len(kept):,} pairs with {len(kept) * n_ratings:,} scores of "
        f"{len(every):,} photos; {is_reference.sum()} pairs left out",
    )


def _pairs_of(
    photos: npt.NDArray[np.intp], drawn: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the pairs of drawn photos; `photos` ascend."""
    starts, ends = (np.searchsorted(photos, drawn, side) for side in ("left", "right"))
    return np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
