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
from kernelcore.kcca.basis import Decomposition, KernelBasis, constant_diagonal
from kernelcore.kcca.factorization import KCCAFactorization, as_pair, factorize
from kernelcore.kernels import ridge
from kernelcore.models.base import TASKS, Run


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
    constant. Otherwise it becomes part of that kernel, and leaves the setting. 0 components
    stand for all there are.
    """
    shifts = [decomposition == "eigen" and constant_diagonal(K) is not None for K in grams]
    bases: tuple[dict[float, KernelBasis], ...] = ({}, {})

    @cache
    def factorized(inside: tuple[float, float]) -> KCCAFactorization:
        views = [
            known[factor] if factor in known else with_ridge(K, factor)
            for known, K, factor in zip(bases, grams, inside, strict=True)
        ]
        factorization = factorize(
            *views,
            decomposition=decomposition,
            tolerance=tolerance,
            max_rank=max_rank,
            n_threads=n_threads,
        )
        for known, factor, basis in zip(
            bases, inside, (factorization.x, factorization.y), strict=True
        ):
            known[factor] = basis
        return factorization

    def solution(setting: KCCASetting) -> KCCASolution:
        parts = [
            (1.0, factor) if is_shift else (factor, 1.0)
            for is_shift, factor in zip(shifts, setting.ridge, strict=True)
        ]
        (inside_x, left_x), (inside_y, left_y) = parts
        factorization, left = factorized((inside_x, inside_y)), (left_x, left_y)
        n_components = setting.n_components or factorization.rank(left)
        return KCCASolution(
            factorization, setting._replace(n_components=n_components, ridge=left)
        )

    return [solution(setting) for setting in settings]


def with_ridge(K: Array, factor: float) -> Array:
    """Multiply the diagonal of a training kernel by this factor."""
    return K if factor == 1.0 else ridge(K, factor)


def kcca_runs(
    solutions: Mapping[int, KCCASolution], Kx: npt.ArrayLike, Ky: npt.ArrayLike
) -> list[Run]:
    """Score new images against new captions under settings given by their places.

    One run serves one regularisation and ridge: it solves for the directions once. Both
    tasks have the same scores.
    """
    rows = {}
    groups: dict[tuple[Any, ...], list[tuple[int, KCCASetting]]] = {}
    lifted: dict[tuple[Any, ...], KCCAFactorization] = {}
    for place, (factorization, setting) in solutions.items():
        of = id(factorization), setting.ridge
        if of not in lifted:
            lifted[of] = factorization.lifted(setting.ridge)
        groups.setdefault((*of, setting.regularization), []).append((place, setting))

    def coordinates(basis: KernelBasis, K: npt.ArrayLike) -> Array:
        """Coordinates in a basis, which those of several ridges have in common."""
        key = id(basis.centerer), basis.vectors.shape[1]
        if key not in rows:
            rows[key] = basis.coordinates(K)
        return rows[key]

    return [
        _run(one, (coordinates(one.x, Kx), coordinates(one.y, Ky)), group)
        for one, group in ((lifted[key[:2]], groups[key]) for key in sorted(groups))
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
