"""Deep fragment embeddings (Karpathy, Joulin and Fei-Fei, NIPS 2014).

Regions of photos and fragments of captions are embedded into one space and trained to align;
photos and captions are then ranked by their alignments. Beside the paper's model run its
ablations and the two systems that it compares with, DeViSE and SDT-RNN, on the same features.

Features, regions and word vectors are not those of the paper: see `CHOICES`.
"""

from kernelcore.experiments.karpathy2014.protocol import run
from kernelcore.experiments.karpathy2014.systems import CHOICES, PUBLISHED, SYSTEMS, System

__all__ = ["CHOICES", "PUBLISHED", "SYSTEMS", "System", "run"]
