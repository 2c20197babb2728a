"""What several benchmarks measure on: captions of Flickr8k, or drawn ones like them."""

from __future__ import annotations

import os
import platform
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import kernelcore
from kernelcore.captions import EncodedCaptions, Vocabulary

N_IMAGES, N_CAPTIONS, N_WORDS = 6000, 5, 3000
FLICKR = Path(os.environ.get("KERNELCORE_DATA", "")) / "flickr8k"
SMALL = bool(os.environ.get("KERNELCORE_BENCH_SMALL"))
FUNCTION_WORDS = """
    a an the and or of in on at to from with by for as is be are that this its it his her their
    he she they who which while up down out into onto over near
"""


def size(full: int, small: int) -> int:
    """Size of a problem: the one to publish, or one that only shows that a benchmark runs."""
    return min(full, small) if SMALL else full


def machine() -> dict[str, Any]:
    """What times depend on; a name of the machine is none of it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    config = kernelcore.show_config()
    return {
        "processor": names[0] if names else platform.machine(),
        "n_cores": len(os.sched_getaffinity(0)),
        **{key: config[key] for key in ("instruction_set", "compiler", "python")},
        "kernelcore": config["version"],
    }


@cache
def training_captions() -> EncodedCaptions:
    """Five captions of each of 6,000 training images, without function words."""
    captions = flickr_captions() if FLICKR.is_dir() else drawn_captions()
    return captions.select(range(size(N_IMAGES, 300)))


def flickr_captions() -> EncodedCaptions:
    names = (FLICKR / "Flickr_8k.trainImages.txt").read_text().split()
    images: dict[str, list[list[str]]] = {name: [] for name in names}
    function_words = set(FUNCTION_WORDS.split())
    for line in (FLICKR / "Flickr8k.lemma.token.txt").read_text().splitlines():
        image, _, text = line.partition("\t")
        if (captions := images.get(image.partition("#")[0])) is not None:
            words = [word.lower() for word in text.split() if word.isalpha()]
            captions.append([word for word in words if word not in function_words])
    tokens = list(images.values())
    return Vocabulary.from_captions(tokens, min_count=3).encode(tokens)


def drawn_captions(
    n_images: int = N_IMAGES, n_words: int = N_WORDS, length: int | None = None
) -> EncodedCaptions:
    """Zipf's law over the words; lengths as in Flickr8k, or all the same."""
    rng = np.random.default_rng(0)
    frequencies = 1 / (np.arange(n_words) + 8.0)
    n_captions = n_images * N_CAPTIONS
    lengths = (
        rng.binomial(16, 0.38, n_captions) if length is None else np.full(n_captions, length)
    )
    words = rng.choice(n_words, lengths.sum(), p=frequencies / frequencies.sum())
    return EncodedCaptions(
        word_ids=words,
        caption_offsets=np.concatenate(([0], np.cumsum(lengths))),
        image_offsets=np.arange(n_images + 1) * N_CAPTIONS,
        caption_numbers=np.tile(np.arange(N_CAPTIONS), n_images),
        n_words=n_words,
    )


def caption_texts() -> list[str]:
    """Raw captions, five of each image."""
    if FLICKR.is_dir():
        lines = (FLICKR / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
        return [line.partition("\t")[2] for line in lines]
    images = as_lists(drawn_captions())
    return [" ".join(f"w{word}" for word in own) or "w0" for image in images for own in image]


def soft_word_kernel(n_words: int) -> sp.csr_array:
    """Symmetric similarities: each word is similar to itself and to 1 % of the others."""
    rng = np.random.default_rng(0)
    n_similar = n_words**2 // 200
    rows, columns = rng.integers(0, n_words, (2, n_similar))
    half = sp.coo_array(
        (rng.random(n_similar, np.float32), (rows, columns)), shape=(n_words, n_words)
    )
    return (half + half.T + sp.eye_array(n_words, dtype=np.float32)).tocsr()


def as_lists(captions: EncodedCaptions) -> list[list[list[int]]]:
    """Word ids of every caption of every image, for the references."""
    words = np.split(captions.word_ids, captions.caption_offsets[1:-1])
    bounds = pairwise(captions.image_offsets)
    return [[own.tolist() for own in words[start:end]] for start, end in bounds]


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two views of n samples that share ten of their twenty directions."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(n, 10))
    x, y = (np.hstack([shared, rng.normal(size=(n, 10))]) for _ in range(2))
    return x, y


def rbf(X: np.ndarray, Y: np.ndarray, width: float = 40.0) -> np.ndarray:
    squares = (X**2).sum(axis=1)[:, np.newaxis] + (Y**2).sum(axis=1) - 2.0 * X @ Y.T
    return np.exp(-np.maximum(squares, 0.0) / width)
