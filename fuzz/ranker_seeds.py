"""Rankers as they are saved, kernels and training items included, and what belongs to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fuzz.seed_files import Readers, file, text, written
from kernelcore.evaluation import evaluate
from kernelcore.evaluation.trec import read_qrels, read_run


def _evaluate(folder: Path) -> None:
    try:
        evaluate(folder / "x.npy")
    except ValueError as error:
        # An array that cannot be scores is no damaged file.
        if not str(error).startswith(("annotation_scores", "caption_image")):
            raise


READERS: Readers = {
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
