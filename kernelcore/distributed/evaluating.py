"""Measures of image annotation and image search from vectors on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import numpy.typing as npt

from kernelcore._threads import Progress
from kernelcore.distributed.ranks import BLOCK_ROWS, streamed_places
from kernelcore.distributed.rows import RowsLike
from kernelcore.distributed.tasks import ExecutorLike
from kernelcore.evaluation import Result
from kernelcore.evaluation.ranks import Ties
from kernelcore.evaluation.relevance import as_ks
from kernelcore.evaluation.result import Labels, checked_labels
from kernelcore.evaluation.retrieval import result_of_places
from kernelcore.evaluation.streaming import VectorSimilarity


def evaluate(
    image_vectors: RowsLike,
    caption_vectors: RowsLike,
    store: str | os.PathLike[str],
    *,
    caption_image: npt.ArrayLike | None = None,
    similarity: VectorSimilarity = "cosine",
    ties: Ties = "mean",
    ks: Sequence[int] = (1, 5, 10),
    block_rows: int = BLOCK_ROWS,
    executor: ExecutorLike = None,
    n_threads: int | None = None,
    progress: Progress = False,
    **labels: Unpack[Labels],
) -> Result:
    """Measure image annotation and image search from vectors on disk, on a cluster.

    Parameters
    ----------
    image_vectors, caption_vectors, caption_image, similarity, ties
        As for `kernelcore.distributed.streamed_ranks`.
    store : path
        Folder to write into. A second call with the same arguments computes what is missing.
    ks : sequence of int, default (1, 5, 10)
        The k of the recalls that are reported.
    block_rows, executor, n_threads, progress
        As in `kernelcore.distributed.streamed_ranks`.
    **labels : str or mapping, optional
        As for `kernelcore.evaluate`.

    Returns
    -------
    Result
        What `kernelcore.evaluate` returns for the same vectors.

    Raises
    ------
    TypeError, ValueError, PiecesFailedError, ClusterLostError
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
    for_images, for_captions = streamed_places(
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
    pool = {
        "annotation": (np.arange(len(for_images.n_gold)), for_images),
        "search": (np.arange(len(for_captions.n_gold)), for_captions),
    }
    return result_of_places([pool], ties, ks, **checked)
