"""Everything that is saved: each kind replaces an older one of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from faults import Case

RNG = np.random.default_rng(0)
GRAM = np.exp(RNG.normal(size=(12, 3)) @ RNG.normal(size=(3, 12)))
GRAM = GRAM @ GRAM.T / 12


def cases() -> Iterator[Case]:
    """Every kind that can be saved."""
    for name, file, make in _KINDS:
        yield Case(f"save {name}", partial(_replaced, file, make), (file,))
    yield Case("save a new file", partial(_new, "thing", _encoded))
    yield Case("save a checkpoint", _checkpoint, ("training/checkpoint.safetensors",))
    yield Case("write scenes", _scenes)
    yield Case("save a new model", partial(_model, 1))
    yield Case("replace a model", partial(_model, 2), ("model",))


def _replaced(
    file: str, make: Callable[[int], Callable[[Path], None]], folder: Path
) -> Callable[[Path], None]:
    make(1)(folder / file)
    save = make(2)
    return lambda folder: save(folder / file)


def _new(
    file: str, make: Callable[[int], Callable[[Path], None]], folder: Path
) -> Callable[[Path], None]:
    del folder
    save = make(2)
    return lambda folder: save(folder / file)


def _encoded(n: int) -> Callable[[Path], None]:
    from kernelcore.captions import EncodedCaptions

    return EncodedCaptions.from_lists([[[0, 1, 2]]] * n).save


def _vocabulary(n: int) -> Callable[[Path], None]:
    from kernelcore.captions import Vocabulary

    return Vocabulary.from_captions([[["a", "dog"]], [["cats"] * n]]).save


def _trees(n: int) -> Callable[[Path], None]:
    from kernelcore.captions import SentenceTrees

    return SentenceTrees(
        word_ids=[0] * n,
        relation_ids=[0] * n,
        heads=[-1] * n,
        offsets=list(range(n + 1)),
        n_relations=3,
        n_words=4,
    ).save


def _fragments(n: int) -> Callable[[Path], None]:
    from kernelcore.captions import SentenceFragments

    ids = np.zeros(n, np.int32)
    return SentenceFragments(
        relation_ids=ids,
        first_ids=ids,
        second_ids=ids,
        offsets=[0, n],
        n_relations=3,
        n_words=5,
    ).save


def _histograms(n: int) -> Any:
    from kernelcore.images import SpatialHistograms

    counts = np.full((n, 4, 3), 5)
    return SpatialHistograms.from_finest(counts, n_levels=2)


@cache
def _words() -> Any:
    from kernelcore.images import VisualWords

    photos = np.random.default_rng(0).integers(0, 256, (6, 24, 32, 3), np.uint8)
    n_words = {"colour": 4, "texture": 5, "sift": 6}
    return VisualWords(n_words=n_words, n_sample_points=100).fit(list(photos), n_threads=1)


def _visual_words(n: int) -> Callable[[Path], None]:
    import copy

    words = copy.copy(_words())
    words.n_sample_points = 100 + n
    return words.save


def _basis(n: int) -> Callable[[Path], None]:
    from kernelcore.kcca import kernel_basis

    return kernel_basis(n * GRAM, decomposition="eigen", tolerance=0.0, max_rank=7).save


def _kcca(n: int) -> Callable[[Path], None]:
    from kernelcore.kcca import KCCA

    return KCCA(n).fit(GRAM, GRAM**2).save


def _kcca_ranker(n: int) -> Callable[[Path], None]:
    from kernelcore.models import KCCARanker

    return KCCARanker(n_components=n).fit(GRAM, GRAM**2).save


def _word_kernel(n: int) -> Callable[[Path], None]:
    from kernelcore.lexical import WordKernel

    return WordKernel([f"word {i}" for i in range(n)], np.eye(n)).save


def _index(n: int) -> Callable[[Path], None]:
    from kernelcore.models import PhotoIndex

    index = PhotoIndex([f"{i}.jpg" for i in range(n)], np.ones((n, 3)), model="1f0e")
    return partial(index.save, overwrite=True)


def _scores(n: int) -> Callable[[Path], None]:
    from kernelcore.experiments.scores import Scores

    return Scores(np.full((3, 3), n), np.eye(3), {"power": n}).save


def _result(n: int) -> Any:
    from kernelcore.evaluation import evaluate

    return evaluate(np.eye(4), caption_image=range(4), system=f"system {n}", settings={})


def _page(n: int, *, html: bool) -> Callable[[Path], None]:
    from kernelcore.report import write_html, write_markdown

    write = write_html if html else write_markdown
    parts = {"title": "Results", "summary": f"number {n}", "results": [_result(n)]}
    return lambda path: write(path, **parts)


def _figure(n: int) -> Callable[[Path], None]:
    from kernelcore.report import recall_figure

    return recall_figure([_result(n)]).save


def _sentence_ranker(n: int) -> Callable[[Path], None]:
    from kernelcore.deep import EmbeddingRanker

    return _embedding(EmbeddingRanker, n, None).save


def _embedding(kind: Any, n_epochs: int, folder: Path | None) -> Any:
    ranker = kind(
        n_components=4, n_hidden=4, min_count=1, n_epochs=n_epochs, batch_size=4, rng=0
    )
    captions = ["a red dog", "a blue cat", "a green boat", "a white rose"]
    photos = np.eye(4)
    dev = (photos, captions)
    return ranker.fit(photos, captions, dev=dev, folder=folder, n_threads=1)


def _checkpoint(folder: Path) -> Callable[[Path], None]:
    """Two more epochs of a training run that has had one."""
    from kernelcore.deep import EmbeddingRanker, training

    saved: list[Any] = []
    save = training._Run.save
    training._Run.save = lambda run, *about: saved.append((run, about)) or save(run, *about)
    try:
        _embedding(EmbeddingRanker, 2, folder / "training")
    finally:
        training._Run.save = save
    run, about = saved[-1]
    epochs = run.history.epochs
    run.history = training.History((*epochs, {**epochs[-1], "seconds": 1.0}))
    return lambda folder: run.save(folder / "training", *about[1:])


def _linker(n: int) -> Callable[[Path], None]:
    from kernelcore.datasets import Document
    from kernelcore.deep import DocumentLinker

    features = {f"{i}.jpg": np.eye(4)[i] for i in range(4)}
    texts = ("a red dog", "a blue cat", "a green boat", "a white rose")
    documents = [Document(f"d{d}", texts, tuple(features), None) for d in range(3)]
    linker = DocumentLinker(n_components=4, n_epochs=n, n_warm_up=1, rng=0, min_count=1)
    return linker.fit(documents, features, dev=documents, n_threads=1).save


def _scenes(folder: Path) -> Callable[[Path], None]:
    from kernelcore.datasets import make_scenes

    del folder
    return make_scenes(5, size=(32, 40)).write


@cache
def _rankers() -> list[Any]:
    from kernelcore.datasets import make_scenes
    from kernelcore.models import PhotoRanker

    scenes = make_scenes(20, size=(32, 40))
    small = {"n_components_grid": (4,), "regularization_grid": ((0.1, 1.0),)}
    return [
        PhotoRanker(features=_words(), rng=n, **small).fit(
            list(scenes.images), scenes.dataset.captions, n_threads=1
        )
        for n in (1, 2)
    ]


def _model(n: int, folder: Path) -> Callable[[Path], None]:
    old, new = _rankers()
    if n == 2:
        old.save(folder / "model")

    return lambda folder: new.save(folder / "model", overwrite=True)


_KINDS: tuple[tuple[str, str, Callable[[int], Callable[[Path], None]]], ...] = (
    ("EncodedCaptions", "thing", _encoded),
    ("Vocabulary", "thing.json", _vocabulary),
    ("SentenceTrees", "thing", _trees),
    ("SentenceFragments", "thing", _fragments),
    ("SpatialHistograms", "thing", lambda n: _histograms(n).save),
    ("VisualWords", "thing", _visual_words),
    ("KernelBasis", "thing", _basis),
    ("KCCA", "thing", _kcca),
    ("KCCARanker", "thing", _kcca_ranker),
    ("WordKernel", "thing", _word_kernel),
    ("PhotoIndex", "thing", _index),
    ("Scores", "thing", _scores),
    ("Result", "thing.json", lambda n: _result(n).save),
    ("a page in HTML", "thing.html", partial(_page, html=True)),
    ("a page in Markdown", "thing.md", partial(_page, html=False)),
    ("a figure", "thing.png", _figure),
    ("EmbeddingRanker", "thing", _sentence_ranker),
    ("DocumentLinker", "thing", _linker),
)
