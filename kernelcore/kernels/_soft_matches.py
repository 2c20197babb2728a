"""Checked captions and word similarities for kernels with soft matches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, as_real_array, check_non_negative, check_real
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels._symbols import Texts, as_symbols, check_captions, encode_strings
from kernelcore.kernels._word_kernel import as_word_kernel

# Powers of ten that sums may reach, and of two that one match may differ from 1, with margins.
_LARGEST_SUM = {np.dtype(np.float32): 37, np.dtype(np.float64): 300}
_LARGEST_MATCH = {np.dtype(np.float32): 124, np.dtype(np.float64): 1000}


class SoftMatches:
    """Captions and the similarities of their words, as the compiled core reads them.

    Attributes
    ----------
    scale : ndarray of shape (n_symbols,)
        Root of each symbol's weight, times match_decay; see `fit_scale`.
    inputs : list of ndarray
        Arrays of the caller's that `out` must not overlap.
    """

    scale: Array

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
        captions_X, captions_Y = check_captions(*encode_strings(X, Y))
        are_strings = not isinstance(X, EncodedCaptions)
        if are_strings and (word_kernel is not None or word_weights is not None):
            raise ValueError(
                "word_kernel and word_weights must be omitted for strings, "
                "whose words have no ids; pass EncodedCaptions"
            )
        n_words = self._n_words = captions_X.n_words
        self.n_rows, self.n_cols = len(captions_X), len(captions_Y)
        self.X, self.Y, n_symbols = as_symbols(captions_X, captions_Y)
        self.is_symmetric = self.Y is self.X
        lengths = np.concatenate([np.diff(self.X[1]), np.diff(self.Y[1])])
        self.longest = max(1, int(lengths.max(initial=0)))

        self._weights = np.full(
            n_symbols, check_real("unknown_weight", unknown_weight, minimum=0.0)
        )
        self._weights[:n_words] = _word_weights(word_weights, n_words)
        self._match_decay = match_decay
        self.dense, self.sparse, self.largest = as_word_kernel(word_kernel, n_words)
        given = (*self.X, *self.Y, self.dense, word_kernel, word_weights)
        self.inputs = [part for part in given if isinstance(part, np.ndarray)]

    @property
    def n_word_pairs(self) -> float:
        """Words of `X` times words of `Y`."""
        return float(len(self.X[0])) * len(self.Y[0])

    def fit_scale(self, dtype: npt.DTypeLike, *, relative: bool) -> None:
        """Set `scale`, or refuse what makes a match leave the range of the dtype.

        Where the ratios of similarities alone matter (`relative`), a power of two brings the
        largest scale into [1/2, 1): no bit of the ratios changes.
        """
        kind = np.dtype(dtype)
        mantissa, power = math.frexp(self._match_decay)
        roots = mantissa * np.sqrt(self._weights)
        positive = np.flatnonzero(roots)
        if positive.size:
            extremes = [positive[pick(roots[positive])] for pick in (np.argmin, np.argmax)]
            if relative:
                power = -math.frexp(roots[extremes[1]])[1]
            self._check_matches(
                extremes, 2 * (np.log2(roots[extremes]) + power), kind, relative
            )
        self.scale = np.ldexp(roots, power).astype(kind)

    def _check_matches(
        self, symbols: list[Any], magnitudes: Array, dtype: np.dtype[Any], relative: bool
    ) -> None:
        """Refuse matches of words with themselves from 2**magnitudes[0] to 2**magnitudes[1]."""
        similarity = math.log2(max(1.0, self.largest))
        limit = _LARGEST_MATCH[dtype]
        if magnitudes[0] >= -limit and magnitudes[1] + similarity <= limit:
            return
        causes = {"word_kernel": (similarity, self.largest)}
        for symbol in symbols:
            weight = float(self._weights[symbol])
            name = "word_weights" if symbol < self._n_words else "unknown_weight"
            causes[name] = max(causes.get(name, (0.0, 1.0)), (abs(math.log2(weight)), weight))
        if not relative:
            causes["match_decay"] = (2 * abs(math.log2(self._match_decay)), self._match_decay)
        name = max(causes, key=lambda cause: causes[cause][0])
        raise ValueError(
            f"{name} must leave the matches of words with themselves within {dtype}, "
            f"got {causes[name][1]:.3g}, by which they reach from 2**{magnitudes[0]:.0f} to "
            f"2**{magnitudes[1] + similarity:.0f}"
        )

    def check_sequence_sums(self, max_length: int, dtype: npt.DTypeLike = np.float32) -> None:
        """Refuse common subsequences whose sums might overflow the dtype, by a bound."""
        kind = np.dtype(dtype)
        largest_match = float(self.scale.max(initial=0.0)) ** 2 * max(1.0, self.largest)
        if largest_match == 0.0:
            return
        n_captions = self._most_captions()
        n = self.longest
        largest_term = max(
            2 * (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1))
            + k * math.log(largest_match)
            for k in range(1, min(max_length, n) + 1)
        )
        magnitude = (largest_term + math.log(max(1, n_captions**2 * max_length))) / math.log(10)
        if magnitude > _LARGEST_SUM[kind]:
            raise ValueError(
                f"max_length must be small enough for sums in {kind}, got {max_length}, by "
                f"which the kernel of two texts of {n} words may reach 10**{magnitude:.0f}; a "
                "smaller match_decay helps too"
            )

    def check_assignment_sums(self, dtype: npt.DTypeLike) -> None:
        """Refuse sums of links that the dtype of the result might not hold, by a bound."""
        kind = np.dtype(dtype)
        largest_match = float(self.scale.max(initial=0.0)) ** 2 * max(1.0, self.largest)
        if (
            largest_match * self.longest * self._most_captions() ** 2
            > 10.0 ** _LARGEST_SUM[kind]
        ):
            raise ValueError(
                f"dtype must hold the sums of links, got {kind}, which may reach "
                f"{largest_match:.3g} for each of {self.longest} words"
            )

    def _most_captions(self) -> int:
        return max(int(np.diff(side[2]).max(initial=0)) for side in (self.X, self.Y))


def _word_weights(word_weights: npt.ArrayLike | None, n_words: int) -> Array:
    if word_weights is None:
        return np.ones(n_words)
    weights = as_real_array("word_weights", word_weights, ndim=1)
    if len(weights) != n_words:
        raise ValueError(
            f"word_weights must have one entry per word ({n_words}), got {len(weights)}"
        )
    return check_non_negative("word_weights", weights)
