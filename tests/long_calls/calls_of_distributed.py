"""Long calls of ``kernelcore.distributed``, each into a folder of its own."""

import tempfile
from pathlib import Path

import numpy as np
from table import Table

from kernelcore import distributed
from kernelcore.datasets import make_scenes
from kernelcore.images import CNN
from kernelcore.kernels import histogram_intersection

CALLS = Table()
RNG = np.random.default_rng(0)
PLACES = []  # folders that live as long as the process


def add(name, long, short, arguments, read=lambda result: result[:], **options):
    """Enter a function that works in a new folder; `read` reads its result there."""
    function = getattr(distributed, name)

    def make(n):
        given = arguments(n)

        def run(**more):
            with tempfile.TemporaryDirectory() as folder:
                return read(function(*given, path=Path(folder) / "s", **options, **more))

        return run

    CALLS.add(f"distributed.{name}", long, short, make)


def drawn(n, n_columns=64):
    return RNG.random((n, n_columns), np.float32)


def two(n):
    return drawn(n) - 0.5, drawn(n) - 0.5


def views(n):
    X = drawn(n, 50)
    return X, X[:, ::2]


def fitted(n):
    X = drawn(n, 50)
    options = {"n_landmarks": 300, "n_components": 5}
    with tempfile.TemporaryDirectory() as folder:
        return distributed.fit_landmark_kcca(X[:400], X[:400], folder, **options), "images", X


def photos(n):
    PLACES.append(tempfile.TemporaryDirectory())
    make_scenes(n, rng=0, size=(48, 48)).write(PLACES[-1].name)
    return sorted(Path(PLACES[-1].name).rglob("*.png")), CNN()


tile = {"block_rows": 4096}
add(
    "gram_to_zarr", 12_000, 40, lambda n: [histogram_intersection, drawn(n, 500), None],
    tile=512,
)  # fmt: skip
add(
    "fit_landmark_kcca", 60_000, 400, views, lambda model: model.kcca.correlations_,
    n_landmarks=305, n_components=2,
)  # fmt: skip
add("embed", 200_000, 50, fitted)
add("streamed_ranks", 40_000, 50, two, lambda ranks: ranks, **tile)
add("evaluate", 40_000, 50, two, lambda found: found.values["search"]["mean_rank"], **tile)
add("best_candidates", 30_000, 50, two, lambda found: found, block_rows=2048)
add("extract_features", 400, 3, photos, lambda found: found.features[:], chunk_photos=32)
