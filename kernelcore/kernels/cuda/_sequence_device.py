"""Device buffers and launches of `word_sequence`, tile by tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.kernels._soft_matches import SoftMatches
from kernelcore.kernels.cuda._device import launch
from kernelcore.kernels.cuda._sequence_kernels import (
    SelfSimilarities,
    Similarity,
    Task,
    sequence_kernels,
    words_held,
)
from kernelcore.kernels.cuda._sequence_tiles import Columns, Rows, table_lines

_WARPS = 4  # of a block
_ITEMS_PER_WARP = 8  # images, or words, of the columns
_MOST_CARRIED = 2**25  # numbers


class SequenceDevice:
    """The word kernel on the GPU, and what is compiled for some length and decay."""

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
        """Return a tile; similarities to themselves are what to normalise it by."""
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
        """Return those of the images that both hold."""
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
