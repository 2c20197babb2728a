"""Commands that run for long, on a corpus of a few scenes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from faults import Case

N_TRAINING, N_TEST = 14, 3


def cases() -> Iterator[Case]:
    """All of them."""
    command = partial(Case, names_errors=False)  # they print the name
    yield command("demo", _demo, ("demo.html",), wholly=False, content=_without_times)
    yield Case("train", partial(_train, overwrite=False), wholly=False, is_cut=False)
    yield Case(
        "train --overwrite",
        partial(_train, overwrite=True),
        ("model",),
        wholly=False,
        is_cut=False,
    )
    yield command("index", _index, content=_without_dates)
    yield command(
        "index that grows", partial(_index, is_there=True), ("index",), content=_without_dates
    )
    yield command("evaluate --json", _evaluate, ("result.json",), content=_without_times)
    yield Case(
        "reproduce hodosh2013", _reproduce, wholly=False, content=_without_times, is_cut=False
    )


class CommandError(Exception):
    """A command that ended with another status than 0."""


def _call(*words: object) -> None:
    from kernelcore import cli

    status = cli.main([str(word) for word in (*words, "--threads", 1)])
    if status:
        raise CommandError(f"status {status}")


def _corpus(folder: Path) -> None:
    """Two folders of photos, with a file of captions each."""
    from kernelcore.datasets import make_scenes

    scenes = make_scenes(N_TRAINING + N_TEST, size=(32, 40))
    scenes.write(folder)
    for part, numbers in (
        ("old", range(N_TRAINING)),
        ("new", range(N_TRAINING, N_TRAINING + N_TEST)),
    ):
        (folder / part).mkdir()
        rows = []
        for i in numbers:
            name = scenes.dataset.image_ids[i]
            shutil.copy(folder / "images" / name, folder / part)
            rows += [
                f"{name}#{k}\t{text}\n" for k, text in enumerate(scenes.dataset.captions[i])
            ]
        (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")


def _demo(folder: Path) -> Callable[[Path], None]:
    (folder / "demo.html").write_text("old", encoding="utf-8")
    return lambda folder: _call("demo", "--output", folder / "demo.html", "--n-images", 40)


def _train(folder: Path, *, overwrite: bool) -> Callable[[Path], None]:
    """What ``kernelcore train --cache`` does, with few visual words and one setting."""
    from kernelcore.datasets import load_folder
    from kernelcore.images import VisualWords
    from kernelcore.models import PhotoRanker

    _corpus(folder)

    def train(folder: Path, seed: int = 1) -> None:
        dataset = load_folder(folder / "old", folder / "old.tsv")
        words = VisualWords(
            n_words={"colour": 4, "texture": 5, "sift": 6}, n_sample_points=50, rng=seed
        )
        small = {"n_components": (4,), "regularization": ((0.1, 1.0),)}
        ranker = PhotoRanker(features=words, rng=seed, **small)
        ranker.fit(
            [path for path in dataset.paths if path is not None],
            dataset.captions,
            cache_dir=folder / "cache",
            n_threads=1,
        )
        ranker.save(folder / "model", overwrite=overwrite)

    def again(folder: Path) -> None:
        if overwrite or not (folder / "model").exists():  # a model is not replaced unasked
            train(folder)

    if overwrite:
        train(folder, seed=0)
    return again


def _model(folder: Path) -> None:
    _corpus(folder)
    _call("train", folder / "old", folder / "old.tsv", "--model", folder / "model")


def _index(folder: Path, *, is_there: bool = False) -> Callable[[Path], None]:
    _model(folder)

    def index(folder: Path, photos: str = "new") -> None:
        words = ("index", folder / photos, "--model", folder / "model")
        _call(*words, "--index", folder / "index")

    if is_there:
        index(folder, "old")
    return index


def _evaluate(folder: Path) -> Callable[[Path], None]:
    _model(folder)

    def evaluate(folder: Path, part: str = "new") -> None:
        places = ("--model", folder / "model", "--json", folder / "result.json")
        _call("evaluate", folder / part, folder / f"{part}.tsv", *places)

    evaluate(folder, "old")
    return evaluate


def _reproduce(folder: Path) -> Callable[[Path], None]:
    from kernelcore.datasets import make_scenes
    from kernelcore.experiments import hodosh2013
    from kernelcore.experiments.kernel_systems import Grid

    make_scenes(20, rng=1, size=(32, 40)).write(folder / "data")
    grid = Grid(
        powers=(1.0,),
        n_components=(5,),
        regularization=((0.1, 1.0),),
        correlation_power=(0.0,),
        max_rank=20,
        visual_words=({"n_words": {"colour": 4, "texture": 4, "sift": 4}},),
    )

    def reproduce(folder: Path) -> None:
        hodosh2013.run(
            folder / "data",
            folder / "results",
            systems=["NN_F1"],
            grid=grid,
            cache_dir=folder / "cache",
            n_threads=1,
        )

    return reproduce


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
            rows = table.execute("SELECT number, row, name, size, digest, look FROM photos")
            return repr(rows.fetchall()).encode()
    except sqlite3.Error:  # not yet whole
        return path.read_bytes()
