"""Data of the study: systems, recipes of training, variants of documents, choices of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelcore.experiments.hessel2019.published import COLLECTIONS, Collection
from kernelcore.experiments.scores import printed

CHANCE, LABELS, NO_STRUCT, MAIN = "Random", "Obj Detect", "NoStruct", "AP"


@dataclass(frozen=True)
class System:
    """A model of documents.

    Attributes
    ----------
    similarity : str
        Parameter of `kernelcore.deep.DocumentLinker`.
    k : int or "half" or None
        The same.
    ours : mapping of str to Any
        Changes to our recipe for this system.
    """

    similarity: str
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
"""The paper's choices, but for the number of components, see `CHOICES`."""

CHOICES: Sequence[tuple[str, str, str]] = (
    (
        "photos",
        "MSCOCO, and albums of Flickr in VIST, of their own sizes",
        "Flickr8k, squashed to 224 x 224 pixels and compressed again by an earlier owner",
    ),
    (
        "documents",
        "25,000 / 2,000 / 2,000 of 83,000 photos for MSCOCO; a photo is in 3.5 on average",
        "a photo is in 20 training documents (topical 10, stress 4) and in 5 test documents; "
        "its five captions take turns",
    ),
    (
        "documents of similar photos",
        "five photos that a worker chose from an album, each described in isolation",
        "a photo and four of the 2 % of its split that are nearest by the cosine of features",
    ),
    (
        "network",
        "DenseNet169, features before classification",
        "EfficientNet-Lite0: whole photo, joined with the mean of regions of a map, square "
        "roots, standardised. As printed: whole photo, standardised",
    ),
    (
        "word vectors",
        "word2vec of Google News, 300 dimensions, trained along",
        "GloVe, 50 dimensions, trained along",
    ),
    (
        "components",
        "1,024; 256 and 512 were similar (footnote 9)",
        f"{RECIPE.n_components}. As printed: {AS_PRINTED.n_components}, as 50 epochs of 1,024 "
        "take longer than an hour here; the table *Cost of a training step* has the time",
    ),
    (
        "loss",
        "hardest of b = 10 negatives",
        "the same",
    ),
    (
        "loss of NoStruct",
        "that of all systems",
        "mean over all negatives. As printed: that of all systems",
    ),
    (
        "negatives",
        "b sets of other documents, drawn for each document",
        "the other documents of a minibatch of b + 1",
    ),
    (
        "training",
        "Adam, rate 1e-4, divided by 5 if dev loss is not lower for more than 3 epochs, 50 "
        "epochs, dropout 0.4",
        f"the same schedule from {RECIPE.learning_rate:g}, until dev loss is not lower for "
        f"{RECIPE.patience} epochs, {RECIPE.n_epochs} at most, dropout {RECIPE.dropout:g}. "
        "As printed: the paper's",
    ),
    (
        "Obj Detect",
        "labels of DenseNet169, word2vec, K of 1 to 20 with the best test figure",
        "labels of EfficientNet-Lite0, GloVe, stop words left out; synonyms and objects of "
        "FastestDet where development documents say so; K by development documents. As "
        "printed: one name of each label of the network alone",
    ),
    (
        "correspondences",
        "AP: at most k links",
        "exactly k links, negative ones too",
    ),
    (
        "standard errors and tests",
        "none",
        "documents that share a photo depend on each other",
    ),
)
"""Differences between the paper and the study."""


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
