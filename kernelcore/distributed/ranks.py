"""Exact ranks from vectors on disk: counts over pairs of blocks, added in any order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._threads import Progress, attentive
from kernelcore.distributed.arrays import (
    Folder,
    MatrixLike,
    Output,
    Pool,
    array_digest,
    block_step,
    open_zarr,
    read_part,
    spans,
    write_npy,
    writing,
)
from kernelcore.evaluation import Result
from kernelcore.evaluation._inputs import (
    GoldItems,
    Positions,
    as_caption_image,
    as_ks,
    captions_by_image,
    one_each,
)
from kernelcore.evaluation.ranks import (
    TIE_RULES,
    GoldPlaces,
    RetrievalRanks,
    Ties,
)
from kernelcore.evaluation.result import Labels, checked_labels
from kernelcore.evaluation.retrieval import result_of_places
from kernelcore.evaluation.streaming import VectorSimilarity, count_products, own_scores

_BLOCK_ROWS = 32_768


def evaluate(
    image_vectors: MatrixLike,
    caption_vectors: MatrixLike,
    path: str | os.PathLike[str],
    *,
    caption_image: npt.ArrayLike | None = None,
    similarity: VectorSimilarity = "cosine",
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    block_rows: int = _BLOCK_ROWS,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
    **labels: Unpack[Labels],
) -> Result:
    """Evaluate image annotation and image search from vectors on disk.

    Parameters
    ----------
    image_vectors, caption_vectors, path, caption_image, similarity, ties
        As for `kernelcore.distributed.streamed_ranks`.
    ks : sequence of int, default (1, 5, 10)
        The k of the recalls that are reported.
    block_rows, client, n_threads, progress
        As for `kernelcore.distributed.streamed_ranks`.
    **labels : str or mapping, optional
        As for `kernelcore.evaluate`.

    Returns
    -------
    Result
        What `kernelcore.evaluate` returns for the same vectors.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `kernelcore.distributed.streamed_ranks`.

    See Also
    --------
    kernelcore.evaluate : The same in the memory of one machine.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.distributed import evaluate
    >>> images, captions = [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [1.0, 2.0]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = evaluate(images, captions, folder)
    >>> result.values["search"]["mean_rank"]
    array([1., 1.])
    """
    checked = checked_labels(labels)
    ks = as_ks(ks)
    if isinstance(checked["settings"], Mapping):
        checked["settings"] = {"similarity": similarity, **checked["settings"]}
    with writing(path, client, n_threads, progress) as folder:
        pool = folder.pool(
            similarity, image_vectors=image_vectors, caption_vectors=caption_vectors
        )
        places, owner = _places(folder, pool, caption_image, ties, block_rows)
    return result_of_places([places], ties, ks, owner, **checked)


def streamed_ranks(
    image_vectors: MatrixLike,
    caption_vectors: MatrixLike,
    path: str | os.PathLike[str],
    *,
    caption_image: npt.ArrayLike | None = None,
    similarity: VectorSimilarity = "cosine",
    ties: Ties = "mean",
    block_rows: int = _BLOCK_ROWS,
    client: Any = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> RetrievalRanks:
    """Compute the ranks of both tasks from vectors on disk.

    Parameters
    ----------
    image_vectors, caption_vectors : array_like of shape (n, n_dimensions), or path
        Embeddings, as for `gram_to_zarr`.
    path : path
        Folder of two Zarr arrays, ``gold`` and ``counts``. A second call with the same
        arguments computes what is missing.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    similarity : {"cosine", "dot"}, default "cosine"
        As for `kernelcore.evaluation.streamed_ranks`.
    ties : {"mean", "min", "max", "ordinal"}, default "mean"
        The tie rule of `kernelcore.evaluation.ranks.gold_ranks`.
    block_rows : int, default 32768
        Most images, and most captions, of a task.
    client, n_threads, progress
        As for `gram_to_zarr`.

    Returns
    -------
    RetrievalRanks
        The ranks that `kernelcore.evaluation.streamed_ranks` returns for the same vectors.

    Raises
    ------
    TypeError, ValueError
        If the vectors are not of one length and finite, `caption_image` does not fit them, an
        option is out of range, or the folder holds the result of another call.
    RuntimeError
        If a pair of blocks failed three times, or another call is writing into the folder.

    Notes
    -----
    One pass scores each caption with its own image. The other counts, for each pair of a block
    of images and a block of captions, the candidates ahead of the gold ones. Counts are
    integers, so their sum is the same in any order. A score depends on its two vectors alone.
    The result is the same, bit for bit, for every number of
    workers and `block_rows`. Takes one product of both sets of vectors.

    Examples
    --------
    >>> import tempfile
    >>> from kernelcore.distributed import streamed_ranks
    >>> captions = [[2.0, 1.0], [1.0, 0.1], [0.0, 3.0]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranks = streamed_ranks([[1.0, 0.0], [0.0, 1.0]], captions, folder,
    ...                            caption_image=[0, 0, 1])
    >>> ranks.annotation, ranks.search
    (array([1., 1.]), array([1., 1., 1.]))
    """
    with writing(path, client, n_threads, progress) as folder:
        pool = folder.pool(
            similarity, image_vectors=image_vectors, caption_vectors=caption_vectors
        )
        places, _ = _places(folder, pool, caption_image, ties, block_rows)
    return RetrievalRanks(*(side.ranks(ties)[0] for side in places))


def _places(
    folder: Folder, pool: Pool, caption_image: Any, ties: str, block_rows: int
) -> tuple[list[GoldPlaces], Positions]:
    """Count the candidates ahead of each gold one, and return the images of captions too."""
    check_choice("ties", ties, TIE_RULES)
    most = check_integer("block_rows", block_rows, minimum=1)
    n_images, n = len(pool.left), len(pool.right)
    owner = as_caption_image(caption_image, (n_images, n))
    by_image = captions_by_image(owner)
    about = {
        **pool.digests(),
        "caption_image": array_digest(owner),
        "similarity": pool.similarity,
    }
    height, step = block_step(n_images, most), block_step(n, most)
    down, across = spans(n_images, height), spans(n, step)
    own = [slice(*by_image.offsets[[rows.start, rows.stop]].tolist()) for rows in down]
    width = max(part.stop - part.start for part in own) + step
    shape = len(down) * len(across), 3 if ties == "ordinal" else 2, width
    gold = folder.begin("gold", (n,), (step,), pool.dtype, about)
    about |= {"ties": ties, "block_rows": most}
    counts = folder.begin("counts", shape, (1, *shape[1:]), np.int64, about)
    links = {"owner": owner, "order": by_image.candidates, "offsets": by_image.offsets}
    for name, array in links.items():
        write_npy(folder.path / f"{name}.npy", array)
    folder.fill("blocks of captions", [gold], _write_gold, [(pool, span) for span in across])
    calls = [(gold, pool, ties, k, *block) for k, block in enumerate(product(down, across))]
    folder.fill("pairs of blocks", [counts], _write_counts, calls)
    items = by_image, one_each(owner)
    totals = [np.zeros((shape[1], n), np.int64) for _ in items]
    for k, (part, columns) in enumerate(product(own, across)):
        found = counts.read(slice(k, k + 1))[0]
        middle = part.stop - part.start
        totals[0][:, part] += found[:, :middle]
        totals[1][:, columns] += found[:, middle : middle + columns.stop - columns.start]
    sides = zip(items, totals, strict=True)
    return [GoldPlaces(side.n_gold, *total) for side, total in sides], owner


def _links(gold: Output, name: str, rows: slice) -> Array:
    """Read a part of ``owner``, ``order`` or ``offsets``, files beside the gold scores."""
    return read_part(Path(gold.path).with_name(f"{name}.npy"), rows)


def _write_gold(gold: Output, pool: Pool, span: slice) -> None:
    """Score captions with their own images."""
    own, row = np.unique(_links(gold, "owner", span), return_inverse=True)
    images, captions = pool.prepared(own, span)
    gold.write(span, own_scores(images, captions, row, 1))


def _write_counts(  # noqa: PLR0917
    output: Output, gold: Output, pool: Pool, ties: str, block: int, rows: slice, columns: slice
) -> None:
    """Count candidates ahead of the gold ones of some images, and of some captions."""
    offsets = _links(gold, "offsets", slice(rows.start, rows.stop + 1))
    order = _links(gold, "order", slice(offsets[0], offsets[-1]))
    sides = (
        GoldItems(order - columns.start, offsets - offsets[0]),
        one_each(_links(gold, "owner", columns) - rows.start),
    )
    scores = gold.read(order), gold.read(columns)
    vectors = pool.prepared(rows, columns)
    together = np.hstack(count_products(*vectors, sides, scores, ties, 1, attentive(None)))
    counts = np.zeros(open_zarr(output.path).shape[1:], np.int64)
    counts[:, : together.shape[1]] = together
    output.write(block, counts)
