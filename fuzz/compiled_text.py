"""Kernels of captions against their definitions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import scipy.sparse as sp

from fuzz.agree import close, finite, same
from fuzz.draw import (
    Array,
    Nested,
    Rng,
    captions,
    chance,
    encoded,
    instruction_set,
    laid_out,
    output,
    pick,
    size,
    threads,
)
from fuzz.target import Target
from kernelcore.captions import EncodedCaptions
from kernelcore.kernels import (
    TagRank,
    bag_of_words,
    bag_of_words_f1,
    prepare,
    word_assignment,
    word_sequence,
    word_sequence_components,
)
from kernelcore.reference import kernels as assignment_by_definition
from kernelcore.reference import kernels as bags_by_definition
from kernelcore.reference import kernels as ranks_by_definition
from kernelcore.reference import kernels as sequence_by_definition

_EPS = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)
_WORD_KERNEL = sys.modules["kernelcore.kernels._texts"]
_WORD_SEQUENCE = sys.modules["kernelcore.kernels.word_sequence"]


class _Words(NamedTuple):
    """How alike words are, as the facades take it and as a function of two ids."""

    n_words: int
    options: dict[str, Any]
    similarity: Callable[[int, int], Any]


def _words(rng: Rng, folder: Path, *, soft: bool, negative: bool = False) -> _Words:
    n_words = size(rng, 40, 0 if chance(rng, 0.1) else 1)
    matrix = np.eye(n_words)
    options: dict[str, Any] = {}
    if soft:
        matrix = _numbers(rng, (n_words, n_words))
        matrix *= rng.random(matrix.shape) < pick(rng, (0.05, 0.4, 1.0))
        if negative:
            matrix *= rng.choice([-1, 1], matrix.shape)
        matrix = np.tril(matrix) + np.tril(matrix, -1).T
        matrix = matrix.astype(pick(rng, (np.float32, np.float64)))
        form = pick(rng, ("dense", "sparse", "unsorted"))
        options["word_kernel"] = (
            laid_out(rng, matrix, folder)
            if form == "dense"
            else sp.csr_array(matrix)
            if form == "sparse"
            else _unsorted(rng, matrix)
        )
    weights = np.ones(n_words)
    if chance(rng, 0.5):
        weights = _numbers(rng, (n_words,)) * pick(rng, (1.0, 1e-3, 10.0))
        options["word_weights"] = laid_out(rng, weights, folder)
    unknown = pick(rng, (1.0, 0.0, 2.5))
    options["unknown_weight"] = unknown

    def similarity(a: int, b: int) -> Any:
        if a < 0 or b < 0:
            return unknown * (a == b)
        return matrix[a, b] * np.sqrt(weights[a] * weights[b])

    return _Words(n_words, options, similarity)


def _kept_sparse(rng: Rng) -> Any:
    """Keep sparse, every other time, what would be faster as a dense matrix."""
    share = 2.0 if chance(rng, 0.5) else _WORD_KERNEL._DENSE_SHARE
    return mock.patch.object(_WORD_KERNEL, "_DENSE_SHARE", share)


def _numbers(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.random(shape) if chance(rng, 0.6) else rng.integers(0, 3, shape) / 2.0


def _unsorted(rng: Rng, matrix: Array) -> Any:
    """Return `matrix` as sparse rows in no order, zeros and halves of entries among them."""
    rows, cols = np.indices(matrix.shape).reshape(2, -1)
    order = rng.permutation(2 * matrix.size)
    values = np.tile(matrix.ravel() / 2, 2)[order]
    places = np.tile(rows, 2)[order], np.tile(cols, 2)[order]
    return sp.coo_array((values, places), shape=matrix.shape)


def _by_length(s: list[int], t: list[int], kappa: Array, max_length: int, gap: float) -> Array:
    """Sum the matches of each length by what the shorter ones end with: O(|s|^2 |t|)."""
    ids = {word: place for place, word in enumerate(sorted({*s, *t}))}
    matches = kappa[np.ix_([ids[w] for w in s], [ids[w] for w in t])]

    def steps(n: int) -> Array:
        back = np.subtract.outer(np.arange(n), np.arange(n)) - 1
        return np.where(back >= 0, gap ** np.maximum(back, 0.0), 0.0)

    ended, sums = matches, np.zeros(max_length)
    for length in range(min(max_length, len(s), len(t))):
        if length:
            ended = matches * (steps(len(s)) @ ended @ steps(len(t)).T)
        sums[length] = ended.sum()
    return sums


class _Sequences:
    """Sums by length of all pairs of images, and what float32 may make of them."""

    def __init__(self, words: _Words, max_length: int, gap: float) -> None:
        self.similarity = words.similarity
        self.options: dict[str, Any] = {"max_length": max_length, "gap_decay": gap}
        self._max_length, self._gap = max_length, gap

    def components(self, X: Nested, Y: Nested, sign: bool = True) -> Array:
        """Sum up each length, of similarities or of their magnitudes."""
        sums = np.zeros((len(X), len(Y), self._max_length))
        for i, x in enumerate(X):
            for j, y in enumerate(Y):
                for s in x:
                    for t in y:
                        sums[i, j] += self._pair(s, t, sign)
        return sums

    def _pair(self, s: list[int], t: list[int], sign: bool) -> Array:
        vocabulary = sorted({*s, *t})
        n = len(vocabulary)
        kappa = np.array([[self.similarity(a, b) for b in vocabulary] for a in vocabulary])
        kappa = kappa.reshape(n, n)
        return _by_length(s, t, kappa if sign else abs(kappa), self._max_length, self._gap)

    def error(self, X: Nested, Y: Nested) -> float:
        """Return the relative error of a sum of magnitudes, as the header bounds it."""
        texts = [[caption for image in side for caption in image] for side in (X, Y)]
        longest = sum(max(map(len, side), default=0) for side in texts)
        most = sum(max(map(len, side), default=0) for side in (X, Y))
        return self._max_length * (longest + most + 4) * _EPS


def _sequence(soft: bool, listed: bool) -> Callable[[Rng, Path], None]:
    def run(rng: Rng, folder: Path) -> None:
        negative = soft and chance(rng, 0.2)
        words = _words(rng, folder, soft=soft, negative=negative)
        longest = 9 if listed else pick(rng, (9, 20, 70))
        most = pick(rng, (6, 9, 30)) if longest == 9 else 5
        X = captions(rng, words.n_words, longest=longest, most_images=most)
        symmetric = chance(rng, 0.4)
        Y = X if symmetric else captions(rng, words.n_words, longest=longest, most_images=most)
        max_length = pick(rng, (1, 2, 3, 4, 5))
        gap, match = pick(rng, (1.0, 0.5, 0.0, 0.9)), pick(rng, (1.0, 0.5, 0.7))
        ours = encoded(rng, X, words.n_words, folder)
        theirs = None if symmetric else encoded(rng, Y, words.n_words, folder)
        dtype = pick(rng, (np.float32, np.float64))
        options = {**words.options, "max_length": max_length, "gap_decay": gap, "dtype": dtype}
        never = mock.patch.object(_WORD_SEQUENCE, "_is_listable", return_value=False)
        patch = mock.patch.object(_WORD_SEQUENCE, "_is_listable", return_value=True)
        with instruction_set(rng), patch if listed else never, _kept_sparse(rng):
            parts = word_sequence_components(ours, theirs, n_threads=1, **options)
            again = word_sequence_components(ours, theirs, n_threads=threads(rng), **options)
            raw = word_sequence(
                ours,
                theirs,
                match_decay=match,
                normalize=False,
                n_threads=threads(rng),
                out=output(rng, (len(X), len(Y)), dtype),
                **options,
            )
            normalized = None
            if not negative:
                normalized = word_sequence(
                    ours, theirs, match_decay=match, n_threads=threads(rng), **options
                )
        same(again, parts, "components of several threads")
        sequences = _Sequences(words, max_length, gap)
        error = sequences.error(X, Y) if not listed else 1e-11 + (dtype == np.float32) * _EPS
        sizes = sequences.components(X, Y, sign=False)
        expected = sequences.components(X, Y)
        close(parts, expected, "components", absolute=error * sizes + _TINY)
        powers = match ** (2 * np.arange(1, max_length + 1))
        total, magnitude = expected @ powers, sizes @ powers
        close(raw, total, "sums", absolute=(error + max_length * _EPS) * magnitude + _TINY)
        if normalized is not None:
            own = [
                np.array([(sequences.components([x], [x]) @ powers)[0, 0] for x in side])
                for side in (X, Y)
            ]
            length = np.sqrt(np.outer(*own))
            with np.errstate(invalid="ignore"):
                unit = np.where(length > 0, total / np.where(length > 0, length, 1), 0)
            close(normalized, unit, "normalized", relative=3 * error, absolute=10 * _EPS)
            if symmetric:
                same(normalized, normalized.T.copy(), "symmetry")
        _check_definition(rng, (X, Y), expected, sequences)

    return run


def _check_definition(
    rng: Rng, sides: tuple[Nested, Nested], expected: Array, sequences: _Sequences
) -> None:
    """Compare our recurrence with the definition on one short pair of images."""
    X, Y = sides
    if not (len(X) and len(Y)):
        return
    i, j = int(rng.integers(len(X))), int(rng.integers(len(Y)))
    if sum(map(len, X[i])) > 12 or sum(map(len, Y[j])) > 12:
        return
    defined = sequence_by_definition.word_sequence(
        [X[i]], [Y[j]], sequences.similarity, match_decay=1.0, **sequences.options
    )
    scale = float(abs(expected[i, j]).sum()) + 1.0
    close(expected[i, j].sum(), defined[0, 0], "our recurrence", absolute=1e-10 * scale)


def _extreme_sequences(rng: Rng, folder: Path) -> None:
    """Weights and decays of any magnitude: a refusal, or numbers; 1 on the diagonal."""
    n_words = size(rng, 9, 1)
    X = captions(rng, n_words, longest=8, most_images=5)
    ours = encoded(rng, X, n_words, folder)
    options: dict[str, Any] = {
        "match_decay": 10.0 ** rng.uniform(-300, 300),
        "max_length": pick(rng, (1, 3, 7, 1000, 2**40)),
        "gap_decay": pick(rng, (1.0, 0.0, 1e-300, 5e-324, 1 - 1e-16)),
        "unknown_weight": 10.0 ** rng.uniform(-300, 300),
    }
    if chance(rng, 0.5):
        options["word_weights"] = 10.0 ** rng.uniform(-300, 300, n_words)
    if chance(rng, 0.3):
        options["word_kernel"] = np.eye(n_words) * 10.0 ** rng.uniform(-300, 300)
    try:
        K = word_sequence(ours, n_threads=threads(rng), **options)
    except ValueError:
        return
    finite(K, "word_sequence")
    has_words = np.array([any(map(len, image)) for image in X], bool)
    if "word_weights" not in options and "word_kernel" not in options:
        same(K.diagonal(), has_words.astype(float), "diagonal")


def _extreme_assignments(rng: Rng, folder: Path) -> None:
    """Weights of any magnitude: a refusal, or numbers; 1 on the diagonal."""
    n_words = size(rng, 9, 1)
    X = captions(rng, n_words, longest=8, most_images=5)
    weights = 10.0 ** (rng.uniform(-300, 300) + rng.uniform(-3, 3, n_words))
    options: dict[str, Any] = {"word_weights": weights, "unknown_weight": float(weights[0])}
    try:
        K = word_assignment(encoded(rng, X, n_words, folder), **options)
    except ValueError:
        return
    finite(K, "word_assignment")
    single = np.array([len(image) == 1 and len(image[0]) > 0 for image in X], bool)
    close(K.diagonal()[single], np.ones(single.sum()), "diagonal", absolute=1e-5)


def _word_assignment(rng: Rng, folder: Path) -> None:
    words = _words(rng, folder, soft=chance(rng, 0.7), negative=chance(rng, 0.3))
    longest = pick(rng, (6, 9, 20, 66))
    X = captions(rng, words.n_words, longest=longest, most_images=7)
    symmetric = chance(rng, 0.4)
    Y = X if symmetric else captions(rng, words.n_words, longest=longest, most_images=7)
    ours = encoded(rng, X, words.n_words, folder)
    theirs = None if symmetric else encoded(rng, Y, words.n_words, folder)
    normalize, dtype = chance(rng, 0.4), pick(rng, (np.float32, np.float64))
    options = {**words.options, "normalize": normalize, "dtype": dtype}
    with instruction_set(rng), _kept_sparse(rng):
        plain = word_assignment(ours, theirs, n_threads=1, **options)
        out = output(rng, plain.shape, dtype)
        K = word_assignment(ours, theirs, n_threads=threads(rng), out=out, **options)
    same(K, plain, "several threads")
    kappa = words.similarity
    expected = assignment_by_definition.word_assignment(X, Y, kappa=kappa, normalize=normalize)
    used = sorted(
        {word for side in (X, Y) for image in side for text in image for word in text}
    )
    largest = max([0.0, *(kappa(a, b) for a in used for b in used)])
    k = max((len(text) for side in (X, Y) for image in side for text in image), default=0)
    n_pairs = max(map(len, X), default=0) * max(map(len, Y), default=0)
    # Of a pair of captions as the header says; kappa itself is a product of three roundings.
    slack = n_pairs * (4 * k * k + 8 * k) * _EPS * largest
    if not normalize:
        close(K, expected, "links", absolute=slack + _EPS * abs(expected) + _TINY)
        return
    finite(K, "normalized")
    own_X, own_Y = (
        assignment_by_definition.word_assignment(
            side, side, kappa=kappa, normalize=False
        ).diagonal()
        for side in (X, Y)
    )
    smallest = np.minimum.outer(own_X, own_Y)
    safe = smallest > 100 * slack  # elsewhere rounding may be all that is left
    bound = 4 * _EPS + 3 * slack / smallest[safe] * (1 + expected[safe])
    close(K[safe], expected[safe], "normalized", absolute=bound)


def _tag_rank(rng: Rng, folder: Path) -> None:
    n_words = size(rng, 20, 1)
    longest = pick(rng, (4, 9, 30))
    X = captions(rng, n_words, longest=longest, most_images=9)
    symmetric = chance(rng, 0.4)
    Y = X if symmetric else captions(rng, n_words, longest=longest, most_images=9)
    training = [  # words outside the vocabulary have no place in it
        [[max(word, 0) for word in text] for text in image]
        for image in captions(rng, n_words, longest=longest, most_images=9)
    ]
    ours = encoded(rng, X, n_words, folder)
    theirs = None if symmetric else encoded(rng, Y, n_words, folder)
    widths: dict[str, float] = {}
    if chance(rng, 0.5):
        widths["absolute_width"] = 10.0 ** rng.uniform(-2, 2)
    if chance(rng, 0.5):
        widths["relative_width"] = 10.0 ** rng.uniform(-2, 2)
    learned = encoded(rng, training, n_words, folder)
    try:
        kernel = TagRank(**widths).fit(learned)
    except ValueError as error:
        if "must be given where no two training captions differ" not in str(error):
            raise
        widths = {"absolute_width": 0.5, "relative_width": 2.0}
        kernel = TagRank(**widths).fit(learned)
    dtype = pick(rng, (np.float32, np.float64))
    with instruction_set(rng):
        plain = kernel.gram(ours, theirs, n_threads=1, dtype=dtype)
        out = output(rng, plain.shape, dtype)
        K = kernel.gram(ours, theirs, n_threads=threads(rng), dtype=dtype, out=out)
    same(K, plain, "several threads")
    expected = ranks_by_definition.tag_rank(X, Y, training, **widths)
    narrow = min(kernel.absolute_width_, kernel.relative_width_)
    n = 2 * max((len(text) for side in (X, Y) for image in side for text in image), default=0)
    n_captions = max((len(image) for side in (X, Y) for image in side), default=0)
    # Ranks are at most 1, so that n / (2 width) bounds their sums.
    bound = (n + 4 + n_captions) * _EPS * (1 + n / (2 * narrow))
    close(K, expected, "against the definition", relative=bound, absolute=1e-37)
    if symmetric:
        same(K, K.T.copy(), "symmetry")


def _bags(rng: Rng, folder: Path) -> None:
    n_words = size(rng, 20, 1)
    X = captions(rng, n_words, longest=9, most_images=9)
    symmetric = chance(rng, 0.4)
    Y = X if symmetric else captions(rng, n_words, longest=9, most_images=9)
    weights, unknown = np.ones(n_words), pick(rng, (1.0, 0.0, 2.5))
    options: dict[str, Any] = {"unknown_weight": unknown}
    if chance(rng, 0.5):
        weights = _numbers(rng, (n_words,)) * pick(rng, (1.0, 1e-3, 10.0))
        options["word_weights"] = laid_out(rng, weights, folder)
    ours: Any = encoded(rng, X, n_words, folder)
    theirs = None if symmetric else encoded(rng, Y, n_words, folder)
    if chance(rng, 0.3):
        ours = prepare(ours)
    bags = [[Counter(chain.from_iterable(image)) for image in side] for side in (X, Y)]
    of_word = {
        word: unknown if word < 0 else float(weights[word])
        for side in bags
        for bag in side
        for word in bag
    }
    dtype = pick(rng, (np.float32, np.float64))
    kernels: tuple[tuple[Callable[..., Array], Callable[..., Array]], ...] = (
        (bag_of_words, bags_by_definition.bag_of_words),
        (bag_of_words_f1, bags_by_definition.bag_of_words_f1),
    )
    for compare, definition in kernels:
        with instruction_set(rng):
            plain = compare(ours, theirs, n_threads=1, dtype=dtype, **options)
            out = output(rng, plain.shape, dtype)
            K = compare(ours, theirs, n_threads=threads(rng), dtype=dtype, out=out, **options)
        same(K, plain, "several threads")
        expected = definition(*bags, of_word)
        # Sums of up to 45 words in float64, rounded once.
        bound = float(np.finfo(dtype).eps) + 200 * float(np.finfo(np.float64).eps)
        close(K, expected, "against the definition", relative=bound, absolute=1e-37)
        if symmetric:
            same(K, K.T.copy(), "symmetry")


def _strings(rng: Rng, folder: Path) -> None:
    """Texts as strings are what their words are as ids."""
    X = captions(rng, 4, longest=6, most_images=9)
    joined = [list(chain.from_iterable(image)) for image in X]
    texts = [" ".join(f"w{word}" for word in text) for text in joined]
    ids = EncodedCaptions.from_lists([[text] for text in joined], n_words=4)
    same(word_sequence(texts), word_sequence(ids), "word_sequence of strings")
    same(word_assignment(texts), word_assignment(ids), "word_assignment of strings")


TARGETS = (
    Target("kernels.word_sequence.soft", "compiled", _sequence(soft=True, listed=False)),
    Target("kernels.word_sequence.exact", "compiled", _sequence(soft=False, listed=True)),
    Target("kernels.word_sequence.unlisted", "compiled", _sequence(soft=False, listed=False)),
    Target("kernels.word_sequence.extremes", "compiled", _extreme_sequences),
    Target("kernels.word_sequence.strings", "compiled", _strings),
    Target("kernels.word_assignment", "compiled", _word_assignment),
    Target("kernels.word_assignment.extremes", "compiled", _extreme_assignments),
    Target("kernels.tag_rank", "compiled", _tag_rank),
    Target("kernels.bag_of_words", "compiled", _bags),
)
