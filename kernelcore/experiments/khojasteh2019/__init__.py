"""Order embeddings of images and their joined captions (Khojasteh, 2019).

An image and all its captions as one text are compared by an order: the text should lie below
the image. Beside the thesis' model run variants of it: with the variance in the loss, without
an order, and with single captions. What lies below what is shown.

Features, training data and sizes are not those of the thesis: see `CHOICES`.
"""

from kernelcore.experiments.khojasteh2019.protocol import run
from kernelcore.experiments.khojasteh2019.systems import CHOICES, PUBLISHED, SYSTEMS, System

__all__ = ["CHOICES", "PUBLISHED", "SYSTEMS", "System", "run"]
