# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""One step of expectation maximisation for IBM models 1 and 2, over sparse counts.

Input    sentence pairs as ragged word ids, C-contiguous; `links`, which names for every
         target position and source position of every pair, in this order, the entry of
         the translation table that the two words share.
Output   expected counts, added to the caller's arrays; returns the log-likelihood of the
         target sentences under the parameters given.
Cost     a few operations a link and one division and logarithm a target word; 4 bytes a
         link.
Order    pair by pair, target word by target word, source words in sentence order.
Threads  one.
Python   the GIL is taken back from time to time to look for Ctrl-C.
Errors   none of its own: ids and offsets are checked once, in ibm.py.
Source   P. F. Brown et al., The mathematics of statistical machine translation,
         Computational Linguistics 19(2), 1993, equations 14 to 17 and 26 to 29.
Same as  kernelcore/reference/language.py::ibm1 and ::ibm2
"""

from libc.math cimport log

from kernelcore._looking cimport look


def link_words(
    const int[::1] source_ids,
    const long long[::1] source_offsets,
    const int[::1] target_ids,
    const long long[::1] target_offsets,
    const long long[::1] link_offsets,
    const long long[::1] tokens_by_word,
    const long long[::1] word_offsets,
    const long long[::1] pair_of_token,
    int[::1] last_entry,
    int[::1] links,
    int[::1] entry_targets,
    long long[::1] entry_offsets,
):
    """Number the pairs of words that occur together, source word by source word.

    `tokens_by_word[word_offsets[f]:word_offsets[f + 1]]` are the source tokens of word f.
    Fills `links`, the target word of each entry and the first entry of each source word,
    and returns the number of entries. `last_entry` has one cell per target word, -1 first.
    """
    cdef Py_ssize_t f, k, token, pair, position, length, first, start, j
    cdef Py_ssize_t n_steps = 0
    cdef int n_entries = 0, row_start, e
    with nogil:
        for f in range(word_offsets.shape[0] - 1):
            row_start = n_entries
            entry_offsets[f] = n_entries
            for k in range(word_offsets[f], word_offsets[f + 1]):
                token = tokens_by_word[k]
                pair = pair_of_token[token]
                position = token - source_offsets[pair]
                length = source_offsets[pair + 1] - source_offsets[pair]
                first = target_offsets[pair]
                start = link_offsets[pair] + position
                for j in range(target_offsets[pair + 1] - first):
                    e = target_ids[first + j]
                    if last_entry[e] < row_start:
                        last_entry[e] = n_entries
                        entry_targets[n_entries] = e
                        n_entries += 1
                    links[start + j * length] = last_entry[e]
                n_steps += target_offsets[pair + 1] - first
                look(&n_steps)
    entry_offsets[word_offsets.shape[0] - 1] = n_entries
    return n_entries


def expected_counts(
    const long long[::1] source_offsets,
    const long long[::1] target_offsets,
    const long long[::1] link_offsets,
    const int[::1] links,
    const double[::1] translations,
    const long long[::1] alignment_offsets,
    const double[::1] alignments,
    double[::1] translation_counts,
    double[::1] alignment_counts,
):
    """Add the expected counts of all links to the two arrays; return the log-likelihood.

    The alignment probabilities of a pair start at `alignment_offsets[pair]`, in the order
    of its links; pairs of equal lengths share them. Model 1 is the case where they are
    uniform and stay so.
    """
    cdef Py_ssize_t n_pairs = source_offsets.shape[0] - 1
    cdef Py_ssize_t pair, link, cell, length, n_target, i, j, n_steps = 0
    cdef double log_likelihood = 0.0, total, scale, posterior
    with nogil:
        for pair in range(n_pairs):
            length = source_offsets[pair + 1] - source_offsets[pair]
            n_target = target_offsets[pair + 1] - target_offsets[pair]
            link = link_offsets[pair]
            cell = alignment_offsets[pair]
            for j in range(n_target):
                total = 0.0
                for i in range(length):
                    total += alignments[cell + i] * translations[links[link + i]]
                scale = 1.0 / total
                for i in range(length):
                    posterior = (
                        alignments[cell + i] * translations[links[link + i]] * scale
                    )
                    translation_counts[links[link + i]] += posterior
                    alignment_counts[cell + i] += posterior
                log_likelihood += log(total)
                link += length
                cell += length
            n_steps += length * n_target
            look(&n_steps)
    return log_likelihood
