"""From sentences to vectors: of the whole by the mean of its words, or of words in context."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from kernelcore.deep.encoders import packed_words
from kernelcore.deep.randomness import dropout, uniform_module
from kernelcore.deep.recurrent import BidirectionalGRU
from kernelcore.deep.sentences import Sentences


class Perceptron(nn.Module):
    r"""A layer of rectified units and an affine map.

    .. math:: W_2 \max(0, W_1 x + b_1) + b_2

    Parameters
    ----------
    n_inputs, n_hidden, n_outputs : int
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self, n_inputs: int, n_hidden: int, n_outputs: int, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.hidden, self.output = (
            linear(*sizes, generator=generator)
            for sizes in ((n_inputs, n_hidden), (n_hidden, n_outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map rows."""
        mapped: Tensor = self.output(self.hidden(x).relu())
        return mapped


class WordMeans(nn.Module):
    """The mean of a sentence's word embeddings, through a perceptron.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Where the embeddings start, see `initial_embedding`.
    n_hidden, n_components : int
        Sizes of the perceptron's layers.
    dropout : float
        Share of the embeddings' entries that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_hidden: int,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.embedding = trained_embedding(embedding)
        self.perceptron = Perceptron(
            embedding.shape[1], n_hidden, n_components, generator=generator
        )

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode sentences, shape (n_sentences, n_components)."""
        words = dropout(self.embedding(sentences.word_ids), self.dropout, generator)
        lengths = sentences.lengths.to(words.device).unsqueeze(1)
        inside = torch.arange(words.shape[1], device=words.device) < lengths
        encoded: Tensor = self.perceptron((words * inside.unsqueeze(2)).sum(1) / lengths)
        return encoded


class WordStates(nn.Module):
    """Word embeddings and a bidirectional gated recurrent unit over them.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Where the embeddings start, see `initial_embedding`.
    n_components : int
        Length of the states.
    dropout : float
        Share of the embeddings' entries that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.embedding = trained_embedding(embedding)
        self.gru = BidirectionalGRU(embedding.shape[1], n_components, generator=generator)

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode whole sentences, shape (n_sentences, n_components)."""
        return self.gru.last(self._packed(sentences, generator))

    def words(
        self, sentences: Sentences, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encode every word.

        Returns
        -------
        states : Tensor of shape (n_sentences, n_words, n_components)
            Zeros after the end of a sentence.
        mask : Tensor of bool, shape (n_sentences, n_words)
            Which words there are.
        """
        packed = self._packed(sentences, generator)
        states = PackedSequence(self.gru(packed), *packed[1:])
        padded, lengths = pad_packed_sequence(states, batch_first=True)
        places = torch.arange(padded.shape[1], device=padded.device)
        return padded, places < lengths.to(padded.device).unsqueeze(1)

    def _packed(
        self, sentences: Sentences, generator: torch.Generator | None
    ) -> PackedSequence:
        return packed_words(self.embedding, sentences, self.dropout, generator)


def trained_embedding(start: Tensor) -> nn.Embedding:
    """Make embeddings that start from these and are trained."""
    return nn.Embedding(len(start), start.shape[1], _weight=start.clone())


def linear(n_inputs: int, n_outputs: int, *, generator: torch.Generator) -> nn.Linear:
    """Make an affine map whose weights are uniform, in a range that shrinks with the inputs."""
    bound = 1 / math.sqrt(n_inputs)
    module = uniform_module(nn.Linear, n_inputs, n_outputs, bound=bound, generator=generator)
    return cast(nn.Linear, module)
