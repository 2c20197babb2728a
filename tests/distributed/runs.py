"""Small runs of every function of `kernelcore.distributed`, for tests that compare results."""

import hashlib
import os
import signal
import threading
from functools import partial
from pathlib import Path

import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    best_candidates,
    embed,
    extract_features,
    fit_landmark_kcca,
    gram_to_zarr,
    streamed_ranks,
)
from kernelcore.distributed.arrays import writing
from kernelcore.images import CNN
from kernelcore.kernels import histogram_intersection

_WITH_PATHS = [("features", name, "zarr.json") for name in ("features", "failed")]
N_IMAGES, N_CAPTIONS = 4500, 9000


def local_cluster(n_workers):
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", memory_limit="4GiB",
    )  # fmt: skip


def vectors(n, n_columns, seed):
    return np.random.default_rng(seed).normal(size=(n, n_columns)).astype(np.float32)


def histograms(n, n_columns, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, size=(n, n_columns)).astype(np.uint8)


def owner():
    return np.random.default_rng(7).permutation(np.arange(N_CAPTIONS) % N_IMAGES)


def views():
    images = histograms(N_IMAGES, 10, 3)
    return images, np.hstack([images[owner()][:, :6], histograms(N_CAPTIONS, 5, 4)])


def gram(folder, client, *, symmetric=False):
    X, Y = histograms(700, 12, 0), None if symmetric else histograms(300, 12, 1)
    options = {"tile": 128, "client": client, "n_threads": 2}
    return {"gram": gram_to_zarr(histogram_intersection, X, Y, folder, **options)[:]}


def kcca(folder, client):
    (images, captions), options = views(), {"client": client, "n_threads": 2}
    sizes = {"n_landmarks": 12, "n_components": 4, "caption_image": owner()}
    folder = Path(folder)
    model = fit_landmark_kcca(images, captions, folder / "model", **sizes, **options)
    rows = embed(model, "captions", captions, folder / "rows", **options)
    return {
        "correlations": model.kcca.correlations_,
        "coefficients": model.kcca.tensors()["x_coefficients"],
        "projections": rows[:],
    }


def ranks(folder, client, block_rows=2048):
    pair = vectors(N_IMAGES, 16, 5), vectors(N_CAPTIONS, 16, 6)
    options = {"block_rows": block_rows, "client": client, "n_threads": 2}
    return streamed_ranks(*pair, folder, caption_image=owner(), **options)._asdict()


def search(folder, client, block_rows=512):
    pair = vectors(1500, 16, 5), vectors(N_CAPTIONS, 16, 6)
    options = {"block_rows": block_rows, "client": client, "n_threads": 2}
    return best_candidates(*pair, folder, k=7, **options)._asdict()


def photos(folder, client, chunk_photos=8):
    scenes = Path(folder) / "scenes"
    if not scenes.is_dir():
        make_scenes(30, rng=0).write(scenes)
    files, options = sorted(scenes.rglob("*.png")), {"client": client, "n_threads": 2}
    options["chunk_photos"] = chunk_photos
    found = extract_features(files, CNN(input_size=64), Path(folder) / "features", **options)
    return {"features": found.features[:]}


def fails_at_first(X, Y, folder):
    """Fail in the first two calls."""
    for k in range(2):
        try:
            (Path(folder) / str(k)).touch(exist_ok=False)
        except FileExistsError:
            continue
        raise OSError("not yet")
    return histogram_intersection(X, Y)


def fails_for_some(X, Y):
    if X[0, 0] == 0:
        raise ArithmeticError("no value today")
    return histogram_intersection(X, Y)


def kills_once(X, Y, folder):
    try:
        (Path(folder) / "killed").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return histogram_intersection(X, Y)


def holds(folder, ready):
    with writing(folder, None, None, False):
        ready.set()
        threading.Event().wait(60)


RUNS = {
    "gram": gram, "symmetric gram": partial(gram, symmetric=True), "kcca": kcca, "ranks": ranks,
    "search": search, "photos": photos,
}  # fmt: skip


def digest(content):
    return hashlib.sha256(content).hexdigest()


def digests(results):
    """Digest of each array."""
    return {
        name: digest(f"{array.dtype} {array.shape}".encode() + array.tobytes())
        for name, array in results.items()
    }


def contents(folder):
    """Digest of each file, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): digest(path.read_bytes())
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and "scenes" not in path.parts and path.parts[-3:] not in _WITH_PATHS
    }
