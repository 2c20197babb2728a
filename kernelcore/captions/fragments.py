"""Captions as ragged arrays of pairs of related words."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import reading
from kernelcore._records import CheckedRecord, owned
from kernelcore._validation import as_integer_array, check_indices, check_integer
from kernelcore.captions.encoded import check_offsets, offsets_of, take_ragged

_KIND = "sentence fragments"
_IDS = ("relation_ids", "first_ids", "second_ids")


@dataclass(frozen=True, eq=False)
class SentenceFragments(CheckedRecord):
    """Fragments of a list of captions: a relation and the ids of two words each.

    The fragments of caption c are ``offsets[c] .. offsets[c + 1] - 1``. A caption may have
    none. The arrays are checked once and then read-only.

    Attributes
    ----------
    relation_ids : ndarray of int32, shape (n_fragments,)
        Ids in [0, n_relations).
    first_ids, second_ids : ndarray of int32, shape (n_fragments,)
        Head and dependent, or the words in their order. Ids >= 0 are rows of a vocabulary;
        negative ids stand for words outside it, as in `EncodedCaptions`.
    offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption's fragments, and the end of the last.
    n_relations, n_words : int
        Numbers of relations and of words in the vocabulary.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the arrays differ in length, an id is out of range, or `offsets` does not start at
        0, falls, or ends elsewhere than the fragments.

    See Also
    --------
    kernelcore.captions.FragmentExtractor : Makes them from raw captions.

    Examples
    --------
    >>> from kernelcore.captions import SentenceFragments
    >>> fragments = SentenceFragments(
    ...     relation_ids=[0, 1, 0], first_ids=[2, 0, 1], second_ids=[1, 2, 0],
    ...     offsets=[0, 2, 2, 3], n_relations=2, n_words=3,
    ... )
    >>> fragments
    SentenceFragments(3 captions, 3 fragments, n_relations=2, n_words=3)
    >>> fragments.select([2, 0]).first_ids
    array([1, 2, 0], dtype=int32)
    """

    relation_ids: npt.NDArray[np.int32]
    first_ids: npt.NDArray[np.int32]
    second_ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    n_relations: int
    n_words: int

    def __post_init__(self) -> None:
        for name in (*_IDS, "offsets"):
            dtype = np.int64 if name == "offsets" else np.int32
            array = as_integer_array(name, getattr(self, name), ndim=1, dtype=dtype)
            object.__setattr__(self, name, owned(array))
        for name in ("n_relations", "n_words"):
            number = check_integer(name, getattr(self, name), minimum=0, maximum=2**31)
            object.__setattr__(self, name, number)
        for name in _IDS:
            array = getattr(self, name)
            if len(array) != len(self.relation_ids):
                raise ValueError(
                    f"{name} must have one entry per fragment ({len(self.relation_ids)}), "
                    f"got {len(array)}"
                )
        check_offsets("offsets", self.offsets, len(self.relation_ids))
        check_indices("relation_ids", self.relation_ids, self.n_relations)
        for name in ("first_ids", "second_ids"):
            largest = getattr(self, name).max(initial=-1)
            if largest >= self.n_words:
                raise ValueError(
                    f"{name} must be below n_words ({self.n_words}), got {largest}"
                )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return (
            f"SentenceFragments({len(self)} captions, {len(self.relation_ids)} fragments, "
            f"n_relations={self.n_relations}, n_words={self.n_words})"
        )

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of fragments of each caption."""
        return np.diff(self.offsets)

    def select(self, captions: npt.ArrayLike) -> SentenceFragments:
        """Return the captions at these positions, in that order; one may come repeatedly."""
        positions, offsets = take_ragged(
            self.offsets, check_indices("captions", captions, len(self))
        )
        return SentenceFragments(
            self.relation_ids[positions],
            self.first_ids[positions],
            self.second_ids[positions],
            offsets,
            n_relations=self.n_relations,
            n_words=self.n_words,
        )

    def without_unknown(self) -> SentenceFragments:
        """Return the same captions without fragments that have a word of no id."""
        known = (self.first_ids >= 0) & (self.second_ids >= 0)
        if known.all():
            return self
        return SentenceFragments(
            self.relation_ids[known],
            self.first_ids[known],
            self.second_ids[known],
            offsets_of(known)[self.offsets],
            n_relations=self.n_relations,
            n_words=self.n_words,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays as a safetensors file, whole or not at all."""
        arrays = {name: getattr(self, name) for name in (*_IDS, "offsets")}
        sizes = {"n_relations": self.n_relations, "n_words": self.n_words}
        save_tensors(path, _KIND, arrays, sizes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SentenceFragments:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(path):
            arrays, sizes = load_tensors(path, _KIND)
            return cls(
                **arrays.exactly(*_IDS, "offsets"), **sizes.exactly("n_relations", "n_words")
            )
