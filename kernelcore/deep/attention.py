"""Stacked cross attention (SCAN): words attend to regions, or regions to words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Generator, Tensor
from torch.nn.utils.rnn import pad_sequence

from kernelcore.deep.base import SentenceRanker
from kernelcore.deep.encoders import (
    NO_DROPOUT,
    ContextualRegionEncoder,
    Dropout,
    RecurrentEncoder,
    SentenceSpace,
)
from kernelcore.deep.items import Offsets, Sentences
from kernelcore.deep.losses import Negatives

_SCALES = {
    "t2i": {"temperature": 9.0, "sharpness": 6.0},
    "i2t": {"temperature": 4.0, "sharpness": 20.0},
}
_SENTENCES_AT_ONCE = 32
_SLOPE = 0.1
_TINY = 1e-8


@dataclass(kw_only=True, repr=False, eq=False)
class CrossAttentionRanker(SentenceRanker):
    r"""Ranks images and captions by stacked cross attention (SCAN).

    An affine map encodes each region together with the whole image. A bidirectional gated
    recurrent unit encodes each word in its context. Every word attends to the regions of an
    image, or every region to the words of a caption. The similarity of image and caption is
    pooled from the cosines of each part with its attended vector, see `cross_attention`.

    Parameters
    ----------
    attention : {"t2i", "i2t"}, default "t2i"
        "t2i": words attend to regions. "i2t": regions attend to words. As in [1]_, the
        temperature of the attention is 9 and 4, the sharpness of the pooling 6 and 20.
    n_components : int, default 256
        Length of the vectors. [1]_ has 1024.
    square_root, whole_image, n_drawn, n_embedding, min_count, max_tokens, dropout
        As for `EmbeddingRanker`.
    margin, negatives, n_warm_up, learning_rate, batch_size, n_epochs, patience
        As for `EmbeddingRanker`.
    rng, device
        As for `EmbeddingRanker`.

    Attributes
    ----------
    history_ : History
        Losses of each epoch. The development loss is 1 minus the mean of R@1, R@5 and R@10
        of both directions.
    vocabulary_ : Vocabulary
        Words of the training captions.

    See Also
    --------
    EmbeddingRanker : One vector for an image, one for a caption.
    FragmentRanker : Regions and relations of words.

    Notes
    -----
    In [1]_ a region's vector depends on the region alone, as with ``whole_image=False``. By
    default an affine map of the whole image is added to the vectors of all its regions. The
    first region is the whole image, as `kernelcore.images.RegionCNN` returns them.

    Scores are computed for 64 images and 256 captions at a time. Beside the result, memory
    holds the vectors of all words and some blocks of products, about 100 MB for 20 regions.

    References
    ----------
    .. [1] K.-H. Lee et al., "Stacked cross attention for image-text matching", ECCV 2018.
    .. [2] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.deep import CrossAttentionRanker
    >>> captions = ["a dog", "the sea", "two boats"]
    >>> photos = np.eye(3)
    >>> ranker = CrossAttentionRanker(n_components=8, min_count=1, dropout=0.0,
    ...                               learning_rate=0.01, n_epochs=40, rng=0)
    >>> ranker = ranker.fit(photos, captions, dev=(photos, captions))
    >>> ranker.scores(photos, ["a dog", "boats"]).argmax(axis=0)
    array([0, 2])
    """

    attention: Literal["t2i", "i2t"] = "t2i"
    whole_image: bool = True
    n_drawn: int | None = None
    margin: float = 0.2
    negatives: Negatives = "hardest"
    n_warm_up: int | None = None

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: Generator | None
    ) -> AttentionSpace:
        sizes = n_features, self.n_components
        return AttentionSpace(
            ContextualRegionEncoder(*sizes, whole_image=self.whole_image, generator=generator),
            RecurrentEncoder(embedding, self.n_components, generator=generator),
            is_t2i=self.attention == "t2i",
            **_SCALES[self.attention],
        )


class Parts(NamedTuple):
    """Vectors of the regions of images, or of the words of sentences, with padding mask.

    Attributes
    ----------
    vectors : Tensor of shape (n_items, n_parts, n_components)
        Unit vectors of the parts of each image or sentence, zero for padding.
    mask : Tensor of bool, shape (n_items, n_parts)
        False for padding.
    """

    vectors: Tensor
    mask: Tensor


class AttentionSpace(SentenceSpace):
    """Encoders of regions and of words, compared by cross attention.

    Parameters
    ----------
    regions : ContextualRegionEncoder
    sentences : RecurrentEncoder
        Their vectors have the same length.
    is_t2i : bool
        Whether words attend to regions, or regions to words.
    **scales
        See `cross_attention`.
    """

    block = (64, 256)

    def __init__(
        self,
        regions: ContextualRegionEncoder,
        sentences: RecurrentEncoder,
        *,
        is_t2i: bool,
        **scales: float,
    ) -> None:
        super().__init__()
        self.regions = regions
        self.sentences = sentences
        self.is_t2i = is_t2i
        self.scales = scales

    def encode_images(
        self, rows: Tensor, offsets: Offsets, dropout: Dropout = NO_DROPOUT
    ) -> Parts:
        """Encode the regions of images as unit vectors."""
        vectors = F.normalize(self.regions(rows, offsets, dropout), dim=1)
        counts = np.diff(offsets).tolist()
        positions = torch.arange(max(counts), device=rows.device)
        mask = positions < torch.tensor(counts, device=rows.device).unsqueeze(1)
        return Parts(pad_sequence(list(torch.split(vectors, counts)), batch_first=True), mask)

    def encode_captions(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Parts:
        """Encode the words of sentences as unit vectors."""
        states, mask = self.sentences.words(sentences, dropout)
        return Parts(F.normalize(states, dim=2), mask)

    def similarities(self, images: Parts, captions: Parts) -> Tensor:
        """Compare every image with every sentence."""
        # Small groups of sentences of similar length need less padding and fit the cache.
        lengths = captions.mask.sum(1)
        order = torch.argsort(lengths, stable=True)
        columns = []
        for rows in torch.split(order, _SENTENCES_AT_ONCE):
            n_words = int(lengths[rows[-1]])
            group = Parts(captions.vectors[rows, :n_words], captions.mask[rows, :n_words])
            columns.append(self._similarities(images, group))
        return torch.cat(columns, 1)[:, torch.argsort(order)]

    def _similarities(self, images: Parts, captions: Parts) -> Tensor:
        contexts, queries = (images, captions) if self.is_t2i else (captions, images)
        products = contexts.vectors.flatten(0, 1) @ queries.vectors.flatten(0, 1).T
        similarities = cross_attention(
            products.reshape(*contexts.mask.shape, *queries.mask.shape),
            contexts.vectors @ contexts.vectors.mT,
            queries.mask,
            contexts.mask,
            **self.scales,
        )
        return similarities if self.is_t2i else similarities.T


def cross_attention(
    products: Tensor,
    context_gram: Tensor,
    query_mask: Tensor,
    context_mask: Tensor,
    *,
    temperature: float,
    sharpness: float = 6.0,
) -> Tensor:
    r"""Similarity of sets of queries with sets of contexts by attention.

    With the cosine :math:`s_{cq}` of context c and query q, all of them unit vectors:

    .. math::

        \tilde{s}_{cq} &= \lambda(s_{cq}) \Big/ \sqrt{\textstyle\sum_{q'} \lambda(s_{cq'})^2},
            \quad \lambda(s) = \max(s, 0.1 s) \\
        a_q &= \textstyle\sum_c \alpha_{cq} c, \quad
            \alpha_{cq} = e^{T \tilde{s}_{cq}} \Big/ \sum_{c'} e^{T \tilde{s}_{c'q}} \\
        S &= \frac1\gamma \log \sum_q e^{\gamma \cos(q, a_q)}

    The attended vectors :math:`a_q` are not computed. With :math:`G_{cc'} = c \cdot c'`,

    .. math:: \cos(q, a_q) = \sum_c \alpha_{cq} s_{cq} \Big/ \sqrt{\alpha_q^\top G \alpha_q},

    which costs n^2 operations for each pair of a query and a set of n contexts. Computing
    the attended vectors costs n times the length of a vector.

    Parameters
    ----------
    products : Tensor of shape (n_context_sets, n_contexts, n_query_sets, n_queries)
        :math:`s_{cq}` of all contexts and queries.
    context_gram : Tensor of shape (n_context_sets, n_contexts, n_contexts)
        G of each set.
    query_mask : Tensor of bool, shape (n_query_sets, n_queries)
        Padding mask of the queries: False for padding. Each set has at least one query.
    context_mask : Tensor of bool, shape (n_context_sets, n_contexts)
        Padding mask of the contexts.
    temperature : float
        T. In [1]_ 9 if words attend to regions, 4 if regions attend to words.
    sharpness : float, default 6.0
        :math:`\gamma`.

    Returns
    -------
    Tensor of shape (n_context_sets, n_query_sets)

    Raises
    ------
    ValueError
        If the shapes do not agree.

    References
    ----------
    .. [1] K.-H. Lee et al., "Stacked cross attention for image-text matching", ECCV 2018.

    Examples
    --------
    A caption of two words; the image shows one of them:

    >>> import torch
    >>> from kernelcore.deep import cross_attention
    >>> regions, words = torch.eye(3)[:2], torch.eye(3)[1:]
    >>> S = cross_attention(
    ...     (regions @ words.T).reshape(1, 2, 1, 2),
    ...     (regions @ regions.T).reshape(1, 2, 2),
    ...     torch.ones(1, 2, dtype=torch.bool),
    ...     torch.ones(1, 2, dtype=torch.bool),
    ...     temperature=9.0,
    ...     sharpness=1.0,
    ... )
    >>> round(float(S), 3)
    1.313
    """
    if products.ndim != 4:
        raise ValueError(f"products must be 4-D, got shape {tuple(products.shape)}")
    n_sets, n_contexts, n_query_sets, n_queries = products.shape
    expected = (
        ("context_gram", context_gram, (n_sets, n_contexts, n_contexts)),
        ("query_mask", query_mask, (n_query_sets, n_queries)),
        ("context_mask", context_mask, (n_sets, n_contexts)),
    )
    for name, tensor, shape in expected:
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")
    raised = F.leaky_relu(products, _SLOPE) * query_mask
    lengths = raised.square().sum(3, keepdim=True).add(_TINY**2).sqrt()
    logits = (raised * (temperature / lengths)).flatten(2)
    logits = logits.masked_fill(~context_mask.unsqueeze(2), -torch.inf)
    weights = logits.softmax(1)
    along = (weights * products.flatten(2)).sum(1)
    squared = (weights * (context_gram @ weights)).sum(1)
    cosines = (along * squared.clamp(min=_TINY).rsqrt()).reshape(-1, n_query_sets, n_queries)
    sharp: Tensor = (sharpness * cosines).masked_fill(~query_mask, -torch.inf)
    return sharp.logsumexp(2) / sharpness
