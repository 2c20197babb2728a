"""Leak check: photos that stand in both the training and the test set."""

from __future__ import annotations

from typing import NamedTuple

from kernelcore.datasets._photos import as_photo, digest
from kernelcore.datasets.records import CaptionedImages


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
    """Find the photos that two collections share, by what the photos hold.

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
    Files and bytes are the same if their bytes are, decoded photos if their pixels are. A
    copy that was compressed or scaled again is not found, nor is a file beside its own
    pixels. Only files of a length that both collections have are read; decoded photos all
    are. Takes one pass over these and memory for a digest each.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages, find_leaks
    >>> frame = {
    ...     "image_id": ["1.jpg", "2.jpg", "copy of 1.jpg"],
    ...     "image": [b"a dog", b"a cat", b"a dog"],
    ...     "caption": ["A dog.", "A cat.", "A hound."],
    ...     "split": ["train", "train", "test"],
    ... }
    >>> photos = CaptionedImages.from_frame(frame, image_id="image_id")
    >>> find_leaks(*photos.split_sets("train", "test"))
    (Leak(train=('1.jpg',), test=('copy of 1.jpg',)),)
    """
    for name, dataset in (("train", train), ("test", test)):
        if not isinstance(dataset, CaptionedImages):
            raise TypeError(
                f"{name} must be CaptionedImages, got type {type(dataset).__name__}"
            )
    lengths = _lengths("train", train), _lengths("test", test)
    in_train = _ids_by_content("train", train, lengths[0], set(lengths[1]))
    in_test = _ids_by_content("test", test, lengths[1], set(lengths[0]))
    return tuple(
        Leak(tuple(image_ids), tuple(in_test[content]))
        for content, image_ids in in_train.items()
        if content in in_test
    )


def _lengths(name: str, dataset: CaptionedImages) -> list[int | None]:
    """Bytes of each photo, None where they are not known before it is read or decoded."""
    lengths: list[int | None] = []
    sources = dataset.sources or (None,) * len(dataset)
    for image_id, path, source in zip(dataset.image_ids, dataset.paths, sources, strict=True):
        if path is None and source is None:
            raise ValueError(
                f"{name} must have a photo of each image, got none of {image_id!r}"
            )
        if path is not None:
            lengths.append(path.stat().st_size)
        else:
            lengths.append(len(source) if isinstance(source, bytes) else None)
    return lengths


def _ids_by_content(
    name: str,
    dataset: CaptionedImages,
    lengths: list[int | None],
    others: set[int | None],
) -> dict[str, list[str]]:
    """Image ids by the digest of the photo, of photos that one of those lengths can equal."""
    found: dict[str, list[str]] = {}
    for i, (image_id, length) in enumerate(zip(dataset.image_ids, lengths, strict=True)):
        if length is None or length in others or None in others:
            where = f"{name}, image {image_id!r},"
            content = digest(where, as_photo(where, dataset.images[i]))
            found.setdefault(content, []).append(image_id)
    return found
