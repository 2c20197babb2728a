"""Device code of `word_sequence`: one lane for a row caption, one warp for a column image."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelcore import _extras
from kernelcore.kernels.cuda._sequence_tiles import WORDS_READ

cuda = _extras.require("numba.cuda")  # a global: where it is simulated, Numba replaces it

_KEPT_VALUES = 32  # of a thread, in registers


class Similarity(NamedTuple):
    """How alike words are: dense, sparse or, beyond the word kernel, equal or not."""

    scale: Any  # of each symbol, float32
    n_words: int  # of the word kernel
    dense: Any  # float32, symmetric
    is_dense: bool
    row_starts: Any  # of a sparse one, int64, then int32 and float32
    columns: Any
    values: Any
    is_sparse: bool


class Task(NamedTuple):
    """What `compare` sums: over all column images, or over the one of the row's own number."""

    gap_decay: Any
    own_image_only: bool
    first_group: int
    carry: Any  # room for what long captions take from one part of theirs to the next


class SelfSimilarities(NamedTuple):
    """What `fold` divides by, if it is asked to."""

    of_rows: Any
    of_columns: Any
    is_asked: bool


class SequenceKernels(NamedTuple):
    """What runs on the GPU, in this order.

    - ``lay_out(rows, columns, similarity, table)`` and
    - ``add_sparse(rows, columns, similarity, table)`` write for each line of a group, and each
      word of the columns, how alike its words are to that one; to read a word of the columns
      the lanes of a warp load neighbours.
    - ``compare(rows, columns, table, task, sums)`` sums over pairs of captions, in float32.
    - ``fold(rows, sums, self_similarities, out)`` adds up the captions of each row image in
      float64.
    """

    lay_out: Any
    add_sparse: Any
    compare: Any
    fold: Any


def words_held(n_kept: int) -> int:
    """Words of a row caption whose sums a thread has in registers."""
    return max(_KEPT_VALUES // max(n_kept, 2) // WORDS_READ, 1) * WORDS_READ


@cache
def sequence_kernels(n_kept: int, decays: bool, lanes: int) -> SequenceKernels:
    """Make the kernels for subsequences of up to ``n_kept + 1`` words."""
    compare = _compare(_caption_sum(n_kept, decays, lanes), lanes)
    return SequenceKernels(*_table_kernels(lanes), compare, cuda.jit(_fold))


def _table_kernels(lanes: int) -> tuple[Any, Any]:
    def lay_out(rows: Any, columns: Any, similarity: Any, table: Any) -> None:
        lane, group = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y)
        first_line, end = rows.first_lines[group], rows.first_lines[group + 1]
        n_others, n_words = columns.symbols.size, similarity.n_words
        first = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        for number in range(first, n_others, cuda.gridDim.x * cuda.blockDim.y):
            other = columns.symbols[number]
            to = first_line * n_others + number * (end - first_line) - first_line
            for line in range(first_line, end):
                symbol = rows.symbols[line, lane]
                value = np.float32(0)
                if symbol >= 0:
                    if symbol >= n_words or other >= n_words:
                        if symbol == other:
                            value = np.float32(1)
                    elif similarity.is_dense:
                        value = similarity.dense[other, symbol]
                    value *= similarity.scale[symbol] * similarity.scale[other]
                table[(to + line) * lanes + lane] = value

    def add_sparse(rows: Any, columns: Any, similarity: Any, table: Any) -> None:
        lane, group = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.y)
        first_line, end = rows.first_lines[group], rows.first_lines[group + 1]
        n_others = columns.symbols.size
        first = first_line + cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        for line in range(first, end, cuda.gridDim.x * cuda.blockDim.y):
            symbol = rows.symbols[line, lane]
            if symbol >= 0 and symbol < similarity.n_words:
                row_end = similarity.row_starts[symbol + 1]
                for at in range(similarity.row_starts[symbol], row_end):
                    other = similarity.columns[at]
                    number = columns.numbers[other]
                    if number >= 0:
                        to = first_line * n_others + number * (end - first_line) - first_line
                        weight = similarity.scale[symbol] * similarity.scale[other]
                        table[(to + line) * lanes + lane] = similarity.values[at] * weight

    return cuda.jit(lay_out), cuda.jit(add_sparse)


def _caption_sum(n_kept: int, decays: bool, lanes: int) -> Any:
    """Make ``caption_sum(lines, height, words, gap, carry)`` of a column caption and a lane.

    At a word of the row and one of the column, with m their similarity and g the gap decay,
    matches of length l that end there weigh

        ended[1] = m,  ended[l + 1] = m * kept[l] of the row word above, before this column

    and what is kept is the sum over all ends up to there, decayed by their distance:

        run[l] = g * run[l] of the row word above + ended[l]
        kept[l] = g * kept[l] before this column + run[l]

    Without decay the last run[l] is the column's sum of ended[l] as well. Long rows go through
    the registers in parts; what is known at the edge, kept and run of the row word above, is
    carried from one to the next.
    """
    n_held, n_read, n_state = words_held(n_kept), WORDS_READ, max(n_kept, 1)
    zero = np.float32(0)

    def read_word(lines: Any, n_left: int, gap: Any, kept: Any, edge: Any) -> Any:
        lane = np.uint32(cuda.threadIdx.x)
        match = cuda.local.array(n_read, np.float32)
        total = zero
        for first in range(0, n_held, n_read):
            if first < n_left:
                for w in range(n_read):
                    match[w] = lines[(first + w) * lanes + lane]
                for w in range(n_read):
                    ended = match[w]
                    for k in range(n_kept):
                        before = kept[first + w, k]
                        if decays:
                            total += ended
                            edge[1, k] = gap * edge[1, k] + ended
                            kept[first + w, k] = gap * before + edge[1, k]
                        else:
                            edge[1, k] += ended
                            kept[first + w, k] = before + edge[1, k]
                        ended = match[w] * edge[0, k]
                        edge[0, k] = before
                    total += ended
        return total

    read_word = cuda.jit(read_word, device=True)

    def caption_sum(lines: Any, height: int, words: Any, gap: Any, carry: Any) -> Any:
        lane = np.uint32(cuda.threadIdx.x)
        kept = cuda.local.array((n_held, n_state), np.float32)
        edge = cuda.local.array((2, n_state), np.float32)
        total = zero
        for part in range(0, height, n_held):
            for w in range(n_held):
                for k in range(n_kept):
                    kept[w, k] = zero
            for at in range(words.size):
                for k in range(n_kept):
                    edge[0, k] = carry[at, 0, k, lane] if part > 0 else zero
                    edge[1, k] = carry[at, 1, k, lane] if part > 0 else zero
                first = (words[at] * height + part) * lanes
                part_lines = lines[first : first + n_held * lanes]
                of_word = read_word(part_lines, height - part, gap, kept, edge)
                for k in range(n_kept):
                    if part + n_held < height:
                        carry[at, 0, k, lane] = edge[0, k]
                        carry[at, 1, k, lane] = edge[1, k]
                    elif not decays:
                        of_word += edge[1, k]
                total += of_word
        return total

    return cuda.jit(caption_sum, device=True)


def _compare(caption_sum: Any, lanes: int) -> Any:
    def compare(rows: Any, columns: Any, table: Any, task: Any, sums: Any) -> None:
        lane = np.uint32(cuda.threadIdx.x)
        group = task.first_group + np.uint32(cuda.blockIdx.y)
        warp = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
        n_warps = cuda.gridDim.x * cuda.blockDim.y
        slot = cuda.blockIdx.y * n_warps + warp
        carry = task.carry[slot if slot < task.carry.shape[0] else 0]
        n_others = columns.symbols.size
        height = rows.first_lines[group + 1] - rows.first_lines[group]
        first = rows.first_lines[group] * n_others * lanes
        lines = table[first : first + height * n_others * lanes]
        row = group * lanes + lane
        image, end = warp, columns.image_offsets.size - 1
        if task.own_image_only:
            image = rows.image_of[row if row < rows.image_of.size else 0]
            end = image + 1
        while image < end:
            total = np.float32(0)
            for c in range(columns.image_offsets[image], columns.image_offsets[image + 1]):
                start, stop = columns.caption_offsets[c], columns.caption_offsets[c + 1]
                words = columns.words[start:stop]
                total += caption_sum(lines, height, words, task.gap_decay, carry)
            if row < sums.shape[0]:
                sums[row, 0 if task.own_image_only else image] = total
            image += n_warps

    return cuda.jit(compare)


def _fold(rows: Any, sums: Any, self_similarities: Any, out: Any) -> None:
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < out.shape[0] and column < out.shape[1]:
        total = 0.0
        for caption in range(rows.image_offsets[row], rows.image_offsets[row + 1]):
            total += sums[rows.lane_of[caption], column]
        if self_similarities.is_asked:
            length = self_similarities.of_rows[row] * self_similarities.of_columns[column]
            total = total / math.sqrt(length) if length > 0 else 0.0
        out[row, column] = total
