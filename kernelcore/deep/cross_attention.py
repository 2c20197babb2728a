"""Stacked cross attention: each part of one side looks for its counterpart on the other."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from kernelcore._validation import check_choice

POOLINGS = ("logsumexp", "mean")

_SLOPE = 0.1
_TINY = 1e-8


def cross_attention(
    products: Tensor,
    context_gram: Tensor,
    query_mask: Tensor,
    context_mask: Tensor,
    *,
    temperature: float,
    pooling: str = "logsumexp",
    sharpness: float = 6.0,
) -> Tensor:
    r"""Similarity of sets of queries with sets of contexts by attention.

    With the cosine :math:`s_{cq}` of context c and query q, all vectors of length 1:

    .. math::

        \tilde{s}_{cq} &= \lambda(s_{cq}) \Big/ \sqrt{\textstyle\sum_{q'} \lambda(s_{cq'})^2},
            \quad \lambda(s) = \max(s, 0.1 s) \\
        a_q &= \textstyle\sum_c \alpha_{cq} c, \quad
            \alpha_{cq} = e^{T \tilde{s}_{cq}} \Big/ \sum_{c'} e^{T \tilde{s}_{c'q}} \\
        S &= \frac1\gamma \log \sum_q e^{\gamma \cos(q, a_q)}
            \quad\text{or}\quad \frac1{|Q|} \sum_q \cos(q, a_q)

    The attended vectors are never computed: with :math:`G_{cc'} = c \cdot c'`,

    .. math:: \cos(q, a_q) = \sum_c \alpha_{cq} s_{cq} \Big/ \sqrt{\alpha_q^\top G \alpha_q},

    which takes as many operations for a pair of query and set as the set has pairs, instead
    of as many as a vector is long for each of its members.

    Parameters
    ----------
    products : Tensor of shape (n_context_sets, n_contexts, n_query_sets, n_queries)
        :math:`s_{cq}` of all parts of all sets.
    context_gram : Tensor of shape (n_context_sets, n_contexts, n_contexts)
        G of each set.
    query_mask : Tensor of bool, shape (n_query_sets, n_queries)
        Which queries there are: sets with fewer than the most are padded. Each has at least
        one.
    context_mask : Tensor of bool, shape (n_context_sets, n_contexts)
        The same for contexts.
    temperature : float
        T; 9 where words look at regions, 4 where regions look at words [1]_.
    pooling : {"logsumexp", "mean"}, default "logsumexp"
    sharpness : float, default 6.0
        :math:`\gamma` of the first pooling.

    Returns
    -------
    Tensor of shape (n_context_sets, n_query_sets)

    Raises
    ------
    ValueError
        If `pooling` is unknown or shapes do not fit together.

    References
    ----------
    .. [1] K.-H. Lee et al., "Stacked cross attention for image-text matching", ECCV 2018.

    Examples
    --------
    A caption of two words, one of which is in the image:

    >>> import torch
    >>> from kernelcore.deep import cross_attention
    >>> regions, words = torch.eye(3)[:2], torch.eye(3)[1:]
    >>> S = cross_attention(
    ...     (regions @ words.T).reshape(1, 2, 1, 2),
    ...     (regions @ regions.T).reshape(1, 2, 2),
    ...     torch.ones(1, 2, dtype=torch.bool),
    ...     torch.ones(1, 2, dtype=torch.bool),
    ...     temperature=9.0,
    ...     pooling="mean",
    ... )
    >>> round(float(S), 3)
    0.5
    """
    check_choice("pooling", pooling, POOLINGS)
    if products.ndim != 4:
        raise ValueError(f"products must be 4-D, got shape {tuple(products.shape)}")
    n_sets, n_contexts, n_query_sets, n_queries = products.shape
    expected = (
        ("context_gram", context_gram, (n_sets, n_contexts, n_contexts)),
        ("query_mask", query_mask, (n_query_sets, n_queries)),
        ("context_mask", context_mask, (n_sets, n_contexts)),
    )
    for name, tensor, shape in expected:
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")
    raised = F.leaky_relu(products, _SLOPE) * query_mask
    lengths = raised.square().sum(3, keepdim=True).add(_TINY**2).sqrt()
    logits = (raised * (temperature / lengths)).flatten(2)
    logits = logits.masked_fill(~context_mask.unsqueeze(2), -torch.inf)
    weights = logits.softmax(1)
    along = (weights * products.flatten(2)).sum(1)
    squared = (weights * (context_gram @ weights)).sum(1)
    cosines = (along * squared.clamp(min=_TINY).rsqrt()).reshape(-1, n_query_sets, n_queries)
    pooled: Tensor
    if pooling == "mean":
        pooled = (cosines * query_mask).sum(2) / query_mask.sum(1)
    else:
        sharp = (sharpness * cosines).masked_fill(~query_mask, -torch.inf)
        pooled = sharp.logsumexp(2) / sharpness
    return pooled
