"""Relevance judgments: which captions describe which images, many to many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    as_real_array,
    as_strings,
    check_choice,
    check_finite,
    check_indices,
    check_real,
    sealed,
)
from kernelcore.datasets.records import CaptionedImages, places_of

Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class RelevanceJudgments:
    """Graded relevance of pairs of an image and a caption; missing pairs are unjudged.

    Attributes
    ----------
    name : str
        Name of the source of the judgments, as results will quote it.
    image_ids, caption_ids : tuple of str
        Unique ids. All may have pairs, none must.
    images, captions : ndarray of intp, shape (n_pairs,)
        Position of each pair's image in `image_ids` and of its caption in `caption_ids`.
        However they are given, they are kept in ascending order of image, then caption.
    scores : ndarray of float64, shape (n_pairs,)
        How well the caption describes the image, higher is better, on a scale of the source.
    ratings : ndarray of float64, shape (n_pairs, n_ratings), optional
        The single votes that a score sums up, NaN where a pair has fewer than others. A
        column is not a judge unless the source says so.

    Raises
    ------
    TypeError
        If positions are not integers or scores are not real numbers.
    ValueError
        If an id or a pair comes twice, a position is out of range, a score is not finite,
        or the parts have different lengths.

    See Also
    --------
    kernelcore.datasets.load_flickr_expert, kernelcore.datasets.load_flickr_crowd
    kernelcore.datasets.load_eccv_caption
    kernelcore.evaluation.evaluate_relevance : Measures a ranking against them.

    Examples
    --------
    >>> from kernelcore.datasets import RelevanceJudgments
    >>> judgments = RelevanceJudgments.from_pairs(
    ...     "two judges",
    ...     [("dog.jpg", "dog#0"), ("dog.jpg", "cat#0"), ("cat.jpg", "cat#0")],
    ...     [1.0, 0.5, 1.0],
    ... )
    >>> judgments
    RelevanceJudgments('two judges', 3 pairs of 2 images and 2 captions, scores 0.5 to 1)
    >>> judgments.relevant_captions(0.5)
    [array([0, 1]), array([1])]
    >>> judgments.relevant_images(1)
    [array([0]), array([1])]

    The pool of a matrix of scores, in its order:

    >>> pool = judgments.select(["cat.jpg", "owl.jpg"], ["cat#0", "dog#0"])
    >>> pool.relevant_captions(0.5)
    [array([0]), array([], dtype=int64)]
    """

    name: str
    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    images: Indices
    captions: Indices
    scores: npt.NDArray[np.float64]
    ratings: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        image_ids = as_ids("image_ids", self.image_ids)
        caption_ids = as_ids("caption_ids", self.caption_ids)
        images = check_indices("images", self.images, len(image_ids))
        captions = check_indices("captions", self.captions, len(caption_ids))
        scores = check_finite("scores", as_real_array("scores", self.scores, ndim=1))
        ratings = self.ratings
        if ratings is not None:
            ratings = as_real_array("ratings", ratings, ndim=2).astype(np.float64)
            if np.isinf(ratings).any():
                raise ValueError(
                    "ratings must be finite, or NaN where there is none, got infinity"
                )
        for name, part in (("captions", captions), ("scores", scores), ("ratings", ratings)):
            if part is not None and len(part) != len(images):
                entry = "row" if part.ndim == 2 else "entry"
                raise ValueError(
                    f"{name} must have one {entry} per pair ({len(images)}), got {len(part)}"
                )
        order = np.lexsort((captions, images))
        images, captions = images[order], captions[order]
        same = np.flatnonzero((np.diff(images) == 0) & (np.diff(captions) == 0))
        if same.size:
            pair = image_ids[images[same[0]]], caption_ids[captions[same[0]]]
            raise ValueError(f"a pair must be judged once, got {pair} repeatedly")
        parts: dict[str, Any] = {
            "image_ids": image_ids,
            "caption_ids": caption_ids,
            "images": sealed(images),
            "captions": sealed(captions),
            "scores": sealed(scores.astype(np.float64)[order]),
            "ratings": None if ratings is None else sealed(ratings[order]),
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @classmethod
    def from_pairs(
        cls,
        name: str,
        pairs: Iterable[tuple[str, str]],
        scores: npt.ArrayLike,
        *,
        ratings: npt.NDArray[np.float64] | None = None,
        image_ids: Iterable[str] = (),
        caption_ids: Iterable[str] = (),
    ) -> RelevanceJudgments:
        """Judgments from pairs of ids.

        Parameters
        ----------
        name : str
            What judged.
        pairs : iterable of (str, str)
            Image id and caption id.
        scores : array_like of shape (n_pairs,)
            Score of each pair.
        ratings : ndarray of shape (n_pairs, n_ratings), optional
            The single votes.
        image_ids, caption_ids : iterable of str, optional
            Ids that stand first. Those of the pairs follow in the order in which they come.

        Returns
        -------
        RelevanceJudgments
        """
        rows = list(pairs)
        shown, told = [image for image, _ in rows], [caption for _, caption in rows]
        images = tuple(dict.fromkeys((*image_ids, *shown)))
        captions = tuple(dict.fromkeys((*caption_ids, *told)))
        places = places_of(shown, images), places_of(told, captions)
        return cls(name, images, captions, *places, np.asarray(scores), ratings)

    @classmethod
    def gold(cls, dataset: CaptionedImages, *, score: float = 1.0) -> RelevanceJudgments:
        """Every caption of a collection with its own image, all with the same score.

        Parameters
        ----------
        dataset : CaptionedImages
            Its caption ids are unique.
        score : float, default=1
            The best score of the scale that the pairs are to be united with.

        Returns
        -------
        RelevanceJudgments
        """
        score = check_real("score", score)
        sizes = [len(ids) for ids in dataset.caption_ids]
        return cls(
            f"gold of {dataset.name}",
            dataset.image_ids,
            tuple(caption_id for ids in dataset.caption_ids for caption_id in ids),
            np.repeat(np.arange(len(dataset)), sizes),
            np.arange(sum(sizes)),
            np.full(sum(sizes), score),
        )

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        counts = f"{len(self.image_ids)} images and {len(self.caption_ids)} captions"
        parts = [repr(self.name), f"{len(self)} pairs of {counts}"]
        if len(self):
            parts.append(f"scores {self.scores.min():.4g} to {self.scores.max():.4g}")
        return f"RelevanceJudgments({', '.join(parts)})"

    def relevant_captions(self, threshold: float) -> list[Indices]:
        """Captions of each image whose score is at least `threshold`, ascending.

        Returns one array of positions per image of `image_ids`, empty where there is none.
        """
        chosen = self.scores >= check_real("threshold", threshold)
        return grouped(self.images[chosen], self.captions[chosen], len(self.image_ids))

    def relevant_images(self, threshold: float) -> list[Indices]:
        """Images of each caption whose score is at least `threshold`, ascending.

        Returns one array of positions per caption of `caption_ids`, empty where there is none.
        """
        chosen = self.scores >= check_real("threshold", threshold)
        return grouped(self.captions[chosen], self.images[chosen], len(self.caption_ids))

    def scores_of(
        self, images: npt.ArrayLike, captions: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Score of each pair of positions, NaN where it was not judged.

        Parameters
        ----------
        images, captions : array_like of int, shape (n,)
            Positions in `image_ids` and `caption_ids`.

        Returns
        -------
        ndarray of float64, shape (n,)

        Examples
        --------
        >>> from kernelcore.datasets import RelevanceJudgments
        >>> judgments = RelevanceJudgments.from_pairs("I", [("a", "a#0"), ("b", "b#0")], [4, 2])
        >>> judgments.scores_of([0, 1, 0], [0, 1, 1])
        array([ 4.,  2., nan])
        """
        rows = check_indices("images", images, len(self.image_ids))
        columns = check_indices("captions", captions, len(self.caption_ids))
        if rows.shape != columns.shape:
            raise ValueError(
                f"captions must have one entry per image ({len(rows)}), got {len(columns)}"
            )
        if not len(self):
            return np.full(len(rows), np.nan)
        width = len(self.caption_ids)
        judged, wanted = self.images * width + self.captions, rows * width + columns
        place = np.minimum(np.searchsorted(judged, wanted), len(judged) - 1)
        return np.where(judged[place] == wanted, self.scores[place], np.nan)

    def select(
        self, image_ids: Sequence[str], caption_ids: Sequence[str]
    ) -> RelevanceJudgments:
        """Return the judgments of a pool: positions become rows and columns of its scores.

        Parameters
        ----------
        image_ids, caption_ids : sequence of str
            Ids of the rows and columns of a matrix of scores, in that order. Ids that nobody
            judged are kept and have no pair.

        Returns
        -------
        RelevanceJudgments
            Without the pairs of which the image or the caption is not in the pool.

        Raises
        ------
        TypeError, ValueError
            If the ids are not unique strings.
        """
        rows, columns = as_ids("image_ids", image_ids), as_ids("caption_ids", caption_ids)
        images = places_of(self.image_ids, rows)[self.images]
        captions = places_of(self.caption_ids, columns)[self.captions]
        inside = (images >= 0) & (captions >= 0)
        return RelevanceJudgments(
            self.name,
            rows,
            columns,
            images[inside],
            captions[inside],
            self.scores[inside],
            None if self.ratings is None else self.ratings[inside],
        )

    def union(
        self, other: RelevanceJudgments, *, both: Literal["max", "first"] = "max"
    ) -> RelevanceJudgments:
        """Return the pairs of both.

        Parameters
        ----------
        other : RelevanceJudgments
            Judgments on the same scale.
        both : {"max", "first"}, default="max"
            Score of a pair that both judged: the greater, or the one given here.

        Returns
        -------
        RelevanceJudgments
            Ids as they stand here, then the further ones of `other`. Without ratings: those
            of the two need not mean the same.

        Examples
        --------
        >>> from kernelcore.datasets import RelevanceJudgments
        >>> crowd = RelevanceJudgments.from_pairs("crowd", [("a", "a#0"), ("a", "b#0")], [0, 1])
        >>> gold = RelevanceJudgments.from_pairs("gold", [("a", "a#0"), ("b", "b#0")], [1, 1])
        >>> crowd.union(gold).relevant_captions(0.5)
        [array([0, 1]), array([1])]
        """
        if not isinstance(other, RelevanceJudgments):
            raise TypeError(f"other must be RelevanceJudgments, got {type(other).__name__}")
        check_choice("both", both, ("max", "first"))
        image_ids = tuple(dict.fromkeys((*self.image_ids, *other.image_ids)))
        caption_ids = tuple(dict.fromkeys((*self.caption_ids, *other.caption_ids)))
        theirs = places_of(other.image_ids, image_ids)[other.images]
        images = np.concatenate([self.images, theirs])
        theirs = places_of(other.caption_ids, caption_ids)[other.captions]
        captions = np.concatenate([self.captions, theirs])
        scores = np.concatenate([self.scores, other.scores])
        # Stable: of a pair that comes twice, the score from here stands first.
        _, first, place = np.unique(
            images * len(caption_ids) + captions, return_index=True, return_inverse=True
        )
        united = scores[first]
        if both == "max":
            np.maximum.at(united, place, scores)
        return RelevanceJudgments(
            f"{self.name} + {other.name}",
            image_ids,
            caption_ids,
            images[first],
            captions[first],
            united,
        )


def as_ids(name: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return `ids` if they are strings and none comes twice."""
    return tuple(as_strings(name, ids, unique=True))


def grouped(queries: Indices, candidates: Indices, n_queries: int) -> list[Indices]:
    """Gather the candidates of each query; those of one query keep their order."""
    order = np.argsort(queries, kind="stable")
    ends = np.cumsum(np.bincount(queries, minlength=n_queries))
    return np.split(candidates[order], ends)[:n_queries]
