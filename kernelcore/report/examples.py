"""Example queries with their results: good, typical and bad ones."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_choice, check_integer
from kernelcore.evaluation._inputs import as_caption_image, as_rows
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.models.base import TASKS, Task
from kernelcore.plots.regions import as_picture

Images: TypeAlias = Sequence[npt.NDArray[np.uint8]] | Callable[[int], npt.NDArray[np.uint8]]
"""Pixels of image i by index or by call: uint8, shape (height, width, 3) in RGB order."""

_MAX_SIDE = 256
_QUALITY = 82
_N_TOP = 5  # candidates that are shown of a query


@dataclass(frozen=True)
class Thumbnail:
    """A small JPEG picture.

    Attributes
    ----------
    jpeg : bytes
        The file.
    width, height : int
        In pixels.
    alt : str
        Alternative text, for those who do not see it.
    """

    jpeg: bytes
    width: int
    height: int
    alt: str

    @property
    def uri(self) -> str:
        """The picture as a ``data:`` address."""
        return data_uri("image/jpeg", self.jpeg)


def make_thumbnail(name: str, pixels: Any, *, alt: str) -> Thumbnail:
    """Shrink RGB `pixels`, called `name` in errors, to at most 256 pixels a side."""
    photo = np.ascontiguousarray(as_picture(name, pixels))
    picture = _extras.require("PIL.Image").fromarray(photo)
    picture.thumbnail((_MAX_SIDE, _MAX_SIDE))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=_QUALITY, optimize=True)
    return Thumbnail(buffer.getvalue(), picture.width, picture.height, alt)


def data_uri(kind: str, content: bytes) -> str:
    """Return `content` of the media type `kind` as a ``data:`` address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


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
        Rank of the best gold item; items that tie share the mean of their ranks.
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


def query_examples(
    scores: npt.ArrayLike,
    captions: Sequence[str],
    images: Images,
    *,
    task: Task,
    caption_image: npt.ArrayLike | None = None,
    n_examples: int = 2,
    system: str = "",
    n_threads: int | None = None,
) -> tuple[Example, ...]:
    """Good, typical and bad queries of a system, with what it found for them.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Higher is better.
    captions : sequence of str
        Text of each caption.
    images : sequence of ndarray, or callable
        Pixels of image i as ``images[i]`` or ``images(i)``: uint8 in RGB order, shape
        (height, width, 3). Only the images that are shown are asked for.
    task : {"annotation", "search"}
        Whether the queries are images and the results captions, or the other way round.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    n_examples : int, default=2
        Queries of each case. All queries are put in order of their rank: the good are the
        first of them, the typical the middle ones, the bad the last. Each is shown with its
        best five candidates, and the gold one if it is not among them.
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
    >>> from kernelcore.report import query_examples
    >>> photos = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> best, worst = query_examples(
    ...     [[0.9, 0.8], [0.1, 0.3]], ["a dog", "a cat"], photos, task="search", n_examples=1
    ... )
    >>> best.query, best.rank, worst.query, worst.rank
    ('a dog', 1.0, 'a cat', 2.0)
    """
    check_choice("task", task, TASKS)
    n_examples = check_integer("n_examples", n_examples, minimum=1)
    matrix = as_rows("scores", scores).matrix()
    if len(captions) != matrix.shape[1]:
        raise ValueError(
            f"captions must have one entry per column of scores ({matrix.shape[1]}), "
            f"got {len(captions)}"
        )
    owner = as_caption_image(caption_image, matrix.shape)
    ranks = getattr(retrieval_ranks(matrix, owner, n_threads=n_threads), task)
    load = images if callable(images) else images.__getitem__

    text_of: Callable[[int], str | Thumbnail] = captions.__getitem__

    def thumbnail(image: int) -> str | Thumbnail:
        alt = f"Image described as: {captions[int(np.flatnonzero(owner == image)[0])]}"
        return make_thumbnail(f"images[{image}]", load(image), alt=alt)

    query_of, content_of = (text_of, thumbnail) if task == "search" else (thumbnail, text_of)
    found = []
    for case, query in _choose(ranks, n_examples):
        if task == "search":
            row, is_gold = matrix[:, query], np.arange(len(matrix)) == owner[query]
        else:
            row, is_gold = matrix[query], owner == query
        hits = _hits(row, is_gold, content_of)
        rank = float(ranks[query])
        found.append(Example(task, case, system, query_of(query), rank, len(row), hits))
    return tuple(found)


def _choose(ranks: npt.NDArray[np.float64], n_examples: int) -> list[tuple[str, int]]:
    """Choose cases and different queries; extreme cases first if there are few queries."""
    order = np.argsort(ranks, kind="stable").tolist()
    n_good = min(n_examples, (len(order) + 1) // 2)
    n_bad = min(n_examples, len(order) - n_good)
    n_typical = min(n_examples, len(order) - n_good - n_bad)
    start = min(max((len(order) - n_typical) // 2, n_good), len(order) - n_bad - n_typical)
    cases = {
        "good": order[:n_good],
        "typical": order[start : start + n_typical],
        "bad": order[len(order) - n_bad :],
    }
    return [(case, query) for case, queries in cases.items() for query in queries]


def _hits(
    scores: Array, is_gold: npt.NDArray[np.bool_], content: Callable[[int], str | Thumbnail]
) -> tuple[Hit, ...]:
    order = np.argsort(-scores, kind="stable").tolist()
    first_gold = int(np.flatnonzero(is_gold[order])[0])
    positions = list(range(min(_N_TOP, len(order))))
    if first_gold >= _N_TOP:
        positions.append(first_gold)
    return tuple(
        Hit(i + 1, float(scores[order[i]]), bool(is_gold[order[i]]), content(order[i]))
        for i in positions
    )
