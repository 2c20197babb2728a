"""Captioners of the study: what they write, and what they select by likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.deep import Captioner
from kernelcore.evaluation import ResultTable, SelectionResult, Table, evaluate
from kernelcore.evaluation.significance import rank_correlation
from kernelcore.experiments.captioning import (
    METRICS,
    NEAREST,
    PUBLISHED_WRITERS,
    nearest_captions,
    references_of,
    selection_scorer,
    writing_section,
)
from kernelcore.experiments.hu2019.systems import CAPTIONER_SETTINGS, CAPTIONERS
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.training import TrainedStudy
from kernelcore.report import Section

BEAM_SIZE = 3
OTHER_BEAM_SIZES = (1, 5)
"""Beam sizes of the first captioner beside the usual one."""


def captioner_sections(
    study: TrainedStudy[Any], names: Sequence[str], questions: Questions, number: int
) -> Iterator[Section]:
    """Train captioners, and tabulate their captions, selections and rankings.

    Parameters
    ----------
    study : TrainedStudy
        Trains on its photos and keeps the models in its cache.
    names : sequence of str
        Some of `CAPTIONERS`.
    questions : Questions
    number : int
        Number of the caption of each photo in the pool of retrieval.
    """
    captioners = {name: train_captioner(study, name) for name in names}
    pool = study.corpus.pools[study.split]
    photos = study.photos.value()[study.corpus.photos(study.split)]
    section, metrics = writing_section(
        _write(study, captioners, photos),
        references_of(pool),
        published=PUBLISHED_WRITERS if study.split == "test" else {},
        store=study.store,
    )
    yield section
    of_split = questions.photos
    scorers = {
        name: selection_scorer(
            captioner,
            photos,
            of_split.photos.image_ids,
            dict(zip(of_split.caption_ids, pool.texts, strict=True)),
            n_threads=study.n_threads,
        )
        for name, captioner in captioners.items()
    }
    yield selection_section(metrics, questions.results(scorers))
    yield _retrieval_section(study, captioners, photos, number)


def train_captioner(study: TrainedStudy[Any], name: str) -> Captioner:
    """Train a captioner on ``train``, as a cached step of the study."""
    params: dict[str, Any] = {**CAPTIONER_SETTINGS, **CAPTIONERS[name]}
    if study.n_epochs is not None:
        params["n_epochs"] = study.n_epochs
    params |= {"batch_size": study.batch_size, "device": study.device, "rng": study.rng}
    captions = {split: study.raw_captions(split) for split in ("train", "dev")}
    found: Captioner = study.train(
        Captioner(**params), study.photos, captions, word_vectors=None
    )
    return found


def _write(
    study: TrainedStudy[Any], captioners: Mapping[str, Captioner], photos: Any
) -> dict[str, list[str]]:
    """Write captions by all captioners, by the first with several beams, and by none."""
    written = {NEAREST: nearest_captions(study.corpus, study.photos.value(), study.split)}
    for i, (name, captioner) in enumerate(captioners.items()):
        for size in (BEAM_SIZE, *(OTHER_BEAM_SIZES if i == 0 else ())):
            label = name if size == BEAM_SIZE else f"{name}, beam of {size}"
            written[label] = captioner.generate(
                photos, beam_size=size, n_threads=study.n_threads
            )
    return written


def selection_section(
    metrics: Mapping[str, Mapping[str, float]],
    selected: Mapping[str, Sequence[SelectionResult]],
) -> Section:
    """Tabulate binary image selection by likelihood beside the metrics of written captions.

    Parameters
    ----------
    metrics : mapping of str to mapping of str to float
        Metrics of each captioner.
    selected : mapping of str to sequence of SelectionResult
        Results of the same captioners for each source of triples.
    """
    results = list(selected.values())
    names = [one.system for one in results[0]] if results else []
    known = [metric for metric in METRICS if all(metric in metrics[name] for name in names)]
    accuracies = [[one.accuracy for one in own] for own in results]
    rows = [
        (
            name,
            *(f"{100 * metrics[name][metric]:.1f}" for metric in known),
            *(f"{100 * own[i]:.1f}" for own in accuracies),
        )
        for i, name in enumerate(names)
    ]
    labels = [own[0].selections for own in results]
    tables = [ResultTable(own).to_table() for own in results]
    if rows:
        tables.insert(0, Table(columns=("captioner", *known, *labels), rows=tuple(rows)))
    if len(names) > 2:
        columns = [[metrics[name][metric] for name in names] for metric in known]
        tables.insert(
            1,
            Table(
                columns=("triples", *known),
                rows=tuple(
                    (label, *(f"{rank_correlation(own, one).kendall:.2f}" for one in columns))
                    for label, own in zip(labels, accuracies, strict=True)
                ),
                caption=f"Kendall's tau-b over {len(names)} captioners; of so few no value "
                "differs significantly from 0",
            ),
        )
    return Section(
        "Captioners that select photos",
        (
            "A captioner selects the photo for which the caption has the higher likelihood. "
            "The first table has the metrics of its captions, written with a beam of "
            f"{BEAM_SIZE}, and the accuracies of binary image selection, all times 100.",
        ),
        tables,
    )


def _retrieval_section(
    study: TrainedStudy[Any], captioners: Mapping[str, Captioner], photos: Any, number: int
) -> Section:
    """Rank one caption of each photo by the likelihood ratio of the first captioner."""
    name, captioner = next(iter(captioners.items()))
    pool = study.corpus.pools[study.split]
    columns = np.flatnonzero(pool.numbers == number)
    owners = np.unique(pool.photos, return_inverse=True)[1][columns]
    rows, places = np.unique(owners, return_inverse=True)
    texts = [pool.texts[column] for column in columns]
    captions = [study.raw_captions(split).key for split in ("train", "dev")]
    ratios = Step(
        study.store,
        Kind.array("caption-ratios", 1),
        partial(_likelihood_ratios, n_threads=study.n_threads),
        Source(captioner, captioner.get_params(), study.photos.key, captions),
        photos[rows],
        texts,
    ).value()
    result = evaluate(
        ratios,
        caption_image=places,
        system=name,
        pool=f"caption #{number}",
        **study.labels,
    )
    return Section(
        "Retrieval by a captioner",
        (
            "Photos and captions are ranked by the likelihood of the caption given the photo, "
            "divided by its likelihood without a photo. The pool has one caption of each "
            "photo, because each pair costs a pass of the network over the caption.",
        ),
        (ResultTable([result]).to_table(),),
    )


def _likelihood_ratios(
    captioner: Source[Captioner], photos: Any, texts: Sequence[str], *, n_threads: int | None
) -> Array:
    """Return the scores of every photo and caption."""
    return captioner.value().scores(photos, texts, n_threads=n_threads)
