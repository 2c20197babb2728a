"""KCCA, Gram-Schmidt, assignments, set similarities and pair scores by their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.optimize import linear_sum_assignment, linprog

Array: TypeAlias = npt.NDArray[Any]
Links: TypeAlias = list[tuple[int, int]]


def center(K: Array, K_training: Array) -> Array:
    """Centre rows of kernel values with the means of the training kernel."""
    row_means = K.mean(axis=1, keepdims=True)
    centred: Array = K - row_means - K_training.mean(axis=0) + K_training.mean()
    return centred


def kcca(
    Kx: Array, Ky: Array, *, regularization: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Return correlations, descending, and coefficients of both views, one column each.

    In the eigenvectors of the centred kernels with positive eigenvalues, scaled to length one
    in feature space, the problem is A v = rho B v with the cross products of the views in A
    and K^2 + kappa K in B.
    """
    kappa_x, kappa_y = regularization
    bases, blocks = [], []
    for K, kappa in ((Kx, kappa_x), (Ky, kappa_y)):
        centred = center(K, K)
        eigenvalues, vectors = np.linalg.eigh(centred)
        kept = eigenvalues > 1e-12 * eigenvalues.max()  # smaller ones are rounding
        vectors = vectors[:, kept] / np.sqrt(eigenvalues[kept])
        bases.append((centred, vectors))
        blocks.append(vectors.T @ (centred @ centred + kappa * centred) @ vectors)
    (Cx, Vx), (Cy, Vy) = bases
    rank_x, rank_y = Vx.shape[1], Vy.shape[1]
    cross = np.zeros((rank_x + rank_y, rank_x + rank_y))
    cross[:rank_x, rank_x:] = Vx.T @ Cx @ Cy @ Vy
    cross += cross.T
    values, solutions = scipy.linalg.eigh(cross, scipy.linalg.block_diag(*blocks))
    # Eigenvalues come in pairs +-rho, and each view has half of a solution's norm.
    order = np.argsort(values)[::-1][: min(rank_x, rank_y)]
    solutions = np.sqrt(2.0) * solutions[:, order]
    return values[order], Vx @ solutions[:rank_x], Vy @ solutions[rank_x:]


def partial_gram_schmidt(
    K: Array, *, tolerance: float, max_rank: int
) -> tuple[Array, Array, Array]:
    """Return features R with K ~ R R', the pivots in order, and the residual diagonal.

    The pivot is the training row with the largest squared distance from the span of those
    before it. It stops when the sum of these squares is at most `tolerance` times their sum
    at the start, at `max_rank`, or when no square exceeds the rounding of the first ones: one
    unit for each step before, and ten for the kernel's own entries.
    """
    K = np.asarray(K)
    n = len(K)
    residual = np.maximum(K.diagonal().astype(np.float64), 0.0)
    target = tolerance * residual.sum()
    unit = np.finfo(K.dtype).eps * np.abs(K.diagonal()).max()
    R = np.zeros((n, max_rank), dtype=K.dtype)
    pivots: list[int] = []
    while len(pivots) < max_rank:
        pivot, rank = int(residual.argmax()), len(pivots)
        if residual.sum() <= target or residual[pivot] <= (rank + 10) * unit:
            break
        column = (K[pivot] - R[:, :rank] @ R[pivot, :rank]) / np.sqrt(residual[pivot])
        column[pivots] = 0.0
        column[pivot] = np.sqrt(residual[pivot])
        R[:, rank] = column
        residual = np.maximum(residual - column.astype(np.float64) ** 2, 0.0)
        residual[pivot] = 0.0
        pivots.append(pivot)
    return R[:, : len(pivots)], np.array(pivots, dtype=np.intp), residual


def linear_assignments(
    costs: Sequence[npt.ArrayLike],
    *,
    maximize: bool = False,
    k: int | None = None,
    threshold: float | None = None,
) -> list[Links]:
    """Links of each problem: exactly k, or at most k with a threshold.

    Examples
    --------
    >>> linear_assignments([[[1, 2], [3, 9]]])
    [[(0, 1), (1, 0)]]
    """
    return [
        _linear_assignment(np.asarray(cost, dtype=float), maximize, k, threshold)
        for cost in costs
    ]


def k_cardinality_assignments(cost: npt.ArrayLike, *, maximize: bool = False) -> list[Links]:
    """Links of the best assignments of 1, 2, ... links, up to the largest possible number.

    Examples
    --------
    >>> k_cardinality_assignments([[1, 2], [3, 9]])
    [[(0, 0)], [(0, 1), (1, 0)]]
    """
    matrix = np.asarray(cost, dtype=float)
    found = [
        _exactly(-matrix if maximize else matrix, k) for k in range(1, min(matrix.shape) + 1)
    ]
    return [links for links in found if links is not None]


def _linear_assignment(
    cost: Array, maximize: bool, k: int | None, threshold: float | None
) -> Links:
    sign = -1.0 if maximize else 1.0
    c = sign * cost
    most = min(cost.shape) if k is None else min(k, *cost.shape)
    if threshold is None:
        links = _exactly(c, most)
        if links is None:
            raise ValueError("too much is forbidden")
        return links
    t = sign * threshold
    c = np.where(c > t, np.inf, c)
    best: Links = []
    for n_links in range(1, most + 1):
        links = _exactly(c, n_links)
        if links is None:
            break
        gain = sum(c[link] for link in links) - sum(c[link] for link in best)
        if gain > t:
            break
        best = links
    return best


def _exactly(cost: Array, k: int) -> Links | None:
    """Solve a larger problem, in which all but k rows and columns get dummies of cost 0."""
    n, m = cost.shape
    larger = np.full((n + m - k, n + m - k), np.inf)
    larger[:n, :m] = cost
    larger[n:, :m] = larger[:n, m:] = 0
    try:
        rows, cols = linear_sum_assignment(larger)
    except ValueError:
        return None
    return [(int(i), int(j)) for i, j in zip(rows, cols, strict=True) if i < n and j < m]


def set_similarity(
    S: npt.ArrayLike,
    row_offsets: npt.ArrayLike,
    col_offsets: npt.ArrayLike,
    *,
    method: str = "AP",
    k: int | str | None = None,
) -> Array:
    """DC, TK or AP of each block of S.

    Examples
    --------
    >>> set_similarity([[0.5, 0.25], [0.5, 0.0]], [0, 2], [0, 2], method="DC")
    array([[0.875]])
    """
    matrix = np.asarray(S, dtype=float)
    row_sets = np.split(np.arange(matrix.shape[0]), np.asarray(row_offsets)[1:-1])
    col_sets = np.split(np.arange(matrix.shape[1]), np.asarray(col_offsets)[1:-1])
    values = [[_compare(matrix[np.ix_(a, b)], method, k) for b in col_sets] for a in row_sets]
    return np.array(values)


def _compare(M: Array, method: str, k: int | str | None) -> float:
    n_links = min(M.shape)
    if k == "half":
        n_links = -(-n_links // 2)
    elif k is not None:
        n_links = min(int(k), n_links)
    if method == "DC":
        return float(M.max(axis=1).mean() + M.max(axis=0).mean())
    if method == "TK":
        maxima = (np.sort(M.max(axis=axis))[-n_links:] for axis in (0, 1))
        return float(sum(greatest.mean() for greatest in maxima))
    # The vertices of the assignment polytope are integral, so this relaxation is exact.
    links = np.arange(M.size).reshape(M.shape)
    uses = [np.isin(links, line).ravel() for line in [*links, *links.T]]
    largest = float(np.abs(M).max()) or 1.0  # the tolerances of the solver are absolute
    best = linprog(
        -M.ravel() / largest,
        A_ub=np.array(uses),
        b_ub=np.ones(len(uses)),
        A_eq=np.ones((1, M.size)),
        b_eq=[n_links],
        bounds=(0, 1),
    )
    return float(M.ravel() @ best.x / n_links)


def cross_attention(
    contexts: Sequence[Array],
    queries: Sequence[Array],
    *,
    temperature: float,
    sharpness: float = 6.0,
) -> Array:
    """Similarity of every set of contexts with every set of queries, rows of length 1."""
    result = np.empty((len(contexts), len(queries)))
    for i, context in enumerate(contexts):
        for j, query in enumerate(queries):
            raised = np.array([[max(c @ q, 0.1 * (c @ q)) for q in query] for c in context])
            raised /= np.sqrt((raised**2).sum(axis=1, keepdims=True))
            cosines = []
            for q, column in zip(query, raised.T, strict=True):
                weights = np.exp(temperature * column)
                attended = (weights / weights.sum()) @ context
                cosines.append(q @ attended / np.linalg.norm(attended))
            powers = np.exp(sharpness * np.array(cosines))
            result[i, j] = np.log(powers.sum()) / sharpness
    return result


def order_similarities(images: npt.ArrayLike, texts: npt.ArrayLike) -> Array:
    """Minus the squared length of the positive part of image vector minus text vector.

    Examples
    --------
    >>> order_similarities([[1.0, 0.0], [2.0, 2.0]], [[1.0, 3.0], [0.0, 1.0]])
    array([[ 0., -1.],
           [-1., -5.]])
    """
    v, t = np.asarray(images), np.asarray(texts)
    penalties = np.zeros((len(v), len(t)))
    for i, image in enumerate(v):
        for j, text in enumerate(t):
            penalties[i, j] = sum(
                max(0.0, a - b) ** 2 for a, b in zip(image, text, strict=True)
            )
    return 0 - penalties


def hub_corrected(
    scores: Sequence[Sequence[float]],
    bank: Sequence[Sequence[float]],
    *,
    task: str,
    n_neighbors: int = 30,
) -> list[list[float]]:
    """Corrected scores of every image (rows) and every caption (columns).

    The bank has one row for each of its images for annotation, and one column for each of its
    captions for search.
    """
    corrected: list[list[float]] = []
    for i, row in enumerate(scores):
        corrected.append([])
        for j, score in enumerate(row):
            known = [other[j] for other in bank] if task == "annotation" else list(bank[i])
            nearest = sorted(known, reverse=True)[:n_neighbors]
            corrected[-1].append(2 * score - fmean(nearest))
    return corrected
