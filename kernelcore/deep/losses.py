"""The hinge loss, and similarities of sets with gradients."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from kernelcore._check import check_choice
from kernelcore.matching import set_similarity
from kernelcore.matching.set_similarity import SetSimilarities

Negatives: TypeAlias = Literal["hardest", "mean", "sum"]


def hinge_loss(
    similarities: Tensor,
    *,
    margin: float = 0.2,
    negatives: Negatives = "hardest",
    excluded: Tensor | None = None,
) -> Tensor:
    r"""Max-margin loss of the pairs on the diagonal against all others of the minibatch.

    With hinge :math:`h(p, n) = \max(0, \alpha - p + n)` and the hardest negatives:

    .. math::

        \frac1b \sum_i \Big( \max_{j \ne i} h(S_{ii}, S_{ij})
                           + \max_{j \ne i} h(S_{ii}, S_{ji}) \Big)

    Parameters
    ----------
    similarities : Tensor of shape (b, b)
        Similarity of text (or set of sentences) i with image (or set of images) j. Text i
        belongs to image i.
    margin : float, default 0.2
        :math:`\alpha`.
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        How the hinges of the negatives of a row or column are reduced.
    excluded : Tensor of bool, shape (b, b), optional
        Pairs off the diagonal that are not negatives, for example captions of the same
        image. A row or column without negatives adds 0.

    Returns
    -------
    Tensor
        A scalar, at least 0.

    Raises
    ------
    ValueError
        If the matrix or the mask is not square and of equal shape, or `negatives` is unknown.

    References
    ----------
    .. [1] J. Hessel, L. Lee and D. Mimno, "Unsupervised discovery of multimodal links in
       multi-image, multi-sentence documents", EMNLP 2019, equation 1.
    .. [2] F. Faghri et al., "VSE++: improving visual-semantic embeddings with hard
       negatives", BMVC 2018.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import hinge_loss
    >>> S = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    >>> float(hinge_loss(S, margin=0.25))
    0.125
    """
    check_choice("negatives", negatives, get_args(Negatives))
    if similarities.ndim != 2 or similarities.shape[0] != similarities.shape[1]:
        raise ValueError(
            f"similarities must be a square matrix, got shape {tuple(similarities.shape)}"
        )
    positive = similarities.diagonal()
    none = torch.eye(len(positive), dtype=torch.bool, device=similarities.device)
    if excluded is not None:
        if excluded.shape != similarities.shape:
            raise ValueError(
                f"excluded must have shape {tuple(similarities.shape)}, "
                f"got {tuple(excluded.shape)}"
            )
        none = none | excluded
    total = similarities.new_zeros(())
    for dim in (1, 0):  # negative images of each text, then negative texts of each image
        own = positive.unsqueeze(dim)
        hinges = (margin - own + similarities).clamp(min=0).masked_fill(none, 0.0)
        if negatives == "hardest":
            parts = hinges.amax(dim)
        else:
            parts = hinges.sum(dim)
            if negatives == "mean":
                parts = parts / (~none).sum(dim).clamp(min=1)
        total = total + parts.mean()
    return total


def relative_variance(vectors: Tensor) -> Tensor:
    r"""Mean squared distance of vectors to their mean, divided by their mean square.

    .. math:: \frac{\sum_i \lVert x_i - \mu \rVert^2}{\sum_i \lVert x_i \rVert^2}

    It is 0 if all vectors are equal, and 1 if their mean is 0.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep.losses import relative_variance
    >>> relative_variance(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    distances = (vectors - vectors.mean(0)).square().sum()
    return distances / vectors.square().sum().clamp(min=torch.finfo(vectors.dtype).tiny)


def set_similarities(
    similarities: Tensor,
    row_offsets: npt.ArrayLike,
    col_offsets: npt.ArrayLike,
    *,
    method: str = "AP",
    k: int | str | None = None,
    n_threads: int | None = None,
) -> Tensor:
    r"""Similarity of every set of rows with every set of columns, with gradients.

    The values are those of `kernelcore.matching.set_similarity`, for all pairs of sets in one
    compiled call. The gradient flows through the entries that the maxima or the assignment
    select, with their weights:

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
        Start of each set of columns, and m.
    method : {"AP", "DC", "TK"}, default "AP"
    k : int or "half", optional
        Number of links or maxima, see `kernelcore.matching.set_similarity`.
    n_threads : int, optional
        Threads of the matching; the default is every core this process may run on.

    Returns
    -------
    Tensor of shape (n_row_sets, n_col_sets)
        On the device and in the dtype of the input; float32 for float16 and bfloat16.

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
