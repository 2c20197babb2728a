"""Building blocks of all models: random generators, dropout, affine layers, threads of torch.

All random numbers come from explicit generators. The global generators of torch are never
used, so training changes no random numbers elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore._check import check_rng
from kernelcore._threads import resolve_n_threads

_Module = TypeVar("_Module", bound=nn.Module)


def seeded_generator(
    rng: np.random.Generator | int | None, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Return a torch generator that is seeded from a NumPy one.

    Parameters
    ----------
    rng : numpy.random.Generator, int or None
        Source of the seed. An integer gives the same generator in every call; each call
        with the same NumPy generator draws another seed; None takes fresh entropy.
    device : torch.device or str, default "cpu"
        Device that the numbers are drawn on.

    Returns
    -------
    torch.Generator

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import seeded_generator
    >>> first, again = (torch.rand(2, generator=seeded_generator(7)) for _ in range(2))
    >>> bool((first == again).all())
    True
    """
    seed = int(check_rng("rng", rng).integers(2**63))
    return torch.Generator(device).manual_seed(seed)


def permutation(length: int, generator: torch.Generator) -> list[int]:
    """Return the integers 0 to ``length - 1`` in random order."""
    order = torch.randperm(length, generator=generator, device=generator.device)
    positions: list[int] = order.tolist()
    return positions


def dropout(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Set entries to zero at random and rescale the others, so that the mean is unchanged.

    Parameters
    ----------
    x : Tensor
    p : float
        Probability that an entry is set to zero, in [0, 1).
    generator : torch.Generator or None
        Draws the entries. None disables dropout, for evaluation: `x` is returned as it is.

    Returns
    -------
    Tensor of the shape of x

    Raises
    ------
    ValueError
        If `p` is not in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import dropout, seeded_generator
    >>> dropped = dropout(torch.ones(1000), 0.5, seeded_generator(0))
    >>> sorted(set(dropped.tolist()))
    [0.0, 2.0]
    """
    if not 0 <= p < 1:
        raise ValueError(f"p must be a number in [0, 1), got {p}")
    if generator is None or p == 0:
        return x
    kept = torch.rand(x.shape, generator=generator, device=generator.device) >= p
    return x * (kept.to(x.device) / (1 - p)).to(x.dtype)


def uniform_module(
    kind: Callable[..., _Module], *sizes: int, bound: float, generator: torch.Generator
) -> _Module:
    """Make a module whose parameters are uniform in [-bound, bound].

    The module is made without memory first, so that its constructor draws nothing from the
    global generator.
    """
    module = kind(*sizes, device="meta").to_empty(device=generator.device)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.rand(parameter.shape, generator=generator, device=generator.device)
            parameter.copy_((2 * drawn - 1) * bound)
    return module


def linear(n_inputs: int, n_outputs: int, *, generator: torch.Generator) -> nn.Linear:
    """Make an affine layer with initial weights uniform in +-1 / sqrt(n_inputs)."""
    bound = 1 / math.sqrt(n_inputs)
    return uniform_module(nn.Linear, n_inputs, n_outputs, bound=bound, generator=generator)


@contextmanager
def torch_threads(n_threads: int | None) -> Iterator[None]:
    """Set the number of threads of torch within a block, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(resolve_n_threads(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
