"""The paper's figures, and the differences between the paper and the study."""

from __future__ import annotations

from kernelcore.evaluation import Published

SOURCE = "Karpathy et al. 2014"

CHOICES: tuple[tuple[str, str, str], ...] = (
    (
        "photos",
        "of their original size",
        "as the corpus here has them: 224 x 224 pixels, squashed to a square and compressed "
        "again by an earlier owner",
    ),
    (
        "features of regions",
        "4,096 numbers of an AlexNet fine-tuned for detection on ImageNet, run on each region",
        "1,280 numbers of EfficientNet-Lite0; its last map at 384 pixels averaged over each "
        "region, or with `--pooling crop` the network run on each region. Square roots, scaled "
        "to length 1. As printed: the network run on each region, no square roots",
    ),
    (
        "scale of features",
        "not mentioned",
        "mean 0 and variance 1 in training. The map that follows is affine, so only the course "
        "of the training changes. Also as printed",
    ),
    (
        "whole photo",
        "the network run on the whole image",
        "the same, at 224 pixels",
    ),
    (
        "regions",
        "the whole image and the 19 best boxes of an R-CNN",
        "the whole photo, boxes of FastestDet if its file is available, and windows of a "
        "grid, 20 in all. Also as printed",
    ),
    (
        "mean region",
        "boxes above a threshold of confidence, chosen on dev",
        "all 20 regions, for DeViSE and SDT-RNN",
    ),
    (
        "word vectors",
        "200 dimensions, Huang et al., fixed",
        "50 dimensions of GloVe and 250 that are learned from the training captions and, if it "
        "is there, the Brown corpus, both scaled to length 4; fixed. As printed: GloVe alone, "
        "as it is",
    ),
    ("dependencies", "Stanford CoreNLP", "spaCy, with prepositions collapsed"),
    ("regions in a step", "all", "the whole photo and nine others, drawn in each step"),
    ("components", "about 1,000", "256"),
    (
        "alignment",
        "all pairs of region and fragment have the same weight",
        "positive and negative regions of a fragment have the same total weight",
    ),
    (
        "optimiser",
        "SGD with momentum 0.9, 20 epochs, a tenth of the rate in the last two",
        "Adam, 16 epochs, a tenth of the rate in the last two; the best epoch on dev is kept",
    ),
    (
        "learning rate",
        "cross-validated, not printed",
        "0.001 for all systems. As printed: 1e-4 for ranking and 1e-5 for alignment, set by us",
    ),
    (
        "margin, weight of the ranking objective, weight decay",
        "cross-validated, not printed",
        "margin 4, weight 2, no weight decay; as printed the same margin and weight, which we "
        "chose for our own recipe, and a weight decay of 1e-5",
    ),
    ("dropout", "not mentioned", "0.5 of the features of regions; as printed none"),
    ("smoothing", "5", "5; 0 if a sentence is one vector"),
    ("multiple instances", "after half of the epochs", "the same"),
    (
        "minibatches",
        "100 pairs",
        "100 pairs, of which no two have the same photo",
    ),
    ("correction for hubs", "none", "rows of their own, with training items as the bank"),
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
    _published("Random Ranking", 0.1, 0.6, 1.1, 631, 0.1, 0.5, 1.0, 500),
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
