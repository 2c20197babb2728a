"""Tables that minibatches are taken from: regions of images, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kernelcore._check import Array, as_real_array, check_finite
from kernelcore._ragged import offsets_of, take_ragged
from kernelcore.captions import Vocabulary
from kernelcore.images import RegionFeatures, square_roots

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Start of the items of each owner, and the end of the last, shape (n_owners + 1,)."""

Regions: TypeAlias = Literal["all", "first", "mean"]
"""Which regions represent an image: all, the first one, or their mean."""

UNKNOWN = 0
"""Id of padding and of every word outside the vocabulary. Known words have ids from 1 on."""

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class RegionTable:
    """Features of the regions of images, in memory or in a mapped file.

    Attributes
    ----------
    rows : ndarray of shape (n_regions, ...)
        Features, or pixels, of each region.
    offsets : ndarray of int64, shape (n_images + 1,)
        Start of the regions of each image.
    rooted : bool
        Whether `take` and `draw` return `square_roots` of the features.
    """

    rows: Array
    offsets: Offsets
    rooted: bool = False

    @classmethod
    def of(cls, name: str, images: Any, regions: Regions) -> RegionTable:
        """Make a table of `RegionFeatures`, or of an array with one row per image.

        `regions` says whether all regions of an image are kept, the first one, or their mean.
        """
        if isinstance(images, RegionFeatures):
            table = cls(images.features, images.offsets)
        else:
            array = np.asarray(images)
            if array.ndim < 2 or array.dtype.kind not in "fiu":
                raise ValueError(
                    f"{name} must be RegionFeatures or an array of one row of numbers per "
                    f"image, got dtype {array.dtype} and shape {array.shape}"
                )
            if array.ndim == 2:
                array = check_finite(name, as_real_array(name, array, ndim=2))
            table = cls(array, np.arange(len(array) + 1))
        if not len(table) or (np.diff(table.offsets) < 1).any():
            raise ValueError(f"{name} must hold at least one image, each with a region")
        if regions == "all" or table.rows.ndim > 2:  # a photo in pixels is one region
            return table
        if regions == "first":
            return cls(table.rows[table.offsets[:-1]], np.arange(len(table) + 1))
        counts = np.diff(table.offsets)
        sums = np.add.reduceat(table.rows, table.offsets[:-1], axis=0)
        return cls((sums / counts[:, None]).astype(np.float32), np.arange(len(table) + 1))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(
        self,
        images: npt.NDArray[np.intp],
        device: torch.device,
        n_drawn: int | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Offsets]:
        """Return the rows of some images, and their offsets.

        With `n_drawn` and a generator, these are at most `n_drawn` rows of each image: the
        first one and a random sample.
        """
        rows, offsets = take_ragged(self.offsets, images)
        if n_drawn is not None and generator is not None:
            drawn = torch.rand(len(rows), generator=generator, device=generator.device)
            keys = drawn.cpu().numpy()
            keys[offsets[:-1]] = -1
            counts = np.diff(offsets)
            owners = np.repeat(np.arange(len(images)), counts)
            is_drawn = np.arange(len(rows)) - offsets[owners] < n_drawn
            rows = rows[np.sort(np.lexsort((keys, owners))[is_drawn])]
            offsets = offsets_of(np.minimum(counts, n_drawn))
        return torch.from_numpy(self._values(rows)).to(device), offsets

    def _values(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        values = np.ascontiguousarray(self.rows[rows], dtype=np.float32)
        return square_roots(values) if self.rooted else values

    def select(self, images: npt.NDArray[np.intp]) -> RegionTable:
        """Return a table of some images, in this order."""
        rows, offsets = take_ragged(self.offsets, images)
        return RegionTable(self.rows[rows], offsets, self.rooted)

    def moments(
        self, images: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return mean and standard deviation of each feature over the regions of some images.

        The standard deviation of a constant feature is reported as 1.
        """
        rows, _ = take_ragged(self.offsets, images)
        total, squares = (np.zeros(self.rows.shape[1]) for _ in range(2))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = self._values(rows[start : start + _ROWS_AT_ONCE]).astype(np.float64)
            total += part.sum(axis=0)
            squares += (part**2).sum(axis=0)
        mean = check_finite("features of images", total / len(rows))
        scale = np.sqrt(np.maximum(squares / len(rows) - mean**2, 0))
        return mean.astype(np.float32), np.where(scale > 1e-6, scale, 1).astype(np.float32)


class Sentences(NamedTuple):
    """Sentences as a padded table of word ids, the input of sentence encoders.

    Attributes
    ----------
    word_ids : Tensor of int64, shape (n_sentences, n_tokens)
        0 stands for padding and for words outside the vocabulary.
    lengths : Tensor of int64, shape (n_sentences,)
        Number of words of each sentence, at least 1: an empty sentence is stored as one
        unknown word. Always on the CPU.
    """

    word_ids: Tensor
    lengths: Tensor

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[str]],
        vocabulary: Vocabulary,
        *,
        max_tokens: int,
    ) -> Sentences:
        """Look the words of sentences up in a vocabulary."""
        known = vocabulary.index
        rows = [
            torch.tensor(
                [known.get(word, UNKNOWN - 1) + 1 for word in text[:max_tokens]] or [UNKNOWN]
            )
            for text in texts
        ]
        lengths = torch.tensor([len(row) for row in rows])
        return cls(pad_sequence(rows, batch_first=True, padding_value=UNKNOWN), lengths)

    def take(self, rows: Tensor) -> Sentences:
        """Return the sentences at these positions, without padding that all of them have."""
        lengths = self.lengths[rows]
        width = int(lengths.max()) if len(lengths) else 1
        return Sentences(self.word_ids[rows.to(self.word_ids.device), :width], lengths)

    def to(self, device: torch.device | str) -> Sentences:
        """Return the sentences with their word ids on a device."""
        return Sentences(self.word_ids.to(device), self.lengths)
