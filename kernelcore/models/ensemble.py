"""Scores after ranking: Borda's count over several models, and the correction for hubs."""

from __future__ import annotations

from collections.abc import Sequence
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
from kernelcore.models.base import Task, check_task
from kernelcore.models.kcca_ranker import mean_of_largest


def borda_scores(
    score_matrices: Sequence[npt.ArrayLike], *, task: Task
) -> npt.NDArray[np.float64]:
    r"""Combine the rankings that several score matrices give each query.

    A model whose ranking has a candidate at position r = 0, ..., N - 1 gives it N - r
    points; candidates with equal points are ordered by their median position over the
    models [1]_:

    .. math::

        s = \sum_m (N - r_m) + \frac{N - \operatorname{median}_m r_m}{2 (N + 1)}

    Parameters
    ----------
    score_matrices : sequence of array_like of shape (n_images, n_captions)
        One matrix of each model, higher is better; only the order within a query counts.
        A matrix may come several times and weighs accordingly.
    task : {"annotation", "search"}
        Queries are the rows (images) for "annotation", the columns (captions) for "search".

    Returns
    -------
    ndarray of float64, shape (n_images, n_captions)
        Higher is better. The whole and half points come first, the tie-break is below a
        half.

    Raises
    ------
    TypeError
        If a matrix does not hold real numbers.
    ValueError
        If there is no matrix, shapes differ, `task` is neither of the two, or a score is NaN
        or infinite.

    Notes
    -----
    Candidates with equal scores share the mean of their positions.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> from kernelcore.models import borda_scores
    >>> first, second = [[0.9, 0.5, 0.1]], [[0.2, 0.8, 0.7]]
    >>> borda_scores([first, second], task="annotation")
    array([[4.25  , 5.3125, 3.1875]])
    """
    from scipy.stats import rankdata

    check_task(task)
    matrices = [
        check_finite(f"score_matrices[{m}]", as_real_array(f"score_matrices[{m}]", S, ndim=2))
        for m, S in enumerate(score_matrices)
    ]
    if not matrices:
        raise ValueError("score_matrices must hold at least one matrix, got none")
    for m, matrix in enumerate(matrices):
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"score_matrices must have one shape, got {matrices[0].shape} and "
                f"{matrix.shape} for score_matrices[{m}]"
            )
    candidates = 1 if task == "annotation" else 0
    n_candidates = matrices[0].shape[candidates]
    positions = np.stack([rankdata(-matrix, axis=candidates) - 1.0 for matrix in matrices])
    points = (n_candidates - positions).sum(axis=0)
    medians = np.median(positions, axis=0)
    combined: npt.NDArray[np.float64] = points + (n_candidates - medians) / (
        2.0 * (n_candidates + 1)
    )
    return combined


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
