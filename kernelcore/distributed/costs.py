"""What a run will cost: tasks, time, traffic and memory of each step, before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelcore._blas import one_blas_thread
from kernelcore.distributed.rows import BLOCK
from kernelcore.evaluation.table import Table
from kernelcore.evaluation.tiles import TILE
from kernelcore.images.cnn import CNN
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
    vectors = sum(sides) * n_dimensions * itemsize
    counts = 16 * (sides[0] * n_captions / n_images + sides[1])
    gold_bytes = across * 2 * sides[1] * n_dimensions * itemsize
    # A tile of the gathered products is as large as any other, for as many captions.
    gold = n_captions * TILE[0] * n_dimensions / rates.product
    products = n_images * n_captions * n_dimensions / rates.product
    memory = 3 * vectors + counts + 4 * TILE[0] * TILE[1] * itemsize
    return [
        Step("gold scores", across, gold, gold_bytes, 4 * n_captions, 3 * vectors),
        Step(
            "counts",
            down * across,
            products,
            down * across * vectors,
            down * across * counts,
            memory,
        ),
    ]


def photo_steps(
    n_photos: int, *, shard_photos: int, rates: Rates, n_features: int, photo_bytes: float
) -> list[Step]:
    """Return the costs of `extract_features`."""
    n_tasks = -(-n_photos // shard_photos)
    return [
        Step(
            "features of photos",
            n_tasks,
            n_photos / rates.photos,
            n_photos * photo_bytes,
            4.0 * n_photos * n_features,
            (400 << 20) + (7 << 24) + 12.0 * shard_photos * n_features,
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
    held = min(shard_rows, n_rows)
    values = float(n_rows) * m * n_columns / rates.kernel
    products = float(n_rows) * m * m / rates.product
    block = min(BLOCK, n_rows) * (3 * itemsize * n_columns + 24 * m)
    rows = float(n_rows) * n_columns * itemsize
    return [
        Step(
            f"landmarks of {name}",
            parts * (rounds + 1),
            values + products,
            (rounds + 1) * rows + n_rows * m * itemsize * rounds / 2,
            n_rows * (m * itemsize + 8.0 * rounds),
            held * (24 + 8.0 * m) + block,
        ),
        Step(
            f"features of {name}",
            parts,
            values + products / 2,
            rows,
            float(n_rows) * m * itemsize,
            2.0 * held * m * itemsize + block,
        ),
    ]


def kcca_steps(
    n_pairs: int, n_landmarks: int, *, shard_rows: int, rates: Rates, itemsize: int = 4
) -> list[Step]:
    """Return the costs of the triangular factors of `fit_landmark_kcca`."""
    width, parts = 2 * n_landmarks + 1, -(-n_pairs // shard_rows)
    leaves = -(-n_pairs // BLOCK)
    work = 1.0 * n_pairs * width**2 + leaves * 2.0 * width**3 * 2 / 3
    return [
        Step(
            "triangular factors",
            parts,
            work / rates.factorization,
            float(n_pairs) * (width * itemsize + 8),
            8.0 * parts * width**2,
            8.0 * (4 * BLOCK * width + 18 * width**2),
        )
    ]


def gram_steps(
    n_rows: int, n_columns: int, *, tile: int, rates: Rates, itemsize: int = 4
) -> list[Step]:
    """Return the costs of `gram_to_store` for a symmetric matrix."""
    side = -(-n_rows // tile)
    n_tiles = side * (side + 1) // 2
    rows = min(tile, n_rows)
    return [
        Step(
            "Gram matrix",
            n_tiles,
            float(n_rows) * n_rows * n_columns / 2 / rates.kernel,
            2.0 * n_tiles * rows * n_columns * itemsize,
            4.0 * (side * tile) ** 2,
            6.0 * rows * n_columns * itemsize + 24.0 * tile**2,
        )
    ]


def measured_rates(*, photos: bool = False) -> Rates:
    """Measure what one core of this machine does, for about a second.

    Parameters
    ----------
    photos : bool, default False
        Measure the network, too, on a black photo; otherwise its rate is infinite.
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
            _photos_per_second() if photos else float("inf"),
        )


def _photos_per_second() -> float:
    lens = CNN().make_lens()
    with lens.running():
        return 1.0 / _seconds(lens.see_blank)


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
