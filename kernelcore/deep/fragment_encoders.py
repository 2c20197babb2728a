"""From regions and sentence fragments to vectors whose products tell what belongs together."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from kernelcore.captions import SentenceFragments
from kernelcore.captions.encoded import offsets_of
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.randomness import dropout, uniform_module


class RegionEncoder(nn.Module):
    r"""An affine map of the features of regions.

    .. math:: v = W_m (x - \mu) / \sigma + b_m

    Parameters
    ----------
    n_features, n_components : int
        Lengths of the features and of the vectors.
    dropout : float, default 0.0
        Share of the features that are dropped in training.
    network : Module, optional
        Makes the features of what it is given, pixels say. It is trained, too, unless its
        parameters are told that they need no gradients.
    generator : torch.Generator
        Draws the weights at the start.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import RegionEncoder, seeded_generator
    >>> encoder = RegionEncoder(3, 8, generator=seeded_generator(0))
    >>> encoder(torch.ones(2, 3)).shape
    torch.Size([2, 8])
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
        self.affine = uniform_module(
            nn.Linear,
            n_features,
            n_components,
            bound=1 / math.sqrt(n_features),
            generator=generator,
        )

    @torch.no_grad()
    def standardize(
        self, mean: npt.NDArray[np.float32], spread: npt.NDArray[np.float32]
    ) -> None:
        """Take these from the features, and divide by these, from now on."""
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(spread))

    def forward(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Encode regions.

        Parameters
        ----------
        rows : Tensor of shape (n_regions, n_features), or whatever the network takes
        generator : torch.Generator, optional
            Draws what is dropped; without it nothing is.

        Returns
        -------
        Tensor of shape (n_regions, n_components)
        """
        features = rows if self.network is None else self.network(rows)
        standard = torch.addcmul(-self.mean / self.scale, features, 1 / self.scale)
        encoded: Tensor = self.affine(dropout(standard, self.dropout, generator))
        return encoded


class FragmentEncoder(nn.Module):
    r"""A layer of rectified units over the vectors of two words, one for each relation.

    .. math:: s = \max(0, W_R [W_e w_1; W_e w_2] + b_R)

    Parameters
    ----------
    embedding : Tensor of shape (n_words, n_dimensions)
        :math:`W_e`, which is not trained.
    n_relations : int
    n_components : int
        Length of the fragments' vectors.
    generator : torch.Generator
        Draws the weights at the start.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import FragmentExtractor
    >>> from kernelcore.deep import FragmentEncoder, seeded_generator
    >>> fragments = FragmentExtractor("bigrams").fit_transform(["a dog runs", "a dog"])
    >>> encoder = FragmentEncoder(torch.eye(3), 1, 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(fragments)
    >>> vectors.shape, offsets
    (torch.Size([3, 8]), array([0, 2, 3]))
    """

    def __init__(
        self,
        embedding: Tensor,
        n_relations: int,
        n_components: int,
        *,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", embedding)
        n_inputs = 2 * embedding.shape[1]
        self.layers = nn.ModuleList(
            uniform_module(
                nn.Linear,
                n_inputs,
                n_components,
                bound=1 / math.sqrt(n_inputs),
                generator=generator,
            )
            for _ in range(n_relations)
        )

    def forward(self, captions: SentenceFragments) -> tuple[Tensor, Offsets]:
        """Encode the fragments of some captions.

        Returns
        -------
        vectors : Tensor of shape (n_fragments, n_components)
        offsets : ndarray of int64, shape (n_captions + 1,)
            Start of each caption's fragments.
        """
        device = self.words.device
        first, second, relations = (
            torch.from_numpy(ids.astype(np.int64)).to(device)
            for ids in (captions.first_ids, captions.second_ids, captions.relation_ids)
        )
        words = torch.cat([self.words[first], self.words[second]], dim=1)
        order = torch.argsort(relations, stable=True)
        counts = np.bincount(captions.relation_ids, minlength=len(self.layers)).tolist()
        parts = zip(self.layers, torch.split(words[order], counts), strict=True)
        vectors = torch.cat([layer(part) for layer, part in parts])
        return F.relu(vectors[torch.argsort(order)]), captions.offsets


class MeanEncoder(nn.Module):
    """A layer of rectified units over the mean of a caption's word vectors, each of length 1.

    Parameters
    ----------
    embedding : Tensor of shape (n_words, n_dimensions)
        They are not trained.
    n_components : int
        Length of the captions' vectors.
    generator : torch.Generator
        Draws the weights at the start.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import FragmentExtractor
    >>> from kernelcore.deep import MeanEncoder, seeded_generator
    >>> fragments = FragmentExtractor("words").fit_transform(["a dog runs", "a dog"])
    >>> encoder = MeanEncoder(torch.eye(3), 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(fragments)
    >>> vectors.shape, offsets
    (torch.Size([2, 8]), array([0, 1, 2]))
    """

    def __init__(
        self, embedding: Tensor, n_components: int, *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", F.normalize(embedding, dim=1))
        n_inputs = embedding.shape[1]
        self.layer = uniform_module(
            nn.Linear,
            n_inputs,
            n_components,
            bound=1 / math.sqrt(n_inputs),
            generator=generator,
        )

    def forward(self, captions: SentenceFragments) -> tuple[Tensor, Offsets]:
        """Encode captions: one vector each, as if each had one fragment.

        A caption's words are the first words of its fragments.
        """
        counts = torch.from_numpy(captions.counts).to(self.words.device)
        owner = torch.repeat_interleave(counts)
        ids = torch.from_numpy(captions.first_ids.astype(np.int64)).to(self.words.device)
        total = self.words.new_zeros(len(counts), self.words.shape[1])
        total.index_add_(0, owner, self.words[ids])
        means = total / counts.clamp(min=1).unsqueeze(1)
        return F.relu(self.layer(means)), offsets_of(np.ones(len(counts), np.int64))
