"""Data of the study: systems, sizes, variants of documents, published figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelcore.evaluation import Published

SOURCE = "Hessel et al. 2019"

CHANCE, LABELS, NO_STRUCT = "Random", "Obj Detect", "NoStruct"


@dataclass(frozen=True)
class System:
    """A model of documents.

    Attributes
    ----------
    similarity : str
        Parameter of `kernelcore.deep.DocumentLinker`.
    k : int or "half" or None
    negatives : str
        Parameters of the same class.
    """

    similarity: str
    k: int | str | None = None
    negatives: str = "hardest"


MODELS: Mapping[str, System] = {
    # Most pairs of NoStruct are false, so the hardest of ten negatives is not informative.
    NO_STRUCT: System("NoStruct", negatives="mean"),
    "DC": System("DC"),
    "TK": System("TK"),
    "TK half-k": System("TK", "half"),
    "AP": System("AP"),
    "AP half-k": System("AP", "half"),
}

SYSTEMS = (CHANCE, LABELS, *MODELS)
"""Names of all systems, in the order of the paper."""


@dataclass(frozen=True)
class Size:
    """Size of the models and length of the training.

    Attributes
    ----------
    n_components : int
        Length of the vectors: 1,024 in the paper.
    n_epochs : int
        50 in the paper.
    n_warm_up : int
        First epochs, with the mean over all negatives: none in the paper.
    no_struct_factor : int
        Factor of the epochs of NoStruct, and divisor of its learning rate. In an epoch it
        sees one sentence and one image of each document, mostly a false pair.
    learning_rate : float
        1e-4 in the paper.
    dropout : float
        0.4 in the paper.
    """

    n_components: int = 128
    n_epochs: int = 6
    n_warm_up: int = 2
    no_struct_factor: int = 4
    learning_rate: float = 2e-3
    dropout: float = 0.2


SIZE = Size()


@dataclass(frozen=True)
class Variant:
    """A collection of documents.

    Attributes
    ----------
    description : str
    counterpart : str
        The most similar collection of the paper.
    published : mapping of str to tuple of float
        AUC, p@1 and p@5 of each system on the counterpart, in percent.
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
    published: Mapping[str, tuple[float, float, float]]
    documents_per_image: int = 20
    options: Mapping[str, Any] = field(default_factory=dict)
    is_topical: bool = False

    def rows(self) -> list[Published]:
        """Return the published figures as rows of a table."""
        return [
            Published(
                name,
                f"{self.counterpart}, {SOURCE}",
                {"AUC": auc / 100, "p@1": first / 100, "p@5": fifth / 100},
            )
            for name, (auc, first, fifth) in self.published.items()
        ]


VARIANTS: Mapping[str, Variant] = {
    "mixed": Variant(
        "5 photos with a caption each, 5 more photos and 5 more captions, all at random",
        "MSCOCO",
        {
            "Random": (49.7, 5.0, 4.6),
            "Obj Detect": (89.5, 67.7, 45.9),
            "NoStruct": (87.5, 50.6, 34.6),
            "DC": (98.9, 93.6, 80.1),
            "TK": (98.9, 93.9, 80.1),
            "TK half-k": (99.0, 95.0, 81.1),
            "AP": (98.7, 91.0, 78.0),
            "AP half-k": (98.9, 93.9, 80.4),
        },
    ),
    "topical": Variant(
        "5 similar photos with a caption each",
        "Story-DII",
        {
            "Random": (49.4, 19.5, 19.2),
            "Obj Detect": (65.3, 50.2, 35.2),
            "NoStruct": (76.6, 60.1, 46.2),
            "DC": (82.8, 71.5, 55.5),
            "TK": (82.9, 71.4, 55.5),
            "TK half-k": (82.0, 72.6, 54.9),
            "AP": (82.6, 70.5, 55.0),
            "AP half-k": (81.6, 72.4, 54.4),
        },
        documents_per_image=10,
        options={"n_distractor_images": 0, "n_distractor_captions": 0},
        is_topical=True,
    ),
    "stress": Variant(
        "5 similar photos with a caption each, and 45 captions of other photos",
        "DII-Stress",
        {
            "Random": (50.0, 2.0, 2.0),
            "Obj Detect": (76.9, 25.7, 17.5),
            "NoStruct": (84.2, 21.4, 15.6),
            "DC": (94.9, 64.6, 44.8),
            "TK": (95.2, 65.6, 45.3),
            "TK half-k": (94.7, 64.0, 43.7),
            "AP": (95.3, 65.5, 45.7),
            "AP half-k": (94.5, 65.0, 43.4),
        },
        documents_per_image=4,
        options={"n_distractor_images": 0, "n_distractor_captions": 45},
        is_topical=True,
    ),
}
