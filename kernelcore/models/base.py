"""What a ranker is: it hands out a matrix of scores, and nothing else is asked of it."""

from __future__ import annotations

from collections.abc import Callable
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
