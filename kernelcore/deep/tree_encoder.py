"""Sentences as the roots of their dependency trees, built up from the leaves."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from kernelcore.captions import SentenceTrees
from kernelcore.captions.encoded import offsets_of
from kernelcore.deep.fragment_losses import Offsets
from kernelcore.deep.randomness import uniform_module


class TreeEncoder(nn.Module):
    r"""A recursive network over dependency trees (SDT-RNN).

    .. math::

        h_i = \tanh \frac1{\ell(i)} \Big( W_v x_i + b_v
            + \sum_{j \in C(i)} \ell(j) W_{R(j)} h_j \Big)

    where :math:`C(i)` are the words whose head is i, :math:`R(j)` is the relation of j to its
    head, and :math:`\ell(i)` is the number of words at and below i. The vector of a sentence
    is that of its root.

    Parameters
    ----------
    embedding : Tensor of shape (n_words, n_dimensions)
        x, which are not trained.
    n_relations : int
    n_components : int
        Length of all vectors h.
    generator : torch.Generator
        Draws the weights at the start; :math:`W_R` is drawn around the identity.

    Notes
    -----
    Words of equal height are computed together, whatever trees they are in.

    References
    ----------
    .. [1] R. Socher et al., "Grounded compositional semantics for finding and describing
       images with sentences", TACL 2, 2014.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import SentenceTrees
    >>> from kernelcore.deep import TreeEncoder, seeded_generator
    >>> trees = SentenceTrees([0, 1, 2], [0, 1, 2], [1, 2, -1], [0, 3], 3, 3)
    >>> encoder = TreeEncoder(torch.eye(3), 3, 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(trees)
    >>> vectors.shape, offsets
    (torch.Size([1, 8]), array([0, 1]))
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
        n_inputs = embedding.shape[1]
        self.leaf = uniform_module(
            nn.Linear,
            n_inputs,
            n_components,
            bound=1 / math.sqrt(n_inputs),
            generator=generator,
        )
        drawn = torch.randn(
            (n_relations, n_components, n_components),
            generator=generator,
            device=generator.device,
        )
        identity = torch.eye(n_components, device=generator.device)
        self.relations = nn.Parameter(identity + drawn * (0.1 / math.sqrt(n_components)))

    def forward(self, captions: SentenceTrees) -> tuple[Tensor, Offsets]:
        """Encode captions: one vector each, zeros for a caption without words."""
        device = self.words.device
        order = np.argsort(captions.heights, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        parents, sizes = captions.parents[order], _sizes(captions)[order]
        parents = np.where(parents < 0, -1, place[parents])
        heights, relations = captions.heights[order], captions.relation_ids[order]
        ids = torch.from_numpy(captions.word_ids[order].astype(np.int64)).to(device)
        known = (ids >= 0).unsqueeze(1)
        inputs = self.leaf(torch.where(known, self.words[ids.clamp(min=0)], 0.0))
        scale = torch.from_numpy(1 / sizes).to(device, inputs.dtype).unsqueeze(1)
        ends = np.cumsum(np.bincount(heights)) if len(heights) else np.zeros(0, np.int64)
        weights = self.relations.unbind()  # the gradient of each is as large as one alone
        states = inputs[:0]
        for start, end in zip((0, *ends[:-1]), ends, strict=True):
            below = np.flatnonzero((parents >= start) & (parents < end))
            total = inputs[start:end]
            for relation in np.unique(relations[below]):
                own = below[relations[below] == relation]
                rows = torch.from_numpy(own).to(device)
                messages = (states[rows] / scale[rows]) @ weights[relation]
                heads = torch.from_numpy(parents[own] - start).to(device)
                total = total.index_add(0, heads, messages)
            states = torch.cat([states, torch.tanh(total * scale[start:end])])
        return self._roots(captions, states, place)

    def _roots(
        self, captions: SentenceTrees, states: Tensor, place: Offsets
    ) -> tuple[Tensor, Offsets]:
        owners = np.repeat(np.arange(len(captions)), captions.counts)
        roots = np.flatnonzero(captions.heads < 0)
        vectors = states.new_zeros(len(captions), self.relations.shape[1])
        rows = torch.from_numpy(owners[roots]).to(states.device)
        found = states[torch.from_numpy(place[roots]).to(states.device)]
        return vectors.index_copy(0, rows, found), offsets_of(np.ones(len(captions), np.int64))


def _sizes(captions: SentenceTrees) -> Offsets:
    """Count the words at and below each word."""
    sizes = np.ones(len(captions.word_ids), np.int64)
    heights, parents = captions.heights, captions.parents
    for height in range(int(heights.max(initial=0))):
        own = np.flatnonzero((heights == height) & (parents >= 0))
        np.add.at(sizes, parents[own], sizes[own])
    return sizes
