"""Regions of images and words of sentences that look for one another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kernelcore.deep.cross_attention import cross_attention
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.regions_in_context import RegionsInContext
from kernelcore.deep.sentences import Sentences
from kernelcore.deep.text_encoders import WordStates

_SENTENCES_AT_ONCE = 32


class Parts(NamedTuple):
    """Vectors of the parts of some wholes: of regions of images, or of words of sentences.

    Attributes
    ----------
    vectors : Tensor of shape (n_wholes, n_parts, n_components)
        Of length 1, and zeros where a whole has fewer parts.
    mask : Tensor of bool, shape (n_wholes, n_parts)
        Which parts there are.
    """

    vectors: Tensor
    mask: Tensor


class AttentionSpace(RankingSpace):
    """Encoders of regions and of words, whose wholes are compared by cross attention.

    Parameters
    ----------
    regions : RegionsInContext
    sentences : WordStates
        Their vectors have the same length.
    attention : {"t2i", "i2t"}
        Whether words look at regions, or regions at words.
    temperature, sharpness : float
    pooling : {"logsumexp", "mean"}
        See `cross_attention`.
    """

    block = (64, 256)

    def __init__(
        self,
        regions: RegionsInContext,
        sentences: WordStates,
        *,
        attention: str,
        temperature: float,
        pooling: str,
        sharpness: float,
    ) -> None:
        super().__init__()
        self.regions = regions
        self.sentences = sentences
        self.attention = attention
        self.temperature = temperature
        self.pooling = pooling
        self.sharpness = sharpness

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of regions, and divide by these, from now on."""
        self.regions.standardize(mean, spread)

    def pictures(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Parts:
        """Encode the regions of images."""
        vectors = F.normalize(self.regions(rows, offsets, generator), dim=1)
        counts = np.diff(offsets).tolist()
        places = torch.arange(max(counts), device=rows.device)
        mask = places < torch.tensor(counts, device=rows.device).unsqueeze(1)
        return Parts(pad_sequence(list(torch.split(vectors, counts)), batch_first=True), mask)

    def texts(self, sentences: Sentences, generator: torch.Generator | None = None) -> Parts:
        """Encode the words of sentences."""
        states, mask = self.sentences.words(sentences, generator)
        return Parts(F.normalize(states, dim=2), mask)

    def similarities(self, pictures: Parts, texts: Parts) -> Tensor:
        """Compare every image with every sentence."""
        # Some sentences at a time, of like length together: less is computed for what stands
        # after the shorter ones, and what is computed stays in the cache.
        lengths = texts.mask.sum(1)
        order = torch.argsort(lengths, stable=True)
        columns = []
        for rows in torch.split(order, _SENTENCES_AT_ONCE):
            n_words = int(lengths[rows[-1]])
            some = Parts(texts.vectors[rows, :n_words], texts.mask[rows, :n_words])
            columns.append(self._similarities(pictures, some))
        return torch.cat(columns, 1)[:, torch.argsort(order)]

    def _similarities(self, pictures: Parts, texts: Parts) -> Tensor:
        contexts, queries = (pictures, texts) if self.attention == "t2i" else (texts, pictures)
        products = contexts.vectors.flatten(0, 1) @ queries.vectors.flatten(0, 1).T
        similarities = cross_attention(
            products.reshape(*contexts.mask.shape, *queries.mask.shape),
            contexts.vectors @ contexts.vectors.mT,
            queries.mask,
            contexts.mask,
            temperature=self.temperature,
            pooling=self.pooling,
            sharpness=self.sharpness,
        )
        return similarities if self.attention == "t2i" else similarities.T
