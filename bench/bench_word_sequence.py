"""The word-sequence Gram matrix of a training set's captions, against Numba and strkernels.

A symmetric Gram matrix of n captions compares n (n + 1) / 2 pairs of them; beside the peers,
which know no symmetry or no images, everybody gets the same captions.
"""

from functools import cache
from itertools import pairwise

import data
import numpy as np
import pytest
import scipy.sparse as sp
from results import target

from kernelcore import _core
from kernelcore.kernels import word_sequence
from kernelcore.reference.kernels import word_sequence as reference_word_sequence

ISAS = _core.supported_isas()


@pytest.fixture(scope="module")
def kernels(captions):
    soft = data.soft_word_kernel(captions.n_words)
    return {"sparse": soft, "dense": soft.toarray(), "exact": None}


def checker(X, kernel, Y=None, *, n=4, normalize=True, **options):
    """The first images against the definition."""
    stored = None if kernel is None else sp.csr_array(kernel).todok()

    def similarity(a, b):
        if stored is None or min(a, b) < 0:
            return float(a == b)
        return stored.get((a, b), 0.0)

    few = (data.as_lists(Z.select(range(n))) for Z in (X, X if Y is None else Y))
    expected = reference_word_sequence(*few, similarity, normalize=normalize, **options)
    return lambda gram: np.testing.assert_allclose(gram[:n, :n], expected, rtol=1e-5)


def scale(X, Y=None):
    n = X.n_captions
    n_pairs = n * (n + 1) // 2 if Y is None else n * Y.n_captions
    shape = f"{n:,} captions" + (f" x {Y.n_captions:,}" if Y is not None else "")
    return {"shape": shape, "size": float(n_pairs), "unit": "pairs"}


@pytest.mark.ways("kernelcore", "kernelcore, dense word kernel", "kernelcore, exact matches")
def test_soft_and_exact_matches(measure, captions, kernels):
    """One input on two threads; the answers of soft and of exact matches differ."""
    out = np.empty((len(captions), len(captions)))
    checks = {name: checker(captions, kernel) for name, kernel in kernels.items()}

    def way(name):
        return lambda: (name, word_sequence(captions, word_kernel=kernels[name], out=out))

    measure(
        "word sequences, one input",
        {
            "kernelcore": way("sparse"),
            "kernelcore, dense word kernel": way("dense"),
            "kernelcore, exact matches": way("exact"),
        },
        check=lambda answer: checks[answer[0]](answer[1]),
        n_threads=2,
        limit={"kernelcore": "word sequences"},
        targets=[
            target("seconds <= 5"),
            target("seconds <= 3"),
            target("speed >= 3 x kernelcore", of="kernelcore, exact matches"),
        ],
        **scale(captions),
    )


def on(isa, call):
    """The same on another instruction set than the one chosen at import."""

    def run():
        before = _core.active_isa()
        _core.select_isa(isa)
        try:
            return call()
        finally:
            _core.select_isa(before)

    return run


@pytest.mark.ways(*(f"kernelcore, {isa}" for isa in reversed(ISAS)))
@pytest.mark.parametrize("matches", ["soft", "exact"])
def test_instruction_sets(measure, captions, kernels, matches):
    kernel = kernels["sparse" if matches == "soft" else "exact"]
    out = np.empty((len(captions), len(captions)))

    def gram():
        return word_sequence(captions, word_kernel=kernel, out=out)

    measure(
        f"word sequences, {matches} matches, by instruction set",
        {f"kernelcore, {isa}": on(isa, gram) for isa in reversed(ISAS)},
        check=checker(captions, kernel),
        n_threads=2,
        **scale(captions),
    )


@pytest.mark.ways("kernelcore", "kernelcore, gap decay 0.5")
def test_gap_decay_and_two_inputs(measure, captions, kernels):
    queries = captions.select(range(min(1000, len(captions)))).with_caption(0)
    soft = kernels["sparse"]
    checks = {decay: checker(queries, soft, captions, gap_decay=decay) for decay in (1.0, 0.5)}

    def way(decay):
        options = {"word_kernel": soft, "gap_decay": decay}
        return lambda: (decay, word_sequence(queries, captions, **options))

    measure(
        "word sequences, two inputs",
        {"kernelcore": way(1.0), "kernelcore, gap decay 0.5": way(0.5)},
        check=lambda answer: checks[answer[0]](answer[1]),
        n_threads=2,
        **scale(queries, captions),
    )


@cache
def numba_gram():
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


@pytest.mark.ways("kernelcore", "numba")
@pytest.mark.parametrize("matches", ["soft", "exact"])
def test_beside_numba(measure, captions, kernels, matches):
    """All pairs of two inputs, so that symmetry does not count."""
    some = captions.select(range(data.size(1200, 60))).caption_as_image()
    ids, words = np.unique(some.word_ids, return_inverse=True)
    kappa = np.eye(len(ids), dtype=np.float32)
    if matches == "soft":
        known = np.flatnonzero(ids >= 0)
        kappa[np.ix_(known, known)] = kernels["dense"][np.ix_(ids[known], ids[known])]
    other = some.select(range(len(some)))
    options = {
        "word_kernel": kernels["sparse" if matches == "soft" else "exact"],
        "normalize": False,
        "n_threads": 2,
        "dtype": np.float32,
    }

    measure(
        f"word sequences, {matches} matches, beside Numba",
        {
            "kernelcore": lambda: word_sequence(some, other, **options),
            "numba": lambda: numba_gram()(words, some.caption_offsets, kappa, np.float32(0.25)),
        },
        check=checker(some, options["word_kernel"], n=8, normalize=False),
        n_threads=2,
        targets=[target("speed >= 15 x numba")] if matches == "soft" else [],
        **scale(some, other),
    )


@pytest.mark.readme
@pytest.mark.ways("kernelcore", "strkernels")
def test_beside_strkernels(measure, captions):
    """One byte a word, equal settings: both decays 0.5, exact matches."""
    some = captions.select(range(data.size(1000, 20))).caption_as_image()
    is_frequent = (some.word_ids >= 0) & (some.word_ids < 60)
    ids = np.where(is_frequent, some.word_ids, 60) + 48
    texts = ["".join(map(chr, ids[a:b])) or "\x7f" for a, b in pairwise(some.caption_offsets)]
    words, strings = [" ".join(text) for text in texts], np.array(texts)

    def by_strkernels():
        from strkernels import SubsequenceStringKernel

        return SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)(strings, strings)

    few = [[list(text)] for text in texts[:8]]
    expected = reference_word_sequence(
        few, few, lambda a, b: float(a == b), gap_decay=0.5, normalize=True
    )
    measure(
        "word sequences, exact matches, beside strkernels",
        {
            "kernelcore": lambda: word_sequence(words, gap_decay=0.5, n_threads=1),
            "strkernels": by_strkernels,
        },
        check=lambda gram: np.testing.assert_allclose(gram[:8, :8], expected, rtol=1e-6),
        targets=[
            target(
                "speed >= 100 x strkernels",
                reason="strkernels compares bytes: all but the 60 most frequent words are one "
                "symbol here, so that nearly every pair of captions matches in many places, "
                "and what is gained from pairs that share no word is lost",
            )
        ],
        **scale(some),
    )
