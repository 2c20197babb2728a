"""The contract of rankers, and the forms of images and captions that `fit` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_choice, check_indices, check_rng
from kernelcore._ragged import n_items, take
from kernelcore._threads import Progress

Task: TypeAlias = Literal["annotation", "search"]
"""Annotation ranks captions for an image, search ranks images for a caption."""

TASKS: tuple[Task, ...] = ("annotation", "search")


@runtime_checkable
class Ranker(Protocol):
    """Learns from captioned images and scores every image against every caption.

    The type of images and captions depends on the ranker: photos or features and raw
    sentences, `SpatialHistograms` and `EncodedCaptions`, or rows of precomputed kernels. A
    ranker that learns a space of vectors also has `embed_images` and `embed_captions`, and
    rankers that learn parameters have `save` and `load`.
    """

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
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
        n_threads : int, optional
            Threads to use; the default is every core this process may run on.
        progress : bool or callable, default False
            True shows a bar; a callable is called with (steps done, steps).

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
            Annotation ranks the captions of a row, search the images of a column. Rows are
            images in both cases. Many rankers give the same scores for both.

        Returns
        -------
        ndarray of shape (n_images, n_captions)
        """
        ...


def check_task(task: Any) -> None:
    """Raise unless `task` is one of the two."""
    check_choice("task", task, TASKS)


Owners: TypeAlias = npt.NDArray[np.intp]

DEV_SHARE = 0.2
"""Share of the images that is held out where no development items are given."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Captions, one after another, and the images that they belong to.

    Attributes
    ----------
    images : collection of length n_images
    captions : collection of length n_captions
    caption_image : ndarray of intp, shape (n_captions,)
        Position in `images` of the image of each caption.
    """

    images: Any
    captions: Any
    caption_image: Owners

    @classmethod
    def of(
        cls, images: Any, captions: Any, caption_image: Any = None, *, prefix: str = ""
    ) -> Pairs:
        """Lay out images and captions in either form that `fit` takes.

        Parameters
        ----------
        images : collection of length n_images
        captions : sequence of sequence of str, or collection of length n_captions
            Captions of each image, or captions one after another.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption. Omit it where captions are
            nested, or where caption i belongs to image i.
        prefix : str, default ""
            Stands before the names of arguments in errors: "dev ", say.

        Raises
        ------
        TypeError, ValueError
            If there are not as many captions as the images or `caption_image` ask for, an
            image is out of range, or nested captions come with `caption_image`.

        Examples
        --------
        >>> from kernelcore.models.base import Pairs
        >>> Pairs.of(["a.jpg", "b.jpg"], [["a dog", "it runs"], ["the sea"]]).caption_image
        array([0, 0, 1])
        """
        n_images = n_items(images)
        if is_nested(captions):
            if caption_image is not None:
                raise ValueError(
                    f"{prefix}caption_image must be omitted where captions are nested: "
                    "these say which image a caption belongs to"
                )
            if len(captions) != n_images:
                raise ValueError(
                    f"{prefix}captions must hold the captions of each image ({n_images}), "
                    f"got {len(captions)}"
                )
            owners = np.repeat(np.arange(n_images), [len(own) for own in captions])
            return cls(images, [text for own in captions for text in own], owners)
        n_captions = n_items(captions)
        if caption_image is not None:
            return cls(
                images, captions, owners_of(caption_image, n_images, n_captions, prefix=prefix)
            )
        if n_captions != n_images:
            raise ValueError(
                f"{prefix}captions must be one per image ({n_images}) where caption_image is "
                f"omitted, got {n_captions}"
            )
        return cls(images, captions, np.arange(n_captions))

    def __len__(self) -> int:
        return len(self.caption_image)

    def select(self, captions: Owners) -> Pairs:
        """Return the captions at these positions, and all images."""
        return replace(
            self,
            captions=take(self.captions, captions),
            caption_image=self.caption_image[captions],
        )

    def compact(self) -> Pairs:
        """Drop the images that have no caption."""
        images, owners = np.unique(self.caption_image, return_inverse=True)
        return Pairs(take(self.images, images), self.captions, owners)


def held_out(
    owners: Owners, rng: np.random.Generator | int | None = 0
) -> tuple[Owners, Owners]:
    """Divide items by their images at random; the second part has a `DEV_SHARE` of these.

    By default the same number of images is divided in the same way in every call.

    Raises
    ------
    ValueError
        If fewer than 2 images would be left to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models.base import held_out
    >>> held_out(np.array([0, 1, 2, 3, 3, 4, 5]))
    (array([0, 1, 2, 5, 6]), array([3, 4]))
    """
    images, places = np.unique(owners, return_inverse=True)
    n_images, n_held_out = len(images), max(1, round(DEV_SHARE * len(images)))
    if n_images - n_held_out < 2:
        raise ValueError(
            "images must be at least 3 different ones, because some are held out to choose "
            f"settings by, got {n_images}"
        )
    order = check_rng("rng", rng).permutation(n_images)
    is_held_out = np.isin(places, order[:n_held_out])
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def owners_of(
    caption_image: Any, n_images: int, n_captions: int, *, prefix: str = ""
) -> Owners:
    """Check which image each caption belongs to."""
    owners = check_indices(f"{prefix}caption_image", caption_image, n_images)
    if len(owners) != n_captions or not n_captions:
        raise ValueError(
            f"{prefix}caption_image must have one entry for each of at least one caption, "
            f"got {len(owners)} for {n_captions}"
        )
    return owners


def dev_parts(dev: Any) -> tuple[Any, Any, Any]:
    """Return images, captions and `caption_image`, None if omitted, of development items."""
    if not isinstance(dev, (list, tuple)) or len(dev) not in (2, 3):
        what = f"{len(dev)} parts" if isinstance(dev, (list, tuple)) else type(dev).__name__
        raise TypeError(
            f"dev must be a pair (images, captions), got {what}; caption_image may be third"
        )
    images, captions, *owners = dev
    return images, captions, owners[0] if owners else None


def is_nested(captions: Any) -> TypeGuard[Sequence[Sequence[str]]]:
    """Whether captions are nested: a list of strings for each image."""
    return (
        isinstance(captions, (list, tuple))
        and len(captions) > 0
        and all(
            isinstance(own, (list, tuple)) and all(isinstance(text, str) for text in own)
            for own in captions
        )
    )
