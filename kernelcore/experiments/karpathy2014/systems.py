"""Data of the study: systems, settings, published figures, our own choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kernelcore.evaluation import Published

SOURCE = "Karpathy et al. 2014"
FULL = "full model"
"""The paper's own model: both objectives with multiple instances, on dependencies."""

Captions: TypeAlias = Literal["dependencies", "bigrams", "words", "trees"]


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
    """

    published: str
    captions: Captions = "dependencies"
    options: Mapping[str, Any] = field(default_factory=dict)


_ONE_VECTOR = {"objective": "ranking", "smoothing": 0.0}
# a recursive network diverges at the learning rate of the other systems
_TREE = {"sentence": "tree", "learning_rate": 1e-3, **_ONE_VECTOR}
_BOTH = {"multiple_instance": False}

SYSTEMS: Mapping[str, System] = {
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
    "learning_rate": 3e-3,
    "optimizer": "adam",
}
"""Settings of all systems, chosen on the development split."""

N_EPOCHS = 8
BATCH_SIZE = 100

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

CHOICES: tuple[tuple[str, str, str], ...] = (
    (
        "features of regions",
        "4,096 numbers of an AlexNet fine-tuned for detection on ImageNet, run on each region",
        "1,280 numbers of EfficientNet-Lite0, its last map averaged over each region",
    ),
    (
        "regions",
        "the whole image and the 19 best boxes of an R-CNN",
        "the whole photo, boxes of FastestDet if its file is available, and windows of a "
        "grid, 20 in all",
    ),
    (
        "mean region",
        "boxes above a threshold of confidence, chosen on dev",
        "all 20 regions, for DeViSE and SDT-RNN",
    ),
    ("word vectors", "200 dimensions, Huang et al.", "50 dimensions, GloVe"),
    ("dependencies", "Stanford CoreNLP", "spaCy, with prepositions collapsed"),
    ("regions in a step", "all", "the whole photo and nine others, drawn in each step"),
    ("components", "about 1,000", "256"),
    (
        "alignment",
        "all pairs of region and fragment have the same weight",
        "positive and negative regions of a fragment have the same total weight",
    ),
    ("optimiser", "SGD with momentum, 20 epochs", "Adam, 8 epochs, the best on dev is kept"),
    ("dropout", "none", "0.5 of the features of regions"),
    ("smoothing", "5", "5; 0 if a sentence is one vector"),
    ("multiple instances", "after half of the epochs", "the same"),
)
"""Differences to the paper: part, the paper, here."""


def _published(system: str, *numbers: float) -> Published:
    shares = [number / 100 for number in numbers]
    values = {
        task: dict(zip(("R@1", "R@5", "R@10"), shares[at:], strict=False))
        | {"median_rank": numbers[at + 3]}
        for task, at in (("annotation", 0), ("search", 4))
    }
    return Published(system, SOURCE, values)


PUBLISHED = (
    _published("Socher et al.", 4.5, 18.0, 28.6, 32, 6.1, 18.5, 29.0, 29),
    _published("DeViSE", 4.8, 16.5, 27.3, 28, 5.9, 20.1, 29.6, 29),
    _published("SDT-RNN", 6.0, 22.7, 34.0, 23, 6.6, 21.6, 31.7, 25),
    _published("Fragment Alignment Objective", 7.2, 21.9, 31.8, 25, 5.9, 20.0, 30.3, 26),
    _published("Global Ranking Objective", 5.8, 21.8, 34.8, 20, 7.5, 23.4, 35.0, 21),
    _published("Fragment + Global", 12.5, 29.4, 43.8, 14, 8.6, 26.7, 38.7, 17),
    _published("Fullframe Only", 5.9, 19.2, 27.3, 34, 5.2, 17.6, 26.5, 32),
    _published("BOW", 9.1, 25.9, 40.7, 17, 6.9, 22.4, 34.0, 23),
    _published("Bigrams", 8.7, 28.5, 41.0, 16, 8.5, 25.2, 37.0, 20),
    _published("Our model (+ MIL)", 12.6, 32.9, 44.0, 14, 9.7, 29.6, 42.5, 15),
)
"""Table 2 of the paper: Flickr8k, all five sentences of each of 1,000 test images."""

PUBLISHED_FIRST = (
    _published("Hodosh et al.", 8.3, 21.6, 30.3, 34, 7.6, 20.7, 30.1, 38),
    _published("Our model (+ MIL)", 9.3, 24.9, 37.4, 21, 8.8, 27.9, 41.3, 17),
)
"""The same table with only the first sentence of each image."""
