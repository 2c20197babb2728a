"""Long calls of ``kernelcore.models`` and ``search``, and the demo."""

import tempfile
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from table import Table

from kernelcore import kcca, models, report
from kernelcore.datasets import make_scenes
from kernelcore.experiments import demo
from kernelcore.images import VisualWords
from kernelcore.models.kcca_settings import KCCASetting
from kernelcore.search import update_index

CALLS = Table()
RNG = np.random.default_rng(0)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def samples(n, n_dimensions=200):
    return RNG.normal(size=(2, n, n_dimensions))


def fit_kcca(n):
    kernels = [linear(view) for view in samples(n, n)]
    return lambda **run: models.KCCARanker(5).fit(*kernels, **run).scores(*kernels)


def select(n):
    K = [linear(view) for view in samples(n)]
    strengths = np.linspace(0.1, 5, 40).tolist()
    grid = {"n_components_grid": [5, 10], "regularization_grid": strengths}
    return lambda **run: models.select_kcca(kcca.factorize(*K), *K, **grid, **run).recalls


def selected(n):
    K = [linear(view) for view in samples(n)]
    n_settings = 60 if n > 40 else 6
    settings = [KCCASetting(5, (0.1 * i, 0.1), (1.0, 1.0), 0.0) for i in range(1, n_settings)]
    recalls = RNG.random((len(settings), 2, 3))
    selection = models.KCCASelection(kcca.factorize(*K), settings, recalls)
    return partial(selection.scores, *K, task="search", n_best=20)


@cache
def scenes(n=60):
    return make_scenes(n, size=(48, 64))


def photo_ranker():
    words = VisualWords(n_words={"colour": 16}, n_sample_images=20, n_sample_points=200)
    return models.PhotoRanker(words, n_components_grid=(8,), regularization_grid=(0.3,))


def fit_photos(n):
    photos, captions = list(scenes(n).images), scenes(n).dataset.captions
    texts = ["A dog."]
    return lambda **run: photo_ranker().fit(photos, captions, **run).scores(photos[:3], texts)


@cache
def fitted(n=60):
    return photo_ranker().fit(list(scenes(n).images), scenes(n).dataset.captions)


def foreign(n):
    ranker = fitted(n)

    def foreign(**run):
        ranker._foreign = None
        return ranker.foreign(**run).captions

    return foreign


def photos_of(n):
    return (list(scenes().images) * n)[:n]


def sentences_of(n):
    own = [text for texts in scenes().dataset.captions for text in texts]
    return (own * n)[:n]


def index(n):
    return lambda **run: fitted().index(photos_of(n), **run).projections


def chance_lines(n):
    texts = sentences_of(n)
    return lambda **run: [line.foreign for line in fitted().chance_lines(texts, **run)]


def slow_vectors(items):
    time.sleep(0.01)
    return [[len(str(item)), 1.0] for item in items]


def encoders(**options):
    return models.Encoders(slow_vectors, slow_vectors, **options)


def names_of(n):
    return [f"{i}.png" for i in range(n)]


def encoded_index(n):
    return lambda **run: encoders().index(names_of(n), **run).projections


def encoded_foreign(n):
    texts = sentences_of(n)
    return lambda **run: encoders(foreign_captions=texts).foreign(**run).captions


def examples(n):
    scores, texts = RNG.random((n, n)), [f"sentence {i}" for i in range(n)]
    query = partial(report.query_examples, scores, texts, np.zeros((n, 2, 2, 3), np.uint8))
    return lambda **run: [[own.rank] for own in query(task="search", **run)]


def run_demo(n):
    return lambda **run: [r.values["search"]["mean_rank"] for r in demo.run(n, **run).results]


@cache
def folder_of(n):
    """Return a folder of photos, which lives as long as the process, and their names."""
    folder = tempfile.TemporaryDirectory()
    scenes(n).write(folder.name)
    photos = Path(folder.name, "images")
    return folder, photos, sorted(path.name for path in photos.iterdir())


def updated(n):
    _, photos, names = folder_of(n)
    return lambda **run: update_index(None, encoders(), photos, names, **run)[0].projections


def shares(n):
    places = np.ones((4, fitted().embed_captions(["a"]).shape[1]), np.float32)
    return fitted(), " ".join(["a dog chases a cat"] * (n // 4)), places


CALLS.add("models.KCCARanker.fit", 3000, 40, fit_kcca)
CALLS.add("models.select_kcca", 1500, 40, select)
CALLS.add("models.KCCASelection.scores", 1500, 40, selected)
OF_PHOTOS, OF_ENCODERS = "models.PhotoRanker", "models.Encoders"
CALLS.add(f"{OF_PHOTOS}.fit", 600, 30, fit_photos)
CALLS.add(f"{OF_PHOTOS}.index", 4000, 4, index)
CALLS.add(f"{OF_PHOTOS}.embed_images", 4000, 4, lambda n: [fitted(), photos_of(n)])
CALLS.add(f"{OF_PHOTOS}.embed_captions", 100_000, 4, lambda n: [fitted(), sentences_of(n)])
CALLS.add(f"{OF_PHOTOS}.scores", 4000, 4, lambda n: [fitted(), photos_of(n), sentences_of(3)])
CALLS.add(f"{OF_PHOTOS}.search", 4000, 4, lambda n: [fitted(), ["A dog."], photos_of(n)])
CALLS.add(f"{OF_PHOTOS}.annotate", 4000, 4, lambda n: [fitted(), photos_of(n), sentences_of(3)])
CALLS.add(f"{OF_PHOTOS}.chance_lines", 100_000, 4, chance_lines)
CALLS.add(f"{OF_PHOTOS}.foreign", 600, 30, foreign, may_end=True)
CALLS.add(f"{OF_ENCODERS}.index", 20_000, 100, encoded_index)
CALLS.add(f"{OF_ENCODERS}.embed_captions", 20_000, 100, lambda n: [encoders(), sentences_of(n)])
CALLS.add(f"{OF_ENCODERS}.scores", 20_000, 100, lambda n: [encoders(), names_of(n), ["a"]])
CALLS.add(f"{OF_ENCODERS}.foreign", 20_000, 100, encoded_foreign)
CALLS.add("search.update_index", 6000, 4, updated)
CALLS.add("search.word_shares", 3000, 4, shares)
CALLS.add("report.query_examples", 6000, 10, examples, may_end=True)
CALLS.add("experiments.demo.run", 500, 25, run_demo)
