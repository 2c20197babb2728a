"""Systems of the study: ours, and as printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from kernelcore.experiments.scores import printed
from kernelcore.images.regions import Pooling

FULL = "full model"
"""The paper's own model: both objectives with multiple instances, on dependencies."""

RANDOM = "random"
"""Scores drawn at random."""

N_EPOCHS = 16
BATCH_SIZE = 100
_PRINTED_EPOCHS = 20

Captions: TypeAlias = Literal["dependencies", "bigrams", "words", "trees"]
Words: TypeAlias = Literal["joined", "pretrained"]


@dataclass(frozen=True)
class System:
    """A system of the paper.

    Attributes
    ----------
    published : str
        Its name in the paper's tables.
    captions : {"dependencies", "bigrams", "words", "trees"}
        Fragments of a caption.
    options : mapping of str to Any
        Parameters of `kernelcore.deep.FragmentRanker`.
    n_epochs : int
        Epochs, unless the study has another number.
    words : {"joined", "pretrained"}
        Whether words have the vectors of the file alone, or these joined with vectors that are
        learned from the captions.
    pooling : {"map", "crop"}, optional
        See `kernelcore.images.RegionCNN`; the default is that of the study.
    """

    published: str
    captions: Captions = "dependencies"
    options: Mapping[str, Any] = field(default_factory=dict)
    n_epochs: int = N_EPOCHS
    words: Words = "joined"
    pooling: Pooling | None = None


_ONE_VECTOR = {"objective": "ranking", "smoothing": 0.0}
_TREE = {"sentence": "tree", **_ONE_VECTOR}
_BOTH = {"multiple_instance": False}

SYSTEMS: Mapping[str, System] = {
    RANDOM: System("Random Ranking"),
    "Socher et al.": System("Socher et al.", "trees", {"regions": "first", **_TREE}),
    "DeViSE": System("DeViSE", "words", {"sentence": "mean", "regions": "mean", **_ONE_VECTOR}),
    "SDT-RNN": System("SDT-RNN", "trees", {"regions": "mean", **_TREE}),
    "alignment only": System(
        "Fragment Alignment Objective", options={"objective": "alignment", **_BOTH}
    ),
    "ranking only": System("Global Ranking Objective", options={"objective": "ranking"}),
    "alignment + ranking": System("Fragment + Global", options=_BOTH),
    "whole photo": System("Fullframe Only", options={"regions": "first", **_BOTH}),
    "single words": System("BOW", "words", _BOTH),
    "bigrams": System("Bigrams", "bigrams", _BOTH),
    FULL: System("Our model (+ MIL)"),
}
"""The systems of the paper's table 2. Each ablation leaves out one part of the full model."""

SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_drawn": 10,
    "margin": 4.0,
    "ranking_weight": 2.0,
    "dropout": 0.5,
    "square_root": True,
    "learning_rate": 1e-3,
    "optimizer": "adam",
}
"""Settings of all systems, chosen on the development split; all but the rate were chosen with
the vectors of GloVe alone."""

_PRINTED: Mapping[str, Any] = {
    "n_components": 1000,
    "n_drawn": None,
    "dropout": 0.0,
    "square_root": False,
    "balanced": False,
    "optimizer": "sgd",
    "weight_decay": 1e-5,
}
# the paper's rates are cross-validated and not printed; these are ours
_PRINTED_RATES = {
    "alignment only": 1e-5,
    "ranking only": 1e-4,
    "alignment + ranking": 1e-5,
    FULL: 1e-5,
}

PRINTED: Mapping[str, System] = {
    printed(name): replace(
        SYSTEMS[name],
        options={**SYSTEMS[name].options, **_PRINTED, "learning_rate": rate},
        n_epochs=_PRINTED_EPOCHS,
        words="pretrained",
        pooling="crop",
    )
    for name, rate in _PRINTED_RATES.items()
}
"""The systems of the paper's objectives with the paper's own choices."""

PARTS: tuple[tuple[str, str, str], ...] = (
    ("ranking beside alignment", "alignment only", "alignment + ranking"),
    ("alignment beside ranking", "ranking only", "alignment + ranking"),
    ("regions beside the whole photo", "whole photo", "alignment + ranking"),
    ("dependencies for single words", "single words", "alignment + ranking"),
    ("dependencies for bigrams", "bigrams", "alignment + ranking"),
    ("multiple instances", "alignment + ranking", FULL),
)
"""Parts of the paper's model: part, system without it, system with it."""

TREE_RELATIONS = (
    *("det", "amod", "nsubj", "pobj", "prep", "dobj", "compound", "acl", "aux", "nummod"),
    *("conj", "cc", "poss", "advmod", "advcl", "prt", "nsubjpass", "relcl", "agent", "ccomp"),
)
"""Relations with weights of their own in SDT-RNN. All other relations share weights."""

TRIPLETS = (
    ("amod", "dog", "black"),
    ("amod", "dog", "brown"),
    ("prep_in", "dog", "water"),
    ("nsubj", "riding", "man"),
    ("amod", "shirt", "red"),
    ("compound", "ball", "soccer"),
)
"""Fragments (relation, head, dependent) whose best regions the page shows."""
