"""Approximate search in large indices: FAISS compares a sentence with a part of the photos."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kernelcore._validation import check_flag, check_integer
from kernelcore.distributed import VectorIndex
from kernelcore.models import ChanceLine, Match, PhotoIndex
from kernelcore.models.photo_index import read_names
from kernelcore.models.photo_inputs import as_strings
from kernelcore.models.photo_search import PhotoSearch, named_matches

_FOLDER = "faiss"  # in the folder of an index

FROM_PHOTOS = 500_000
"""Number of photos from which on the command ``index`` makes it; see docs/serving.md."""


class ApproximateSearch:
    """Search by FAISS in the folder of an index.

    Photos are divided among lists by k-means, and a sentence is compared with those in the
    nearest lists alone. The lists hold a copy of the vectors of the index.

    Parameters
    ----------
    model : PhotoRanker or Encoders
        The model of the index.
    path : path
        Folder of `PhotoIndex.save`, in which `build` has made the lists.

    Attributes
    ----------
    names : tuple of str
        Names of the photos.

    Raises
    ------
    MissingExtraError
        If FAISS is not installed (extra ``index``).
    FileNotFoundError
        If the folder is no index, or has no lists.
    ValueError
        If the index is another model's, or a file is damaged.

    See Also
    --------
    kernelcore.distributed.VectorIndex : The lists; its `recall` measures what is lost.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.models import Encoders
    >>> from kernelcore.search import ApproximateSearch
    >>> def letters(texts):
    ...     return [[str(text).count(letter) for letter in "abcdeghot"] for text in texts]
    >>> encoders = Encoders(letters, letters, name="letters")
    >>> index = encoders.index(["dog.jpg", "cat.jpg"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(folder)
    ...     ApproximateSearch.build(index, encoders, folder)
    ...     ApproximateSearch(encoders, folder).search(["a cat"], k=1)[0][0].name
    'cat.jpg'
    """

    def __init__(self, model: PhotoSearch, path: str | os.PathLike[str]) -> None:
        folder = Path(path)
        if not has_lists(folder):
            raise FileNotFoundError(f"there are no lists of FAISS in {folder}")
        before = folder.stat()
        self._lists = VectorIndex.load(folder / _FOLDER)
        made_by, names = read_names(folder, len(self._lists))
        if not os.path.samestat(before, folder.stat()):
            raise FileNotFoundError(f"{folder} was replaced while it was read: read it again")
        if made_by != model.fingerprint:
            raise ValueError(
                f"{folder} must be an index made by this model; this one was made by another"
            )
        self._model, self.names = model, tuple(names)

    @staticmethod
    def build(index: PhotoIndex, model: PhotoSearch, path: str | os.PathLike[str]) -> None:
        """Write the lists into the folder of a saved index, whole or not at all.

        Parameters
        ----------
        index : PhotoIndex
            What the folder holds.
        model : PhotoRanker or Encoders
            The model of the index.
        path : path
            The folder.

        Raises
        ------
        MissingExtraError
            If FAISS is not installed (extra ``index``).
        TypeError, ValueError
            If `index` is no index, is empty or another model's, or the folder holds another.
        FileNotFoundError
            If the folder holds none.
        """
        if not isinstance(index, PhotoIndex):
            raise TypeError(f"index must be a PhotoIndex, got {type(index).__name__}")
        if read_names(path, len(index)) != (index.model, list(index.names)):
            raise ValueError(f"index must be what {path} holds, and that is another one")
        lists = VectorIndex(model.embed_images(index), kind="lists", similarity="dot")
        lists.save(Path(path, _FOLDER))

    def search(
        self,
        sentences: Sequence[str],
        *,
        k: int = 10,
        calibrated: bool = False,
        n_threads: int | None = None,
    ) -> list[list[Match]]:
        """Find photos that fit each sentence; a few of the best may be missed.

        Parameters
        ----------
        sentences : sequence of str
        k : int, default 10
            Number of photos to return.
        calibrated : bool, default False
            Say of each photo how often an arbitrary one has its score.
        n_threads : int, optional
            Threads that place sentences; the default is every core this process may run on.

        Returns
        -------
        list of list of Match
            As `PhotoRanker.search` returns them.
        """
        k, texts = check_integer("k", k, minimum=1), as_strings("sentences", sentences)
        if not texts:
            return []
        queries = self._model.embed_captions(texts, n_threads=n_threads)
        lines: Sequence[ChanceLine | None] = [None] * len(texts)
        if check_flag("calibrated", calibrated):
            lines = self._model.chance_lines(texts, n_threads=n_threads)
        best = self._lists.search(queries, k=k)
        found = []
        for rows, scores, line in zip(best.positions, best.scores, lines, strict=True):
            n_found = int((rows >= 0).sum())  # -1 fills the rest
            found.append(named_matches(rows[:n_found], scores[:n_found], self.names, line))
        return found


def has_lists(path: str | os.PathLike[str]) -> bool:
    """Whether the folder of an index holds lists of FAISS."""
    return Path(path, _FOLDER, "index.json").is_file()


def remove_lists(path: str | os.PathLike[str]) -> None:
    """Remove the lists from the folder of an index, if there are any."""
    folder = Path(path, _FOLDER)
    if folder.is_dir():
        (folder / "index.json").unlink(missing_ok=True)  # what is left is no index any more
        shutil.rmtree(folder)
