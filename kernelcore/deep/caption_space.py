"""An LSTM over an image and words: probabilities of captions, and the search for good ones."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from kernelcore.deep.encoders import (
    FeatureEncoder,
    SentenceSpace,
    dropout,
    linear,
    recurrent,
)
from kernelcore.deep.items import UNKNOWN, Offsets, RegionTable, Sentences
from kernelcore.models.base import Pairs

Score: TypeAlias = Literal["ratio", "likelihood", "per word"]

SCORES = ("ratio", "likelihood", "per word")

State: TypeAlias = tuple[Tensor, Tensor]
"""Outputs and memories of the LSTM, each of shape (n, n_components)."""

# These bound the memory of a call.
_PAIRS_AT_ONCE = 128
_STATES_AT_ONCE = 4096
_LOGITS_AT_ONCE = 1 << 22


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
    dropout : float
        Share of the entries of embeddings and of outputs that is dropped in training.
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
        dropout: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        n_symbols, n_dimensions = len(embedding) + 1, embedding.shape[1]
        self.boundary = n_symbols - 1
        self.max_tokens = max_tokens
        self.score = score
        self.dropout = dropout
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

    def of_pairs(
        self, pairs: Pairs, captions: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the log-likelihoods of the captions at some positions, given their images.

        The generator is the source of dropout; None disables it.
        """
        owners = pairs.caption_image[captions.numpy()]
        images, positions = np.unique(owners, return_inverse=True)
        rows, _ = pairs.images.take(images, self.device)
        first = self.images(rows, generator)[torch.from_numpy(positions)]
        sentences = pairs.captions.take(captions)
        lengths = sentences.lengths.to(first.device)
        symbols = F.pad(sentences.word_ids, (1, 1))
        symbols[:, 0] = self.boundary
        symbols[torch.arange(len(symbols)), sentences.lengths + 1] = self.boundary
        n_steps = min(symbols.shape[1] - 1, self.max_tokens)
        words = dropout(self.words(symbols[:, :n_steps]), self.dropout, generator)
        outputs, _ = self.lstm(torch.cat([first.unsqueeze(1), words], 1))
        mask = torch.arange(n_steps, device=first.device) <= lengths.unsqueeze(1)
        logits = self.decoder(dropout(outputs[:, 1:][mask], self.dropout, generator))
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
        self, rows: Tensor, offsets: Offsets, generator: torch.Generator | None = None
    ) -> State:
        """Read images of one feature row each, and the start of a caption."""
        nothing = rows.new_zeros(len(rows), self.lstm.hidden_size)
        state = self._step(self._gates(self.images(rows, generator)), (nothing, nothing))
        start = self._gates(self.words.weight[self.boundary :]).expand(len(rows), -1)
        outputs, memories = self._step(start, state)
        _check_range(outputs)
        return outputs, memories

    def encode_captions(
        self, sentences: Sentences, generator: torch.Generator | None = None
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
    def generate(self, table: RegionTable, beam_size: int, max_length: int) -> Tensor:
        """Search for probable captions of images.

        Returns their words, then the boundary and zeros, shape (n_images, max_length).
        """
        n_images = max(1, _LOGITS_AT_ONCE // (beam_size * (self.boundary + 1)))
        parts = [
            self._search(self._encode_images(table, part.numpy()), beam_size, max_length)
            for part in torch.split(torch.arange(len(table)), n_images)
        ]
        return torch.cat(parts).cpu()

    def _search(self, state: State, beam_size: int, max_length: int) -> Tensor:
        """Search for a probable caption of each image.

        The likelihood of a beam that has ended is kept, and set to -inf: no extension of it
        can come among the best.
        """
        n_images = len(state[0])
        images = torch.arange(n_images, device=state[0].device)
        likelihoods = state[0].new_zeros(n_images, 1)
        captions = images.new_zeros(n_images, 1, 0)
        best = likelihoods.new_full((n_images,), -math.inf)
        found = images.new_zeros(n_images, max_length)
        gates = self._gates(self.words.weight)

        def keep(complete: Tensor) -> None:
            top, beams = complete.max(1)
            better = (top > best).nonzero()[:, 0]
            best[better] = top[better]
            found[better, : captions.shape[2]] = captions[better, beams[better]]

        for n_words in range(max_length):
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
            if max_length < self.max_tokens:
                ends = self.decoder(state[0]).log_softmax(1)[:, self.boundary]
                likelihoods = likelihoods + ends.reshape(likelihoods.shape)
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
