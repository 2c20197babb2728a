"""`word_sequence` on a GPU: device code, buffers and launches; imported only with Numba."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelcore import _extras
from kernelcore._validation import Array
from kernelcore.kernels._soft_matches import SoftMatches
from kernelcore.kernels.cuda._device import launch
from kernelcore.kernels.cuda.word_sequence import WORDS_READ, Columns, Rows, table_lines

cuda = _extras.require("numba.cuda")  # a global, which Numba's simulator replaces

_KEPT_VALUES = 32  # of a thread, in registers
_WARPS = 4  # of a block
_ITEMS_PER_WARP = 8  # images, or words, of the columns
_MOST_CARRIED = 2**25  # numbers


class Similarity(NamedTuple):
    """Similarities of words: a dense or sparse matrix, and equality for words outside it."""

    scale: Any  # of each symbol, float32
    n_words: int  # of the word kernel
    dense: Any  # float32, symmetric
    is_dense: bool
    row_starts: Any  # of a sparse one, int64, then int32 and float32
    columns: Any
    values: Any
    is_sparse: bool


class Task(NamedTuple):
    """Settings of `compare`: sum over all column images, or only the image of the row."""

    gap_decay: Any
    own_image_only: bool
    first_group: int
    carry: Any  # buffer for the state of long captions between their parts


class SelfSimilarities(NamedTuple):
    """Similarities of images with themselves, by which `fold` normalises if `is_asked`."""

    of_rows: Any
    of_columns: Any
    is_asked: bool


class SequenceKernels(NamedTuple):
    """The kernels, which run in this order.

    - ``lay_out(rows, columns, similarity, table)`` and
    - ``add_sparse(rows, columns, similarity, table)`` write the similarity of each word of the
      rows to each word of the columns; the lanes of a warp load neighbouring entries.
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

    and kept is the sum over all ends up to there, decayed by their distance:

        run[l] = g * run[l] of the row word above + ended[l]
        kept[l] = g * kept[l] before this column + run[l]

    Without decay the last run[l] is also the column's sum of ended[l]. Long rows are processed
    in parts that fit into registers; the state at the edge (kept and run of the row word
    above) is carried from one part to the next.
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


class SequenceDevice:
    """Computes tiles of the matrix, with kernels compiled for one length and decay."""

    def __init__(
        self, cuda: Any, problem: SoftMatches, *, max_length: int, gap_decay: float, lanes: int
    ) -> None:
        self._cuda, self._lanes = cuda, lanes
        self._n_kept = max_length - 1
        self._gap_decay = np.float32(gap_decay)  # a float would make all sums float64
        decays = self._n_kept > 0 and gap_decay < 1
        self._kernels = sequence_kernels(self._n_kept, decays, lanes)
        self._similarity = self._put(_similarity(problem))

    def similarities(
        self, rows: Rows, columns: Columns, selves: tuple[Array, Array] | None, dtype: Any
    ) -> Array:
        """Return a tile; `selves`, similarities of images with themselves, normalise it."""
        shape = (len(rows.image_offsets) - 1, len(columns.image_offsets) - 1)
        if not rows.symbols.size or not columns.words.size:
            return np.zeros(shape, dtype)
        sums = self._compare(rows, columns, own_image_only=False)
        out = self._cuda.device_array(shape, dtype)
        if selves is None:
            lengths = SelfSimilarities(np.zeros(1), np.zeros(1), is_asked=False)
        else:
            lengths = SelfSimilarities(*selves, is_asked=True)
        grid = (-(-shape[1] // self._lanes), -(-shape[0] // _WARPS))
        arguments = (self._put(rows), sums, self._put(lengths), out)
        launch(self._kernels.fold, grid, (self._lanes, _WARPS), *arguments)
        tile: Array = out.copy_to_host()
        return tile

    def self_similarities(self, rows: Rows, columns: Columns) -> Array:
        """Return the similarity of each image with itself; both arguments hold the same."""
        n_images = len(rows.image_offsets) - 1
        if not rows.symbols.size:
            return np.zeros(n_images)
        sums = self._compare(rows, columns, own_image_only=True).copy_to_host()
        return np.bincount(rows.image_of, sums[:, 0], n_images)

    def _put(self, arrays: Any) -> Any:
        """Copy the arrays of a named tuple to the GPU."""
        to_device = self._cuda.to_device
        return type(arrays)(*(to_device(x) if isinstance(x, np.ndarray) else x for x in arrays))

    def _compare(self, rows: Rows, columns: Columns, *, own_image_only: bool) -> Any:
        """Sum over pairs of captions, for each row caption and column image."""
        n_groups = len(rows.first_lines) - 1
        n_images = 1 if own_image_only else len(columns.image_offsets) - 1
        n_warps = 1 if own_image_only else _WARPS
        n_blocks = -(-n_images // (n_warps * _ITEMS_PER_WARP))
        n_at_once, n_slots, longest = n_groups, 1, 1
        if self._n_kept and np.diff(rows.first_lines).max() > words_held(self._n_kept):
            longest = int(np.diff(columns.caption_offsets).max())
            n_slots = max(_MOST_CARRIED // (longest * 2 * self._n_kept * self._lanes), 1)
            if n_blocks * n_warps > n_slots:
                n_blocks = n_warps = 1
            n_at_once = min(n_slots // (n_blocks * n_warps), n_groups)
            n_slots = n_at_once * n_blocks * n_warps
        carry = self._cuda.device_array(
            (n_slots, longest, 2, max(self._n_kept, 1), self._lanes), np.float32
        )
        sums = self._cuda.device_array((len(rows.lane_of), n_images), np.float32)
        rows_there, columns_there = self._put(rows), self._put(columns)
        table = self._table(rows, columns, rows_there, columns_there)
        for first in range(0, n_groups, n_at_once):
            grid = (n_blocks, min(n_at_once, n_groups - first))
            task = Task(self._gap_decay, own_image_only, first, carry)
            arguments = (rows_there, columns_there, table, task, sums)
            launch(self._kernels.compare, grid, (self._lanes, n_warps), *arguments)
        return sums

    def _table(self, rows: Rows, columns: Columns, *there: Any) -> Any:
        """Similarities of the words of the rows' captions to those of the columns."""
        n_groups, n_others = len(rows.first_lines) - 1, len(columns.symbols)
        table = self._cuda.device_array(table_lines(rows, columns) * self._lanes, np.float32)
        arguments = (*there, self._similarity, table)
        threads = (self._lanes, _WARPS)
        grid = (-(-n_others // (_WARPS * _ITEMS_PER_WARP)), n_groups)
        launch(self._kernels.lay_out, grid, threads, *arguments)
        if self._similarity.is_sparse:
            grid = (-(-int(np.diff(rows.first_lines).max()) // _WARPS), n_groups)
            launch(self._kernels.add_sparse, grid, threads, *arguments)
        return table


def _similarity(problem: SoftMatches) -> Similarity:
    scale = problem.scale.astype(np.float32)
    dense, sparse = np.zeros((1, 1), np.float32), None
    n_words = 0
    if problem.dense is not None:
        dense, n_words = problem.dense, len(problem.dense)
    if problem.sparse is not None:
        sparse, n_words = problem.sparse, len(problem.sparse[0]) - 1
    nothing = (np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.float32))
    return Similarity(
        scale,
        n_words,
        dense,
        problem.dense is not None,
        *(sparse or nothing),
        is_sparse=sparse is not None,
    )
