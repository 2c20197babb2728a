"""Gram matrices on an NVIDIA GPU, compiled by Numba (extra ``jit``).

Each function does what its namesake in `kernelcore.kernels` does, NumPy in and NumPy out, and
says in one sentence what is missing where there is no GPU.
"""

from kernelcore.kernels.cuda.histogram_intersection import histogram_intersection
from kernelcore.kernels.cuda.word_sequence import word_sequence

__all__ = ["histogram_intersection", "word_sequence"]
