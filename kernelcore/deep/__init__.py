"""Models that learn by gradients, in torch (extra ``deep``).

Encoders turn sentences and image features into vectors of one space, similarities compare
them or whole sets of them, losses ask that what belongs together is more alike than what does
not, and `train` runs any of this, to the same bits for the same seed on a CPU.
`DocumentLinker` puts it together: it learns which sentences and images of a document belong
together from nothing but documents. `FragmentRanker` compares regions of images with
fragments of sentences, and ranks by how well they align. `EmbeddingRanker` has one vector for
an image and one for a caption, and `CrossAttentionRanker` lets words look at regions, or
regions at words. `OrderRanker` places captions below the images that they describe.
"""

from kernelcore import _extras

_extras.require("torch")

from kernelcore.deep.attention_ranker import CrossAttentionRanker  # noqa: E402
from kernelcore.deep.cross_attention import cross_attention  # noqa: E402
from kernelcore.deep.document_timing import StepTime, step_times  # noqa: E402
from kernelcore.deep.documents import DocumentLinker  # noqa: E402
from kernelcore.deep.embedding_ranker import EmbeddingRanker  # noqa: E402
from kernelcore.deep.encoders import ImageEncoder, SentenceEncoder  # noqa: E402
from kernelcore.deep.fragment_encoders import (  # noqa: E402
    FragmentEncoder,
    MeanEncoder,
    RegionEncoder,
)
from kernelcore.deep.fragment_losses import alignment_loss, fragment_similarities  # noqa: E402
from kernelcore.deep.fragment_ranker import FragmentRanker, RegionMatch  # noqa: E402
from kernelcore.deep.joint_space import JointSpace  # noqa: E402
from kernelcore.deep.losses import hinge_loss  # noqa: E402
from kernelcore.deep.order_ranker import OrderRanker  # noqa: E402
from kernelcore.deep.order_similarities import (  # noqa: E402
    order_similarities,
    relative_variance,
)
from kernelcore.deep.order_texts import join_captions  # noqa: E402
from kernelcore.deep.randomness import dropout, seeded_generator  # noqa: E402
from kernelcore.deep.schedules import (  # noqa: E402
    BatchDoubling,
    Cooldown,
    Pace,
    Plateau,
    Schedule,
)
from kernelcore.deep.sentences import Sentences  # noqa: E402
from kernelcore.deep.similarities import set_similarities  # noqa: E402
from kernelcore.deep.training import History, Objective, train  # noqa: E402
from kernelcore.deep.tree_encoder import TreeEncoder  # noqa: E402

__all__ = [
    "BatchDoubling",
    "Cooldown",
    "CrossAttentionRanker",
    "DocumentLinker",
    "EmbeddingRanker",
    "FragmentEncoder",
    "FragmentRanker",
    "History",
    "ImageEncoder",
    "JointSpace",
    "MeanEncoder",
    "Objective",
    "OrderRanker",
    "Pace",
    "Plateau",
    "RegionEncoder",
    "RegionMatch",
    "Schedule",
    "SentenceEncoder",
    "Sentences",
    "StepTime",
    "TreeEncoder",
    "alignment_loss",
    "cross_attention",
    "dropout",
    "fragment_similarities",
    "hinge_loss",
    "join_captions",
    "order_similarities",
    "relative_variance",
    "seeded_generator",
    "set_similarities",
    "step_times",
    "train",
]
