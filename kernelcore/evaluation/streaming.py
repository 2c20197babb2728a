"""Exact ranks from embeddings, without the matrix of scores."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import Array, check_choice, scan_values
from kernelcore._threads import (
    Progress,
    Report,
    attentive,
    check_stopped,
    in_threads,
    reporting,
    resolve_n_threads,
)
from kernelcore.evaluation._inputs import (
    GoldItems,
    Positions,
    Rows,
    as_caption_image,
    as_rows,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    GoldPlaces,
    Integers,
    RetrievalRanks,
    Ties,
    by_gold,
    every_gold,
)

VectorSimilarity: TypeAlias = Literal["cosine", "dot"]

_ROWS = 512  # vectors that are read at once: with fewer, threads wait for the interpreter


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
    vectors, float64 ones otherwise. A score adds the products of the components in their
    order, so it depends on its two vectors alone, not on where they stand: captions with
    equal vectors tie. A matrix that was multiplied in another way may differ in last bits,
    and its ranks where scores are that close.

    Takes O(n_images n_captions n_dimensions) time, about as long as the product of the two
    sets of vectors, and the memory of a copy of the vectors and of two megabytes per thread.

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
    sides = captions_by_image(owner), one_each(owner)
    own = own_scores(images, captions, owner, n_threads)
    with reporting(progress, "ranks") as report:
        counts = count_products(
            images, captions, sides, (own[sides[0].candidates], own), ties, n_threads, report
        )
    return [GoldPlaces(gold.n_gold, *found) for gold, found in zip(sides, counts, strict=True)]


def own_scores(
    images: Array, captions: Array, owner: Positions, n_threads: int | None
) -> Array:
    """Score each caption with its own image."""
    scores = np.empty(len(captions), dtype=captions.dtype)
    threads = resolve_n_threads(n_threads)
    _core.paired_dot_products(images, captions, owner, scores, threads, attentive(None))
    return scores


def count_products(  # noqa: PLR0917
    images: Array,
    captions: Array,
    sides: tuple[GoldItems, GoldItems],
    gold_scores: tuple[Array, Array],
    ties: str,
    n_threads: int | None,
    report: Report | None,
) -> list[Integers]:
    """Count the images and captions ahead of each gold item of every query."""
    is_ordered = ties == "ordinal"
    rows, columns = (
        (targets.scores, targets.first, np.empty((2 + is_ordered, targets.scores.size), "i8"))
        for targets in (every_gold(*side) for side in zip(sides, gold_scores, strict=True))
    )
    threads = resolve_n_threads(n_threads)
    _core.count_ranks_of_products(images, captions, rows, columns, is_ordered, threads, report)
    return [
        by_gold(counts.reshape(-1, *layers.shape), gold)
        for (layers, _, counts), gold in zip((rows, columns), sides, strict=True)
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
    scores = np.empty((len(images), len(captions)), dtype=images.dtype)
    _core.dot_products(images, captions, scores, resolve_n_threads(n_threads), attentive(None))
    return scores


def prepared_vectors(
    left: Rows, right: Rows, similarity: str, n_threads: int | None
) -> tuple[Array, Array]:
    """Copy images and captions, at length 1 for the cosine; their products are finite."""
    check_choice("similarity", similarity, ("cosine", "dot"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"{right.name} must have as many dimensions as {left.name} ({left.shape[1]}), "
            f"got {right.shape[1]}"
        )
    dtype = np.result_type(left.dtype, right.dtype)
    (images, largest), (captions, other) = (
        _prepared(vectors, dtype, similarity, n_threads) for vectors in (left, right)
    )
    largest *= left.shape[1] * other
    if similarity == "dot" and largest > float(np.finfo(dtype).max):
        raise ValueError(
            f"{left.name} and {right.name} must have products within {dtype}, "
            f"which {largest:.3g} exceeds"
        )
    return images, captions


def _prepared(
    vectors: Rows, dtype: np.dtype[Any], similarity: str, n_threads: int | None
) -> tuple[Array, float]:
    """Copy the rows, and return the largest magnitude of them as they came, too."""
    size = vectors.shape[0]
    prepared = np.empty(vectors.shape, dtype=dtype)
    largest = np.zeros(-(-size // _ROWS))

    def copy(number: int) -> None:
        check_stopped()
        span = slice(number * _ROWS, min((number + 1) * _ROWS, size))
        rows = vectors.take(np.arange(span.start, span.stop)).astype(dtype, copy=False)
        if similarity == "cosine":
            is_finite = _core.unit_rows(rows, prepared[span], attentive(None))
        else:
            prepared[span] = rows
            found = scan_values(rows, 1)
            is_finite = found.is_finite
            largest[number] = max(found.largest, -found.smallest)
        if not is_finite:
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(
                f"{vectors.name} must be finite, got {rows[row, column]} at "
                f"[{span.start + row}, {column}]"
            )

    in_threads(copy, range(len(largest)), resolve_n_threads(n_threads))
    return prepared, float(largest.max())
