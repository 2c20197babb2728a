"""Models that learn by gradients, in torch (extra ``deep``).

Encoders turn sentences and image features into vectors of one space, similarities compare
them or whole sets of them, losses ask that what belongs together is more alike than what does
not, and `train` runs any of this, to the same bits for the same seed on a CPU.
`DocumentLinker` puts it together: it learns which sentences and images of a document belong
together from nothing but documents.
"""

from kernelcore import _extras

_extras.require("torch")

from kernelcore.deep.documents import DocumentLinker  # noqa: E402
from kernelcore.deep.encoders import ImageEncoder, SentenceEncoder  # noqa: E402
from kernelcore.deep.joint_space import JointSpace  # noqa: E402
from kernelcore.deep.losses import hinge_loss  # noqa: E402
from kernelcore.deep.randomness import dropout, seeded_generator  # noqa: E402
from kernelcore.deep.schedules import Pace, Plateau, Schedule  # noqa: E402
from kernelcore.deep.sentences import Sentences  # noqa: E402
from kernelcore.deep.similarities import set_similarities  # noqa: E402
from kernelcore.deep.training import History, Objective, train  # noqa: E402

__all__ = [
    "DocumentLinker",
    "History",
    "ImageEncoder",
    "JointSpace",
    "Objective",
    "Pace",
    "Plateau",
    "Schedule",
    "SentenceEncoder",
    "Sentences",
    "dropout",
    "hinge_loss",
    "seeded_generator",
    "set_similarities",
    "train",
]
