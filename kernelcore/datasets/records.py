"""Records of captioned photos and their splits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_indices, check_integer, owned
from kernelcore._photos import Outside, Source
from kernelcore._threads import cached_property
from kernelcore.errors import DatasetWarning

__all__ = ["CaptionPool", "CaptionedImages", "DatasetWarning"]

# Parallel to the image ids.
_PARTS = ("paths", "captions", "caption_ids", "caption_numbers", "sources")


class CaptionPool(NamedTuple):
    """Captions of several images, one after another: the columns of a matrix of scores.

    Attributes
    ----------
    captions : tuple of str
        Raw captions.
    caption_ids : tuple of str
        The source's id of each.
    caption_image : ndarray of intp, shape (n_captions,)
        Position of the image that each belongs to: the row of its scores.
    """

    captions: tuple[str, ...]
    caption_ids: tuple[str, ...]
    caption_image: npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class CaptionedImages:
    """Pictures with their captions and the splits they belong to.

    Attributes
    ----------
    name : str
        Name of the collection, as results will quote it.
    image_ids : tuple of str
        One unique id per image, in the order of the source.
    paths : tuple of Path or None
        Image file of each image; None where the collection came without pictures.
    captions : tuple of tuple of str
        Raw captions of each image. An image may have any number of them.
    caption_ids : tuple of tuple of str
        The source's id of each caption, parallel to `captions`.
    caption_numbers : tuple of tuple of int
        Number of each caption within its image as the source gives it, parallel to
        `captions`: the ``2`` of ``photo.jpg#2``, or the position where the source has none.
        No image has two captions of the same number.
    splits : mapping of str to ndarray of intp
        Indices of the images of each split, in the order of the split file. They are
        checked once and then read-only.
    sources : tuple, optional
        Photos that are in no file of their own, parallel to `image_ids`, with None for
        others: bytes of a file, an array of uint8 or an image of Pillow. Omit it where there
        are none.

    Raises
    ------
    TypeError
        If a split does not hold integers.
    ValueError
        If the parts have different lengths, an image id or a caption number comes twice,
        an image has both a path and a source, or a split names an image twice or one that
        is not there.

    See Also
    --------
    CaptionedImages.from_pairs : Makes one of Python objects.
    kernelcore.datasets.load_flickr : Reads one of these from a published corpus.
    kernelcore.datasets.make_scenes : Draws one.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages
    >>> photos = CaptionedImages(
    ...     name="garden",
    ...     image_ids=("a.jpg", "b.jpg", "c.jpg"),
    ...     paths=(None, None, None),
    ...     captions=(("A dog digs.", "Earth flies."), ("A cat sleeps.",), ("A rose.",)),
    ...     caption_ids=(("a.jpg#0", "a.jpg#1"), ("b.jpg#0",), ("c.jpg#0",)),
    ...     caption_numbers=((0, 1), (0,), (0,)),
    ...     splits={"train": [2, 0], "test": [1]},
    ... )
    >>> photos
    CaptionedImages('garden', 3 images without files, 4 captions, train 2, test 1)
    >>> photos.split("train")
    array([2, 0])
    >>> photos.subset([1, 2]).captions
    (('A cat sleeps.',), ('A rose.',))
    >>> photos.pool().caption_image
    array([0, 0, 1, 2])
    """

    name: str
    image_ids: tuple[str, ...]
    paths: tuple[Path | None, ...]
    captions: tuple[tuple[str, ...], ...]
    caption_ids: tuple[tuple[str, ...], ...]
    caption_numbers: tuple[tuple[int, ...], ...]
    splits: Mapping[str, npt.NDArray[np.intp]] = field(default_factory=dict)
    sources: tuple[Source | None, ...] = ()

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[Any, ...]],
        *,
        name: str = "photos",
        images_dir: str | os.PathLike[str] | None = None,
        outside: Outside = "refuse",
    ) -> CaptionedImages:
        """Gather pairs of a photo and a caption.

        Parameters
        ----------
        pairs : iterable of (photo, caption), optionally with a split and an image id
            A photo is a path, the bytes of a file, an array of uint8, an image of Pillow or a
            mapping with ``bytes`` or ``path``; a caption is text or a list of texts; a split
            is a name or None. The captions of a photo may be spread over any number of pairs.
        name : str, default "photos"
            Name of the collection, as results will quote it.
        images_dir : path, optional
            Folder that paths start from. By default they start from the current folder.
        outside : {"refuse", "allow"}, default "refuse"
            What to do where a path leads out of `images_dir`; see `load_folder`. Without
            `images_dir` any path is allowed.

        Returns
        -------
        CaptionedImages
            In the order in which the photos come first. Without an image id the id of a photo
            is its path as given. A photo in memory has the first digits of the SHA-256 of its
            content, so that the same photo given twice is one image. The split ``val`` or
            ``validation`` is called ``dev``.

        Raises
        ------
        FileNotFoundError, NotADirectoryError
            If `images_dir` is not a folder.
        TypeError
            If a pair, a photo, a caption or a split is of another kind.
        ValueError
            If no pair can be used, a photo is in two splits or cannot be read, or a path
            leads out of `images_dir`.

        Warns
        -----
        DatasetWarning
            Once, if pairs are odd: files that are not there, missing or empty captions.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelcore.datasets import CaptionedImages
        >>> snow, night = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
        >>> photos = CaptionedImages.from_pairs(
        ...     [
        ...         (snow, "A white field.", "train"),
        ...         (night, "A dark road.", "test"),
        ...         (snow, "Snow everywhere.", "train"),
        ...     ]
        ... )
        >>> photos
        CaptionedImages('photos', 2 images (0 files, 2 others), 3 captions, train 1, test 1)
        >>> photos.captions
        (('A white field.', 'Snow everywhere.'), ('A dark road.',))
        >>> photos.images[1].shape
        (8, 8, 3)
        """
        from kernelcore.datasets.folder import collect_pairs

        return collect_pairs(pairs, name, images_dir, outside)

    def __post_init__(self) -> None:
        n_images = len(self.image_ids)
        if not self.sources:
            object.__setattr__(self, "sources", (None,) * n_images)
        for part in _PARTS:
            if len(getattr(self, part)) != n_images:
                raise ValueError(
                    f"{part} must have one entry per image ({n_images}), "
                    f"got {len(getattr(self, part))}"
                )
        if len(set(self.image_ids)) != n_images:
            raise ValueError("image_ids must be unique, got duplicates")
        for image_id, *parts in zip(
            self.image_ids, *(getattr(self, part) for part in _PARTS), strict=True
        ):
            path, texts, ids, numbers, source = parts
            if not len(texts) == len(ids) == len(numbers):
                raise ValueError(
                    "caption_ids and caption_numbers must be parallel to captions, "
                    f"got {len(texts)} captions, {len(ids)} ids and {len(numbers)} numbers "
                    f"for {image_id!r}"
                )
            if len(set(numbers)) != len(numbers):
                raise ValueError(
                    f"caption_numbers must be unique within an image, got {numbers} "
                    f"for {image_id!r}"
                )
            if path is not None and source is not None:
                raise ValueError(
                    f"an image must have a path or a source, got both for {image_id!r}"
                )
        splits = {
            name: _as_indices(f"splits[{name!r}]", indices, n_images)
            for name, indices in self.splits.items()
        }
        object.__setattr__(self, "splits", splits)

    def __len__(self) -> int:
        return len(self.image_ids)

    def __repr__(self) -> str:
        n_files = sum(path is not None for path in self.paths)
        n_others = sum(source is not None for source in self.sources)
        files = "" if n_files == len(self) else f" ({n_files} files)"
        if n_others:
            files = f" ({n_files} files, {n_others} others)"
        elif not n_files and len(self):
            files = " without files"
        parts = [repr(self.name), f"{len(self)} images{files}", f"{self.n_captions} captions"]
        parts += [f"{name} {len(members)}" for name, members in self.splits.items()]
        return f"CaptionedImages({', '.join(parts)})"

    @cached_property
    def images(self) -> Sequence[Any]:
        """Photos as a ranker takes them: paths or `sources`; None for no photo."""
        pairs = zip(self.paths, self.sources, strict=True)
        return tuple(source if path is None else path for path, source in pairs)

    @property
    def n_captions(self) -> int:
        """Number of captions of all images together."""
        return sum(map(len, self.captions))

    def split(self, name: str) -> npt.NDArray[np.intp]:
        """Return the image indices of split `name`; the error names the splits there are."""
        if name not in self.splits:
            known = ", ".join(map(repr, self.splits)) or "none"
            raise ValueError(
                f"split must be one of the splits of {self.name} ({known}), got {name!r}"
            )
        return self.splits[name]

    def split_sets(self, *names: str) -> tuple[CaptionedImages, ...]:
        """Return each split as a collection of its own.

        Parameters
        ----------
        *names : str, default "train", "dev", "test"
            The splits that are wanted.

        Returns
        -------
        tuple of CaptionedImages
            One for each name, in the order of the split.

        Raises
        ------
        ValueError
            If there is no such split, or two of them share an image.

        See Also
        --------
        kernelcore.datasets.random_splits : Makes splits.
        kernelcore.datasets.find_leaks : Finds photos of one collection in another.

        Examples
        --------
        >>> from kernelcore.datasets import make_scenes
        >>> train, dev, test = make_scenes(20).dataset.split_sets()
        >>> len(train), len(dev), len(test)
        (12, 4, 4)
        """
        members = {name: self.split(name) for name in names or ("train", "dev", "test")}
        values, counts = np.unique(np.concatenate([*members.values()]), return_counts=True)
        if (counts > 1).any():
            raise ValueError(
                f"splits must share no image, got {self.image_ids[values[counts > 1][0]]!r} in "
                f"more than one of {', '.join(map(repr, members))}"
            )
        return tuple(map(self.subset, members.values()))

    def pool(self, number: int | None = None) -> CaptionPool:
        """Return the captions of all images as one list.

        Parameters
        ----------
        number : int, optional
            Take the caption of this number of each image alone; by default all of them.

        Returns
        -------
        CaptionPool
            Image by image, captions unchanged.

        Raises
        ------
        ValueError
            If an image has no caption of this number.
        """
        if number is not None:
            number = check_integer("number", number)
        rows = [
            (text, caption_id, image)
            for image, parts in enumerate(
                zip(self.captions, self.caption_ids, self.caption_numbers, strict=True)
            )
            for text, caption_id, own_number in zip(*parts, strict=True)
            if number in (None, own_number)
        ]
        texts, caption_ids, owners = zip(*rows, strict=True) if rows else ((), (), ())
        if number is not None and len(rows) < len(self):
            lacking = sorted(set(range(len(self))).difference(owners))
            raise ValueError(
                f"every image must have a caption number {number}, and {len(lacking)} have "
                f"none, the first is {self.image_ids[lacking[0]]!r}"
            )
        return CaptionPool(texts, caption_ids, np.array(owners, np.intp))

    def subset(self, indices: npt.ArrayLike) -> CaptionedImages:
        """Return the images at `indices`, in that order.

        Each split keeps its order and its chosen images; an empty split is dropped.

        Parameters
        ----------
        indices : array_like of int, shape (n_chosen,)
            Positions in [0, n_images), each at most once.

        Returns
        -------
        CaptionedImages

        Raises
        ------
        TypeError
            If `indices` does not hold integers.
        ValueError
            If a position is out of range or comes twice.
        """
        chosen = _as_indices("indices", indices, len(self)).tolist()
        splits = {
            name: places[places >= 0]
            for name, members in self.splits.items()
            if (places := places_of(members.tolist(), chosen)).max(initial=-1) >= 0
        }
        parts: dict[str, Any] = {
            part: tuple(getattr(self, part)[i] for i in chosen)
            for part in ("image_ids", *_PARTS)
        }
        return replace(self, splits=splits, **parts)


def places_of(wanted: Iterable[Any], ids: Iterable[Any]) -> npt.NDArray[np.intp]:
    """Position of each wanted id among distinct `ids`, -1 where it is not there."""
    places = {entry: place for place, entry in enumerate(ids)}
    return np.array([places.get(entry, -1) for entry in wanted], dtype=np.intp)


def _as_indices(name: str, value: npt.ArrayLike, n_images: int) -> npt.NDArray[np.intp]:
    """Read-only positions of distinct images among `n_images`."""
    indices = owned(check_indices(name, value, n_images))
    values, counts = np.unique(indices, return_counts=True)
    if len(values) != len(indices):
        raise ValueError(
            f"{name} must name no image twice, got {values[counts > 1][0]} repeatedly"
        )
    return indices
