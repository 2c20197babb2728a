"""The names and the order of weights in files and checkpoints."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelcore.captions import SentenceTrees  # noqa: E402
from kernelcore.datasets import Document  # noqa: E402
from kernelcore.deep import (  # noqa: E402
    Captioner,
    CrossAttentionRanker,
    DocumentLinker,
    EmbeddingRanker,
    FragmentRanker,
    OrderRanker,
)

LAYER = ("weight", "bias")
RECURRENT = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
PHOTOS, CAPTIONS = np.eye(4), ["a red dog", "a blue cat", "a green boat", "a white rose"]
TREES = SentenceTrees([0, 1, 2, 3], [0] * 4, [-1] * 4, range(5), 1, 4)
TINY = {"n_components": 2, "n_epochs": 1, "rng": 0}


def under(*parents, names):
    return [f"{parent}.{name}" for parent in parents for name in names]


FEATURES = ["mean", "scale", *under("affine", names=LAYER)]
CONTEXT = under("own", "whole", names=FEATURES)
BOTH_WAYS = under("onward", "back", names=RECURRENT)
WORDS = ["sentences.embedding.weight"]

NAMES = {
    "perceptrons": (
        EmbeddingRanker(sentence="mean", n_hidden=2, min_count=1, **TINY),
        [
            *under("images.regions", names=FEATURES),
            *under("images.output", names=LAYER),
            *WORDS,
            *under("sentences.perceptron.hidden", "sentences.perceptron.output", names=LAYER),
        ],
    ),
    "recurrent": (
        EmbeddingRanker(image="gru", min_count=1, **TINY),
        [
            *under("images.regions", names=CONTEXT),
            *under("images.gru", names=BOTH_WAYS),
            *WORDS,
            *under("sentences.gru", names=BOTH_WAYS),
        ],
    ),
    "attention": (
        CrossAttentionRanker(min_count=1, **TINY),
        [
            *under("regions", names=CONTEXT),
            *WORDS,
            *under("sentences.gru", names=BOTH_WAYS),
        ],
    ),
    "order": (
        OrderRanker(n_hidden=2, n_states=2, min_count=1, **TINY),
        [
            *under("images.dense", names=FEATURES),
            *under("images.layers.0", "images.layers.1", names=LAYER),
            *WORDS,
            *under("sentences.lstm", names=RECURRENT),
            *under("sentences.dense", names=LAYER),
        ],
    ),
    "captioner": (
        Captioner(min_count=1, **TINY),
        [
            "prior",
            *under("images", names=FEATURES),
            "words.weight",
            *under("lstm", names=RECURRENT),
            *under("decoder", names=LAYER),
        ],
    ),
    "fragments": (
        FragmentRanker(fragments="bigrams", **TINY),
        [
            *under("regions", names=FEATURES),
            "captions.words",
            *under("captions.layers.0", names=LAYER),
        ],
    ),
    "mean": (
        FragmentRanker(sentence="mean", regions="first", **TINY),
        [
            *under("regions", names=FEATURES),
            "captions.words",
            *under("captions.layer", names=LAYER),
        ],
    ),
    "tree": (
        FragmentRanker(sentence="tree", regions="first", **TINY),
        [
            *under("regions", names=FEATURES),
            "captions.relations",
            "captions.words",
            *under("captions.leaf", names=LAYER),
        ],
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_weights_keep_their_names_and_their_order(name):
    ranker, expected = NAMES[name]
    captions = TREES if name == "tree" else CAPTIONS
    ranker.fit(PHOTOS, captions, dev=(PHOTOS, captions), n_threads=1)
    assert list(ranker.space_.state_dict()) == expected


def test_weights_of_linkers_keep_their_names_and_their_order():
    documents = [Document(str(i), tuple(CAPTIONS), ("0", "1")) for i in range(2)]
    linker = DocumentLinker(min_count=1, **TINY)
    linker.fit(documents, {"0": [0.0], "1": [1.0]}, dev=documents, n_threads=1)
    assert list(linker.space_.state_dict()) == [
        *WORDS,
        *under("sentences.gru", names=RECURRENT),
        *under("images", names=FEATURES),
    ]
