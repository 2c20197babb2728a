"""Borda's count: rankings of several models combined into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_real_array, check_finite
from kernelcore.models.base import Task, check_task


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
