"""Data of the study: systems, recipes of training, variants of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kernelcore.experiments.hessel2019.published import COLLECTIONS, Collection
from kernelcore.experiments.scores import printed

CHANCE, LABELS, NO_STRUCT, MAIN = "Random", "Obj Detect", "NoStruct", "AP"


@dataclass(frozen=True)
class System:
    """A model of documents.

    Attributes
    ----------
    similarity : {"AP", "DC", "TK", "NoStruct"}
        Parameter of `kernelcore.deep.DocumentLinker`.
    k : int or "half" or None
        The same.
    ours : mapping of str to Any
        Changes to our recipe for this system.
    """

    similarity: Literal["AP", "DC", "TK", "NoStruct"]
    k: int | str | None = None
    ours: Mapping[str, Any] = field(default_factory=dict)


MODELS: Mapping[str, System] = {
    NO_STRUCT: System("NoStruct", ours={"negatives": "mean"}),
    "DC": System("DC"),
    "TK": System("TK"),
    "TK half-k": System("TK", "half"),
    MAIN: System("AP"),
    "AP half-k": System("AP", "half"),
}

SYSTEMS = (CHANCE, LABELS, *MODELS)
"""Names of all systems, in the order of the paper."""

PRINTED = tuple(printed(name) for name in (LABELS, NO_STRUCT, MAIN))
"""Systems that are run with the paper's own choices too; any of `MODELS` may be added."""


@dataclass(frozen=True)
class Recipe:
    """How the models are trained.

    Attributes
    ----------
    photos : {"joined", "whole"}
        Features of a photo: of the whole photo joined with the mean of its regions, square
        roots of both, or of the whole photo.
    n_components, n_epochs, patience, n_warm_up, learning_rate, dropout, n_negatives, negatives
        Parameters of `kernelcore.deep.DocumentLinker`.
    """

    photos: str = "joined"
    n_components: int = 128
    n_epochs: int = 24
    patience: int | None = 6
    n_warm_up: int = 0
    learning_rate: float = 2e-3
    dropout: float = 0.4
    n_negatives: int = 10
    negatives: str = "hardest"


RECIPE = Recipe()
"""Chosen on development documents."""

AS_PRINTED = Recipe(
    photos="whole",
    n_components=256,
    n_epochs=50,
    patience=None,
    n_warm_up=0,
    learning_rate=1e-4,
    dropout=0.4,
)
"""The paper's choices, but for the number of components, 1,024 in the paper."""


@dataclass(frozen=True)
class Variant:
    """A collection of documents.

    Attributes
    ----------
    description : str
    counterpart : str
        The most similar collection of the paper, one of `published.COLLECTIONS`.
    documents_per_image : int
        Number of training documents of a photo. The corpus has fewer photos than the paper,
        so that each is in many documents.
    options : mapping of str to Any
        For `kernelcore.datasets.build_documents`.
    is_topical : bool
        Whether the images of a document are similar.
    """

    description: str
    counterpart: str
    documents_per_image: int = 20
    options: Mapping[str, Any] = field(default_factory=dict)
    is_topical: bool = False

    @property
    def published(self) -> Collection:
        """The most similar collection of the paper."""
        return COLLECTIONS[self.counterpart]


VARIANTS: Mapping[str, Variant] = {
    "mixed": Variant(
        "5 photos with a caption each, 5 more photos and 5 more captions, all at random",
        "MSCOCO",
    ),
    "topical": Variant(
        "5 similar photos with a caption each",
        "Story-DII",
        documents_per_image=10,
        options={"n_distractor_images": 0, "n_distractor_captions": 0},
        is_topical=True,
    ),
    "stress": Variant(
        "5 similar photos with a caption each, and 45 captions of other photos",
        "DII-Stress",
        documents_per_image=4,
        options={"n_distractor_images": 0, "n_distractor_captions": 45},
        is_topical=True,
    ),
}
