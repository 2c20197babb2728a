"""The word-sequence kernel on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress, Report, reporting
from kernelcore._validation import (
    Array,
    check_flag,
    check_float_dtype,
    check_integer,
    check_out,
    check_real,
)
from kernelcore.captions.encoded import offsets_of
from kernelcore.kernels._soft_matches import Ragged, SoftMatches, Texts
from kernelcore.kernels.cuda._device import usable_cuda

_LANES = 32  # of a warp
WORDS_READ = 4  # words of a row caption that are loaded together
_MOST_ROW_CAPTIONS = 2048
_MOST_SUMS = 2**24  # of row captions and column images
_MOST_LINES = 2**21  # of the table of similarities, of 128 bytes each


def word_sequence(
    X: Texts,
    Y: Texts | None = None,
    *,
    word_kernel: Any = None,
    word_weights: npt.ArrayLike | None = None,
    unknown_weight: float = 1.0,
    max_length: int = 3,
    match_decay: float = 0.5,
    gap_decay: float = 1.0,
    normalize: bool = True,
    dtype: npt.DTypeLike = np.float64,
    out: Array | None = None,
    progress: Progress = False,
) -> npt.NDArray[Any]:
    r"""Gram matrix of the word-sequence kernel, computed on the GPU.

    .. math::

        K(s, t) = \sum_{l=1}^{L} \lambda_m^{2l}
        \sum_{\substack{i_1 < \dots < i_l \\ j_1 < \dots < j_l}}
        \prod_{k=1}^{l} \sqrt{g(s_{i_k}) g(t_{j_k})} \, \kappa(s_{i_k}, t_{j_k}) \;
        \lambda_g^{i_l - i_1 + 1 - l} \, \lambda_g^{j_l - j_1 + 1 - l}

    for two captions; that of two images sums over the cross product of their captions and is
    then normalised.

    Parameters
    ----------
    X, Y, word_kernel, word_weights, unknown_weight, max_length, match_decay, gap_decay, \
    normalize, dtype, out
        As in `kernelcore.kernels.word_sequence`.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (steps done, steps).

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        In the memory of the host.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    RuntimeError
        If there is no GPU that Numba can use; the message says what is missing.
    TypeError
        As `kernelcore.kernels.word_sequence`.
    ValueError
        As `kernelcore.kernels.word_sequence`, and for texts too long for the GPU's memory:
        the words of one in X times the different words of one in Y must stay below 2 ** 21.

    See Also
    --------
    kernelcore.kernels.word_sequence : The same on the CPU, which is made for exact matches.
    kernelcore.reference.word_sequence : The definition.

    Notes
    -----
    All matches, exact ones too, are summed in float32 within a pair of captions and over the
    captions of a column, in float64 over those of a row, in an order that the input fixes:
    results are repeatable. The error is bounded as that of soft matches on the CPU.

    Tiles of the matrix and their inputs take at most 700 MB of the GPU's memory beside the
    word kernel.

    Examples
    --------
    >>> from kernelcore.kernels import cuda
    >>> texts = ["dog chase cat", "cat chase dog"]
    >>> cuda.word_sequence(texts, normalize=False, match_decay=1)  # doctest: +SKIP
    array([[7., 3.],
           [3., 7.]])
    """
    cuda = usable_cuda("word_sequence")
    match = check_real("match_decay", match_decay, minimum=0.0, exclusive=True)
    problem = SoftMatches(
        X,
        Y,
        word_kernel=word_kernel,
        word_weights=word_weights,
        unknown_weight=unknown_weight,
        match_decay=match,
    )
    length = min(check_integer("max_length", max_length, minimum=1), problem.longest)
    gap = check_real("gap_decay", gap_decay, minimum=0.0, maximum=1.0)
    normalized = check_flag("normalize", normalize)
    kind = check_float_dtype("dtype", dtype)
    shape = (problem.n_rows, problem.n_cols)
    result = (
        np.empty(shape, kind)
        if out is None
        else check_out("out", out, shape, kind, problem.inputs)
    )
    problem.fit_scale(np.float32, relative=normalized and length == 1)
    problem.check_sequence_sums(length)
    from kernelcore.kernels.cuda._sequence_device import SequenceDevice

    device = SequenceDevice(cuda, problem, max_length=length, gap_decay=gap, lanes=_LANES)
    with reporting(progress, "word sequences") as report:
        _Gram(problem, device, report).fill(result, normalize=normalized)
    return result


class _Gram:
    """Computes one matrix, row of tiles by row of tiles."""

    def __init__(self, problem: SoftMatches, device: Any, report: Report | None) -> None:
        self._X, self._Y, self._is_symmetric = problem.X, problem.Y, problem.is_symmetric
        self._n_symbols = len(problem.scale)
        self._device, self._report = device, report
        self._n_done = self._n_steps = 0

    def fill(self, result: Array, *, normalize: bool) -> None:
        sides = [self._X] if self._is_symmetric else [self._X, self._Y]
        n_others = len(np.unique(self._Y[0]))
        tiles = list(row_tiles(self._X, n_others, _LANES))
        own_tiles = [list(row_tiles(side, len(np.unique(side[0])), _LANES)) for side in sides]
        self._n_steps = len(tiles) + (sum(map(len, own_tiles)) if normalize else 0)
        selves: list[Array] = []
        if normalize:
            selves = [self._selves(*side) for side in zip(sides, own_tiles, strict=True)]
        for images in tiles:
            self._fill_rows(images, selves, n_others, result)
            if self._is_symmetric:
                square = result[images, images]
                if normalize:
                    np.fill_diagonal(square, selves[0][images] > 0)
                below = np.tril_indices(len(square), -1)
                square[below] = square.T[below]
                result[images.stop :, images] = result[images, images.stop :].T
            self._step()

    def _fill_rows(
        self, images: slice, selves: list[Array], n_others: int, result: Array
    ) -> None:
        rows = Rows.of(self._X, images, _LANES)
        first = images.start if self._is_symmetric else 0
        for others in column_tiles(self._Y, first, n_others, rows):
            columns = Columns.of(self._Y, others, self._n_symbols)
            lengths = (selves[0][images], selves[-1][others]) if selves else None
            result[images, others] = self._device.similarities(
                rows, columns, lengths, result.dtype
            )

    def _selves(self, captions: Ragged, tiles: list[slice]) -> Array:
        """Similarity of each image with itself."""
        selves = np.zeros(len(captions[2]) - 1)
        for images in tiles:
            rows = Rows.of(captions, images, _LANES)
            columns = Columns.of(captions, images, self._n_symbols)
            selves[images] = self._device.self_similarities(rows, columns)
            self._step()
        if (selves < 0).any():
            raise ValueError(
                "word_kernel must not give an image a negative similarity with itself, as it "
                f"does to the one at position {np.argmax(selves < 0)}; normalize=False does "
                "without"
            )
        return selves

    def _step(self) -> None:
        self._n_done += 1
        if self._report is not None:
            self._report(self._n_done, self._n_steps)


class Rows(NamedTuple):
    """Captions of images, one per lane, in groups of similar length."""

    symbols: Any  # lines of a word of each caption, -1 beyond its end
    first_lines: Any  # of each group, and the end of the last; multiples of `WORDS_READ`
    image_of: Any  # each caption, by groups and lanes
    lane_of: Any  # each caption as they stand by image, counted over all groups
    image_offsets: Any

    @classmethod
    def of(cls, captions: Ragged, images: slice, lanes: int) -> Rows:
        """Lay out some images."""
        words, caption_offsets, image_offsets = _part(captions, images)
        lengths = np.diff(caption_offsets)
        order = np.argsort(lengths, kind="stable")
        lane_of = np.empty(len(order), np.int64)
        lane_of[order] = np.arange(len(order))
        longest = np.maximum.reduceat(lengths[order], np.arange(0, len(order), lanes))
        first_lines = offsets_of(-(-longest // WORDS_READ) * WORDS_READ)
        symbols = np.full((first_lines[-1], lanes), -1, np.int32)
        lines = np.repeat(first_lines[lane_of // lanes] - caption_offsets[:-1], lengths)
        lines += np.arange(len(words))
        symbols[lines, np.repeat(lane_of % lanes, lengths)] = words
        image_of = np.repeat(np.arange(len(image_offsets) - 1), np.diff(image_offsets))[order]
        return cls(symbols, first_lines, image_of, lane_of, image_offsets)


class Columns(NamedTuple):
    """Captions of images one after another, their words numbered from 0."""

    symbols: Any  # of these numbers
    numbers: Any  # of all symbols, -1 for those that do not occur
    words: Any
    caption_offsets: Any
    image_offsets: Any

    @classmethod
    def of(cls, captions: Ragged, images: slice, n_symbols: int) -> Columns:
        """Lay out some images."""
        words, caption_offsets, image_offsets = _part(captions, images)
        occurs = np.zeros(n_symbols, np.bool_)
        occurs[words] = True
        numbers = np.where(occurs, np.cumsum(occurs) - 1, -1)
        return cls(
            np.flatnonzero(occurs), numbers, numbers[words], caption_offsets, image_offsets
        )


def row_tiles(X: Ragged, n_others: int, lanes: int) -> Iterator[slice]:
    """Yield images of the rows, as many at a time as fit into memory."""
    captions, words = _counts(X)
    longest = int(np.diff(X[1]).max(initial=0))
    # Groups are as long as their longest caption, which the next group's are not shorter than.
    n_lanes = lanes * (_MOST_LINES // max(n_others, 1) - longest - 2 * WORDS_READ)
    padded = words + WORDS_READ * captions
    start = 0
    while start < len(captions) - 1:
        end = start + _MOST_ROW_CAPTIONS
        end = min(_end(captions, start, _MOST_ROW_CAPTIONS), _end(padded, start, n_lanes), end)
        yield slice(start, end)
        start = end


def column_tiles(Y: Ragged, first: int, n_others: int, rows: Rows) -> Iterator[slice]:
    """Yield images of the columns from `first` on, as many at a time as fit into memory."""
    _, words = _counts(Y)
    n_rows = max(len(rows.image_offsets) - 1, len(rows.lane_of), 1)
    n_others_at_once = _MOST_LINES // max(len(rows.symbols), 1)
    while first < len(words) - 1:
        end = min(first + max(_MOST_SUMS // n_rows, 1), len(words) - 1)
        if n_others > n_others_at_once:
            end = min(end, _end(words, first, n_others_at_once))
        yield slice(first, end)
        first = end


def table_lines(rows: Rows, columns: Columns) -> int:
    """Return the number of lines of the table of similarities; raise if it is too large."""
    n_lines = len(rows.symbols) * len(columns.symbols)
    if n_lines > _MOST_LINES:
        raise ValueError(
            "X and Y must hold shorter texts for the memory of the GPU, got one of up to "
            f"{len(rows.symbols)} words against {len(columns.symbols)} different ones; "
            "kernelcore.kernels.word_sequence has no such limit"
        )
    return n_lines


def _part(captions: Ragged, images: slice) -> Ragged:
    """Select some images; offsets start at 0."""
    words, caption_offsets, image_offsets = captions
    image_offsets = image_offsets[images.start : images.stop + 1]
    caption_offsets = caption_offsets[image_offsets[0] : image_offsets[-1] + 1]
    words = words[caption_offsets[0] : caption_offsets[-1]]
    return words, caption_offsets - caption_offsets[0], image_offsets - image_offsets[0]


def _counts(captions: Ragged) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count the captions, and the words, before each image, and all of them."""
    return captions[2], captions[1][captions[2]]


def _end(counts: npt.NDArray[np.int64], start: int, most: int) -> int:
    """Return the end of the images from `start` on with at most `most` items; at least one."""
    end = int(np.searchsorted(counts, counts[start] + most, side="right")) - 1
    return max(end, start + 1)
