# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Difference of the medians of two paired samples after every one of many swaps.

Input    swaps (n_swaps, n_words) of bits, bit q of a row set where pair q changes sides, no
         matter what stands beyond the last pair; the 2n values of both samples, ascending,
         and for each its pair and whether it is of the second sample; masks
         (n_blocks, 2, n_words): for each block of values, which pairs have the first sample's
         value before the block, and which have exactly one of their two values before it.
Output   differences (n_swaps,): median of the first sample less that of the second.
Cost     per swap and sample, a binary search over the blocks that counts the bits of n_words
         words at each step, then a walk through one block. No sort, no memory.
Order    the middle values themselves: only the mean of two of them rounds.
Threads  one; holds no lock, so calls on different swaps run side by side.
Python   the GIL is not held; a call is short, so the caller looks for Ctrl-C between calls.
Errors   none of its own: arrays are made by significance.py.
Source   selection by rank in a bit vector; the first sample holds, after a swap, those of the
         values before a block that did not move and those of the second that did.
Same as  kernelcore/reference/evaluation.py::median_differences
"""

ctypedef unsigned long long word

cdef enum:
    # Words whose bits are counted in the eight bytes of one word: 31 * 8 < 256.
    RUN = 31


def median_differences(
    const word[:, ::1] swaps,
    const double[::1] values,
    const int[::1] pairs,
    const unsigned char[::1] is_second,
    const word[:, :, ::1] masks,
    Py_ssize_t block_size,
    double[::1] differences,
):
    """Fill `differences`; values come in blocks of `block_size`, the last may be shorter."""
    cdef Py_ssize_t i
    cdef Sorted both
    both.n = values.shape[0]
    both.n_words = swaps.shape[1]
    both.n_blocks = masks.shape[0]
    both.block_size = block_size
    both.values = &values[0]
    both.pairs = &pairs[0]
    both.is_second = &is_second[0]
    both.masks = &masks[0, 0, 0]
    with nogil:
        for i in range(swaps.shape[0]):
            differences[i] = _median(both, &swaps[i, 0], 0) - _median(both, &swaps[i, 0], 1)


cdef struct Sorted:
    Py_ssize_t n
    Py_ssize_t n_words
    Py_ssize_t n_blocks
    Py_ssize_t block_size
    const double* values
    const int* pairs
    const unsigned char* is_second
    const word* masks


cdef double _median(Sorted both, const word* swap, bint second) noexcept nogil:
    """Median of the first or the second sample after the swap."""
    cdef Py_ssize_t n = both.n // 2, wanted = (n + 1) // 2
    cdef Py_ssize_t low = 0, high = both.n_blocks, middle, before = 0, count, place
    cdef double value
    # The last block with fewer than `wanted` values of the sample before it.
    while high - low > 1:
        middle = (low + high) // 2
        count = _count_first(both, swap, middle)
        if second:
            count = middle * both.block_size - count
        if count < wanted:
            low, before = middle, count
        else:
            high = middle
    place = low * both.block_size
    place = _walk(both, swap, second, place, wanted - before)
    value = both.values[place]
    if n % 2 == 1:
        return value
    return (value + both.values[_walk(both, swap, second, place + 1, 1)]) / 2


cdef inline Py_ssize_t _walk(
    Sorted both, const word* swap, bint second, Py_ssize_t place, Py_ssize_t steps
) noexcept nogil:
    """Place of the sample's value number `steps` from `place` on."""
    cdef int pair
    while True:
        pair = both.pairs[place]
        steps -= ((swap[pair >> 6] >> (pair & 63)) & 1) ^ both.is_second[place] ^ second ^ 1
        if steps == 0:
            return place
        place += 1


cdef inline Py_ssize_t _count_first(
    Sorted both, const word* swap, Py_ssize_t block
) noexcept nogil:
    """Values of the first sample, after the swap, that stand before the block."""
    cdef const word* first = both.masks + 2 * block * both.n_words
    cdef const word* one_of_two = first + both.n_words
    cdef Py_ssize_t run, i, total = 0
    cdef word bits, counts
    for run in range((both.n_words + RUN - 1) // RUN):
        counts = 0
        for i in range(run * RUN, min((run + 1) * RUN, both.n_words)):
            bits = first[i] ^ (swap[i] & one_of_two[i])
            bits -= (bits >> 1) & 0x5555555555555555ULL
            bits = (bits & 0x3333333333333333ULL) + ((bits >> 2) & 0x3333333333333333ULL)
            counts += (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0FULL
        counts = (counts & 0x00FF00FF00FF00FFULL) + ((counts >> 8) & 0x00FF00FF00FF00FFULL)
        total += (counts * 0x0001000100010001ULL) >> 48
    return total
