"""Order embeddings: what is told of an image lies below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._validation import check_choice, check_flag, check_integer, check_real
from kernelcore.deep.order_objective import OrderObjective
from kernelcore.deep.order_space import (
    SIMILARITIES,
    ImageLayers,
    OrderSpace,
    Similarity,
    TextStates,
)
from kernelcore.deep.order_texts import join_captions, stem_vectors, stems
from kernelcore.deep.region_tables import Regions
from kernelcore.deep.schedules import BatchDoubling
from kernelcore.deep.sentence_ranker import SentenceRanker
from kernelcore.deep.threads import torch_threads
from kernelcore.deep.torch_ranker import VectorRanker
from kernelcore.lexical import WordVectors
from kernelcore.models.pairs import Pairs

_REGIONS = ("first", "mean")


class OrderRanker(SentenceRanker, VectorRanker):
    r"""Ranks images and texts by how far the texts are from lying below the images.

    An image goes through a dense and two fully connected layers to a vector v, a text as
    stems of its content words through an LSTM to a vector t, neither with negative entries.
    A text lies below an image where no entry of t is smaller than that of v:

    .. math:: S(T, I) = -\lVert \max(0, v_I - t_T) \rVert^2

    Trained is the sum of `hinge_loss` over the negatives of a minibatch. Wherever training
    makes no progress the learning rate is lowered and, at its floor, the batch is doubled.

    Parameters
    ----------
    joined : bool, default True
        Learn from all captions of an image as one text, as [1]_ does; else each caption is a
        text. `scores` takes texts as they come: see `join_captions`.
    similarity : {"texts below", "images below", "cosine"}, default "texts below"
        Which side lies below the other. [2]_ has images below their captions. "cosine"
        compares the same vectors without an order.
    regions : {"first", "mean"}, default "first"
        What stands for an image: its first region, which is the whole image, or the mean of
        all.
    n_components : int, default 256
        Length of the vectors; [1]_ has 1024.
    n_hidden : int, default 512
        Units of the dense and the first fully connected layer; [1]_ has 1024.
    n_states : int, default 128
        Units of the LSTM.
    n_embedding : int, default 50
        Length of a word embedding, where no word vectors are given.
    min_count : int, default 2
        Stems that occur less often in the training captions are unknown.
    max_tokens : int, default 70
        Stems of a text that are read.
    dropout : float, default 0.1
        Share of what every layer reads that is dropped in training.
    margin : float, default 0.05
        :math:`\alpha`.
    negatives : {"sum", "mean", "hardest"}, default "sum"
        Over which other items of the minibatch the loss is taken. Texts of the same image
        are never among them.
    n_warm_up : int, default 0
        Epochs in which the sum over all of them is taken in any case.
    variance_weight : float, default 0.0
        Weight of the variance of the minibatch's vectors, which is taken off the loss: see
        Notes.
    learning_rate : float, default 2e-3
        Where the rate starts, and starts again after the batch was doubled. [1]_ has 0.1.
    min_learning_rate : float, default 5e-4
        Where the batch is doubled. [1]_ has 1e-7.
    batch_size : int, default 64
        Texts in a minibatch at the start; [1]_ has 16.
    n_epochs : int, default 16
        The one with the best recalls on the development items is kept.
    rng : numpy.random.Generator, int or None, default None
        Source of all random choices.
    device : str, default "cpu"
        Any of torch's.
    mixed_precision : bool, default False
        Multiply matrices in bfloat16, on a GPU alone.

    Attributes
    ----------
    history_ : History
        Pace and losses of each epoch; the development loss is 1 less the mean of R@1, R@5
        and R@10 of both directions.
    vocabulary_ : Vocabulary
        Stems of the training captions.

    See Also
    --------
    join_captions : Makes one text of the captions of each image.
    order_similarities : The similarity.
    EmbeddingRanker : Compares by the cosine, and reads captions as they are.

    Notes
    -----
    Vectors become non-negative by their absolute value. Those of the upper side have length
    1, those of the lower side any length.

    [1]_ takes :math:`\sigma^2(T')` and :math:`\sigma^2(I')` off the hinges of the negatives
    :math:`T'` and :math:`I'`, "discrete variance written as :math:`\sum_n (x - \mu_c) /
    |n|`", which as printed is 0. It is read as the mean squared distance of the n vectors of
    the minibatch to their centre :math:`\mu_c`, and divided by their mean square, without
    which the loss could be lowered for ever by longer vectors: see `relative_variance`.

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
    ...                      dropout=0.0, learning_rate=0.01, min_learning_rate=0.01, rng=0)
    >>> owners = [0, 1, 2, 0, 1, 2]
    >>> ranker = ranker.fit(photos, captions, caption_image=owners,
    ...                     dev=(photos, captions, owners))
    >>> ranker.scores(photos, ["a running dog", "sails of boats"]).argmax(axis=0)
    array([0, 2])
    """

    space_: OrderSpace

    def __init__(
        self,
        *,
        joined: bool = True,
        similarity: Similarity = "texts below",
        regions: Regions = "first",
        n_components: int = 256,
        n_hidden: int = 512,
        n_states: int = 128,
        n_embedding: int = 50,
        min_count: int = 2,
        max_tokens: int = 70,
        dropout: float = 0.1,
        margin: float = 0.05,
        negatives: str = "sum",
        n_warm_up: int = 0,
        variance_weight: float = 0.0,
        learning_rate: float = 2e-3,
        min_learning_rate: float = 5e-4,
        batch_size: int = 64,
        n_epochs: int = 16,
        rng: np.random.Generator | int | None = None,
        device: str = "cpu",
        mixed_precision: bool = False,
    ) -> None:
        self.joined = joined
        self.similarity = similarity
        self.regions = regions
        self.n_components = n_components
        self.n_hidden = n_hidden
        self.n_states = n_states
        self.n_embedding = n_embedding
        self.min_count = min_count
        self.max_tokens = max_tokens
        self.dropout = dropout
        self.margin = margin
        self.negatives = negatives
        self.n_warm_up = n_warm_up
        self.variance_weight = variance_weight
        self.learning_rate = learning_rate
        self.min_learning_rate = min_learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.rng = rng
        self.device = device
        self.mixed_precision = mixed_precision

    def penalties(
        self,
        images: Any,
        captions: Sequence[str],
        *,
        reverse: bool = False,
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        r"""Measure how far every text is from lying below every image.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of str
        reverse : bool, default False
            Measure how far the images are from lying below the texts instead.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_images, n_texts)
            :math:`\lVert \max(0, v - t) \rVert^2`, in reverse
            :math:`\lVert \max(0, t - v) \rVert^2`; 0 where the order holds.
        """
        check_flag("reverse", reverse)
        table, sentences = self._asked_images(images), self._asked_captions(captions)
        with torch_threads(n_threads):
            return self.space_.penalties(table, sentences, reverse=reverse)

    def _check_params(self) -> None:
        check_flag("joined", self.joined)
        check_choice("similarity", self.similarity, SIMILARITIES)
        check_choice("regions", self.regions, _REGIONS)
        for name in ("n_hidden", "n_states"):
            check_integer(name, getattr(self, name), minimum=1)
        check_integer("n_warm_up", self.n_warm_up, minimum=0)
        check_real("variance_weight", self.variance_weight, minimum=0)
        check_real("min_learning_rate", self.min_learning_rate, minimum=0, exclusive=True)
        super()._check_params()
        self._schedule()

    def _pairs(self, name: str, images: Any, captions: Any, caption_image: Any) -> Pairs:
        pairs = super()._pairs(name, images, captions, caption_image)
        if self.joined:
            return Pairs(pairs.images, *join_captions(pairs.captions, pairs.caption_image))
        return pairs

    def _tokenize(self, text: str) -> list[str]:
        return stems(text)

    def _start(
        self, word_vectors: WordVectors | None, captions: Sequence[str]
    ) -> WordVectors | None:
        return None if word_vectors is None else stem_vectors(captions, word_vectors)

    def _schedule(self) -> BatchDoubling:
        return BatchDoubling(self.learning_rate, self.batch_size, floor=self.min_learning_rate)

    def _objective(self, training: Pairs, dev: Pairs) -> OrderObjective:
        return OrderObjective(
            self.space_,
            training,
            dev,
            margin=self.margin,
            negatives=self.negatives,
            n_warm_up=self.n_warm_up,
            variance_weight=self.variance_weight,
        )

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> OrderSpace:
        shared: dict[str, Any] = {"dropout": self.dropout, "generator": generator}
        return OrderSpace(
            ImageLayers(n_features, self.n_hidden, self.n_components, **shared),
            TextStates(embedding, self.n_states, self.n_components, **shared),
            self.similarity,
        )
