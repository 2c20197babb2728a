"""Visual-semantic embeddings: one vector for an image, one for a caption, and their cosine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from kernelcore.deep.base import SentenceRanker, VectorRanker
from kernelcore.deep.encoders import (
    NO_DROPOUT,
    ContextualRegionEncoder,
    Dropout,
    FeatureEncoder,
    RecurrentEncoder,
    SentenceSpace,
    WordEmbedding,
    last_states,
    linear,
    recurrent,
)
from kernelcore.deep.items import Offsets, Regions, Sentences
from kernelcore.deep.losses import Negatives


@dataclass(kw_only=True, repr=False, eq=False)
class EmbeddingRanker(SentenceRanker, VectorRanker):
    r"""Ranks images and captions by the cosine of one vector each.

    .. math:: S_{kl} = \frac{v_k \cdot s_l}{\lVert v_k \rVert \lVert s_l \rVert}

    The caption vector :math:`s_l` is the mean of the word embeddings through a perceptron, or
    the last hidden state of a bidirectional gated recurrent unit (GRU). The image vector
    :math:`v_k` is computed from the features through a perceptron, or by a GRU over the
    regions. Both are trained by `hinge_loss` with hard-negative mining: against the hardest
    other image and caption of the minibatch.

    Parameters
    ----------
    sentence : {"gru", "mean"}, default "gru"
        Encoder of captions: a GRU, or the mean of word embeddings.
    image : {"mean", "first", "gru"}, default "mean"
        Encoder of images: a perceptron over the mean features of all regions, a perceptron
        over the first region, which is the whole image, or a GRU over all regions, each
        together with the whole image.
    n_components : int, default 512
        Length of the vectors.
    n_hidden : int, default 1024
        Hidden units of the perceptrons.
    square_root : bool, default False
        Apply `kernelcore.images.square_roots` to the features.
    whole_image : bool, default True
        Add a linear map of the first region, which is the whole image, to the vector of each
        region. Only for image="gru".
    n_drawn : int, optional
        Number of regions of each image in a training step: the first one and a random
        sample. The default is all regions.
    n_embedding : int, default 50
        Length of a word embedding, if no word vectors are given.
    min_count : int, default 2
        Words that occur less often in the training captions are unknown.
    max_tokens : int, default 20
        Captions are truncated to this number of words.
    dropout : float, default 0.3
        Share of features and of embedding entries that are dropped in training.
    margin : float, default 0.2
        Margin of the hinge loss.
    negatives : {"hardest", "mean", "sum"}, default "hardest"
        How the hinges of the negatives of a minibatch are reduced. Other captions of the
        same image are not negatives.
    n_warm_up : int, optional
        Number of epochs, from the first on, in which all negatives are summed. Default: all
        epochs before the learning-rate drop, which are all epochs if there are fewer than
        four. Hard-negative mining at the full rate collapses to equal similarities.
    learning_rate : float, default 1e-3
        Learning rate. The last quarter of the epochs uses a tenth of it.
    batch_size : int, default 128
        Captions in a minibatch.
    n_epochs : int, default 10
        Number of epochs. The epoch with the best recalls on the development items is kept.
    patience : int, optional
        Stop after this number of epochs without a lower development loss. The reduced learning
        rate of the last epochs, and the hardest negatives, may then never come.
    rng : numpy.random.Generator, int or None, default None
        Random generator or seed.
    device : str, default "cpu"
        Torch device.

    Attributes
    ----------
    history_ : History
        Losses of each epoch. The development loss is 1 minus the mean of R@1, R@5 and R@10
        of both directions.
    vocabulary_ : Vocabulary
        Words of the training captions.

    See Also
    --------
    CrossAttentionRanker : Compares regions with words.
    OrderRanker : Compares by a partial order instead of the cosine.

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

    sentence: Literal["gru", "mean"] = "gru"
    image: Literal["mean", "first", "gru"] = "mean"
    n_components: int = 512
    n_hidden: int = 1024
    whole_image: bool = True
    n_drawn: int | None = None
    margin: float = 0.2
    negatives: Negatives = "hardest"
    n_warm_up: int | None = None

    def _regions(self) -> Regions:
        return "all" if self.image == "gru" else self.image

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: Generator | None
    ) -> EmbeddingSpace:
        images: nn.Module
        sentences: nn.Module
        n_hidden, size = self.n_hidden, self.n_components
        if self.image == "gru":
            regions = ContextualRegionEncoder(
                n_features, size, whole_image=self.whole_image, generator=generator
            )
            images = RegionSequenceEncoder(regions, size, generator=generator)
        else:
            images = ImagePerceptron(n_features, n_hidden, size, generator=generator)
        if self.sentence == "gru":
            sentences = RecurrentEncoder(embedding, size, generator=generator)
        else:
            sentences = MeanWordEncoder(embedding, n_hidden, size, generator=generator)
        return EmbeddingSpace(images, sentences)


def cosines(images: Tensor, captions: Tensor) -> Tensor:
    """Return the cosines of all images with all captions, from unit vectors."""
    return images @ captions.T


class EmbeddingSpace(SentenceSpace):
    """Encoders of images and sentences by one vector each.

    Parameters
    ----------
    images : Module
        Encodes the regions of images, given their offsets.
    sentences : WordEmbedding
        Its vectors have the same length.
    compare : callable, default cosines
        Compares all vectors of images with all of sentences.
    unit_images, unit_texts : bool, default True
        Whether vectors of images, and of sentences, are scaled to length 1.
    """

    def __init__(
        self,
        images: nn.Module,
        sentences: nn.Module,
        compare: Callable[[Tensor, Tensor], Tensor] = cosines,
        *,
        unit_images: bool = True,
        unit_texts: bool = True,
    ) -> None:
        super().__init__()
        self.images = images
        self.sentences = sentences
        self.compare = compare
        self.unit_images = unit_images
        self.unit_texts = unit_texts

    def encode_images(
        self, rows: Tensor, offsets: Offsets, dropout: Dropout = NO_DROPOUT
    ) -> Tensor:
        """Encode images."""
        vectors: Tensor = self.images(rows, offsets, dropout)
        return F.normalize(vectors, dim=1) if self.unit_images else vectors

    def encode_captions(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode sentences."""
        vectors: Tensor = self.sentences(sentences, dropout)
        return F.normalize(vectors, dim=1) if self.unit_texts else vectors

    def similarities(self, images: Tensor, captions: Tensor) -> Tensor:
        """Compare all images with all sentences."""
        return self.compare(images, captions)


class ImagePerceptron(nn.Module):
    """Perceptron with one hidden layer of rectified units, over one feature row per image.

    Parameters
    ----------
    n_features, n_hidden, n_components : int
        Sizes of the layers.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self, n_features: int, n_hidden: int, n_components: int, generator: Generator | None
    ) -> None:
        super().__init__()
        self.regions = FeatureEncoder(n_features, n_hidden, generator=generator)
        self.output = linear(n_hidden, n_components, generator=generator)

    def forward(self, rows: Tensor, offsets: Offsets, dropout: Dropout) -> Tensor:
        """Encode images, shape (n_images, n_components)."""
        encoded: Tensor = self.output(self.regions(rows, dropout).relu())
        return encoded


class RegionSequenceEncoder(nn.Module):
    """Last hidden state of a bidirectional GRU over the regions of an image, in their order.

    Parameters
    ----------
    regions : ContextualRegionEncoder
    n_components : int
        Length of its vectors and of the hidden states.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self, regions: ContextualRegionEncoder, n_components: int, generator: Generator | None
    ) -> None:
        super().__init__()
        self.regions = regions
        gru = partial(nn.GRU, bidirectional=True)
        self.gru = recurrent(gru, n_components, n_components, generator=generator)

    def forward(self, rows: Tensor, offsets: Offsets, dropout: Dropout) -> Tensor:
        """Encode images, shape (n_images, n_components)."""
        regions = torch.split(self.regions(rows, offsets, dropout), np.diff(offsets).tolist())
        return last_states(self.gru, pack_sequence(list(regions), enforce_sorted=False))


class MeanWordEncoder(WordEmbedding):
    """Mean of the word embeddings of a sentence, through a perceptron.

    Parameters
    ----------
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial embeddings, see `WordEmbedding`.
    n_hidden, n_components : int
        Sizes of the layers of the perceptron.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    def __init__(
        self, embedding: Tensor, n_hidden: int, n_components: int, generator: Generator | None
    ) -> None:
        super().__init__(embedding)
        self.hidden = linear(embedding.shape[1], n_hidden, generator=generator)
        self.output = linear(n_hidden, n_components, generator=generator)

    def forward(self, sentences: Sentences, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Encode sentences, shape (n_sentences, n_components)."""
        words = self.embed(sentences, dropout)
        lengths = sentences.lengths.to(words.device).unsqueeze(1)
        mask = torch.arange(words.shape[1], device=words.device) < lengths
        means = (words * mask.unsqueeze(2)).sum(1) / lengths
        encoded: Tensor = self.output(self.hidden(means).relu())
        return encoded
