"""Data of the study: systems, settings, published figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kernelcore.deep import CrossAttentionRanker, EmbeddingRanker
from kernelcore.evaluation import Published

SOURCE = "Hu et al. 2019"


@dataclass(frozen=True)
class System:
    """A system of the paper.

    Attributes
    ----------
    kind : type
        A ranker of `kernelcore.deep`.
    images : {"photos", "regions"}
        Input of a photo: the whole photo joined with the mean of its regions, each with square
        roots, or the features of all regions.
    options : mapping of str to Any
        Parameters of the ranker beside those of all systems.
    """

    kind: type[EmbeddingRanker | CrossAttentionRanker]
    images: Literal["photos", "regions"]
    options: Mapping[str, Any] = field(default_factory=dict)


MAIN = "ConvNet+Bi-GRU"

_REGIONS = {"square_root": True, "n_drawn": 10}

SYSTEMS: Mapping[str, System] = {
    "ConvNet+BoW": System(
        EmbeddingRanker, "photos", options={"image": "first", "sentence": "mean"}
    ),
    MAIN: System(EmbeddingRanker, "photos", options={"image": "first"}),
    "Obj+Bi-GRU": System(EmbeddingRanker, "regions", options={"image": "gru", **_REGIONS}),
    "SCAN i2t": System(
        CrossAttentionRanker, "regions", options={"attention": "i2t", **_REGIONS}
    ),
    "SCAN t2i": System(
        CrossAttentionRanker, "regions", options={"attention": "t2i", **_REGIONS}
    ),
}
"""The systems of the paper's table 3."""

N_EPOCHS = 30
SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_embedding": 300,
    "dropout": 0.3,
    "margin": 0.2,
    "negatives": "hardest",
    "learning_rate": 1e-3,
    "n_epochs": N_EPOCHS,
}
"""Settings of all systems, chosen on the development split with other word embeddings."""

BATCH_SIZE = 128

CAPTIONER = "CNN-LSTM, 256 units"
"""A system that writes captions, a `kernelcore.deep.Captioner`. The paper has other ones, in
its supplement."""

CAPTIONER_SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "n_embedding": 256,
    "n_epochs": 20,
}


_TABLE = {
    "ConvNet+BoW": (45.19, 79.26, 56.60, 85.70, 80.48),
    "ConvNet+Bi-GRU": (49.34, 82.22, 61.16, 89.02, 81.75),
    "Obj+Bi-GRU": (53.97, 85.26, 66.86, 91.40, 83.90),
    "SCAN i2t": (52.35, 84.44, 67.00, 92.62, 84.94),
    "SCAN t2i": (54.10, 85.58, 67.50, 92.98, 85.89),
}

PUBLISHED_ROWS: Mapping[str, Published] = {
    name: Published(
        f"{name}, COCO-1K",
        SOURCE,
        {
            "annotation": {"R@1": row[2] / 100, "R@5": row[3] / 100},
            "search": {"R@1": row[0] / 100, "R@5": row[1] / 100},
        },
    )
    for name, row in _TABLE.items()
}
"""Table 3 of the paper, by system: five folds of 1,000 photos of COCO, all five captions of
each."""

PUBLISHED = tuple(PUBLISHED_ROWS.values())

PUBLISHED_SELECTIONS = tuple(
    Published(f"{name}, COCO-BISON", SOURCE, {"accuracy": row[4] / 100})
    for name, row in _TABLE.items()
)
"""Accuracy of binary image selection in the same table."""
