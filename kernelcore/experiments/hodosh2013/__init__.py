"""Framing image description as a ranking task (Hodosh, Young and Hockenmaier, JAIR 47, 2013).

Photos are compared by spatial pyramids of colour, texture and SIFT words, captions by text
kernels; kernel CCA or a nearest neighbour ranks. Training images have all their captions, the
pools of the other splits one caption per image. For each system and each task the five best
settings on the development split by R@1, R@5 and R@10 are combined by Borda's count. Nothing
is chosen on the split that is reported.

What the paper leaves open is chosen by this package and named in `GRID`.
"""

from kernelcore.experiments.hodosh2013.protocol import run
from kernelcore.experiments.hodosh2013.systems import GRID, PUBLISHED, SYSTEMS, Grid, System

__all__ = ["GRID", "PUBLISHED", "SYSTEMS", "Grid", "System", "run"]
