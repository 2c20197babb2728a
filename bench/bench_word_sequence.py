"""Word sequences of a training set's captions, and beside Numba and strkernels.

A symmetric Gram matrix of n captions compares n (n + 1) / 2 pairs of them. The peers know no
symmetry, or no images: beside them everybody compares all pairs of single captions.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from common import as_lists, size, soft_word_kernel, training_captions

from kernelcore import _core
from kernelcore.kernels import word_sequence
from kernelcore.reference.kernels import word_sequence as reference

*OLDER, NEWEST = _core.supported_isas()
ONE_INPUT = {
    "kernelcore": ("soft", NEWEST),
    "kernelcore, dense word kernel": ("dense", NEWEST),
    "kernelcore, exact matches": ("exact", NEWEST),
    **{f"kernelcore, {isa}": ("soft", isa) for isa in OLDER},
    **{f"kernelcore, exact matches, {isa}": ("exact", isa) for isa in OLDER},
}
"""Matches and instruction set of each way; the newest set is the one in use."""


@cache
def word_kernels():
    soft = soft_word_kernel(training_captions().n_words)
    return {"soft": soft, "dense": soft.toarray(), "exact": None}


def check(X, Y, matches, gram, *, n=4, normalize=True, **options):
    """The first images against the definition."""
    stored = None if matches == "exact" else word_kernels()["soft"].todok()

    def similarity(a, b):
        if stored is None or min(a, b) < 0:
            return float(a == b)
        return stored.get((a, b), 0.0)

    few = (as_lists(Z.select(range(min(n, len(Z))))) for Z in (X, Y))
    expected = reference(*few, similarity, normalize=normalize, **options)
    np.testing.assert_allclose(gram[:n, :n], expected, rtol=1e-5)


@pytest.mark.parametrize("peer", ONE_INPUT)
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n_images", [1, 1500, 3000, 6000])
def test_one_input(benchmark, peer, n_images, n_threads):
    captions = training_captions()
    captions = captions.select(range(min(n_images, len(captions))))
    benchmark.extra_info["work"] = "word sequences, one input"
    benchmark.extra_info["size"] = f"{captions.n_captions:,} captions"
    matches, isa = ONE_INPUT[peer]
    options = {"word_kernel": word_kernels()[matches], "out": np.empty((len(captions),) * 2)}
    before = _core.active_isa()
    _core.select_isa(isa)
    try:
        check(captions, captions, matches, word_sequence(captions, **options))
        benchmark(word_sequence, captions, **options)
    finally:
        _core.select_isa(before)


@pytest.mark.parametrize("peer", ["kernelcore", "kernelcore, gap decay 0.5"])
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n_queries", [1, 1000])
def test_two_inputs(benchmark, peer, n_queries, n_threads):
    captions = training_captions()
    queries = captions.select(range(min(n_queries, size(1000, 100)))).with_caption(0)
    benchmark.extra_info["work"] = "word sequences, two inputs"
    benchmark.extra_info["size"] = f"{queries.n_captions:,} x {captions.n_captions:,} captions"
    decay = 0.5 if "decay" in peer else 1.0
    options = {"word_kernel": word_kernels()["soft"], "gap_decay": decay}
    gram = word_sequence(queries, captions, **options)
    check(queries, captions, "soft", gram, gap_decay=decay)
    benchmark(word_sequence, queries, captions, **options)


@cache
def numba_loop():
    """The textbook dynamic programme for one pair, parallel over the rows."""
    import numba

    @numba.njit(parallel=True)
    def gram(words, offsets, kappa, decay):
        n = len(offsets) - 1
        out = np.empty((n, n), np.float32)
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
        return out

    return gram


@pytest.mark.parametrize("peer", ["kernelcore", "numba, a dynamic programme"])
@pytest.mark.parametrize("n_threads", [2])
@pytest.mark.parametrize("n_images", [300, 600, 1200])
@pytest.mark.parametrize("matches", ["soft", "exact"])
def test_single_captions(benchmark, peer, n_threads, n_images, matches):
    some = training_captions().select(range(size(n_images, 60))).caption_as_image()
    other = some.select(range(len(some)))  # not the same input, so that symmetry does not count
    benchmark.extra_info["work"] = f"word sequences of single captions, {matches} matches"
    benchmark.extra_info["size"] = f"{len(some):,} x {len(some):,} captions"
    ids, words = np.unique(some.word_ids, return_inverse=True)
    kappa = np.eye(len(ids), dtype=np.float32)
    if matches == "soft":
        known = np.flatnonzero(ids >= 0)
        kappa[np.ix_(known, known)] = word_kernels()["dense"][np.ix_(ids[known], ids[known])]
    options = {"word_kernel": word_kernels()[matches], "normalize": False, "dtype": np.float32}
    call = {
        "kernelcore": lambda: word_sequence(some, other, n_threads=n_threads, **options),
        "numba, a dynamic programme": lambda: numba_loop()(
            words, some.caption_offsets, kappa, np.float32(0.25)
        ),
    }[peer]
    check(some, other, matches, call(), n=8, normalize=False)
    benchmark(call)


@pytest.mark.parametrize("peer", ["kernelcore", "strkernels.SubsequenceStringKernel"])
@pytest.mark.parametrize("n_images", [125, 250, 500])
def test_bytes(benchmark, peer, n_images):
    """One byte a word, equal settings: both decays 0.5, exact matches.

    All but the 60 most frequent words are one symbol, so that nearly every pair of captions
    matches in many places: what is gained from pairs that share no word does not count.
    """
    some = training_captions().select(range(size(n_images, 20))).caption_as_image()
    benchmark.extra_info["work"] = "word sequences of bytes"
    benchmark.extra_info["size"] = f"{len(some):,} captions"
    is_frequent = (some.word_ids >= 0) & (some.word_ids < 60)
    ids = np.where(is_frequent, some.word_ids, 60) + 48
    texts = ["".join(map(chr, ids[a:b])) or "\x7f" for a, b in pairwise(some.caption_offsets)]
    words, strings = [" ".join(text) for text in texts], np.array(texts)

    def by_strkernels():
        from strkernels import SubsequenceStringKernel

        return SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)(strings, strings)

    few = [[list(text)] for text in texts[:8]]
    expected = reference(few, few, lambda a, b: float(a == b), gap_decay=0.5, normalize=True)
    call = {
        "kernelcore": lambda: word_sequence(words, gap_decay=0.5, n_threads=1),
        "strkernels.SubsequenceStringKernel": by_strkernels,
    }[peer]
    np.testing.assert_allclose(call()[:8, :8], expected, rtol=1e-6)
    benchmark(call)
