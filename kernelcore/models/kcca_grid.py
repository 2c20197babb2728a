"""Scores of many settings of kernel CCA from one factorisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore._validation import Array
from kernelcore.kcca.factorization import KCCAFactorization
from kernelcore.models.base import TASKS, Run


class KCCASetting(NamedTuple):
    """One point of the grid: the keywords of `KCCARanker.from_factorization`."""

    n_components: int
    regularization: tuple[float, float]
    ridge: tuple[float, float]
    correlation_power: float


def kcca_runs(
    factorization: KCCAFactorization,
    settings: Mapping[int, KCCASetting],
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
) -> list[Run]:
    """Score new images against new captions under settings given by their places.

    One run serves one regularisation and ridge: it solves for the directions once. Both
    tasks have the same scores.
    """
    coordinates = factorization.x.coordinates(Kx), factorization.y.coordinates(Ky)

    def key(item: tuple[int, KCCASetting]) -> tuple[Any, ...]:
        return item[1].regularization, item[1].ridge

    return [
        _run(factorization, coordinates, list(group))
        for _, group in groupby(sorted(settings.items(), key=key), key)
    ]


def _run(
    factorization: KCCAFactorization,
    coordinates: tuple[Array, Array],
    group: Sequence[tuple[int, KCCASetting]],
) -> Run:
    """Score under settings of one regularisation and ridge.

    Products and lengths grow from one number of components to the next.
    """
    first = group[0][1]
    correlations, x_weights, y_weights = factorization.directions(
        regularization=first.regularization,
        ridge=first.ridge,
        n_components=max(setting.n_components for _, setting in group),
    )
    with one_blas_thread():
        X = coordinates[0][:, : len(x_weights)] @ x_weights
        Y = coordinates[1][:, : len(y_weights)] @ y_weights
    by_power = sorted(group, key=lambda item: (item[1].correlation_power, item[1].n_components))
    for power, steps in groupby(by_power, lambda item: item[1].correlation_power):
        weights = correlations**power
        products = np.zeros((len(X), len(Y)), X.dtype)
        squares_X, squares_Y = np.zeros(len(X), X.dtype), np.zeros(len(Y), Y.dtype)
        start = 0
        for place, setting in steps:
            added = slice(start, setting.n_components)
            weighted = X[:, added] * weights[added]
            with one_blas_thread():
                products += weighted @ Y[:, added].T
            squares_X += np.einsum("ij,ij->i", weighted, X[:, added])
            squares_Y += np.einsum("ij,ij,j->i", Y[:, added], Y[:, added], weights[added])
            lengths = np.sqrt(np.outer(squares_X, squares_Y))
            scores = products / np.where(lengths > 0, lengths, 1)
            yield place, dict.fromkeys(TASKS, scores)
            start = setting.n_components
