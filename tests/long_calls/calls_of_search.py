"""Long calls of ``kernelcore.search``."""

import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
from table import table

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import Encoders, PhotoRanker
from kernelcore.search import Collection, update_index, word_shares

CALLS, call = table()


@cache
def folder_of(n):
    """Return a folder of photos, which lives as long as the process, and their names."""
    folder = tempfile.TemporaryDirectory()
    make_scenes(n, size=(48, 64)).write(folder.name)
    photos = Path(folder.name, "images")
    return folder, photos, sorted(path.name for path in photos.iterdir())


def slow_vectors(items):
    time.sleep(0.02)
    return [[len(str(item)), 1.0] for item in items]


@call("search.update_index", 3000, 4)
def index_of_a_folder(n):
    _, photos, names = folder_of(n)
    encoders = Encoders(slow_vectors, slow_vectors)
    return lambda **run: update_index(None, encoders, photos, names, **run)[0].projections


@call("search.Collection.refresh", 3000, 4)
def refreshed_collection(n):
    _, photos, names = folder_of(n)
    encoders = Encoders(slow_vectors, slow_vectors)
    first, _ = update_index(None, encoders, photos, names[:2], n_threads=1)

    def refresh(**run):
        def update(index):
            return update_index(index, encoders, photos, names, on_error="skip", **run)

        collection = Collection(encoders, photos, first, update=update)
        collection.refresh()
        return collection.numbers()

    return refresh


@cache
def small_ranker():
    scenes = make_scenes(40, size=(48, 64))
    words = VisualWords(n_words={"colour": 16}, n_sample_images=20, n_sample_points=200)
    return PhotoRanker(words).fit(list(scenes.images), scenes.dataset.captions)


@call("search.word_shares", 3000, 4)
def shares_of_words(n):
    ranker = small_ranker()
    places = np.ones((4, ranker.embed_captions(["a"]).shape[1]), np.float32)
    sentence = " ".join(["a dog chases a cat"] * (n // 4))
    return lambda **run: word_shares(ranker, sentence, places, **run)[1]
