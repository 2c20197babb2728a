"""Photos of twenty coloured things, as features of their regions."""

import numpy as np

from kernelcore.images import RegionFeatures

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("dog", "cat", "boat", "rose")
WORDS = (*COLOURS, *THINGS)
ALL = [(colour, thing) for colour in COLOURS for thing in THINGS]


def region_features(features, counts):
    """Regions with these features, so many for each image, without boxes or labels."""
    offsets = np.append(0, np.cumsum(counts))
    n_regions = int(offsets[-1])
    return RegionFeatures(
        offsets=offsets,
        boxes=np.zeros((n_regions, 4), np.float32),
        scores=np.full(n_regions, np.nan, np.float32),
        labels=np.full(n_regions, -1, np.int32),
        features=np.array(features, np.float32),
        sizes=np.full((len(counts), 2), 10, np.int32),
        rows=np.arange(len(counts)),
        failures={},
    )


def photos(things=ALL, n_regions=3, noise=0.0, seed=0):
    """The whole photo, its colour and its thing, each as a region."""
    features = []
    for words in things:
        parts = [np.eye(len(WORDS))[WORDS.index(word)] for word in words]
        features += [sum(parts), *parts][:n_regions]
    drawn = np.random.default_rng(seed).normal(size=(len(features), len(WORDS)))
    return region_features(np.array(features) + noise * drawn, [n_regions] * len(things))
