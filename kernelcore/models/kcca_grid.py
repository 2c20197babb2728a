"""Scores of many settings of kernel CCA from one factorisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore._reading import check_mapping
from kernelcore._validation import Array, check_integer, check_real
from kernelcore.kcca.basis import Decomposition
from kernelcore.kcca.factorization import KCCAFactorization, as_pair, factorize
from kernelcore.kernels import ridge
from kernelcore.models.base import TASKS, Run

_NO_RIDGE = (1.0, 1.0)


class KCCASetting(NamedTuple):
    """One point of the grid: the keywords of `KCCARanker.from_factorization`."""

    n_components: int
    regularization: tuple[float, float]
    ridge: tuple[float, float]
    correlation_power: float

    @classmethod
    def from_json(cls, values: Any) -> KCCASetting:
        """Return the setting that a file tells, checked."""
        parts = check_mapping("setting", values)
        return cls(
            check_integer("n_components", parts["n_components"], minimum=0),
            as_pair("regularization", parts["regularization"], minimum=0.0),
            as_pair("ridge", parts["ridge"], minimum=1.0),
            check_real("correlation_power", parts["correlation_power"], minimum=0.0),
        )


class KCCASolution(NamedTuple):
    """What the scores of a setting are computed from."""

    factorization: KCCAFactorization
    setting: KCCASetting


def solve_together(
    grams: tuple[Array, Array],
    settings: Sequence[KCCASetting],
    *,
    decomposition: Decomposition,
    tolerance: float,
    max_rank: int | None,
    n_threads: int | None,
) -> list[KCCASolution]:
    """Factorise training kernels as rarely as the settings allow.

    A ridge only shifts the eigenvalues of a whole eigen-decomposition if the diagonal is
    constant. Otherwise it becomes part of the kernels, and leaves the setting. 0 components
    stand for all there are.
    """

    @cache
    def factorized(ridge: tuple[float, float]) -> KCCAFactorization:
        return factorize(
            *with_ridges(grams, ridge),
            decomposition=decomposition,
            tolerance=tolerance,
            max_rank=max_rank,
            n_threads=n_threads,
        )

    def solution(setting: KCCASetting) -> KCCASolution:
        asked = setting.ridge
        is_shift = decomposition == "eigen" and _shifts(factorized(_NO_RIDGE), asked)
        inside, left = (_NO_RIDGE, asked) if is_shift else (asked, _NO_RIDGE)
        factorization = factorized(inside)
        n_components = setting.n_components or factorization.rank(left)
        return KCCASolution(
            factorization, setting._replace(n_components=n_components, ridge=left)
        )

    return [solution(setting) for setting in settings]


def _shifts(factorization: KCCAFactorization, ridge: tuple[float, float]) -> bool:
    """Whether this ridge moves all eigenvalues of each view alike."""
    return all(
        factor == 1.0 or view.diagonal is not None
        for factor, view in zip(ridge, (factorization.x, factorization.y), strict=True)
    )


def with_ridges(grams: tuple[Array, Array], factors: tuple[float, float]) -> list[Array]:
    """Multiply the diagonals of both kernels by their factors."""
    return [
        K if factor == 1.0 else ridge(K, factor)
        for K, factor in zip(grams, factors, strict=True)
    ]


def kcca_runs(
    solutions: Mapping[int, KCCASolution], Kx: npt.ArrayLike, Ky: npt.ArrayLike
) -> list[Run]:
    """Score new images against new captions under settings given by their places.

    One run serves one regularisation and ridge: it solves for the directions once. Both
    tasks have the same scores.
    """
    factorizations = {id(one.factorization): one.factorization for one in solutions.values()}
    coordinates = {
        key: (factorization.x.coordinates(Kx), factorization.y.coordinates(Ky))
        for key, factorization in factorizations.items()
    }

    def key(item: tuple[int, KCCASolution]) -> tuple[Any, ...]:
        factorization, setting = item[1]
        return id(factorization), setting.regularization, setting.ridge

    return [
        _run(factorizations[of[0]], coordinates[of[0]], [(i, one.setting) for i, one in group])
        for of, group in groupby(sorted(solutions.items(), key=key), key)
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
