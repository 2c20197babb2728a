"""What fragment embeddings are trained for: parts that align, wholes that rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from kernelcore.deep.fragment_losses import alignment_loss, fragment_similarities
from kernelcore.deep.fragment_space import FragmentSpace
from kernelcore.deep.losses import hinge_loss
from kernelcore.deep.randomness import permutation
from kernelcore.evaluation import evaluate
from kernelcore.models.pairs import Pairs


class FragmentObjective:
    """The alignment of fragments and the ranking of sentences and images.

    Parameters
    ----------
    space : FragmentSpace
        The model.
    training, dev : Pairs
        Images as a `RegionTable`, captions as `SentenceFragments` or `SentenceTrees`.
    alignment, ranking : float
        Weights of the two losses; one of them may be 0.
    margin : float
        Of the ranking.
    balanced : bool
        Of the alignment, see `alignment_loss`.
    n_dense : int or None
        Epochs in which all regions of an image count as showing all fragments of its
        caption; None stands for all epochs.
    n_drawn : int, optional
        Regions of each image in a step, the first and others at random; all by default.
    n_frozen : int, default 0
        Epochs before the network of the regions, if there is one, is trained along.
    """

    def __init__(
        self,
        space: FragmentSpace,
        training: Pairs,
        dev: Pairs,
        *,
        alignment: float,
        ranking: float,
        margin: float,
        balanced: bool,
        n_dense: int | None,
        n_drawn: int | None = None,
        n_frozen: int = 0,
    ) -> None:
        self.space = space
        self.training = training
        self.alignment = alignment
        self.ranking = ranking
        self.margin = margin
        self.balanced = balanced
        self.n_dense = n_dense
        self.n_drawn = n_drawn
        self.n_frozen = n_frozen
        self._dev = dev.compact()

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Deal the captions out; no image is twice in a batch.

        An epoch goes over the images again and again, each time with another caption, until
        all have been used.
        """
        order = np.array(permutation(len(self.training), generator))
        owners = self.training.caption_image[order]
        by_owner = np.argsort(owners, kind="stable")
        turns = np.empty(len(order), np.intp)
        counts = np.bincount(owners)
        counts = counts[counts > 0]
        turns[by_owner] = np.concatenate([np.arange(n) for n in counts])
        dealt = [
            order[turns == turn][start : start + batch_size].tolist()
            for turn in range(int(turns.max(initial=0)) + 1)
            for start in range(0, int((turns == turn).sum()), batch_size)
        ]
        return [batch for batch in dealt if len(batch) > 1]

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training captions with their images."""
        if self.space.regions.network is not None:
            self.space.regions.network.requires_grad_(epoch >= self.n_frozen)
        images = self.training.caption_image[batch]
        table, device = self.training.images, self.space.device
        if self.n_drawn is None:
            rows, region_offsets = table.take(images, device)
        else:
            rows, region_offsets = table.draw(images, self.n_drawn, device, generator)
        captions = self.training.captions.select(batch)
        products, offsets = self.space.encode(captions, rows, generator)
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
        """Rank the development pool: the loss is 1 less the mean of all recalls."""
        scores = self.space.scores(self._dev.images, self._dev.captions)
        # Training set the number of torch's threads to its own.
        result = evaluate(
            scores,
            caption_image=self._dev.caption_image,
            n_threads=torch.get_num_threads(),
        )
        recalls = [*result.annotation.recall.values(), *result.search.recall.values()]
        return {"dev_loss": 1 - sum(recalls) / len(recalls)}
