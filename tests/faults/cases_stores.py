"""What keeps entries on disk: caches, stores, rows of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from faults import Case

PHOTOS = np.random.default_rng(1).integers(0, 256, (4, 24, 32, 3), np.uint8)


def cases() -> Iterator[Case]:
    """All of them."""
    yield Case("Store", _store)
    yield Case("Store with damaged entries", partial(_store, is_damaged=True))
    yield Case("FeatureCache", _features)


def _store(folder: Path, *, is_damaged: bool = False) -> Callable[[Path], None]:
    from kernelcore.experiments.steps import Kind, Step, Store
    from kernelcore.lexical import WordKernel

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


def _features(folder: Path) -> Callable[[Path], None]:
    from cases_saving import _words

    words = _words()
    del folder
    return lambda folder: words.transform(list(PHOTOS), cache_dir=folder / "cache", n_threads=1)
