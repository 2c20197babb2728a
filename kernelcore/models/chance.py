"""Scores that photos reach by chance, and the rank from which on results are no better."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kernelcore._parallel import check_stopped
from kernelcore._validation import Array, as_real_array, check_finite, check_real
from kernelcore.models.kcca_ranker import products

_BLOCK = 2**24  # scores that are computed at a time


class ChanceLine:
    r"""Best scores that foreign queries reach in a collection, and a line drawn by them.

    A foreign query is a sentence about a photo that is not in the collection, or a photo that
    no sentence of the collection was written about. Let :math:`b_1, \dots, b_B` be the best
    scores of B such queries. A candidate with the score s is then found by chance with

    .. math:: p(s) = \frac{1 + |\{i : b_i \ge s\}|}{1 + B}

    This is the p-value of conformal prediction [1]_: if a new query is drawn as the foreign
    queries are, and its own item is not in the collection, then the smallest p of its
    candidates is at most :math:`\alpha` with probability at most :math:`\alpha`, whatever the
    scores are distributed like. Foreign queries may well fit some candidates. The line is the
    higher for it: above it stands what queries of this kind seldom find without their own item.

    Parameters
    ----------
    best : array_like of shape (n_queries,)
        Best score of each foreign query in the collection.

    Raises
    ------
    TypeError, ValueError
        If there is no score or one is not a finite number.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic learning in a random world",
       Springer, 2005.

    Examples
    --------
    >>> from kernelcore.models import ChanceLine
    >>> line = ChanceLine([0.1, 0.2, 0.3, 0.4])
    >>> line.by_chance([0.5, 0.35, 0.0])
    array([0.2, 0.4, 1. ])
    >>> line.score_at(0.4)
    0.3
    """

    def __init__(self, best: npt.ArrayLike) -> None:
        found = check_finite("best", as_real_array("best", best, ndim=1))
        if not found.size:
            raise ValueError("best must hold the score of a query, got none")
        self.best: Array = np.sort(found)

    @classmethod
    def of(
        cls,
        queries: Array,
        candidates: Array,
        *,
        owners: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None,
    ) -> ChanceLine:
        """Score foreign queries against a collection.

        Parameters
        ----------
        queries : ndarray of shape (n_queries, n_components)
            Vectors of foreign queries.
        candidates : ndarray of shape (n_candidates, n_components)
            Vectors of the collection; products with those of the queries are scores.
        owners : (ndarray of shape (n_queries,), ndarray of shape (n_candidates,)), optional
            A number for each query and for each candidate. Where these are equal, the
            candidate belongs to the query and is left out.

        Returns
        -------
        ChanceLine
        """
        best = np.full(len(queries), -np.inf, np.result_type(queries, candidates))
        step = max(1, _BLOCK // max(1, len(queries)))
        for start in range(0, len(candidates), step):
            check_stopped()
            part = slice(start, start + step)
            scores = products(queries, candidates[part])
            if owners is not None:
                scores[owners[0][:, None] == owners[1][part]] = -np.inf
            np.maximum(best, scores.max(axis=1), out=best)
        return cls(best[best != -np.inf])

    def by_chance(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the share of foreign queries whose best score is as high, as p above.

        Parameters
        ----------
        scores : array_like of any shape

        Returns
        -------
        ndarray of float64, of the same shape
            Values in (0, 1].
        """
        asked: Array = np.asarray(scores)
        if asked.dtype.kind not in "fiu":
            raise TypeError(f"scores must be real numbers, got dtype {asked.dtype}")
        check_finite("scores", asked)
        n_higher = len(self.best) - np.searchsorted(self.best, asked, side="left")
        share: npt.NDArray[np.float64] = (n_higher + 1) / np.float64(len(self.best) + 1)
        return share

    def score_at(self, false_rate: float) -> float:
        """Return the score that a candidate must exceed to stand above the line.

        Parameters
        ----------
        false_rate : float
            Probability in (0, 1) that a query about nothing in the collection has a candidate
            above the line.

        Returns
        -------
        float
            Infinity where there are fewer than 1 / false_rate - 1 foreign queries: then no
            candidate can stand above the line.
        """
        rate = check_real("false_rate", false_rate, minimum=0.0, exclusive=True)
        if rate >= 1:
            raise ValueError(f"false_rate must be less than 1, got {false_rate}")
        n_above = math.floor(rate * (1 + len(self.best)) * (1 + 1e-12)) - 1
        return math.inf if n_above < 0 else float(self.best[-1 - n_above])

    def __repr__(self) -> str:
        return f"ChanceLine({len(self.best)} foreign queries)"
