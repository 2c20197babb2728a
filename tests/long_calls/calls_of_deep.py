"""Long calls of ``kernelcore.deep``: torch's sums depend on the number of threads."""

from functools import partial

import numpy as np
import torch
from table import table

from kernelcore import deep
from kernelcore.captions import FragmentExtractor
from kernelcore.datasets import Document
from kernelcore.images import RegionFeatures
from kernelcore.lexical import WordVectors

CALLS, call = table()
RNG = np.random.default_rng(0)
WORDS = [f"{a}{b}" for a in ("da", "ke", "mi", "po") for b in ("lo", "ru", "se", "ti")]


def photos(n, n_regions=5, n_features=64):
    count = n * n_regions
    return RegionFeatures(
        np.arange(n + 1) * n_regions,
        np.zeros((count, 4), np.float32),
        np.full(count, np.nan, np.float32),
        np.full(count, -1, np.int32),
        RNG.random((count, n_features), np.float32),
        np.full((n, 2), 10, np.int32),
        np.arange(n),
        {},
    )


def sentences(n):
    return [" ".join(RNG.choice(WORDS, 6)) for _ in range(n)]


def trained(ranker, items, **run):
    ranker.fit(*items, dev=items, **run)
    return list(ranker.history_.dev_losses)


SETTINGS = {"n_components": 64, "n_epochs": 2, "rng": 0, "min_count": 1}
RANKERS = {
    "EmbeddingRanker": partial(deep.EmbeddingRanker, n_hidden=64, **SETTINGS),
    "CrossAttentionRanker": partial(deep.CrossAttentionRanker, **SETTINGS),
    "OrderRanker": partial(deep.OrderRanker, n_hidden=64, **SETTINGS),
    "Captioner": partial(deep.Captioner, n_embedding=64, **SETTINGS),
}


def of_ranker(name, fit_size, scores_size):
    @call(f"deep.{name}.fit", fit_size, 20, same_bits=False)
    def fit(n):
        return partial(trained, RANKERS[name](), (photos(n), sentences(n)))

    @call(f"deep.{name}.scores", scores_size, 20, same_bits=False)
    def scores(n):
        items = photos(20), sentences(20)
        fitted = RANKERS[name]().fit(*items, dev=items)
        return partial(fitted.scores, photos(n), sentences(n))


def of_vectors(name, make, captions, n_captions=60_000):
    @call(f"deep.{name}.embed_images", 100_000, 20, same_bits=False)
    def embed_images(n):
        return partial(make().embed_images, photos(n))

    @call(f"deep.{name}.embed_captions", n_captions, 20, same_bits=False)
    def embed_captions(n):
        return partial(make().embed_captions, captions(n))


def of_sentences(name):
    items = photos(20), sentences(20)
    of_vectors(name, lambda: RANKERS[name]().fit(*items, dev=items), sentences)


of_sentences("EmbeddingRanker")
of_sentences("OrderRanker")
of_ranker("EmbeddingRanker", 3000, 30_000)
of_ranker("CrossAttentionRanker", 1500, 3000)
of_ranker("OrderRanker", 3000, 30_000)
of_ranker("Captioner", 3000, 1500)


@call("deep.OrderRanker.penalties", 30_000, 20, same_bits=False)
def penalties(n):
    items = photos(20), sentences(20)
    fitted = RANKERS["OrderRanker"]().fit(*items, dev=items)
    return partial(fitted.penalties, photos(n), sentences(n))


def captioner():
    items = photos(20), sentences(20)
    return RANKERS["Captioner"]().fit(*items, dev=items)


@call("deep.Captioner.generate", 20_000, 20, same_bits=False)
def generate(n):
    return partial(captioner().generate, photos(n))


@call("deep.Captioner.log_likelihoods", 60_000, 20, same_bits=False)
def log_likelihoods(n):
    return partial(captioner().log_likelihoods, photos(n), sentences(n))


def extractor():
    return FragmentExtractor("bigrams", min_share=0.0).fit([" ".join(WORDS)])


def fragments(n):
    return extractor().transform(sentences(n))


VECTORS = WordVectors(WORDS, RNG.normal(size=(len(WORDS), 32)))


def fragment_ranker():
    return deep.FragmentRanker(n_components=64, n_epochs=2, rng=0)


@call("deep.FragmentRanker.fit", 3000, 20, same_bits=False)
def fragment_fit(n):
    items = photos(n), fragments(n)
    return partial(trained, fragment_ranker(), items, word_vectors=VECTORS)


def fragment_fitted():
    items = photos(20), fragments(20)
    return fragment_ranker().fit(*items, dev=items, word_vectors=VECTORS)


def of_one_vector():
    ranker = deep.FragmentRanker(sentence="mean", regions="mean", n_epochs=2, rng=0)
    return ranker.fit(photos(20), fragments(20), word_vectors=VECTORS)


of_vectors("FragmentRanker", of_one_vector, fragments, n_captions=600_000)


@call("deep.FragmentRanker.scores", 6000, 20, same_bits=False)
def fragment_scores(n):
    return partial(fragment_fitted().scores, photos(n), fragments(n))


@call("deep.FragmentRanker.alignments", 100_000, 20, same_bits=False)
def fragment_alignments(n):
    return partial(fragment_fitted().alignments, photos(n), fragments(n))


@call("deep.FragmentRanker.search_regions", 400_000, 20, may_end=True, same_bits=False)
def search_regions(n):
    one = extractor().transform([" ".join(WORDS[:2])])
    return partial(fragment_fitted().search_regions, photos(n), one, k=3)


def documents(n):
    features = {f"{i}.jpg": RNG.random(64) for i in range(50)}
    names = list(features)
    drawn = [
        Document(str(i), tuple(sentences(6)), tuple(RNG.choice(names, 6, replace=False)))
        for i in range(n)
    ]
    return drawn, features


LINKER = {"n_components": 64, "n_embedding": 32, "n_negatives": 4, "n_epochs": 2, "rng": 0}


@call("deep.DocumentLinker.fit", 1500, 10, same_bits=False)
def linker_fit(n):
    drawn, features = documents(n)

    def fit(**run):
        fitted = deep.DocumentLinker(**LINKER).fit(drawn, features, dev=drawn, **run)
        return list(fitted.history_.dev_losses)

    return fit


@call("deep.DocumentLinker.link_scores", 10_000, 10, same_bits=False)
def link_scores(n):
    drawn, features = documents(10)
    fitted = deep.DocumentLinker(**LINKER).fit(drawn, features, dev=drawn)
    return partial(fitted.link_scores, documents(n)[0], features)


@call("deep.set_similarities", 1000, 10)
def set_similarities(n):
    offsets = np.arange(n + 1) * 8
    products = torch.from_numpy(RNG.random((8 * n, 8 * n)))
    return partial(deep.set_similarities, products, offsets, offsets)
