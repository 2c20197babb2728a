"""Captions for images: an LSTM reads an image and predicts each next word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._check import check_choice, check_integer
from kernelcore.deep.base import SentenceRanker
from kernelcore.deep.caption_space import SCORES, CaptionSpace, Score
from kernelcore.deep.encoders import FeatureEncoder
from kernelcore.deep.items import Regions, Sentences
from kernelcore.deep.training import plateau, torch_threads
from kernelcore.lexical import WordVectors
from kernelcore.models.base import Pairs

_REGIONS = ("first", "mean")
_MAX_EXPONENT = 700.0  # the exponential of more does not fit a float


@dataclass(kw_only=True, repr=False, eq=False)
class Captioner(SentenceRanker):
    r"""Writes captions for images, and ranks images and captions by their probability.

    An LSTM reads the features I of an image at step 0, then a start symbol and the words of a
    caption S. At each step, a softmax over the vocabulary predicts the next word:

    .. math::

        \log P(S \mid I) = \sum_t \log P(w_t \mid w_{t-1}, \dots, w_1, I), \quad
        P(\cdot \mid w_{t-1}, \dots, w_1, I) = \mathrm{softmax}(D y_t + b)

    :math:`y_t` is the output of the LSTM, and the last :math:`w_t` is an end symbol. The loss
    is the mean of :math:`-\log P(w_t \mid \dots)` over all words of a minibatch, each after
    the true words before it.

    Parameters
    ----------
    score : {"ratio", "likelihood", "per word"}, default "ratio"
        What `scores` returns: :math:`\log P(S \mid I) - \log P(S)`; :math:`\log P(S \mid I)`;
        or the latter divided by the number of predicted words. Images are ranked alike by all
        three. Captions are not: by likelihood, short and common captions come first for every
        image. The ratio is that of [3]_. The weights do not depend on the score:
        ``set_params(score="likelihood")`` changes it after `fit`, and
        ``load(path, score="likelihood")`` reads a saved captioner with another one.
    n_prior : int, default 32
        Number of training images I', drawn at random with replacement, whose mean
        :math:`P(S \mid I')` is the :math:`P(S)` of the ratio.
    regions : {"first", "mean"}, default "first"
        Which features represent an image: those of the first region, which is the whole
        image, or the mean over all regions.
    n_components : int, default 256
        Number of units of the LSTM.
    n_embedding : int, default 256
        As for `EmbeddingRanker`.
    min_count : int, default 5
        Words that occur less often in the training captions are unknown. The unknown word has
        a probability like the others, but is never written.
    max_tokens : int, default 20
        Maximum number of words of a caption. Longer captions are truncated. A change after
        `fit` has no effect before the next `fit`.
    dropout : float, default 0.3
        Share of the features, of the entries of embeddings, and of the outputs of the LSTM
        that is dropped in training.
    learning_rate : float, default 1e-3
        Initial learning rate. It is halved after each epoch that does not reduce the
        development loss.
    batch_size : int, default 128
        Captions in a minibatch.
    n_epochs : int, default 15
        Number of epochs. The epoch with the lowest development loss is kept.
    square_root, patience, rng, device
        As for `EmbeddingRanker`.

    Attributes
    ----------
    history_ : History
        Losses of each epoch. The development loss is the mean of
        :math:`-\log P(w_t \mid \dots)` over the development captions; ``perplexity`` is its
        exponential.
    vocabulary_ : Vocabulary
        Words of the training captions.

    See Also
    --------
    kernelcore.evaluation.caption_metrics.cider_d : Compares written captions with references.
    kernelcore.evaluation.evaluate_selections : Which of two images does a caption describe?

    Notes
    -----
    The model is that of [1]_ and [2]_. The LSTM is the usual one, with biases, and the tanh of
    its memory before the output gate; both papers omit them, and [1]_ prints the input of the
    step before in three of the gates.

    The model gives each caption of at most `max_tokens` words a probability, and these add up
    to 1: after `max_tokens` words, a caption ends with probability 1.

    `scores` computes the LSTM and the normaliser of the softmax once for each image and each
    distinct beginning of the captions, because captions that begin alike have equal states.
    What a word adds to the gates is computed once for each word. With d units and V words
    there are :math:`4 d^2 + d V` products for each image and beginning. Memory holds the
    result and at most some 200 MB for d = 256. `log_likelihoods` is cheaper where few pairs
    matter.

    References
    ----------
    .. [1] H. A. Khojasteh, "Automatic image description generation using deep multimodal
       embeddings", master thesis, IASBS, Zanjan 2019, equations 4.1 and 4.2.
    .. [2] O. Vinyals, A. Toshev, S. Bengio and D. Erhan, "Show and tell: a neural image
       caption generator", CVPR 2015.
    .. [3] J. Mao et al., "Deep captioning with multimodal recurrent neural networks (m-RNN)",
       ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.deep import Captioner
    >>> captions = ["a dog runs", "the sea", "two boats"]
    >>> photos = np.eye(3)
    >>> captioner = Captioner(n_components=16, n_embedding=16, min_count=1, dropout=0.0,
    ...                       learning_rate=0.02, n_epochs=30, rng=0)
    >>> captioner = captioner.fit(photos, captions, dev=(photos, captions))
    >>> captioner.generate(photos)
    ['a dog runs', 'the sea', 'two boats']
    >>> captioner.scores(photos, ["a dog", "boats"]).argmax(axis=0)
    array([0, 2])
    """

    score: Score = "ratio"
    n_prior: int = 32
    regions: Regions = "first"
    n_embedding: int = 256
    min_count: int = 5
    n_epochs: int = 15

    space_: CaptionSpace = field(init=False)

    def generate(
        self,
        images: Any,
        *,
        beam_size: int = 3,
        max_length: int | None = None,
        n_threads: int | None = None,
    ) -> list[str]:
        r"""Write a caption for each image, by beam search for the highest likelihood.

        The search keeps the `beam_size` most probable beginnings, and extends each of them by
        every word. It returns the most probable complete caption that it meets. Beam size 1
        always takes the most probable word. A wider beam mostly finds more probable captions,
        but only a beam as wide as the number of all captions is sure to find the best.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        beam_size : int, default 3
        max_length : int, optional
            Maximum number of words; the default, and the upper limit, is the `max_tokens` that
            the model was fitted with.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of str
            Words of the vocabulary, at least one for each image, joined by spaces.

        Raises
        ------
        TypeError, ValueError
            If a number is out of range, or the features do not fit the model.
        """
        table = self._new_images(images)
        check_integer("beam_size", beam_size, minimum=1)
        limit = self.space_.max_tokens
        length = limit if max_length is None else max_length
        check_integer("max_length", length, minimum=1, maximum=limit)
        with torch_threads(n_threads):
            symbols = self.space_.generate(table, beam_size, length)
        words = (None, *self.vocabulary_.words, None)  # neither the unknown word nor the end
        return [" ".join(filter(None, (words[i] for i in own))) for own in symbols.tolist()]

    def log_likelihoods(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float32]:
        r"""Return :math:`\log P(S \mid I)` of each caption, given its own image.

        This is much cheaper than `scores` where few of all pairs matter.

        Parameters
        ----------
        images : RegionFeatures or array_like of shape (n_images, n_features)
        captions : sequence of sequence of str, or sequence of str
            Raw captions, nested by image or in one flat sequence.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption. Omit it if captions are
            nested, or if caption i belongs to image i.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_captions,)
            At most 0.
        """
        self._check_fitted("space_")
        pairs = self._pairs("images", images, captions, caption_image)
        self._check_width("images", pairs.images)
        encoded = Pairs(pairs.images, self._encode(pairs.captions), pairs.caption_image)
        with torch_threads(n_threads):
            likelihoods: npt.NDArray[np.float32] = self.space_.log_likelihoods(encoded).numpy()
        return likelihoods

    def _encode(self, captions: Sequence[str]) -> Sentences:
        tokens = list(map(self._tokenize, captions))
        limit = self.space_.max_tokens  # of the fit, whatever the parameter is now
        return Sentences.of(tokens, self.vocabulary_, max_tokens=limit).to(self.device)

    def _new_captions(self, captions: Any) -> Sentences:
        encoded: Sentences = super()._new_captions(captions)
        check_choice("score", self.score, SCORES)
        self.space_.score = self.score
        return encoded

    def _check_params(self) -> None:
        check_choice("score", self.score, SCORES)
        check_integer("n_prior", self.n_prior, minimum=1)
        check_choice("regions", self.regions, _REGIONS)
        super()._check_params()

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: torch.Generator
    ) -> Sentences:
        sentences = super()._learn(training, word_vectors, generator)
        shape, device = (self.n_prior,), generator.device
        drawn = torch.randint(len(training), shape, generator=generator, device=device)
        images = training.caption_image[drawn.cpu().numpy()]
        self.space_.prior.copy_(training.images.take(images, device)[0])
        return sentences

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: torch.Generator | None
    ) -> CaptionSpace:
        if len(embedding) == 1:
            raise ValueError(
                "captions must hold a word that occurs at least min_count times, "
                f"got none for min_count={self.min_count}"
            )
        images = FeatureEncoder(
            n_features, embedding.shape[1], dropout=self.dropout, generator=generator
        )
        return CaptionSpace(
            images,
            embedding,
            self.n_components,
            n_prior=self.n_prior,
            max_tokens=self.max_tokens,
            score=self.score,
            dropout=self.dropout,
            generator=generator,
        )

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        return plateau(dev_losses, self.learning_rate, self.batch_size, factor=0.5, patience=0)

    def _loss(
        self, training: Pairs, batch: list[int], epoch: int, generator: torch.Generator | None
    ) -> Tensor:
        r"""Return the mean of :math:`-\log P(w_t \mid w_{t-1}, \dots, I)` over the words."""
        rows = torch.tensor(batch)
        likelihoods = self.space_.of_pairs(training, rows, generator)
        lengths = training.captions.lengths[rows]
        return -likelihoods.sum() / int(self.space_.n_predictions(lengths).sum())

    def _evaluate(self, dev: Pairs) -> Mapping[str, float]:
        """Return the loss of the development captions, and its exponential."""
        total = float(self.space_.log_likelihoods(dev).double().sum())
        loss = -total / int(self.space_.n_predictions(dev.captions.lengths).sum())
        return {"dev_loss": loss, "perplexity": math.exp(min(loss, _MAX_EXPONENT))}
