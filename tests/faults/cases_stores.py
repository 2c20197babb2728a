"""What keeps entries on disk: caches, stores, rows of features, Gram matrices that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from faults import Case

PHOTOS = np.random.default_rng(1).integers(0, 256, (4, 24, 32, 3), np.uint8)
X = np.random.default_rng(2).random((5, 3))


def cases() -> Iterator[Case]:
    """All of them."""
    yield Case("write_gram", partial(_gram, ()))
    yield Case("write_gram over a file", partial(_gram, ("K.npy",)), ("K.npy",))
    yield Case("write_gram that goes on", partial(_gram, ("K.npy", "partial")), ("K.npy",))
    yield Case("Store", _store)
    yield Case("Store with damaged entries", partial(_store, is_damaged=True))
    yield Case("FeatureCache", _features)
    # PiecesFailedError is no OSError: it has one, with its file, for each piece.
    told = {"names_errors": False}
    yield Case("gram_to_store", _gram_to_store, **told)
    yield Case("gram_to_store that goes on", partial(_gram_to_store, goes_on=True), **told)
    yield Case("ranks in a store", _ranks, **told)


class _Stopped(BaseException):
    pass


def _gram(there: tuple[str, ...], folder: Path) -> Callable[[Path], None]:
    from kernelcore.kernels import histogram_intersection, write_gram

    kernel = partial(histogram_intersection, n_threads=1)

    def stops(*inputs: object) -> object:
        n_done.append(1)
        if len(n_done) > 2:
            raise _Stopped
        return kernel(*inputs)

    if "K.npy" in there:
        np.save(folder / "K.npy", np.eye(3))
    if "partial" in there:
        n_done: list[int] = []
        with suppress(_Stopped):
            write_gram(folder / "K.npy", stops, X, block_size=3)
    return lambda folder: write_gram(folder / "K.npy", kernel, X, block_size=3)


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


def _gram_to_store(folder: Path, *, goes_on: bool = False) -> Callable[[Path], None]:
    from kernelcore.distributed import gram_to_store, read_gram
    from kernelcore.kernels import histogram_intersection

    expected = histogram_intersection(X, X)

    def run(folder: Path) -> None:
        store = folder / "gram"
        gram_to_store(
            "histogram_intersection", X, None, store, tile=2, dtype=np.float64, n_threads=1
        )
        np.testing.assert_array_equal(read_gram(store), expected)

    if goes_on:
        run(folder)
        (folder / "gram" / "done" / "0000001.json").unlink()
    return run


def _ranks(folder: Path) -> Callable[[Path], None]:
    from kernelcore.distributed import streamed_ranks

    del folder
    rows = X.astype(np.float32)
    return lambda folder: np.testing.assert_array_equal(
        streamed_ranks(rows, rows, store=folder / "ranks", block_rows=3, n_threads=1).search, 1
    )
