"""Gram matrices on an NVIDIA GPU, compiled by Numba (extra ``jit``).

Each function computes the same as the function of its name in `kernelcore.kernels`, from and to
NumPy arrays. Without a GPU it raises an error that says what is missing.
"""

from kernelcore.kernels.cuda.histogram_intersection import histogram_intersection
from kernelcore.kernels.cuda.word_sequence import word_sequence

__all__ = ["histogram_intersection", "word_sequence"]
