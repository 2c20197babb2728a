"""Order embeddings of images and their joined captions (Khojasteh, 2019).

An image and all its captions as one text are compared by an order: the text should lie below
the image. Beside the thesis' model run variants that leave out one part of it, also with the
order the other way round (Vendrov et al. 2016) and with none. What lies below what is shown.

Features, training data and sizes are not those of the thesis: see `CHOICES`.
"""

from kernelcore.experiments.khojasteh2019.protocol import run
from kernelcore.experiments.khojasteh2019.systems import CHOICES, PUBLISHED, SYSTEMS, System

__all__ = ["CHOICES", "PUBLISHED", "SYSTEMS", "System", "run"]
