"""Captions and similarities of words in the form that the compiled text kernels take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_csr,
    as_real_array,
    check_finite,
    check_non_negative,
    check_real,
    scan_gram,
)
from kernelcore._ragged import offsets_of
from kernelcore.captions.encoded import EncodedCaptions, numbered
from kernelcore.kernels.prepared import Prepared, Rows

Texts: TypeAlias = EncodedCaptions | Prepared | Sequence[str] | Sequence[Sequence[Any]]
"""Captions of images; or texts, strings or lists of tokens, one or several for each image."""

Ragged: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Symbols, offsets of captions in the symbols, offsets of images in the captions."""

# A sparse word kernel with a larger share of entries is faster as a dense one.
_DENSE_SHARE = 1 / 16
_LARGEST_DENSE = 2**25  # entries
_ASYMMETRY = 1e-6  # of the largest entry
_SMALLEST = 2.0**-60  # similarities
_LARGEST = float(np.finfo(np.float32).max)
# Power of two of the largest match and of the inverse of the smallest, with margins.
_LARGEST_MATCH = {np.dtype(np.float32): 124, np.dtype(np.float64): 1000}


def as_captions(
    X: Any, Y: Any = None, *, name: str = "X"
) -> tuple[EncodedCaptions, EncodedCaptions]:
    """Return both inputs as captions over one vocabulary, `X` twice if `Y` is omitted.

    The words of texts are outside any vocabulary; `name` is that of the first argument.
    """
    X = X.samples if isinstance(X, Prepared) else X
    Y = Y.samples if isinstance(Y, Prepared) else X if Y is None else Y
    ids: dict[str, int] = {}
    left = X if isinstance(X, EncodedCaptions) else _encode(name, X, ids)
    right = left if Y is X else Y if isinstance(Y, EncodedCaptions) else _encode("Y", Y, ids)
    if isinstance(X, EncodedCaptions) != isinstance(Y, EncodedCaptions):
        raise TypeError(
            f"{name} and Y must both be EncodedCaptions or both be texts, "
            f"got {type(X).__name__} and {type(Y).__name__}"
        )
    if left.n_words != right.n_words:
        raise ValueError(
            f"{name} and Y must be encoded with the same vocabulary, "
            f"got n_words {left.n_words} and {right.n_words}"
        )
    return left, right


def _encode(name: str, texts: Any, ids: dict[str, int]) -> EncodedCaptions:
    """Encode texts; `ids` collects the ids of their words."""
    images: list[Any] = [None]
    if isinstance(texts, Sequence) and not isinstance(texts, (str, bytes)):
        images = [[own] if isinstance(own, str) else own for own in texts]
    if not all(isinstance(own, (list, tuple)) and all(map(_is_text, own)) for own in images):
        raise TypeError(
            f"{name} must be EncodedCaptions or a list of texts, strings or lists of tokens, "
            f"got {type(texts).__name__}"
        )
    tokens = [text.split() if isinstance(text, str) else text for own in images for text in own]
    words = [ids.setdefault(word, -1 - len(ids)) for text in tokens for word in text]
    return EncodedCaptions(
        word_ids=np.array(words, np.int32),
        caption_offsets=offsets_of([len(text) for text in tokens]),
        image_offsets=offsets_of([len(own) for own in images]),
        caption_numbers=np.array([n for own in images for n in range(len(own))], np.int64),
        n_words=0,
    )


def _is_text(text: Any) -> bool:
    is_list = isinstance(text, (list, tuple)) and all(isinstance(word, str) for word in text)
    return is_list or isinstance(text, str)


def as_symbols(X: EncodedCaptions, Y: EncodedCaptions) -> tuple[Ragged, Ragged, int]:
    """Return both inputs with numbered words, and the number of symbols.

    The symbol of a word of the vocabulary is its id. Unknown words follow, with the same
    symbols in both inputs.
    """
    words_X, words_Y, n_symbols = X.word_ids, Y.word_ids, X.n_words
    if (words_X < 0).any() or (words_Y < 0).any():
        words = words_X if Y is X else np.concatenate([words_X, words_Y])
        words, n_symbols = numbered(words, n_symbols)
        words_X, words_Y = words[: len(words_X)], words[len(words) - len(words_Y) :]
    symbols_X = (words_X, X.caption_offsets, X.image_offsets)
    symbols_Y = symbols_X if Y is X else (words_Y, Y.caption_offsets, Y.image_offsets)
    return symbols_X, symbols_Y, n_symbols


def longest_caption(X: Ragged, Y: Ragged) -> int:
    """Words of the longest caption, at least 1."""
    longest = int(np.diff(X[1]).max(initial=1))
    return longest if Y is X else max(longest, int(np.diff(Y[1]).max(initial=1)))


class CheckedWordKernel(NamedTuple):
    """A word kernel as the compiled core takes it: dense or as CSR arrays, or neither.

    It is given in place of the matrix where the same one is used again and again.
    """

    n_words: int
    dense: npt.NDArray[np.float32] | None
    sparse: Rows | None
    largest: float
    """Largest magnitude."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.n_words, self.n_words


def as_word_kernel(word_kernel: Any, n_words: int) -> CheckedWordKernel:
    """Check a word kernel."""
    if word_kernel is None:
        return CheckedWordKernel(n_words, None, None, 1.0)
    if hasattr(word_kernel, "words") and hasattr(word_kernel, "matrix"):  # a WordKernel
        word_kernel = word_kernel.matrix
    matrix: Any = word_kernel
    if hasattr(word_kernel, "tocsr"):
        matrix = as_csr("word_kernel", word_kernel)
    elif not isinstance(word_kernel, CheckedWordKernel):
        matrix = as_real_array("word_kernel", word_kernel, ndim=2)
    if matrix.shape != (n_words, n_words):
        raise ValueError(
            f"word_kernel must have shape {(n_words, n_words)}, one row per word of the "
            f"vocabulary (texts have none), got {matrix.shape}"
        )
    if isinstance(word_kernel, CheckedWordKernel):
        return word_kernel
    if hasattr(word_kernel, "tocsr"):
        if matrix.nnz <= _DENSE_SHARE * n_words**2 or n_words**2 > _LARGEST_DENSE:
            return _as_sparse_kernel(matrix)
        matrix = as_real_array("word_kernel", matrix.toarray(order="C"), ndim=2)
    found = scan_gram(matrix, 1)
    if not found.is_finite:
        check_finite("word_kernel", matrix)
    largest = max(found.largest, -found.smallest)
    _check_similarities(largest, found.gap or 0.0)
    return CheckedWordKernel(n_words, matrix.astype(np.float32, copy=False), None, largest)


def _as_sparse_kernel(rows: Any) -> CheckedWordKernel:
    check_finite("word_kernel", rows.data)
    largest = float(abs(rows).max()) if rows.nnz else 0.0
    _check_similarities(largest, float(abs(rows - rows.T).max()) if rows.nnz else 0.0)
    parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32))
    sparse = (*parts, rows.data.astype(np.float32, copy=False))
    return CheckedWordKernel(rows.shape[0], None, sparse, largest)


def _check_similarities(largest: float, gap: float) -> None:
    """Check the largest magnitude, and the largest difference from the transpose."""
    if largest > _LARGEST:
        raise ValueError(f"word_kernel must fit into float32, got a value of {largest:.3g}")
    if 0.0 < largest < _SMALLEST:
        raise ValueError(
            f"word_kernel must be 0 or reach {_SMALLEST:.3g}, of which float32 holds products, "
            f"got {largest:.3g} at most"
        )
    if gap > _ASYMMETRY * largest:
        raise ValueError(f"word_kernel must be symmetric, got entries that differ by {gap:.3g}")


def as_symbol_weights(
    word_weights: npt.ArrayLike | None, unknown_weight: float, n_words: int, n_symbols: int
) -> npt.NDArray[np.float64]:
    """Return the weight of each symbol; those of the vocabulary's words are 1 by default."""
    weights = np.full(n_symbols, check_real("unknown_weight", unknown_weight, minimum=0.0))
    weights[:n_words] = 1.0
    if word_weights is not None:
        given = as_real_array("word_weights", word_weights, ndim=1)
        if len(given) != n_words:
            raise ValueError(
                f"word_weights must have one entry per word ({n_words}), got {len(given)}"
            )
        weights[:n_words] = check_non_negative("word_weights", given)
    return weights


def match_scale(
    weights: npt.NDArray[np.float64],
    match_decay: float,
    largest: float,
    dtype: Any,
    *,
    relative: bool,
) -> Array:
    """Return the square root of each symbol's weight times `match_decay`, as `dtype`.

    `largest` is the greatest similarity of words. If only ratios of similarities matter
    (`relative`), a power of two brings the largest scale into [1/2, 1), which changes no bit
    of the ratios. Raises ValueError if a match would leave the range of the dtype.
    """
    kind = np.dtype(dtype)
    mantissa, power = math.frexp(match_decay)
    roots = mantissa * np.sqrt(weights)
    positive = roots[roots > 0]
    if positive.size:
        least, most = float(positive.min()), float(positive.max())
        if relative:
            power = -math.frexp(most)[1]
        lower = 2 * (math.log2(least) + power)
        upper = 2 * (math.log2(most) + power) + math.log2(max(1.0, largest))
        if lower < -_LARGEST_MATCH[kind] or upper > _LARGEST_MATCH[kind]:
            names = "word_weights, unknown_weight and word_kernel"
            raise ValueError(
                f"{names if match_decay == 1.0 else f'match_decay, {names}'} must leave the "
                f"matches of words with themselves within {kind}, got matches from "
                f"2**{lower:.0f} to 2**{upper:.0f}"
            )
    return np.ldexp(roots, power).astype(kind)
