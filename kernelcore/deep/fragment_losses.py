"""How alike images and sentences are, and what their parts are trained for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

Offsets = npt.NDArray[np.int64]


def fragment_similarities(
    products: Tensor, region_offsets: Offsets, fragment_offsets: Offsets, *, smoothing: float
) -> Tensor:
    r"""Similarity of every image with every sentence from the products of their parts.

    .. math::

        S_{kl} = \frac1{|g_k| (|g_l| + n)} \sum_{i \in g_k} \sum_{j \in g_l}
            \max(0, v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
        :math:`v_i^\top s_j` of the regions of all images and the fragments of all sentences.
    region_offsets : ndarray of int64, shape (n_images + 1,)
        Start of the regions of each image, and the end of the last.
    fragment_offsets : ndarray of int64, shape (n_sentences + 1,)
        The same for the fragments of each sentence.
    smoothing : float
        n: without it sentences of few fragments are at an advantage.

    Returns
    -------
    Tensor of shape (n_images, n_sentences)
        A sentence without fragments, or an image without regions, has similarity 0.

    Notes
    -----
    Both sums are products with a matrix of memberships: exact for any numbers of parts, and
    the same bits every time.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014, equation 6.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from kernelcore.deep import fragment_similarities
    >>> products = torch.tensor([[2.0, -1.0, 4.0], [1.0, 3.0, -5.0]])
    >>> fragment_similarities(products, np.array([0, 2]), np.array([0, 2, 3]), smoothing=1.0)
    tensor([[1., 1.]])
    """
    return of_sentences(of_images(products, region_offsets), fragment_offsets, smoothing)


def of_images(products: Tensor, region_offsets: Offsets) -> Tensor:
    """Mean positive part of the products of each image, shape (n_images, n_fragments)."""
    return _averages(region_offsets, 0.0, products) @ F.relu(products)


def of_sentences(means: Tensor, fragment_offsets: Offsets, smoothing: float) -> Tensor:
    """Smoothed mean over the fragments of each sentence, shape (n_images, n_sentences)."""
    return means @ _averages(fragment_offsets, smoothing, means).T


def alignment_loss(
    products: Tensor,
    region_offsets: Offsets,
    fragment_offsets: Offsets,
    *,
    multiple_instance: bool,
    balanced: bool = False,
) -> Tensor:
    r"""Hinge loss of every region with every fragment; image k belongs to sentence k.

    .. math:: \frac1b \sum_i \sum_j \max(0, 1 - y_{ij} v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
    region_offsets, fragment_offsets : ndarray of int64, shape (b + 1,)
        Start of the regions of each image and of the fragments of each sentence.
    multiple_instance : bool
        If False, :math:`y_{ij}` is 1 for every region and fragment of the same pair. If
        True, it is the sign of their product, and 1 for the greatest product of a fragment
        if none is positive: at least one region shows the fragment, the others need not. It
        is -1 across pairs in both cases.
    balanced : bool, default False
        Take, for each fragment, the mean over its positive regions plus the mean over its
        negative ones, and then the mean over all fragments. In a minibatch of b pairs the
        negatives are b - 1 times as many, and without this they decide alone.

    Returns
    -------
    Tensor
        A scalar, at least 0.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014, equations 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from kernelcore.deep import alignment_loss
    >>> products = torch.tensor([[0.5], [-0.5]])
    >>> regions, fragments = np.array([0, 2]), np.array([0, 1])
    >>> [float(alignment_loss(products, regions, fragments, multiple_instance=mil))
    ...  for mil in (False, True)]
    [2.0, 1.0]
    """
    rows, inside = _bags(region_offsets, fragment_offsets, products)
    own = products.gather(0, rows)
    positive = _instances(own.detach(), inside) if multiple_instance else inside
    # each product is first taken for a negative one: positives are few among them
    negatives = F.relu(1 + products).sum(0)
    negatives = negatives - (F.relu(1 + own) * positive).sum(0)
    positives = (F.relu(1 - own) * positive).sum(0)
    if not balanced:
        return (positives + negatives).sum() / (len(region_offsets) - 1)
    n_positive = positive.sum(0)
    n_negative = len(products) - n_positive
    means = positives / n_positive.clamp(min=1) + negatives / n_negative.clamp(min=1)
    return means.sum() / max(products.shape[1], 1)


def _bags(
    region_offsets: Offsets, fragment_offsets: Offsets, products: Tensor
) -> tuple[Tensor, Tensor]:
    """Rows of the regions of each fragment's own image, and which of them are no padding.

    Both have a column per fragment and as many rows as an image has regions at most.
    """
    counts = np.diff(region_offsets)
    places = torch.arange(int(counts.max(initial=0)), device=products.device).unsqueeze(1)
    pairs = _owners(fragment_offsets, products)
    starts, ends = (
        torch.from_numpy(part).to(products.device)[pairs]
        for part in (region_offsets[:-1], region_offsets[1:])
    )
    rows = starts + places
    return rows.clamp(max=len(products) - 1), rows < ends


def _instances(own: Tensor, inside: Tensor) -> Tensor:
    """Which members of each fragment's bag count as showing it."""
    instances = inside & (own > 0)
    best = own.masked_fill(~inside, -torch.inf).argmax(0)
    columns = torch.nonzero(inside.any(0) & ~instances.any(0)).squeeze(1)
    instances[best[columns], columns] = True
    return instances


def _owners(offsets: Offsets, like: Tensor) -> Tensor:
    """Which image or sentence each part belongs to."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return torch.from_numpy(owners).to(like.device)


def _averages(offsets: Offsets, smoothing: float, like: Tensor) -> Tensor:
    """Matrix that divides the sum over the parts of each owner by their smoothed number."""
    counts = np.diff(offsets)
    weights = torch.from_numpy(1 / np.maximum(counts + smoothing, np.finfo(float).tiny))
    owners = _owners(offsets, like)
    places = torch.arange(len(owners), device=like.device)
    averages = like.new_zeros(len(counts), len(owners))
    averages[owners, places] = weights.to(like.device, like.dtype)[owners]
    return averages
