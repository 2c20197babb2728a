"""What several benchmarks measure on, and how they note what they found."""

import os
from pathlib import Path

import numpy as np
import pytest

from kernelcore import _core
from kernelcore.captions import EncodedCaptions, Vocabulary

N_IMAGES, N_CAPTIONS = 6000, 5
DATA = Path(os.environ.get("KERNELCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))
FUNCTION_WORDS = """
    a an the and or of in on at to from with by for as is be are that this its it his her their
    he she they who which while up down out into onto over near
"""


@pytest.fixture(scope="session")
def captions():
    """Training captions of Flickr8k where its folder is, elsewhere drawn ones like them."""
    return flickr_captions() if (DATA / "flickr8k").is_dir() else drawn_captions()


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


@pytest.fixture(params=_core.supported_isas())
def isa(request):
    """Measure once on every instruction set this processor has."""
    before = _core.active_isa()
    _core.select_isa(request.param)
    yield request.param
    _core.select_isa(before)


@pytest.fixture
def measure(benchmark, capsys):
    """Time a symmetric Gram matrix, or one of two inputs, and compare it with a peer's rate."""

    def run(group, gram, X, Y=None, *, peer=None, **options):
        benchmark.group = group
        inputs = (X,) if Y is None else (X, Y)
        benchmark.pedantic(gram, args=inputs, kwargs=options, rounds=3, warmup_rounds=1)
        n = X.n_captions
        n_pairs = n * (n + 1) // 2 if Y is None else n * Y.n_captions
        rate = n_pairs / benchmark.stats["min"] / 1e6
        benchmark.extra_info |= {"caption_pairs": n_pairs, "M_pairs_per_s": rate}
        if peer is None:
            return None
        benchmark.extra_info |= {"peer_M_pairs_per_s": peer, "ratio": rate / peer}
        with capsys.disabled():
            print(
                f"\n{group}: {rate:.0f} against {peer:.2f} M pairs/s, {rate / peer:.0f} times"
            )
        return rate / peer

    return run
