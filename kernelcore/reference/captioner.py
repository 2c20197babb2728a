"""Log-likelihoods of captions under an LSTM, word by word, and the best caption of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

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
