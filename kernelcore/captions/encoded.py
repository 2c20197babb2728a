"""Encoded captions: ragged arrays of word ids, the input of every text kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_integer_array, check_integer
from kernelcore._ragged import Record, column, offsets_of, row_offsets, size


@dataclass(frozen=True, eq=False, repr=False)
class EncodedCaptions(Record):
    """Word ids of the captions of a list of images (or of single captions, one per image).

    The ids of caption c are ``word_ids[caption_offsets[c]:caption_offsets[c + 1]]``; the
    captions of image i are ``image_offsets[i] .. image_offsets[i + 1] - 1``. A caption may
    be empty (all its words were stop words) and an image may have no caption. The arrays
    are copied, checked once and then read-only, so that compiled code may trust them.

    Attributes
    ----------
    word_ids : ndarray of int32, shape (n_tokens,)
        Ids >= 0 are rows of the vocabulary. Negative ids stand for words outside it: equal
        words have equal ids in every call and process.
    caption_offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption in `word_ids`, and the end of the last.
    image_offsets : ndarray of int64, shape (n_images + 1,)
        Start of each image's captions, and the end of the last.
    caption_numbers : ndarray of int64, shape (n_captions,)
        Number of each caption within its image, as in
        `kernelcore.datasets.records.CaptionedImages`.
    n_words : int
        Size of the vocabulary: every id is below it.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If offsets do not start at 0, fall, or end elsewhere than the array they divide, an
        id is `n_words` or more, or an image has two captions of the same number.

    See Also
    --------
    kernelcore.captions.Vocabulary.encode : Makes one of these from tokenised captions.

    Examples
    --------
    >>> from kernelcore.captions import EncodedCaptions
    >>> captions = EncodedCaptions.from_lists([[[0, 1], [1, 2, 2]], [[2]]])
    >>> len(captions), captions.n_captions, captions.n_words
    (2, 3, 3)
    >>> captions.with_caption(0).word_ids
    array([0, 1, 2], dtype=int32)
    """

    _kind: ClassVar[str] = "encoded captions"
    _axis: ClassVar[str] = "image"

    word_ids: npt.NDArray[np.int32] = field(metadata=column("token", np.int32, below="n_words"))
    caption_offsets: npt.NDArray[np.int64] = field(metadata=row_offsets("caption", "token"))
    image_offsets: npt.NDArray[np.int64] = field(metadata=row_offsets("image", "caption"))
    caption_numbers: npt.NDArray[np.int64] = field(metadata=column("caption", np.int64))
    n_words: int = field(metadata=size())

    def __len__(self) -> int:
        return len(self.image_offsets) - 1

    @property
    def n_captions(self) -> int:
        """Number of captions of all images together."""
        return len(self.caption_offsets) - 1

    @classmethod
    def from_lists(
        cls,
        captions: Sequence[Sequence[Sequence[int]]],
        *,
        caption_numbers: Sequence[Sequence[int]] | None = None,
        n_words: int | None = None,
    ) -> EncodedCaptions:
        """Build the arrays from nested lists: images, their captions, the captions' words.

        Parameters
        ----------
        captions : nested sequence
            Word ids of each caption of each image.
        caption_numbers : nested sequence of int, optional
            Number of each caption within its image; the default counts from 0.
        n_words : int, optional
            Size of the vocabulary; the default is one more than the largest id.

        Returns
        -------
        EncodedCaptions

        Raises
        ------
        TypeError
            If the nesting is not images, captions, words or a word has the wrong type.
        ValueError
            If the result would not be valid; see the class.
        """
        per_image = [len(image) for image in captions]
        flat = list(chain.from_iterable(captions))
        try:
            ids = list(chain.from_iterable(flat))
        except TypeError:
            raise TypeError("captions must be nested as images, captions, word ids") from None
        word_ids = as_integer_array("captions", ids, ndim=1, dtype=np.int32)
        if caption_numbers is None:
            numbers = [number for count in per_image for number in range(count)]
        else:
            if [len(image) for image in caption_numbers] != per_image:
                raise ValueError(
                    "caption_numbers must have one entry per caption of each image"
                )
            numbers = list(chain.from_iterable(caption_numbers))
        if n_words is None:
            n_words = max(int(word_ids.max(initial=-1)) + 1, 0)
        return cls(
            word_ids=word_ids,
            caption_offsets=offsets_of([len(caption) for caption in flat]),
            image_offsets=offsets_of(per_image),
            caption_numbers=np.array(numbers, dtype=np.int64),
            n_words=n_words,
        )

    def with_caption(self, number: int) -> EncodedCaptions:
        """Return each image with its caption of this number alone."""
        number = check_integer("number", number)
        chosen = np.flatnonzero(self.caption_numbers == number)
        images = np.searchsorted(self.image_offsets, chosen, side="right") - 1
        if len(chosen) < len(self):
            lacking = np.setdiff1d(np.arange(len(self)), images)
            raise ValueError(
                f"every image must have a caption number {number}, and {len(lacking)} have "
                f"none, the first at position {lacking[0]}"
            )
        taken = self._taken("caption", chosen)
        return self._replaced(**taken, image_offsets=np.arange(len(self) + 1))

    def caption_as_image(self) -> EncodedCaptions:
        """Return every caption as an image of its own, in the order they stand."""
        return self._replaced(image_offsets=np.arange(self.n_captions + 1))

    def _check(self) -> None:
        images = np.repeat(np.arange(len(self)), np.diff(self.image_offsets))
        order = np.lexsort((self.caption_numbers, images))
        images, numbers = images[order], self.caption_numbers[order]
        twice = np.flatnonzero((np.diff(images) == 0) & (np.diff(numbers) == 0))
        if twice.size:
            raise ValueError(
                "caption_numbers must be unique within an image, got number "
                f"{numbers[twice[0]]} twice for the image at position {images[twice[0]]}"
            )


def numbered(words: Array, n_words: int) -> tuple[Array, int]:
    """Give unknown words, whose ids are negative, numbers behind the vocabulary."""
    words, is_unknown = words.copy(), words < 0
    unknown, places = np.unique(words[is_unknown], return_inverse=True)
    words[is_unknown] = n_words + places
    return words, n_words + len(unknown)


class WordCounts(NamedTuple):
    """Counts of the words of images, as rows of a CSR matrix.

    No array of SciPy: to import those was a fifth of the start of a search.
    """

    offsets: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    counts: npt.NDArray[np.float64]
    n_words: int


def count_words(words: Array, starts: Array, n_words: int) -> WordCounts:
    """Count the words of each image, which begin at `starts`."""
    n_images = len(starts) - 1
    owners = np.repeat(np.arange(n_images), np.diff(starts))
    places, counts = np.unique(owners * n_words + words, return_counts=True)
    offsets = np.searchsorted(places, np.arange(n_images + 1) * n_words)
    columns = (places % n_words).astype(np.int32)
    return WordCounts(offsets, columns, counts.astype(np.float64), n_words)
