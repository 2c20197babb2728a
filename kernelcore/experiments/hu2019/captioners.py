"""The captioner of the study: what it writes, and what it selects by likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernelcore._check import Array
from kernelcore.deep import Captioner
from kernelcore.evaluation import ResultTable, evaluate
from kernelcore.experiments.captioning import (
    NEAREST,
    PUBLISHED_WRITERS,
    nearest_captions,
    references_of,
    selection_scorer,
    writing_section,
)
from kernelcore.experiments.hu2019.systems import CAPTIONER, CAPTIONER_SETTINGS
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.training import TrainedStudy
from kernelcore.report import Section

BEAM_SIZE = 3


def captioner_sections(
    study: TrainedStudy[Any], questions: Questions, number: int
) -> Iterator[Section]:
    """Train the captioner, and tabulate its captions, selections and rankings.

    Parameters
    ----------
    study : TrainedStudy
        Trains on its photos and keeps the model in its cache.
    questions : Questions
    number : int
        Number of the caption of each photo in the pool of retrieval.
    """
    captioner = _trained(study)
    pool = study.corpus.pools[study.split]
    photos = study.photos.value()[study.corpus.photos(study.split)]
    yield writing_section(
        {
            NEAREST: nearest_captions(study.corpus, study.photos.value(), study.split),
            CAPTIONER: captioner.generate(
                photos, beam_size=BEAM_SIZE, n_threads=study.n_threads
            ),
        },
        references_of(pool),
        published=PUBLISHED_WRITERS if study.split == "test" else {},
        store=study.store,
    )
    of_split = questions.photos
    scorer = selection_scorer(
        captioner,
        photos,
        of_split.photos.image_ids,
        dict(zip(of_split.caption_ids, pool.texts, strict=True)),
        n_threads=study.n_threads,
    )
    yield Section(
        "Captioners that select photos",
        ("A captioner selects the photo for which the caption has the higher likelihood.",),
        [
            ResultTable(own).to_table()
            for own in questions.results({CAPTIONER: scorer}).values()
        ],
    )
    yield _retrieval_section(study, captioner, photos, number)


def _trained(study: TrainedStudy[Any]) -> Captioner:
    """Train the captioner on ``train``, as a cached step of the study."""
    params: dict[str, Any] = dict(CAPTIONER_SETTINGS)
    if study.n_epochs is not None:
        params["n_epochs"] = study.n_epochs
    params |= {"batch_size": study.batch_size, "device": study.device, "rng": study.rng}
    captions = {split: study.raw_captions(split) for split in ("train", "dev")}
    found: Captioner = study.train(
        Captioner(**params), study.photos, captions, word_vectors=None
    )
    return found


def _retrieval_section(
    study: TrainedStudy[Any], captioner: Captioner, photos: Any, number: int
) -> Section:
    """Rank one caption of each photo by the likelihood ratio of the captioner."""
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
        system=CAPTIONER,
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
