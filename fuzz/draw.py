"""What targets draw: sizes at the ends of blocks, hostile values, odd layouts, captions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore.captions import EncodedCaptions

Rng = np.random.Generator
Array = npt.NDArray[Any]
Layout = Callable[[Array, Path], Array]
Nested = list[list[list[int]]]  # images, their captions, the captions' words

# Ends of vectors, panels, tiles and blocks, and primes beside them.
EDGES = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 61, 63, 64, 65, 127, 128, 129),
    *(255, 256, 257, 509, 511, 512, 513, 1021, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097),
)


def size(rng: Rng, most: int, least: int = 0) -> int:
    """Draw a number in [least, most], often one at the end of a block, mostly a small one."""
    most = max(most, least)
    if rng.random() < 0.6:
        most = min(most, max(least, 9))
    if rng.random() < 0.6:
        edges = [edge for edge in EDGES if least <= edge <= most]
        if edges:
            return int(pick(rng, edges))
    return int(rng.integers(least, most + 1))


def chance(rng: Rng, probability: float) -> bool:
    """Draw True with this probability."""
    return bool(rng.random() < probability)


def pick(rng: Rng, options: Sequence[Any]) -> Any:
    """Draw one of the options."""
    return options[int(rng.integers(len(options)))]


def non_negative(rng: Rng, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Draw histograms: spread, sparse, tied, tiny, of all magnitudes, equal, or zero."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return _counts(rng, shape, kind)
    info = np.finfo(kind)
    way = rng.integers(8)
    if way == 0:
        values = np.full(shape, rng.random())
    elif way == 1:
        values = rng.integers(0, 4, shape) / 2.0
    elif way == 2:
        values = rng.random(shape) * (rng.random(shape) < 0.1)
    elif way == 3:  # subnormal and next to it
        values = rng.integers(0, 2**20, shape) * float(info.smallest_subnormal)
    elif way == 4:
        values = 10.0 ** rng.uniform(np.log10(info.tiny), np.log10(info.max) - 8, shape)
    elif way == 5:
        values = np.zeros(shape)
    else:
        values = rng.random(shape)
    result = np.asarray(values, kind)
    if chance(rng, 0.3):
        result = np.where(result == 0, np.array(-0.0, kind), result)
    return result


def _counts(rng: Rng, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    largest = min(int(np.iinfo(kind).max), 2**32 - 1)
    most = pick(rng, [1, 3, 255, 256, 65535, 65536, largest])
    values = rng.integers(0, min(most, largest) + 1, shape)
    if chance(rng, 0.4):  # few beyond a byte
        values = np.where(rng.random(shape) < 1 / 400, values, values % 256)
    if chance(rng, 0.1):
        values = np.full(shape, min(most, largest))
    return values.astype(kind)


def real(rng: Rng, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Draw values of either sign: spread, tied, of all magnitudes, tiny, equal or zero."""
    kind = np.dtype(dtype)
    info = np.finfo(kind)
    way = rng.integers(8)
    if way == 0:
        values = np.full(shape, rng.normal())
    elif way <= 2:
        values = rng.integers(-3, 4, shape).astype(float)
    elif way == 3:
        values = rng.normal(size=shape) * 10.0 ** rng.uniform(-12, 12, shape)
    elif way == 4:
        values = rng.integers(-(2**20), 2**20, shape) * float(info.smallest_subnormal)
    elif way == 5:
        values = rng.normal(size=shape) * float(info.max) ** rng.uniform(-0.9, 0.9)
    else:
        values = rng.normal(size=shape)
    return np.asarray(values, kind)


def laid_out(rng: Rng, array: Array, folder: Path) -> Array:
    """Return an equal array in a layout that callers have: strided, swapped, mapped, ..."""
    layout: Layout = pick(rng, _LAYOUTS)
    return layout(array, folder)


def _plain(array: Array, folder: Path) -> Array:
    return np.array(array, order="C")


def _read_only(array: Array, folder: Path) -> Array:
    copied = np.array(array, order="C")
    copied.flags.writeable = False
    return copied


def _by_columns(array: Array, folder: Path) -> Array:
    return np.array(array, order="F")


def _strided(array: Array, folder: Path, step: int = 2) -> Array:
    wide = np.zeros([extent * abs(step) for extent in array.shape], array.dtype)
    view: Array = wide[(slice(None, None, step),) * array.ndim]
    view[...] = array
    return view


def _backwards(array: Array, folder: Path) -> Array:
    return _strided(array, folder, -1)


def _byte_swapped(array: Array, folder: Path) -> Array:
    return array.astype(array.dtype.newbyteorder())


def _misaligned(array: Array, folder: Path) -> Array:
    raw = np.empty(array.nbytes + 1, np.uint8)[1:]
    moved = raw.view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def _mapped(array: Array, folder: Path) -> Array:
    if not array.size:
        return _plain(array, folder)
    path = folder / f"{len(list(folder.iterdir()))}.map"
    mapped: Array = np.memmap(path, array.dtype, "w+", shape=array.shape)
    mapped[...] = array
    return mapped


_LAYOUTS: tuple[Layout, ...] = (
    *(_plain, _read_only, _by_columns, _strided, _backwards, _byte_swapped, _misaligned),
    _mapped,
)


def output(rng: Rng, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array | None:
    """Return None, or an array full of NaN or of large numbers to write the result into."""
    if chance(rng, 0.7):
        return None
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else np.iinfo(kind).max, kind)


@contextmanager
def instruction_set(rng: Rng) -> Iterator[str]:
    """Choose one of this processor's instruction sets for as long as the block lasts."""
    before = _core.active_isa()
    name = pick(rng, _core.supported_isas())
    _core.select_isa(name)
    try:
        yield name
    finally:
        _core.select_isa(before)


def threads(rng: Rng) -> int:
    """Draw a number of threads."""
    return int(rng.integers(1, 4))


def captions(rng: Rng, n_words: int, *, longest: int, most_images: int) -> Nested:
    """Draw images of few captions; words below 0 are outside the vocabulary."""
    n_unknown = int(rng.integers(0, 3))
    if n_words == 0:
        n_unknown = max(1, n_unknown)
    longest = size(rng, longest)
    most_captions = pick(rng, [1, 1, 2, 3, 5])
    repeated = chance(rng, 0.1)  # the same word again and again
    images: Nested = []
    for _ in range(size(rng, most_images)):
        image = []
        for _ in range(rng.integers(0 if chance(rng, 0.2) else 1, most_captions + 1)):
            length = int(rng.integers(0, longest + 1)) if chance(rng, 0.8) else longest
            words = rng.integers(-n_unknown, n_words, 1 if repeated else length)
            image.append(np.resize(words, length).tolist())
        images.append(image)
    if len(images) > 1 and chance(rng, 0.2):
        images[-1] = images[0]
    return images


def encoded(rng: Rng, images: Nested, n_words: int, folder: Path) -> EncodedCaptions:
    """Encode `images`, from arrays of odd layout."""
    flat = list(itertools.chain.from_iterable(images))
    parts = {
        "word_ids": np.array(list(itertools.chain.from_iterable(flat)), np.int32),
        "caption_offsets": np.cumsum([0, *map(len, flat)]),
        "image_offsets": np.cumsum([0, *map(len, images)]),
        "caption_numbers": np.array([c for image in images for c in range(len(image))], int),
    }
    odd = {name: laid_out(rng, array, folder) for name, array in parts.items()}
    return EncodedCaptions(**odd, n_words=n_words)
