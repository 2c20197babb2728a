"""Regions of an image that know the image they are of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore.deep.fragment_encoders import RegionEncoder
from kernelcore.deep.fragment_losses import Offsets


class RegionsInContext(nn.Module):
    r"""An affine map of the features of a region, and one of those of the whole image.

    .. math:: v_i = W x_i + U x_0 + b

    The first region of an image is the whole of it. What a region shows is often told by what
    surrounds it, and features of small regions are poor where no detector was trained on them.

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    dropout : float
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self, n_features: int, n_components: int, *, dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.own, self.whole = (
            RegionEncoder(n_features, n_components, dropout=dropout, generator=generator)
            for _ in range(2)
        )

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features, and divide by these, from now on."""
        for part in (self.own, self.whole):
            part.standardize(mean, spread)

    def forward(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Tensor:
        """Encode regions.

        Parameters
        ----------
        rows : Tensor of shape (n_regions, n_features)
        offsets : ndarray of int64, shape (n_images + 1,)
            Start of the regions of each image.
        generator : torch.Generator, optional
            Draws what is dropped; without it nothing is.

        Returns
        -------
        Tensor of shape (n_regions, n_components)
        """
        counts = torch.from_numpy(np.diff(offsets)).to(rows.device)
        whole = self.whole(rows[torch.from_numpy(offsets[:-1])], generator)
        encoded: Tensor = self.own(rows, generator) + whole.repeat_interleave(counts, dim=0)
        return encoded
