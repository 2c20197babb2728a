"""Kernel CCA as one dense generalised eigenvalue problem, in NumPy and SciPy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

Array = npt.NDArray[Any]


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
