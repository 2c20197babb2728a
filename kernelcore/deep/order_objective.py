"""What order embeddings are trained for: true pairs in order, and vectors apart."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelcore.deep.order_similarities import relative_variance
from kernelcore.deep.ranking_objective import RankingObjective


class OrderObjective(RankingObjective):
    r"""The hinge loss, less the variance of either side's vectors in the minibatch.

    .. math:: C - \lambda \big( \sigma^2(v_1, \dots) + \sigma^2(t_1, \dots) \big)

    Parameters
    ----------
    *items, **options
        Those of `RankingObjective`.
    variance_weight : float
        :math:`\lambda`; for the variance see `relative_variance`.
    """

    def __init__(self, *items: Any, variance_weight: float, **options: Any) -> None:
        super().__init__(*items, **options)
        self.variance_weight = variance_weight

    def loss(self, batch: list[int], epoch: int, generator: torch.Generator) -> Tensor:
        """Return the loss of some training texts with their images."""
        pictures, texts, owners = self.encoded(batch, generator)
        ranking = self.ranking_loss(pictures, texts, owners, epoch)
        if not self.variance_weight:
            return ranking
        spread = relative_variance(pictures) + relative_variance(texts)
        return ranking - self.variance_weight * spread
