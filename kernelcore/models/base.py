"""The contract of rankers: `fit`, and `scores` that are a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from kernelcore._validation import Array, check_choice
from kernelcore.kernels._samples import n_items
from kernelcore.kernels.gram import as_gram
from kernelcore.models.pairs import Owners, owners_of

Task: TypeAlias = Literal["annotation", "search"]
"""Annotation ranks captions for an image, search ranks images for a caption."""

TASKS: tuple[Task, ...] = ("annotation", "search")

Similarity: TypeAlias = Callable[..., npt.ArrayLike] | Literal["precomputed"]
"""A function of (X, Y=None) that returns a matrix (n_X, n_Y), or "precomputed"."""


@runtime_checkable
class Ranker(Protocol):
    """Learns from captioned images and scores every image against every caption.

    Images and captions are whatever the ranker takes: photos or features and raw sentences,
    `SpatialHistograms` and `EncodedCaptions`, or rows of kernel values where kernels are
    precomputed. A ranker that learns a space of vectors also has `embed_images` and
    `embed_captions`; all of this package have `save` and `load`.
    """

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> Ranker:
        """Learn from training images and their captions.

        Parameters
        ----------
        images : collection of length n_images
        captions : collection
            Captions of each image (item i of both belongs together), nested where these are
            strings; or captions one after another.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption, where they stand one after
            another.
        dev : (images, captions) or (images, captions, caption_image), optional
            Development items, to choose settings by. Without them a share of the training
            images is held out. Rankers that choose nothing do not need them.

        Returns
        -------
        Ranker
            This ranker.
        """
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
        self,
        images: Any,
        captions: Any,
        settings: Sequence[Mapping[str, Any]],
        *,
        caption_image: npt.ArrayLike | None = None,
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


def fit_ranker(
    ranker: Any, images: Any, captions: Any, *, caption_image: Any = None, dev: Any = None
) -> None:
    """Fit a ranker of any class: one that takes no development items is not given them."""
    takes = inspect.signature(ranker.fit).parameters
    options = {} if caption_image is None else {"caption_image": caption_image}
    if options and "caption_image" not in takes:
        raise TypeError(
            f"caption_image must be omitted: {type(ranker).__name__}.fit does not take it"
        )
    if dev is not None and "dev" in takes:
        options["dev"] = dev
    ranker.fit(images, captions, **options)


class Repeats(NamedTuple):
    """Training images that stand beside several captions: each pair is a training item.

    Attributes
    ----------
    n_images : int
        Distinct images, which kernels are computed with.
    caption_image : ndarray of intp, shape (n_captions,)
        The image of each caption.
    """

    n_images: int
    caption_image: Owners

    @classmethod
    def of(cls, images: Any, captions: Any, caption_image: Any) -> Repeats | None:
        """Check what `fit` is given; None stands for one caption, or bag of them, an image."""
        if caption_image is None:
            return None
        n_images = n_items(images)
        return cls(n_images, owners_of(caption_image, n_images, n_items(captions)))

    def gram(self, K: Array) -> Array:
        """Repeat rows and columns of the training images' kernel."""
        return K[np.ix_(self.caption_image, self.caption_image)]

    def columns(self, K: Array) -> Array:
        """Repeat the columns of a kernel of new images with the training images."""
        if K.shape[1] != self.n_images:
            raise ValueError(
                f"images must have one column per training image ({self.n_images}), "
                f"got shape {K.shape}"
            )
        return K[:, self.caption_image]


def training_gram(
    name: str, similarity: Similarity, items: Any, repeats: Repeats | None = None
) -> Array:
    """Similarities of the training items with one another."""
    if similarity == "precomputed":
        K = as_gram(name, items, square=True)
    else:
        K = as_gram(name, _checked(name, similarity)(items))
    return K if repeats is None else repeats.gram(K)


def rows_against(
    name: str,
    similarity: Similarity,
    items: Any,
    training: Any,
    repeats: Repeats | None = None,
) -> Array:
    """Similarities of items, one row each, with the training items that `fit` was given."""
    if similarity == "precomputed":
        K = as_gram(name, items)
    else:
        K = as_gram(name, _checked(name, similarity)(items, training))
    return K if repeats is None else repeats.columns(K)


def _checked(name: str, similarity: Similarity) -> Callable[..., npt.ArrayLike]:
    if not callable(similarity):
        raise TypeError(
            f'the similarity of {name} must be a function or "precomputed", got {similarity!r}'
        )
    return similarity
