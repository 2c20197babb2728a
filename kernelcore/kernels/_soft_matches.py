"""Captions and similarities of words in the form that the compiled text kernels take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_array,
    as_csr,
    as_real_array,
    check_finite,
    check_non_negative,
    check_real,
)
from kernelcore._ragged import offsets_of
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels.prepared import samples_of

Texts: TypeAlias = EncodedCaptions | Sequence[str] | Sequence[Sequence[str]]
"""Captions of images, or texts, one or several for each image, split at white space."""

Ragged: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Symbols, offsets of captions in the symbols, offsets of images in the captions."""


def encode_strings(X: Any, Y: Any) -> tuple[Any, Any]:
    """Return both inputs as captions; the words of strings are outside any vocabulary."""
    X, Y = samples_of(X), samples_of(Y)
    if isinstance(X, EncodedCaptions):
        return X, Y
    ids: dict[str, int] = {}

    def encode(name: str, texts: Any) -> EncodedCaptions:
        is_list = isinstance(texts, Sequence) and not isinstance(texts, (str, bytes))
        items: list[Any] = [None]
        if is_list:
            items = [[own] if isinstance(own, str) else own for own in texts]
        if not all(
            isinstance(own, (list, tuple)) and all(isinstance(text, str) for text in own)
            for own in items
        ):
            raise TypeError(
                f"{name} must be EncodedCaptions or a list of strings"
                f"{'' if name == 'X' else ', as X is'}, got {type(texts).__name__}"
            )
        split = [text.split() for own in items for text in own]
        words = [ids.setdefault(word, -1 - len(ids)) for text in split for word in text]
        return EncodedCaptions(
            word_ids=np.array(words, np.int32),
            caption_offsets=offsets_of([len(text) for text in split]),
            image_offsets=offsets_of([len(own) for own in items]),
            caption_numbers=np.array([n for own in items for n in range(len(own))], np.int64),
            n_words=0,
        )

    return encode("X", X), None if Y is None else encode("Y", Y)


def check_captions(
    X: EncodedCaptions, Y: EncodedCaptions | None, *, name: str = "X"
) -> tuple[EncodedCaptions, EncodedCaptions]:
    """Return both inputs, `X` twice if `Y` is omitted; check that they share a vocabulary."""
    X = samples_of(X)
    other = X if Y is None else samples_of(Y)
    for argument, captions in ((name, X), ("Y", other)):
        if not isinstance(captions, EncodedCaptions):
            raise TypeError(
                f"{argument} must be EncodedCaptions, got {type(captions).__name__}"
            )
    if X.n_words != other.n_words:
        raise ValueError(
            "X and Y must be encoded with the same vocabulary, "
            f"got n_words {X.n_words} and {other.n_words}"
        )
    return X, other


def as_symbols(X: EncodedCaptions, Y: EncodedCaptions) -> tuple[Ragged, Ragged, int]:
    """Return both inputs with numbered words, and the number of symbols.

    The symbol of a word of the vocabulary is its id. Unknown words follow, with the same
    symbols in both inputs.
    """
    ids = [X.word_ids] if Y is X else [X.word_ids, Y.word_ids]
    unknown = np.unique(np.concatenate([part[part < 0] for part in ids]))

    def symbols(captions: EncodedCaptions) -> Ragged:
        words = captions.word_ids
        if unknown.size:
            places = captions.n_words + np.searchsorted(unknown, words)
            words = np.where(words < 0, places, words).astype(np.int32)
        return words, captions.caption_offsets, captions.image_offsets

    symbols_X = symbols(X)
    return symbols_X, symbols_X if Y is X else symbols(Y), X.n_words + len(unknown)


Csr: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Row offsets, columns and values of a sparse matrix."""

# A sparse word kernel with a larger share of entries is faster as a dense one.
_DENSE_SHARE = 1 / 16
_LARGEST_DENSE = 2**25  # entries
_ASYMMETRY = 1e-6  # of the largest entry
_BLOCK_ROWS = 512
_SMALLEST = 2.0**-60  # similarities


class CheckedWordKernel(NamedTuple):
    """A word kernel as the compiled core takes it: dense or as CSR arrays, or neither.

    It is given in place of the matrix where the same one is used again and again.
    """

    n_words: int
    dense: npt.NDArray[np.float32] | None
    sparse: Csr | None
    largest: float
    """Largest magnitude."""


def as_word_kernel(word_kernel: Any, n_words: int) -> CheckedWordKernel:
    """Check a word kernel."""
    if word_kernel is None:
        return CheckedWordKernel(n_words, None, None, 1.0)
    if isinstance(word_kernel, CheckedWordKernel):
        _check_shape((word_kernel.n_words,) * 2, n_words)
        return word_kernel
    if hasattr(word_kernel, "words") and hasattr(word_kernel, "matrix"):  # a WordKernel
        word_kernel = word_kernel.matrix
    if not hasattr(word_kernel, "tocsr"):
        given = as_array("word_kernel", word_kernel, ndim=2)
        _check_shape(given.shape, n_words)
        dense = as_real_array("word_kernel", given, ndim=2)
        largest = _largest_similarity(dense)
        return CheckedWordKernel(n_words, _checked_dense(dense), None, largest)
    csr = as_csr("word_kernel", word_kernel)
    _check_shape(csr.shape, n_words)
    largest = _largest_similarity(csr.data)
    csr = csr.astype(np.float32, copy=False)
    if csr.nnz > _DENSE_SHARE * n_words**2 and n_words**2 <= _LARGEST_DENSE:
        dense = _checked_dense(csr.toarray(order="C"))
        return CheckedWordKernel(n_words, dense, None, largest)
    _check_symmetric(float(abs(csr - csr.T).max()) if csr.nnz else 0.0, largest)
    parts = (csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data)
    return CheckedWordKernel(n_words, None, parts, largest)


def _check_shape(shape: tuple[int, ...], n_words: int) -> None:
    if shape != (n_words, n_words):
        raise ValueError(
            f"word_kernel must have shape {(n_words, n_words)}, one row per word of the "
            f"vocabulary, got {shape}"
        )


def _checked_dense(matrix: Array) -> npt.NDArray[np.float32]:
    """Return a symmetric matrix as float32, compared with its transpose block by block."""
    largest = _largest_similarity(matrix)
    rows = (slice(start, start + _BLOCK_ROWS) for start in range(0, len(matrix), _BLOCK_ROWS))
    with np.errstate(over="ignore"):  # an infinite difference is refused, too
        blocks = (abs(matrix[block] - matrix.T[block]) for block in rows)
        difference = max((float(block.max()) for block in blocks), default=0.0)
    _check_symmetric(difference, largest)
    return matrix.astype(np.float32, copy=False)


def _largest_similarity(values: Array) -> float:
    check_finite("word_kernel", values)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > float(np.finfo(np.float32).max):
        raise ValueError(f"word_kernel must fit into float32, got a value of {largest:.3g}")
    if 0.0 < largest < _SMALLEST:
        raise ValueError(
            f"word_kernel must be 0 or reach {_SMALLEST:.3g}, of which float32 holds products, "
            f"got {largest:.3g} at most"
        )
    return largest


def _check_symmetric(difference: float, largest: float) -> None:
    if difference > _ASYMMETRY * largest:
        raise ValueError(
            f"word_kernel must be symmetric, got entries that differ by {difference:.3g}"
        )


# Largest power of ten of a sum, and of two of a match or its inverse, with margins.
_LARGEST_SUM = {np.dtype(np.float32): 37, np.dtype(np.float64): 300}
_LARGEST_MATCH = {np.dtype(np.float32): 124, np.dtype(np.float64): 1000}


class SoftMatches:
    """Captions and the similarities of their words, as the compiled core takes them.

    Attributes
    ----------
    scale : ndarray of shape (n_symbols,)
        Square root of each symbol's weight, times match_decay; see `fit_scale`.
    inputs : list of ndarray
        Arrays of the caller that `out` must not overlap.
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
        are_strings = not isinstance(samples_of(X), EncodedCaptions)
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
        _, self.dense, self.sparse, self.largest = as_word_kernel(word_kernel, n_words)
        given = (*self.X, *self.Y, self.dense, word_kernel, word_weights)
        self.inputs = [part for part in given if isinstance(part, np.ndarray)]

    @property
    def n_word_pairs(self) -> float:
        """Words of `X` times words of `Y`."""
        return float(len(self.X[0])) * len(self.Y[0])

    def fit_scale(self, dtype: npt.DTypeLike, *, relative: bool) -> None:
        """Set `scale`; raise if a match would leave the range of the dtype.

        If only ratios of similarities matter (`relative`), a power of two brings the largest
        scale into [1/2, 1), which changes no bit of the ratios.
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
        """Raise if matches of words with themselves, as powers of two, are out of range."""
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

    def check_sequence_sums(self, max_length: int, dtype: npt.DTypeLike) -> None:
        """Raise if sums over common subsequences might overflow the dtype, by a bound."""
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
        """Raise if sums of links might overflow the dtype of the result, by a bound."""
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
