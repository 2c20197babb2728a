"""Measure the largest runs of `kernelcore.distributed`, for docs/scaling.md.

    python bench/studies/scaling.py --scratch /scratch

Needs about 45 minutes and 40 GB of disk; nothing else may run. Each part is stored in
bench/results/scaling.json when it is done, and a part that is stored is not measured again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Client, LocalCluster
from pytest_benchmark.utils import get_commit_info

from kernelcore import show_config
from kernelcore._threads import in_threads, one_blas_thread
from kernelcore.distributed import fit_landmark_kcca, gram_to_zarr, streamed_ranks
from kernelcore.kernels import histogram_intersection

STORED = Path(__file__).resolve().parents[1] / "results" / "scaling.json"
N_DIMENSIONS = 512
TILE = 504, 1008
SIDES = (25_000, 50_000, 100_000, 200_000)
N_IMAGES, N_CAPTIONS = 1_000_000, 5_000_000
N_BINS, N_WORDS, N_LANDMARKS = 256, 128, 300
SHARD = 65_536
_SAMPLING = 0.1  # seconds between two looks at memory


@contextmanager
def workers(n: int) -> Iterator[Client | None]:
    """Yield a client of this many processes, or None for 0."""
    if n == 0:
        yield None
        return
    about = {"n_workers": n, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(host="127.0.0.1", **about) as cluster, Client(cluster) as client:
        client.wait_for_workers(n)
        yield client


def drawn_rows(path: Path, n: int, make: Callable[..., np.ndarray], seed: int) -> Path:
    """Write rows into a .npy file part by part: a million of them never lie in memory."""
    first = make(np.random.default_rng(0), np.arange(1))
    rows = np.lib.format.open_memmap(path, "w+", first.dtype, (n, first.shape[1]))
    for start in range(0, n, SHARD):
        places = np.arange(start, min(start + SHARD, n))
        rows[places] = make(np.random.default_rng([seed, start]), places)
    return path


def embeddings(rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
    return rng.standard_normal((len(places), N_DIMENSIONS), np.float32)


def product_rate(n_threads: int) -> float:
    """Multiply-adds a second of products of tiles, on as many threads of one BLAS thread."""
    rng = np.random.default_rng(0)
    sides = [rng.standard_normal((n, N_DIMENSIONS), np.float32) for n in TILE]

    def work(_: int) -> None:
        out = np.empty(TILE, np.float32)
        for _ in range(300):
            np.matmul(sides[0], sides[1].T, out=out)

    def seconds() -> float:
        start = time.perf_counter()
        with one_blas_thread():
            in_threads(work, range(n_threads), n_threads, setting=one_blas_thread)
        return time.perf_counter() - start

    seconds()
    return n_threads * 300 * TILE[0] * TILE[1] * N_DIMENSIONS / min(seconds() for _ in range(3))


def ranks(scratch: Path) -> dict[str, Any]:
    """Exact ranks of growing squares, by two workers, and the largest by one and in threads."""
    found = {}
    for n in SIDES:
        sides = [
            drawn_rows(scratch / f"{side}-{n}.npy", n, embeddings, seed)
            for seed, side in enumerate(("images", "captions"))
        ]
        for n_workers in (1, 2, 0) if n == SIDES[-1] else (2,):
            with workers(n_workers) as client:
                before = product_rate(max(1, n_workers or 2))
                start = time.perf_counter()
                folder = scratch / f"ranks-{n}-{n_workers}"
                streamed_ranks(*sides, folder, client=client, n_threads=2)
                seconds = time.perf_counter() - start
                rate = (before + product_rate(max(1, n_workers or 2))) / 2
            shutil.rmtree(folder)
            product = float(n) ** 2 * N_DIMENSIONS / rate
            found[f"{n} by {n_workers}"] = {"seconds": seconds, "product_seconds": product}
    return found


def kcca(scratch: Path) -> dict[str, Any]:
    """Landmark KCCA of a million photos and five million captions, with its memory."""
    means = np.random.default_rng(1).gamma(0.3, size=(64, N_BINS)).astype(np.float32)
    kinds = np.random.default_rng(2).integers(0, 64, N_IMAGES)
    words = np.random.default_rng(3).gamma(0.1, size=(64, N_WORDS))

    def photo_rows(rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
        noise = rng.gamma(1.0, size=(len(places), N_BINS))
        return (means[kinds[places]] * noise).astype(np.float32)

    def caption_rows(rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
        return rng.poisson(words[kinds[places // 5]]).clip(0, 255).astype(np.uint8)

    images = drawn_rows(scratch / "histograms.npy", N_IMAGES, photo_rows, 0)
    captions = drawn_rows(scratch / "words.npy", N_CAPTIONS, caption_rows, 1)
    found = {}
    options = {"n_landmarks": N_LANDMARKS, "n_components": 100}
    options["caption_image"] = np.arange(N_CAPTIONS) // 5
    for n_workers in (2, 1):
        folder = scratch / f"kcca-{n_workers}"
        with workers(n_workers) as client, peak_memory() as memory:
            start = time.perf_counter()
            model = fit_landmark_kcca(images, captions, folder, client=client, **options)
            seconds = time.perf_counter() - start
        files = [one for one in folder.rglob("*") if one.is_file()]
        found[f"{n_workers}"] = {
            "seconds": seconds,
            "peak_bytes": memory[0],
            "first_correlation": float(model.kcca.correlations_[0]),
            "store_bytes": sum(one.stat().st_size for one in files),
        }
        shutil.rmtree(folder)
    return found


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Watch the memory of this process and its children: pages that they share count once."""
    peak, ended, own = [0], threading.Event(), psutil.Process()

    def watch() -> None:
        while not ended.wait(_SAMPLING):
            total = 0
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    total += process.memory_full_info().pss
            peak[0] = max(peak[0], total)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def overhead(scratch: Path) -> dict[str, Any]:
    """Time of the engine for each task: tiles with hardly any work."""
    X = np.random.default_rng(0).random((640, 4))
    found = {}
    for n_workers in (0, 1, 2):
        with workers(n_workers) as client:
            warm = scratch / "warm"
            gram_to_zarr(histogram_intersection, X[:64], None, warm, tile=16, client=client)
            start = time.perf_counter()
            folder = scratch / f"tiles-{n_workers}"
            gram_to_zarr(histogram_intersection, X, None, folder, tile=16, client=client)
            seconds = time.perf_counter() - start
        n_tiles = 640 // 16
        n_tasks = n_tiles * (n_tiles + 1) // 2
        found[f"{n_workers}"] = {"seconds": seconds, "n_tasks": n_tasks}
        shutil.rmtree(warm)
    return found


PARTS = {"overhead": overhead, "ranks": ranks, "kcca": kcca}


def main() -> None:
    """Measure and store what is not stored, and print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, help="folder on a disk with 40 GB to spare")
    scratch = parser.parse_args().scratch
    stored = json.loads(STORED.read_text()) if STORED.is_file() else {}
    for name in [part for part in PARTS if part not in stored]:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            stored[name] = PARTS[name](Path(folder))
        stored |= {"commit": get_commit_info()["id"], "machine": show_config()}
        STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(stored, indent=1))


if __name__ == "__main__":
    main()
