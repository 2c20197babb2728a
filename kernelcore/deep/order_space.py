"""A space of images and texts that are compared by their order."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from kernelcore.deep.encoders import packed_words
from kernelcore.deep.fragment_encoders import RegionEncoder
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.order_lstm import packed_lstm_states
from kernelcore.deep.order_similarities import order_similarities
from kernelcore.deep.randomness import dropout, uniform_module
from kernelcore.deep.ranking_space import RankingSpace
from kernelcore.deep.recurrent import last_states
from kernelcore.deep.region_tables import RegionTable
from kernelcore.deep.sentences import Sentences
from kernelcore.deep.text_encoders import linear, trained_embedding

Similarity: TypeAlias = Literal["texts below", "images below", "cosine"]

SIMILARITIES = ("texts below", "images below", "cosine")


class ImageLayers(nn.Module):
    r"""A dense layer over standardised features, and two fully connected ones on top of it.

    .. math:: v = |W_2 \max(0, W_1 \max(0, W_0 (x - \mu) / \sigma + b_0) + b_1) + b_2|

    Parameters
    ----------
    n_features, n_hidden, n_components : int
        Lengths of the features, of the layers between, and of the vectors.
    dropout : float
        Share of the features, and of what the other layers read, that is dropped in training.
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
        self.dropout = dropout
        self.dense = RegionEncoder(n_features, n_hidden, dropout=dropout, generator=generator)
        self.layers = nn.ModuleList(
            linear(n_hidden, size, generator=generator) for size in (n_hidden, n_components)
        )

    def forward(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Encode images of one row each, shape (n_images, n_components)."""
        hidden: Tensor = self.dense(rows, generator)
        for layer in self.layers:
            hidden = layer(dropout(hidden.relu(), self.dropout, generator))
        return hidden.abs()


class TextStates(nn.Module):
    r"""Word embeddings, an LSTM over them, and a dense layer over its last state.

    .. math:: t = |W h_T + b|, \quad h_t = \mathrm{LSTM}(W_{w_t}, h_{t-1})

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Where the embeddings start, see `initial_embedding`.
    n_states, n_components : int
        Lengths of the state and of the vectors.
    dropout : float
        Share of the embeddings' entries, and of the last state's, that is dropped in
        training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_states: int,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.embedding = trained_embedding(embedding)
        self.lstm = cast(
            nn.LSTM,
            uniform_module(
                nn.LSTM,
                embedding.shape[1],
                n_states,
                bound=n_states**-0.5,
                generator=generator,
            ),
        )
        self.dense = linear(n_states, n_components, generator=generator)

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode texts, shape (n_texts, n_components)."""
        words = packed_words(self.embedding, sentences, self.dropout, generator)
        last = last_states(packed_lstm_states(self.lstm, words), words)
        encoded: Tensor = self.dense(dropout(last, self.dropout, generator))
        return encoded.abs()


class OrderSpace(RankingSpace):
    """Encoders of both sides into vectors without negative entries.

    Vectors of the upper side have length 1, those of the lower side any: were those of both
    free, all of the lower side would soon lie below everything, where no gradient is left,
    and were both of length 1, one could be below another only where it equals it.

    Parameters
    ----------
    images : ImageLayers
    sentences : TextStates
        Their vectors have the same number of entries.
    similarity : {"texts below", "images below", "cosine"}
        Which side lies below the other, see `order_similarities`; or none.
    """

    def __init__(
        self, images: ImageLayers, sentences: TextStates, similarity: Similarity
    ) -> None:
        super().__init__()
        self.images = images
        self.sentences = sentences
        self.similarity = similarity

    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features of images, and divide by these, from now on."""
        self.images.dense.standardize(mean, spread)

    def pictures(
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Tensor:
        """Encode images, each from one row of features."""
        encoded: Tensor = self.images(rows, generator)
        return encoded if self.similarity == "images below" else F.normalize(encoded, dim=1)

    def texts(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode texts."""
        encoded: Tensor = self.sentences(sentences, generator)
        return encoded if self.similarity == "texts below" else F.normalize(encoded, dim=1)

    def similarities(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """Compare all images with all texts."""
        if self.similarity == "texts below":
            return order_similarities(pictures, texts)
        if self.similarity == "images below":
            return order_similarities(texts, pictures).T
        return pictures @ texts.T

    @torch.no_grad()
    def penalties(
        self, table: RegionTable, sentences: Sentences, *, reverse: bool
    ) -> npt.NDArray[np.float32]:
        """By how much texts fail to lie below images, or, in reverse, images below texts."""
        images, texts = self.image_vectors(table), self.caption_vectors(sentences)
        similarities = (
            order_similarities(texts, images).T
            if reverse
            else order_similarities(images, texts)
        )
        return similarities.abs().cpu().numpy()
