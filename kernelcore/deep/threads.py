"""How many threads torch uses, for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kernelcore._parallel import resolve_n_threads


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Let torch use as many threads as the package does, and then as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(resolve_n_threads(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
