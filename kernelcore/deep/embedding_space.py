"""One vector for an image, one for a sentence, and their cosine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from kernelcore.deep.fragment_encoders import RegionEncoder
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.recurrent import BidirectionalGRU
from kernelcore.deep.regions_in_context import RegionsInContext
from kernelcore.deep.sentences import Sentences
from kernelcore.deep.text_encoders import WordMeans, WordStates, linear


class ImagePerceptron(nn.Module):
    """One vector of features, through a layer of rectified units and an affine map.

    Parameters
    ----------
    n_features, n_hidden, n_components : int
    dropout : float
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self,
        n_features: int,
        n_hidden: int,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.regions = RegionEncoder(n_features, n_hidden, dropout=dropout, generator=generator)
        self.output = linear(n_hidden, n_components, generator=generator)

    def forward(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Tensor:
        """Encode images of one row each, shape (n_images, n_components)."""
        encoded: Tensor = self.output(self.regions(rows, generator).relu())
        return encoded


class RegionStates(nn.Module):
    """A bidirectional gated recurrent unit over the regions of an image, in their order.

    Parameters
    ----------
    n_features, n_components : int
    dropout : float
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.regions = RegionsInContext(
            n_features, n_components, dropout=dropout, generator=generator
        )
        self.gru = BidirectionalGRU(n_components, n_components, generator=generator)

    def forward(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Tensor:
        """Encode images, shape (n_images, n_components)."""
        regions = list(
            torch.split(self.regions(rows, offsets, generator), np.diff(offsets).tolist())
        )
        return self.gru.last(pack_sequence(regions, enforce_sorted=False))


class EmbeddingSpace(RankingSpace):
    """Encoders of both sides, whose vectors are compared by their cosine.

    Parameters
    ----------
    images : ImagePerceptron or RegionStates
    sentences : WordMeans or WordStates
        Their vectors have the same length.
    """

    def __init__(
        self, images: ImagePerceptron | RegionStates, sentences: WordMeans | WordStates
    ) -> None:
        super().__init__()
        self.images = images
        self.sentences = sentences

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of images, and divide by these, from now on."""
        self.images.regions.standardize(mean, spread)

    def pictures(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Tensor:
        """Encode images as rows of length 1."""
        return F.normalize(self.images(rows, offsets, generator), dim=1)

    def texts(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode sentences as rows of length 1."""
        return F.normalize(self.sentences(sentences, generator), dim=1)

    def similarities(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """Cosines of all images with all sentences."""
        return pictures @ texts.T
