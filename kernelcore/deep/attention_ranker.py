"""Stacked cross attention as a ranker."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernelcore._validation import check_choice, check_real
from kernelcore.deep.attention_space import AttentionSpace
from kernelcore.deep.cross_attention import POOLINGS
from kernelcore.deep.region_tables import Regions
from kernelcore.deep.regions_in_context import RegionsInContext
from kernelcore.deep.sentence_ranker import SentenceRanker
from kernelcore.deep.text_encoders import WordStates

TEMPERATURES = {"t2i": 9.0, "i2t": 4.0}
SHARPNESS = {"t2i": 6.0, "i2t": 20.0}


class CrossAttentionRanker(SentenceRanker):
    r"""Ranks images and captions by stacked cross attention, SCAN.

    An affine map takes the features of each region, and those of the whole image, to a
    vector, a bidirectional gated recurrent unit takes each word, in its context, to one.
    Every word looks for what it means among the regions of an image, or every region for its
    words in a caption, and the similarity of the whole is pooled from how well they find it:
    see `cross_attention`.

    Parameters
    ----------
    attention : {"t2i", "i2t"}, default "t2i"
        Whether words look at regions, or regions at words.
    temperature : float, optional
        Of the attention. The default is that of [1]_: 9 for "t2i", 4 for "i2t".
    pooling : {"logsumexp", "mean"}, default "logsumexp"
    sharpness : float, optional
        Of the first pooling; the default is 6 for "t2i", 20 for "i2t".
    n_components : int, default 256
        Length of the vectors; [1]_ has 1024.
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
    EmbeddingRanker : One vector for an image, one for a caption.
    FragmentRanker : Regions and relations of words.

    Notes
    -----
    In [1]_ a region's vector knows the region alone. Here the first region of an image is the
    whole of it, as `kernelcore.images.RegionCNN` gives them, and a map of its features is
    added to the vectors of all.

    Scores are computed for 64 images and 256 captions at a time: beyond the result, memory
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

    def __init__(
        self,
        *,
        attention: str = "t2i",
        temperature: float | None = None,
        pooling: str = "logsumexp",
        sharpness: float | None = None,
        n_components: int = 256,
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
        self.attention = attention
        self.temperature = temperature
        self.pooling = pooling
        self.sharpness = sharpness
        self.n_components = n_components
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
        """Which of an image's regions are read: all."""
        return "all"

    def _check_params(self) -> None:
        check_choice("attention", self.attention, tuple(TEMPERATURES))
        check_choice("pooling", self.pooling, POOLINGS)
        for name in ("temperature", "sharpness"):
            if getattr(self, name) is not None:
                check_real(name, getattr(self, name), minimum=0, exclusive=True)
        super()._check_params()

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator
    ) -> AttentionSpace:
        defaults = TEMPERATURES[self.attention], SHARPNESS[self.attention]
        given = self.temperature, self.sharpness
        temperature, sharpness = (
            default if value is None else float(value)
            for value, default in zip(given, defaults, strict=True)
        )
        return AttentionSpace(
            RegionsInContext(
                n_features, self.n_components, dropout=self.dropout, generator=generator
            ),
            WordStates(embedding, self.n_components, dropout=self.dropout, generator=generator),
            attention=self.attention,
            temperature=temperature,
            pooling=self.pooling,
            sharpness=sharpness,
        )
