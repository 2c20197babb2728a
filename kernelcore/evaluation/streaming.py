"""Exact ranks from embeddings, tile by tile, without the matrix of scores."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice
from kernelcore._threads import Progress, reporting
from kernelcore.evaluation._inputs import (
    Positions,
    Rows,
    as_caption_image,
    as_rows,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    Counter,
    GoldPlaces,
    RetrievalRanks,
    Ties,
    by_gold,
    every_gold,
)
from kernelcore.evaluation.tiles import for_each_tile, gold_scores, prepared_vectors

VectorSimilarity: TypeAlias = Literal["cosine", "dot"]


def streamed_ranks(
    image_vectors: npt.ArrayLike,
    caption_vectors: npt.ArrayLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    similarity: VectorSimilarity = "cosine",
    ties: Ties = "mean",
    n_threads: int | None = None,
    progress: Progress = False,
) -> RetrievalRanks:
    r"""Compute the ranks of both tasks from embeddings, without a matrix of scores.

    .. math:: s_{ij} = \langle u_i, v_j \rangle \quad\text{or}\quad
        s_{ij} = \Big\langle \frac{u_i}{|u_i|}, \frac{v_j}{|v_j|} \Big\rangle

    Parameters
    ----------
    image_vectors : array_like of shape (n_images, n_dimensions)
        Embeddings u of the images: an array, a tensor on the CPU, the path of a ``.npy``
        file, or a list of these, whose rows follow each other. Half precision is read as
        float32.
    caption_vectors : array_like of shape (n_captions, n_dimensions)
        Embeddings v of the captions, in the same forms.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    similarity : {"cosine", "dot"}, default="cosine"
        Cosine of the two vectors, 0 where one of them is zero; or their scalar product.
    ties : {"mean", "min", "max", "ordinal"}, default="mean"
        The tie rule of `gold_ranks`.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (steps done, steps).

    Returns
    -------
    RetrievalRanks
        What `retrieval_ranks` returns for the matrix of `embedding_scores`.

    Raises
    ------
    TypeError
        If an input does not hold real numbers.
    ValueError
        If the vectors are not 2-D, of one length and finite, their scalar products may exceed
        the largest number, or `caption_image` does not fit them.

    See Also
    --------
    embedding_scores : The matrix of these scores.

    Notes
    -----
    The ranks are exact for the scores as they are rounded: float32 products of float32
    vectors, float64 ones otherwise. Gold scores are computed by the same products as all
    others, tiles of one shape on one thread of BLAS each, so a score depends on its two
    vectors alone, not on where they stand: captions with equal vectors tie. A matrix that was
    multiplied in another way may differ in last bits, and its ranks where scores are that
    close.

    Takes one product of the two sets of vectors, O(n_images n_captions n_dimensions) time,
    and as much again for ``504 / n_images`` of it where captions do not stand in about the
    order of their images, twice that where images have one caption each; the memory of a copy
    of the vectors, of one tile per thread and of at most 80 MiB of tiles.

    Examples
    --------
    >>> from kernelcore.evaluation import streamed_ranks
    >>> ranks = streamed_ranks([[1.0, 0.0], [0.0, 1.0]],
    ...                        [[2.0, 1.0], [1.0, 0.1], [0.0, 3.0]], [0, 0, 1])
    >>> ranks.annotation, ranks.search
    (array([1., 1.]), array([1., 1., 1.]))
    """
    images = as_rows("image_vectors", image_vectors)
    captions = as_rows("caption_vectors", caption_vectors)
    owner = as_caption_image(caption_image, (images.shape[0], captions.shape[0]))
    places = streamed_places(
        images, captions, owner, similarity, ties, n_threads, progress=progress
    )
    return RetrievalRanks(*(side.ranks(ties)[0] for side in places))


def streamed_places(  # noqa: PLR0917
    image_vectors: Rows,
    caption_vectors: Rows,
    owner: Positions,
    similarity: str,
    ties: str,
    n_threads: int | None,
    *,
    progress: Progress = False,
) -> list[GoldPlaces]:
    """Find the captions of every image and the image of every caption, as `streamed_ranks`."""
    check_choice("ties", ties, TIE_RULES)
    images, captions = prepared_vectors(image_vectors, caption_vectors, similarity, n_threads)
    by_image, by_caption = captions_by_image(owner), one_each(owner)
    of_captions, kept = gold_scores(images, captions, owner, n_threads)
    targets = (
        every_gold(by_image, of_captions[by_image.candidates]),
        every_gold(by_caption, of_captions),
    )
    counter = Counter(targets, ties)
    with reporting(progress, "ranks") as report:
        for_each_tile(images, captions, counter.add, n_threads, kept=kept, report=report)
    return [
        GoldPlaces(gold.n_gold, *by_gold(counts, gold))
        for counts, gold in zip(counter.counts, (by_image, by_caption), strict=True)
    ]


def embedding_scores(
    image_vectors: npt.ArrayLike,
    caption_vectors: npt.ArrayLike,
    *,
    similarity: VectorSimilarity = "cosine",
    n_threads: int | None = None,
) -> npt.NDArray[Any]:
    """Score every image against every caption as `streamed_ranks` does, bit for bit.

    Parameters
    ----------
    image_vectors : array_like of shape (n_images, n_dimensions)
        Embeddings of the images, in the forms that `streamed_ranks` takes.
    caption_vectors : array_like of shape (n_captions, n_dimensions)
        Embeddings of the captions.
    similarity : {"cosine", "dot"}, default="cosine"
        Cosine of the two vectors, 0 where one of them is zero; or their scalar product.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.

    Returns
    -------
    ndarray of shape (n_images, n_captions)
        float32 if both sets of vectors are float32 or half precision, float64 otherwise.

    Raises
    ------
    TypeError
        If an input does not hold real numbers.
    ValueError
        If the vectors are not 2-D, of one length and finite, or their scalar products may
        exceed the largest number.

    Examples
    --------
    >>> from kernelcore.evaluation import embedding_scores
    >>> embedding_scores([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0]])
    array([[1. ],
           [0.6]])
    """
    left = as_rows("image_vectors", image_vectors)
    right = as_rows("caption_vectors", caption_vectors)
    images, captions = prepared_vectors(left, right, similarity, n_threads)
    result = np.empty((images.size, captions.size), dtype=images.padded.dtype)

    def keep(rows: slice, columns: slice, scores: Array) -> None:
        result[rows, columns] = scores

    for_each_tile(images, captions, keep, n_threads)
    return result
