"""Deep fragment embeddings: encoders of captions, their space with regions, and its losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Generator, Tensor, nn

from kernelcore._ragged import offsets_of
from kernelcore.captions import SentenceFragments, SentenceTrees
from kernelcore.deep.encoders import FeatureEncoder, Space, linear
from kernelcore.deep.items import Offsets, RegionTable

Captions: TypeAlias = SentenceFragments | SentenceTrees

_IMAGES_AT_ONCE = 32
_CAPTIONS_AT_ONCE = 512
_FRAGMENTS_AT_ONCE = 8192


class FragmentEncoder(nn.Module):
    r"""One layer of rectified units over two word vectors, with weights for each relation.

    .. math:: s = \max(0, W_R [W_e w_1; W_e w_2] + b_R)

    Parameters
    ----------
    words : Tensor of shape (n_words, n_dimensions)
        :math:`W_e`, which is not trained.
    n_relations : int
    n_components : int
        Length of the vectors of fragments.
    generator : torch.Generator, optional
        Draws the initial weights.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import FragmentExtractor
    >>> from kernelcore.deep.fragment_space import FragmentEncoder
    >>> from kernelcore.deep.training import seeded_generator
    >>> fragments = FragmentExtractor("bigrams").fit_transform(["a dog runs", "a dog"])
    >>> encoder = FragmentEncoder(torch.eye(3), 1, 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(fragments)
    >>> vectors.shape, offsets
    (torch.Size([3, 8]), array([0, 2, 3]))
    """

    def __init__(
        self, words: Tensor, n_relations: int, n_components: int, *, generator: Generator | None
    ) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", words)
        n_inputs = 2 * words.shape[1]
        self.layers = nn.ModuleList(
            linear(n_inputs, n_components, generator=generator) for _ in range(n_relations)
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
    """One layer of rectified units over the mean of a caption's word vectors.

    Word vectors are scaled to length 1 first.

    Parameters
    ----------
    words : Tensor of shape (n_words, n_dimensions)
        They are not trained.
    n_components : int
        Length of the vectors of captions.
    generator : torch.Generator, optional
        Draws the initial weights.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import FragmentExtractor
    >>> from kernelcore.deep.fragment_space import MeanEncoder
    >>> from kernelcore.deep.training import seeded_generator
    >>> fragments = FragmentExtractor("words").fit_transform(["a dog runs", "a dog"])
    >>> encoder = MeanEncoder(torch.eye(3), 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(fragments)
    >>> vectors.shape, offsets
    (torch.Size([2, 8]), array([0, 1, 2]))
    """

    def __init__(
        self, words: Tensor, n_components: int, *, generator: Generator | None
    ) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", F.normalize(words, dim=1))
        self.layer = linear(words.shape[1], n_components, generator=generator)

    def forward(self, captions: SentenceFragments) -> tuple[Tensor, Offsets]:
        """Encode each caption as if it had one fragment.

        The words of a caption are the first words of its fragments.
        """
        counts = torch.from_numpy(captions.counts).to(self.words.device)
        owner = torch.repeat_interleave(counts)
        ids = torch.from_numpy(captions.first_ids.astype(np.int64)).to(self.words.device)
        total = self.words.new_zeros(len(counts), self.words.shape[1])
        total.index_add_(0, owner, self.words[ids])
        means = total / counts.clamp(min=1).unsqueeze(1)
        return F.relu(self.layer(means)), np.arange(len(counts) + 1)


class TreeEncoder(nn.Module):
    r"""Recursive network over dependency trees (SDT-RNN).

    .. math::

        h_i = \tanh \frac1{\ell(i)} \Big( W_v x_i + b_v
            + \sum_{j \in C(i)} \ell(j) W_{R(j)} h_j \Big)

    where :math:`C(i)` are the words whose head is i, :math:`R(j)` is the relation of j to its
    head, and :math:`\ell(i)` is the number of words in the subtree of i. The vector of a
    sentence is the vector of its root.

    Parameters
    ----------
    words : Tensor of shape (n_words, n_dimensions)
        x. They are not trained.
    n_relations : int
    n_components : int
        Length of all vectors h.
    generator : torch.Generator, optional
        Draws the initial weights. :math:`W_R` is the identity plus noise.

    Notes
    -----
    Words of equal height are computed together, across all trees.

    References
    ----------
    .. [1] R. Socher et al., "Grounded compositional semantics for finding and describing
       images with sentences", TACL 2, 2014.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.captions import SentenceTrees
    >>> from kernelcore.deep.fragment_space import TreeEncoder
    >>> from kernelcore.deep.training import seeded_generator
    >>> trees = SentenceTrees([0, 1, 2], [0, 1, 2], [1, 2, -1], [0, 3], 3, 3)
    >>> encoder = TreeEncoder(torch.eye(3), 3, 8, generator=seeded_generator(0))
    >>> vectors, offsets = encoder(trees)
    >>> vectors.shape, offsets
    (torch.Size([1, 8]), array([0, 1]))
    """

    def __init__(
        self, words: Tensor, n_relations: int, n_components: int, *, generator: Generator | None
    ) -> None:
        super().__init__()
        self.words: Tensor
        self.register_buffer("words", words)
        self.leaf = linear(words.shape[1], n_components, generator=generator)
        shape = n_relations, n_components, n_components
        device = words.device
        noise = torch.randn(shape, generator=generator, device=device) / math.sqrt(n_components)
        self.relations = nn.Parameter(torch.eye(n_components, device=device) + 0.1 * noise)

    def forward(self, captions: SentenceTrees) -> tuple[Tensor, Offsets]:
        """Encode each caption by one vector, which is zero for a caption without words."""
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
        # Indexing the parameter would compute a gradient of full size for each relation.
        weights = self.relations.unbind()
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
        owners = np.repeat(np.arange(len(captions)), captions.counts)
        roots = np.flatnonzero(captions.heads < 0)
        vectors = states.new_zeros(len(captions), self.relations.shape[1])
        found = states[torch.from_numpy(place[roots]).to(device)]
        rows = torch.from_numpy(owners[roots]).to(device)
        return vectors.index_copy(0, rows, found), np.arange(len(captions) + 1)


def _sizes(captions: SentenceTrees) -> Offsets:
    """Count the words in the subtree of each word."""
    sizes = np.ones(len(captions.word_ids), np.int64)
    heights, parents = captions.heights, captions.parents
    for height in range(int(heights.max(initial=0))):
        own = np.flatnonzero((heights == height) & (parents >= 0))
        np.add.at(sizes, parents[own], sizes[own])
    return sizes


class FragmentSpace(Space):
    """Encoders of regions and of fragments, compared by products of their vectors.

    Parameters
    ----------
    regions : FeatureEncoder
    captions : FragmentEncoder, MeanEncoder or TreeEncoder
        Their vectors have the same length.
    smoothing : float
        See `fragment_similarities`.
    """

    def __init__(
        self,
        regions: FeatureEncoder,
        captions: FragmentEncoder | MeanEncoder | TreeEncoder,
        smoothing: float,
    ) -> None:
        super().__init__()
        self.regions = regions
        self.captions = captions
        self.smoothing = smoothing

    @torch.no_grad()
    def scores(self, table: RegionTable, captions: Captions) -> npt.NDArray[np.float32]:
        """Return the similarity of every image with every caption, block by block."""
        result = np.empty((len(table), len(captions)), np.float32)
        fragments, offsets, positions = self._distinct(captions)
        for images in _blocks(len(table), _IMAGES_AT_ONCE):
            rows, region_offsets = table.take(images, self.device)
            regions = self.regions(rows)
            means = torch.cat(
                [
                    mean_over_regions(regions @ part.T, region_offsets)
                    for part in torch.split(fragments, _FRAGMENTS_AT_ONCE)
                ],
                dim=1,
            )
            for columns in _blocks(len(captions), _CAPTIONS_AT_ONCE):
                own = offsets[columns[0] : columns[-1] + 2]
                shown = means[:, positions[own[0] : own[-1]]]
                block = mean_over_fragments(shown, own - own[0], self.smoothing)
                result[np.ix_(images, columns)] = block.cpu().numpy()
        return result

    def _distinct(self, captions: Captions) -> tuple[Tensor, Offsets, Tensor]:
        """Encode each distinct fragment once.

        Returns the vectors, the offsets of the fragments of the captions, and the position
        of the vector of each fragment.
        """
        if isinstance(captions, SentenceTrees) or not isinstance(
            self.captions, FragmentEncoder
        ):
            vectors, offsets = self.captions(captions)  # one vector for each caption
            return vectors, offsets, torch.arange(len(vectors), device=self.device)
        ids = np.stack([captions.relation_ids, captions.first_ids, captions.second_ids])
        distinct, positions = np.unique(ids, axis=1, return_inverse=True)
        one = offsets_of([distinct.shape[1]])
        sizes = captions.n_relations, captions.n_words
        vectors, _ = self.captions(
            SentenceFragments(distinct[0], distinct[1], distinct[2], one, *sizes)
        )
        return vectors, captions.offsets, torch.from_numpy(positions.ravel()).to(self.device)

    def region_vectors(
        self, table: RegionTable, at_once: int = _IMAGES_AT_ONCE
    ) -> Iterator[Tensor]:
        """Yield the vectors of the regions of so many images at a time."""
        for images in _blocks(len(table), at_once):
            yield self.regions(table.take(images, self.device)[0])

    def image_vectors(self, table: RegionTable) -> Tensor:
        """Encode images of one region each, shape (n_images, n_components)."""
        return torch.cat(list(self.region_vectors(table)))

    def caption_vectors(self, captions: Captions) -> Tensor:
        """Encode captions so that the products with image vectors are the scores."""
        vectors: Tensor = self.captions(captions)[0] / (1 + self.smoothing)
        return vectors


def _blocks(n: int, size: int) -> list[npt.NDArray[np.intp]]:
    return [np.arange(start, min(start + size, n)) for start in range(0, n, size)]


def mean_over_regions(products: Tensor, region_offsets: Offsets) -> Tensor:
    """Return the mean of max(0, product) for each image, shape (n_images, n_fragments)."""
    return _averages(region_offsets, 0.0, products) @ F.relu(products)


def mean_over_fragments(means: Tensor, fragment_offsets: Offsets, smoothing: float) -> Tensor:
    """Return the smoothed mean for each sentence, shape (n_images, n_sentences)."""
    return means @ _averages(fragment_offsets, smoothing, means).T


def owners_of(offsets: Offsets, like: Tensor) -> Tensor:
    """Return the image or sentence of each part."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return torch.from_numpy(owners).to(like.device)


def _averages(offsets: Offsets, smoothing: float, like: Tensor) -> Tensor:
    """Return the matrix that averages over the parts of each owner, with smoothing."""
    counts = np.diff(offsets)
    weights = torch.from_numpy(1 / np.maximum(counts + smoothing, np.finfo(float).tiny))
    owners = owners_of(offsets, like)
    parts = torch.arange(len(owners), device=like.device)
    averages = like.new_zeros(len(counts), len(owners))
    averages[owners, parts] = weights.to(like.device, like.dtype)[owners]
    return averages


def alignment_loss(
    products: Tensor,
    region_offsets: Offsets,
    fragment_offsets: Offsets,
    *,
    multiple_instance: bool,
    balanced: bool = False,
) -> Tensor:
    r"""Hinge loss of every region with every fragment. Image k belongs to sentence k.

    .. math:: \frac1b \sum_i \sum_j \max(0, 1 - y_{ij} v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
    region_offsets, fragment_offsets : ndarray of int64, shape (b + 1,)
        Start of the regions of each image and of the fragments of each sentence.
    multiple_instance : bool
        If False, :math:`y_{ij}` is 1 for every region and fragment of the same pair. If
        True, it is the sign of their product, and 1 for the largest product of a fragment
        if none is positive. So at least one region of the image shows each fragment.
        Across pairs it is -1 in both cases.
    balanced : bool, default False
        For each fragment, add the mean over its positive regions and the mean over its
        negative regions; then average over all fragments. Without this, the negatives of a
        minibatch of b pairs outweigh the positives by b - 1 to 1.

    Returns
    -------
    Tensor
        A scalar, at least 0.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014, equations 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from kernelcore.deep import alignment_loss
    >>> products = torch.tensor([[0.5], [-0.5]])
    >>> regions, fragments = np.array([0, 2]), np.array([0, 1])
    >>> [float(alignment_loss(products, regions, fragments, multiple_instance=mil))
    ...  for mil in (False, True)]
    [2.0, 1.0]
    """
    rows, inside = _bags(region_offsets, fragment_offsets, products)
    own = products.gather(0, rows)
    positive = _instances(own.detach(), inside) if multiple_instance else inside
    # Sum the hinges of all products as negatives, then correct the few positive ones.
    negatives = F.relu(1 + products).sum(0)
    negatives = negatives - (F.relu(1 + own) * positive).sum(0)
    positives = (F.relu(1 - own) * positive).sum(0)
    if not balanced:
        return (positives + negatives).sum() / (len(region_offsets) - 1)
    n_positive = positive.sum(0)
    n_negative = len(products) - n_positive
    means = positives / n_positive.clamp(min=1) + negatives / n_negative.clamp(min=1)
    return means.sum() / max(products.shape[1], 1)


def fragment_similarities(
    products: Tensor, region_offsets: Offsets, fragment_offsets: Offsets, *, smoothing: float
) -> Tensor:
    r"""Similarity of every image with every sentence, from products of regions and fragments.

    .. math::

        S_{kl} = \frac1{|g_k| (|g_l| + n)} \sum_{i \in g_k} \sum_{j \in g_l}
            \max(0, v_i^\top s_j)

    Parameters
    ----------
    products : Tensor of shape (n_regions, n_fragments)
        :math:`v_i^\top s_j` for the regions of all images and the fragments of all sentences.
    region_offsets : ndarray of int64, shape (n_images + 1,)
        Start of the regions of each image, and the end of the last.
    fragment_offsets : ndarray of int64, shape (n_sentences + 1,)
        Start of the fragments of each sentence, and the end of the last.
    smoothing : float
        n. Without smoothing, sentences with few fragments score higher.

    Returns
    -------
    Tensor of shape (n_images, n_sentences)
        The similarity is 0 for a sentence without fragments and an image without regions.

    Notes
    -----
    Both sums are computed as products with a membership matrix, which is deterministic.

    References
    ----------
    .. [1] A. Karpathy, A. Joulin and L. Fei-Fei, "Deep fragment embeddings for bidirectional
       image sentence mapping", NIPS 2014, equation 6.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from kernelcore.deep import fragment_similarities
    >>> products = torch.tensor([[2.0, -1.0, 4.0], [1.0, 3.0, -5.0]])
    >>> fragment_similarities(products, np.array([0, 2]), np.array([0, 2, 3]), smoothing=1.0)
    tensor([[1., 1.]])
    """
    return mean_over_fragments(
        mean_over_regions(products, region_offsets), fragment_offsets, smoothing
    )


def _bags(
    region_offsets: Offsets, fragment_offsets: Offsets, products: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the regions of each fragment's own image as table rows, and a padding mask.

    Both have one column per fragment, and one row per region of the largest image.
    """
    counts = np.diff(region_offsets)
    steps = torch.arange(int(counts.max(initial=0)), device=products.device).unsqueeze(1)
    pairs = owners_of(fragment_offsets, products)
    starts, ends = (
        torch.from_numpy(part).to(products.device)[pairs]
        for part in (region_offsets[:-1], region_offsets[1:])
    )
    rows = starts + steps
    return rows.clamp(max=len(products) - 1), rows < ends


def _instances(own: Tensor, inside: Tensor) -> Tensor:
    """Return which regions of the own image are positive for each fragment."""
    instances = inside & (own > 0)
    best = own.masked_fill(~inside, -torch.inf).argmax(0)
    columns = torch.nonzero(inside.any(0) & ~instances.any(0)).squeeze(1)
    instances[best[columns], columns] = True
    return instances
