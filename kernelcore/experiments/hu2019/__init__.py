"""Binary image selection (Hu, Misra and van der Maaten, 2019), and what it was proposed for.

Visual-semantic embeddings and stacked cross attention rank photos and captions, and tell
which of two photos a caption describes; beside them stand kernel canonical correlations of
the same features, the baseline that the paper does not have.

Features, regions and training data are not those of the paper: see `CHOICES`.
"""

from kernelcore.experiments.hu2019.kernel_models import KERNEL_SYSTEMS
from kernelcore.experiments.hu2019.protocol import run
from kernelcore.experiments.hu2019.systems import CHOICES, PUBLISHED, SYSTEMS, System

__all__ = ["CHOICES", "KERNEL_SYSTEMS", "PUBLISHED", "SYSTEMS", "System", "run"]
