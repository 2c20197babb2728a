"""The word-sequence Gram matrix of a training set's captions, against Numba and strkernels.

The captions are those of Flickr8k where KERNELCORE_DATA, or ../shared/data, holds them, and
drawn at random with the same lengths and word frequencies otherwise. `extra_info` holds the
pairs of captions compared per second; a symmetric Gram matrix compares n (n + 1) / 2.
"""

import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore.kernels import word_sequence
from kernelcore.reference.word_sequence import word_sequence as reference_word_sequence


@pytest.fixture(scope="module")
def word_kernels(captions):
    """Symmetric, one word similar to 1 % of the others; dense, sparse or exact."""
    n_words = captions.n_words
    rng = np.random.default_rng(0)
    n_similar = n_words**2 // 200
    rows, columns = rng.integers(0, n_words, (2, n_similar))
    half = sp.coo_array(
        (rng.random(n_similar, np.float32), (rows, columns)), shape=(n_words, n_words)
    )
    sparse = (half + half.T + sp.eye_array(n_words, dtype=np.float32)).tocsr()
    return {"sparse": sparse, "dense": sparse.toarray(), "exact": None}


def check(captions, kernel):
    """The first images against the definition."""
    few = captions.select(range(4))
    similarity = None if kernel is None else sp.csr_array(kernel).todok().get

    def similar(a, b):
        if similarity is None or min(a, b) < 0:
            return float(a == b)
        return similarity((a, b), 0.0)

    lists = [[caption.tolist() for caption in few.captions_of(i)] for i in range(4)]
    expected = reference_word_sequence(lists, lists, similar, normalize=True)
    np.testing.assert_allclose(word_sequence(few, word_kernel=kernel), expected, rtol=1e-5)


@pytest.mark.parametrize("matches", ["sparse", "dense", "exact"])
@pytest.mark.usefixtures("isa")
def test_word_sequence(measure, captions, word_kernels, matches):
    kernel = word_kernels[matches]
    out = np.empty((len(captions), len(captions)))
    check(captions, kernel)
    group = f"word sequence, {matches} matches, one input"
    measure(group, word_sequence, captions, word_kernel=kernel, out=out)


@pytest.mark.parametrize("gap_decay", [1.0, 0.5])
def test_word_sequence_two_inputs(measure, captions, word_kernels, gap_decay):
    queries = captions.select(range(1000)).with_caption(0)
    group = f"word sequence, gap decay {gap_decay}, 1,000 captions against all"
    options = {"word_kernel": word_kernels["sparse"], "gap_decay": gap_decay}
    measure(group, word_sequence, queries, captions, **options)


@pytest.fixture(scope="module")
def numba_gram():
    """The textbook dynamic programme for one pair, parallel over the rows, on two threads."""
    numba = pytest.importorskip("numba")
    numba.set_num_threads(2)

    @numba.njit(parallel=True)
    def gram(words, offsets, kappa, decay, out):
        n = len(offsets) - 1
        for x in numba.prange(n):
            for y in range(n):
                s = words[offsets[x] : offsets[x + 1]]
                t = words[offsets[y] : offsets[y + 1]]
                # sums over rectangles of matches of length 1 and 2, a row behind
                one = np.zeros(len(t) + 1, np.float32)
                two = np.zeros(len(t) + 1, np.float32)
                total = np.float32(0)
                for i in range(len(s)):
                    run_one = run_two = np.float32(0)
                    above_one = above_two = np.float32(0)
                    for j in range(len(t)):
                        match = decay * kappa[s[i], t[j]]
                        ended_two = match * above_one
                        total += match + ended_two + match * above_two
                        run_one += match
                        run_two += ended_two
                        above_one, above_two = one[j + 1], two[j + 1]
                        one[j + 1] += run_one
                        two[j + 1] += run_two
                out[x, y] = total

    return gram


@pytest.mark.parametrize("matches", ["sparse", "exact"])
def test_ratio_to_numba(measure, captions, word_kernels, numba_gram, matches):
    """Numba compares all pairs of the first 600 images; both on two threads, in one run."""
    some = captions.select(range(600)).caption_as_image()
    ids, words = np.unique(some.word_ids, return_inverse=True)
    kappa = np.eye(len(ids), dtype=np.float32)
    if matches == "sparse":
        known = np.flatnonzero(ids >= 0)
        kappa[np.ix_(known, known)] = word_kernels["dense"][np.ix_(ids[known], ids[known])]
    out = np.empty((len(some), len(some)), np.float32)
    arguments = (words, some.caption_offsets, kappa, np.float32(0.25), out)
    numba_gram(*arguments)
    options = {"word_kernel": word_kernels[matches], "normalize": False, "n_threads": 2}
    np.testing.assert_allclose(word_sequence(some, **options), out, rtol=1e-5)
    start = time.perf_counter()
    numba_gram(*arguments)
    peer = len(some) ** 2 / (time.perf_counter() - start) / 1e6

    group = f"word sequence, {matches} matches, against Numba"
    assert measure(group, word_sequence, captions, peer=peer, **options) >= 15


def test_ratio_to_strkernels(measure, captions):
    """One thread, one byte a word, equal settings: both decays 0.5, exact matches."""
    strkernels = pytest.importorskip("strkernels")
    some = captions.select(range(200)).caption_as_image()
    is_frequent = (some.word_ids >= 0) & (some.word_ids < 60)
    ids = np.where(is_frequent, some.word_ids, 60) + 48
    texts = ["".join(map(chr, ids[a:b])) or "\x7f" for a, b in pairwise(some.caption_offsets)]
    kernel = strkernels.SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)
    options = {"gap_decay": 0.5, "n_threads": 1}
    strings = np.array(texts)
    start = time.perf_counter()
    expected = kernel(strings, strings)
    peer = len(texts) * (len(texts) + 1) / 2 / (time.perf_counter() - start) / 1e6
    ours = word_sequence([" ".join(text) for text in texts], **options)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)

    group = "word sequence, exact matches, one thread, against strkernels"
    assert measure(group, word_sequence, captions, peer=peer, **options) >= 100
