"""Encoders of images and sentences, and the space in which both sides are compared.

All random numbers come from explicit generators. The global generators of torch are never
used, so training changes no random numbers elsewhere. Without a generator, modules are made on
the device of the context, which is ``meta`` where a file has the weights.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from kernelcore.captions import Vocabulary
from kernelcore.deep.items import UNKNOWN, Offsets, RegionTable, Sentences
from kernelcore.lexical import WordVectors

_Module = TypeVar("_Module", bound=nn.Module)


class Dropout(NamedTuple):
    """Sets a share of entries to zero at random, and divides the others by 1 - share.

    Without a generator all entries are kept, for evaluation.
    """

    share: float
    generator: Generator | None

    def __call__(self, x: Tensor) -> Tensor:
        """Drop entries of `x`."""
        if self.generator is None or self.share == 0:
            return x
        drawn = torch.rand(x.shape, generator=self.generator, device=self.generator.device)
        kept = (drawn >= self.share).to(x.device) / (1 - self.share)
        return x * kept.to(x.dtype)


NO_DROPOUT = Dropout(0.0, None)


def uniform_module(
    kind: Callable[..., _Module], *sizes: int, bound: float, generator: Generator | None
) -> _Module:
    """Make a module whose parameters are uniform in [-bound, bound].

    It is made without memory first, so that its constructor draws no random numbers.
    """
    module = kind(*sizes, device="meta")
    if generator is None:
        return module
    module.to_empty(device=generator.device)
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = torch.rand(parameter.shape, generator=generator, device=generator.device)
            parameter.copy_((2 * drawn - 1) * bound)
    return module


def linear(n_inputs: int, n_outputs: int, *, generator: Generator | None) -> nn.Linear:
    """Make an affine layer with initial weights uniform in +-1 / sqrt(n_inputs)."""
    bound = 1 / math.sqrt(n_inputs)
    return uniform_module(nn.Linear, n_inputs, n_outputs, bound=bound, generator=generator)


def recurrent(
    kind: Callable[..., _Module], n_inputs: int, n_states: int, *, generator: Generator | None
) -> _Module:
    """Make a GRU or LSTM with initial weights uniform in +-1 / sqrt(n_states)."""
    make, bound = partial(kind, batch_first=True), 1 / math.sqrt(n_states)
    return uniform_module(make, n_inputs, n_states, bound=bound, generator=generator)


class FeatureEncoder(nn.Module):
    r"""Affine map of standardised features.

    .. math:: v = W (x - \mu) / \sigma + b

    Mean :math:`\mu` and standard deviation :math:`\sigma` are 0 and 1 until
    `Space.standardize` sets them. They are not trained.

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    network : Module, optional
        Computes the features from the input, for example from pixels. It is trained too,
        unless its parameters require no gradients.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        network: nn.Module | None = None,
        generator: Generator | None,
    ) -> None:
        super().__init__()
        self.network = network
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))
        self.affine = linear(n_features, n_components, generator=generator)

    def forward(self, rows: Tensor, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode features.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_features), or an input of the network
        dropout : Dropout, optional
            Drops features.

        Returns
        -------
        Tensor of shape (n_rows, n_components)
        """
        features = rows if self.network is None else self.network(rows)
        standard = torch.addcmul(-self.mean / self.scale, features, 1 / self.scale)
        encoded: Tensor = self.affine(dropout(standard))
        return encoded


class ContextualRegionEncoder(nn.Module):
    r"""Encode each region together with the whole image.

    .. math:: v_i = W x_i + U x_0 + b

    The first region of an image is the whole image. It adds context: features of small
    regions say little unless a detector was trained on such regions.

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    whole_image : bool
        Without it U is 0.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(self, *sizes: int, whole_image: bool, generator: Generator | None) -> None:
        super().__init__()
        self.own = FeatureEncoder(*sizes, generator=generator)
        self.whole = FeatureEncoder(*sizes, generator=generator) if whole_image else None

    def forward(self, rows: Tensor, offsets: Offsets, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode regions.

        Parameters
        ----------
        rows : Tensor of shape (n_regions, n_features)
        offsets : ndarray of int64, shape (n_images + 1,)
            Start of the regions of each image.
        dropout : Dropout, optional
            Drops features.

        Returns
        -------
        Tensor of shape (n_regions, n_components)
        """
        if self.whole is None:
            alone: Tensor = self.own(rows, dropout)
            return alone
        counts = torch.from_numpy(np.diff(offsets)).to(rows.device)
        whole = self.whole(rows[torch.from_numpy(offsets[:-1])], dropout)
        encoded: Tensor = self.own(rows, dropout) + whole.repeat_interleave(counts, dim=0)
        return encoded


class WordEmbedding(nn.Module):
    """Base class of sentence encoders: trained word embeddings.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings. Row 0 is for words outside the vocabulary, see
        `initial_embedding`.
    """

    def __init__(self, embedding: Tensor) -> None:
        super().__init__()
        n_words, n_dimensions = embedding.shape
        self.embedding = nn.Embedding(n_words, n_dimensions, _weight=embedding.clone())

    def embed(self, sentences: Sentences, dropout: Dropout) -> Tensor:
        """Return the embeddings of all words, shape (n_sentences, n_tokens, n_dimensions)."""
        return dropout(self.embedding(sentences.word_ids))


class RecurrentEncoder(WordEmbedding):
    r"""Gated recurrent unit over word embeddings.

    With two directions, the states of both are averaged:

    .. math:: h_t = (\overrightarrow{h}_t + \overleftarrow{h}_t) / 2

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings, see `WordEmbedding`.
    n_components : int
        Length of the hidden states.
    bidirectional : bool, default True
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_components: int,
        *,
        bidirectional: bool = True,
        generator: Generator | None,
    ) -> None:
        super().__init__(embedding)
        gru = partial(nn.GRU, bidirectional=bidirectional)
        self.gru = recurrent(gru, embedding.shape[1], n_components, generator=generator)

    def forward(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode whole sentences by their last states, shape (n_sentences, n_components)."""
        return last_states(self.gru, self._pack(sentences, dropout))

    def words(
        self, sentences: Sentences, dropout: Dropout = NO_DROPOUT
    ) -> tuple[Tensor, Tensor]:
        """Encode every word.

        Returns
        -------
        states : Tensor of shape (n_sentences, n_words, n_components)
            Hidden states, zero for padding.
        mask : Tensor of bool, shape (n_sentences, n_words)
            False for padding.
        """
        states, _ = self.gru(self._pack(sentences, dropout))
        padded, lengths = pad_packed_sequence(states, batch_first=True)
        positions = torch.arange(padded.shape[1], device=padded.device)
        mask = positions < lengths.to(padded.device).unsqueeze(1)
        n_directions = padded.shape[2] // self.gru.hidden_size
        return torch.stack(padded.chunk(n_directions, 2)).mean(0), mask

    def _pack(self, sentences: Sentences, dropout: Dropout) -> PackedSequence:
        """Return the embeddings of all words as packed sequences, without padding."""
        words = self.embed(sentences, dropout)
        return pack_padded_sequence(
            words, sentences.lengths, batch_first=True, enforce_sorted=False
        )


def last_states(gru: nn.GRU, packed: PackedSequence) -> Tensor:
    """Return the mean of the last states of all directions, shape (n_sequences, n_states)."""
    _, last = gru(packed)
    mean: Tensor = last.mean(0)
    return mean


def initial_embedding(
    vocabulary: Vocabulary,
    vectors: WordVectors | None,
    n_dimensions: int,
    *,
    generator: Generator,
) -> Tensor:
    """Return initial word embeddings.

    Parameters
    ----------
    vocabulary : Vocabulary
    vectors : WordVectors or None
        Pretrained vectors. Words without one get random embeddings.
    n_dimensions : int
        Length of an embedding if there are no vectors; otherwise it is their length.
    generator : torch.Generator

    Returns
    -------
    Tensor of float32, shape (n_words + 1, n_dimensions)
        Row 0 is for words outside the vocabulary. Random entries are normal; their standard
        deviation is that of the pretrained entries, or 0.1 if there are none.
    """
    size = vectors.n_dimensions if vectors is not None else n_dimensions
    shape = (len(vocabulary) + 1, size)
    table = torch.randn(shape, generator=generator, device=generator.device)
    known: list[tuple[int, npt.NDArray[np.float32]]] = [
        (row, vectors[word])
        for row, word in enumerate(vocabulary.words, UNKNOWN + 1)
        if vectors is not None and word in vectors
    ]
    if not known:
        return 0.1 * table
    given = torch.from_numpy(np.array([vector for _, vector in known]))
    table *= float(given.std(correction=min(1, given.numel() - 1)))
    table[[row for row, _ in known]] = given.to(table.device)
    return table


class Space(nn.Module):
    """Base class of the trained modules: an encoder for each side, and their similarity."""

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(self.parameters()).device

    @torch.no_grad()
    def standardize(
        self, mean: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]
    ) -> None:
        """Set the mean and standard deviation that image features are standardised with."""
        for module in self.modules():
            if isinstance(module, FeatureEncoder):
                module.mean.copy_(torch.from_numpy(mean))
                module.scale.copy_(torch.from_numpy(scale))


class SentenceSpace(Space):
    """Base class of spaces that compare images with `Sentences`.

    Attributes
    ----------
    block : tuple of (int, int)
        Numbers of images and of sentences that `scores` compares at a time.
    """

    block = (256, 1024)

    @abstractmethod
    def encode_images(
        self, rows: Tensor, offsets: Offsets, dropout: Dropout = NO_DROPOUT
    ) -> Any:
        """Encode images from the features of their regions."""

    @abstractmethod
    def encode_captions(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Any:
        """Encode sentences."""

    @abstractmethod
    def similarities(self, images: Any, captions: Any) -> Tensor:
        """Compare encoded images with encoded sentences, shape (n_images, n_sentences)."""

    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode images by one vector each, shape (n_images, n_components)."""
        parts = torch.split(torch.arange(len(table)), self.block[0])
        return torch.cat([self._encode_images(table, part.numpy()) for part in parts])

    def caption_vectors(self, captions: Sentences) -> Tensor:
        """Encode sentences by one vector each, shape (n_sentences, n_components)."""
        parts = torch.split(torch.arange(len(captions.lengths)), self.block[1])
        return torch.cat([self.encode_captions(captions.take(part)) for part in parts])

    @torch.no_grad()
    def scores(self, table: RegionTable, captions: Sentences) -> npt.NDArray[np.float32]:
        """Return the similarity of every image with every sentence, block by block."""
        n_images, n_sentences = self.block
        # Sentences of similar length are encoded together, which needs less padding.
        order = torch.argsort(captions.lengths, stable=True)
        parts = [
            (rows, self.encode_captions(captions.take(rows)))
            for rows in torch.split(order, n_sentences)
        ]
        result = np.empty((len(table), len(order)), np.float32)
        for start in range(0, len(table), n_images):
            images = np.arange(start, min(start + n_images, len(table)))
            encoded = self._encode_images(table, images)
            for columns, sentences in parts:
                block = self.similarities(encoded, sentences)
                result[start : start + n_images, columns.numpy()] = block.cpu().numpy()
        return result

    def _encode_images(self, table: RegionTable, images: npt.NDArray[np.intp]) -> Any:
        rows, offsets = table.take(images, self.device)
        if not torch.isfinite(rows).all():  # rows of a mapped file are first read here
            raise ValueError("features of images must be finite, got NaN or infinity")
        return self.encode_images(rows, offsets)
