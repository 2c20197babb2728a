"""Losses over a minibatch: what belongs together must be more alike than what does not."""

from __future__ import annotations

import torch
from torch import Tensor

from kernelcore._validation import check_choice

NEGATIVES = ("hardest", "mean", "sum")


def hinge_loss(
    similarities: Tensor,
    *,
    margin: float = 0.2,
    negatives: str = "hardest",
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
        Similarity of the i-th text (or set of sentences) with the j-th image (or set of
        images); i belongs to i.
    margin : float, default 0.2
        :math:`\alpha`.
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        Over which of the negatives of a row or column the hinges are taken.
    excluded : Tensor of bool, shape (b, b), optional
        Pairs that are no negatives although they are off the diagonal: captions of the same
        image, say. A row or column without negatives adds nothing.

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
    check_choice("negatives", negatives, NEGATIVES)
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
    for dim in (1, 0):  # other images of a text, then other texts of an image
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
