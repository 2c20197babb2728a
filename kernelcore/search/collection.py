"""A folder of photos with its index and its model: what commands and the page search."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, as_strings, check_real
from kernelcore._photos import leads_out
from kernelcore._store import is_file, printable
from kernelcore._threads import cached_property
from kernelcore.models import ChanceLine, Match, PhotoIndex, PhotoRanker
from kernelcore.models.kcca_ranker import products
from kernelcore.models.photo_search import PhotoSearch, best_matches, scores_of
from kernelcore.models.saving import INDEX
from kernelcore.search.update import Changes
from kernelcore.search.words import unknown_words, word_shares

_versions = itertools.count()


class Ranking(NamedTuple):
    """Photos of a collection in the order in which they fit a query.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n_photos,)
        Numbers of photos, the best first.
    n_fitting : int or None
        Number of photos above the line of chance; None where there is no line.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.search.collection import Ranking
    >>> found = Ranking(np.array([7, 3]), n_fitting=1)
    >>> found.numbers[: found.n_fitting]
    array([7])
    """

    numbers: npt.NDArray[np.int64]
    n_fitting: int | None = None


def n_fitting(matches: Sequence[Match], false_rate: float) -> int:
    """Return how many matches, the best first, stand above the line of chance.

    Examples
    --------
    >>> from kernelcore.models import Match
    >>> from kernelcore.search.collection import n_fitting
    >>> n_fitting([Match(0, 0.9, "a", 0.01), Match(1, 0.2, "b", 0.3)], false_rate=0.05)
    1
    """
    fitting = itertools.takewhile(lambda own: (own.by_chance or 0) <= false_rate, matches)
    return len(list(fitting))


class _Snapshot:
    """An index with its vectors; replaced as a whole when the index changes."""

    def __init__(self, model: PhotoSearch, index: PhotoIndex) -> None:
        for name in index.names:
            if leads_out(name):
                raise ValueError(f"index must have names in the folder, got {printable(name)}")
        self.index, self.version = index, str(next(_versions))
        self.vectors = model.embed_images(index)
        self.row_of = {number: row for row, number in enumerate(index.numbers.tolist())}
        self._model = model

    @cached_property
    def directions(self) -> npt.NDArray[Any]:
        return self._model.directions(self.vectors)


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
    update : callable, optional
        Returns what `update_index` makes of an index; needed for `refresh`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.

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
        update: Callable[[PhotoIndex], tuple[PhotoIndex, Changes]] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.model, self.folder = model, Path(folder)
        self._known = model.captions_ if isinstance(model, PhotoRanker) else None
        if captions is None:  # the first of each training photo, each text once
            texts = () if self._known is None else self._known.texts
            captions = list(dict.fromkeys(own[0] for own in texts if own))
        self.captions = tuple(as_strings("captions", captions))
        self.false_rate = check_real("false_rate", false_rate, minimum=0.0, exclusive=True)
        if self.false_rate >= 1:
            raise ValueError(f"false_rate must be less than 1, got {false_rate}")
        self._source = None if source is None else Path(source)
        self._update, self._n_threads = update, n_threads
        self._current = _Snapshot(self.model, index)
        self._written = self._source_stamp()
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._current.index)

    @property
    def n_training(self) -> int:
        """Number of photos that the model learned from; 0 for encoders."""
        return 0 if self._known is None else len(self._known.texts)

    def __repr__(self) -> str:
        return f"Collection({len(self)} photos)"

    @property
    def version(self) -> str:
        """Changes whenever the index does."""
        return self._current.version

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all photos."""
        return self._current.index.numbers

    def name(self, number: int) -> str:
        """Return the path of a photo in the folder; KeyError if there is none."""
        current = self._current
        return current.index.names[current.row_of[number]]

    def path(self, number: int) -> Path:
        """Return the file of a photo; KeyError if there is none."""
        return self.folder / self.name(number)

    def digest(self, number: int) -> str:
        """Return the digest of a photo's content, hexadecimal; KeyError if there is none."""
        current = self._current
        row = current.row_of[number]
        if current.index.files:
            return current.index.files[row].digest
        path = self.folder / current.index.names[row]
        about = f"{path} {path.stat().st_mtime_ns}".encode(errors="surrogateescape")
        return hashlib.blake2b(about, digest_size=16).hexdigest()

    def search(self, sentence: str) -> Ranking:
        """Rank all photos by a sentence, with the line of chance if the model has one.

        Without a word that the model knows, no photo stands above the line.
        """
        current = self._current
        query = self.model.embed_captions([sentence], n_threads=self._n_threads)
        scores = scores_of(current.vectors, query)[:, 0]
        ranking = _ranking(current, scores)
        line = self._line_of(query[0], self.model.foreign(n_threads=self._n_threads).photos)
        if line is None:
            return ranking
        if not self.model.knows(sentence):
            return ranking._replace(n_fitting=0)
        is_above = scores > line.score_at(self.false_rate)
        return ranking._replace(n_fitting=int(is_above.sum()))

    def similar(self, number: int, sentence: str = "") -> Ranking:
        """Rank the other photos by their similarity to one of them.

        With a sentence, by the sum of the standard scores of both.
        """
        current = self._current
        row = current.row_of[number]
        return self._alike(current, current.directions[row], sentence, left_out=row)

    def similar_to(self, pixels: npt.NDArray[np.uint8], sentence: str = "") -> Ranking:
        """Rank all photos by their similarity to a photo, RGB of shape (height, width, 3)."""
        query = self.model.directions(self._embedded(pixels))[0]
        return self._alike(self._current, query, sentence)

    def annotate(self, pixels: npt.NDArray[np.uint8], *, k: int = 10) -> list[Match]:
        """Find the sentences that fit a photo best, RGB of shape (height, width, 3)."""
        return self._best_captions(self._embedded(pixels)[0], k)

    def annotate_photo(self, number: int, *, k: int = 10) -> list[Match]:
        """Find the sentences that fit a photo of the collection best."""
        current = self._current
        return self._best_captions(current.vectors[current.row_of[number]], k)

    def unknown_words(self, sentence: str) -> dict[str, tuple[str, ...]]:
        """Find words that no training caption has; none for encoders."""
        return {} if self._known is None else unknown_words(self._known, sentence)

    def contributions(self, sentence: str, number: int) -> list[tuple[str, float]]:
        """Return the words of a sentence and what each contributes to the cosine with a photo.

        The constant of `word_shares` is left out. The list is empty for encoders.
        """
        current = self._current
        row = current.row_of[number]
        if not isinstance(self.model, PhotoRanker):
            return []
        words, shares = word_shares(self.model, sentence, current.vectors[row : row + 1])
        return list(zip(words, shares[:-1, 0].tolist(), strict=True))

    def refresh(self) -> Changes:
        """Look for new, changed and missing photos in the folder.

        Returns
        -------
        Changes

        Raises
        ------
        ValueError
            If the collection was made without `update`, or no photo is left.
        """
        if self._update is None:
            raise ValueError("update must be given to look for photos")
        with self._changing:
            self._read_again()
            index, changes = self._update(self._current.index)
            if index is not self._current.index:
                if self._source is not None:
                    index.save(self._source, overwrite=True)
                    self._written = self._source_stamp()
                self._current = _Snapshot(self.model, index)
        return changes

    def reload(self) -> bool:
        """Read the index again if another process has written it since.

        Nothing is read during `refresh`, which does the same.
        """
        if not self._changing.acquire(blocking=False):
            return False
        try:
            return self._read_again()
        finally:
            self._changing.release()

    def _read_again(self) -> bool:
        written = self._source_stamp()
        if self._source is None or written in {None, self._written}:
            return False
        self._current = _Snapshot(self.model, PhotoIndex.load(self._source))
        self._written = written
        return True

    def _source_stamp(self) -> tuple[int, int] | None:
        """Return the inode and time of change of the saved index; None if there is none."""
        if self._source is None or not is_file(manifest := self._source / INDEX):
            return None
        status = manifest.stat()
        return status.st_ino, status.st_mtime_ns

    def _alike(
        self, current: _Snapshot, query: Array, sentence: str, left_out: int | None = None
    ) -> Ranking:
        """Rank photos by their cosines with the direction of one, and by a sentence."""
        cosines = products(query[np.newaxis], current.directions)[0]
        if sentence:
            words = self.model.embed_captions([sentence], n_threads=self._n_threads)
            fits = scores_of(current.vectors, words)[:, 0]
            return _ranking(current, _standard(cosines) + _standard(fits), left_out=left_out)
        ranking = _ranking(current, cosines, left_out=left_out)
        foreign = self.model.foreign(n_threads=self._n_threads).photos
        line = self._line_of(query, self.model.directions(foreign))
        if line is None:
            return ranking
        is_above = cosines > line.score_at(self.false_rate)
        if left_out is not None:
            is_above[left_out] = False
        return ranking._replace(n_fitting=int(is_above.sum()))

    def _line_of(self, query: Array, foreign: Array) -> ChanceLine | None:
        """Return the line of a query; None where there are too few foreign items."""
        if not len(foreign):
            return None
        line = ChanceLine(scores_of(query[np.newaxis], foreign)[0])
        return line if math.isfinite(line.score_at(self.false_rate)) else None

    def _embedded(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Embed a photo that is not in the folder; encoders get the path of a copy."""
        if isinstance(self.model, PhotoRanker):
            return self.model.embed_images([pixels], n_threads=self._n_threads)
        cv2 = _extras.require("cv2")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "photo.png"))
            cv2.imwrite(path, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
            return self.model.embed_images([path])

    @cached_property
    def _caption_vectors(self) -> npt.NDArray[Any]:
        return self.model.embed_captions(self.captions, n_threads=self._n_threads)

    def _best_captions(self, query: Array, k: int) -> list[Match]:
        if not self.captions:
            return []
        scores = scores_of(query[np.newaxis], self._caption_vectors)[0]
        known = self.model.foreign(n_threads=self._n_threads).captions
        return best_matches(scores, k, self.captions, self._line_of(query, known))


def _standard(scores: Array) -> npt.NDArray[Any]:
    """Return scores less their mean in units of their standard deviation."""
    standard: Array = (scores - scores.mean()) / (scores.std() or 1)
    return standard


def _ranking(current: _Snapshot, scores: Array, *, left_out: int | None = None) -> Ranking:
    order = best_first(scores)
    if left_out is not None:
        order = order[order != left_out]
    return Ranking(current.index.numbers[order])


def best_first(scores: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the positions of all scores, the highest first; ties keep their order.

    The bits of a float32 and its position make an integer. NumPy sorts these several times as
    fast as it sorts positions by scores.
    """
    if scores.dtype != np.float32 or len(scores) >= 2**32:
        return np.argsort(-scores, kind="stable")
    bits = (0.0 - scores).view(np.uint32)  # no -0.0: the bits of both zeros are the same
    keys = np.where(bits >> 31, ~bits, bits | np.uint32(2**31)).astype(np.uint64) << 32
    keys |= np.arange(len(scores), dtype=np.uint64)
    keys.sort()
    return (keys & np.uint64(2**32 - 1)).astype(np.intp)
