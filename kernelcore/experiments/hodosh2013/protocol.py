"""How the paper trains, chooses and measures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

from kernelcore._progress import Progress
from kernelcore._validation import check_choice
from kernelcore.captions.normalize import english_pipeline
from kernelcore.evaluation import RetrievalResult, evaluate
from kernelcore.experiments.arguments import check_systems
from kernelcore.experiments.hodosh2013.corpus import Texts, describe_photos
from kernelcore.experiments.hodosh2013.findings import findings
from kernelcore.experiments.hodosh2013.grams import Grams
from kernelcore.experiments.hodosh2013.judged import Judgments, Pool
from kernelcore.experiments.hodosh2013.lexicon import Lexicon, Resources, find_outside_corpus
from kernelcore.experiments.hodosh2013.photo_kernels import PyramidKernels
from kernelcore.experiments.hodosh2013.scorer import Scorer, Scores
from kernelcore.experiments.hodosh2013.systems import (
    BASELINE,
    GRID,
    PUBLISHED,
    PUBLISHED_ON,
    SOURCE,
    SYSTEMS,
    Grid,
    System,
)
from kernelcore.experiments.store import Store, kept_in
from kernelcore.experiments.study import Study
from kernelcore.images import read_image
from kernelcore.report import Example, StageRecorder, annotation_examples, search_examples

_SUMMARY = (
    "Made by `kernelcore reproduce hodosh2013`. Training images have all their captions, the "
    "pools one caption per image. For each system and task the five best settings on the "
    "development split by R@1, R@5 and R@10, fifteen models, are combined by Borda's count."
)


def run(
    data: Path | str,
    *,
    systems: Sequence[str] | None = None,
    split: Literal["test", "dev"] = "test",
    pool: int = 2,
    other_pool: int | None = 0,
    grid: Grid = GRID,
    cache_dir: Path | str | None = None,
    wordnet_dir: str | os.PathLike[str] = "/usr/share/wordnet",
    outside_corpus: str | os.PathLike[str] | None = None,
    spacy_model: str | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> Study:
    """Train systems of the paper and measure them on a split.

    Parameters
    ----------
    data : path
        Folder of Flickr8k or Flickr30k, see `kernelcore.datasets.load_flickr`.
    systems : sequence of str, optional
        Names from `SYSTEMS`; the default is all of them.
    split : {"test", "dev"}, default "test"
        The split to report. Settings are chosen on ``dev`` in any case.
    pool : int, default 2
        Number of the caption of each image that is in the pool: 2 in the paper.
    other_pool : int, optional, default 0
        Where all systems are run, measure the paper's best one also with captions of this
        number, as later publications do.
    grid : Grid, default GRID
        Settings to try.
    cache_dir : path, optional
        Keeps the histograms of photos, the word similarities, every Gram matrix and its
        basis, and the scores of each system, as soon as they are known: a second run, also
        after a kill, goes on from there. All 30 systems take about 5 GB. Without it the
        files are temporary.
    wordnet_dir : path, default "/usr/share/wordnet"
        Folder of the WordNet database, for the similarity Lin.
    outside_corpus : path, optional
        Tagged text for the similarity D_out; the default is ``brown_tagged.txt`` in `data`
        or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions for the similarity A (extra ``text``); the default is
        an English one that is installed.
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
        If a system or split does not exist, or an image lacks the pool's caption.
    FileNotFoundError
        If `data` does not hold the corpus, or photos, WordNet or the outside corpus are
        missing.
    MissingExtraError
        If spaCy is needed and missing.
    """
    names = check_systems(systems, SYSTEMS)
    check_choice("split", split, ("test", "dev"))
    chosen = {name: SYSTEMS[name] for name in names}
    similarities = {name for system in chosen.values() for name in system.lexical}
    resources = Resources(
        wordnet_dir,
        outside_corpus or find_outside_corpus(data),
        spacy_model or english_pipeline(),
    )
    recorder = StageRecorder()
    pools = [pool]
    if len(chosen) == len(SYSTEMS) and other_pool is not None and other_pool != pool:
        pools.append(other_pool)
    run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
    splits = ["dev", split, *(["train"] if any(s.single for s in chosen.values()) else [])]
    with kept_in(cache_dir, "hodosh2013") as folder:
        store = Store(folder)
        with recorder.stage("captions"):
            texts = Texts.read(data, spacy_model=resources.spacy_model, progress=progress)
            for part, number in product(splits, pools):
                texts.check_pool(part, number)
            resources.check(similarities)
        with recorder.stage("histograms of photos"):
            photos = PyramidKernels(
                texts.dataset,
                describe_photos(
                    texts.dataset, grid.visual_words, store, cache_dir=cache_dir, **run
                ),
                mirror=grid.mirror,
                **run,
            )
        lexicon = Lexicon(texts, resources, store, progress=progress)
        with recorder.stage("word similarities"):
            for system in chosen.values():
                lexicon.word_kernel(system.lexical)
        grams = Grams(
            texts,
            photos,
            lexicon,
            store,
            grid,
            pool=pool,
            **run,
        )
        scores = _score(chosen, split, grams, store, recorder)
        elsewhere: dict[str, Scores] = {}
        if len(pools) > 1:
            with recorder.stage(f"scores of {BASELINE}, pool #{other_pool}"):
                other = Scorer(chosen[BASELINE], split, grams.with_pool(pools[1]), store)
                elsewhere = {BASELINE: other.scores()}
    with recorder.stage("judgments and tests"):
        labels = {
            "protocol": SOURCE,
            "dataset": texts.dataset.name,
            "split": split,
            "n_threads": n_threads,
        }
        results = _evaluate(scores, pool, labels)
        pooled = Pool.of(texts.dataset, split, pool)
        judgments = Judgments.of(data, pooled)
        sections = findings(
            results,
            scores,
            pooled,
            judgments,
            elsewhere=_evaluate(elsewhere, pools[-1], labels),
            n_threads=n_threads,
        )
    return Study(
        f"Sentence-based image description, {SOURCE}",
        (*results, *(PUBLISHED if (split, f"caption #{pool}") == PUBLISHED_ON else ())),
        recorder,
        sections=sections,
        examples=partial(_examples, scores, texts, split, pooled, n_threads),
        settings={
            "grid": asdict(grid),
            "spaCy pipeline": resources.spacy_model,
            "outside corpus": resources.corpus_name,
        },
        summary=_SUMMARY,
    )


def _score(
    systems: Mapping[str, System],
    split: str,
    grams: Grams,
    store: Store,
    recorder: StageRecorder,
) -> dict[str, Scores]:
    """Rank the split by each system, first what all need, then one after another."""
    scorers = {name: Scorer(system, split, grams, store) for name, system in systems.items()}
    pending = [scorer for scorer in scorers.values() if not scorer.is_done]
    with recorder.stage("kernels"):
        for scorer in pending:
            scorer.prepare_kernels()
    with recorder.stage("bases"):
        grams.prepare_bases([s.system for s in pending if s.system.ranker == "kcca"])
    scores = {}
    for name, scorer in scorers.items():
        with recorder.stage(f"scores of {name}"):
            scores[name] = scorer.scores()
    return scores


def _evaluate(
    scores: Mapping[str, Scores], pool: int, labels: Mapping[str, Any]
) -> list[RetrievalResult]:
    return [
        evaluate(
            of.annotation,
            of.search,
            system=name,
            settings=of.settings,
            pool=f"caption #{pool}",
            **labels,
        )
        for name, of in scores.items()
    ]


def _examples(
    scores: Mapping[str, Scores],
    texts: Texts,
    split: str,
    pool: Pool,
    n_threads: int | None,
) -> tuple[Example, ...]:
    """Good, typical and bad queries of the paper's best system, or of the last that was run."""
    name = BASELINE if BASELINE in scores else list(scores)[-1]
    rows = texts.dataset.split(split)

    def pixels(i: int) -> Any:
        return read_image(cast("Path", texts.dataset.paths[rows[i]]))

    shown = (pool.captions, pixels)
    named: dict[str, Any] = {"system": name, "n_threads": n_threads}
    return (
        *search_examples(scores[name].search, *shown, **named),
        *annotation_examples(scores[name].annotation, *shown, **named),
    )
