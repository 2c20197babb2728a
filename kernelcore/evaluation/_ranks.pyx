# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Counts of the candidates that stand before, or level with, the gold one of each query.

Input    scores, C-contiguous float32 or float64; per query the score of its best gold
         candidate and the index of the first candidate with that score that is gold.
Output   per query: candidates with a greater score, with an equal score (gold ones too),
         and, if asked for, with an equal score and a smaller index. Returns whether a score
         was NaN.
Cost     one pass over the scores in memory order, whichever way the queries run; no sort,
         and memory for one tile of counters.
Order    integer counts: nothing depends on an order.
Threads  one; holds no lock, so calls on different matrices run side by side.
Python   the GIL is taken back between blocks of rows to look for Ctrl-C.
Errors   none of its own: arrays are checked once, in ranks.py.
Source   the definition of competition ranks.
Same as  kernelcore/reference/ranks.py::gold_ranks
"""

from cpython.exc cimport PyErr_CheckSignals

ctypedef fused real:
    float
    double

cdef enum:
    # Candidates (or columns) that are counted in ints, which fill vector lanes as floats do,
    # before they are added to the caller's counts.
    TILE = 1024
    # Scores between two looks for Ctrl-C.
    BLOCK = 1 << 24


def count_along_rows(
    const real[:, ::1] scores,
    const real[::1] gold_scores,
    const Py_ssize_t[::1] gold_indices,
    long long[::1] greater,
    long long[::1] tied,
    long long[::1] tied_before,
    bint ordered,
):
    """Count for queries that are rows; `tied_before` comes for nothing."""
    cdef Py_ssize_t n_rows = scores.shape[0], n_columns = scores.shape[1]
    cdef Py_ssize_t step = max(1, BLOCK // n_columns)
    cdef Py_ssize_t start, stop, i
    cdef long long before[3]
    cdef long long after[3]
    cdef bint has_nan = False
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        with nogil:
            for i in range(start, stop):
                _count_run(&scores[i, 0], gold_indices[i], gold_scores[i], before)
                _count_run(
                    &scores[i, 0] + gold_indices[i],
                    n_columns - gold_indices[i],
                    gold_scores[i],
                    after,
                )
                greater[i] = before[0] + after[0]
                tied[i] = before[1] + after[1]
                tied_before[i] = before[1]
                has_nan |= before[2] + after[2] > 0
        PyErr_CheckSignals()
    return has_nan


cdef inline void _count_run(
    const real* scores, Py_ssize_t n, real gold, long long* counts
) noexcept nogil:
    """Count the scores > gold, == gold and NaN of one run."""
    cdef Py_ssize_t tile, j
    cdef int greater, tied, nan
    counts[0] = counts[1] = counts[2] = 0
    for tile in range((n + TILE - 1) // TILE):
        greater = tied = nan = 0
        for j in range(tile * TILE, min((tile + 1) * TILE, n)):
            greater += scores[j] > gold
            tied += scores[j] == gold
            nan += scores[j] != scores[j]
        counts[0] += greater
        counts[1] += tied
        counts[2] += nan


def count_along_columns(
    const real[:, ::1] scores,
    const real[::1] gold_scores,
    const Py_ssize_t[::1] gold_indices,
    long long[::1] greater,
    long long[::1] tied,
    long long[::1] tied_before,
    bint ordered,
):
    """Count for queries that are columns; `tied_before` only if `ordered`."""
    cdef Py_ssize_t n_rows = scores.shape[0], n_columns = scores.shape[1]
    cdef Py_ssize_t step = max(1, BLOCK // n_columns)
    cdef Py_ssize_t first_row, last_row, tile, first, last
    cdef bint has_nan = False
    greater[:] = 0
    tied[:] = 0
    tied_before[:] = 0
    for first_row in range(0, n_rows, step):
        last_row = min(first_row + step, n_rows)
        with nogil:
            for tile in range((n_columns + TILE - 1) // TILE):
                first = tile * TILE
                last = min(first + TILE, n_columns)
                has_nan |= _count_tile(
                    &scores[first_row, first],
                    n_columns,
                    last_row - first_row,
                    last - first,
                    first_row,
                    &gold_scores[first],
                    &gold_indices[first],
                    &greater[first],
                    &tied[first],
                    &tied_before[first],
                    ordered,
                )
        PyErr_CheckSignals()
    return has_nan


cdef inline bint _count_tile(
    const real* scores,
    Py_ssize_t stride,
    Py_ssize_t n_rows,
    Py_ssize_t n,
    Py_ssize_t first_row,
    const real* gold_scores,
    const Py_ssize_t* gold_indices,
    long long* greater,
    long long* tied,
    long long* tied_before,
    bint ordered,
) noexcept nogil:
    """Add the counts of some rows and at most TILE columns; say whether a score was NaN."""
    cdef Py_ssize_t j
    cdef int i
    cdef int[TILE] gold_row
    cdef int[TILE] above
    cdef int[TILE] level
    cdef int[TILE] level_before
    cdef int[TILE] nan
    cdef const real* row
    cdef bint has_nan = False
    for j in range(n):
        gold_row[j] = <int>min(max(gold_indices[j] - first_row, 0), n_rows)
        above[j] = level[j] = level_before[j] = nan[j] = 0
    for i in range(n_rows):
        row = scores + stride * i
        for j in range(n):
            above[j] += row[j] > gold_scores[j]
            level[j] += row[j] == gold_scores[j]
            nan[j] += row[j] != row[j]
        if ordered:
            for j in range(n):
                level_before[j] += (row[j] == gold_scores[j]) & (i < gold_row[j])
    for j in range(n):
        greater[j] += above[j]
        tied[j] += level[j]
        tied_before[j] += level_before[j]
        has_nan |= nan[j] > 0
    return has_nan
