"""What writes files: one case for each way to write, and commands that run for long."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import write_corpus
from faults import Case

from kernelcore.captions import Vocabulary
from kernelcore.datasets import make_scenes
from kernelcore.evaluation import evaluate
from kernelcore.evaluation.trec import write_run
from kernelcore.experiments.steps import Kind, Step, Store
from kernelcore.images import VisualWords
from kernelcore.lexical import WordKernel
from kernelcore.models import PhotoIndex, PhotoRanker
from kernelcore.report import recall_figure, save_figures, write_html

Command = Callable[[Path], object]
PHOTOS = np.random.default_rng(1).integers(0, 256, (6, 24, 32, 3), np.uint8)


def cases() -> Iterator[Case]:
    """All of them."""
    for name, (file, save) in SAVED.items():
        yield Case(f"save {name}", partial(_replaced, file, save), (file,))
    yield Case("save a new file", partial(_new, "thing", SAVED["tensors"][1]))
    yield Case("save a new model", partial(_new, "model", _save_model))
    yield Case("replace a model", partial(_replaced, "model", _save_model), ("model",))
    yield Case("save a checkpoint", _checkpoint, ("training/checkpoint.safetensors",))
    yield Case("write scenes", lambda folder: make_scenes(5, size=(32, 40)).write)
    yield Case("Store", _store)
    yield Case("Store with damaged entries", partial(_store, is_damaged=True))
    yield Case("FeatureCache", _features)
    command = partial(Case, names_errors=False)  # they print the name
    yield command("demo", _demo, ("demo.html",), wholly=False, content=_without_times)
    yield command("index that grows", _index, ("index",), content=_without_dates)
    yield Case(
        "reproduce hodosh2013", _reproduce, wholly=False, content=_without_times, is_cut=False
    )


def _result(n: int) -> Any:
    return evaluate(np.eye(4), caption_image=range(4), system=f"system {n}", settings={})


def _page(path: Path, n: int) -> None:
    write_html(path, title="Results", summary=f"number {n}", results=[_result(n)])


def _figure(path: Path, n: int) -> None:
    save_figures([recall_figure([_result(n)])], path.parent)


def _photo_index(path: Path, n: int) -> None:
    index = PhotoIndex([f"{i}.jpg" for i in range(n)], np.ones((n, 3)), model="1f0e")
    index.save(path, overwrite=True)


# Name and writer, which is called with 1 for what is there before and 2 for the command.
SAVED: dict[str, tuple[str, Callable[[Path, int], Any]]] = {
    "tensors": (
        "thing",
        lambda path, n: WordKernel([f"word {i}" for i in range(n)], np.eye(n)).save(path),
    ),
    "Vocabulary": (
        "thing.json",
        lambda path, n: Vocabulary.from_captions([[["a", "dog"]], [["cats"] * n]]).save(path),
    ),
    "PhotoIndex": ("thing", _photo_index),
    "a run": ("thing.run", lambda path, n: write_run(path, {"q": {"d": float(n)}})),
    "a page": ("thing.html", _page),
    "a figure": ("01-recall-at-k.png", _figure),
}


def _replaced(file: str, save: Callable[[Path, int], Any], folder: Path) -> Command:
    save(folder / file, 1)
    return _new(file, save, folder)


def _new(file: str, save: Callable[[Path, int], Any], folder: Path) -> Command:
    return lambda folder: save(folder / file, 2)


def _visual_words(seed: int) -> VisualWords:
    n_words = {"colour": 4, "texture": 5, "sift": 6}
    return VisualWords(n_words=n_words, n_sample_points=50, rng=seed)


@cache
def _fitted(seed: int) -> PhotoRanker:
    scenes = make_scenes(20, size=(32, 40))
    grids = {"n_components_grid": (4,), "regularization_grid": ((0.1, 1.0),)}
    ranker = PhotoRanker(_visual_words(seed), rng=seed, **grids)
    return ranker.fit(list(scenes.images), scenes.dataset.captions, n_threads=1)


def _save_model(path: Path, n: int) -> None:
    _fitted(n).save(path, overwrite=True)


def _checkpoint(folder: Path) -> Command:
    """Two more epochs of a training run that has had one."""
    from kernelcore.deep import EmbeddingRanker, training

    captions = ["a red dog", "a blue cat", "a green boat", "a white rose"]
    ranker = EmbeddingRanker(
        n_components=4, n_hidden=4, min_count=1, n_epochs=2, batch_size=4, rng=0
    )
    saved: list[Any] = []
    save = training._Run.save
    training._Run.save = lambda run, *about: saved.append((run, about)) or save(run, *about)
    try:
        dev = np.eye(4), captions
        ranker.fit(*dev, dev=dev, folder=folder / "training", n_threads=1)
    finally:
        training._Run.save = save
    run, about = saved[-1]
    epochs = run.history.epochs
    run.history = training.History((*epochs, {**epochs[-1], "seconds": 1.0}))
    return lambda folder: run.save(folder / "training", *about[1:])


def _store(folder: Path, *, is_damaged: bool = False) -> Command:
    def run(folder: Path) -> None:
        store = Store(folder / "new" / "store")
        row = Step(store, Kind.array("row", 1), np.arange, 100).value()
        assert row.tolist() == list(range(100))
        record = {"b": [1, 2], "a": None}
        assert Step(store, Kind.json("json", 1), lambda: record).value() == record
        words = Kind.of("kernel", 1, WordKernel)
        kernel = Step(store, words, lambda: WordKernel(["a", "b"], np.eye(2))).value()
        assert kernel.words == ("a", "b")

    if is_damaged:
        run(folder)
        for path in (folder / "new" / "store").iterdir():
            content = bytearray(path.read_bytes())
            content[-3] ^= 4
            path.write_bytes(content)
    return run


def _features(folder: Path) -> Command:
    words = _visual_words(0).fit(list(PHOTOS), n_threads=1)
    cached = partial(words.transform, list(PHOTOS[:4]), n_threads=1)
    return lambda folder: cached(cache_dir=folder / "cache")


class CommandError(Exception):
    """A command that ended with another status than 0."""


def _call(*words: object) -> None:
    from kernelcore import cli

    status = cli.main([str(word) for word in (*words, "--threads", 1)])
    if status:
        raise CommandError(f"status {status}")


def _demo(folder: Path) -> Command:
    (folder / "demo.html").write_text("old", encoding="utf-8")
    return lambda folder: _call("demo", "--output", folder / "demo.html", "--n-images", 40)


def _index(folder: Path) -> Command:
    write_corpus(folder, 14, 3)
    _save_model(folder / "model", 1)

    def index(folder: Path, part: str = "new") -> None:
        for photo in (folder / part).rglob("*.png"):
            photo.touch()  # so that the next run writes as well, and removes what is left
        places = ("--model", folder / "model", "--index", folder / "index")
        _call("index", folder / part, *places)

    index(folder, "old")
    return index


def _reproduce(folder: Path) -> Command:
    from kernelcore.experiments import hodosh2013
    from kernelcore.experiments.kernel_systems import Grid

    make_scenes(20, rng=1, size=(32, 40)).write(folder / "data")
    grid = Grid(
        powers=(1.0,), n_components=(5,), regularization=((0.1, 1.0),),
        correlation_power=(0.0,), max_rank=20,
        visual_words=({"n_words": {"colour": 4, "texture": 4, "sift": 4}},),
    )  # fmt: skip
    options = {"systems": ["NN_F1"], "grid": grid, "n_threads": 1}
    return lambda folder: hodosh2013.run(
        folder / "data", folder / "results", cache_dir=folder / "cache", **options
    )


def _without_times(path: Path) -> bytes | None:
    """Content of a file, but for how long things took; pages that show it do not matter."""
    if path.suffix in {".html", ".md"}:
        return path.read_bytes()[-16:]  # its end: a page is whole
    if path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        return json.dumps({**content, "seconds": None}).encode()
    return path.read_bytes()


def _without_dates(path: Path) -> bytes | None:
    """Content of a file, of an index without the times at which photos were changed."""
    if path.suffix != ".sqlite":
        return path.read_bytes()
    try:
        with closing(sqlite3.connect(path)) as table:
            rows = table.execute("SELECT number, row, name, size, digest FROM photos")
            return repr(rows.fetchall()).encode()
    except sqlite3.Error:  # not yet whole
        return path.read_bytes()
