"""Binary image selection from captions alone: every image against its nearest neighbour."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore._validation import Array, as_real_array, check_finite, check_real
from kernelcore.datasets.judgments import Indices
from kernelcore.datasets.records import CaptionedImages, DatasetWarning
from kernelcore.datasets.selections import BinarySelections, SelectionTriple

_BLOCK = 1024


def neighbour_selections(
    dataset: CaptionedImages,
    image_vectors: npt.ArrayLike,
    words: Sequence[Sequence[Sequence[str]]],
    *,
    max_overlap: float = 0.25,
    name: str | None = None,
) -> BinarySelections:
    r"""Pair every image with its nearest neighbour, and ask with its most telling caption.

    The neighbour has the greatest cosine of vectors. With W the set of words of a caption and
    N the words of all captions of the neighbour, the caption is the one with the least overlap

    .. math:: |W \cap N| \,/\, |W|

    and an image asks if that is at most `max_overlap`.

    Parameters
    ----------
    dataset : CaptionedImages
        Images with their captions.
    image_vectors : array_like of shape (n_images, n_dimensions)
        One vector per image. The paper takes the mean of the word vectors of all words of
        all captions: ``vectors.mean([sum(image, []) for image in words])`` with the
        `kernelcore.lexical.WordVectors` at hand. An image whose vector is zero is no one's
        neighbour and asks nothing.
    words : nested sequence of str
        Content words of each caption of each image, parallel to ``dataset.captions``, as
        `kernelcore.captions.CaptionNormalizer` gives them. A caption without any never asks.
    max_overlap : float, default=0.25
        Greatest overlap, in [0, 1]. At 1 every image with a neighbour asks.
    name : str, optional
        What asks; by default the name of `dataset` with the overlap.

    Returns
    -------
    BinarySelections
        At most one triple per image, in the order of the images.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If `image_vectors` or `words` do not fit `dataset`, a value is not finite, or no
        triple is found.

    Warns
    -----
    DatasetWarning
        If vectors are zero.

    See Also
    --------
    judged_selections : Makes triples of which people said that they are right.

    Notes
    -----
    COCO-BISON [1]_ was made in three stages, of which this is the first: there, people chose
    the caption, and two more had to select the right image by it. The overlap stands in for
    them. It does not know that *a man* and *a person* mean the same, nor what is to be seen
    in the neighbour but mentioned by none of its captions: some captions do describe both
    images. Of the captions of Flickr8k that the crowd judged with their image's nearest
    neighbour, one in ten describes it too where the overlap is at most a quarter, one in five
    from there up to a half, and one in two above.

    Products run on one thread of BLAS, so that neighbours do not depend on the number of
    threads. Takes O(n_images ** 2 * n_dimensions) time and O(n_images) memory.

    References
    ----------
    .. [1] H. Hu, I. Misra and L. van der Maaten, "Evaluating text-to-image matching using
       binary image selection (BISON)", ICCV workshops 2019, section 3.1.

    Examples
    --------
    >>> from kernelcore.datasets import CaptionedImages, neighbour_selections
    >>> photos = CaptionedImages(
    ...     name="garden",
    ...     image_ids=("dog", "fox", "rose"),
    ...     paths=(None,) * 3,
    ...     captions=(("A dog digs.", "A barking dog."), ("A fox digs.",), ("A rose.",)),
    ...     caption_ids=(("dog#0", "dog#1"), ("fox#0",), ("rose#0",)),
    ...     caption_numbers=((0, 1), (0,), (0,)),
    ... )
    >>> words = [[["dog", "dig"], ["bark", "dog"]], [["fox", "dig"]], [["rose"]]]
    >>> vectors = [[1, 0.1], [0.9, 0.2], [0, 1]]
    >>> selections = neighbour_selections(photos, vectors, words, max_overlap=0.5)
    >>> [(t.caption, t.other_image_id) for t in selections]
    [('A barking dog.', 'fox'), ('A fox digs.', 'dog'), ('A rose.', 'fox')]
    """
    if not isinstance(dataset, CaptionedImages):
        raise TypeError(f"dataset must be CaptionedImages, got {type(dataset).__name__}")
    max_overlap = check_real("max_overlap", max_overlap, minimum=0, maximum=1)
    vectors = check_finite(
        "image_vectors", as_real_array("image_vectors", image_vectors, ndim=2)
    )
    if len(vectors) != len(dataset):
        raise ValueError(
            f"image_vectors must have one row per image ({len(dataset)}), got {len(vectors)}"
        )
    sets = _as_sets(words, dataset)
    known = np.flatnonzero(vectors.any(axis=1))
    if len(known) < len(dataset):
        first = np.setdiff1d(np.arange(len(dataset)), known)[0]
        warnings.warn(
            f"{dataset.name}: {len(dataset) - len(known)} images without a vector (left out): "
            f"{dataset.image_ids[first]} first",
            DatasetWarning,
            stacklevel=2,
        )
    triples = []
    for image, neighbour in zip(known, known[_nearest(vectors[known])], strict=True):
        theirs = set().union(*sets[neighbour])
        overlaps = [len(own & theirs) / len(own) if own else np.inf for own in sets[image]]
        least = min(overlaps, default=np.inf)
        if least <= max_overlap:
            place = overlaps.index(least)
            caption_id = dataset.caption_ids[image][place]
            true_id, other_id = dataset.image_ids[image], dataset.image_ids[neighbour]
            triples.append(
                SelectionTriple(
                    f"{caption_id} {true_id} {other_id}",
                    dataset.captions[image][place],
                    caption_id,
                    true_id,
                    other_id,
                )
            )
    if not triples:
        raise ValueError(
            f"dataset must have a caption with an overlap of at most {max_overlap:g} with the "
            f"captions of its image's nearest neighbour, got none in {dataset!r}"
        )
    return BinarySelections(
        f"neighbours in {dataset.name}, overlap <= {max_overlap:g}" if name is None else name,
        triples,
    )


def _nearest(vectors: Array) -> Indices:
    """Index of the other row with the greatest cosine, the first of equals."""
    if len(vectors) < 2:
        raise ValueError(
            f"image_vectors must have at least 2 rows that are not zero, got {len(vectors)}"
        )
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = np.empty(len(units), dtype=np.intp)
    with one_blas_thread():
        for start in range(0, len(units), _BLOCK):
            cosines = units[start : start + _BLOCK] @ units.T
            own = np.arange(len(cosines))
            cosines[own, start + own] = -np.inf
            nearest[start : start + _BLOCK] = np.argmax(cosines, axis=1)
    return nearest


def _as_sets(
    words: Sequence[Sequence[Sequence[str]]], dataset: CaptionedImages
) -> list[list[set[str]]]:
    """Words of each caption of each image, checked against the captions."""
    if len(words) != len(dataset):
        raise ValueError(
            f"words must have one entry per image ({len(dataset)}), got {len(words)}"
        )
    for i, image in enumerate(words):
        if len(image) != len(dataset.captions[i]) or isinstance(image, str):
            raise ValueError(
                f"words must have one list per caption of each image, got {image!r:.60} for "
                f"the {len(dataset.captions[i])} captions of {dataset.image_ids[i]!r}"
            )
        if any(isinstance(caption, str) for caption in image):
            raise TypeError(
                f"words must be nested as images, captions, words: words[{i}] holds a string"
            )
    return [[set(caption) for caption in image] for image in words]
