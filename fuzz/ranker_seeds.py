"""Rankers as they are saved, kernels and training items included, and what belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.seed_files import Readers, file, saved, text, written
from kernelcore.evaluation import evaluate
from kernelcore.evaluation.trec import read_qrels, read_run
from kernelcore.kernels import histogram_intersection, word_sequence
from kernelcore.models import KCCARanker

_IMAGES = np.random.default_rng(0).random((8, 3))
_CAPTIONS = ["a dog", "the sea", "two dogs", "a boat", "waves", "a cat", "two cats", "it runs"]


def _kcca() -> KCCARanker:
    return KCCARanker(2, image_kernel=histogram_intersection, text_kernel=word_sequence)


def _fitted(ranker: Any) -> Any:
    return ranker.fit(_IMAGES, _CAPTIONS)


def _use(kind: Any, name: str) -> Callable[[Path], None]:
    def use(folder: Path) -> None:
        ranker = kind.load(folder / name)
        with np.errstate(all="ignore"):
            try:
                scores = ranker.scores(_IMAGES[:2], ["a dog", "zzz"])
            except ValueError as error:  # of another width, say: its items are no file's
                if str(folder) in str(error):
                    raise
            else:
                assert scores.shape == (2, 2)

    return use


def _one_file(kind: Any, make: Callable[[], Any]) -> Any:
    return saved(make), _use(kind, "x.safetensors")


def _evaluate(folder: Path) -> None:
    try:
        evaluate(folder / "x.npy")
    except ValueError as error:
        # An array that cannot be scores is no damaged file.
        if not str(error).startswith(("annotation_scores", "caption_image")):
            raise


READERS: Readers = {
    "models.KCCARanker.load-kernels": _one_file(KCCARanker, lambda: _fitted(_kcca())),
    "evaluation.read_run": (
        text(x__run="q1 Q0 a 1 0.5 tag\nq1 Q0 b 2 0.25 tag\nq2 Q0 a 1 1e-3 tag\n"),
        file(read_run, "x.run"),
    ),
    "evaluation.read_qrels": (
        text(x__qrels="q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n"),
        file(read_qrels, "x.qrels"),
    ),
    "evaluation.evaluate": (
        lambda: written(lambda folder: np.save(folder / "x.npy", np.eye(5, dtype="f4"))),
        _evaluate,
    ),
}
