"""Deep fragment embeddings: the alignment loss, and similarities of images and sentences."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from kernelcore.deep.fragment_encoders import (
    mean_over_fragments,
    mean_over_regions,
    owners_of,
)
from kernelcore.deep.items import Offsets


def alignment_loss(
    products: Tensor,
    region_offsets: Offsets,
    fragment_offsets: Offsets,
    *,
    multiple_instance: bool,
    balanced: bool = False,
) -> Tensor:
    r"""Hinge loss of every region with every fragment. Image k belongs to sentence k.

    .. math:: \frac1b \sum_i \sum_j \max(0, 1 - y_{ij} v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
    region_offsets, fragment_offsets : ndarray of int64, shape (b + 1,)
        Start of the regions of each image and of the fragments of each sentence.
    multiple_instance : bool
        If False, :math:`y_{ij}` is 1 for every region and fragment of the same pair. If
        True, it is the sign of their product, and 1 for the largest product of a fragment
        if none is positive. So at least one region of the image shows each fragment.
        Across pairs it is -1 in both cases.
    balanced : bool, default False
        For each fragment, add the mean over its positive regions and the mean over its
        negative regions; then average over all fragments. Without this, the negatives of a
        minibatch of b pairs outweigh the positives by b - 1 to 1.

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
    # Sum the hinges of all products as negatives, then correct the few positive ones.
    negatives = F.relu(1 + products).sum(0)
    negatives = negatives - (F.relu(1 + own) * positive).sum(0)
    positives = (F.relu(1 - own) * positive).sum(0)
    if not balanced:
        return (positives + negatives).sum() / (len(region_offsets) - 1)
    n_positive = positive.sum(0)
    n_negative = len(products) - n_positive
    means = positives / n_positive.clamp(min=1) + negatives / n_negative.clamp(min=1)
    return means.sum() / max(products.shape[1], 1)


def fragment_similarities(
    products: Tensor, region_offsets: Offsets, fragment_offsets: Offsets, *, smoothing: float
) -> Tensor:
    r"""Similarity of every image with every sentence, from products of regions and fragments.

    .. math::

        S_{kl} = \frac1{|g_k| (|g_l| + n)} \sum_{i \in g_k} \sum_{j \in g_l}
            \max(0, v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
        :math:`v_i^\top s_j` for the regions of all images and the fragments of all sentences.
    region_offsets : ndarray of int64, shape (n_images + 1,)
        Start of the regions of each image, and the end of the last.
    fragment_offsets : ndarray of int64, shape (n_sentences + 1,)
        Start of the fragments of each sentence, and the end of the last.
    smoothing : float
        n. Without smoothing, sentences with few fragments score higher.

    Returns
    -------
    Tensor of shape (n_images, n_sentences)
        The similarity is 0 for a sentence without fragments and an image without regions.

    Notes
    -----
    Both sums are computed as products with a membership matrix, which is deterministic.

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
    return mean_over_fragments(
        mean_over_regions(products, region_offsets), fragment_offsets, smoothing
    )


def _bags(
    region_offsets: Offsets, fragment_offsets: Offsets, products: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the regions of each fragment's own image as table rows, and a padding mask.

    Both have one column per fragment, and one row per region of the largest image.
    """
    counts = np.diff(region_offsets)
    steps = torch.arange(int(counts.max(initial=0)), device=products.device).unsqueeze(1)
    pairs = owners_of(fragment_offsets, products)
    starts, ends = (
        torch.from_numpy(part).to(products.device)[pairs]
        for part in (region_offsets[:-1], region_offsets[1:])
    )
    rows = starts + steps
    return rows.clamp(max=len(products) - 1), rows < ends


def _instances(own: Tensor, inside: Tensor) -> Tensor:
    """Return which regions of the own image are positive for each fragment."""
    instances = inside & (own > 0)
    best = own.masked_fill(~inside, -torch.inf).argmax(0)
    columns = torch.nonzero(inside.any(0) & ~instances.any(0)).squeeze(1)
    instances[best[columns], columns] = True
    return instances
