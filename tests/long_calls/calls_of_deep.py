"""Long calls of ``kernelcore.deep``: torch's sums depend on the number of threads.

They are loops over calls of torch, which is not interrupted. Some stand for all.
"""

from functools import partial

import numpy as np
import torch
from table import Table

from kernelcore import deep
from kernelcore.images import RegionFeatures

CALLS = Table()
RNG = np.random.default_rng(0)
WORDS = [f"{a}{b}" for a in ("da", "ke", "mi", "po") for b in ("lo", "ru", "se", "ti")]


def photos(n, n_regions=5, n_features=64):
    count = n * n_regions
    return RegionFeatures(
        np.arange(n + 1) * n_regions, np.zeros((count, 4), np.float32),
        np.full(count, np.nan, np.float32), np.full(count, -1, np.int32),
        RNG.random((count, n_features), np.float32), np.full((n, 2), 10, np.int32),
        np.arange(n), {},
    )  # fmt: skip


def sentences(n):
    return [" ".join(RNG.choice(WORDS, 6)) for _ in range(n)]


def ranker(name):
    """A ranker that takes few milliseconds for each batch."""
    options = {"Captioner": {"n_embedding": 64}, "CrossAttentionRanker": {}}
    small = options.get(name, {"n_hidden": 64})
    return getattr(deep, name)(n_components=64, min_count=1, n_epochs=2, rng=0, **small)


def training(name, n):
    items = photos(n), sentences(n)
    return partial(ranker(name).fit, *items, dev=items)


def add(name, method, long, *inputs, make=None):
    """Enter a method that takes `inputs`, after a short training."""

    def arguments(n):
        return training(name, 20)(), *(draw(n) for draw in inputs)

    CALLS.add(f"deep.{name}.{method}", long, 20, make or arguments, same_bits=False)


def similarities(n):
    offsets = np.arange(n + 1) * 8
    return torch.from_numpy(RNG.random((8 * n, 8 * n))), offsets, offsets


VECTORS, CROSS = "EmbeddingRanker", "CrossAttentionRanker"
add(VECTORS, "fit", 3000, make=partial(training, VECTORS))
add(VECTORS, "scores", 30_000, photos, sentences)
add(VECTORS, "embed_images", 60_000, photos)
add(VECTORS, "embed_captions", 60_000, sentences)
add(CROSS, "scores", 3000, photos, sentences)
add("OrderRanker", "penalties", 30_000, photos, sentences)
add("Captioner", "scores", 1500, photos, sentences)
add("Captioner", "generate", 20_000, photos)
add("Captioner", "log_likelihoods", 60_000, photos, sentences)
CALLS.add("deep.set_similarities", 1000, 10, similarities)
