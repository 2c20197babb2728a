"""Models that are trained by gradient descent, in torch (extra ``deep``).

Each published model has its own file. `EmbeddingRanker` compares one vector of an image with
one vector of a caption. `CrossAttentionRanker` lets words attend to regions, or regions to
words. `OrderRanker` places captions below images in a partial order. `FragmentRanker` compares
regions of images with fragments of sentences. `DocumentLinker` learns links between the
sentences and images of documents without link labels. `Captioner` writes captions, and
ranks by their probability. All are trained with bit-identical results for the same seed and
number of threads on a CPU.
"""

from kernelcore import _extras

_extras.require("torch")

from kernelcore.deep.attention import CrossAttentionRanker, cross_attention  # noqa: E402
from kernelcore.deep.captioner import Captioner  # noqa: E402
from kernelcore.deep.documents import DocumentLinker  # noqa: E402
from kernelcore.deep.embedding import EmbeddingRanker  # noqa: E402
from kernelcore.deep.fragment_space import alignment_loss, fragment_similarities  # noqa: E402
from kernelcore.deep.fragments import FragmentRanker  # noqa: E402
from kernelcore.deep.losses import hinge_loss, set_similarities  # noqa: E402
from kernelcore.deep.order import OrderRanker, join_captions, order_similarities  # noqa: E402

__all__ = [
    "Captioner",
    "CrossAttentionRanker",
    "DocumentLinker",
    "EmbeddingRanker",
    "FragmentRanker",
    "OrderRanker",
    "alignment_loss",
    "cross_attention",
    "fragment_similarities",
    "hinge_loss",
    "join_captions",
    "order_similarities",
    "set_similarities",
]
