"""The word-sequence Gram matrix of a training set's captions, against Numba and strkernels.

The captions are those of Flickr8k where KERNELCORE_DATA, or ../shared/data, holds them, and
drawn at random with the same lengths and word frequencies otherwise. `extra_info` holds the
pairs of captions compared per second; a symmetric Gram matrix compares n (n + 1) / 2.
"""

import importlib.util
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import _core
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.kernels import word_sequence
from kernelcore.reference.word_sequence import word_sequence as reference_word_sequence

N_IMAGES, N_CAPTIONS = 6000, 5
DATA = Path(os.environ.get("KERNELCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))
FUNCTION_WORDS = """
    a an the and or of in on at to from with by for as is be are that this its it his her their
    he she they who which while up down out into onto over near
"""
has_numba = importlib.util.find_spec("numba") is not None
has_strkernels = importlib.util.find_spec("strkernels") is not None


def flickr_captions():
    folder = DATA / "flickr8k"
    names = (folder / "Flickr_8k.trainImages.txt").read_text().split()
    images = {name: [] for name in names}
    function_words = set(FUNCTION_WORDS.split())
    for line in (folder / "Flickr8k.lemma.token.txt").read_text().splitlines():
        image, _, text = line.partition("\t")
        if (captions := images.get(image.partition("#")[0])) is not None:
            words = [word.lower() for word in text.split() if word.isalpha()]
            captions.append([word for word in words if word not in function_words])
    tokens = list(images.values())
    return Vocabulary.from_captions(tokens, min_count=3).encode(tokens)


def drawn_captions():
    """Zipf's law over 3,000 words, lengths as in Flickr8k."""
    rng = np.random.default_rng(0)
    frequencies = 1 / (np.arange(3000) + 8.0)
    lengths = rng.binomial(16, 0.38, N_IMAGES * N_CAPTIONS)
    words = rng.choice(3000, lengths.sum(), p=frequencies / frequencies.sum())
    return EncodedCaptions(
        word_ids=words,
        caption_offsets=np.concatenate(([0], np.cumsum(lengths))),
        image_offsets=np.arange(N_IMAGES + 1) * N_CAPTIONS,
        caption_numbers=np.tile(np.arange(N_CAPTIONS), N_IMAGES),
        n_words=3000,
    )


@pytest.fixture(scope="module")
def captions():
    return flickr_captions() if (DATA / "flickr8k").is_dir() else drawn_captions()


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


def record(benchmark, n_pairs):
    rate = n_pairs / benchmark.stats["min"] / 1e6
    benchmark.extra_info["caption_pairs"] = n_pairs
    benchmark.extra_info["M_pairs_per_s"] = rate
    return rate


@pytest.mark.parametrize("matches", ["sparse", "dense", "exact"])
@pytest.mark.parametrize("isa", _core.supported_isas())
def test_word_sequence(benchmark, captions, word_kernels, matches, isa):
    kernel = word_kernels[matches]
    out = np.empty((len(captions), len(captions)))
    before = _core.active_isa()
    _core.select_isa(isa)
    try:
        check(captions, kernel)
        benchmark.group = f"word sequence, {matches} matches, one input"
        benchmark.pedantic(
            word_sequence,
            args=(captions,),
            kwargs={"word_kernel": kernel, "out": out},
            rounds=3,
            warmup_rounds=1,
        )
    finally:
        _core.select_isa(before)
    n = captions.n_captions
    record(benchmark, n * (n + 1) // 2)


@pytest.mark.parametrize("gap_decay", [1.0, 0.5])
def test_word_sequence_two_inputs(benchmark, captions, word_kernels, gap_decay):
    queries = captions.select(range(1000)).with_caption(0)
    kernel = word_kernels["sparse"]
    benchmark.group = f"word sequence, gap decay {gap_decay}, 1,000 captions against all"
    benchmark.pedantic(
        word_sequence,
        args=(queries, captions),
        kwargs={"word_kernel": kernel, "gap_decay": gap_decay},
        rounds=3,
        warmup_rounds=1,
    )
    record(benchmark, queries.n_captions * captions.n_captions)


def numba_gram():
    """The textbook dynamic programme for one pair, parallel over the rows."""
    import numba

    @numba.njit(parallel=True, cache=False)
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


@pytest.mark.skipif(not has_numba, reason="Numba is not installed")
@pytest.mark.parametrize("matches", ["sparse", "exact"])
def test_ratio_to_numba(benchmark, captions, word_kernels, matches, capsys):
    """Both on two threads, without symmetry, on the first 600 images; in the same run."""
    import numba

    some = captions.select(range(600)).caption_as_image()
    ids, words = np.unique(some.word_ids, return_inverse=True)
    kappa = np.eye(len(ids), dtype=np.float32)
    if matches == "sparse":
        known = np.flatnonzero(ids >= 0)
        kappa[np.ix_(known, known)] = word_kernels["dense"][np.ix_(ids[known], ids[known])]
    gram = numba_gram()
    numba.set_num_threads(2)
    out = np.empty((len(some), len(some)), np.float32)
    arguments = (words, some.caption_offsets, kappa, np.float32(0.25), out)
    gram(*arguments)
    options = {"word_kernel": word_kernels[matches], "normalize": False, "n_threads": 2}
    ours = word_sequence(some, some.select(range(len(some))), **options)
    np.testing.assert_allclose(ours, out, rtol=1e-5)
    start = time.perf_counter()
    gram(*arguments)
    peer = len(some) ** 2 / (time.perf_counter() - start) / 1e6

    benchmark.group = f"word sequence, {matches} matches, against Numba"
    benchmark.pedantic(
        word_sequence, args=(captions,), kwargs=options, rounds=3, warmup_rounds=1
    )
    n = captions.n_captions
    rate = record(benchmark, n * (n + 1) // 2)
    benchmark.extra_info["numba_M_pairs_per_s"] = peer
    benchmark.extra_info["ratio"] = rate / peer
    with capsys.disabled():
        print(f"\n{matches}: {rate:.0f} M pairs/s, Numba {peer:.1f}: {rate / peer:.0f} times")
    assert rate / peer >= 15


@pytest.mark.skipif(not has_strkernels, reason="strkernels is not installed")
def test_ratio_to_strkernels(benchmark, captions, capsys):
    """One thread, one byte a word, equal settings: both decays 0.5, exact matches."""
    import strkernels

    some = captions.select(range(200)).caption_as_image()
    is_frequent = (some.word_ids >= 0) & (some.word_ids < 60)
    ids = np.where(is_frequent, some.word_ids, 60) + 48
    bounds = some.caption_offsets
    texts = ["".join(map(chr, ids[a:b])) or "\x7f" for a, b in pairwise(bounds)]
    peer = strkernels.SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5)
    words = [" ".join(text) for text in texts]
    options = {"gap_decay": 0.5, "n_threads": 1}
    strings = np.array(texts)
    start = time.perf_counter()
    expected = peer(strings, strings)
    seconds = time.perf_counter() - start
    np.testing.assert_allclose(word_sequence(words, **options), expected, rtol=1e-6)
    peer_rate = len(words) * (len(words) + 1) / 2 / seconds / 1e6

    benchmark.group = "word sequence, exact matches, one thread, against strkernels"
    benchmark.pedantic(
        word_sequence, args=(captions,), kwargs=options, rounds=3, warmup_rounds=1
    )
    n = captions.n_captions
    rate = record(benchmark, n * (n + 1) // 2)
    benchmark.extra_info["strkernels_M_pairs_per_s"] = peer_rate
    with capsys.disabled():
        print(
            f"\n{rate:.0f} M pairs/s, strkernels {peer_rate:.2f}: {rate / peer_rate:.0f} times"
        )
