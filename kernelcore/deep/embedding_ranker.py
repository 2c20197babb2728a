"""Visual-semantic embeddings: images and sentences as vectors of one space."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernelcore._validation import check_choice, check_integer
from kernelcore.deep.embedding_space import EmbeddingSpace, ImagePerceptron, RegionStates
from kernelcore.deep.region_tables import Regions
from kernelcore.deep.sentence_ranker import SentenceRanker
from kernelcore.deep.text_encoders import WordMeans, WordStates
from kernelcore.deep.torch_ranker import VectorRanker

_SENTENCES = ("mean", "gru")
_IMAGES = ("mean", "first", "gru")


class EmbeddingRanker(SentenceRanker, VectorRanker):
    r"""Ranks images and captions by the cosine of one vector each.

    .. math:: S_{kl} = \frac{v_k \cdot s_l}{\lVert v_k \rVert \lVert s_l \rVert}

    A caption's vector :math:`s_l` is the mean of its words' embeddings through a perceptron,
    or the last state of a bidirectional gated recurrent unit. An image's vector :math:`v_k`
    comes from its features through a perceptron, or from such a unit over its regions. Both
    are trained by `hinge_loss` against the hardest other image and caption of a minibatch.

    Parameters
    ----------
    sentence : {"gru", "mean"}, default "gru"
        What stands for a caption.
    image : {"mean", "first", "gru"}, default "mean"
        What stands for an image: the mean of the features of its regions, those of the first
        one, which is the whole image, or the last state of a unit that reads its regions, each
        beside the whole image.
    n_components : int, default 512
        Length of the vectors.
    n_hidden : int, default 1024
        Units of the perceptrons.
    square_root : bool, default False
        Take square roots of the features and scale each row to length 1, see
        `kernelcore.images.square_roots`.
    n_drawn : int, optional
        Regions of each image that are read in a step of training, the first and others drawn
        anew each time. The default is all of them.
    n_embedding : int, default 50
        Length of a word embedding, where no word vectors are given.
    min_count : int, default 2
        Words that occur less often in the training captions are unknown.
    max_tokens : int, default 20
        Words of a caption that are read.
    dropout : float, default 0.3
        Share of the features and of the embeddings that are dropped in training.
    margin : float, default 0.2
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        Over which other items of the minibatch the loss is taken. Captions of the same image
        are never among them.
    n_warm_up : int, optional
        Epochs in which the sum over all of them is taken; the default is those before the
        learning rate falls, so all of fewer than four. At the full rate the hardest alone
        keep training where all similarities are equal.
    learning_rate : float, default 1e-3
        A tenth of it in the last quarter of the epochs.
    batch_size : int, default 128
        Captions in a minibatch.
    n_epochs : int, default 10
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
        Losses of each epoch; the development loss is 1 less the mean of R@1, R@5 and R@10 of
        both directions.
    vocabulary_ : Vocabulary
        Words of the training captions.

    See Also
    --------
    CrossAttentionRanker : Compares regions with words.
    OrderRanker : Compares by an order instead of the cosine.

    References
    ----------
    .. [1] R. Kiros, R. Salakhutdinov and R. S. Zemel, "Unifying visual-semantic embeddings
       with multimodal neural language models", NIPS deep learning workshop 2014.
    .. [2] F. Faghri et al., "VSE++: improving visual-semantic embeddings with hard
       negatives", BMVC 2018.
    .. [3] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.deep import EmbeddingRanker
    >>> captions = ["a dog", "the sea", "two boats"]
    >>> photos = np.eye(3)
    >>> ranker = EmbeddingRanker(n_components=8, n_hidden=8, min_count=1, dropout=0.0,
    ...                          learning_rate=0.01, n_epochs=40, rng=0)
    >>> ranker = ranker.fit(photos, captions, dev=(photos, captions))
    >>> ranker.scores(photos, ["a dog", "boats"]).argmax(axis=0)
    array([0, 2])
    """

    def __init__(
        self,
        *,
        sentence: str = "gru",
        image: str = "mean",
        n_components: int = 512,
        n_hidden: int = 1024,
        square_root: bool = False,
        n_drawn: int | None = None,
        n_embedding: int = 50,
        min_count: int = 2,
        max_tokens: int = 20,
        dropout: float = 0.3,
        margin: float = 0.2,
        negatives: str = "hardest",
        n_warm_up: int | None = None,
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        n_epochs: int = 10,
        rng: np.random.Generator | int | None = None,
        device: str = "cpu",
        mixed_precision: bool = False,
    ) -> None:
        self.sentence = sentence
        self.image = image
        self.n_components = n_components
        self.n_hidden = n_hidden
        self.square_root = square_root
        self.n_drawn = n_drawn
        self.n_embedding = n_embedding
        self.min_count = min_count
        self.max_tokens = max_tokens
        self.dropout = dropout
        self.margin = margin
        self.negatives = negatives
        self.n_warm_up = n_warm_up
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.rng = rng
        self.device = device
        self.mixed_precision = mixed_precision

    @property
    def regions(self) -> Regions:  # type: ignore[override]
        """Which of an image's regions are read."""
        return {"mean": "mean", "first": "first"}.get(self.image, "all")  # type: ignore[return-value]

    def _check_params(self) -> None:
        check_choice("sentence", self.sentence, _SENTENCES)
        check_choice("image", self.image, _IMAGES)
        check_integer("n_hidden", self.n_hidden, minimum=1)
        super()._check_params()

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> EmbeddingSpace:
        images = (
            RegionStates(
                n_features, self.n_components, dropout=self.dropout, generator=generator
            )
            if self.image == "gru"
            else ImagePerceptron(
                n_features,
                self.n_hidden,
                self.n_components,
                dropout=self.dropout,
                generator=generator,
            )
        )
        sentences = (
            WordStates(embedding, self.n_components, dropout=self.dropout, generator=generator)
            if self.sentence == "gru"
            else WordMeans(
                embedding,
                self.n_hidden,
                self.n_components,
                dropout=self.dropout,
                generator=generator,
            )
        )
        return EmbeddingSpace(images, sentences)
