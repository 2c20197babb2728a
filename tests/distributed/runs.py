"""Small runs of every function of `kernelcore.distributed`, for tests that compare results."""

import hashlib
from pathlib import Path

import numpy as np

from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    best_candidates,
    embed,
    extract_features,
    fit_landmark_kcca,
    gram_to_store,
    landmark_features,
    read_gram,
    streamed_ranks,
)
from kernelcore.images import CNN

N_IMAGES, N_CAPTIONS = 4500, 9000
SHARDS = (4096, 8192, 16384)


def vectors(n, n_columns, seed):
    return np.random.default_rng(seed).normal(size=(n, n_columns)).astype(np.float32)


def histograms(n, n_columns, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, size=(n, n_columns)).astype(np.uint8)


def owner():
    return np.random.default_rng(7).permutation(np.arange(N_CAPTIONS) % N_IMAGES)


def linear(X, Y):
    """Kernel of a module that workers can import, whose products BLAS computes."""
    return X.astype(np.float64) @ Y.astype(np.float64).T


def gram(folder, executor, size):
    gram_to_store(
        "histogram_intersection",
        histograms(700, 12, 0),
        histograms(300, 12, 1),
        folder,
        tile=size // 32,
        executor=executor,
        n_threads=2,
    )
    return {"gram": read_gram(folder)}


def symmetric_gram(folder, executor, size):
    gram_to_store(
        "histogram_intersection",
        histograms(700, 12, 0),
        None,
        folder,
        tile=size // 32,
        executor=executor,
        n_threads=2,
    )
    return {"gram": read_gram(folder)}


def features(folder, executor, size):
    rows = landmark_features(
        "histogram_intersection",
        histograms(N_CAPTIONS, 12, 2),
        folder,
        n_landmarks=20,
        shard_rows=size,
        executor=executor,
        n_threads=2,
    )
    return {"features": rows.read(0, len(rows))}


def kcca(folder, executor, size):
    options = {"shard_rows": size, "executor": executor, "n_threads": 2}
    images = histograms(N_IMAGES, 10, 3)
    captions = np.hstack([images[owner()][:, :6], histograms(N_CAPTIONS, 5, 4)])
    model = fit_landmark_kcca(
        images,
        captions,
        Path(folder) / "model",
        caption_image=owner(),
        n_landmarks=12,
        n_components=4,
        **options,
    )
    model.save(Path(folder) / "saved.safetensors")
    rows = embed(Path(folder) / "model", "captions", captions, Path(folder) / "rows", **options)
    return {
        "correlations": model.correlations,
        "coefficients": model.images.coefficients,
        "projections": rows.read(0, len(rows)),
    }


def ranks(folder, executor, size):
    found = streamed_ranks(
        vectors(N_IMAGES, 16, 5),
        vectors(N_CAPTIONS, 16, 6),
        owner(),
        store=folder,
        block_rows=size // 2,
        executor=executor,
        n_threads=2,
    )
    return found._asdict()


def search(folder, executor, size):
    best = best_candidates(
        vectors(1500, 16, 5),
        vectors(N_CAPTIONS, 16, 6),
        folder,
        k=7,
        block_rows=size // 4,
        executor=executor,
        n_threads=2,
    )
    return best._asdict()


def photos(folder, executor, size):
    scenes = Path(folder) / "scenes"
    if not scenes.is_dir():
        make_scenes(30, rng=0).write(scenes)
    found = extract_features(
        sorted(scenes.rglob("*.png")),
        CNN(input_size=64),
        Path(folder) / "features",
        shard_photos=size // 512,
        executor=executor,
        n_threads=2,
    )
    return {"features": found.rows.read(0, len(found.rows))}


RUNS = {
    run.__name__: run for run in (gram, symmetric_gram, features, kcca, ranks, search, photos)
}


_KEPT = {".npy", ".safetensors", ""}


def digests(results):
    """Digest of each array."""
    return {
        name: hashlib.sha256(
            f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
        ).hexdigest()
        for name, array in results.items()
    }


def contents(folder):
    """Digest of each file of the pieces, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.suffix in _KEPT and "scenes" not in path.parts
    }
