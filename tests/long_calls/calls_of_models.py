"""Long calls of ``kernelcore.models`` and the demo, which is all of the package in one call."""

import time
from functools import cache, partial

import numpy as np
from table import table

from kernelcore import kcca, models, report
from kernelcore.datasets import make_scenes
from kernelcore.experiments import demo
from kernelcore.images import VisualWords
from kernelcore.models.kcca_settings import KCCASetting

CALLS, call = table()
RNG = np.random.default_rng(0)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def samples(n, n_dimensions=200):
    return RNG.normal(size=(2, n, n_dimensions))


@call("models.KCCARanker.fit", 3000, 40)
def kcca_ranker(n):
    views = samples(n, n)
    kernels = [linear(view) for view in views]
    return lambda **run: models.KCCARanker(5).fit(*kernels, **run).scores(*kernels)


def factorization(n):
    K = [linear(view) for view in samples(n)]
    return kcca.factorize(*K), K


@call("models.select_kcca", 1500, 40)
def select_kcca(n):
    return partial(_select, *factorization(n))


def _select(factorized, K, **run):
    grid = {
        "n_components_grid": [5, 10],
        "regularization_grid": np.linspace(0.1, 5, 40).tolist(),
    }
    return models.select_kcca(factorized, *K, **grid, **run).recalls


@call("models.KCCASelection.scores", 1500, 40)
def selection_scores(n):
    factorized, K = factorization(n)
    n_settings = 60 if n > 40 else 6
    settings = [KCCASetting(5, (0.1 * i, 0.1), (1.0, 1.0), 0.0) for i in range(1, n_settings)]
    recalls = RNG.random((len(settings), 2, 3))
    selection = models.KCCASelection(factorized, settings, recalls)
    return partial(selection.scores, *K, task="search", n_best=20)


@call("models.borda_scores", 6000, 10)
def borda_scores(n):
    matrices = [RNG.random((n, 1000)) for _ in range(10)]
    return partial(models.borda_scores, matrices, task="annotation")


@call("models.NearestNeighbourRanker.scores", 6000, 10)
def nearest_neighbour(n):
    images, captions = samples(n)
    ranker = models.NearestNeighbourRanker(linear, linear).fit(images, captions)
    return partial(ranker.scores, images, captions)


@cache
def scenes():
    return make_scenes(60, size=(48, 64))


def photo_ranker():
    words = VisualWords(n_words={"colour": 16}, n_sample_images=20, n_sample_points=200)
    return models.PhotoRanker(
        features=words,
        n_components_grid=(8,),
        regularization_grid=(0.3,),
    )


@call("models.PhotoRanker.fit", 600, 30)
def photo_ranker_fit(n):
    drawn = make_scenes(n, size=(48, 64))
    photos, captions = list(drawn.images), drawn.dataset.captions

    def fit(**run):
        ranker = photo_ranker().fit(photos, captions, **run)
        return ranker.scores(photos[:3], ["A dog."])

    return fit


@cache
def fitted_photo_ranker():
    return photo_ranker().fit(list(scenes().images), scenes().dataset.captions)


def photos_of(n):
    return (list(scenes().images) * n)[:n]


def sentences_of(n):
    own = [text for texts in scenes().dataset.captions for text in texts]
    return (own * n)[:n]


@call("models.PhotoRanker.index", 4000, 4)
def photo_ranker_index(n):
    ranker, photos = fitted_photo_ranker(), photos_of(n)
    return lambda **run: ranker.index(photos, **run).projections


@call("models.PhotoRanker.embed_images", 4000, 4)
def photo_ranker_embed_images(n):
    return partial(fitted_photo_ranker().embed_images, photos_of(n))


@call("models.PhotoRanker.embed_captions", 100_000, 4)
def photo_ranker_embed_captions(n):
    return partial(fitted_photo_ranker().embed_captions, sentences_of(n))


@call("models.PhotoRanker.scores", 4000, 4)
def photo_ranker_scores(n):
    return partial(fitted_photo_ranker().scores, photos_of(n), sentences_of(3))


@call("models.PhotoRanker.search", 4000, 4)
def photo_ranker_search(n):
    ranker, photos = fitted_photo_ranker(), photos_of(n)
    return lambda **run: [[one.score] for one in ranker.search(["A dog."], photos, **run)[0]]


@call("models.PhotoRanker.annotate", 4000, 4)
def photo_ranker_annotate(n):
    ranker, photos, texts = fitted_photo_ranker(), photos_of(n), sentences_of(3)
    return lambda **run: [
        [a.score for a in own] for own in ranker.annotate(photos, texts, **run)
    ]


@call("models.PhotoRanker.chance_lines", 100_000, 4)
def photo_ranker_chance_lines(n):
    ranker, texts = fitted_photo_ranker(), sentences_of(n)
    return lambda **run: [line.foreign for line in ranker.chance_lines(texts, **run)]


@call("models.PhotoRanker.foreign", 600, 30, may_end=True)
def photo_ranker_foreign(n):
    drawn = make_scenes(n, size=(48, 64))
    ranker = photo_ranker().fit(list(drawn.images), drawn.dataset.captions)

    def foreign(**run):
        ranker._foreign = None
        return ranker.foreign(**run).captions

    return foreign


def slow_vectors(items):
    time.sleep(0.01)
    return [[len(str(item)), 1.0] for item in items]


def encoders():
    return models.Encoders(slow_vectors, slow_vectors, foreign_captions=["a", "bc"])


@call("models.Encoders.index", 20_000, 100)
def encoders_index(n):
    names = [f"{i}.png" for i in range(n)]
    return lambda **run: encoders().index(names, **run).projections


@call("models.Encoders.embed_images", 20_000, 100)
def encoders_embed_images(n):
    return partial(encoders().embed_images, [f"{i}.png" for i in range(n)])


@call("models.Encoders.embed_captions", 20_000, 100)
def encoders_embed_captions(n):
    return partial(encoders().embed_captions, sentences_of(n))


@call("models.Encoders.scores", 20_000, 100)
def encoders_scores(n):
    return partial(encoders().scores, [f"{i}.png" for i in range(n)], ["a"])


@call("models.Encoders.search", 20_000, 100)
def encoders_search(n):
    names = [f"{i}.png" for i in range(n)]
    return lambda **run: [[one.score] for one in encoders().search(["a"], names, **run)[0]]


@call("models.Encoders.annotate", 20_000, 100)
def encoders_annotate(n):
    texts = sentences_of(n)
    return lambda **run: [[one.score] for one in encoders().annotate(["a"], texts, **run)[0]]


@call("models.Encoders.chance_lines", 20_000, 100)
def encoders_chance_lines(n):
    def chance_lines(**run):
        foreign = models.Encoders(slow_vectors, foreign_images=np.eye(2)[:, ::-1])
        return [line.foreign for line in foreign.chance_lines(sentences_of(n), **run)]

    return chance_lines


@call("models.Encoders.foreign", 20_000, 100)
def encoders_foreign(n):
    texts = sentences_of(n)
    return lambda **run: (
        models.Encoders(slow_vectors, foreign_captions=texts).foreign(**run).captions
    )


def examples_of(function, n):
    scores, texts = RNG.random((n, n)), [f"sentence {i}" for i in range(n)]
    photos = np.zeros((n, 2, 2, 3), np.uint8)
    return lambda **run: [[own.rank] for own in function(scores, texts, photos, **run)]


@call("report.query_examples", 6000, 10, may_end=True)
def query_examples(n):
    return examples_of(partial(report.query_examples, task="search"), n)


@call("experiments.demo.run", 500, 25)
def run_demo(n):
    return lambda **run: [r.values["search"]["mean_rank"] for r in demo.run(n, **run).results]
