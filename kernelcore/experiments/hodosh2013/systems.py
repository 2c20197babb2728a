"""Data of the study: systems, grid of settings, published figures, our own choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from kernelcore.evaluation import Published

SOURCE = "Hodosh et al. 2013"
BASELINE = "Tri5Sem"
"""The paper's best system, the baseline of all comparisons."""

Similarity: TypeAlias = Literal["A", "D_ic", "D_out", "Lin"]


@dataclass(frozen=True)
class System:
    """A system of the paper.

    Attributes
    ----------
    text : {"bag_of_words", "bag_of_words_f1", "tag_rank", "word_sequence"}
        Kernel of captions.
    weights : {"none", "idf", "sqrt_idf"}
        Weights of the words.
    lexical : tuple of {"A", "D_ic", "D_out", "Lin"}
        Similarities by which different words match: alignment (A), co-occurrence in the
        image captions (D_ic) and in an outside corpus (D_out), WordNet (Lin). They are
        combined in two steps: the mean of D_ic and D_out, then the maximum of all.
    ranker : {"kcca", "nearest_neighbour"}
    single : bool
        Train with one caption per image, the one of the pool's number, instead of all.
    pyramid : bool
        Compare photos cell by cell, otherwise by histograms of the whole image.
    """

    text: Literal["bag_of_words", "bag_of_words_f1", "tag_rank", "word_sequence"]
    weights: Literal["none", "idf", "sqrt_idf"] = "none"
    lexical: tuple[Similarity, ...] = ()
    ranker: Literal["kcca", "nearest_neighbour"] = "kcca"
    single: bool = False
    pyramid: bool = True


_BOTH: tuple[Similarity, ...] = ("D_out", "D_ic")

SYSTEMS: Mapping[str, System] = {
    "NN_F1": System("bag_of_words_f1", ranker="nearest_neighbour"),
    "NN_F1^idf": System("bag_of_words_f1", "idf", ranker="nearest_neighbour"),
    "NN_BoW5": System("bag_of_words", ranker="nearest_neighbour"),
    "NN_Tri5best": System(
        "word_sequence", "sqrt_idf", ("A", *_BOTH), ranker="nearest_neighbour"
    ),
    "BoW1": System("bag_of_words", single=True),
    "Tri1": System("word_sequence", single=True),
    "BoW5^histo": System("bag_of_words", pyramid=False),
    "BoW5": System("bag_of_words"),
    "BoW5^idf": System("bag_of_words", "idf"),
    "BoW5^sqrt-idf": System("bag_of_words", "sqrt_idf"),
    "TagRank": System("tag_rank"),
    "Tri5^histo": System("word_sequence", pyramid=False),
    "Tri5": System("word_sequence"),
    "Tri5_Lin": System("word_sequence", lexical=("Lin",)),
    "Tri5_D_out": System("word_sequence", lexical=("D_out",)),
    "Tri5_D_ic": System("word_sequence", lexical=("D_ic",)),
    "Tri5_D_out,ic": System("word_sequence", lexical=_BOTH),
    "Tri5_A": System("word_sequence", lexical=("A",)),
    "Tri5_A,D_out": System("word_sequence", lexical=("A", "D_out")),
    "Tri5_A,D_ic": System("word_sequence", lexical=("A", "D_ic")),
    "Tri5_A,D_out,ic": System("word_sequence", lexical=("A", *_BOTH)),
    "Tri5^sqrt-idf": System("word_sequence", "sqrt_idf"),
    "Tri5^sqrt-idf_D_out": System("word_sequence", "sqrt_idf", ("D_out",)),
    "Tri5^sqrt-idf_D_ic": System("word_sequence", "sqrt_idf", ("D_ic",)),
    "Tri5^sqrt-idf_D_out,ic": System("word_sequence", "sqrt_idf", _BOTH),
    "Tri5^sqrt-idf_A": System("word_sequence", "sqrt_idf", ("A",)),
    "Tri5^sqrt-idf_A,D_out": System("word_sequence", "sqrt_idf", ("A", "D_out")),
    "Tri5^sqrt-idf_A,D_ic": System("word_sequence", "sqrt_idf", ("A", "D_ic")),
    "Tri5Sem^histo": System("word_sequence", "sqrt_idf", ("A", *_BOTH), pyramid=False),
    "Tri5Sem": System("word_sequence", "sqrt_idf", ("A", *_BOTH)),
}
"""The 30 systems of the paper's appendix B. Tri5Sem is the best one. The numeral is the number
of captions of a training image. The outside corpus (``out``) of the paper is the British
National Corpus, which is not free; here the user names a corpus."""

PUBLISHED = (
    Published(
        "Tri5Sem",
        SOURCE,
        {
            "annotation": {"R@1": 0.083, "R@5": 0.216, "R@10": 0.303, "median_rank": 34},
            "search": {"R@1": 0.076, "R@5": 0.207, "R@10": 0.301, "median_rank": 38},
        },
    ),
)
"""The only row of the paper's tables that we know."""

PUBLISHED_ON = ("test", "caption #2")
"""Split and pool of these figures."""


@dataclass(frozen=True)
class Grid:
    """Settings that are tried on ``dev``. All values are choices of this package.

    Attributes
    ----------
    powers : tuple of float
        Exponents of the averaged image kernel. For each pair of kernels the exponent with the
        largest sum of all recalls is chosen.
    n_components : tuple of int
    regularization : tuple of (float, float)
        Pairs for (photos, captions).
    ridge : tuple of float
        Factors of the diagonal of the captions' kernel.
    correlation_power : tuple of float
        Weights of the components, see `kernelcore.models.KCCARanker`. The paper has 0 only.
    max_rank : int
        Eigenvectors kept of each kernel.
    visual_words : tuple of mapping
        Options of `kernelcore.images.VisualWords`, one mapping for each recipe; the image
        kernel is the mean over the features of all. The first one is the paper's.
    mirror : bool
        Also compare photos with the mirror image of their cells, and take the mean of both,
        because captions rarely mention left and right. The paper does not do so.
    """

    powers: tuple[float, ...] = (1.0, 2.0)
    n_components: tuple[int, ...] = (20, 30, 45, 70, 100, 150, 200, 300, 400, 600)
    regularization: tuple[tuple[float, float], ...] = tuple(
        (photos, captions) for photos in (0.1, 0.3, 1.0) for captions in (1.0, 2.0, 4.0)
    )
    ridge: tuple[float, ...] = (1.0, 3.0)
    correlation_power: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0)
    max_rank: int = 1500
    visual_words: tuple[Mapping[str, Any], ...] = (
        {},
        {"n_words": {"colour": 512}},
        {"n_words": {"sift": 1024}},
        {"n_words": {"sift": 256}, "sift_bin_size": 6.0, "sift_step": 3},
    )
    mirror: bool = True

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if isinstance(values, tuple) and not values:
                raise ValueError(f"{name} must hold at least one value, got none")


GRID = Grid()

CHOICES: tuple[tuple[str, str, str], ...] = (
    ("photos", "original sizes", "as in the given files, longer side at most 255 pixels"),
    (
        "visual words",
        "128 colour, 256 texture and 256 SIFT words, 3 levels of cells",
        "the same; CIELAB, oriented energy of 6 orientations, SIFT on a grid of step 2 with "
        "bins of 3 pixels; k-means on 1,000 points of each of 200 training photos",
    ),
    (
        "more visual words",
        "none",
        "512 colour words, 1,024 SIFT words, and 256 SIFT words with bins of 6 pixels",
    ),
    (
        "mirror",
        "none",
        "photos are also compared with the reflection of the other photo, with cells "
        "exchanged left to right",
    ),
    ("power of the image kernel", "2 or 3, fixed for a pair", "1 or 2, chosen on dev"),
    ("spelling", "Linux spell", "none"),
    (
        "lemmas",
        "an unnamed tool",
        "rules for endings with counts of the training words",
    ),
    ("parts of speech", "an unnamed tagger", "spaCy's small English pipeline"),
    ("outside corpus", "British National Corpus", "Brown, five sentences per context"),
    ("word sequences", "pairs of spans", "pairs of tuples of positions; length 3, decay 0.5"),
    (
        "width of tag ranks",
        "not given",
        "half the mean chi-square distance of training captions",
    ),
    (
        "kernel CCA",
        "partial Gram-Schmidt",
        "the leading eigenvectors of each kernel, at most 1,500; without a ridge, eigenvalues "
        "are at least n eps (0.07 %) of the largest",
    ),
    (
        "regularisation",
        "a handful of values",
        "9 pairs of values; a pair has one value for each kernel",
    ),
    ("components", "a two-digit number of values", "10 values from 20 to 600"),
    (
        "ridge of the text kernel",
        "1 to 15, fixed for a pair",
        "1 or 3, chosen on dev; the ridge raises all eigenvalues by the same amount, so the "
        "1,500 eigenvectors stay the same",
    ),
    (
        "weights of the components",
        "none",
        "scaled by correlation^(q / 2) before the cosine, q in 0 to 4, chosen on dev",
    ),
    ("equal recalls on dev", "not given", "ties broken by the sum of the three recalls"),
)
"""Differences to the paper: part, the paper, here."""
