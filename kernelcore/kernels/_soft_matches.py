"""Captions whose words match softly: checked input of the kernels that compare them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_real_array, check_non_negative, check_real
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels._symbols import Texts, as_symbols, check_captions, encode_strings
from kernelcore.kernels._word_kernel import as_word_kernel

_LARGEST_MAGNITUDE = 37  # power of ten that float32 holds, with a margin


class SoftMatches:
    """Captions and the similarities of their words, as the compiled core reads them."""

    def __init__(
        self,
        X: Texts,
        Y: Texts | None,
        *,
        word_kernel: Any,
        word_weights: npt.ArrayLike | None,
        unknown_weight: float,
        match_decay: float,
    ) -> None:
        are_strings = not isinstance(X, EncodedCaptions)
        if are_strings and (word_kernel is not None or word_weights is not None):
            raise ValueError(
                "word_kernel and word_weights must be omitted for strings, "
                "whose words have no ids; pass EncodedCaptions"
            )
        captions_X, captions_Y = check_captions(*encode_strings(X, Y))
        n_words = captions_X.n_words
        self.n_rows, self.n_cols = len(captions_X), len(captions_Y)
        self.X, self.Y, n_symbols = as_symbols(captions_X, captions_Y)
        self.is_symmetric = self.Y is self.X
        lengths = np.concatenate([np.diff(self.X[1]), np.diff(self.Y[1])])
        self.longest = max(1, int(lengths.max(initial=0)))

        weights = np.full(n_symbols, check_real("unknown_weight", unknown_weight, minimum=0.0))
        weights[:n_words] = _word_weights(word_weights, n_words)
        self.scale = match_decay * np.sqrt(weights)
        self.dense, self.sparse, self.largest = as_word_kernel(word_kernel, n_words)

    def check_sequence_sums(self, max_length: int) -> None:
        """Refuse common subsequences whose sums might overflow float32, by a bound."""
        largest_match = float(self.scale.max(initial=0.0)) ** 2 * max(1.0, self.largest)
        if largest_match == 0.0:
            return
        n_captions = max(int(np.diff(side[2]).max(initial=0)) for side in (self.X, self.Y))
        n = self.longest
        largest_term = max(
            2 * (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1))
            + k * math.log(largest_match)
            for k in range(1, min(max_length, n) + 1)
        )
        magnitude = (largest_term + math.log(max(1, n_captions * max_length))) / math.log(10)
        if magnitude > _LARGEST_MAGNITUDE:
            raise ValueError(
                f"max_length must be small enough for sums in float32, got {max_length}, by "
                f"which the kernel of two texts of {n} words may reach 10**{magnitude:.0f}; a "
                "smaller match_decay helps too"
            )


def _word_weights(word_weights: npt.ArrayLike | None, n_words: int) -> Array:
    if word_weights is None:
        return np.ones(n_words)
    weights = as_real_array("word_weights", word_weights, ndim=1)
    if len(weights) != n_words:
        raise ValueError(
            f"word_weights must have one entry per word ({n_words}), got {len(weights)}"
        )
    return check_non_negative("word_weights", weights)
