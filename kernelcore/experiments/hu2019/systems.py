"""Data of the study: systems, settings, published figures, our own choices."""

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
    reads : {"photos", "regions"}
        Input of a photo: one description, see `kernels.joined`, or the features of regions.
    n_epochs : int
        Epochs of training. Systems on regions gain from more epochs, which cost minutes each.
    options : mapping of str to Any
        Parameters of the ranker. With ``n_embedding`` word embeddings start at random,
        otherwise from the word vectors.
    """

    kind: type[EmbeddingRanker | CrossAttentionRanker]
    reads: Literal["photos", "regions"]
    n_epochs: int
    options: Mapping[str, Any] = field(default_factory=dict)


_REGIONS = {"square_root": True, "n_drawn": 10}

SYSTEMS: Mapping[str, System] = {
    "ConvNet+BoW": System(
        EmbeddingRanker,
        "photos",
        18,
        {"image": "first", "sentence": "mean", "n_embedding": 300},
    ),
    "ConvNet+Bi-GRU": System(EmbeddingRanker, "photos", 18, {"image": "first"}),
    "Obj+Bi-GRU": System(
        EmbeddingRanker, "regions", 9, {"image": "gru", "n_embedding": 300, **_REGIONS}
    ),
    "SCAN i2t": System(CrossAttentionRanker, "regions", 14, {"attention": "i2t", **_REGIONS}),
    "SCAN t2i": System(CrossAttentionRanker, "regions", 14, {"attention": "t2i", **_REGIONS}),
}
"""The systems of the paper's table 3."""

SETTINGS: Mapping[str, Any] = {
    "n_components": 256,
    "dropout": 0.3,
    "margin": 0.2,
    "negatives": "hardest",
    "learning_rate": 1e-3,
}
"""Settings of all systems, chosen on the development split."""

BATCH_SIZE = 128

CHOICES: tuple[tuple[str, str, str], ...] = (
    (
        "features of regions",
        "2,048 numbers of a Faster R-CNN with ResNet-101, trained on ImageNet and Visual "
        "Genome",
        "1,280 numbers of EfficientNet-Lite0, trained on ImageNet alone, its last map averaged "
        "over each region",
    ),
    (
        "photos of the ConvNet systems",
        "the mean of the regions' features",
        "this mean, joined with the features of the whole photo at 224 x 224 pixels; square "
        "roots, each part scaled to length 1",
    ),
    (
        "regions",
        "the 36 best proposals of that detector",
        "the whole photo, boxes of FastestDet if its file is available, and windows of a "
        "grid, 20 in all",
    ),
    (
        "vector of a region",
        "the vector of the region alone",
        "the sum of the vectors of the region and of the whole photo",
    ),
    ("regions in a step", "all", "the whole photo and nine others, drawn in each step"),
    (
        "training data",
        "COCO: 113,287 photos with five captions",
        "Flickr8k: 6,000 photos with five captions",
    ),
    (
        "word embeddings",
        "300 dimensions, random start (SCAN)",
        "the same for ConvNet+BoW and Obj+Bi-GRU; for the others 50 dimensions that start "
        "from GloVe",
    ),
    ("components", "1,024 (SCAN)", "256"),
    (
        "negatives",
        "the hardest in the minibatch (SCAN)",
        "the same in the last epochs; the sum of all hinges in the epochs before; captions of "
        "the same image are never negatives",
    ),
    ("dropout", "not named", "0.3 of the features and of the word embeddings"),
    (
        "epochs",
        "30, a tenth of the rate in the second half (SCAN)",
        "18 (9 or 14 for systems with regions); a tenth of the rate in the last quarter",
    ),
    ("temperature (SCAN)", "9 (t2i), 4 (i2t)", "the same"),
    ("sharpness (SCAN)", "6 (t2i), 20 (i2t)", "the same"),
    (
        "kernel systems",
        "none",
        "kernel CCA with a radial basis function of the features of the ConvNet systems; word "
        "sequences with exact matches of one caption, or Tri5Sem of all captions; 135 "
        "settings on dev, of which fifteen are combined; no ridge; eigenvectors as in our "
        "study of Hodosh et al. (2013)",
    ),
)
"""Differences to the paper, or to Lee et al. (2018) where SCAN is named: part, paper, here."""

_TABLE = {
    "ConvNet+BoW": (45.19, 79.26, 56.60, 85.70, 80.48),
    "ConvNet+Bi-GRU": (49.34, 82.22, 61.16, 89.02, 81.75),
    "Obj+Bi-GRU": (53.97, 85.26, 66.86, 91.40, 83.90),
    "SCAN i2t": (52.35, 84.44, 67.00, 92.62, 84.94),
    "SCAN t2i": (54.10, 85.58, 67.50, 92.98, 85.89),
}

PUBLISHED = tuple(
    Published(
        f"{name}, COCO-1K",
        SOURCE,
        {
            "annotation": {"R@1": row[2] / 100, "R@5": row[3] / 100},
            "search": {"R@1": row[0] / 100, "R@5": row[1] / 100},
        },
    )
    for name, row in _TABLE.items()
)
"""Table 3 of the paper: five folds of 1,000 photos of COCO, all five captions of each."""

PUBLISHED_SELECTIONS = tuple(
    Published(f"{name}, COCO-BISON", SOURCE, {"accuracy": row[4] / 100})
    for name, row in _TABLE.items()
)
"""Accuracy of binary image selection in the same table."""
