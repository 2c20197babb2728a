"""A folder of photos with its index and its model: what commands and the page search."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_integer, check_real
from kernelcore._store import is_file, printable
from kernelcore._threads import cached_property
from kernelcore.datasets._photos import leads_out
from kernelcore.models import ChanceLine, Match, PhotoIndex, PhotoRanker
from kernelcore.models.kcca_ranker import products
from kernelcore.models.photo_index import MANIFEST
from kernelcore.models.photo_inputs import as_strings
from kernelcore.models.photo_search import PhotoSearch, best_first, best_matches, scores_of
from kernelcore.search.growing import Changes, Described, update_index
from kernelcore.search.photo_files import alike
from kernelcore.search.words import UnknownWord, WordShare, unknown_words, word_shares

_MOST_FOLDED = 1000  # best photos among which near duplicates are looked for
_SAME_LOOK = 6  # bits of 64 in which near duplicates differ at most
_SAME_PLACE = 0.9  # their least cosine
_HIGHEST = float(np.finfo(np.float32).max)  # no score exceeds it
_versions = itertools.count()


@dataclass(frozen=True, eq=False)
class Ranking:
    """Photos of a collection in the order in which they fit a query.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n_photos,)
        Numbers of photos, the best first; of near duplicates the first alone.
    scores : ndarray of float32, shape (n_photos,)
        Their scores.
    n_fitting : int or None
        Number of photos above the line of chance; None where there is no line.
    folded : mapping of int to tuple of int
        Near duplicates that are left out, by the photo that stands for them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.search import Ranking
    >>> found = Ranking(np.array([7, 3]), np.array([0.5, 0.2]), n_fitting=1)
    >>> found.numbers[: found.n_fitting]
    array([7])
    """

    numbers: npt.NDArray[np.int64]
    scores: npt.NDArray[Any]
    n_fitting: int | None = None
    folded: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


class _State:
    """An index with what is computed from it once."""

    def __init__(
        self,
        model: PhotoSearch,
        index: PhotoIndex,
        captions: Sequence[str],
        false_rate: float,
        n_threads: int | None,
    ) -> None:
        self.model, self.index, self.captions = model, index, captions
        self.false_rate, self.n_threads = false_rate, n_threads
        self.version = str(next(_versions))
        self.places = model.embed_images(index)
        self.row_of = {number: row for row, number in enumerate(index.numbers.tolist())}
        self.looks = np.array([file.look for file in index.files or ()], np.int64)

    @cached_property
    def directions(self) -> npt.NDArray[Any]:
        return self.model.directions(self.places)

    @cached_property
    def captions_placed(self) -> npt.NDArray[Any]:
        return self.model.embed_captions(self.captions, n_threads=self.n_threads)

    def line_of(self, query: Array, foreign: Array) -> ChanceLine | None:
        """Return the line of a query, None where too few others are known to draw it."""
        if not len(foreign):
            return None
        line = ChanceLine(scores_of(query[np.newaxis], foreign)[0])
        return line if math.isfinite(line.score_at(self.false_rate)) else None


class Collection:
    """A folder of photos that can be searched.

    Parameters
    ----------
    model : PhotoRanker or Encoders
        Places photos and sentences.
    folder : path
        Folder of the photos.
    index : PhotoIndex
        The photos, by their paths in the folder.
    captions : sequence of str, optional
        Sentences to annotate photos with. The default is the first caption of each training
        photo, if the model knows them.
    false_rate : float, default 0.05
        Share of the photos that a query is not about that stand above the line.
    source : path, optional
        Folder of `PhotoIndex.save` that the index is from. `refresh` writes it, `reload` reads
        it.
    list_names : callable, optional
        Returns the paths of all photos in the folder; needed for `refresh`.
    photos_for : callable, optional
        See `update_index`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.
    **options
        Other options of ``model.index`` for new photos.

    Raises
    ------
    TypeError, ValueError
        If the index is another model's, or a parameter is out of range.

    Notes
    -----
    Threads may use a collection at the same time: `refresh` and `reload` exchange the index as
    a whole.

    Examples
    --------
    >>> from kernelcore.models import Encoders, PhotoIndex
    >>> from kernelcore.search import Collection
    >>> def letters(texts):
    ...     return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]
    >>> encoders = Encoders(letters, letters, name="letters")
    >>> photos = Collection(encoders, "photos", encoders.index(["dog.jpg", "cat.jpg"]))
    >>> photos.name(int(photos.search("a cat").numbers[0]))
    'cat.jpg'
    """

    def __init__(
        self,
        model: PhotoSearch,
        folder: str | os.PathLike[str],
        index: PhotoIndex,
        *,
        captions: Sequence[str] | None = None,
        false_rate: float = 0.05,
        source: str | os.PathLike[str] | None = None,
        list_names: Callable[[], Sequence[str]] | None = None,
        photos_for: Described | None = None,
        n_threads: int | None = None,
        **options: Any,
    ) -> None:
        self.model, self.folder = model, Path(folder)
        self.captions = tuple(
            _training_captions(model) if captions is None else as_strings("captions", captions)
        )
        self.false_rate = check_real("false_rate", false_rate, minimum=0.0, exclusive=True)
        if self.false_rate >= 1:
            raise ValueError(f"false_rate must be less than 1, got {false_rate}")
        self._source = None if source is None else Path(source)
        self._list_names, self._photos_for = list_names, photos_for
        self._options, self._n_threads = options, n_threads
        self._state = self._state_of(index)
        self._written = self._mark_of_source()
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._state.index)

    def __repr__(self) -> str:
        return f"Collection({len(self)} photos)"

    @property
    def version(self) -> str:
        """Changes whenever the index does."""
        return self._state.version

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all photos."""
        return self._state.index.numbers

    def name(self, number: int) -> str:
        """Return the path of a photo in the folder; KeyError if there is none."""
        state = self._state
        return state.index.names[state.row_of[number]]

    def path(self, number: int) -> Path:
        """Return the file of a photo; KeyError if there is none."""
        return self.folder / self.name(number)

    def digest(self, number: int) -> str:
        """Return the digest of a photo's content, hexadecimal; KeyError if there is none."""
        state = self._state
        row = state.row_of[number]
        if state.index.files:
            return state.index.files[row].digest
        path = self.folder / state.index.names[row]
        about = f"{path} {path.stat().st_mtime_ns}".encode(errors="surrogateescape")
        return hashlib.blake2b(about, digest_size=16).hexdigest()

    def search(self, sentence: str) -> Ranking:
        """Rank all photos by a sentence, with the line of chance if the model has one.

        Without a word that the model knows, no photo stands above the line.
        """
        state = self._state
        query = self.model.embed_captions([sentence], n_threads=self._n_threads)
        scores = scores_of(state.places, query)[:, 0]
        line = state.line_of(query[0], self.model.foreign(n_threads=self._n_threads).photos)
        if line is not None and not self._knows_a_word(sentence):
            line = ChanceLine([_HIGHEST] * len(line.foreign))
        return self._ranking(state, scores, line)

    def similar(self, number: int) -> Ranking:
        """Rank the other photos by their similarity to one of them."""
        state = self._state
        row = state.row_of[number]
        cosines = products(state.directions[row : row + 1], state.directions)[0]
        return self._ranking(state, cosines, None, left_out=row)

    def similar_to(self, pixels: npt.NDArray[np.uint8]) -> Ranking:
        """Rank all photos by their similarity to a photo, RGB of shape (height, width, 3)."""
        state = self._state
        query = self.model.directions(self._placed(pixels))
        return self._ranking(state, products(query, state.directions)[0], None)

    def annotate(self, pixels: npt.NDArray[np.uint8], *, k: int = 10) -> list[Match]:
        """Find the sentences that fit a photo best, RGB of shape (height, width, 3)."""
        return self._captions_for(self._state, self._placed(pixels)[0], k)

    def annotate_photo(self, number: int, *, k: int = 10) -> list[Match]:
        """Find the sentences that fit a photo of the collection best."""
        state = self._state
        return self._captions_for(state, state.places[state.row_of[number]], k)

    def unknown_words(self, sentence: str) -> list[UnknownWord]:
        """Find words that the model does not know; none where it cannot tell."""
        if not isinstance(self.model, PhotoRanker):
            return []
        return unknown_words(self.model.training_.captions, sentence)

    def contributions(self, sentence: str, number: int) -> list[WordShare]:
        """Return what each word of a sentence contributes to the cosine with a photo.

        Returns
        -------
        list of WordShare
            Without the constant of `word_shares`; empty where the model cannot tell.
        """
        state = self._state
        row = state.row_of[number]
        if not isinstance(self.model, PhotoRanker):
            return []
        words, shares = word_shares(self.model, sentence, state.places[row : row + 1])
        return [
            WordShare(word, float(share))
            for word, share in zip(words, shares[:-1, 0], strict=True)
        ]

    def refresh(self, progress: Any = False) -> Changes:
        """Look for new, changed and missing photos in the folder.

        Returns
        -------
        Changes

        Raises
        ------
        ValueError
            If the collection was made without `list_names`, or no photo is left.
        """
        if self._list_names is None:
            raise ValueError("list_names must be given to look for photos")
        with self._changing:
            self._read_again()
            index, changes = update_index(
                self._state.index,
                self.model,
                self.folder,
                self._list_names(),
                photos_for=self._photos_for,
                on_error="skip",
                n_threads=self._n_threads,
                progress=progress,
                **self._options,
            )
            if index is not self._state.index:
                if self._source is not None:
                    index.save(self._source, overwrite=True)
                    self._written = self._mark_of_source()
                self._state = self._state_of(index)
        return changes

    def reload(self) -> bool:
        """Read the index again if another process has written it since.

        While `refresh` runs nothing is read: it looks itself.
        """
        if not self._changing.acquire(blocking=False):
            return False
        try:
            return self._read_again()
        finally:
            self._changing.release()

    def _read_again(self) -> bool:
        written = self._mark_of_source()
        if self._source is None or written in {None, self._written}:
            return False
        self._state, self._written = self._state_of(PhotoIndex.load(self._source)), written
        return True

    def _mark_of_source(self) -> tuple[int, int] | None:
        """Return what tells an index on the disk from the next; None where there is none."""
        if self._source is None or not is_file(manifest := self._source / MANIFEST):
            return None
        status = manifest.stat()
        return status.st_ino, status.st_mtime_ns

    def _state_of(self, index: PhotoIndex) -> _State:
        for name in index.names:
            if leads_out(name):
                raise ValueError(f"index must have names in the folder, got {printable(name)}")
        return _State(self.model, index, self.captions, self.false_rate, self._n_threads)

    def _knows_a_word(self, sentence: str) -> bool:
        if not isinstance(self.model, PhotoRanker):
            return True
        known = self.model.training_.captions
        return any(word in known.vocabulary for word in known.normalizer([sentence])[0])

    def _placed(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Place a photo that is no file; encoders are given the path of a copy."""
        if isinstance(self.model, PhotoRanker):
            return self.model.embed_images([pixels], n_threads=self._n_threads)
        cv2 = _extras.require("cv2")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "photo.png"))
            cv2.imwrite(path, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
            return self.model.embed_images([path])

    def _captions_for(self, state: _State, place: Array, k: int) -> list[Match]:
        check_integer("k", k, minimum=1)
        if not self.captions:
            return []
        scores = scores_of(place[np.newaxis], state.captions_placed)[0]
        line = state.line_of(place, self.model.foreign(n_threads=self._n_threads).captions)
        return best_matches(scores, k, self.captions, line)

    def _ranking(
        self,
        state: _State,
        scores: Array,
        line: ChanceLine | None,
        *,
        left_out: int | None = None,
    ) -> Ranking:
        order = best_first(scores)
        if left_out is not None:
            order = order[order != left_out]
        folded = _fold(order[:_MOST_FOLDED], state) if len(state.looks) else {}
        gone = {row for several in folded.values() for row in several}
        kept = np.array([row for row in order[:_MOST_FOLDED] if row not in gone], np.intp)
        rows = np.concatenate([kept, order[_MOST_FOLDED:]])
        numbers = state.index.numbers
        n_fitting = None
        if line is not None:
            n_fitting = int((scores[rows] > line.score_at(self.false_rate)).sum())
        return Ranking(
            numbers[rows],
            scores[rows],
            n_fitting,
            {
                int(numbers[row]): tuple(int(numbers[other]) for other in several)
                for row, several in folded.items()
            },
        )


def _fold(rows: npt.NDArray[np.intp], state: _State) -> dict[int, list[int]]:
    """Find near duplicates of each photo among those that stand behind it.

    They look alike and the model places them alike: many plain pictures look alike.
    """
    is_left = np.ones(len(rows), bool)
    folded: dict[int, list[int]] = {}
    pairs = alike(state.looks[rows], _SAME_LOOK)
    one, other = (state.directions[rows[side]] for side in pairs.T)
    pairs = pairs[np.einsum("ij,ij->i", one, other) >= _SAME_PLACE]
    for first, second in pairs.tolist():
        if is_left[first] and is_left[second]:
            is_left[second] = False
            folded.setdefault(int(rows[first]), []).append(int(rows[second]))
    return folded


def _training_captions(model: PhotoSearch) -> list[str]:
    """Return the first caption of each training photo, each text once."""
    if not isinstance(model, PhotoRanker):
        return []
    return list(dict.fromkeys(own[0] for own in model.training_.captions.texts if own))
