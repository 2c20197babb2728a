"""Long calls of ``kernelcore.images``."""

import numpy as np
from table import Table

from kernelcore import images

CALLS = Table()
RNG = np.random.default_rng(0)
N_WORDS = {"colour": 64, "texture": 64, "sift": 128}


def photos(n, side=255):
    """Photos that compress and blur as photos do, all the same for speed."""
    photo = np.cumsum(RNG.integers(-9, 10, (side, side, 3)), axis=1)
    return [(photo % 256).astype(np.uint8)] * n


def words():
    return images.VisualWords(n_words=N_WORDS, n_sample_images=10_000, n_sample_points=50)


def fit(n):
    pictures = photos(n, 255 if n > 2 else 48)

    def learn(**run):
        books = words().fit(pictures, **run).codebooks_
        return {name: book.centers for name, book in books.items()}

    return learn


def transform(n):
    fitted = words().fit(photos(2, 64))
    pictures = photos(n, 255 if n > 2 else 48)
    return lambda **run: fitted.transform(pictures, **run)["sift"].counts


def network(width):
    from torch import manual_seed, nn

    manual_seed(0)
    layers = [nn.Conv2d(3, width, 3), *(nn.Conv2d(width, width, 3) for _ in range(4))]
    return images.CNN(nn.Sequential(*layers), input_size=160 if width > 8 else 32)


def cnn(n, *, of_regions=False):
    pictures, model = photos(n, 200), network(64 if n > 3 else 8)
    if of_regions:
        model = images.RegionCNN(model, pooling="crop", max_regions=10)
    return lambda **run: model.transform(pictures, **run).features


CALLS.add("images.VisualWords.fit", 60, 2, fit)
CALLS.add("images.VisualWords.transform", 60, 2, transform, fast=True)
CALLS.add("images.CNN.transform", 100, 3, cnn)
CALLS.add("images.RegionCNN.transform", 10, 1, lambda n: cnn(n, of_regions=True))
