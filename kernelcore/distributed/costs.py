"""What a run will cost: tasks, time, traffic and memory of each step, before it begins."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore.distributed.rows import BLOCK, RowFiles
from kernelcore.distributed.store import Store
from kernelcore.distributed.tasks import needed_bytes
from kernelcore.evaluation.table import Table
from kernelcore.evaluation.tiles import TILE
from kernelcore.images.cnn import CNN
from kernelcore.images.decode import UnreadableImagesWarning
from kernelcore.kernels.histogram_intersection import histogram_intersection

_TRIAL = 0.3  # seconds
_ROUND = 40  # pivots of a round, about


class Rates(NamedTuple):
    """What one core does in a second.

    Attributes
    ----------
    product : float
        Multiplications and additions of float32 in products of matrices.
    factorization : float
        The same of float64 in triangular factors.
    kernel : float
        Elements that a kernel compares.
    photos : float
        Photos that the network describes.
    """

    product: float
    factorization: float
    kernel: float
    photos: float


@dataclass(frozen=True)
class Step:
    """Cost of a step of a run.

    Attributes
    ----------
    name : str
    n_tasks : int
    core_seconds : float
    read_bytes, written_bytes : float
        What workers read from the store, and write into it.
    memory_bytes : float
        Memory of a worker.
    """

    name: str
    n_tasks: int
    core_seconds: float
    read_bytes: float
    written_bytes: float
    memory_bytes: float


@dataclass(frozen=True)
class Bill:
    """Costs of all steps of a run.

    Attributes
    ----------
    steps : sequence of Step
    n_workers : int
        Workers of one thread each.
    """

    steps: Sequence[Step]
    n_workers: int

    def seconds(self, step: Step) -> float:
        """Return the time of a step: the last tasks may leave workers without work."""
        waves = -(-step.n_tasks // self.n_workers)
        return step.core_seconds / max(1, step.n_tasks) * waves

    def to_table(self) -> Table:
        """Return a table with a row for each step, and one for all."""
        rows = [
            (
                step.name,
                f"{step.n_tasks:,}",
                _time(step.core_seconds),
                _time(self.seconds(step)),
                _size(step.read_bytes),
                _size(step.written_bytes),
                _size(step.memory_bytes),
            )
            for step in self.steps
        ]
        rows.append(
            (
                "all",
                f"{sum(step.n_tasks for step in self.steps):,}",
                _time(sum(step.core_seconds for step in self.steps)),
                _time(sum(map(self.seconds, self.steps))),
                _size(sum(step.read_bytes for step in self.steps)),
                _size(sum(step.written_bytes for step in self.steps)),
                _size(max(step.memory_bytes for step in self.steps)),
            )
        )
        workers = "1 worker" if self.n_workers == 1 else f"{self.n_workers:,} workers"
        return Table(
            ("step", "tasks", "of one core", workers, "read", "written", "memory"),
            tuple(rows),
            caption="memory of each worker, beyond Python and its packages",
        )

    def __str__(self) -> str:
        return str(self.to_table())


def ranks_steps(
    n_images: int,
    n_captions: int,
    n_dimensions: int,
    *,
    block_rows: int,
    rates: Rates,
    itemsize: int = 4,
) -> list[Step]:
    """Return the costs of `streamed_ranks`."""
    down, across = -(-n_images // block_rows), -(-n_captions // block_rows)
    sides = min(block_rows, n_images), min(block_rows, n_captions)
    settings = {"block_rows": block_rows}
    most_gold = {"most_gold": -(-n_captions // n_images)}
    inputs = {
        "images": _rows(n_images, n_dimensions, itemsize),
        "captions": _rows(n_captions, n_dimensions, itemsize),
    }
    vectors = sum(sides) * n_dimensions * itemsize
    counts = 16 * (sides[0] * n_captions / n_images + sides[1])
    gold_bytes = across * 2 * sides[1] * n_dimensions * itemsize
    # A gathered tile is as large as any other, and holds captions of at most TILE[0] images.
    n_held = min(float(TILE[1]), TILE[0] * n_captions / n_images)
    gold = n_captions / n_held * TILE[0] * TILE[1] * n_dimensions / rates.product
    products = n_images * n_captions * n_dimensions / rates.product
    return [
        Step(
            "gold scores",
            across,
            gold,
            gold_bytes,
            4 * n_captions,
            _memory("gold scores", settings, inputs),
        ),
        Step(
            "counts",
            down * across,
            products,
            down * across * vectors,
            down * across * counts,
            _memory("counts", settings | most_gold, inputs),
        ),
    ]


def photo_steps(
    n_photos: int, *, shard_photos: int, rates: Rates, n_features: int, photo_bytes: float
) -> list[Step]:
    """Return the costs of `extract_features`."""
    n_tasks = -(-n_photos // shard_photos)
    settings = {"n_rows": n_photos, "shard_rows": shard_photos, "n_columns": n_features}
    return [
        Step(
            "features of photos",
            n_tasks,
            n_photos / rates.photos,
            n_photos * photo_bytes,
            4.0 * n_photos * n_features,
            _memory("photos", settings, {}),
        )
    ]


def landmark_steps(
    name: str,
    n_rows: int,
    n_columns: int,
    n_landmarks: int,
    *,
    shard_rows: int,
    rates: Rates,
    itemsize: int = 4,
) -> list[Step]:
    """Return the costs of `landmark_features`: the choice of landmarks, and the features."""
    parts, m = -(-n_rows // shard_rows), n_landmarks
    rounds = 6 + -(-m // _ROUND)
    shared = {"part_rows": shard_rows, "shard_rows": shard_rows, "n_rows": n_rows}
    size = 4 if itemsize == 4 else 8  # of a feature: counts have features of float64
    settings = shared | {"rank": m, "n_columns": m, "dtype": f"float{8 * size}"}
    inputs = {"X": _rows(n_rows, n_columns, itemsize)}
    values = float(n_rows) * m * n_columns / rates.kernel
    products = float(n_rows) * m * m / rates.product
    rows = float(n_rows) * n_columns * itemsize
    return [
        Step(
            f"landmarks of {name}",
            parts * (rounds + 1),
            values + products,
            (rounds + 1) * rows + n_rows * m * size * rounds / 2,
            n_rows * (m * size + 8.0 * rounds),
            _memory("pivots", settings, inputs),
        ),
        Step(
            f"landmark features of {name}",
            parts,
            values + products / 2,
            rows,
            float(n_rows) * m * size,
            _memory("landmark features", settings, inputs),
        ),
    ]


def kcca_steps(
    n_pairs: int, n_landmarks: int, *, shard_rows: int, rates: Rates, itemsize: int = 4
) -> list[Step]:
    """Return the costs of the triangular factors of `fit_landmark_kcca`."""
    width, parts = 2 * n_landmarks + 1, -(-n_pairs // shard_rows)
    leaves = -(-n_pairs // BLOCK)
    inputs = {
        "images": _rows(n_pairs, n_landmarks, itemsize),
        "captions": _rows(n_pairs, n_landmarks, itemsize),
        "owner": _rows(n_pairs, 1, 8),
    }
    work = 1.0 * n_pairs * width**2 + leaves * 2.0 * width**3 * 2 / 3
    return [
        Step(
            "triangular factors",
            parts,
            work / rates.factorization,
            float(n_pairs) * (width * itemsize + 8),
            8.0 * parts * width**2,
            _memory("triangles", {"part_rows": shard_rows}, inputs),
        )
    ]


def gram_steps(
    n_rows: int, n_columns: int, *, tile: int, rates: Rates, itemsize: int = 4
) -> list[Step]:
    """Return the costs of `gram_to_store` for a symmetric matrix."""
    rows = min(tile, n_rows)
    side = -(-n_rows // rows)
    n_tiles = side * (side + 1) // 2
    settings = {"tile": rows, "dtype": "float32"}
    return [
        Step(
            "Gram matrix",
            n_tiles,
            float(n_rows) * n_rows * n_columns / 2 / rates.kernel,
            2.0 * n_tiles * rows * n_columns * itemsize,
            4.0 * (side * rows) ** 2,
            _memory("gram", settings, {"X": _rows(n_rows, n_columns, itemsize)}),
        )
    ]


def measured_rates(cnn: CNN | None = None, photos: Sequence[Path] = ()) -> Rates:
    """Measure what one core of this machine does, for about a second.

    Parameters
    ----------
    cnn : CNN, optional
        A network to measure, too; otherwise its rate is infinite.
    photos : sequence of Path
        Photos that it reads and describes for that.
    """
    rng = np.random.default_rng(0)
    left, right = (rng.random((n, 512), np.float32) for n in TILE)
    tall = rng.random((BLOCK, 400))
    few = rng.random((256, 1000), np.float32)
    compare = partial(histogram_intersection, n_threads=1)
    with one_blas_thread():
        return Rates(
            left.shape[0] * right.size / _seconds(lambda: left @ right.T),
            len(tall) * tall.shape[1] ** 2 / _seconds(lambda: np.linalg.qr(tall, mode="r")),
            len(few) * few.size / _seconds(lambda: compare(few, few[1:])),
            float("inf") if cnn is None else _photos_per_second(cnn, photos),
        )


def _rows(n_rows: int, n_columns: int, itemsize: int) -> dict[str, Any]:
    """Return an input of a store that is not there."""
    stored = "|u1" if itemsize == 1 else f"<f{itemsize}"
    return RowFiles((("", n_rows),), n_columns, stored, "").to_json()


def _memory(kind: str, settings: dict[str, Any], inputs: dict[str, Any]) -> float:
    """Return the need by which workers are refused."""
    return float(needed_bytes(Store(Path(), kind, 1, settings, inputs)))


def _photos_per_second(cnn: CNN, photos: Sequence[Path]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableImagesWarning)
        describe = partial(cnn.transform, list(photos), on_error="skip", n_threads=1)
        return len(photos) / _seconds(describe)


def _seconds(work: object) -> float:
    """Return the shortest time of a call, after one that is not counted."""
    assert callable(work)
    work()
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < _TRIAL:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _time(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _size(n_bytes: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes / 1e3:,.0f} kB"
