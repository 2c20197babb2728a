"""Cohen's kappa of expert scores and other measures of a pair, over all thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import RelevanceJudgments
from kernelcore.experiments.hodosh2013.first_results import EXPERT_THRESHOLDS
from kernelcore.experiments.hodosh2013.judged import TextMatrices

Floats: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int64]

THRESHOLDS = tuple(np.arange(0.05, 1.01, 0.05).round(2).tolist())
"""Thresholds of the crowd's share of yes, and of text metrics."""
LEAST = EXPERT_THRESHOLDS[:7]
"""Thresholds of the mean expert score: 4 down to 2."""
N_RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """The pairs that experts scored, and other measures of them.

    Attributes
    ----------
    images : ndarray of int, shape (n_pairs,)
        Image of each pair, ascending.
    n_images : int
    expert : ndarray of float64, shape (n_pairs,)
        Mean expert score.
    is_gold : ndarray of bool, shape (n_pairs,)
        Whether the caption was written for the image.
    crowd : ndarray of float64, shape (n_pairs,)
        Share of yes; NaN where the crowd did not judge.
    texts : mapping of (references, metric) to ndarray of float64, shape (n_pairs,)
    """

    images: npt.NDArray[np.intp]
    n_images: int
    expert: Floats
    is_gold: npt.NDArray[np.bool_]
    crowd: Floats
    texts: Mapping[tuple[str, str], Floats]

    @classmethod
    def of(
        cls, expert: RelevanceJudgments, crowd: RelevanceJudgments, matrices: TextMatrices
    ) -> ScoredPairs:
        """Look up all measures of the pairs that experts scored; both have the same pool."""
        pairs = expert.images, expert.captions
        return cls(
            images=expert.images,
            n_images=len(expert.image_ids),
            expert=expert.scores,
            is_gold=expert.images == expert.captions,
            crowd=crowd.scores_of(*pairs),
            texts={
                (references, metric): matrix[pairs]
                for references, by_metric in matrices.items()
                for metric, matrix in by_metric.items()
            },
        )

    def kappas(self, values: Floats, *, where: npt.NDArray[np.bool_] | None = None) -> Kappas:
        """Compare the experts with a measure, on the pairs that have one."""
        known = np.isfinite(values)
        if where is not None:
            known &= where
        by_expert = self.expert[known, np.newaxis] >= LEAST
        by_measure = values[known, np.newaxis] >= THRESHOLDS
        both = by_expert[:, :, np.newaxis] & by_measure[:, np.newaxis]
        ones = np.ones(known.sum(), dtype=np.int64)
        images = self.images[known]
        starts = np.flatnonzero(np.diff(images, prepend=-1))

        def by_image(of: npt.NDArray[Any]) -> Counts:
            sums = np.zeros((self.n_images, *of.shape[1:]), dtype=np.int64)
            sums[images[starts]] = np.add.reduceat(of, starts, axis=0, dtype=np.int64)
            return sums

        return Kappas(*map(by_image, (ones, by_expert, by_measure, both)))


class Best(NamedTuple):
    """The greatest kappa over all pairs of thresholds.

    Attributes
    ----------
    kappa : float
        NaN if no pair of thresholds has one.
    expert, measure : float
        The thresholds.
    """

    kappa: float
    expert: float
    measure: float


@dataclass(frozen=True, eq=False)
class Kappas:
    r"""Counts of two binary verdicts by image, for all thresholds of both.

    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad
        p_o = \frac{n_{11} + n_{00}}{n}, \qquad
        p_e = \frac{n_{1\cdot} n_{\cdot 1} + n_{0\cdot} n_{\cdot 0}}{n^2}

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_images,)
        Number of pairs, n.
    expert : ndarray of int64, shape (n_images, n_expert)
        Pairs of which the experts say yes, for each threshold.
    measure : ndarray of int64, shape (n_images, n_thresholds)
        The same of the measure.
    both : ndarray of int64, shape (n_images, n_expert, n_thresholds)
        Pairs of which both say yes.
    """

    pairs: Counts
    expert: Counts
    measure: Counts
    both: Counts

    @property
    def n_pairs(self) -> int:
        """Number of pairs compared."""
        return int(self.pairs.sum())

    def table(self) -> Floats:
        """Return kappa for all thresholds, shape (n_expert, n_thresholds)."""
        table: Floats = self._kappa(np.ones((1, len(self.pairs)), dtype=np.int64))[0]
        return table

    def drawn(self, counts: Counts) -> Floats:
        """Return kappa in resamples of the images.

        Parameters
        ----------
        counts : ndarray of int64, shape (n_draws, n_images)
            How often each image is drawn. With the same counts, measures can be compared draw
            by draw.

        Returns
        -------
        ndarray of float64, shape (n_draws, n_expert, n_thresholds)
        """
        return self._kappa(counts)

    def best(self) -> Best:
        """Return the greatest kappa and its thresholds."""
        table = self.table()
        if np.isnan(table).all():
            return Best(np.nan, np.nan, np.nan)
        row, column = np.unravel_index(np.nanargmax(table), table.shape)
        return Best(float(table[row, column]), LEAST[row], THRESHOLDS[column])

    def _kappa(self, weights: Counts) -> Floats:
        """Return kappa where each image counts as often as each row of weights says."""
        w = weights.astype(np.float64)
        n = (w @ self.pairs)[:, np.newaxis, np.newaxis]
        expert = (w @ self.expert)[:, :, np.newaxis]
        measure = (w @ self.measure)[:, np.newaxis]
        both = (w @ self.both.reshape(len(self.pairs), -1)).reshape(-1, *self.both.shape[1:])
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = (n - expert - measure + 2 * both) / n
            expected = (expert * measure + (n - expert) * (n - measure)) / n**2
            kappa: Floats = (observed - expected) / (1 - expected)
        kappa[~np.isfinite(kappa)] = np.nan  # chance cannot disagree
        return kappa


def resamples(n_items: int) -> Counts:
    """Draw the items with replacement, and count how often each is drawn.

    Returns
    -------
    ndarray of int64, shape (N_RESAMPLES, n_items)
    """
    share = np.full(n_items, 1 / n_items)
    return np.random.default_rng(0).multinomial(n_items, share, size=N_RESAMPLES)


def standard_error(drawn: Floats) -> float:
    """Return the standard deviation of a number over resamples; NaN if none has it."""
    known = drawn[np.isfinite(drawn)]
    return float(known.std()) if known.size else np.nan


def greatest(kappas: Floats) -> Floats:
    """Return the greatest kappa of each draw, NaN where there is none."""
    filled = np.where(np.isnan(kappas), -np.inf, kappas).max(axis=(1, 2))
    return np.where(np.isneginf(filled), np.nan, filled)
