"""How alike sets are, as torch functions around the compiled matching."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from kernelcore.matching import set_similarity
from kernelcore.matching.set_similarity import SetSimilarities


def set_similarities(
    similarities: Tensor,
    row_offsets: npt.ArrayLike,
    col_offsets: npt.ArrayLike,
    *,
    method: str = "AP",
    k: int | str | None = None,
    n_threads: int | None = None,
) -> Tensor:
    r"""Similarity of every set of rows with every set of columns, for training.

    It is `kernelcore.matching.set_similarity`, all pairs in one compiled call; the gradient
    flows through the entries that the maxima or the assignment select, with their weights:

    .. math::

        \frac{\partial\, \mathrm{sim}(a, b)}{\partial S_{ij}} =
            w_e \text{ where } e = (i, j) \text{ is selected, else } 0

    This is the derivative wherever the selection does not change, which is almost everywhere.

    Parameters
    ----------
    similarities : Tensor of shape (n, m)
        Similarities of all sentences with all images of a minibatch, on any device.
    row_offsets : array_like of int, shape (n_row_sets + 1,)
        Start of each set of rows, and n.
    col_offsets : array_like of int, shape (n_col_sets + 1,)
        The same for columns.
    method : {"AP", "DC", "TK"}, default "AP"
    k : int or "half", optional
        Number of links or maxima, see `kernelcore.matching.set_similarity`.
    n_threads : int, optional
        Threads of the matching; the default is every core this process may run on.

    Returns
    -------
    Tensor of shape (n_row_sets, n_col_sets)
        On the device and in the dtype of the input; float16 and bfloat16 come back as
        float32.

    Raises
    ------
    TypeError, ValueError
        As `kernelcore.matching.set_similarity`.

    See Also
    --------
    kernelcore.matching.set_similarity : The definitions.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import set_similarities
    >>> S = torch.tensor([[0.9, 0.1], [0.8, 0.2]], requires_grad=True)
    >>> set_similarities(S, [0, 2], [0, 2], method="AP").sum().backward()
    >>> S.grad
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    if similarities.dtype not in (torch.float32, torch.float64):
        similarities = similarities.float()
    values: Tensor = _SelectedEntries.apply(  # type: ignore[no-untyped-call]
        similarities,
        (row_offsets, col_offsets),
        {"method": method, "k": k, "n_threads": n_threads},
    )
    return values


class _Context(FunctionCtx):
    selected: SetSimilarities


class _SelectedEntries(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: _Context,
        similarities: Tensor,
        offsets: tuple[npt.ArrayLike, npt.ArrayLike],
        options: dict[str, Any],
    ) -> Tensor:
        ctx.selected = set_similarity(
            similarities.detach().cpu().numpy(), *offsets, return_selected=True, **options
        )
        return torch.from_numpy(ctx.selected.values).to(similarities.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, upstream: Tensor) -> Any:
        gradient = ctx.selected.gradient(upstream.cpu().numpy())
        return torch.from_numpy(gradient).to(upstream.device), None, None
