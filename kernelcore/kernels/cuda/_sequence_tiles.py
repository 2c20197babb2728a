"""Captions of one tile, laid out for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore.captions.encoded import offsets_of
from kernelcore.kernels._symbols import Ragged

WORDS_READ = 4  # of a row caption at a time, so that their loads are on the way together

_MOST_ROW_CAPTIONS = 2048
_MOST_SUMS = 2**24  # of row captions and column images
_MOST_LINES = 2**21  # of the table of similarities, of 128 bytes each


class Rows(NamedTuple):
    """Captions of images side by side, one to a lane, in groups of nearly equal lengths."""

    symbols: Any  # lines of a word of each caption, -1 beyond its end
    first_lines: Any  # of each group, and the end of the last; multiples of `WORDS_READ`
    image_of: Any  # each caption, by groups and lanes
    lane_of: Any  # each caption as they stand by image, counted over all groups
    image_offsets: Any

    @classmethod
    def of(cls, captions: Ragged, images: slice, lanes: int) -> Rows:
        """Take some images."""
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
        """Take some images."""
        words, caption_offsets, image_offsets = _part(captions, images)
        occurs = np.zeros(n_symbols, np.bool_)
        occurs[words] = True
        numbers = np.where(occurs, np.cumsum(occurs) - 1, -1)
        return cls(
            np.flatnonzero(occurs), numbers, numbers[words], caption_offsets, image_offsets
        )


def row_tiles(X: Ragged, n_others: int, lanes: int) -> Iterator[slice]:
    """Images of the rows, as many at a time as their tables leave room for."""
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
    """Images of the columns from the first on, as many at a time as there is room for."""
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
    """Lines of the table of similarities of a tile, if there is room for it."""
    n_lines = len(rows.symbols) * len(columns.symbols)
    if n_lines > _MOST_LINES:
        raise ValueError(
            "X and Y must hold shorter texts for the memory of the GPU, got one of up to "
            f"{len(rows.symbols)} words against {len(columns.symbols)} different ones; "
            "kernelcore.kernels.word_sequence has no such limit"
        )
    return n_lines


def _part(captions: Ragged, images: slice) -> Ragged:
    """Take some images, all offsets from 0 on."""
    words, caption_offsets, image_offsets = captions
    image_offsets = image_offsets[images.start : images.stop + 1]
    caption_offsets = caption_offsets[image_offsets[0] : image_offsets[-1] + 1]
    words = words[caption_offsets[0] : caption_offsets[-1]]
    return words, caption_offsets - caption_offsets[0], image_offsets - image_offsets[0]


def _counts(captions: Ragged) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Captions, and words, before each image and behind the last."""
    return captions[2], captions[1][captions[2]]


def _end(counts: npt.NDArray[np.int64], start: int, most: int) -> int:
    """End of the images from the first on that count no more than so many, or of that one."""
    end = int(np.searchsorted(counts, counts[start] + most, side="right")) - 1
    return max(end, start + 1)
