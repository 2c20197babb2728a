"""What is drawn: numbers at the ends of their range, arrays in any layout, captions, texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernelcore import _core

# Ends of vectors, panels and blocks, and what stands beside them.
EDGES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513)
THREADS = st.integers(1, 3)
ISAS = st.sampled_from(_core.supported_isas())
TIES = st.sampled_from(["mean", "min", "max", "ordinal"])
FLOATS = st.sampled_from([np.float32, np.float64])


def sizes(most: int, least: int = 0) -> st.SearchStrategy[int]:
    """Lengths of an axis, often at the end of a block."""
    edges = [edge for edge in EDGES if least <= edge <= most]
    return st.integers(least, min(most, 9)) | st.sampled_from(edges) | st.integers(least, most)


def counts(dtype: Any) -> st.SearchStrategy[int]:
    """Unsigned integers, often about the end of a type."""
    most = int(np.iinfo(dtype).max)
    ends = [n for n in (0, 1, 254, 255, 256, 65535, 65536, most - 1, most) if n <= most]
    return st.sampled_from(ends) | st.integers(0, most)


def reals(dtype: Any, *, signed: bool = True) -> st.SearchStrategy[float]:
    """Finite numbers: zeros, subnormal and tiny ones, small integers, large ones."""
    info = np.finfo(dtype)
    ends = [0.0, -0.0, info.smallest_subnormal, info.tiny, info.eps, 1 - info.eps, 1.0, 1.5]
    large = float(info.max) / 2**20  # so that a million of them can be added
    drawn = st.floats(-large if signed else 0.0, large, width=info.bits)
    small = st.integers(-3 if signed else 0, 3).map(float)
    return small | st.sampled_from([*map(float, ends), large]) | drawn


@st.composite
def arrays(draw: Any, dtype: Any, shape: Any, elements: st.SearchStrategy[Any]) -> Any:
    """Few drawn numbers in random places, so that many are equal, or parts of them."""
    few = np.array(draw(st.lists(elements, min_size=1, max_size=6)), dtype)
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    found = rng.choice(few, shape)
    if draw(st.booleans()):
        found = (found * rng.random(shape)).astype(dtype)
    return found


def misaligned(array: Any) -> Any:
    moved = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


LAYOUTS = st.sampled_from(
    [
        np.array,
        misaligned,
        np.asfortranarray,
        lambda array: np.broadcast_to(array, array.shape),  # read-only
        lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
        lambda array: np.ascontiguousarray(array[..., ::-1])[..., ::-1],
        lambda array: array.astype(array.dtype.newbyteorder()),
    ]
)


def outs(like: Any) -> st.SearchStrategy[Any]:
    """None, or an array that a result like this one may be written into."""
    rubbish = np.nan if like.dtype.kind == "f" else 7
    return st.none() | st.builds(lambda: np.full(like.shape, rubbish, like.dtype))


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Run the block on one of this processor's instruction sets."""
    before = _core.active_isa()
    _core.select_isa(name)
    try:
        yield
    finally:
        _core.select_isa(before)


def captions(n_words: int, longest: int = 7) -> st.SearchStrategy[list[list[list[int]]]]:
    """Captions of images as ids; those below 0 are of words outside the vocabulary."""
    caption = st.lists(st.integers(-2, n_words - 1), max_size=longest)
    return st.lists(st.lists(caption, max_size=2), max_size=4)


ODD_TEXTS = (
    "\u202eA dog", "😀", "x" * 3000, '"a", b', "NaN", "#", "0", "a/b", "\ufeff", "e\u0301",
)  # fmt: skip
HALVES = ("\ud800", "\udce9.jpg")  # of pairs: no file holds them
ANY_TEXT = st.text(max_size=9) | st.sampled_from(ODD_TEXTS + HALVES)
SENTENCES = (  # of one line
    (st.text(max_size=20) | st.sampled_from(ODD_TEXTS))
    .map(lambda text: text.replace("\n", " ").strip())
    .filter(bool)
)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="/#"),
    min_size=1,
    max_size=5,
)
