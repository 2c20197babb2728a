"""Encoders of images and sentences, and the space in which both sides are compared."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from kernelcore._ragged import offsets_of
from kernelcore.captions import Vocabulary
from kernelcore.deep.items import UNKNOWN, Offsets, RegionTable, Sentences
from kernelcore.deep.layers import dropout, linear, uniform_module
from kernelcore.lexical import WordVectors


class FeatureEncoder(nn.Module):
    r"""Affine map of standardised features.

    .. math:: v = W (x - \mu) / \sigma + b

    Mean :math:`\mu` and standard deviation :math:`\sigma` are 0 and 1 until `standardize` is
    called. They are not trained.

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    dropout : float, default 0.0
        Share of the features that are dropped in training.
    network : Module, optional
        Computes the features from the input, for example from pixels. It is trained too,
        unless its parameters require no gradients.
    generator : torch.Generator
        Draws the initial weights.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        dropout: float = 0.0,
        network: nn.Module | None = None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.network = network
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))
        self.affine = linear(n_features, n_components, generator=generator)

    @torch.no_grad()
    def standardize(
        self, mean: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]
    ) -> None:
        """Set the mean and standard deviation that features are standardised with."""
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(scale))

    def forward(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Encode features.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_features), or an input of the network
        generator : torch.Generator, optional
            Source of dropout; None disables it.

        Returns
        -------
        Tensor of shape (n_rows, n_components)
        """
        features = rows if self.network is None else self.network(rows)
        standard = torch.addcmul(-self.mean / self.scale, features, 1 / self.scale)
        encoded: Tensor = self.affine(dropout(standard, self.dropout, generator))
        return encoded


class ImageEncoder(FeatureEncoder):
    r"""Affine map of standardised image features to unit vectors.

    .. math:: v = u / \lVert u \rVert, \quad u = W (x - \mu) / \sigma + b

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the image vectors.
    dropout : float, default 0.0
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the initial weights.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import ImageEncoder, seeded_generator
    >>> encoder = ImageEncoder(3, 8, generator=seeded_generator(0))
    >>> encoder(torch.ones(2, 3)).shape
    torch.Size([2, 8])

    Notes
    -----
    Mean :math:`\mu` and standard deviation :math:`\sigma` are 0 and 1 until `standardize` is
    called. They are not trained.
    """

    def forward(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Encode images.

        Parameters
        ----------
        rows : Tensor of shape (n_images, n_features)
        generator : torch.Generator, optional
            Source of dropout; None disables it.

        Returns
        -------
        Tensor of shape (n_images, n_components)
            Rows have length 1.
        """
        return F.normalize(super().forward(rows, generator), dim=1)


class ContextualRegionEncoder(nn.Module):
    r"""Encode each region together with the whole image.

    .. math:: v_i = W x_i + U x_0 + b

    The first region of an image is the whole image. It adds context: features of small
    regions say little unless a detector was trained on such regions.

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    whole_image : bool, default True
        Without it U is 0.
    dropout : float
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the initial weights.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        whole_image: bool = True,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        make = partial(
            FeatureEncoder, n_features, n_components, dropout=dropout, generator=generator
        )
        self.own = make()
        self.whole = make() if whole_image else None

    def standardize(
        self, mean: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]
    ) -> None:
        """Set the mean and standard deviation that features are standardised with."""
        self.own.standardize(mean, scale)
        if self.whole is not None:
            self.whole.standardize(mean, scale)

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
            Source of dropout; None disables it.

        Returns
        -------
        Tensor of shape (n_regions, n_components)
        """
        if self.whole is None:
            alone: Tensor = self.own(rows, generator)
            return alone
        counts = torch.from_numpy(np.diff(offsets)).to(rows.device)
        whole = self.whole(rows[torch.from_numpy(offsets[:-1])], generator)
        encoded: Tensor = self.own(rows, generator) + whole.repeat_interleave(counts, dim=0)
        return encoded


class WordEmbedding(nn.Module):
    """Base class of sentence encoders: trained word embeddings with dropout.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings. Row 0 is for words outside the vocabulary, see
        `initial_embedding`.
    dropout : float
        Share of the entries of embeddings that are dropped in training.

    Raises
    ------
    ValueError
        If `embedding` is not 2-D.
    """

    def __init__(self, embedding: Tensor, dropout: float) -> None:
        super().__init__()
        if embedding.ndim != 2:
            raise ValueError(
                "embedding must have one row per word, and one for words outside the "
                f"vocabulary, got shape {tuple(embedding.shape)}"
            )
        self.dropout = dropout
        self.embedding = nn.Embedding(
            len(embedding), embedding.shape[1], _weight=embedding.clone()
        )

    def embed(self, sentences: Sentences, generator: torch.Generator | None) -> Tensor:
        """Return the embeddings of all words, shape (n_sentences, n_tokens, n_dimensions)."""
        return dropout(self.embedding(sentences.word_ids), self.dropout, generator)

    def pack(self, sentences: Sentences, generator: torch.Generator | None) -> PackedSequence:
        """Return the embeddings of all words as packed sequences, without padding."""
        return pack_padded_sequence(
            self.embed(sentences, generator),
            sentences.lengths,
            batch_first=True,
            enforce_sorted=False,
        )


class SentenceEncoder(WordEmbedding):
    r"""Last hidden state of a gated recurrent unit over word embeddings, as a unit vector.

    .. math:: s = h_T / \lVert h_T \rVert, \quad h_t = \mathrm{GRU}(W_{w_t}, h_{t-1})

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings. Row 0 is for words outside the vocabulary. They are trained.
    n_components : int
        Length of the sentence vectors.
    dropout : float, default 0.0
        Share of the entries of embeddings that are dropped in training.
    generator : torch.Generator
        Draws the initial weights.

    Raises
    ------
    ValueError
        If `embedding` is not 2-D.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import SentenceEncoder, Sentences, seeded_generator
    >>> generator = seeded_generator(0)
    >>> encoder = SentenceEncoder(torch.eye(4), 8, generator=generator)
    >>> pair = Sentences(torch.tensor([[1, 2, 3], [2, 0, 0]]), torch.tensor([3, 1]))
    >>> encoder(pair).norm(dim=1)
    tensor([1.0000, 1.0000], grad_fn=<...>)
    """

    def __init__(
        self,
        embedding: Tensor,
        n_components: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__(embedding, dropout)
        self.gru = _gru(embedding.shape[1], n_components, generator)

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode sentences.

        Parameters
        ----------
        sentences : Sentences
        generator : torch.Generator, optional
            Source of dropout; None disables it.

        Returns
        -------
        Tensor of shape (n_sentences, n_components)
            Rows have length 1.
        """
        _, last = self.gru(self.pack(sentences, generator))
        return F.normalize(last[0], dim=1)


class ContextualWordEncoder(WordEmbedding):
    """Hidden states of a bidirectional gated recurrent unit over word embeddings.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings, see `WordEmbedding`.
    n_components : int
        Length of the hidden states.
    dropout : float
        Share of the entries of embeddings that are dropped in training.
    generator : torch.Generator
        Draws the initial weights.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_components: int,
        *,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__(embedding, dropout)
        self.gru = BidirectionalGRU(embedding.shape[1], n_components, generator=generator)

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode whole sentences by their last states, shape (n_sentences, n_components)."""
        return self.gru.last(self.pack(sentences, generator))

    def words(
        self, sentences: Sentences, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encode every word.

        Returns
        -------
        states : Tensor of shape (n_sentences, n_words, n_components)
            Hidden states, zero for padding.
        mask : Tensor of bool, shape (n_sentences, n_words)
            False for padding.
        """
        packed = self.pack(sentences, generator)
        states = PackedSequence(self.gru(packed), *packed[1:])
        padded, lengths = pad_packed_sequence(states, batch_first=True)
        positions = torch.arange(padded.shape[1], device=padded.device)
        return padded, positions < lengths.to(padded.device).unsqueeze(1)


class BidirectionalGRU(nn.Module):
    r"""Two gated recurrent units, one for each direction, whose hidden states are averaged.

    .. math:: h_t = (\overrightarrow{h}_t + \overleftarrow{h}_t) / 2

    Parameters
    ----------
    n_inputs, n_components : int
        Lengths of the inputs and of the hidden states.
    generator : torch.Generator
        Draws the initial weights.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.utils.rnn import pack_padded_sequence
    >>> from kernelcore.deep import seeded_generator
    >>> from kernelcore.deep.encoders import BidirectionalGRU
    >>> gru = BidirectionalGRU(2, 3, generator=seeded_generator(0))
    >>> packed = pack_padded_sequence(torch.ones(2, 4, 2), [4, 1], batch_first=True)
    >>> gru(packed).shape, gru.last(packed).shape
    (torch.Size([5, 3]), torch.Size([2, 3]))
    """

    def __init__(self, n_inputs: int, n_components: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.onward, self.back = (_gru(n_inputs, n_components, generator) for _ in range(2))

    def forward(self, packed: PackedSequence) -> Tensor:
        """Return the mean hidden state of every element, in packed order."""
        order = _reversed(packed.batch_sizes).to(packed.data.device)
        onward, _ = self.onward(packed)
        back, _ = self.back(packed._replace(data=packed.data[order]))
        mean: Tensor = (onward.data + back.data[order]) / 2
        return mean

    def last(self, packed: PackedSequence) -> Tensor:
        """Return the mean of the last hidden states of both directions, for each sequence."""
        order = _reversed(packed.batch_sizes).to(packed.data.device)
        _, onward = self.onward(packed)
        _, back = self.back(packed._replace(data=packed.data[order]))
        mean: Tensor = (onward[0] + back[0]) / 2
        return mean


def _gru(n_inputs: int, n_components: int, generator: torch.Generator) -> nn.GRU:
    bound = 1 / math.sqrt(n_components)
    return uniform_module(nn.GRU, n_inputs, n_components, bound=bound, generator=generator)


def _reversed(batch_sizes: Tensor) -> Tensor:
    """Return the packed position of each element after every sequence is reversed."""
    starts = torch.from_numpy(offsets_of(batch_sizes.numpy()))
    steps = torch.repeat_interleave(torch.arange(len(batch_sizes)), batch_sizes)
    sequences = torch.arange(len(steps)) - starts[steps]
    # Sequences are sorted by length: sequence i has a step wherever the batch is larger than i.
    lengths = (batch_sizes > torch.arange(int(batch_sizes[0])).unsqueeze(1)).sum(1)
    return starts[lengths[sequences] - 1 - steps] + sequences


def initial_embedding(
    vocabulary: Vocabulary,
    vectors: WordVectors | None,
    n_dimensions: int,
    *,
    generator: torch.Generator,
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

    @abstractmethod
    def standardize(
        self, mean: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]
    ) -> None:
        """Set the mean and standard deviation that image features are standardised with."""

    @abstractmethod
    def scores(self, table: RegionTable, captions: Any) -> npt.NDArray[np.float32]:
        """Return the similarity of every image with every caption."""

    @abstractmethod
    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode images by one vector each, shape (n_images, n_components)."""

    @abstractmethod
    def caption_vectors(self, captions: Any) -> Tensor:
        """Encode captions by one vector each, shape (n_captions, n_components)."""


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
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> Any:
        """Encode images from the features of their regions.

        The generator is the source of dropout; None disables it.
        """

    @abstractmethod
    def encode_captions(
        self, sentences: Sentences, generator: torch.Generator | None = None
    ) -> Any:
        """Encode sentences; `generator` as for `encode_images`."""

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
