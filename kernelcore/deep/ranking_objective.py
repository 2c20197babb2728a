"""What rankers of sentences and images are trained for: true pairs before all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernelcore.deep.losses import hinge_loss
from kernelcore.deep.randomness import permutation
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.training import dealt
from kernelcore.evaluation import evaluate
from kernelcore.models.pairs import Pairs


class RankingObjective:
    """Hinge loss of pairs against the other images and sentences of their minibatch.

    Sentences of the same image are no negatives of one another's pairs.

    Parameters
    ----------
    space : RankingSpace
        The model.
    training, dev : Pairs
        Images as a `RegionTable`, captions as `Sentences`.
    margin : float
    negatives : {"hardest", "mean", "sum"}
    n_warm_up : int, default 0
        Epochs in which the sum over all negatives is taken.
    n_drawn : int, optional
        Regions of each image in a step, the first and others at random; all by default.
    """

    def __init__(
        self,
        space: RankingSpace,
        training: Pairs,
        dev: Pairs,
        *,
        margin: float,
        negatives: str,
        n_warm_up: int = 0,
        n_drawn: int | None = None,
    ) -> None:
        self.space = space
        self.training = training
        self.margin = margin
        self.negatives = negatives
        self.n_warm_up = n_warm_up
        self.n_drawn = n_drawn
        self._dev = dev.compact()

    def batches(self, batch_size: int, generator: torch.Generator) -> Sequence[list[int]]:
        """Deal the sentences out; one that would be left alone joins the batch before."""
        return dealt(permutation(len(self.training), generator), batch_size)

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training sentences with their images."""
        return self.ranking_loss(*self.encoded(batch, generator), epoch)

    def encoded(
        self, batch: list[int], generator: torch.Generator | None
    ) -> tuple[Any, Any, Tensor]:
        """Encode some sentences and the images that they belong to, each image once.

        The third part is the position of each sentence's image among those.
        """
        images, places = np.unique(self.training.caption_image[batch], return_inverse=True)
        table, device = self.training.images, self.space.device
        if self.n_drawn is None or generator is None:
            rows, offsets = table.take(images, device)
        else:
            rows, offsets = table.draw(images, self.n_drawn, device, generator)
        pictures = self.space.pictures(rows, offsets, generator)
        texts = self.space.texts(self.training.captions.take(torch.tensor(batch)), generator)
        return pictures, texts, torch.from_numpy(places).to(rows.device)

    def ranking_loss(self, pictures: Any, texts: Any, owners: Tensor, epoch: int) -> Tensor:
        """Return the hinge loss of what `encoded` gives."""
        # In float32 whatever the encoders computed in: differences of similarities are small.
        with torch.autocast(owners.device.type, enabled=False):
            similarities = self.space.similarities(pictures, texts).float()
        return hinge_loss(
            similarities[owners].T,  # row i is text i, column j the image of text j
            margin=self.margin,
            negatives="sum" if epoch < self.n_warm_up else self.negatives,
            excluded=owners.unsqueeze(1) == owners,
        )

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
