"""Long calls of ``kernelcore.distributed``, each into a folder of its own."""

import tempfile
from pathlib import Path

import numpy as np
from table import table

from kernelcore import distributed
from kernelcore.datasets import make_scenes
from kernelcore.images import CNN
from kernelcore.kernels import histogram_intersection

CALLS, call = table()
RNG = np.random.default_rng(0)


def in_a_folder(work, *arguments, **options):
    """Return a call that works in a new folder, and reads its result."""

    def run(**given):
        with tempfile.TemporaryDirectory() as folder:
            return read(work(*arguments, path=Path(folder) / "s", **options, **given))

    return run


def read(result):
    if isinstance(result, distributed.PhotoFeatures):
        return result.features[:]
    if isinstance(result, distributed.LandmarkKCCA):
        return result.kcca.correlations_
    return result[:] if hasattr(result, "nchunks") else result


def vectors(n):
    return RNG.normal(size=(n, 64)).astype(np.float32)


@call("distributed.gram_to_zarr", 12_000, 40)
def gram_to_zarr(n):
    X = RNG.random((n, 500), np.float32)
    return in_a_folder(distributed.gram_to_zarr, histogram_intersection, X, None, tile=512)


@call("distributed.fit_landmark_kcca", 60_000, 50)
def fit_landmark_kcca(n):
    X = RNG.random((n, 50), np.float32)
    options = {"n_landmarks": n // 200 + 5, "n_components": 2}
    return in_a_folder(distributed.fit_landmark_kcca, X, X[:, ::2], **options)


@call("distributed.embed", 200_000, 50)
def embed(n):
    X = RNG.random((n, 50), np.float32)
    few = X[:400]
    with tempfile.TemporaryDirectory() as folder:
        model = distributed.fit_landmark_kcca(few, few, folder, n_landmarks=300, n_components=5)
    return in_a_folder(distributed.embed, model, "images", X)


@call("distributed.streamed_ranks", 40_000, 50)
def streamed_ranks(n):
    options = {"block_rows": 4096}
    return in_a_folder(distributed.streamed_ranks, vectors(n), vectors(n), **options)


@call("distributed.evaluate", 40_000, 50)
def evaluate(n):
    images, captions = vectors(n), vectors(n)

    def run(**given):
        with tempfile.TemporaryDirectory() as folder:
            found = distributed.evaluate(images, captions, folder, block_rows=4096, **given)
            return found.values["search"]["mean_rank"]

    return run


@call("distributed.best_candidates", 30_000, 50)
def best_candidates(n):
    options = {"block_rows": 2048}
    return in_a_folder(distributed.best_candidates, vectors(n), vectors(n), **options)


@call("distributed.extract_features", 400, 3)
def extract_features(n):
    place = tempfile.TemporaryDirectory()
    make_scenes(n, rng=0, size=(48, 48)).write(place.name)
    photos = sorted(Path(place.name).rglob("*.png"))

    def run(**given):
        assert place is not None  # it is removed with this function
        options = {"chunk_photos": 32, **given}
        return in_a_folder(distributed.extract_features, photos, CNN(), **options)()

    return run
