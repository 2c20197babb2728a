# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Counts of caption metrics: n-grams that captions share, and longest common subsequences.

Input    captions as ragged ids, C-contiguous: the candidates first, then the references;
         the references of candidate i are the captions from `set_offsets[i]` to
         `set_offsets[i + 1]`. Every function of n-grams sees those of one order.
Output   one number per candidate (or per n-gram) in an array of the caller.
Cost     a few operations a token and, for the subsequences, one a pair of tokens; scratch
         of one or two cells per distinct n-gram, handed in and left zeroed.
Order    candidate by candidate, reference by reference, token by token; float64.
Threads  one.
Python   the GIL is taken back from time to time to look for Ctrl-C.
Errors   none of its own: captions are checked once, in _corpus.py.
Source   K. Papineni et al., BLEU, ACL 2002; C.-Y. Lin, ROUGE, 2004; R. Vedantam et al.,
         CIDEr, CVPR 2015.
Same as  kernelcore/reference/evaluation.py
"""

from libc.math cimport sqrt

from kernelcore._looking cimport look


def count_documents(
    const long long[::1] ids,
    const long long[::1] offsets,
    const long long[::1] set_offsets,
    long long[::1] last_set,
    long long[::1] counts,
):
    """Add to `counts` in how many sets of references each n-gram occurs.

    `last_set` has one cell per n-gram, zero first.
    """
    cdef Py_ssize_t i, p, n_steps = 0
    with nogil:
        for i in range(set_offsets.shape[0] - 1):
            n_steps += offsets[set_offsets[i + 1]] - offsets[set_offsets[i]]
            look(&n_steps)
            for p in range(offsets[set_offsets[i]], offsets[set_offsets[i + 1]]):
                if last_set[ids[p]] <= i:
                    last_set[ids[p]] = i + 1
                    counts[ids[p]] += 1


def count_matches(
    const long long[::1] ids,
    const long long[::1] offsets,
    const long long[::1] set_offsets,
    int[::1] count,
    int[::1] most,
    long long[::1] matches,
):
    """Count the n-grams of each candidate, each at most as often as one reference has it."""
    cdef Py_ssize_t i, n_steps = 0
    with nogil:
        for i in range(set_offsets.shape[0] - 1):
            n_steps += 3 * (offsets[set_offsets[i + 1]] - offsets[set_offsets[i]])
            look(&n_steps)
            matches[i] = _matches(
                &ids[0],
                &offsets[0],
                i,
                set_offsets[i],
                set_offsets[i + 1],
                &count[0],
                &most[0],
            )


cdef long long _matches(
    const long long* ids,
    const long long* offsets,
    Py_ssize_t candidate,
    Py_ssize_t first,
    Py_ssize_t last,
    int* count,
    int* most,
) noexcept nogil:
    cdef Py_ssize_t reference, p
    cdef long long matches = 0
    for reference in range(first, last):
        for p in range(offsets[reference], offsets[reference + 1]):
            count[ids[p]] += 1
            most[ids[p]] = max(most[ids[p]], count[ids[p]])
        for p in range(offsets[reference], offsets[reference + 1]):
            count[ids[p]] = 0
    for p in range(offsets[candidate], offsets[candidate + 1]):
        if most[ids[p]] > 0:  # one of the allowed occurrences is used up
            most[ids[p]] -= 1
            matches += 1
    for p in range(offsets[first], offsets[last]):
        most[ids[p]] = 0
    return matches


def add_similarities(
    const long long[::1] ids,
    const long long[::1] offsets,
    const long long[::1] set_offsets,
    const double[::1] weights,
    const double[::1] penalties,
    bint clip,
    int[::1] candidate_count,
    int[::1] count,
    double[::1] scores,
):
    """Add each candidate's cosines with its references, times the reference's penalty.

    A vector holds count times weight for each n-gram. With `clip`, an n-gram counts in the
    product at most as often as the reference has it; the lengths stay as they are.
    `penalties` start with the first reference.
    """
    cdef Py_ssize_t i, reference, n_steps = 0
    cdef Py_ssize_t n = set_offsets.shape[0] - 1
    cdef double length
    with nogil:
        for i in range(n):
            n_steps += 2 * (offsets[set_offsets[i + 1]] - offsets[set_offsets[i]])
            look(&n_steps)
            length = _load(
                &ids[0], offsets[i], offsets[i + 1], &weights[0], &candidate_count[0]
            )
            if length > 0.0:
                for reference in range(set_offsets[i], set_offsets[i + 1]):
                    scores[i] += penalties[reference - n] * _cosine(
                        &ids[0],
                        offsets[reference],
                        offsets[reference + 1],
                        &weights[0],
                        clip,
                        length,
                        &candidate_count[0],
                        &count[0],
                    )
            _clear(&ids[0], offsets[i], offsets[i + 1], &candidate_count[0])


cdef double _load(
    const long long* ids,
    Py_ssize_t start,
    Py_ssize_t end,
    const double* weights,
    int* count,
) noexcept nogil:
    """Count a caption's n-grams and return the length of its vector."""
    cdef Py_ssize_t p
    cdef double square = 0.0
    for p in range(start, end):
        # (c + 1)^2 - c^2 more for one more occurrence
        square += (2 * count[ids[p]] + 1) * weights[ids[p]] * weights[ids[p]]
        count[ids[p]] += 1
    return sqrt(square)


cdef void _clear(
    const long long* ids, Py_ssize_t start, Py_ssize_t end, int* count
) noexcept nogil:
    cdef Py_ssize_t p
    for p in range(start, end):
        count[ids[p]] = 0


cdef double _cosine(
    const long long* ids,
    Py_ssize_t start,
    Py_ssize_t end,
    const double* weights,
    bint clip,
    double candidate_length,
    const int* candidate_count,
    int* count,
) noexcept nogil:
    cdef Py_ssize_t p
    cdef int mine, theirs
    cdef double product = 0.0
    cdef double length = _load(ids, start, end, weights, count)
    for p in range(start, end):
        theirs = count[ids[p]]
        mine = min(candidate_count[ids[p]], theirs) if clip else candidate_count[ids[p]]
        product += <double>mine * theirs * weights[ids[p]] * weights[ids[p]]
        count[ids[p]] = 0  # each distinct n-gram once
    return product / (candidate_length * length) if length > 0.0 else 0.0


def common_subsequences(
    const long long[::1] words,
    const long long[::1] offsets,
    const long long[::1] set_offsets,
    int[::1] row,
    long long[::1] lengths,
):
    """Length of the longest common subsequence of each reference and its candidate.

    `row` has one cell more than the longest caption has words; `lengths` start with the
    first reference.
    """
    cdef Py_ssize_t i, reference, n_steps = 0
    cdef Py_ssize_t n = set_offsets.shape[0] - 1
    with nogil:
        for i in range(n):
            for reference in range(set_offsets[i], set_offsets[i + 1]):
                lengths[reference - n] = _longest(
                    &words[0] + offsets[i],
                    offsets[i + 1] - offsets[i],
                    &words[0] + offsets[reference],
                    offsets[reference + 1] - offsets[reference],
                    &row[0],
                    &n_steps,
                )


cdef int _longest(
    const long long* a,
    Py_ssize_t n_a,
    const long long* b,
    Py_ssize_t n_b,
    int* row,
    Py_ssize_t* n_steps,
) except -1 nogil:
    """One row of the table at a time; row[j] belongs to the first j words of `b`."""
    cdef Py_ssize_t i, j
    cdef int diagonal, above
    for j in range(n_b + 1):
        row[j] = 0
    for i in range(n_a):
        n_steps[0] += n_b
        look(n_steps)
        diagonal = 0
        for j in range(n_b):
            above = row[j + 1]
            row[j + 1] = diagonal + 1 if a[i] == b[j] else max(above, row[j])
            diagonal = above
    return row[n_b]
