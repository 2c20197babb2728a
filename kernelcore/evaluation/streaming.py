"""Exact ranks from embeddings, tile by tile, without the matrix of scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped, in_threads, resolve_n_threads
from kernelcore._progress import Progress, Report, reporting
from kernelcore._scan import scan_values
from kernelcore._validation import Array, check_choice
from kernelcore.evaluation._inputs import (
    Rows,
    as_caption_image,
    as_rows,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.places import GoldCounter, GoldPlaces, places_of
from kernelcore.evaluation.ranks import TIE_RULES, RetrievalRanks, Ties

VectorSimilarity: TypeAlias = Literal["cosine", "dot"]
_Task = TypeVar("_Task")
_Kept: TypeAlias = dict[tuple[int, int], Array]  # scores of tiles by their first row and column

# Every product is of this many images by this many captions: all have one shape because BLAS
# may round another one differently. The shape is large enough for what BLAS does beside the
# products, which is to copy both sides, to take little time, and small enough for the tiles
# with gold scores to be kept. Pools of 1,000 and 5,000 images, the most common ones, fill whole
# tiles but for 1 %.
_TILE = (504, 1008)
_TILES_PER_TASK = 16
_ROWS = 256  # vectors that are read at once: they stay in a second-level cache
_UNITS = 64  # vectors that are scaled at once
_KEPT_BYTES = 80 * 2**20  # of tiles with gold scores that are kept until they are counted in


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
    check_choice("ties", ties, TIE_RULES)
    images, captions = as_vectors(image_vectors, caption_vectors)
    owner = as_caption_image(caption_image, (images.shape[0], captions.shape[0]))
    places = streamed_places(
        images,
        captions,
        owner,
        similarity=similarity,
        ties=ties,
        n_threads=n_threads,
        progress=progress,
    )
    return RetrievalRanks(*(side.ranks(ties) for side in places))


def as_vectors(image_vectors: Any, caption_vectors: Any) -> tuple[Rows, Rows]:
    """Return two sets of vectors of one length; values are checked when they are read."""
    left = as_rows("image_vectors", image_vectors)
    right = as_rows("caption_vectors", caption_vectors)
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"{right.name} must have as many dimensions as {left.name} ({left.shape[1]}), "
            f"got {right.shape[1]}"
        )
    return left, right


def streamed_places(
    image_vectors: Rows,
    caption_vectors: Rows,
    owner: npt.NDArray[np.intp],
    *,
    similarity: str,
    ties: str,
    n_threads: int | None,
    progress: Progress = False,
) -> tuple[GoldPlaces, GoldPlaces]:
    """Find the captions of every image and the image of every caption, as `streamed_ranks`."""
    images, captions = _prepared(image_vectors, caption_vectors, similarity, n_threads)
    by_image, by_caption = captions_by_image(owner), one_each(owner)
    gold_scores, kept = _gold_scores(images, captions, owner, by_image.candidates, n_threads)
    by_query = (gold_scores[by_image.candidates], gold_scores)
    counter = GoldCounter((by_image, by_caption), by_query, ties)
    with reporting(progress, "ranks") as report:
        _for_each_tile(images, captions, counter.add, n_threads, report, kept=kept)
    return places_of(counter, 0, by_image), places_of(counter, 1, by_caption)


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
    vectors = as_vectors(image_vectors, caption_vectors)
    images, captions = _prepared(*vectors, similarity, n_threads)
    result = np.empty((images.size, captions.size), dtype=images.padded.dtype)

    def keep(rows: slice, columns: slice, scores: Array) -> None:
        result[rows, columns] = scores

    _for_each_tile(images, captions, keep, n_threads, None)
    return result


class _Vectors(NamedTuple):
    """Rows, padded with zeros to whole tiles."""

    padded: Array
    size: int
    step: int  # rows in a tile

    def tiles(self) -> list[slice]:
        return [slice(k, min(k + self.step, self.size)) for k in range(0, self.size, self.step)]

    def gather(self, rows: Array) -> Array:
        tile = np.zeros((self.step, self.padded.shape[1]), dtype=self.padded.dtype)
        tile[: len(rows)] = self.padded[rows]
        return tile


def _prepared(
    left: Rows, right: Rows, similarity: str, n_threads: int | None
) -> tuple[_Vectors, _Vectors]:
    """Copy the vectors into whole tiles, of length 1 for the cosine."""
    check_choice("similarity", similarity, ("cosine", "dot"))
    dtype = np.result_type(left.dtype, right.dtype)
    (images, largest), (captions, other) = (
        _padded(vectors, step, dtype, similarity, n_threads)
        for vectors, step in zip((left, right), _TILE, strict=True)
    )
    largest *= left.shape[1] * other
    if similarity == "dot" and largest > float(np.finfo(dtype).max):
        raise ValueError(
            f"{left.name} and {right.name} must have products within {dtype}, "
            f"which {largest:.3g} exceeds"
        )
    return images, captions


def _padded(
    vectors: Rows, step: int, dtype: np.dtype[Any], similarity: str, n_threads: int | None
) -> tuple[_Vectors, float]:
    """Copy the rows, which keeps BLAS from taking a product with itself for a symmetric one.

    Returns the largest magnitude of the rows as they came, too.
    """
    size, n_dimensions = vectors.shape
    padded = np.zeros((-(-size // step) * step, n_dimensions), dtype=dtype)
    largest = np.zeros(-(-size // _ROWS))

    def copy(number: int) -> None:
        check_stopped()
        span = slice(number * _ROWS, min((number + 1) * _ROWS, size))
        rows = vectors.take(np.arange(span.start, span.stop))
        found = scan_values(rows, 1)
        if not found.is_finite:
            _refuse(vectors.name, rows, span.start)
        largest[number] = max(found.largest, -found.smallest)
        if similarity == "dot":
            padded[span] = rows
            return
        for start in range(0, len(rows), _UNITS):  # in a second-level cache as float64, too
            part = rows[start : start + _UNITS]
            padded[span.start + start : span.start + start + len(part)] = _unit(part)

    _run(copy, range(len(largest)), n_threads)
    return _Vectors(padded, size, step), float(largest.max())


def _refuse(name: str, rows: Array, start: int) -> None:
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name} must be finite, got {rows[row, column]} at [{start + row}, {column}]"
        )


def _unit(rows: Array) -> Array:
    """Scale rows to length 1 in float64; powers of two keep their squares in range."""
    unit = rows.astype(np.float64)
    if rows.dtype == np.float64:  # of float32 they are
        np.ldexp(unit, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1], out=unit)
    lengths = np.sqrt(np.square(unit).sum(axis=1, keepdims=True))
    unit /= np.where(lengths > 0, lengths, 1.0)
    return unit


def _run(
    work: Callable[[_Task], None],
    tasks: Sequence[_Task],
    n_threads: int | None,
    report: Report | None = None,
) -> None:
    with one_blas_thread():
        in_threads(
            work, tasks, resolve_n_threads(n_threads), setting=one_blas_thread, report=report
        )


def _gold_scores(
    images: _Vectors, captions: _Vectors, owner: Array, order: Array, n_threads: int | None
) -> tuple[Array, _Kept]:
    """Scores of all captions with their own images; `order` sorts them by image.

    Where captions stand in about the order of their images, few tiles hold all of these, and
    are returned, so that none is computed twice. Elsewhere they are gathered into tiles.
    """
    gold_scores = np.empty(captions.size, dtype=captions.padded.dtype)
    n_rows, n_columns = images.step, captions.step
    n_across = len(captions.padded) // n_columns
    tiles = owner // n_rows * n_across + np.arange(captions.size) // n_columns
    numbers, inverse = np.unique(tiles, return_inverse=True)
    if len(numbers) * n_rows * n_columns * gold_scores.itemsize <= _KEPT_BYTES:
        members_of = np.split(
            np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))
        )
        kept: _Kept = {}

        def compute(number: int) -> None:
            check_stopped()
            down, across = divmod(int(numbers[number]), n_across)
            row, column = down * n_rows, across * n_columns
            scores = _product(images, captions, row, column)
            members = members_of[number]
            gold_scores[members] = scores[owner[members] - row, members - column]
            kept[row, column] = scores

        _run(compute, range(len(numbers)), n_threads)
        return gold_scores, kept

    def look_up(span: slice) -> None:
        members = order[span]
        own, row = np.unique(owner[members], return_inverse=True)
        scores = images.gather(own) @ captions.gather(members).T
        gold_scores[members] = scores[row, np.arange(len(members))]

    _run(look_up, _gathered(owner[order], n_rows, n_columns), n_threads)
    return gold_scores, {}


def _gathered(owner: Array, n_images: int, n_captions: int) -> list[slice]:
    """Cut captions that are sorted by image into runs that fit into a tile."""
    image = np.cumsum(np.diff(owner, prepend=owner[:1]) != 0)
    spans: list[slice] = []
    start = 0
    while start < len(owner):
        end = int(np.searchsorted(image, image[start] + n_images))
        spans.append(slice(start, min(start + n_captions, end)))
        start = spans[-1].stop
    return spans


def _product(
    images: _Vectors, captions: _Vectors, row: int, column: int, out: Array | None = None
) -> Array:
    """Scores of the tile that begins at this row and column."""
    left = images.padded[row : row + images.step]
    right = captions.padded[column : column + captions.step]
    scores: Array = np.matmul(left, right.T, out=out)
    return scores


def _for_each_tile(
    images: _Vectors,
    captions: _Vectors,
    body: Callable[[slice, slice, Array], object],
    n_threads: int | None,
    report: Report | None,
    *,
    kept: _Kept | None = None,
) -> None:
    """Call ``body(rows, columns, scores)`` for every tile of the matrix of scores.

    Those that are `kept` are taken from there.
    """
    known = {} if kept is None else kept
    columns = captions.tiles()
    tasks = [
        (rows, columns[k : k + _TILES_PER_TASK])
        for rows in images.tiles()
        for k in range(0, len(columns), _TILES_PER_TASK)
    ]

    def fill(task: tuple[slice, list[slice]]) -> None:
        rows, spans = task
        own = np.empty((images.step, captions.step), dtype=images.padded.dtype)
        for span in spans:
            check_stopped()
            scores = known.pop((rows.start, span.start), None)
            if scores is None:
                scores = _product(images, captions, rows.start, span.start, own)
            n_rows, n_columns = rows.stop - rows.start, span.stop - span.start
            body(rows, span, np.ascontiguousarray(scores[:n_rows, :n_columns]))

    _run(fill, tasks, n_threads, report)
