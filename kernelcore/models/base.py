"""What a ranker is: it hands out a matrix of scores, and nothing else is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy.typing as npt

from kernelcore._validation import Array, check_choice
from kernelcore.kernels.gram import as_gram

Task: TypeAlias = Literal["annotation", "search"]
"""Annotation ranks captions for an image, search ranks images for a caption."""

TASKS: tuple[Task, ...] = ("annotation", "search")

Similarity: TypeAlias = Callable[..., npt.ArrayLike] | Literal["precomputed"]
"""A function of (X, Y=None) that returns a matrix (n_X, n_Y), or "precomputed"."""


@runtime_checkable
class Ranker(Protocol):
    """Learns from captioned images and scores every image against every caption.

    Images and captions are whatever the ranker's similarities take: `SpatialHistograms` and
    `EncodedCaptions`, say, or rows of kernel values where the kernels are precomputed.
    """

    def fit(self, images: Any, captions: Any) -> Ranker:
        """Learn from training images and their captions: item i of both belongs together."""
        ...

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[Any]:
        """Score every image against every caption; higher is better.

        Parameters
        ----------
        images : array_like or collection of length n_images
        captions : array_like or collection of length n_captions
        task : {"annotation", "search"}, default "annotation"
            What the scores will rank: the captions of a row, or the images of a column.
            Rows are images in both cases. Many rankers give the same scores for both.

        Returns
        -------
        ndarray of shape (n_images, n_captions)
        """
        ...


Run: TypeAlias = Iterator[tuple[int, Mapping[Task, Array]]]
"""Settings one after the other: the place of each in the grid, and its scores by task."""


class FittedSettings(Protocol):
    """Rankers of several settings, fitted together to the same items."""

    def runs(
        self, places: Collection[int], images: Any, captions: Any, *, tasks: Sequence[Task]
    ) -> Sequence[Run]:
        """Score every image against every caption under some of the settings.

        Parameters
        ----------
        places : collection of int
            Places of the settings in the sequence that was fitted.
        images, captions : collection
            As for `Ranker.scores`.
        tasks : sequence of {"annotation", "search"}
            The tasks to score for.

        Returns
        -------
        sequence of iterator of (int, mapping of task to ndarray)
            Iterators that depend on nothing the others do: they may be consumed on several
            threads. Together they give every place once.
        """
        ...

    def ranker(self, place: int) -> Ranker:
        """Return the fitted ranker of one setting."""
        ...


@runtime_checkable
class SharesFit(Protocol):
    """A ranker of which one costly fit serves many settings; `GridSearch` makes use of it.

    Attributes
    ----------
    shared_fit_params : frozenset of str
        Names of the parameters in which the settings may differ.
    """

    shared_fit_params: frozenset[str]

    def fit_settings(
        self, images: Any, captions: Any, settings: Sequence[Mapping[str, Any]]
    ) -> FittedSettings:
        """Fit rankers with this one's parameters but for those that each setting names."""
        ...


def check_ranker(name: str, ranker: Any) -> None:
    """Raise unless `ranker` has the methods of one."""
    if isinstance(ranker, type) or not isinstance(ranker, Ranker):
        raise TypeError(f"{name} must have the methods fit and scores, got {ranker!r}")


def check_task(task: Any) -> None:
    """Raise unless `task` is one of the two."""
    check_choice("task", task, TASKS)


def training_gram(name: str, similarity: Similarity, items: Any) -> Array:
    """Similarities of the training items with one another."""
    if similarity == "precomputed":
        return as_gram(name, items, square=True)
    return as_gram(name, _checked(name, similarity)(items))


def rows_against(name: str, similarity: Similarity, items: Any, training: Any) -> Array:
    """Similarities of items, one row each, with the training items that `fit` was given."""
    if similarity == "precomputed":
        return as_gram(name, items)
    return as_gram(name, _checked(name, similarity)(items, training))


def _checked(name: str, similarity: Similarity) -> Callable[..., npt.ArrayLike]:
    if not callable(similarity):
        raise TypeError(
            f'the similarity of {name} must be a function or "precomputed", got {similarity!r}'
        )
    return similarity
