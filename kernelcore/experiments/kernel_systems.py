"""Systems of kernels of Hodosh et al. (2013), and the settings that are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from kernelcore.experiments.scores import printed
from kernelcore.kcca.basis import Decomposition

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

_AS_PRINTED = ("NN_BoW5", "NN_Tri5best", "BoW5", "Tri5", "Tri5Sem")
PRINTED: Mapping[str, System] = {printed(name): SYSTEMS[name] for name in _AS_PRINTED}
"""Systems with the paper's own choices, see `PRINTED_GRID`. They need four kernels of captions,
and share those of photos."""


@dataclass(frozen=True)
class Grid:
    """Settings that are tried on ``dev``, and how photos and captions are described.

    All values are choices of this package, except where it says so.

    Attributes
    ----------
    powers : tuple of float
        Exponents of the averaged image kernel. For each pair of kernels the exponent with the
        largest sum of all recalls is chosen.
    n_components : tuple of int
    regularization : tuple of (float, float)
        Pairs for (photos, captions).
    ridge : tuple of float
        Factors of the diagonal of the captions' kernel. With "gram_schmidt" one is chosen for
        each pair of kernels as the exponent is, otherwise each setting has one of its own.
    correlation_power : tuple of float
        Weights of the components, see `kernelcore.models.KCCARanker`. The paper has 0 only.
    max_rank : int
        Rank of each kernel.
    visual_words : tuple of mapping
        Options of `kernelcore.images.VisualWords`, one mapping for each recipe; the image
        kernel is the mean over the features of all. The first one is the paper's.
    mirror : bool
        Also compare photos with the mirror image of their cells, and take the mean of both,
        because captions rarely mention left and right. The paper does not do so.
    decomposition : {"eigen", "gram_schmidt"}
        How kernels are factorised, see `kernelcore.kcca.kernel_basis`. The paper has partial
        Gram-Schmidt.
    spelling : bool
        Correct the spelling of captions, if there is a list of words. The paper does so.
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
    decomposition: Decomposition = "eigen"
    spelling: bool = False


GRID = Grid()

_TIED = tuple((kappa, kappa) for kappa in (0.1, 0.3, 1.0, 2.0, 4.0))

PRINTED_GRID = Grid(
    powers=(2.0, 3.0),
    regularization=_TIED,
    ridge=(1.0, 5.0, 10.0, 15.0),
    correlation_power=(0.0,),
    max_rank=3000,
    visual_words=({},),
    mirror=False,
    decomposition="gram_schmidt",
    spelling=True,
)
"""The paper's choices where they are known. The values of the regularisation, the ridge and the
numbers of components lost their digits in the text that we have."""
