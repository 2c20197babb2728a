"""Captions that systems write: their metrics, and binary image selection by likelihood."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite
from kernelcore.evaluation.caption_metrics import (
    DocumentFrequencies,
    bleu,
    cider_d,
    coco_tokenize,
    meteor,
    rouge_l,
)
from kernelcore.evaluation.caption_metrics._corpus import CaptionScores
from kernelcore.evaluation.selections import PairScorer
from kernelcore.experiments.corpus import Corpus, Pool
from kernelcore.experiments.steps import Kind, Step, Store

if TYPE_CHECKING:
    from kernelcore.deep import Captioner

METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "METEOR")
"""What `measure_captions` measures; METEOR only where Java is installed."""

CAPTION_METRICS = Kind.json("caption-metrics", 1)
"""Cached values of metrics."""

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
    owners = np.unique(pool.photos, return_inverse=True)[1]
    sets: list[list[str]] = [[] for _ in range(owners.max() + 1)]
    for owner, text in zip(owners.tolist(), pool.texts, strict=True):
        sets[owner].append(text)
    return sets


def nearest_captions(corpus: Corpus, features: npt.ArrayLike, split: str) -> list[str]:
    """Take for each photo of a split the first caption of the nearest training photo.

    Parameters
    ----------
    corpus : Corpus
    features : array_like of shape (n_photos, n_features)
        A description of the photos of ``corpus.files``. The nearest photo has the greatest
        cosine.
    split : str

    Returns
    -------
    list of str
        One for each photo of the split, in the order of ``corpus.files``.
    """
    rows: Array = check_finite("features", as_real_array("features", features, ndim=2))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1)
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
    sets = {"": (written, references)}
    others = [own[1:] for own in references]
    if all(others):
        with_people = {PEOPLE: [own[0] for own in references], **written}
        sets[", fewer references"] = with_people, others
    known = available_metrics()
    return {
        name + suffix: {
            metric: 100 * value
            for metric, value in Step(
                store, CAPTION_METRICS, _measure, list(captions), list(known_by), metrics=known
            )
            .value()
            .items()
        }
        for suffix, (own, known_by) in sets.items()
        for name, captions in own.items()
    }


def selection_scorer(
    captioner: Captioner,
    photos: Any,
    image_ids: Sequence[str],
    captions: Mapping[str, str],
    *,
    n_threads: int | None = None,
) -> PairScorer:
    """Return a function that scores pairs by the likelihood of the caption given the photo.

    Parameters
    ----------
    captioner : Captioner
        Fitted.
    photos : RegionFeatures or array of shape (n_photos, n_features)
    image_ids : sequence of str
        Id of each photo.
    captions : mapping of str to str
        Captions by their ids.
    n_threads : int, optional

    Returns
    -------
    callable
        For `kernelcore.evaluation.evaluate_selections`.
    """
    rows = {image_id: row for row, image_id in enumerate(image_ids)}

    def score(images: Sequence[str], texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return captioner.log_likelihoods(
            photos,
            [captions[caption_id] for caption_id in texts],
            caption_image=[rows[image_id] for image_id in images],
            n_threads=n_threads,
        )

    return score


def _measure(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, metrics: Sequence[str]
) -> dict[str, float]:
    found = measure_captions(candidates, references)
    return {metric: float(found[metric].corpus) for metric in metrics}
