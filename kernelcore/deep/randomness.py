"""Random numbers from generators of our own: torch's global ones are never touched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore._validation import check_rng


def seeded_generator(
    rng: np.random.Generator | int | None, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Return a torch generator that continues a NumPy one.

    Parameters
    ----------
    rng : numpy.random.Generator, int or None
        A seed gives the same numbers in every call, a generator goes on drawing.
    device : torch.device or str, default "cpu"
        Where the numbers will be drawn.

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
    """Return the numbers below `length` in random order."""
    order = torch.randperm(length, generator=generator, device=generator.device)
    places: list[int] = order.tolist()
    return places


def dropout(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Set a share of the entries to zero and scale the others so that the mean stays.

    Parameters
    ----------
    x : Tensor
    p : float
        Probability of each entry to become 0, in [0, 1).
    generator : torch.Generator or None
        Draws the entries. None stands for evaluation: `x` comes back as it is.

    Returns
    -------
    Tensor of the shape of x

    Raises
    ------
    ValueError
        If `p` is below 0, or 1 or more.

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
    kind: Callable[..., nn.Module], *sizes: int, bound: float, generator: torch.Generator
) -> nn.Module:
    """Make a module whose parameters are uniform in [-bound, bound].

    Its constructor is kept from drawing them from the global generator first.
    """
    module = kind(*sizes, device="meta").to_empty(device=generator.device)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.rand(parameter.shape, generator=generator, device=generator.device)
            parameter.copy_((2 * drawn - 1) * bound)
    return module
