"""Tables that minibatches are taken from: image regions, sentences, documents.

A table holds each item once. Regions, the words of sentences, and the sentences and images of
documents belong to owners; offsets tell where the items of each owner start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernelcore._check import Array, as_real_array, check_finite, check_integer
from kernelcore._ragged import offsets_of, take_ragged
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.captions.tokens import tokenize
from kernelcore.datasets import Document
from kernelcore.images import RegionFeatures, square_roots

Offsets: TypeAlias = npt.NDArray[np.int64]
"""Start of the items of each owner, and the end of the last, shape (n_owners + 1,)."""

Rows: TypeAlias = npt.NDArray[np.int64]
"""Positions of rows in a table."""

Regions: TypeAlias = Literal["all", "first", "mean"]
"""Which regions represent an image: all, the first one, or their mean."""

REGIONS = ("all", "first", "mean")

Tokenize: TypeAlias = Callable[[str], list[str]]
"""Splits a sentence into words."""

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
        self, images: npt.NDArray[np.intp], device: torch.device
    ) -> tuple[Tensor, Offsets]:
        """Return all rows of some images, and their offsets."""
        rows, offsets = take_ragged(self.offsets, images)
        return self._at(rows, device), offsets

    def draw(
        self,
        images: npt.NDArray[np.intp],
        n_drawn: int | None,
        device: torch.device,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Offsets]:
        """Return at most `n_drawn` rows of each image: the first one and a random sample.

        All rows are returned if `n_drawn` or `generator` is None.
        """
        if n_drawn is None or generator is None:
            return self.take(images, device)
        rows, offsets = take_ragged(self.offsets, images)
        keys = torch.rand(len(rows), generator=generator, device=generator.device).cpu().numpy()
        keys[offsets[:-1]] = -1
        owners = np.repeat(np.arange(len(images)), np.diff(offsets))
        positions = np.arange(len(rows)) - offsets[owners]
        drawn = np.lexsort((keys, owners))[positions < n_drawn]
        counts = np.minimum(np.diff(offsets), n_drawn)
        return self._at(rows[np.sort(drawn)], device), offsets_of(counts)

    def _at(self, rows: npt.NDArray[np.intp], device: torch.device) -> Tensor:
        return torch.from_numpy(self._values(rows)).to(device)

    def _values(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        values = np.ascontiguousarray(self.rows[rows], dtype=np.float32)
        return square_roots(values) if self.rooted else values

    def select(self, images: npt.NDArray[np.intp]) -> RegionTable:
        """Return a table of some images, in this order."""
        rows, offsets = take_ragged(self.offsets, images)
        return RegionTable(self.rows[rows], offsets, self.rooted)

    def check_width(self, name: str, n_features: int) -> None:
        """Raise unless each row has so many features."""
        if self.rows.shape[1] != n_features:
            raise ValueError(
                f"{name} must have {n_features} features, got shape {self.rows.shape[1:]}"
            )

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
    def from_captions(cls, captions: EncodedCaptions, *, max_tokens: int) -> Sentences:
        """Make a table of captions, each truncated to `max_tokens` words.

        Parameters
        ----------
        captions : EncodedCaptions
            Captions of all images, one after another.
        max_tokens : int

        Returns
        -------
        Sentences

        Raises
        ------
        TypeError, ValueError
            If `max_tokens` is not an integer >= 1.

        Examples
        --------
        >>> from kernelcore.captions import EncodedCaptions
        >>> from kernelcore.deep import Sentences
        >>> captions = EncodedCaptions.from_lists([[[0, 1, -5]], [[2]]])
        >>> Sentences.from_captions(captions, max_tokens=2).word_ids
        tensor([[1, 2],
                [3, 0]])
        """
        width = check_integer("max_tokens", max_tokens, minimum=1)
        starts, ends = captions.caption_offsets[:-1], captions.caption_offsets[1:]
        lengths = np.minimum(ends - starts, width)
        positions = np.arange(int(lengths.max(initial=1)))
        mask = positions < lengths[:, np.newaxis]
        table = np.full(mask.shape, UNKNOWN, np.int64)
        rows = (starts[:, np.newaxis] + positions)[mask]
        table[mask] = np.maximum(captions.word_ids[rows], -1) + 1
        return cls(torch.from_numpy(table), torch.from_numpy(np.maximum(lengths, 1)))

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        vocabulary: Vocabulary,
        *,
        max_tokens: int,
        tokenize: Tokenize = tokenize,
    ) -> Sentences:
        """Tokenise raw sentences and look their words up in a vocabulary."""
        captions = vocabulary.encode([list(map(tokenize, texts))])
        return cls.from_captions(captions, max_tokens=max_tokens)

    def take(self, rows: Tensor) -> Sentences:
        """Return the sentences at these positions, without padding that all of them have."""
        lengths = self.lengths[rows]
        width = int(lengths.max()) if len(lengths) else 1
        return Sentences(self.word_ids[rows.to(self.word_ids.device), :width], lengths)

    def to(self, device: torch.device | str) -> Sentences:
        """Return the sentences with their word ids on a device."""
        return Sentences(self.word_ids.to(device), self.lengths)


class Side(NamedTuple):
    """The sentences, or the images, of some documents.

    Attributes
    ----------
    distinct : Tensor of int64
        Rows of the table, each once.
    positions : Tensor of int64, shape (n_members,)
        Position in `distinct` of each member, document by document.
    offsets : ndarray of int64, shape (n_documents + 1,)
        Start of the members of each document.
    """

    distinct: Tensor
    positions: Tensor
    offsets: Offsets

    @classmethod
    def of(cls, members: Sequence[Rows]) -> Side:
        """Join the members of some documents and find the distinct ones."""
        distinct, positions = np.unique(np.concatenate(members), return_inverse=True)
        return cls(
            torch.from_numpy(distinct),
            torch.from_numpy(positions),
            offsets_of([len(rows) for rows in members]),
        )


@dataclass(frozen=True)
class DocumentTable:
    """Sentences and image features of documents.

    Attributes
    ----------
    sentences : Sentences
        The distinct sentences.
    features : Tensor of float32, shape (n_images, n_features)
        Features of the distinct images.
    sentence_rows, image_rows : tuple of ndarray of int64
        Rows of the sentences and of the images of each document.
    """

    sentences: Sentences
    features: Tensor
    sentence_rows: tuple[Rows, ...]
    image_rows: tuple[Rows, ...]

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        features: Mapping[str, npt.ArrayLike],
        encode: Callable[[Sequence[str]], Sentences],
        device: torch.device,
    ) -> DocumentTable:
        """Make a table; `encode` turns raw sentences into word ids."""
        texts = {text: row for row, text in enumerate(_distinct(documents, "sentences"))}
        images = {name: row for row, name in enumerate(_distinct(documents, "images"))}
        return cls(
            encode(list(texts)).to(device),
            torch.from_numpy(_feature_matrix(list(images), features)).to(device),
            tuple(np.array([texts[text] for text in d.sentences]) for d in documents),
            tuple(np.array([images[name] for name in d.images]) for d in documents),
        )

    def __len__(self) -> int:
        return len(self.sentence_rows)

    def link_scores(self, sentences: Tensor, images: Tensor) -> list[npt.NDArray[np.float32]]:
        """Return the cosines within each document, from vectors of the distinct items."""
        rows, cols = sentences.cpu().numpy(), images.cpu().numpy()
        return [
            rows[own] @ cols[shown].T
            for own, shown in zip(self.sentence_rows, self.image_rows, strict=True)
        ]


def _distinct(documents: Sequence[Document], part: str) -> list[str]:
    return list(dict.fromkeys(entry for d in documents for entry in getattr(d, part)))


def _feature_matrix(
    images: Sequence[str], features: Mapping[str, npt.ArrayLike]
) -> npt.NDArray[np.float32]:
    """Features of the images as rows of a matrix."""
    missing = [name for name in images if name not in features]
    if missing:
        raise ValueError(
            f"features must have a vector for every image, got none for {len(missing)} "
            f"images, such as {missing[0]!r}"
        )
    matrix = as_real_array("features", [np.asarray(features[name]) for name in images], ndim=2)
    return check_finite("features", matrix.astype(np.float32, copy=False))


def as_texts(captions: Any) -> Sequence[str]:
    """Return captions if they are a sequence of at least one string."""
    if isinstance(captions, str) or not isinstance(captions, Sequence):
        raise TypeError(f"captions must be a sequence of strings, got {captions!r:.80}")
    for text in captions:
        if not isinstance(text, str):
            raise TypeError(f"captions must hold strings, got {text!r:.80}")
    if not captions:
        raise ValueError("captions must hold at least one caption")
    return captions


def as_documents(name: str, documents: Any) -> tuple[Document, ...]:
    """Return a sequence of at least one document as a tuple."""
    members = tuple(documents)
    for member in members:
        if not isinstance(member, Document):
            raise TypeError(f"{name} must hold documents, got {member!r}")
    if not members:
        raise ValueError(f"{name} must hold at least one document, got none")
    return members


def arrays_of(captions: Any) -> list[Array]:
    """Return the arrays of encoded captions: of a named tuple of tensors, or of a record."""
    values = captions if isinstance(captions, tuple) else vars(captions).values()
    arrays = [v.cpu().numpy() if isinstance(v, Tensor) else v for v in values]
    return [array for array in arrays if isinstance(array, np.ndarray)]
