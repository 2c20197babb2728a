"""Exact ranks from vectors on disk: counts over pairs of blocks, which add up in any order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._threads import Progress, check_stopped
from kernelcore.distributed.rows import (
    RowFiles,
    RowsLike,
    as_row_files,
    as_vectors,
    vector_bytes,
    write_rows,
)
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.distributed.tasks import ExecutorLike, complete
from kernelcore.evaluation._inputs import (
    GoldItems,
    as_caption_image,
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
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import TILE, Vectors, gathered, prepared_vectors, product

_SIDES = ("images", "captions")
BLOCK_ROWS = 32_768


def streamed_ranks(
    image_vectors: RowsLike,
    caption_vectors: RowsLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    store: str | os.PathLike[str],
    similarity: VectorSimilarity = "cosine",
    ties: Ties = "mean",
    block_rows: int = BLOCK_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> RetrievalRanks:
    """Compute the ranks of both tasks from vectors on disk.

    Parameters
    ----------
    image_vectors, caption_vectors : array_like of shape (n, n_dimensions), path or list
        Embeddings: stores of rows, ``.npy`` files, or arrays, which are written into the
        store first.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    similarity : {"cosine", "dot"}, default "cosine"
        As for `kernelcore.evaluation.streamed_ranks`.
    ties : {"mean", "min", "max", "ordinal"}, default "mean"
        The tie rule of `kernelcore.evaluation.ranks.gold_ranks`.
    block_rows : int, default 32768
        Images and captions of a task.
    executor : distributed.Client or concurrent.futures.Executor, optional
        Who computes; by default threads of this process.
    n_threads : int, optional
        Threads without an executor; the default is every core this process may run on.
    progress : bool or callable, default False
        True draws bars (extra ``cli``); a callable is called with (pieces done, pieces).

    Returns
    -------
    RetrievalRanks
        The ranks that `kernelcore.evaluation.streamed_ranks` returns for the same vectors.

    Raises
    ------
    TypeError, ValueError
        If the vectors are not of one length and finite, `caption_image` does not fit them, an
        option is out of range, or the folder holds another store.
    PiecesFailedError
        If a pair of blocks failed three times.
    ClusterLostError
        If the workers are gone.

    Notes
    -----
    One pass scores each caption with its own image. The other counts, for each pair of a block
    of images and a block of captions, the candidates ahead of the gold ones. Counts are
    integers, so their sum is the same in any order. All products have one shape, so a score
    depends on its two vectors alone. The result is the same, bit for bit, for every executor,
    number of workers and `block_rows`. Takes one product of both sets of vectors.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.distributed import streamed_ranks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranks = streamed_ranks([[1.0, 0.0], [0.0, 1.0]],
    ...                            [[2.0, 1.0], [1.0, 0.1], [0.0, 3.0]], [0, 0, 1],
    ...                            store=folder)
    >>> ranks.annotation, ranks.search
    (array([1., 1.]), array([1., 1., 1.]))
    """
    places = streamed_places(
        image_vectors,
        caption_vectors,
        caption_image,
        store=store,
        similarity=similarity,
        ties=ties,
        block_rows=block_rows,
        executor=executor,
        n_threads=n_threads,
        progress=progress,
    )
    return RetrievalRanks(*(side.ranks(ties)[0] for side in places))


def streamed_places(
    image_vectors: RowsLike,
    caption_vectors: RowsLike,
    caption_image: npt.ArrayLike | None = None,
    *,
    store: str | os.PathLike[str],
    similarity: VectorSimilarity,
    ties: Ties,
    block_rows: int = BLOCK_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> tuple[GoldPlaces, GoldPlaces]:
    """Count the candidates ahead of each gold one, for both tasks; see `streamed_ranks`."""
    check_choice("similarity", similarity, ("cosine", "dot"))
    check_choice("ties", ties, TIE_RULES)
    step = check_integer("block_rows", block_rows, minimum=1)
    folder = Path(store).absolute()
    with working_on(folder):
        images = as_row_files("image_vectors", image_vectors, folder / "images")
        captions = as_row_files("caption_vectors", caption_vectors, folder / "captions")
        if images.n_columns != captions.n_columns:
            raise ValueError(
                f"caption_vectors must have as many dimensions as image_vectors "
                f"({images.n_columns}), got {captions.n_columns}"
            )
        owner = as_caption_image(caption_image, (len(images), len(captions)))
        by_image = captions_by_image(owner)
        settings = {"similarity": similarity, "ties": ties, "block_rows": step}
        inputs = {
            "images": images,
            "captions": captions,
            "owner": _write(folder / "owner", owner),
        }
        gold = Store.begin(
            folder / "gold",
            "gold scores",
            -(-len(captions) // step),
            settings,
            {name: rows.to_json() for name, rows in inputs.items()},
        )
        complete(gold, executor, n_threads=n_threads, progress=progress)
        scores = np.concatenate(
            [np.load(gold.folder / _score_name(k)) for k in range(gold.n_pieces)]
        )
        inputs |= {
            "scores": _write(folder / "scores", scores),
            "order": _write(folder / "order", by_image.candidates),
            "scores by image": _write(folder / "by-image", scores[by_image.candidates]),
            "offsets": _write(folder / "offsets", by_image.offsets),
        }
        settings |= {"most_gold": int(np.diff(by_image.offsets).max())}
        counts = Store.begin(
            folder / "counts",
            "counts",
            -(-len(images) // step) * gold.n_pieces,
            settings,
            {name: rows.to_json() for name, rows in inputs.items()},
        )
        complete(counts, executor, n_threads=n_threads, progress=progress)
        golds = (by_image, one_each(owner))
        return _summed(counts, 0, golds[0].offsets), _summed(counts, 1, golds[1].offsets)


def make(store: Store, number: int) -> Piece:
    """Compute gold scores of a block of captions, or the counts of a pair of blocks."""
    rows = {name: RowFiles.from_json(about) for name, about in store.inputs.items()}
    step, similarity = int(store.settings["block_rows"]), str(store.settings["similarity"])
    if store.kind == "gold scores":
        span = _span(number, step, len(rows["captions"]))
        return Piece({_score_name(number): _gold_scores(rows, span, similarity)})
    n_across = -(-len(rows["captions"]) // step)
    down, across = divmod(number, n_across)
    image_span = _span(down, step, len(rows["images"]))
    caption_span = _span(across, step, len(rows["captions"]))
    counts = _counts(rows, image_span, caption_span, similarity, str(store.settings["ties"]))
    return Piece({_count_name(number, side): counts[side] for side in range(2)})


def need(store: Store) -> int:
    """Estimate the memory of a pair of blocks: vectors twice, counts, and one tile."""
    images = RowFiles.from_json(store.inputs["images"])
    captions = RowFiles.from_json(store.inputs["captions"])
    step = int(store.settings["block_rows"])
    n_images, n_captions = min(step, len(images)), min(step, len(captions))
    vector = max(vector_bytes(images), vector_bytes(captions))
    read = max(images.row_bytes, captions.row_bytes)
    # Gold items are layers: the first of each image, the second of each image, and so on.
    gold = n_images * int(store.settings.get("most_gold", 1)) + n_captions
    tile = 4 * TILE[0] * TILE[1] * vector // images.n_columns + 64 * 8 * images.n_columns
    return (n_images + n_captions + sum(TILE)) * (2 * vector + read) + 10 * 8 * gold + tile


def _vectors(
    images: tuple[Array, Any], captions: tuple[Array, Any], similarity: str
) -> tuple[Vectors, Vectors]:
    """Bring vectors, given with their positions, into whole tiles."""
    return prepared_vectors(
        as_vectors("image_vectors", *images),
        as_vectors("caption_vectors", *captions),
        similarity,
        1,
    )


def _gold_scores(rows: dict[str, RowFiles], span: slice, similarity: str) -> Array:
    """Score captions with their own images."""
    owner = rows["owner"].read(span.start, span.stop)[:, 0].astype(np.intp)
    own, row = np.unique(owner, return_inverse=True)
    images, captions = _vectors(
        (rows["images"].take(own), own), _block(rows["captions"], span), similarity
    )
    order = np.argsort(row, kind="stable")
    scores = np.empty(len(row), captions.padded.dtype)
    for part in gathered(row[order], images.step, captions.step):
        members = order[part]
        here, place = np.unique(row[members], return_inverse=True)
        tile = images.gather(here) @ captions.gather(members).T
        scores[members] = tile[place, np.arange(len(members))]
    return scores


def _counts(
    rows: dict[str, RowFiles],
    image_span: slice,
    caption_span: slice,
    similarity: str,
    ties: str,
) -> tuple[Array, Array]:
    """Count candidates ahead of the gold ones of some images, and of some captions."""
    images, captions = _vectors(
        _block(rows["images"], image_span), _block(rows["captions"], caption_span), similarity
    )
    offsets = rows["offsets"].read(image_span.start, image_span.stop + 1)[:, 0].astype(np.intp)
    gold = slice(int(offsets[0]), int(offsets[-1]))
    items = (
        GoldItems(
            _column(rows["order"], gold).astype(np.intp) - caption_span.start,
            offsets - offsets[0],
        ),
        one_each(_column(rows["owner"], caption_span).astype(np.intp) - image_span.start),
    )
    scores = (
        _column(rows["scores by image"], gold).astype(captions.padded.dtype),
        _column(rows["scores"], caption_span).astype(captions.padded.dtype),
    )
    counter = Counter([every_gold(*side) for side in zip(items, scores, strict=True)], ties)
    for row_span, column_span, tile in _tiles(images, captions):
        counter.add(row_span, column_span, tile)
    return by_gold(counter.counts[0], items[0]), by_gold(counter.counts[1], items[1])


def _tiles(images: Vectors, captions: Vectors) -> Iterator[tuple[slice, slice, Array]]:
    own = np.empty((images.step, captions.step), images.padded.dtype)
    for rows in images.tiles():
        for columns in captions.tiles():
            check_stopped()
            scores = product(images, captions, rows.start, columns.start, own)
            part = scores[: rows.stop - rows.start, : columns.stop - columns.start]
            yield rows, columns, np.ascontiguousarray(part)


def _summed(store: Store, side: int, offsets: npt.NDArray[np.intp]) -> GoldPlaces:
    """Add the counts of all pairs of blocks."""
    n_rows, n_columns = (len(RowFiles.from_json(store.inputs[name])) for name in _SIDES)
    step = int(store.settings["block_rows"])
    n_across = -(-n_columns // step)
    n_counts = 3 if store.settings["ties"] == "ordinal" else 2
    totals = np.zeros((n_counts, int(offsets[-1])), np.int64)
    for number in range(store.n_pieces):
        place = divmod(number, n_across)[side]
        span = _span(place, step, n_rows if side == 0 else n_columns)
        part = slice(int(offsets[span.start]), int(offsets[span.stop]))
        totals[:, part] += np.load(store.folder / _count_name(number, side))
    return GoldPlaces(np.diff(offsets), *totals)


def _write(folder: Path, values: Array) -> RowFiles:
    kept = values if values.dtype.kind == "f" else values.astype(np.float64)  # to 2 ** 53
    return write_rows(folder, kept[:, np.newaxis])


def _block(rows: RowFiles, span: slice) -> tuple[Array, range]:
    """Read rows; return them with their positions."""
    return rows.read(span.start, span.stop), range(span.start, span.stop)


def _column(rows: RowFiles, span: slice) -> Array:
    return rows.read(span.start, span.stop)[:, 0]


def _span(number: int, step: int, size: int) -> slice:
    return slice(number * step, min((number + 1) * step, size))


def _score_name(number: int) -> str:
    return f"scores/{number:06d}.npy"


def _count_name(number: int, side: int) -> str:
    return f"{_SIDES[side]}/{number:07d}.npy"
