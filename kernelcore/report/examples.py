"""Example queries with their results: good, typical and bad ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_integer
from kernelcore.evaluation._inputs import as_caption_image
from kernelcore.evaluation.ranks import Ties, as_scores, retrieval_ranks
from kernelcore.report.drawing import Thumbnail, make_thumbnail

Images: TypeAlias = Sequence[npt.NDArray[np.uint8]] | Callable[[int], npt.NDArray[np.uint8]]
"""Pixels of image i by index or by call: uint8, shape (height, width, 3) in RGB order."""

_CASES = ("good", "typical", "bad")


@dataclass(frozen=True)
class Hit:
    """One candidate in the list that answers a query.

    Attributes
    ----------
    position : int
        Place in the list, from 1; equal scores stand in the order of the candidates.
    score : float
    is_gold : bool
        Whether it belongs to the query.
    content : str or Thumbnail
        The caption or the image.
    """

    position: int
    score: float
    is_gold: bool
    content: str | Thumbnail


@dataclass(frozen=True)
class Example:
    """A query and the head of the list that answers it.

    Attributes
    ----------
    task : str
        "annotation" (the query is an image) or "search" (the query is a caption).
    case : str
        "good", "typical" or "bad": where the query stands among all, by rank.
    system : str
    query : str or Thumbnail
    rank : float
        Rank of the best gold item under the tie rule of the evaluation.
    n_candidates : int
    hits : tuple of Hit
        The first candidates, then the best gold one if it is not among them.
    """

    task: str
    case: str
    system: str
    query: str | Thumbnail
    rank: float
    n_candidates: int
    hits: tuple[Hit, ...]


def search_examples(
    scores: npt.ArrayLike,
    captions: Sequence[str],
    images: Images,
    *,
    caption_image: npt.ArrayLike | None = None,
    n_examples: int = 2,
    n_top: int = 5,
    ties: Ties = "mean",
    system: str = "",
    n_threads: int | None = None,
) -> tuple[Example, ...]:
    """Sentences with the images that a system found for them.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better.
    captions : sequence of str
        Text of each caption.
    images : sequence of ndarray, or callable
        Pixels of image i as ``images[i]`` or ``images(i)``: uint8 in RGB order, shape
        (height, width, 3). Only the images that are shown are asked for.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    n_examples : int, default=2
        Queries of each case. All queries are put in order of their rank: the good are the
        first of them, the typical the middle ones, the bad the last.
    n_top : int, default=5
        Candidates to show per query; the gold one is added if it is not among them.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `kernelcore.evaluation.ranks.gold_ranks`.
    system : str, optional
        Name of the system.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on.

    Returns
    -------
    tuple of Example

    Raises
    ------
    TypeError, ValueError
        If the scores cannot be ranked, or captions or an image do not fit them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.report import search_examples
    >>> photos = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> best, worst = search_examples(
    ...     [[0.9, 0.8], [0.1, 0.3]], ["a dog", "a cat"], photos, n_examples=1
    ... )
    >>> best.query, best.rank, worst.query, worst.rank
    ('a dog', 1.0, 'a cat', 2.0)
    """
    matrix, owner = _check(scores, captions, caption_image)
    ranks = retrieval_ranks(matrix, owner, ties=ties, n_threads=n_threads).search
    thumbnail = _thumbnails(images, captions, owner)
    return tuple(
        Example(
            task="search",
            case=case,
            system=system,
            query=captions[query],
            rank=float(ranks[query]),
            n_candidates=len(matrix),
            hits=_hits(
                matrix[:, query], np.arange(len(matrix)) == owner[query], n_top, thumbnail
            ),
        )
        for case, query in _choose(ranks, n_examples)
    )


def annotation_examples(
    scores: npt.ArrayLike,
    captions: Sequence[str],
    images: Images,
    *,
    caption_image: npt.ArrayLike | None = None,
    n_examples: int = 2,
    n_top: int = 5,
    ties: Ties = "mean",
    system: str = "",
    n_threads: int | None = None,
) -> tuple[Example, ...]:
    """Images with the sentences that a system found for them.

    The parameters, the result and the errors are those of `search_examples`.

    Parameters
    ----------
    scores, captions, images, caption_image, n_examples, n_top, ties, system, n_threads
        See `search_examples`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.report import annotation_examples
    >>> photos = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> best, worst = annotation_examples(
    ...     [[0.9, 0.8], [0.4, 0.3]], ["a dog", "a cat"], photos, n_examples=1
    ... )
    >>> [hit.content for hit in worst.hits if hit.is_gold]
    ['a cat']
    """
    matrix, owner = _check(scores, captions, caption_image)
    ranks = retrieval_ranks(matrix, owner, ties=ties, n_threads=n_threads).annotation
    thumbnail = _thumbnails(images, captions, owner)
    return tuple(
        Example(
            task="annotation",
            case=case,
            system=system,
            query=thumbnail(query),
            rank=float(ranks[query]),
            n_candidates=matrix.shape[1],
            hits=_hits(matrix[query], owner == query, n_top, captions.__getitem__),
        )
        for case, query in _choose(ranks, n_examples)
    )


def _check(
    scores: npt.ArrayLike, captions: Sequence[str], caption_image: npt.ArrayLike | None
) -> tuple[Array, npt.NDArray[np.intp]]:
    matrix = as_scores("scores", scores)
    if len(captions) != matrix.shape[1]:
        raise ValueError(
            f"captions must have one entry per column of scores ({matrix.shape[1]}), "
            f"got {len(captions)}"
        )
    return matrix, as_caption_image(caption_image, matrix.shape)


def _choose(ranks: npt.NDArray[np.float64], n_examples: int) -> list[tuple[str, int]]:
    """Choose cases and different queries; extreme cases first if there are few queries."""
    n_examples = check_integer("n_examples", n_examples, minimum=1)
    order = np.argsort(ranks, kind="stable").tolist()
    n_good = min(n_examples, (len(order) + 1) // 2)
    n_bad = min(n_examples, len(order) - n_good)
    n_typical = min(n_examples, len(order) - n_good - n_bad)
    start = min(max((len(order) - n_typical) // 2, n_good), len(order) - n_bad - n_typical)
    parts = (order[:n_good], order[start : start + n_typical], order[len(order) - n_bad :])
    return [(case, query) for case, part in zip(_CASES, parts, strict=True) for query in part]


def _hits(
    scores: Array,
    is_gold: npt.NDArray[np.bool_],
    n_top: int,
    content: Callable[[int], str | Thumbnail],
) -> tuple[Hit, ...]:
    n_top = check_integer("n_top", n_top, minimum=1)
    order = np.argsort(-scores, kind="stable")
    first_gold = int(np.flatnonzero(is_gold[order])[0])
    positions = list(range(min(n_top, len(order))))
    if first_gold >= n_top:
        positions.append(first_gold)
    return tuple(
        Hit(
            position=position + 1,
            score=float(scores[order[position]]),
            is_gold=bool(is_gold[order[position]]),
            content=content(int(order[position])),
        )
        for position in positions
    )


def _thumbnails(
    images: Images, captions: Sequence[str], owner: npt.NDArray[np.intp]
) -> Callable[[int], Thumbnail]:
    """Return a function that makes the thumbnail of an image, described by its caption."""
    load = images if callable(images) else images.__getitem__

    def thumbnail(image: int) -> Thumbnail:
        caption = captions[int(np.flatnonzero(owner == image)[0])]
        return make_thumbnail(
            f"images[{image}]", load(image), alt=f"Image described as: {caption}"
        )

    return thumbnail
