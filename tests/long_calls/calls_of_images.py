"""Long calls of ``kernelcore.images``."""

from functools import partial

import numpy as np
from table import table

from kernelcore import images

CALLS, call = table()
RNG = np.random.default_rng(0)
N_WORDS = {"colour": 64, "texture": 64, "sift": 128}


def photos(n, side=255):
    """Photos that compress and blur as photos do, all the same for speed."""
    photo = np.cumsum(RNG.integers(-9, 10, (side, side, 3)), axis=1)
    return [(photo % 256).astype(np.uint8)] * n


def words():
    return images.VisualWords(n_words=N_WORDS, n_sample_images=10_000, n_sample_points=50)


@call("images.VisualWords.fit", 60, 2)
def fit(n):
    pictures = photos(n, 255 if n > 2 else 48)

    def learn(**run):
        books = words().fit(pictures, **run).codebooks_
        return {name: book.centers for name, book in books.items()}

    return learn


@call("images.VisualWords.transform", 60, 2, fast=True)
def transform(n):
    fitted = words().fit(photos(2, 64))
    pictures = photos(n, 255 if n > 2 else 48)
    return lambda **run: fitted.transform(pictures, **run)["sift"].counts


def network(width):
    from torch import manual_seed, nn

    manual_seed(0)
    layers = [nn.Conv2d(3, width, 3), *(nn.Conv2d(width, width, 3) for _ in range(4))]
    return images.CNN(nn.Sequential(*layers), input_size=160 if width > 8 else 32)


@call("images.CNN.transform", 100, 3)
def cnn(n):
    pictures, model = photos(n, 200), network(64 if n > 3 else 8)
    return lambda **run: model.transform(pictures, **run).features


@call("images.RegionCNN.transform", 10, 1)
def region_cnn(n):
    pictures = photos(n, 200)
    model = images.RegionCNN(network(64 if n > 1 else 8), pooling="crop", max_regions=10)
    return lambda **run: model.transform(pictures, **run).features


@call("images.learn_codebook", 200_000, 100)
def learn_codebook(n):
    points = RNG.random((n, 64), np.float32)
    return lambda: images.learn_codebook(points, 512, rng=0).centers


@call("images.Codebook.assign", 400_000, 100)
def assign(n):
    points = RNG.random((n, 64), np.float32)
    return partial(images.Codebook(RNG.random((1024, 64))).assign, points)


@call("images.dense_sift", 3000, 64)
def dense_sift(n):
    photo = photos(1, n)[0]
    return lambda: images.dense_sift(photo, step=4).values


@call("images.oriented_energy", 3000, 64)
def oriented_energy(n):
    photo = photos(1, n)[0]
    return lambda: images.oriented_energy(photo, n_orientations=12, scales=(1.0, 9.0)).values
