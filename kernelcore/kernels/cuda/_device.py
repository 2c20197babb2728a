"""Access to the GPU through Numba."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

from kernelcore import _extras


def usable_cuda(name: str) -> ModuleType:
    """Return ``numba.cuda``, or raise an error that says what is missing.

    `name` is the function of `kernelcore.kernels` that computes the same on the CPU.
    """
    elsewhere = f"kernelcore.kernels.{name} does the same work on the CPU"
    try:
        cuda = _extras.require("numba.cuda")
    except _extras.MissingExtraError as error:
        raise _extras.MissingExtraError(f"{error}; {elsewhere}") from error
    if not cuda.is_available():
        trouble = cuda.cuda_error()
        reason = " ".join(str(trouble).split()) if trouble else "libNVVM was not found"
        raise RuntimeError(
            f"this needs an NVIDIA GPU, its driver and the CUDA toolkit: {reason}; {elsewhere}"
        )
    return cuda


def launch(kernel: Any, grid: tuple[int, int], block: tuple[int, int], *arguments: Any) -> None:
    """Start a kernel without Numba's warning about few blocks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Grid size")
        configured = kernel[grid, block]
    configured(*arguments)
