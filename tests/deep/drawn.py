"""Photos of twenty coloured things, captions of them, and small rankers that learn both."""

from typing import NamedTuple

import numpy as np

from kernelcore import deep
from kernelcore.captions import FragmentExtractor, SentenceTrees
from kernelcore.images import RegionFeatures
from kernelcore.lexical import WordVectors

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("dog", "cat", "boat", "rose")
WORDS = (*COLOURS, *THINGS)
ALL = [(colour, thing) for colour in COLOURS for thing in THINGS]


def region_features(features, counts):
    """Regions with these features, so many for each image, without boxes or labels."""
    offsets = np.append(0, np.cumsum(counts))
    n_regions = int(offsets[-1])
    return RegionFeatures(
        offsets=offsets, boxes=np.zeros((n_regions, 4), np.float32),
        scores=np.full(n_regions, np.nan, np.float32), labels=np.full(n_regions, -1, np.int32),
        features=np.array(features, np.float32), sizes=np.full((len(counts), 2), 10, np.int32),
        rows=np.arange(len(counts)), failures={},
    )  # fmt: skip


def photos(things=ALL, n_regions=3, noise=0.0, seed=0):
    """The whole photo, its colour and its thing, each as a region."""
    features = []
    for words in things:
        parts = [np.eye(len(WORDS))[WORDS.index(word)] for word in words]
        features += [sum(parts), *parts][:n_regions]
    drawn = np.random.default_rng(seed).normal(size=(len(features), len(WORDS)))
    return region_features(np.array(features) + noise * drawn, [n_regions] * len(things))


def sentences(things=ALL):
    """One caption for each photo."""
    return [f"A {colour} {thing}." for colour, thing in things]


OWNERS = np.repeat(np.arange(len(ALL)), 2)


def halves():
    """Two captions for each photo: one of its colour, and one of the thing."""
    return [text for colour, thing in ALL for text in (f"It is {colour}.", f"some {thing}s")]


def texts():
    """The two captions of each photo as one text."""
    return deep.join_captions(halves(), OWNERS)[0]


def extractor(kind="bigrams"):
    """Fit a cutter of captions that knows all words."""
    return FragmentExtractor(kind).fit([" ".join(WORDS)])


def fragments(things=ALL, kind="bigrams"):
    """Captions as words, bigrams or dependency trees."""
    if kind == "tree":
        ids = [(WORDS.index(a), WORDS.index(b)) for a, b in things]
        n = len(things)
        relations, heads = np.tile([0, 1], n), np.tile([1, -1], n)
        return SentenceTrees(np.ravel(ids), relations, heads, np.arange(n + 1) * 2, 2, 9)
    return extractor(kind).transform([f"{colour} {thing}" for colour, thing in things])


def vectors(kind="bigrams"):
    """One axis for each word, in the order of the vocabulary of `fragments`."""
    order = WORDS if kind == "tree" else extractor(kind).vocabulary_.words
    return WordVectors(order, [np.eye(len(WORDS))[WORDS.index(word)] for word in order])


SENTENCES = {"n_components": 16, "min_count": 1, "learning_rate": 0.01, "n_epochs": 4}
ORDER = {"n_components": 24, "n_hidden": 24, "n_states": 16, "min_learning_rate": 0.01}
CAPTIONER = {"n_components": 24, "n_embedding": 12, "learning_rate": 0.02, "n_epochs": 3}
SETTINGS = {
    deep.EmbeddingRanker: SENTENCES,
    deep.CrossAttentionRanker: SENTENCES,
    deep.OrderRanker: SENTENCES | ORDER,
    deep.FragmentRanker: {"n_components": 24, "learning_rate": 0.02, "n_epochs": 6},
    deep.Captioner: SENTENCES | CAPTIONER,
}
RANKING = {"regions": "mean", "objective": "ranking"}


class System(NamedTuple):
    """A ranker with its parameters, and the form of its captions."""

    kind: type
    options: dict
    captions: str = "raw"


def fragment_system(options, captions="bigrams"):
    return System(deep.FragmentRanker, options, captions)


SYSTEMS = {
    "ConvNet+BoW": System(deep.EmbeddingRanker, {"sentence": "mean"}),
    "ConvNet+Bi-GRU": System(deep.EmbeddingRanker, {"image": "first"}),
    "Obj+Bi-GRU": System(deep.EmbeddingRanker, {"image": "gru"}),
    "SCAN t2i": System(deep.CrossAttentionRanker, {}),
    "SCAN i2t": System(deep.CrossAttentionRanker, {"attention": "i2t"}),
    "SCAN drawn": System(deep.CrossAttentionRanker, {"n_drawn": 2, "square_root": True}),
    "texts below": System(deep.OrderRanker, {}, "halves"),
    "images below": System(deep.OrderRanker, {"similarity": "images below"}, "halves"),
    "cosine": System(deep.OrderRanker, {"similarity": "cosine"}, "halves"),
    "variance": System(deep.OrderRanker, {"variance_weight": 1.0}, "halves"),
    "thesis": System(deep.OrderRanker, {"n_states": None, "margin": 0.2}, "halves"),
    "captioner": System(deep.Captioner, {"batch_size": 10}), "full": fragment_system({}),
    "unbalanced": fragment_system({"balanced": False, "ranking_weight": 30.0}),
    "dense": fragment_system({"multiple_instance": False}),
    "drawn regions": fragment_system({"n_drawn": 2}),
    "alignment": fragment_system({"objective": "alignment"}),
    "ranking": fragment_system({"objective": "ranking"}),
    "whole image": fragment_system({"regions": "first"}), "words": fragment_system({}, "words"),
    "sgd": fragment_system({"optimizer": "sgd", "learning_rate": 0.02}),
    "mean": fragment_system({"sentence": "mean", **RANKING}, "words"),
    "tree": fragment_system({"sentence": "tree", **RANKING}, "tree"),
}  # fmt: skip


def ranker(system, **options):
    """A small ranker without dropout, as the system has it but for some parameters."""
    kind, own, _ = SYSTEMS[system]
    shared = {"dropout": 0.0, "batch_size": 20, "rng": 0}
    return kind(**{**shared, **SETTINGS[kind], **own, **options})


def items(system, things=ALL):
    """Photos and captions that a system learns from, with owners where they are needed."""
    form = SYSTEMS[system].captions
    if form == "halves":
        return photos(), halves(), OWNERS
    if form == "raw":
        return photos(things), sentences(things)
    return photos(things, noise=0.02), fragments(things, form)


def queries(system):
    """One caption for each photo, in the form that the system scores."""
    return texts() if SYSTEMS[system].captions == "halves" else items(system)[1]


def fitted(system, *, things=ALL, word_vectors=None, folder=None, progress=False, **options):
    """A ranker after training on all photos, which are those of development, too."""
    own = items(system, things)
    form = SYSTEMS[system].captions
    if word_vectors is None and form not in {"raw", "halves"}:
        word_vectors = vectors(form)
    run = {"n_threads": 1, "folder": folder, "progress": progress}
    run["caption_image"] = own[2] if len(own) > 2 else None
    return ranker(system, **options).fit(*own[:2], dev=own, word_vectors=word_vectors, **run)
