"""Data of the study: systems, settings, published figures, our own choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelcore.evaluation import Published

SOURCE = "Khojasteh 2019"
THESIS = "joined captions"
"""The model of the thesis."""


@dataclass(frozen=True)
class System:
    """A system of the study.

    Attributes
    ----------
    about : str
        Description for the page.
    options : mapping of str to Any
        Parameters of `kernelcore.deep.OrderRanker`.
    epochs : float
        Share of the epochs. An epoch of single captions has several times as many texts.
    """

    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    epochs: float = 1.0


SYSTEMS: Mapping[str, System] = {
    THESIS: System(
        "the model of the thesis: all captions of an image are one text, which lies below the "
        "image"
    ),
    "with variance": System(
        "the same, with the variance of the vectors subtracted from the loss",
        {"variance_weight": 0.1},
    ),
    "no order": System(
        "the same, with the cosine as similarity", {"similarity": "cosine", "margin": 0.2}
    ),
    "single captions": System(
        "each caption is a text, which lies below its image",
        {"joined": False, "learning_rate": 1e-3, "min_learning_rate": 2.5e-4},
        epochs=0.5,
    ),
}

SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_hidden": 512,
    "n_states": 128,
    "margin": 0.05,
    "dropout": 0.1,
    "learning_rate": 2e-3,
    "min_learning_rate": 5e-4,
}
"""Settings of all systems, chosen on the development split."""

N_EPOCHS = 16
BATCH_SIZE = 64

CHOICES: tuple[tuple[str, str, str], ...] = (
    (
        "features",
        "2,048 numbers of ResNet-50, which is trained too",
        "1,280 numbers of EfficientNet-Lite0, which is not trained further",
    ),
    (
        "training data",
        "COCO: 113,287 photos with five captions",
        "Flickr8k: 6,000 photos with five captions",
    ),
    ("stop words", "not named", "those of `kernelcore.captions.STOP_WORDS`"),
    (
        "word vectors",
        "GloVe of tweets for stems",
        "GloVe, 50 dimensions; a stem has the vector of its most frequent word",
    ),
    ("fully connected layers", "two of 1,024 units", "512 and 256"),
    ("vectors without negative entries", "method not given", "absolute values"),
    (
        "length of the vectors",
        "not said",
        "1 on the upper side, free on the lower side; Vendrov et al. have 1 on both sides",
    ),
    (
        "variance in the loss",
        "printed as a sum that is always 0",
        "in one system: the variance of the vectors of a minibatch, as a share of their mean "
        "square",
    ),
    (
        "rate",
        "0.1, halved when the loss stays the same, down to 1e-7",
        "0.002, or 0.001 for single captions, halved after each epoch without progress on dev, "
        "down to a quarter",
    ),
    ("batch", "16, then doubled repeatedly", "64, then the same"),
    ("dropout", "not named", "0.1 of the input of every layer"),
)
"""Differences to the thesis: part, the thesis, here."""


def _published(pool: str, *numbers: float) -> Published:
    shares = [number / 100 for number in numbers]
    values = {
        task: dict(zip(("R@1", "R@5", "R@10"), shares[at:], strict=False))
        | {"median_rank": numbers[at + 3]}
        for task, at in (("annotation", 0), ("search", 4))
    }
    return Published(f"DeepTwt, {pool}", SOURCE, values)


PUBLISHED = (
    _published("COCO-1K", 47.5, 81.0, 91.0, 2, 48.4, 84.3, 91.5, 2),
    _published("COCO-5K", 23.8, 53.7, 67.3, 4, 25.6, 55.1, 68.4, 3),
)
"""Table 4.1 of the thesis: 1,000 and 5,000 photos of COCO with their joined captions."""
