"""Dependency trees of captions in ragged arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._files import load_tensors, save_tensors
from kernelcore._progress import Progress, reporting
from kernelcore._reading import reading
from kernelcore._validation import (
    CheckedRecord,
    as_integer_array,
    check_indices,
    check_integer,
    owned,
)
from kernelcore.captions.encoded import check_offsets, offsets_of, take_ragged
from kernelcore.captions.normalize import SMALL_PIPELINE, checked_captions, parse
from kernelcore.captions.vocabulary import Vocabulary

_KIND = "sentence trees"
_ARRAYS = ("word_ids", "relation_ids", "heads", "offsets")
_CAPTIONS_PER_REPORT = 500


@dataclass(frozen=True, eq=False)
class SentenceTrees(CheckedRecord):
    """Dependency trees of a list of captions: each word with its relation to its head.

    The words of caption c are ``offsets[c] .. offsets[c + 1] - 1``, in their order. The
    arrays are checked once and then read-only.

    Attributes
    ----------
    word_ids : ndarray of int32, shape (n_words_in_all,)
        Ids >= 0 are rows of a vocabulary; negative ids stand for words outside it.
    relation_ids : ndarray of int32, shape (n_words_in_all,)
        Ids in [0, n_relations) of each word's relation to its head.
    heads : ndarray of int32, shape (n_words_in_all,)
        Position of each word's head within its caption; -1 for the one root.
    offsets : ndarray of int64, shape (n_captions + 1,)
        Start of each caption's words, and the end of the last.
    n_relations, n_words : int
        Numbers of relations and of words in the vocabulary.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the arrays differ in length, an id is out of range, `offsets` do not divide the
        words, or the heads of a caption do not form a tree.

    See Also
    --------
    kernelcore.captions.parse_trees : Makes them from raw captions.

    Examples
    --------
    >>> from kernelcore.captions import SentenceTrees
    >>> trees = SentenceTrees(  # "a dog runs", "cats"
    ...     word_ids=[0, 1, 2, 3], relation_ids=[0, 1, 2, 2], heads=[1, 2, -1, -1],
    ...     offsets=[0, 3, 4], n_relations=3, n_words=4,
    ... )
    >>> trees
    SentenceTrees(2 captions, 4 words, n_relations=3, n_words=4)
    >>> trees.heights
    array([0, 1, 2, 0])
    """

    word_ids: npt.NDArray[np.int32]
    relation_ids: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    n_relations: int
    n_words: int

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            dtype = np.int64 if name == "offsets" else np.int32
            array = as_integer_array(name, getattr(self, name), ndim=1, dtype=dtype)
            object.__setattr__(self, name, owned(array))
        for name in ("n_relations", "n_words"):
            number = check_integer(name, getattr(self, name), minimum=0, maximum=2**31)
            object.__setattr__(self, name, number)
        for name in ("relation_ids", "heads"):
            if len(getattr(self, name)) != len(self.word_ids):
                raise ValueError(
                    f"{name} must have one entry per word ({len(self.word_ids)}), "
                    f"got {len(getattr(self, name))}"
                )
        check_offsets("offsets", self.offsets, len(self.word_ids))
        check_indices("relation_ids", self.relation_ids, self.n_relations)
        if self.word_ids.max(initial=-1) >= self.n_words:
            raise ValueError(
                f"word_ids must be below n_words ({self.n_words}), got {self.word_ids.max()}"
            )
        lengths = np.repeat(self.counts, self.counts)
        if ((self.heads < -1) | (self.heads >= lengths)).any():
            raise ValueError("heads must be positions within their caption, or -1 for a root")
        roots = np.add.reduceat(np.r_[self.heads == -1, False], self.offsets[:-1])
        if (roots[self.counts > 0] != 1).any():
            raise ValueError("heads must name one root in each caption that has words")
        object.__setattr__(self, "_heights", self._find_heights())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return (
            f"SentenceTrees({len(self)} captions, {len(self.word_ids)} words, "
            f"n_relations={self.n_relations}, n_words={self.n_words})"
        )

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Number of words of each caption."""
        return np.diff(self.offsets)

    @property
    def parents(self) -> npt.NDArray[np.int64]:
        """Position of each word's head among the words of all captions; -1 for roots."""
        starts = np.repeat(self.offsets[:-1], self.counts)
        return np.where(self.heads < 0, -1, starts + self.heads)

    @property
    def heights(self) -> npt.NDArray[np.int64]:
        """Length of the longest way from each word down to a leaf: 0 for leaves."""
        heights: npt.NDArray[np.int64] = self._heights  # type: ignore[attr-defined]
        return heights

    def select(self, captions: npt.ArrayLike) -> SentenceTrees:
        """Return the captions at these positions, in that order; one may come repeatedly."""
        positions, offsets = take_ragged(
            self.offsets, check_indices("captions", captions, len(self))
        )
        return SentenceTrees(
            self.word_ids[positions],
            self.relation_ids[positions],
            self.heads[positions],
            offsets,
            n_relations=self.n_relations,
            n_words=self.n_words,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the arrays as a safetensors file, whole or not at all."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        sizes = {"n_relations": self.n_relations, "n_words": self.n_words}
        save_tensors(path, _KIND, arrays, sizes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SentenceTrees:
        """Read a file of `save`; raise ValueError if it is damaged."""
        with reading(path):
            arrays, sizes = load_tensors(path, _KIND)
            return cls(**arrays.exactly(*_ARRAYS), **sizes.exactly("n_relations", "n_words"))

    def _find_heights(self) -> npt.NDArray[np.int64]:
        parents = self.parents
        depths = _depths(parents)
        heights = np.zeros(len(parents), np.int64)
        ends = np.cumsum(np.bincount(depths, minlength=1))
        by_depth = np.argsort(depths, kind="stable")
        for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):  # the deepest first
            children = by_depth[start:end]
            np.maximum.at(heights, parents[children], heights[children] + 1)
        return heights


def _depths(parents: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Length of the way from each word up to its root, in steps that double."""
    depths, above = (parents >= 0).astype(np.int64), parents
    for _ in range(len(parents).bit_length() + 1):
        below = np.flatnonzero(above >= 0)
        if not below.size:
            return depths
        reached = above[below]
        depths[below] += depths[reached]
        above = above.copy()
        above[below] = above[reached]
    raise ValueError("heads must not lead in a circle")


def parse_trees(
    captions: Iterable[str],
    vocabulary: Vocabulary,
    relations: Iterable[str],
    *,
    spacy_model: str = SMALL_PIPELINE,
    n_process: int = 1,
    progress: Progress = False,
) -> SentenceTrees:
    """Parse captions (extra ``text``).

    Parameters
    ----------
    captions : iterable of str
        Raw captions.
    vocabulary : Vocabulary
        The words that have ids; others get negative ones.
    relations : iterable of str
        Names, in the pipeline, of the relations that have their own ids. All other relations
        share one id.
    spacy_model : str, default "en_core_web_sm"
        An installed spaCy pipeline with a parser.
    n_process : int, default 1
        Processes that parse, each with a copy of the pipeline.
    progress : bool or callable, default False
        Show a bar, or call this with (captions done, captions in all).

    Returns
    -------
    SentenceTrees
        Words in lower case, without punctuation. A word under a punctuation mark hangs under
        the mark's head; of several roots the first is the head of the others.

    Raises
    ------
    TypeError, ValueError
        If a caption is not a string or the pipeline is not installed.
    """
    n_process = check_integer("n_process", n_process, minimum=1)
    ids = {relation: i for i, relation in enumerate(relations)}
    texts = list(checked_captions(captions))
    words: list[list[str]] = []
    heads: list[int] = []
    relation_ids: list[int] = []
    with reporting(progress, "parse captions") as report:
        for done, doc in enumerate(parse(texts, spacy_model, n_process=n_process), 1):
            tokens, own_heads = _tree_of(doc)
            words.append([token.lower_ for token in tokens])
            heads += own_heads
            relation_ids += [ids.get(token.dep_, len(ids)) for token in tokens]
            if report is not None and (done % _CAPTIONS_PER_REPORT == 0 or done == len(texts)):
                report(done, len(texts))
    encoded = vocabulary.encode([words])
    return SentenceTrees(
        encoded.word_ids,
        np.array(relation_ids, np.int32),
        np.array(heads, np.int32),
        offsets_of([len(own) for own in words]),
        n_relations=len(ids) + 1,
        n_words=len(vocabulary),
    )


def _tree_of(doc: Any) -> tuple[list[Any], list[int]]:
    """Words of a parsed caption, and the position of each one's head among them."""
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    place = {token.i: position for position, token in enumerate(words)}
    heads = []
    root: int | None = None
    for position, token in enumerate(words):
        head = token.head
        while head.i not in place and head.head.i != head.i:
            head = head.head
        if head.i in place and head.i != token.i:
            heads.append(place[head.i])
            continue
        heads.append(-1 if root is None else root)
        root = position if root is None else root
    return words, heads
