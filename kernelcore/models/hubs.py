"""Hubs, candidates that score high for every query, and a correction by training items."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    as_real_array,
    check_finite,
    check_integer,
    no_overflow,
)
from kernelcore._threads import check_stopped
from kernelcore.models.base import Task, check_task

_BLOCK = 2**22  # scores that are partitioned at a time


def hub_corrected(
    scores: npt.ArrayLike, bank: npt.ArrayLike, *, task: Task, n_neighbors: int = 30
) -> npt.NDArray[Any]:
    r"""Lower the scores of hubs: candidates that score high for every query.

    In a space of many dimensions some candidates are among the nearest of many queries. The
    correction estimates this from the scores of other queries, the bank B:

    .. math::

        s'(q, c) = 2 s(q, c) - \frac1k \sum_{b \in N_k(c)} s(b, c)

    :math:`N_k(c)` are the k queries of the bank with the highest scores for c. The published
    form, cross-domain similarity local scaling [1]_, also subtracts the term of the query,
    which changes no ranking.

    Parameters
    ----------
    scores : array_like of shape (n_images, n_captions)
        Scores of every image and every caption, higher is better.
    bank : array_like of shape (n_bank, n_captions) or (n_images, n_bank)
        Scores of other queries for the same candidates: of other images with these captions
        for annotation, of these images with other captions for search. Use training items:
        test items in the bank would make results too good.
    task : {"annotation", "search"}
        Candidates are captions for annotation, images for search.
    n_neighbors : int, default 30
        k; all of the bank where it holds fewer.

    Returns
    -------
    ndarray of shape (n_images, n_captions)
        float32 if `scores` and `bank` are, else float64.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers.
    ValueError
        If the two do not have the same candidates, the bank is empty, a value is NaN or
        infinite, or `n_neighbors` is not positive.

    References
    ----------
    .. [1] A. Conneau et al., "Word translation without parallel data", ICLR 2018.

    Examples
    --------
    The second caption is near to every image.

    >>> from kernelcore.models import hub_corrected
    >>> scores = [[0.6, 0.7], [0.1, 0.8]]
    >>> bank = [[0.2, 0.8], [0.3, 0.9]]      # of two training images
    >>> hub_corrected(scores, bank, task="annotation", n_neighbors=2)
    array([[ 0.95,  0.55],
           [-0.05,  0.75]])
    """
    check_task(task)
    k = check_integer("n_neighbors", n_neighbors, minimum=1)
    S = check_finite("scores", as_real_array("scores", scores, ndim=2))
    B = check_finite("bank", as_real_array("bank", bank, ndim=2))
    axis = 1 if task == "annotation" else 0  # of the candidates
    if B.shape[axis] != S.shape[axis]:
        what = ("image", "caption")[axis]
        raise ValueError(
            f"bank must have the {what}s of scores ({S.shape[axis]}) as its candidates, "
            f"got shape {B.shape}"
        )
    if B.shape[1 - axis] == 0:
        raise ValueError(f"bank must hold at least one query, got shape {B.shape}")
    rows = B if axis == 0 else B.T  # one for each candidate
    with no_overflow("scores", "be so small, as those of bank, that the result can be held"):
        nearness = mean_of_largest(rows, k).astype(np.result_type(S, B), copy=False)
        corrected: Array = 2 * S - (nearness if axis == 1 else nearness[:, np.newaxis])
    return corrected


def mean_of_largest(rows: Array, k: int) -> npt.NDArray[np.float64]:
    """Mean of the `k` largest values of each row."""
    k = min(k, rows.shape[1])
    means = np.empty(len(rows))
    n_rows = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), n_rows):
        check_stopped()
        largest = np.partition(rows[start : start + n_rows], -k, axis=1)[:, -k:]
        means[start : start + n_rows] = largest.mean(axis=1, dtype=np.float64)
    return means
