"""From sentences and image features to vectors of one space."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from kernelcore.captions import Vocabulary
from kernelcore.deep.randomness import dropout, uniform_module
from kernelcore.deep.recurrent import last_states, packed_states
from kernelcore.deep.sentences import UNKNOWN, Sentences
from kernelcore.lexical import WordVectors


class SentenceEncoder(nn.Module):
    r"""Word embeddings, a gated recurrent unit over them, and its last state.

    .. math:: s = h_T / \lVert h_T \rVert, \quad h_t = \mathrm{GRU}(W_{w_t}, h_{t-1})

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Where the embeddings start, row 0 for words outside the vocabulary: see
        `initial_embedding`. They are trained like everything else.
    n_components : int
        Length of the sentence vectors.
    dropout : float, default 0.0
        Share of the embeddings' entries that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.

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
        super().__init__()
        if embedding.ndim != 2:
            raise ValueError(
                "embedding must have one row per word, and one for those outside the "
                f"vocabulary, got shape {tuple(embedding.shape)}"
            )
        self.dropout = dropout
        self.embedding = nn.Embedding(
            len(embedding), embedding.shape[1], _weight=embedding.clone()
        )
        self.gru = cast(
            nn.GRU,
            uniform_module(
                nn.GRU,
                embedding.shape[1],
                n_components,
                bound=1 / math.sqrt(n_components),
                generator=generator,
            ),
        )

    def forward(self, sentences: Sentences, generator: torch.Generator | None = None) -> Tensor:
        """Encode sentences.

        Parameters
        ----------
        sentences : Sentences
        generator : torch.Generator, optional
            Draws what is dropped; without it nothing is.

        Returns
        -------
        Tensor of shape (n_sentences, n_components)
            Rows of length 1.
        """
        packed = packed_words(self.embedding, sentences, self.dropout, generator)
        last = last_states(packed_states(self.gru, packed), packed)
        return F.normalize(last, dim=1)


class ImageEncoder(nn.Module):
    r"""An affine map of precomputed features.

    .. math:: v = u / \lVert u \rVert, \quad u = W (x - \mu) / \sigma + b

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the image vectors.
    dropout : float, default 0.0
        Share of the features that are dropped in training.
    generator : torch.Generator
        Draws the weights at the start.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import ImageEncoder, seeded_generator
    >>> encoder = ImageEncoder(3, 8, generator=seeded_generator(0))
    >>> encoder(torch.ones(2, 3)).shape
    torch.Size([2, 8])

    Notes
    -----
    Mean :math:`\mu` and spread :math:`\sigma` are 0 and 1 until `standardize` has seen
    training features, and are not trained.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        *,
        dropout: float = 0.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.mean: Tensor
        self.scale: Tensor
        self.affine = uniform_module(
            nn.Linear,
            n_features,
            n_components,
            bound=1 / math.sqrt(n_features),
            generator=generator,
        )
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def check_width(self, features: Tensor) -> None:
        """Raise unless the features are as many as those that are mapped."""
        if features.shape[1] != len(self.mean):
            raise ValueError(
                f"features must have {len(self.mean)} columns, got {features.shape[1]}"
            )

    @torch.no_grad()
    def standardize(self, features: Tensor) -> None:
        """Give each of these training features mean 0 and spread 1 from now on.

        Parameters
        ----------
        features : Tensor of shape (n_images, n_features)
            Those that are the same for all images are only centred.
        """
        spread = features.std(0, correction=0)
        self.mean.copy_(features.mean(0))
        self.scale.copy_(torch.where(spread > 0, spread, 1.0))

    def forward(self, features: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Encode images.

        Parameters
        ----------
        features : Tensor of shape (n_images, n_features)
        generator : torch.Generator, optional
            Draws what is dropped; without it nothing is.

        Returns
        -------
        Tensor of shape (n_images, n_components)
            Rows of length 1.
        """
        standard = (features - self.mean) / self.scale
        return F.normalize(self.affine(dropout(standard, self.dropout, generator)), dim=1)


def packed_words(
    embedding: nn.Embedding,
    sentences: Sentences,
    share: float,
    generator: torch.Generator | None,
) -> PackedSequence:
    """Embed the words of sentences, drop a share of the entries, and leave out the padding."""
    words = dropout(embedding(sentences.word_ids), share, generator)
    return pack_padded_sequence(
        words, sentences.lengths, batch_first=True, enforce_sorted=False
    )


def initial_embedding(
    vocabulary: Vocabulary,
    vectors: WordVectors | None,
    n_dimensions: int,
    *,
    generator: torch.Generator,
) -> Tensor:
    """Return the embeddings that training starts from.

    Parameters
    ----------
    vocabulary : Vocabulary
    vectors : WordVectors or None
        Vectors of words; the other words, and all if this is None, get random ones.
    n_dimensions : int
        Length of an embedding, which is that of the vectors if they are given.
    generator : torch.Generator

    Returns
    -------
    Tensor of float32, shape (n_words + 1, n_dimensions)
        Row 0 is for words outside the vocabulary. Random entries are normal, with the
        standard deviation of those that were given, or 0.1.
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
