"""Exact ranks from vectors on disk: counts over pairs of blocks, added in any order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, check_choice, check_integer
from kernelcore._threads import Progress, check_stopped
from kernelcore.distributed.arrays import (
    Matrix,
    MatrixLike,
    Output,
    Task,
    array_digest,
    as_matrix,
    begin,
    chunk_file,
    complete,
    only_writer,
    open_zarr,
    read_part,
    spans,
    write_npy,
)
from kernelcore.distributed.search import check_same_dimensions
from kernelcore.evaluation import Result
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
from kernelcore.evaluation.relevance import as_ks
from kernelcore.evaluation.result import Labels, checked_labels
from kernelcore.evaluation.retrieval import result_of_places
from kernelcore.evaluation.streaming import VectorSimilarity
from kernelcore.evaluation.tiles import gathered, prepared_vectors, product

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
    options: Any = {"block_rows": block_rows, "client": client, "n_threads": n_threads}
    places = _places(
        image_vectors,
        caption_vectors,
        path,
        caption_image,
        similarity=similarity,
        ties=ties,
        progress=progress,
        **options,
    )
    pool = {
        task: (np.arange(len(own.n_gold)), own)
        for task, own in zip(("annotation", "search"), places, strict=True)
    }
    return result_of_places([pool], ties, ks, **checked)


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
        Images and captions of a task.
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
    integers, so their sum is the same in any order. All products have one shape, so a score
    depends on its two vectors alone. The result is the same, bit for bit, for every number of
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
    places = _places(
        image_vectors,
        caption_vectors,
        path,
        caption_image,
        similarity=similarity,
        ties=ties,
        block_rows=block_rows,
        client=client,
        n_threads=n_threads,
        progress=progress,
    )
    return RetrievalRanks(*(side.ranks(ties)[0] for side in places))


def _places(
    image_vectors: Any,
    caption_vectors: Any,
    path: str | os.PathLike[str],
    caption_image: Any,
    *,
    similarity: str,
    ties: str,
    block_rows: int,
    progress: Progress,
    **run: Any,
) -> tuple[GoldPlaces, GoldPlaces]:
    """Count the candidates ahead of each gold one, for both tasks."""
    check_choice("similarity", similarity, ("cosine", "dot"))
    check_choice("ties", ties, TIE_RULES)
    step = check_integer("block_rows", block_rows, minimum=1)
    with only_writer(path) as folder:
        images = as_matrix("image_vectors", image_vectors, folder / "inputs")
        captions = as_matrix("caption_vectors", caption_vectors, folder / "inputs")
        check_same_dimensions(images, captions)
        owner = as_caption_image(caption_image, (len(images), len(captions)))
        about = {
            "image_vectors": images.digest(),
            "caption_vectors": captions.digest(),
            "caption_image": array_digest(owner),
            "similarity": similarity,
        }
        pairs = _Pairs(folder, images, captions, similarity, ties, step)
        by_image = pairs.begin(owner, about)
        down, across = spans(len(images), step), spans(len(captions), step)
        gold = [
            Task(
                f"gold scores {number} of {folder}",
                pairs.write_gold,
                (span,),
                (chunk_file(folder / "gold", number),),
            )
            for number, span in enumerate(across)
        ]
        complete(gold, progress=progress, description="gold scores", **run)
        tasks = [
            Task(
                f"pair of blocks ({i}, {j}) of {folder}",
                pairs.write_counts,
                (i * len(across) + j, rows, columns),
                (chunk_file(folder / "counts", i * len(across) + j, 0, 0),),
            )
            for i, rows in enumerate(down)
            for j, columns in enumerate(across)
        ]
        complete(tasks, progress=progress, description="ranks", **run)
        items = by_image, one_each(owner)
        totals = [np.zeros((pairs.n_counts, len(owner)), np.int64) for _ in items]
        for i, rows in enumerate(down):
            own = slice(by_image.offsets[rows.start], by_image.offsets[rows.stop])
            for j, columns in enumerate(across):
                place = i * len(across) + j
                counts = read_part(folder / "counts", (slice(place, place + 1),))[0]
                n = own.stop - own.start
                totals[0][:, own] += counts[:, :n]
                totals[1][:, columns] += counts[:, n : n + columns.stop - columns.start]
    places = [
        GoldPlaces(np.diff(gold.offsets), *total)
        for gold, total in zip(items, totals, strict=True)
    ]
    return places[0], places[1]


@dataclass(frozen=True)
class _Pairs:
    """Pairs of blocks of images and captions, as the tasks see them."""

    folder: Path
    images: Matrix
    captions: Matrix
    similarity: str
    ties: str
    step: int

    @property
    def n_counts(self) -> int:
        """Counts of a gold candidate: greater ones, equal ones, and equal ones before it."""
        return 3 if self.ties == "ordinal" else 2

    def begin(self, owner: npt.NDArray[np.intp], about: dict[str, Any]) -> GoldItems:
        """Write what all tasks read, and begin both arrays; return the captions of images."""
        by_image = captions_by_image(owner)
        dtype = np.result_type(self.images.vector_dtype, self.captions.vector_dtype)
        step, n = self.step, len(owner)
        begin(self.folder / "gold", Output((n,), (min(step, n),), dtype), about)
        ends = by_image.offsets[[*range(0, len(self.images), step), len(self.images)]]
        width = int(np.diff(ends).max()) + min(step, n)
        n_pairs = (len(ends) - 1) * -(-n // step)
        shape = n_pairs, self.n_counts, width
        settings = about | {"ties": self.ties, "block_rows": step}
        begin(self.folder / "counts", Output(shape, (1, *shape[1:]), np.int64), settings)
        for name, array in (
            ("owner", owner),
            ("order", by_image.candidates),
            ("offsets", by_image.offsets),
        ):
            write_npy(self.folder / f"{name}.npy", array)
        return by_image

    def write_gold(self, span: slice) -> None:
        """Score captions with their own images."""
        own, row = np.unique(self._read("owner.npy", span), return_inverse=True)
        images, captions = prepared_vectors(
            self.images.vectors(own), self.captions.vectors(span), self.similarity, 1
        )
        order = np.argsort(row, kind="stable")
        scores = np.empty(len(row), captions.padded.dtype)
        for part in gathered(row[order], images.step, captions.step):
            members = order[part]
            here, place = np.unique(row[members], return_inverse=True)
            tile = images.gather(here) @ captions.gather(members).T
            scores[members] = tile[place, np.arange(len(members))]
        open_zarr(self.folder / "gold", "r+")[span] = scores

    def write_counts(self, place: int, rows: slice, columns: slice) -> None:
        """Count candidates ahead of the gold ones of some images, and of some captions."""
        images, captions = prepared_vectors(
            self.images.vectors(rows), self.captions.vectors(columns), self.similarity, 1
        )
        offsets = self._read("offsets.npy", slice(rows.start, rows.stop + 1))
        order = self._read("order.npy", slice(offsets[0], offsets[-1]))
        items = (
            GoldItems(order - columns.start, offsets - offsets[0]),
            one_each(self._read("owner.npy", columns) - rows.start),
        )
        scores = self._read("gold", order), self._read("gold", columns)
        targets = [every_gold(*side) for side in zip(items, scores, strict=True)]
        counter = Counter(targets, self.ties)
        tile = np.empty((images.step, captions.step), images.padded.dtype)
        for down in images.tiles():
            for across in captions.tiles():
                check_stopped()
                values = product(images, captions, down.start, across.start, tile)
                part = values[: down.stop - down.start, : across.stop - across.start]
                counter.add(down, across, np.ascontiguousarray(part))
        output = open_zarr(self.folder / "counts", "r+")
        counts = np.zeros(output.shape[1:], np.int64)
        found = [by_gold(own, gold) for own, gold in zip(counter.counts, items, strict=True)]
        counts[:, : len(order)] = found[0]
        counts[:, len(order) : len(order) + found[1].shape[1]] = found[1]
        output[place] = counts

    def _read(self, name: str, place: slice | Array) -> Array:
        return read_part(self.folder / name, (place,))
