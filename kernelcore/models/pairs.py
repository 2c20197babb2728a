"""Images and the captions that belong to them, in either of the two forms that `fit` takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_indices, check_rng
from kernelcore.kernels._samples import n_items, take

_OF_ITEMS = re.compile(r"^((?:images|photos|captions|caption_image)(?:\[\d+\])*)(?= )")

Owners: TypeAlias = npt.NDArray[np.intp]

Items: TypeAlias = tuple[Any, Any, Any]
"""Images, captions and `caption_image`, None where item i of both belongs together."""

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
    def of(cls, images: Any, captions: Any, caption_image: Any = None) -> Pairs:
        """Lay out what a caller gives.

        Parameters
        ----------
        images : collection of length n_images
        captions : sequence of sequence of str, or collection of length n_captions
            Captions of each image, or captions one after another.
        caption_image : array_like of int, shape (n_captions,), optional
            Position in `images` of the image of each caption. Omit it where captions are
            nested, or where caption i belongs to image i.

        Raises
        ------
        TypeError, ValueError
            If there are not as many captions as the images or `caption_image` ask for, an
            image is out of range, or nested captions come with `caption_image`.

        Examples
        --------
        >>> from kernelcore.models.pairs import Pairs
        >>> Pairs.of(["a.jpg", "b.jpg"], [["a dog", "it runs"], ["the sea"]]).caption_image
        array([0, 0, 1])
        """
        n_images = count(images)
        if is_nested(captions):
            if caption_image is not None:
                raise ValueError(
                    "caption_image must be omitted where captions are nested as images, "
                    "captions: these say which image a caption belongs to"
                )
            if len(captions) != n_images:
                raise ValueError(
                    f"captions must hold the captions of each image ({n_images}), "
                    f"got {len(captions)}"
                )
            owners = np.repeat(np.arange(n_images), [len(own) for own in captions])
            return cls(images, [text for own in captions for text in own], owners)
        n_captions = n_items(captions)
        if caption_image is not None:
            return cls(images, captions, owners_of(caption_image, n_images, n_captions))
        if n_captions != n_images:
            raise ValueError(
                f"captions must be one per image ({n_images}) where caption_image is "
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
        """Return the same without the images that have no caption."""
        images, owners = np.unique(self.caption_image, return_inverse=True)
        return Pairs(take_images(self.images, images), self.captions, owners)

    @property
    def items(self) -> Items:
        """Images, captions and `caption_image`."""
        return self.images, self.captions, self.caption_image

    def hold_out(self) -> tuple[Pairs, Pairs]:
        """Divide by images: the captions of most, and those of the `DEV_SHARE` held out."""
        own = np.unique(self.caption_image)
        return tuple(  # type: ignore[return-value]
            self.select(np.flatnonzero(np.isin(self.caption_image, own[part])))
            for part in held_out(len(own))
        )


def held_out(
    n_images: int, share: float = DEV_SHARE, rng: np.random.Generator | int | None = 0
) -> tuple[Owners, Owners]:
    """Divide images at random into those to learn from and those to choose settings by.

    The same number of images is divided in the same way in every call, unless `rng` says
    otherwise.

    Raises
    ------
    ValueError
        If fewer than 2 images would be left to learn from.

    Examples
    --------
    >>> from kernelcore.models.pairs import held_out
    >>> held_out(6)
    (array([0, 1, 2, 4, 5]), array([3]))
    """
    n_held_out = max(1, round(share * n_images))
    if n_images - n_held_out < 2:
        raise ValueError(
            "images must leave at least 2 to learn from once some are held out to choose "
            f"settings by, got {n_images} of which {n_held_out} are held out"
        )
    order = check_rng("rng", rng).permutation(n_images)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def divided(images: Any, captions: Any, caption_image: Any) -> tuple[Items, Items]:
    """Hold out a share of the images; each part is in the form that was given."""
    if caption_image is not None:
        kept, left_out = Pairs.of(images, captions, caption_image).hold_out()
        return kept.compact().items, left_out.compact().items
    if n_items(captions) != count(images):
        raise ValueError(
            f"captions must be one per image ({count(images)}) where caption_image is "
            f"omitted, got {n_items(captions)}"
        )
    first, second = held_out(count(images))
    return (
        (take_images(images, first), take(captions, first), None),
        (take_images(images, second), take(captions, second), None),
    )


def owners_of(caption_image: Any, n_images: int, n_captions: int) -> Owners:
    """Check which image each caption belongs to."""
    owners = check_indices("caption_image", caption_image, n_images)
    if len(owners) != n_captions or not n_captions:
        raise ValueError(
            f"caption_image must have one entry for each of at least one caption, "
            f"got {len(owners)} for {n_captions}"
        )
    return owners


def dev_parts(dev: Any) -> Items:
    """Return images, captions and `caption_image`, None if omitted, of development items."""
    if not isinstance(dev, (list, tuple)) or len(dev) not in (2, 3):
        what = f"{len(dev)} parts" if isinstance(dev, (list, tuple)) else type(dev).__name__
        raise TypeError(
            f"dev must be a pair (images, captions), got {what}; caption_image may be third"
        )
    images, captions, *owners = dev
    return images, captions, owners[0] if owners else None


@contextmanager
def about_dev() -> Iterator[None]:
    """Let errors about arguments say that they are those of `dev`."""
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        message = _OF_ITEMS.sub(r"the \1 of dev", str(error))
        if message == str(error) or type(error) not in (
            TypeError,
            ValueError,
            FileNotFoundError,
        ):
            raise
        raise type(error)(message) from error


def is_nested(captions: Any) -> TypeGuard[Sequence[Sequence[str]]]:
    """Whether captions are nested as images, captions: lists of strings."""
    return (
        isinstance(captions, (list, tuple))
        and len(captions) > 0
        and all(
            isinstance(own, (list, tuple)) and all(isinstance(text, str) for text in own)
            for own in captions
        )
    )


def count(images: Any) -> int:
    """Return how many images there are; histograms may stand by feature in a mapping."""
    if isinstance(images, Mapping):
        images = next(iter(images.values()), ())
    return n_items(images)


def take_images(images: Any, part: Owners) -> Any:
    """Return the images at these positions, as a collection of their kind."""
    if isinstance(images, Mapping):
        return {name: take(own, part) for name, own in images.items()}
    return take(images, part)
