"""Captions for images: an LSTM reads an image and predicts each next word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Generator, Tensor, nn

from kernelcore._check import check_choice, check_integer
from kernelcore.deep.base import SentenceRanker
from kernelcore.deep.encoders import (
    NO_DROPOUT,
    Dropout,
    FeatureEncoder,
    SentenceSpace,
    linear,
    recurrent,
)
from kernelcore.deep.items import UNKNOWN, Offsets, RegionTable, Sentences
from kernelcore.deep.training import plateau, torch_threads
from kernelcore.lexical import WordVectors
from kernelcore.models.base import Pairs

Score: TypeAlias = Literal["ratio", "likelihood", "per word"]

State: TypeAlias = tuple[Tensor, Tensor]
"""Outputs and memories of the LSTM, each of shape (n, n_components)."""

# These bound the memory of a call.
_PAIRS_AT_ONCE = 128
_STATES_AT_ONCE = 4096
_LOGITS_AT_ONCE = 1 << 22

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
    regions: Literal["first", "mean"] = "first"
    n_embedding: int = 256
    min_count: int = 5
    n_epochs: int = 15

    space_: CaptionSpace = field(init=False)

    def generate(
        self,
        images: Any,
        *,
        beam_size: int = 3,
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
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of str
            Words of the vocabulary, joined by spaces: for each image at least one, and at most
            the `max_tokens` that the model was fitted with.

        Raises
        ------
        TypeError, ValueError
            If a number is out of range, or the features do not fit the model.
        """
        table = self._new_images(images)
        check_integer("beam_size", beam_size, minimum=1)
        with torch_threads(n_threads):
            symbols = self.space_.generate(table, beam_size)
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

    def _encode(self, captions: Any) -> Sentences:
        tokens = list(map(self._tokenize, captions))
        limit = self.space_.max_tokens  # of the fit, whatever the parameter is now
        return Sentences.of(tokens, self.vocabulary_, max_tokens=limit).to(self.device)

    def _new_captions(self, captions: Any) -> Sentences:
        encoded: Sentences = super()._new_captions(captions)
        check_choice("score", self.score, get_args(Score))
        self.space_.score = self.score
        return encoded

    def _learn(
        self, training: Pairs, word_vectors: WordVectors | None, generator: Generator
    ) -> Sentences:
        sentences = super()._learn(training, word_vectors, generator)
        shape, device = (self.n_prior,), generator.device
        drawn = torch.randint(len(training), shape, generator=generator, device=device)
        images = training.caption_image[drawn.cpu().numpy()]
        self.space_.prior.copy_(training.images.take(images, device)[0])
        return sentences

    def _make_space(
        self, n_features: int, embedding: Tensor, generator: Generator | None
    ) -> CaptionSpace:
        if len(embedding) == 1:
            raise ValueError(
                "captions must hold a word that occurs at least min_count times, "
                f"got none for min_count={self.min_count}"
            )
        images = FeatureEncoder(n_features, embedding.shape[1], generator=generator)
        return CaptionSpace(
            images,
            embedding,
            self.n_components,
            n_prior=self.n_prior,
            max_tokens=self.max_tokens,
            score=self.score,
            generator=generator,
        )

    def _schedule(self, dev_losses: Sequence[float]) -> tuple[float, int]:
        return plateau(dev_losses, self.learning_rate, self.batch_size, factor=0.5, patience=0)

    def _loss(
        self, training: Pairs, batch: list[int], epoch: int, generator: Generator
    ) -> Tensor:
        r"""Return the mean of :math:`-\log P(w_t \mid w_{t-1}, \dots, I)` over the words."""
        rows = torch.tensor(batch)
        likelihoods = self.space_.of_pairs(training, rows, Dropout(self.dropout, generator))
        lengths = training.captions.lengths[rows]
        return -likelihoods.sum() / int(self.space_.n_predictions(lengths).sum())

    def _evaluate(self, dev: Pairs) -> Mapping[str, float]:
        """Return the loss of the development captions, and its exponential."""
        total = float(self.space_.log_likelihoods(dev).double().sum())
        loss = -total / int(self.space_.n_predictions(dev.captions.lengths).sum())
        return {"dev_loss": loss, "perplexity": math.exp(min(loss, _MAX_EXPONENT))}


class Beginnings(NamedTuple):
    """The distinct beginnings of captions that have the same number of words.

    Attributes
    ----------
    parents : Tensor of int64, shape (n_beginnings,)
        Position of the beginning without the last word, among those with a word less.
    words : Tensor of int64, shape (n_beginnings,)
        Last word.
    complete : Tensor of int64
        Positions of the captions that have this number of words.
    places : Tensor of int64
        Position of each of these captions among the beginnings.
    """

    parents: Tensor
    words: Tensor
    complete: Tensor
    places: Tensor


class SharedCaptions(NamedTuple):
    """Captions that share their beginnings.

    Attributes
    ----------
    levels : list of Beginnings
        Beginnings of one word, of two words, and so on.
    n_predictions : Tensor of int64, shape (n_captions,)
        Number of symbols that are predicted for each caption.
    prior : Tensor of shape (n_captions,), or None
        Log-probability of each caption without an image, where the score needs it.
    """

    levels: list[Beginnings]
    n_predictions: Tensor
    prior: Tensor | None


class CaptionSpace(SentenceSpace):
    """An LSTM over an image and words, and the softmax that predicts the next word.

    Symbols are the unknown word, 0, the words from 1 on, and the boundary: read, it starts a
    caption; predicted, it ends one.

    Parameters
    ----------
    images : FeatureEncoder
        Makes the input of step 0.
    embedding : Tensor of shape (n_words + 1, n_dimensions)
        Initial word embeddings. Row 0 is for words outside the vocabulary.
    n_states : int
        Number of units of the LSTM.
    n_prior : int
        Number of training images behind the probability of a caption without an image. Their
        features are the buffer `prior`.
    max_tokens : int
        Maximum number of words of a caption.
    score : {"ratio", "likelihood", "per word"}
        What `similarities` returns.
    generator : torch.Generator, optional
        Draws the initial weights.
    """

    block = (256, 8192)

    def __init__(
        self,
        images: FeatureEncoder,
        embedding: Tensor,
        n_states: int,
        *,
        n_prior: int,
        max_tokens: int,
        score: Score,
        generator: Generator | None,
    ) -> None:
        super().__init__()
        n_symbols, n_dimensions = len(embedding) + 1, embedding.shape[1]
        self.boundary = n_symbols - 1
        self.max_tokens = max_tokens
        self.score = score
        self.images = images
        self.prior: Tensor
        self.register_buffer("prior", torch.zeros(n_prior, len(images.mean)))
        table = torch.cat([embedding, torch.zeros_like(embedding[:1])])
        self.words = nn.Embedding(n_symbols, n_dimensions, _weight=table)
        self.lstm = recurrent(nn.LSTM, n_dimensions, n_states, generator=generator)
        self.decoder = linear(n_states, n_symbols, generator=generator)

    def n_predictions(self, lengths: Tensor) -> Tensor:
        """Return how many symbols are predicted for captions of these numbers of words."""
        return (lengths + 1).clamp(max=self.max_tokens)

    def of_pairs(self, pairs: Pairs, captions: Tensor, dropout: Dropout = NO_DROPOUT) -> Tensor:
        """Return the log-likelihoods of the captions at some positions, given their images."""
        owners = pairs.caption_image[captions.numpy()]
        images, positions = np.unique(owners, return_inverse=True)
        rows, _ = pairs.images.take(images, self.device)
        first = self.images(rows, dropout)[torch.from_numpy(positions)]
        sentences = pairs.captions.take(captions)
        lengths = sentences.lengths.to(first.device)
        symbols = F.pad(sentences.word_ids, (1, 1))
        symbols[:, 0] = self.boundary
        symbols[torch.arange(len(symbols)), sentences.lengths + 1] = self.boundary
        n_steps = min(symbols.shape[1] - 1, self.max_tokens)
        words = dropout(self.words(symbols[:, :n_steps]))
        outputs, _ = self.lstm(torch.cat([first.unsqueeze(1), words], 1))
        mask = torch.arange(n_steps, device=first.device) <= lengths.unsqueeze(1)
        logits = self.decoder(dropout(outputs[:, 1:][mask]))
        targets = symbols[:, 1 : n_steps + 1][mask]
        losses = F.cross_entropy(logits, targets, reduction="none")
        return -losses.new_zeros(len(symbols)).index_add(0, mask.nonzero()[:, 0], losses)

    @torch.no_grad()
    def log_likelihoods(self, pairs: Pairs) -> Tensor:
        """Return the log-likelihood of each caption, given its image."""
        likelihoods = torch.empty(len(pairs))
        # Captions of similar length are read together, which needs less padding.
        order = torch.argsort(pairs.captions.lengths, stable=True)
        for part in torch.split(order, _PAIRS_AT_ONCE):
            likelihoods[part] = self.of_pairs(pairs, part).cpu()
        _check_range(likelihoods)
        return likelihoods

    def encode_images(
        self, rows: Tensor, offsets: Offsets, dropout: Dropout = NO_DROPOUT
    ) -> State:
        """Read images of one feature row each, and the start of a caption."""
        nothing = rows.new_zeros(len(rows), self.lstm.hidden_size)
        state = self._step(self._gates(self.images(rows, dropout)), (nothing, nothing))
        start = self._gates(self.words.weight[self.boundary :]).expand(len(rows), -1)
        outputs, memories = self._step(start, state)
        _check_range(outputs)
        return outputs, memories

    def encode_captions(
        self, sentences: Sentences, dropout: Dropout = NO_DROPOUT
    ) -> SharedCaptions:
        """Find the beginnings that sentences share."""
        lengths = sentences.lengths.to(self.device)
        places, levels = torch.zeros_like(lengths), list[Beginnings]()
        for n_words in range(1, int(sentences.lengths.max()) + 1):
            longer = (lengths >= n_words).nonzero()[:, 0]
            last = sentences.word_ids[longer, n_words - 1]
            n_symbols = self.boundary + 1
            keys, own = torch.unique(places[longer] * n_symbols + last, return_inverse=True)
            places[longer] = own
            complete = (lengths == n_words).nonzero()[:, 0]
            parents, words = keys // n_symbols, keys % n_symbols
            levels.append(Beginnings(parents, words, complete, places[complete]))
        shared = SharedCaptions(levels, self.n_predictions(lengths), None)
        if self.score != "ratio":
            return shared
        states = self.encode_images(self.prior, np.arange(len(self.prior) + 1))
        sums = self._likelihoods(states, shared).logsumexp(0)
        return shared._replace(prior=sums - math.log(len(self.prior)))

    def similarities(self, images: State, captions: SharedCaptions) -> Tensor:
        """Score every image with every caption."""
        likelihoods = self._likelihoods(images, captions)
        if self.score == "per word":
            return likelihoods / captions.n_predictions
        return likelihoods if captions.prior is None else likelihoods - captions.prior

    def _likelihoods(self, images: State, captions: SharedCaptions) -> Tensor:
        """Return the log-likelihood of every caption, given each image."""
        n_images = max(1, _STATES_AT_ONCE // max(len(one.words) for one in captions.levels))
        outputs, memories = (torch.split(part, n_images) for part in images)
        states = zip(outputs, memories, strict=True)
        gates = self._gates(self.words.weight)
        return torch.cat([self._tile(state, captions, gates) for state in states])

    def _tile(self, state: State, captions: SharedCaptions, gates: Tensor) -> Tensor:
        """Return the log-likelihood of every caption, given each of a few images."""
        outputs, memories = (part.unsqueeze(1) for part in state)
        result = outputs.new_empty(len(outputs), len(captions.n_predictions))
        shape = (len(outputs), -1, self.lstm.hidden_size)
        totals = -self._normalizers(outputs)
        for n_words, level in enumerate(captions.levels, 1):
            before = outputs[:, level.parents], memories[:, level.parents]
            totals = totals[:, level.parents] + self._logits(before[0], level.words)
            if n_words == self.max_tokens:
                result[:, level.complete] = totals[:, level.places]
                break
            words = gates[level.words].repeat(len(outputs), 1)
            after = self._step(words, (before[0].flatten(0, 1), before[1].flatten(0, 1)))
            outputs, memories = (part.reshape(shape) for part in after)
            totals = totals - self._normalizers(outputs)
            ends = self._logits(outputs[:, level.places], self.boundary)
            result[:, level.complete] = totals[:, level.places] + ends
        return result

    @torch.no_grad()
    def generate(self, table: RegionTable, beam_size: int) -> Tensor:
        """Search for probable captions of images.

        Returns their words, then the boundary and zeros, shape (n_images, max_tokens).
        """
        n_images = max(1, _LOGITS_AT_ONCE // (beam_size * (self.boundary + 1)))
        parts = [
            self._search(self._encode_images(table, part.numpy()), beam_size)
            for part in torch.split(torch.arange(len(table)), n_images)
        ]
        return torch.cat(parts).cpu()

    def _search(self, state: State, beam_size: int) -> Tensor:
        """Search for a probable caption of each image.

        The likelihood of a beam that has ended is kept, and set to -inf: no extension of it
        can come among the best.
        """
        n_images = len(state[0])
        images = torch.arange(n_images, device=state[0].device)
        likelihoods = state[0].new_zeros(n_images, 1)
        captions = images.new_zeros(n_images, 1, 0)
        best = likelihoods.new_full((n_images,), -math.inf)
        found = images.new_zeros(n_images, self.max_tokens)
        gates = self._gates(self.words.weight)

        def keep(complete: Tensor) -> None:
            top, beams = complete.max(1)
            better = (top > best).nonzero()[:, 0]
            best[better] = top[better]
            found[better, : captions.shape[2]] = captions[better, beams[better]]

        for n_words in range(self.max_tokens):
            logs = self.decoder(state[0]).log_softmax(1)
            logs[:, UNKNOWN] = -math.inf  # is never written
            if n_words == 0:  # a caption has at least one word
                logs[:, self.boundary] = -math.inf
            n_beams, n_symbols = likelihoods.shape[1], self.boundary + 1
            totals = likelihoods.unsqueeze(2) + logs.reshape(n_images, n_beams, n_symbols)
            likelihoods, chosen = totals.flatten(1).topk(min(beam_size, n_beams * n_symbols))
            beams, symbols = chosen // n_symbols, chosen % n_symbols
            captions = torch.cat(
                [captions[images.unsqueeze(1), beams], symbols.unsqueeze(2)], 2
            )
            has_ended = symbols == self.boundary
            keep(likelihoods.masked_fill(~has_ended, -math.inf))
            likelihoods = likelihoods.masked_fill(has_ended, -math.inf)
            if (best >= likelihoods.amax(1)).all():
                break
            rows = (images.unsqueeze(1) * n_beams + beams).flatten()
            words = gates[symbols.flatten()]
            state = self._step(words, (state[0][rows], state[1][rows]))
        else:  # beams that have not ended after all words
            keep(likelihoods)
        return found

    def _gates(self, inputs: Tensor) -> Tensor:
        """Return what inputs add to the four gates, shape (n_inputs, 4 * n_components).

        A word adds the same in every state, so this is computed once for each word.
        """
        weight, _, *biases = self.lstm.parameters()
        return F.linear(inputs, weight, biases[0] + biases[1])

    def _step(self, gates: Tensor, state: State) -> State:
        """Return the state of the LSTM after one more input, given its `_gates`."""
        _, recurrent, *_ = self.lstm.parameters()
        parts = torch.addmm(gates, state[0], recurrent.T).chunk(4, 1)
        written, kept, shown = (parts[i].sigmoid() for i in (0, 1, 3))
        memories = kept * state[1] + written * parts[2].tanh()
        return shown * memories.tanh(), memories

    def _logits(self, outputs: Tensor, symbols: Tensor | int) -> Tensor:
        """Return the logit of one symbol for each output, shape (n_images, n_outputs)."""
        products = outputs * self.decoder.weight[symbols]
        return products.sum(2) + self.decoder.bias[symbols]

    def _normalizers(self, outputs: Tensor) -> Tensor:
        """Return the log-sum-exp of all logits of each output."""
        rows = torch.split(
            outputs.flatten(0, 1), max(1, _LOGITS_AT_ONCE // (self.boundary + 1))
        )
        logits = map(self.decoder, rows)
        # The softmax is one pass over the logits, `logsumexp` several.
        sums = torch.cat([own[:, 0] - own.log_softmax(1)[:, 0] for own in logits])
        return sums.reshape(outputs.shape[:2])


def _check_range(values: Tensor) -> None:
    """Raise if values that were computed from images are NaN or infinite."""
    if not torch.isfinite(values).all():
        raise ValueError(
            "features of images must be finite, and not so large that the network overflows"
        )
