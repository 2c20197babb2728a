"""Captions that systems write: their metrics, and binary image selection by likelihood."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite
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
from kernelcore.evaluation.selections import PairScorer
from kernelcore.experiments.corpus import Corpus, Pool
from kernelcore.experiments.steps import Kind, Step, Store
from kernelcore.report import Section

if TYPE_CHECKING:
    from kernelcore.deep import Captioner

METRICS = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "METEOR")
"""What `measure_captions` measures; METEOR only where Java is installed."""

CAPTION_METRICS = Kind.json("caption-metrics", 1)
"""Cached values of metrics."""

NEAREST = "caption of the nearest photo"
PEOPLE = "people"

PUBLISHED_WRITERS: Mapping[str, Mapping[str, float]] = {
    "LSTM on GoogLeNet (Vinyals et al. 2015, recalled)": {
        "BLEU-1": 0.63,
        "BLEU-2": 0.41,
        "BLEU-3": 0.27,
    }
}
"""Published metrics of captions for the test photos of Flickr8k. The values are recalled."""


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


def writing_section(
    written: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    published: Mapping[str, Mapping[str, float]],
    store: Store,
) -> Section:
    """Tabulate the metrics of written captions, and of captions that people wrote.

    Parameters
    ----------
    written : mapping of str to sequence of str
        One caption per photo by each system.
    references : sequence of sequence of str
        Captions of each photo.
    published : mapping of str to mapping of str to float
        Published metrics of other systems, by the names of `METRICS`.
    store : Store
        Keeps the metrics: METEOR takes half a minute for 1,000 captions.
    """
    metrics = _corpus_metrics(written, references, store)
    others = [own[1:] for own in references]
    tables = [
        _table(
            {**metrics, **published}, f"{len(references)} photos, all captions as references"
        )
    ]
    if all(others):
        with_people = {PEOPLE: [own[0] for own in references], **written}
        caption = "the same photos, all captions but the first as references"
        tables.append(_table(_corpus_metrics(with_people, others, store), caption))
    about = (
        "Metrics of the COCO evaluation, times 100; CIDEr-D of a caption that equals all its "
        "references would be 1,000. The document frequencies of CIDEr-D are counted in the "
        "references. In the second table the first caption of each photo stands for people. "
        "With fewer references, the values are lower.",
        *(
            ["METEOR is left out: it needs Java and the package pycocoevalcap."]
            if "METEOR" not in available_metrics()
            else []
        ),
    )
    return Section("Captions written", about, tables)


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


def _corpus_metrics(
    written: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], store: Store
) -> dict[str, dict[str, float]]:
    """Return the metrics of each system, as cached steps."""
    known = available_metrics()
    return {
        name: Step(
            store, CAPTION_METRICS, _measure, list(captions), list(references), metrics=known
        ).value()
        for name, captions in written.items()
    }


def _measure(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, metrics: Sequence[str]
) -> dict[str, float]:
    found = measure_captions(candidates, references)
    return {metric: float(found[metric].corpus) for metric in metrics}


def _table(metrics: Mapping[str, Mapping[str, float]], caption: str) -> Table:
    known = [metric for metric in METRICS if any(metric in own for own in metrics.values())]
    rows = tuple(
        (name, *(f"{100 * own[metric]:.1f}" if metric in own else "n/a" for metric in known))
        for name, own in metrics.items()
    )
    return Table(columns=("captions", *known), rows=rows, caption=caption)
