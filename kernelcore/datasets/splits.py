"""Random splits, and leaks: photos in both the training and the test set."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernelcore._check import check_integer, check_real, check_rng
from kernelcore._photos import digest
from kernelcore.datasets.records import CaptionedImages


def random_splits(
    dataset: CaptionedImages,
    train: float,
    dev: float,
    test: float,
    rng: np.random.Generator | int | None = None,
) -> CaptionedImages:
    """Divide the images at random into the splits ``train``, ``dev`` and ``test``.

    Parameters
    ----------
    dataset : CaptionedImages
        Any collection; splits it has are replaced.
    train, dev, test : int or float
        Sizes of the splits, all three as numbers of images (int) or all three as shares of
        the images (float). Images that remain are in no split, a split of size 0 is
        absent.
    rng : Generator or int, optional
        Source of randomness. The same number gives the same splits.

    Returns
    -------
    CaptionedImages
        The same images in the same order, with new splits.

    Raises
    ------
    TypeError
        If a size is not a number, or integers and floats are mixed.
    ValueError
        If a size is negative or the splits together exceed the collection.

    Examples
    --------
    >>> from kernelcore.datasets import make_scenes, random_splits
    >>> random_splits(make_scenes(20).dataset, 0.5, 0.25, 0.25, rng=0)
    CaptionedImages('scenes', 20 images without files, 100 captions, train 10, dev 5, test 5)
    """
    sizes = {"train": train, "dev": dev, "test": test}
    if any(isinstance(size, float) for size in sizes.values()):
        if not all(isinstance(size, float) for size in sizes.values()):
            raise TypeError(
                "train, dev and test must all be integers or all be floats, "
                f"got {train!r}, {dev!r} and {test!r}"
            )
        shares = [check_real(name, size, minimum=0) for name, size in sizes.items()]
        # Rounding the bounds instead of the sizes never gives more than there are.
        bounds = np.rint(np.cumsum(shares) * len(dataset)).astype(np.intp)
    else:
        counts = [check_integer(name, size, minimum=0) for name, size in sizes.items()]
        bounds = np.cumsum(counts)
    if bounds[-1] > len(dataset):
        raise ValueError(
            f"train, dev and test must together be at most {len(dataset)} images, "
            f"got {bounds[-1]}"
        )
    order = check_rng("rng", rng).permutation(len(dataset))
    parts = np.split(order, bounds)[:-1]
    return replace(
        dataset,
        splits={
            name: np.sort(part) for name, part in zip(sizes, parts, strict=True) if len(part)
        },
    )


class Leak(NamedTuple):
    """One photo in two sets.

    Attributes
    ----------
    train, test : tuple of str
        Ids of the images that show it in each of the two.
    """

    train: tuple[str, ...]
    test: tuple[str, ...]


def find_leaks(train: CaptionedImages, test: CaptionedImages) -> tuple[Leak, ...]:
    """Find the photos that two collections share, by their content.

    Parameters
    ----------
    train, test : CaptionedImages
        Collections whose photos can be read. Names and ids may differ.

    Returns
    -------
    tuple of Leak
        One for each photo that is in both, in the order of `train`.

    Raises
    ------
    OSError
        If a file cannot be read.
    TypeError
        If an argument is no collection.
    ValueError
        If an image has no photo, or one that cannot be read.

    See Also
    --------
    CaptionedImages.split_sets : The splits of one collection.

    Notes
    -----
    Files are compared by their bytes, decoded photos by their pixels. A copy that was
    compressed or scaled again is not found, nor is a file that equals a decoded photo. Takes
    one pass over all photos and memory for a digest each.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages, find_leaks
    >>> photos = CaptionedImages.from_pairs(
    ...     [
    ...         (b"a dog", "A dog.", "train", "1.jpg"),
    ...         (b"a cat", "A cat.", "train", "2.jpg"),
    ...         (b"a dog", "A hound.", "test", "copy of 1.jpg"),
    ...     ]
    ... )
    >>> find_leaks(*photos.split_sets("train", "test"))
    (Leak(train=('1.jpg',), test=('copy of 1.jpg',)),)
    """
    in_train, in_test = _ids_by_content("train", train), _ids_by_content("test", test)
    return tuple(
        Leak(tuple(image_ids), tuple(in_test[content]))
        for content, image_ids in in_train.items()
        if content in in_test
    )


def _ids_by_content(name: str, dataset: CaptionedImages) -> dict[str, list[str]]:
    """Image ids by the digest of the photo."""
    if not isinstance(dataset, CaptionedImages):
        raise TypeError(f"{name} must be CaptionedImages, got type {type(dataset).__name__}")
    found: dict[str, list[str]] = {}
    for image_id, photo in zip(dataset.image_ids, dataset.images, strict=True):
        if photo is None:
            raise ValueError(
                f"{name} must have a photo of each image, got none of {image_id!r}"
            )
        content = digest(f"{name}, image {image_id!r},", photo)
        found.setdefault(content, []).append(image_id)
    return found
