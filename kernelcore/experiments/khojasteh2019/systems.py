"""Data of the study: systems, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kernelcore.experiments.scores import printed

THESIS = "joined captions"
"""The model of the thesis."""

NO_ORDER = "no order"
LANGUAGE = "language model"

N_EPOCHS = 40
"""At most: training stops before, see ``patience`` of the settings."""

BATCH_SIZE = 64


@dataclass(frozen=True)
class System:
    """A system of the study.

    Attributes
    ----------
    about : str
        Description for the page.
    options : mapping of str to Any
        Parameters of the ranker.
    ranks_by : {"order", "ratio", "likelihood"}
        "order": an `OrderRanker`. Otherwise a `Captioner`, by its likelihood ratio or by its
        likelihood.
    n_epochs : int
        Maximum number of epochs; the best one on ``dev`` is kept.
    photos : {"joined", "whole"}
        Features of a photo: those of the whole photo joined with the mean of its regions, or
        those of the whole photo alone.
    vectors : {"joined", "pretrained", "none"}
        Start of the word embeddings: pretrained vectors joined with learned ones, pretrained
        vectors, or random.
    """

    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ranks_by: Literal["order", "ratio", "likelihood"] = "order"
    n_epochs: int = N_EPOCHS
    photos: Literal["joined", "whole"] = "joined"
    vectors: Literal["joined", "pretrained", "none"] = "joined"


SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_hidden": 512,
    "n_states": 128,
    "margin": 0.05,
    "dropout": 0.1,
    "learning_rate": 2e-3,
    "min_learning_rate": 5e-4,
    "patience": 6,
}
"""Settings of all order embeddings, chosen on the development split with GloVe alone."""

LANGUAGE_SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_embedding": 256,
    "dropout": 0.3,
    "learning_rate": 1e-3,
    "batch_size": 128,
    "patience": 2,
}
"""Settings of the language model, those that `Captioner` has by default."""

_LANGUAGE = System(
    "an LSTM that reads the photo and predicts each next word; ranks by the ratio of the "
    "likelihoods of a caption with and without the photo",
    LANGUAGE_SETTINGS,
    ranks_by="ratio",
    n_epochs=30,
    vectors="none",
)

SYSTEMS: Mapping[str, System] = {
    THESIS: System(
        "the model of the thesis: all captions of an image are one text, which lies below the "
        "image",
        SETTINGS,
    ),
    "with variance": System(
        "the same, with the variance of the vectors subtracted from the loss",
        {**SETTINGS, "variance_weight": 0.1},
    ),
    NO_ORDER: System(
        "the same, with the cosine as similarity and a margin of 0.2",
        {**SETTINGS, "similarity": "cosine", "margin": 0.2},
    ),
    "single captions": System(
        "each caption is a text, which lies below its image",
        {**SETTINGS, "joined": False, "learning_rate": 1e-3, "min_learning_rate": 2.5e-4},
        n_epochs=20,
    ),
    LANGUAGE: _LANGUAGE,
}

PRINTED: Mapping[str, System] = {
    printed(THESIS): System(
        "the model of the thesis with its own sizes, text vector, rate, schedule and batch, "
        "without dropout and without a bound on lengths",
        {
            **SETTINGS,
            "n_components": 1024,
            "n_hidden": 1024,
            "n_states": None,
            "unit_length": "none",
            "dropout": 0.0,
            "learning_rate": 0.1,
            "min_learning_rate": 1e-7,
            "batch_size": 16,
            "patience": None,
        },
        n_epochs=45,
        photos="whole",
        vectors="pretrained",
    ),
    printed(LANGUAGE): replace(
        _LANGUAGE,
        about="the same language model; ranks by the likelihood of equation 4.2. The thesis "
        "names no settings of it",
        ranks_by="likelihood",
    ),
}
"""The systems with the choices of the thesis, as far as it names them."""
