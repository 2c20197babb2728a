"""A space in which every image can be compared with every sentence."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.region_tables import RegionTable
from kernelcore.deep.sentences import Sentences


class RankingSpace(nn.Module):
    """What a `SentenceRanker` learns: encoders of both sides, and how they are compared.

    Attributes
    ----------
    block : tuple of (int, int)
        Images and sentences that are compared at a time where scores are computed.
    """

    block = (256, 1024)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @abstractmethod
    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of images, and divide by these, from now on."""

    @abstractmethod
    def pictures(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Any:
        """Encode images, each from one or several rows of features.

        A generator draws what is dropped; without it nothing is.
        """

    @abstractmethod
    def texts(self, sentences: Sentences, generator: torch.Generator | None = None) -> Any:
        """Encode sentences."""

    @abstractmethod
    def similarities(self, pictures: Any, texts: Any) -> Tensor:
        """Compare every image with every sentence, shape (n_images, n_sentences)."""

    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode any number of images, where each becomes one vector."""
        parts = torch.split(torch.arange(len(table)), self.block[0])
        return torch.cat(
            [self.pictures(*_finite_rows(table, part.numpy(), self.device)) for part in parts]
        )

    def caption_vectors(self, sentences: Sentences) -> Tensor:
        """Encode any number of sentences, where each becomes one vector."""
        parts = torch.split(torch.arange(len(sentences.lengths)), self.block[1])
        return torch.cat([self.texts(sentences.take(part)) for part in parts])

    @torch.no_grad()
    def scores(self, table: RegionTable, sentences: Sentences) -> npt.NDArray[np.float32]:
        """Similarity of every image with every sentence, block by block."""
        n_images, n_sentences = self.block
        # of like length together: less is computed for what stands after the shorter ones
        order = torch.argsort(sentences.lengths, stable=True)
        parts = [
            (rows, self.texts(sentences.take(rows))) for rows in torch.split(order, n_sentences)
        ]
        result = np.empty((len(table), len(order)), np.float32)
        for start in range(0, len(table), n_images):
            images = np.arange(start, min(start + n_images, len(table)))
            pictures = self.pictures(*_finite_rows(table, images, self.device))
            for columns, texts in parts:
                block = self.similarities(pictures, texts)
                result[start : start + n_images, columns.numpy()] = block.cpu().numpy()
        return result


def _finite_rows(
    table: RegionTable, images: npt.NDArray[np.intp], device: torch.device
) -> tuple[Tensor, Offsets]:
    rows, offsets = table.take(images, device)
    if not torch.isfinite(rows).all():  # those of a mapped file are first seen here
        raise ValueError("features of images must be finite, got NaN or infinity")
    return rows, offsets
