"""Search and annotation by vectors of photos and sentences, whatever model they are of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_strings, check_flag, check_integer
from kernelcore._threads import Progress
from kernelcore.images._extractor import of_length_one
from kernelcore.models.base import Task, check_task
from kernelcore.models.calibration import ChanceLine, Foreign
from kernelcore.models.kcca_ranker import products
from kernelcore.models.photo_index import PhotoIndex


class Match(NamedTuple):
    """One entry of a ranked list.

    Attributes
    ----------
    item : int
        Position of the photo or sentence among those that were ranked.
    score : float
        Higher is better.
    name : str
        Name of the photo in its index, or the sentence itself.
    by_chance : float or None
        Share of photos or sentences that the query is not about with such a score; see
        `ChanceLine`. None unless it was asked for.
    """

    item: int
    score: float
    name: str
    by_chance: float | None = None


class PhotoSearch:
    """Base of models that embed photos and sentences in one space."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest or name by which an index recognises its model."""

    @abstractmethod
    def index(
        self,
        photos: Any,
        *,
        names: Sequence[str] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> PhotoIndex:
        """Embed photos, to be searched or annotated many times."""

    @abstractmethod
    def embed_captions(
        self, captions: Sequence[str], *, n_threads: int | None = None
    ) -> npt.NDArray[Any]:
        """Return the vectors of sentences."""

    @abstractmethod
    def foreign(self, *, n_threads: int | None = None) -> Foreign:
        """Return training items by which chance is estimated."""

    def embed_images(self, images: Any, *, n_threads: int | None = None) -> npt.NDArray[Any]:
        """Embed photos, for example for an inner-product index.

        Parameters
        ----------
        images : collection of photos, or PhotoIndex
            Photos as `index` takes them, or an index.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_photos, n_columns)
            ``embed_images(images) @ embed_captions(captions).T`` are the scores. Vectors of
            `Encoders` have length 1; those of `PhotoRanker` too, but for two components more
            where hubs are corrected.
        """
        return self._named(images, n_threads, "images")[1]

    def scores(
        self,
        images: Any,
        captions: Sequence[str],
        *,
        task: Task = "annotation",
        n_threads: int | None = None,
    ) -> npt.NDArray[Any]:
        """Score every photo against every sentence; see `Ranker.scores`.

        Parameters
        ----------
        images : collection of photos, or PhotoIndex
            Photos as `index` takes them, or an index.
        captions : sequence of str
            Raw sentences.
        task : {"annotation", "search"}, default "annotation"
            Ignored: both tasks use the same scores.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        ndarray of float32, shape (n_photos, n_sentences)
            Cosines, in [-1, 1]; minus the hub correction of both, if the model has one, in
            [-2, 2].

        Raises
        ------
        TypeError, ValueError
            If photos or sentences are not of their kind, or the index is another model's.
        UnreadableImagesError
            If photos cannot be read.
        """
        check_task(task)
        sentences = self.embed_captions(captions, n_threads=n_threads)
        photos = self.embed_images(images, n_threads=n_threads)
        return scores_of(photos, sentences)

    def search(
        self,
        sentences: Sequence[str],
        photos: Any,
        *,
        k: int = 10,
        calibrated: bool = False,
        n_threads: int | None = None,
    ) -> list[list[Match]]:
        """Find the photos that fit each sentence best.

        Parameters
        ----------
        sentences, photos, n_threads
            See `scores`.
        k : int, default 10
            Number of photos to return.
        calibrated : bool, default False
            Say of each photo how often an arbitrary one has its score, see `chance_lines`. It
            is 1 for a sentence without a word that the model knows.

        Returns
        -------
        list of list of Match
            For each sentence the best photos, the best first.
        """
        k, texts = check_integer("k", k, minimum=1), as_strings("sentences", sentences)
        names, vectors = self._named(photos, n_threads)
        queries = self.embed_captions(texts, n_threads=n_threads)
        lines: Sequence[ChanceLine | None] = [None] * len(texts)
        if check_flag("calibrated", calibrated):
            lines = self._chance_lines(queries, "images", n_threads)
        rows = scores_of(vectors, queries).T
        found = [best_matches(row, k, names, own) for row, own in zip(rows, lines, strict=True)]
        for text, matches in zip(texts, found, strict=True):
            if calibrated and not self.knows(text):
                matches[:] = [match._replace(by_chance=1.0) for match in matches]
        return found

    def knows(self, sentence: str) -> bool:
        """Whether the model knows a word of a sentence.

        Parameters
        ----------
        sentence : str

        Returns
        -------
        bool
            True for encoders, whose words are not known. For a `PhotoRanker`, whether a
            training caption has one of the words.
        """
        return True

    def annotate(
        self,
        photos: Any,
        sentences: Sequence[str],
        *,
        k: int = 5,
        calibrated: bool = False,
        n_threads: int | None = None,
    ) -> list[list[Match]]:
        """Find the sentences that fit each photo best.

        Parameters
        ----------
        photos, sentences, n_threads
            See `scores`.
        k : int, default 5
            Number of sentences to return.
        calibrated : bool, default False
            Say of each sentence how often an arbitrary one has its score, see `chance_lines`.

        Returns
        -------
        list of list of Match
            For each photo the best sentences, the best first.
        """
        k, texts = check_integer("k", k, minimum=1), as_strings("sentences", sentences)
        queries = self._named(photos, n_threads)[1]
        lines: Sequence[ChanceLine | None] = [None] * len(queries)
        if check_flag("calibrated", calibrated):
            lines = self._chance_lines(queries, "captions", n_threads)
        rows = scores_of(queries, self.embed_captions(texts, n_threads=n_threads))
        return [best_matches(row, k, texts, own) for row, own in zip(rows, lines, strict=True)]

    def chance_lines(
        self, queries: PhotoIndex | Sequence[str], *, n_threads: int | None = None
    ) -> list[ChanceLine]:
        """Estimate for queries which scores are reached by chance.

        Parameters
        ----------
        queries : PhotoIndex or sequence of str
            Photos to annotate, or sentences to search for.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.

        Returns
        -------
        list of ChanceLine
            One for each sentence, of the scores of training photos; or one for each photo,
            of the scores of captions of training photos. They are placed as new ones would be.

        Raises
        ------
        ValueError
            If the model has no such photos or captions.
        """
        if isinstance(queries, PhotoIndex):
            return self._chance_lines(self.embed_images(queries), "captions", n_threads)
        texts = as_strings("queries", queries)
        vectors = self.embed_captions(texts, n_threads=n_threads)
        return self._chance_lines(vectors, "images", n_threads)

    def _chance_lines(
        self, queries: Array, name: str, n_threads: int | None
    ) -> list[ChanceLine]:
        """Return the line of each query, by vectors of foreign candidates called `name`."""
        captions, photos = self.foreign(n_threads=n_threads)
        foreign = photos if name == "images" else captions
        if not len(foreign):
            raise ValueError(f"calibrated needs others to compare with: give foreign_{name}")
        return [ChanceLine(row) for row in scores_of(queries, foreign)]

    def directions(self, places: Array) -> npt.NDArray[Any]:
        """Return vectors of photos, of length 1, whose products are cosines."""
        return of_length_one(places)

    @abstractmethod
    def _embed_photos(
        self, photos: Any, n_threads: int | None, name: str
    ) -> tuple[list[str], Array]:
        """Return the names and the vectors of photos; errors call them `name`."""

    def _named(
        self, photos: Any, n_threads: int | None, name: str = "photos"
    ) -> tuple[Sequence[str], Array]:
        """Return the names and the vectors of photos or of an index of this model."""
        if not isinstance(photos, PhotoIndex):
            return self._embed_photos(photos, n_threads, name)
        if photos.model != self.fingerprint:
            raise ValueError(
                "photos must be an index made by this model, and it was made by another model"
            )
        return photos.names, photos.projections


def scores_of(photos: Array, sentences: Array) -> npt.NDArray[Any]:
    """Return the scores of vectors of photos and of sentences."""
    if not (len(photos) and len(sentences)):  # their vectors may have no length yet
        return np.zeros((len(photos), len(sentences)), np.float32)
    if photos.shape[1] != sentences.shape[1]:
        raise ValueError(
            f"captions must have vectors of {photos.shape[1]} numbers as images have, "
            f"got {sentences.shape[1]}"
        )
    return products(photos, sentences)


def best_matches(
    scores: Array, k: int, names: Sequence[str], line: ChanceLine | None = None
) -> list[Match]:
    """Return the `k` candidates with the highest scores; ties keep their order."""
    k = check_integer("k", k, minimum=1)
    rows = np.arange(len(scores))
    if k < len(scores):
        rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    order = rows[np.argsort(-scores[rows], kind="stable")[:k]]
    shares = [None] * len(order) if line is None else line.by_chance(scores[order]).tolist()
    return [
        Match(int(item), float(scores[item]), names[item], share)
        for item, share in zip(order, shares, strict=True)
    ]
