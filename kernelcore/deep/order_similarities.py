"""How far images and texts are from their order, and how far they are spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

_ENTRIES_AT_ONCE = {"cpu": 1 << 19}  # what a core's cache holds
_ENTRIES_ON_OTHERS = 1 << 25


def order_similarities(images: Tensor, texts: Tensor) -> Tensor:
    r"""Similarity of every image with every text: less the penalty of a text above the image.

    .. math:: S(T, I) = -\lVert \max(0, v_I - v_T) \rVert^2

    A text lies below an image where no entry of its vector is smaller; then the penalty is 0.
    The order is not symmetric: exchange the arguments, and transpose, for that of images that
    lie below texts. All pairs are computed block by block, and so is the gradient: memory
    holds a block of differences, never those of all pairs.

    Parameters
    ----------
    images : Tensor of shape (n_images, n_components)
    texts : Tensor of shape (n_texts, n_components)

    Returns
    -------
    Tensor of shape (n_images, n_texts)
        At most 0; float32, or float64 where the vectors are.

    Raises
    ------
    ValueError
        If the vectors are not of one length.

    References
    ----------
    .. [1] I. Vendrov, R. Kiros, S. Fidler and R. Urtasun, "Order-embeddings of images and
       language", ICLR 2016, equation 2.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import order_similarities
    >>> images = torch.tensor([[1.0, 0.0], [2.0, 2.0]])
    >>> texts = torch.tensor([[1.0, 3.0], [0.0, 0.0]])
    >>> order_similarities(images, texts)
    tensor([[ 0., -1.],
            [-1., -8.]])
    """
    if images.ndim != 2 or texts.ndim != 2 or images.shape[1] != texts.shape[1]:
        raise ValueError(
            "images and texts must be rows of one length, got shapes "
            f"{tuple(images.shape)} and {tuple(texts.shape)}"
        )
    dtype = torch.promote_types(torch.promote_types(images.dtype, texts.dtype), torch.float32)
    values: Tensor = _NegatedPenalties.apply(  # type: ignore[no-untyped-call]
        images.to(dtype), texts.to(dtype)
    )
    return values


def relative_variance(vectors: Tensor) -> Tensor:
    r"""Mean squared distance of vectors to their mean, as a share of their mean square.

    .. math:: \frac{\sum_i \lVert x_i - \mu \rVert^2}{\sum_i \lVert x_i \rVert^2}

    Parameters
    ----------
    vectors : Tensor of shape (n_vectors, n_components)

    Returns
    -------
    Tensor
        A scalar between 0, for equal vectors, and 1, for those with mean 0.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import relative_variance
    >>> relative_variance(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    distances = (vectors - vectors.mean(0)).square().sum()
    return distances / vectors.square().sum().clamp(min=torch.finfo(vectors.dtype).tiny)


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, Tensor]


class _NegatedPenalties(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Context, images: Tensor, texts: Tensor) -> Tensor:
        ctx.save_for_backward(images, texts)
        penalties = images.new_empty((len(images), len(texts)))
        for rows, excess in _excesses(images, texts):
            torch.sum(excess.square_(), -1, out=penalties[rows])
        return 0 - penalties  # 0 stays 0, not -0

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, upstream: Tensor) -> Any:
        images, texts = ctx.saved_tensors
        by_images, by_texts = torch.empty_like(images), torch.zeros_like(texts)
        weights = 2 * upstream
        for rows, excess in _excesses(images, texts):
            part = weights[rows]
            by_images[rows] = torch.bmm(part.unsqueeze(1), excess).squeeze(1)
            by_texts += excess.mul_(part.unsqueeze(2)).sum(0)
        return by_images.neg_(), by_texts


def _excesses(images: Tensor, texts: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """By how much some images exceed all texts, entry by entry; images block by block."""
    at_once = _ENTRIES_AT_ONCE.get(images.device.type, _ENTRIES_ON_OTHERS)
    size = max(1, at_once // max(1, texts.numel()))
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, (images[rows].unsqueeze(1) - texts).clamp_(min=0)
