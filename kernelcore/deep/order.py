"""Order embeddings: a caption must lie below its image in a partial order."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from kernelcore._check import (
    as_integer_array,
    check_flag,
    check_non_negative,
    check_real,
)
from kernelcore.captions import STOP_WORDS
from kernelcore.deep.base import SentenceRanker, VectorRanker
from kernelcore.deep.embedding import EmbeddingSpace, cosines
from kernelcore.deep.encoders import (
    NO_DROPOUT,
    Dropout,
    FeatureEncoder,
    WordEmbedding,
    linear,
    recurrent,
)
from kernelcore.deep.items import Offsets, Sentences
from kernelcore.deep.losses import Negatives
from kernelcore.deep.training import torch_threads
from kernelcore.evaluation.caption_metrics import bleu_tokens, rouge_tokens
from kernelcore.lexical import WordVectors
from kernelcore.models.base import Pairs

Similarity: TypeAlias = Literal["texts below", "images below", "cosine"]

UnitLength: TypeAlias = Literal["upper", "both", "none"]

_ENTRIES_AT_ONCE = {"cpu": 1 << 19}  # fits the cache of a core
_ENTRIES_ON_OTHERS = 1 << 25


@dataclass(kw_only=True, repr=False, eq=False)
class OrderRanker(SentenceRanker, VectorRanker):
    r"""Ranks images and texts by the violation of a partial order.

    Three affine layers map the features of an image to a vector v. An LSTM reads the stems of
    the content words of a text, and an affine layer maps its last hidden state to a vector t.
    The absolute value makes the entries of both non-negative. A text lies below an image if no
    entry of t is smaller than that of v. The score is the negative penalty of violations:

    .. math:: S(T, I) = -\lVert \max(0, v_I - t_T) \rVert^2

    The loss is `hinge_loss`, summed over the negatives of a minibatch. On a plateau of the
    development loss the learning rate is halved; where it would fall below its floor, it is
    reset and the batch size is doubled [1]_.

    Parameters
    ----------
    joined : bool, default True
        Join all captions of an image into one training text, as in [1]_. If False, each
        caption is a text. `scores` joins nothing, see `join_captions`.
    similarity : {"texts below", "images below", "cosine"}, default "texts below"
        Which side must lie below the other. In [2]_ images lie below their captions.
        "cosine" compares the same vectors by their cosine.
    unit_length : {"upper", "both", "none"}, default "upper"
        Which sides have vectors of length 1: the upper side alone, both as in [2]_, or none.
        With the cosine, both have.
    regions : {"first", "mean"}, default "first"
        Which features represent an image: those of the first region, which is the whole
        image, or the mean over all regions.
    n_components : int, default 256
        Length of the vectors. [1]_ has 1024.
    n_hidden : int, default 512
        Units of the first two image layers. [1]_ has 1024.
    n_states : int or None, default 128
        Length of the hidden state of the LSTM. None stands for the text vector of [1]_, which
        is the last hidden state itself, of length `n_components`: no affine layer and no
        absolute value follow, so it may have negative entries.
    min_count : int, default 2
        Stems that occur less often in the training captions are unknown.
    max_tokens : int, default 70
        Texts are truncated to this number of stems.
    dropout : float, default 0.1
        Share of the inputs of every layer that is dropped in training.
    margin : float, default 0.05
        :math:`\alpha`.
    negatives : {"sum", "mean", "hardest"}, default "sum"
        How the hinges of the negatives of a minibatch are reduced. Other texts of the same
        image are not negatives.
    n_warm_up : int, default 0
        Number of epochs, from the first on, in which all negatives are summed.
    variance_weight : float, default 0.0
        Weight of the variance of the vectors of a minibatch. The weighted variance is
        subtracted from the loss, see Notes.
    learning_rate : float, default 2e-3
        Initial learning rate, and the rate after the batch size was doubled. [1]_ has 0.1.
    min_learning_rate : float, default 5e-4
        Floor at which the batch size is doubled. [1]_ has 1e-7.
    batch_size : int, default 64
        Initial number of texts in a minibatch. [1]_ has 16.
    n_epochs : int, default 16
        Number of epochs. The epoch with the best recalls on the development items is kept.
    square_root, n_embedding, patience, rng, device
        As for `EmbeddingRanker`.

    Attributes
    ----------
    history_ : History
        Losses, learning rate and batch size of each epoch. The development loss is 1 minus
        the mean of R@1, R@5 and R@10 of both directions.
    vocabulary_ : Vocabulary
        Stems of the training captions.

    See Also
    --------
    join_captions : Joins the captions of each image into one text.
    order_similarities : The similarity.
    EmbeddingRanker : Compares by the cosine, and reads all words of captions.

    Notes
    -----
    By default vectors of the upper side have length 1, those of the lower side any length. At
    the learning rate of [1]_ the training collapses: soon all texts have the same vector, or
    all images if theirs have length 1.

    [1]_ subtracts :math:`\sigma^2(T')` and :math:`\sigma^2(I')` from the hinges of the
    negatives :math:`T'` and :math:`I'`, "discrete variance written as :math:`\sum_n (x -
    \mu_c) / |n|`". As printed this is 0. Here it is the mean squared distance of the n
    vectors of the minibatch to their mean :math:`\mu_c`, divided by their mean square.
    Without the division, longer vectors would reduce the loss without bound.

    References
    ----------
    .. [1] H. A. Khojasteh, "Automatic image description generation using deep multimodal
       embeddings", master thesis, IASBS, Zanjan 2019, chapter 4.
    .. [2] I. Vendrov, R. Kiros, S. Fidler and R. Urtasun, "Order-embeddings of images and
       language", ICLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.deep import OrderRanker
    >>> captions = ["a dog", "the sea", "two boats", "it runs", "waves", "white sails"]
    >>> photos = np.eye(3)
    >>> ranker = OrderRanker(n_components=16, n_hidden=16, n_states=8, min_count=1,
    ...                      dropout=0.0, learning_rate=0.01, min_learning_rate=0.01, rng=1)
    >>> owners = [0, 1, 2, 0, 1, 2]
    >>> ranker = ranker.fit(photos, captions, caption_image=owners,
    ...                     dev=(photos, captions, owners))
    >>> ranker.scores(photos, ["a running dog", "sails of boats"]).argmax(axis=0)
    array([0, 2])
    """

    joined: bool = True
    similarity: Similarity = "texts below"
    unit_length: UnitLength = "upper"
    regions: Literal["first", "mean"] = "first"
    n_hidden: int = 512
    n_states: int | None = 128
    max_tokens: int = 70
    dropout: float = 0.1
    margin: float = 0.05
    negatives: Negatives = "sum"
    n_warm_up: int | None = 0
    variance_weight: float = 0.0
    learning_rate: float = 2e-3
    min_learning_rate: float = 5e-4
    batch_size: int = 64
    n_epochs: int = 16

    def penalties(
        self,
        images: Any,
        captions: Sequence[str],
        *,
        reverse: bool = False,
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        r"""Measure how much every pair of image and text violates the order.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of str
        reverse : bool, default False
            Penalise images that do not lie below the texts, instead of texts that do not lie
            below the images.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_texts)
            :math:`\lVert \max(0, v - t) \rVert^2`, in reverse
            :math:`\lVert \max(0, t - v) \rVert^2`. It is 0 if the order holds.
        """
        check_flag("reverse", reverse)
        own = self.embed_images(images, n_threads=n_threads)
        texts = self.embed_captions(captions, n_threads=n_threads)
        vectors = (torch.from_numpy(part).to(self.space_.device) for part in (own, texts))
        compare = images_below if reverse else order_similarities
        with torch_threads(n_threads):
            penalties: npt.NDArray[np.float32] = compare(*vectors).abs().cpu().numpy()
        return penalties

    def _check_params(self) -> None:
        super()._check_params()
        check_real("min_learning_rate", self.min_learning_rate, maximum=self.learning_rate)

    def _pairs(
        self, name: str, images: Any, captions: Any, caption_image: Any, *, prefix: str = ""
    ) -> Pairs:
        pairs = super()._pairs(name, images, captions, caption_image, prefix=prefix)
        if self.joined:
            return Pairs(pairs.images, *join_captions(pairs.captions, pairs.caption_image))
        return pairs

    def _tokenize(self, text: str) -> list[str]:
        return rouge_tokens(text)

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: Generator
    ) -> Sentences:
        if word_vectors is not None:
            word_vectors = stem_vectors(training.captions, word_vectors)
        return super()._learn(training, word_vectors, generator)

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        """Halve the rate on plateaus; at its floor, double the batch size and restart.

        A restart looks for new minima among its own losses.
        """
        rate, batch_size, best = self.learning_rate, self.batch_size, math.inf
        for loss in dev_losses:
            if loss < best:
                best = loss
                continue
            rate /= 2
            if rate < self.min_learning_rate:
                rate, batch_size, best = self.learning_rate, 2 * batch_size, math.inf
        return rate, batch_size

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: Generator | None
    ) -> EmbeddingSpace:
        """Make the space.

        With `unit_length="upper"` vectors of the upper side have length 1, vectors of the lower
        side any length. If both lengths are 1, only equal vectors lie below each other. If both
        are free, longer vectors of the lower side lie below everything.
        """
        is_both = self.similarity == "cosine" or self.unit_length == "both"
        is_upper = self.unit_length == "upper"
        return EmbeddingSpace(
            ImageLayers(n_features, self.n_hidden, self.n_components, generator=generator),
            TextEncoder(embedding, self.n_states, self.n_components, generator=generator),
            _SIMILARITIES[self.similarity],
            unit_images=is_both or (is_upper and self.similarity == "texts below"),
            unit_texts=is_both or (is_upper and self.similarity == "images below"),
        )


class ImageLayers(nn.Module):
    r"""Three affine layers over standardised features, and the absolute value.

    .. math:: v = |W_2 \max(0, W_1 \max(0, W_0 (x - \mu) / \sigma + b_0) + b_1) + b_2|

    Parameters
    ----------
    n_features, n_hidden, n_components : int
        Lengths of the features, of the hidden layers, and of the vectors.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self, n_features: int, n_hidden: int, n_components: int, generator: Generator | None
    ) -> None:
        super().__init__()
        self.dense = FeatureEncoder(n_features, n_hidden, generator=generator)
        self.layers = nn.ModuleList(
            linear(n_hidden, size, generator=generator) for size in (n_hidden, n_components)
        )

    def forward(self, rows: Tensor, offsets: Offsets, dropout: Dropout) -> Tensor:
        """Encode images of one feature row each, shape (n_images, n_components)."""
        hidden: Tensor = self.dense(rows, dropout)
        for layer in self.layers:
            hidden = layer(dropout(hidden.relu()))
        return hidden.abs()


class TextEncoder(WordEmbedding):
    r"""Last hidden state of an LSTM over word embeddings, through an affine map.

    .. math:: t = |W h_T + b|, \quad h_t = \mathrm{LSTM}(W_{w_t}, h_{t-1})

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings, see `WordEmbedding`.
    n_states : int or None
        Length of the hidden state. None: the text vector is :math:`h_T`, of length
        `n_components`.
    n_components : int
        Length of the vectors.
    generator : torch.Generator, optional
        Draws the initial weights.

    Notes
    -----
    The LSTM reads padded sentences, because torch has a compiled version for them on a CPU. A
    training epoch takes a half to a quarter of the time of packed sequences. Padding follows
    the words, so it does not change the hidden state after the last word.
    """

    def __init__(
        self,
        embedding: Tensor,
        n_states: int | None,
        n_components: int,
        *,
        generator: Generator | None,
    ) -> None:
        super().__init__(embedding)
        self.lstm = recurrent(
            nn.LSTM, embedding.shape[1], n_states or n_components, generator=generator
        )
        self.dense: nn.Module | None = None
        if n_states is not None:
            self.dense = linear(n_states, n_components, generator=generator)

    def forward(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode texts, shape (n_texts, n_components)."""
        states, _ = self.lstm(self.embed(sentences, dropout))
        ends = sentences.lengths.to(states.device) - 1
        last: Tensor = states[torch.arange(len(ends), device=states.device), ends]
        if self.dense is None:
            return last
        encoded: Tensor = self.dense(dropout(last))
        return encoded.abs()


def order_similarities(images: Tensor, texts: Tensor) -> Tensor:
    r"""Similarity of every image with every text: the negative penalty of order violations.

    .. math:: S(T, I) = -\lVert \max(0, v_I - v_T) \rVert^2

    A text lies below an image if no entry of its vector is smaller. Then the penalty is 0.
    The order is not symmetric: to require that images lie below texts, exchange the arguments
    and transpose the result. Values and gradient are computed block by block, so memory holds
    the differences of one block only.

    Parameters
    ----------
    images : Tensor of shape (n_images, n_components)
    texts : Tensor of shape (n_texts, n_components)

    Returns
    -------
    Tensor of shape (n_images, n_texts)
        At most 0. float64 if the vectors are float64, else float32.

    Raises
    ------
    ValueError
        If the vectors differ in length.

    References
    ----------
    .. [1] I. Vendrov, R. Kiros, S. Fidler and R. Urtasun, "Order-embeddings of images and
       language", ICLR 2016, equation 2.

    Examples
    --------
    >>> import torch
    >>> from kernelcore.deep import order_similarities
    >>> images = torch.tensor([[1.0, 0.0], [2.0, 2.0]])
    >>> texts = torch.tensor([[1.0, 3.0], [0.0, 0.0]])
    >>> order_similarities(images, texts)
    tensor([[ 0., -1.],
            [-1., -8.]])
    """
    if images.ndim != 2 or texts.ndim != 2 or images.shape[1] != texts.shape[1]:
        raise ValueError(
            "images and texts must be rows of one length, got shapes "
            f"{tuple(images.shape)} and {tuple(texts.shape)}"
        )
    dtype = torch.promote_types(torch.promote_types(images.dtype, texts.dtype), torch.float32)
    values: Tensor = _NegatedPenalties.apply(  # type: ignore[no-untyped-call]
        images.to(dtype), texts.to(dtype)
    )
    return values


def images_below(images: Tensor, texts: Tensor) -> Tensor:
    """Similarity of every image with every text where images must lie below texts."""
    return order_similarities(texts, images).T


_SIMILARITIES = {
    "texts below": order_similarities,
    "images below": images_below,
    "cosine": cosines,
}


class _PenaltyContext(FunctionCtx):
    saved_tensors: tuple[Tensor, Tensor]


class _NegatedPenalties(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _PenaltyContext, images: Tensor, texts: Tensor) -> Tensor:
        ctx.save_for_backward(images, texts)
        penalties = images.new_empty((len(images), len(texts)))
        for rows, excess in _excesses(images, texts):
            torch.sum(excess.square_(), -1, out=penalties[rows])
        return 0 - penalties  # not -penalties, which would turn 0 into -0

    @staticmethod
    @once_differentiable
    def backward(ctx: _PenaltyContext, upstream: Tensor) -> Any:
        images, texts = ctx.saved_tensors
        by_images, by_texts = torch.empty_like(images), torch.zeros_like(texts)
        weights = 2 * upstream
        for rows, excess in _excesses(images, texts):
            part = weights[rows]
            by_images[rows] = torch.bmm(part.unsqueeze(1), excess).squeeze(1)
            by_texts += excess.mul_(part.unsqueeze(2)).sum(0)
        return by_images.neg_(), by_texts


def _excesses(images: Tensor, texts: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield max(0, image - text) entry by entry, for blocks of images and all texts."""
    at_once = _ENTRIES_AT_ONCE.get(images.device.type, _ENTRIES_ON_OTHERS)
    size = max(1, at_once // max(1, texts.numel()))
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, (images[rows].unsqueeze(1) - texts).clamp_(min=0)


def join_captions(
    captions: Sequence[str], caption_image: npt.ArrayLike
) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Join the captions of each image into one text.

    Parameters
    ----------
    captions : sequence of str
    caption_image : array_like of int, shape (n_captions,)
        Number of the image of each caption.

    Returns
    -------
    texts : list of str
        The captions of each image, joined in their order.
    images : ndarray of intp, shape (n_texts,)
        Number of each text's image, ascending.

    Raises
    ------
    TypeError, ValueError
        If `caption_image` does not hold one integer >= 0 for each caption.

    Examples
    --------
    >>> from kernelcore.deep import join_captions
    >>> join_captions(["a dog", "the sea", "it runs"], [4, 2, 4])
    (['the sea', 'a dog it runs'], array([2, 4]))
    """
    owners = as_integer_array("caption_image", caption_image, ndim=1, dtype=np.intp)
    check_non_negative("caption_image", owners)
    if len(owners) != len(captions):
        raise ValueError(
            f"caption_image must have one entry per caption ({len(captions)}), "
            f"got {len(owners)}"
        )
    texts: defaultdict[int, list[str]] = defaultdict(list)
    for caption, owner in zip(captions, owners.tolist(), strict=True):
        texts[owner].append(caption)
    images = sorted(texts)
    return [" ".join(texts[image]) for image in images], np.array(images, np.intp)


def stem_vectors(texts: Iterable[str], vectors: WordVectors) -> WordVectors:
    """Return, for each stem in the texts, the vector of its most frequent word.

    Stems are Porter stems of words that are no stop words. Stems of words without a vector
    are omitted. Ties are resolved in alphabetical order.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        words = [word for word in bleu_tokens(text) if word not in STOP_WORDS]
        for stem, word in zip(rouge_tokens(text), words, strict=True):
            if word in vectors:
                counts[stem][word] += 1
    names = sorted(counts)
    chosen = [min(counts[stem], key=lambda w: (-counts[stem][w], w)) for stem in names]
    rows = [vectors[word] for word in chosen]
    return WordVectors(names, np.reshape(rows, (len(rows), vectors.n_dimensions)))
