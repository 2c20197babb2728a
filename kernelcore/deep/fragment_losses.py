"""Losses of deep fragment embeddings: alignment of fragments, ranking of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from kernelcore.deep.fragment_encoders import (
    FragmentSpace,
    mean_over_fragments,
    mean_over_regions,
    owners_of,
)
from kernelcore.deep.items import Offsets
from kernelcore.deep.losses import hinge_loss, ranking_dev_loss
from kernelcore.deep.training import permutation
from kernelcore.models.base import Pairs


@dataclass(eq=False)
class FragmentObjective:
    """Weighted sum of the alignment of fragments and the ranking of sentences and images.

    Parameters
    ----------
    space : FragmentSpace
        The model.
    training, dev : Pairs
        Images as a `RegionTable`, captions as `SentenceFragments` or `SentenceTrees`.
    alignment, ranking : float
        Weights of the two losses. One of them may be 0.
    margin : float
        Margin of the ranking loss.
    balanced : bool
        See `alignment_loss`.
    n_dense : int or None
        Number of epochs without multiple instances: all regions of an image are positive for
        all fragments of its caption. None stands for all epochs.
    n_drawn : int, optional
        Number of regions of each image in a training step: the first one and a random
        sample. The default is all regions.
    n_frozen : int, default 0
        Number of epochs before the training of the network, if the regions have one.
    """

    space: FragmentSpace
    training: Pairs
    dev: Pairs
    alignment: float
    ranking: float
    margin: float
    balanced: bool
    n_dense: int | None
    n_drawn: int | None = None
    n_frozen: int = 0

    def __post_init__(self) -> None:
        self.dev = self.dev.compact()

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Divide the captions into minibatches that hold no image twice.

        An epoch goes through the images in rounds. Each round takes one more caption of each
        image, until all captions are used.
        """
        order = np.array(permutation(len(self.training), generator))
        owners = self.training.caption_image[order]
        by_owner = np.argsort(owners, kind="stable")
        rounds = np.empty(len(order), np.intp)
        counts = np.bincount(owners)
        rounds[by_owner] = np.concatenate([np.arange(n) for n in counts[counts > 0]])
        batches = []
        for number in range(int(rounds.max(initial=0)) + 1):
            members = order[rounds == number].tolist()
            starts = range(0, len(members), batch_size)
            batches += [members[start : start + batch_size] for start in starts]
        return [batch for batch in batches if len(batch) > 1]

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training captions and their images."""
        if self.space.regions.network is not None:
            self.space.regions.network.requires_grad_(epoch >= self.n_frozen)
        images = self.training.caption_image[batch]
        rows, region_offsets = self.training.images.take(
            images, self.space.device, self.n_drawn, generator
        )
        fragments, offsets = self.space.captions(self.training.captions.select(batch))
        products: Tensor = self.space.regions(rows, generator) @ fragments.T
        total = products.new_zeros(())
        if self.alignment:
            total = total + self.alignment * alignment_loss(
                products,
                region_offsets,
                offsets,
                multiple_instance=self.n_dense is not None and epoch >= self.n_dense,
                balanced=self.balanced,
            )
        if self.ranking:
            similarities = fragment_similarities(
                products, region_offsets, offsets, smoothing=self.space.smoothing
            )
            total = total + self.ranking * hinge_loss(
                similarities, margin=self.margin, negatives="sum"
            )
        return total

    def evaluate(self) -> Mapping[str, float]:
        """Rank the development items.

        ``positive`` is the share of captions that have a score above 0 with their own image,
        and ``positive_others`` that of all other pairs. Pairs with a score of 0 tie.
        """
        scores = self.space.scores(self.dev.images, self.dev.captions)
        own = scores[self.dev.caption_image, np.arange(len(self.dev))] > 0
        n_others = scores.size - len(own)
        n_positive = np.count_nonzero(scores > 0) - np.count_nonzero(own)
        return {
            **ranking_dev_loss(scores, self.dev),
            "positive": float(own.mean()),
            "positive_others": n_positive / max(n_others, 1),
        }


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
