"""IBM translation models with dictionaries, and log-likelihoods of captions under an LSTM."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Pairs: TypeAlias = Sequence[tuple[Sequence[Hashable], Sequence[Hashable]]]
"""Source and target sentence of each pair, in words of any hashable kind."""

Translations: TypeAlias = dict[tuple[Hashable, Hashable], float]
"""(source word, target word) -> p(target | source); the NULL word is None."""


def ibm1(pairs: Pairs, n_iterations: int) -> tuple[Translations, list[float]]:
    """Compute translation probabilities, and the log-likelihood before each iteration."""
    pairs = _usable(pairs)
    t = _uniform(pairs)
    history = []
    for _ in range(n_iterations):
        counts: Translations = defaultdict(float)
        log_likelihood = 0.0
        for source, target in pairs:
            for e in target:
                total = sum(t[f, e] for f in source)
                log_likelihood += math.log(total / len(source))
                for f in source:
                    counts[f, e] += t[f, e] / total
        t = _normalized(counts)
        history.append(log_likelihood)
    return t, history


def ibm2(
    pairs: Pairs, n_iterations: int, n_model1_iterations: int
) -> tuple[Translations, list[float]]:
    """Train model 1, then model 2 from its translations and uniform alignments."""
    t, _ = ibm1(pairs, n_model1_iterations)
    pairs = _usable(pairs)
    if not n_model1_iterations:
        t = _uniform(pairs)
    # a[l, m, j][i]: probability that target position j comes from source position i
    a = {
        (len(source), len(target), j): [1 / len(source)] * len(source)
        for source, target in pairs
        for j in range(len(target))
    }
    history = []
    for _ in range(n_iterations):
        counts: Translations = defaultdict(float)
        a_counts = {key: [0.0] * len(values) for key, values in a.items()}
        log_likelihood = 0.0
        for source, target in pairs:
            for j, e in enumerate(target):
                key = (len(source), len(target), j)
                total = sum(a[key][i] * t[f, e] for i, f in enumerate(source))
                log_likelihood += math.log(total)
                for i, f in enumerate(source):
                    posterior = a[key][i] * t[f, e] / total
                    counts[f, e] += posterior
                    a_counts[key][i] += posterior
        t = _normalized(counts)
        a = {key: [c / sum(values) for c in values] for key, values in a_counts.items()}
        history.append(log_likelihood)
    return t, history


def _usable(pairs: Pairs) -> Pairs:
    """Pairs without an empty side, with the NULL word before each source sentence."""
    return [([None, *source], list(target)) for source, target in pairs if source and target]


def _uniform(pairs: Pairs) -> Translations:
    n_target_words = len({e for _, target in pairs for e in target})
    return {
        (f, e): 1 / n_target_words for source, target in pairs for f in source for e in target
    }


def _normalized(counts: Translations) -> Translations:
    totals: dict[Hashable, float] = defaultdict(float)
    for (f, _), count in counts.items():
        totals[f] += count
    return {(f, e): count / totals[f] for (f, e), count in counts.items()}


Vector = npt.NDArray[np.float64]
Weights = Mapping[str, npt.NDArray[Any]]
"""Arrays by name: ``image_weight``, ``image_bias``; ``words``, with a row for each symbol;
``input``, ``recurrent``, ``input_bias``, ``recurrent_bias``, with the gates in the order input,
forget, cell, output; ``decoder_weight``, ``decoder_bias``. Symbol 0 is the unknown word. The
last symbol starts and ends a caption."""


def lstm_step(x: Vector, y: Vector, h: Vector, weights: Weights) -> tuple[Vector, Vector]:
    """Output and memory of a cell after an input x, from its output y and its memory h."""
    gates = weights["input"] @ x + weights["input_bias"]
    gates = gates + weights["recurrent"] @ y + weights["recurrent_bias"]
    i, f, new, o = np.split(gates, 4)
    memory = _sigmoid(f) * h + _sigmoid(i) * np.tanh(new)
    return _sigmoid(o) * np.tanh(memory), memory


def log_likelihood(
    image: npt.ArrayLike, caption: Sequence[int], weights: Weights, *, max_tokens: int
) -> float:
    """Log-probability of a caption, given the standardised features of an image.

    A caption that has `max_tokens` words ends with probability 1.
    """
    boundary = len(weights["words"]) - 1
    y = h = np.zeros(weights["recurrent"].shape[1])
    y, h = lstm_step(
        weights["image_weight"] @ np.asarray(image) + weights["image_bias"], y, h, weights
    )
    total, previous = 0.0, boundary
    for symbol in [*caption, boundary][:max_tokens]:
        y, h = lstm_step(weights["words"][previous], y, h, weights)
        logits = weights["decoder_weight"] @ y + weights["decoder_bias"]
        total += logits[symbol] - np.log(np.exp(logits).sum())
        previous = symbol
    return float(total)


def all_captions(symbols: Sequence[int], max_length: int) -> list[tuple[int, ...]]:
    """Every sequence of at most `max_length` of the symbols, the empty one too.

    Examples
    --------
    >>> all_captions([1, 2], 2)
    [(), (1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2)]
    """
    return [
        caption
        for length in range(max_length + 1)
        for caption in product(symbols, repeat=length)
    ]


def best_caption(
    image: npt.ArrayLike, weights: Weights, *, max_length: int, max_tokens: int
) -> tuple[tuple[int, ...], float]:
    """Caption of 1 to `max_length` known words with the highest log-likelihood."""
    known = range(1, len(weights["words"]) - 1)
    return max(
        (
            (caption, log_likelihood(image, caption, weights, max_tokens=max_tokens))
            for caption in all_captions(known, max_length)[1:]
        ),
        key=lambda found: found[1],
    )


def _sigmoid(x: Vector) -> Vector:
    result: Vector = 1 / (1 + np.exp(-x))
    return result
