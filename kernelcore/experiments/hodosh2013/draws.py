"""Random draws of the tests, and what resamples say of a number."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation.significance import PairedTest, fisher_randomization


@dataclass(frozen=True)
class Draws:
    """Random draws of the tests.

    Attributes
    ----------
    rng : int
    n_reassignments : int
        Of the randomisation tests.
    n_resamples : int
        Of the queries, for intervals of correlations and of kappa.
    n_threads : int or None
    """

    rng: int = 0
    n_reassignments: int = 100_000
    n_resamples: int = 1000
    n_threads: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `fisher_randomization` and `compare`."""
        return {
            "rng": self.rng,
            "n_reassignments": self.n_reassignments,
            "n_threads": self.n_threads,
        }

    def randomization(
        self, systems: Any, baseline: Any, *, statistic: Literal["mean", "median"] = "mean"
    ) -> PairedTest:
        """Fisher's test of systems against one baseline."""
        return fisher_randomization(systems, baseline, statistic=statistic, **self.options)

    def sign_flips(self, differences: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the p-values of Fisher's test that means of differences are zero.

        To swap the two values of a query changes the sign of their difference. So the pairs of
        any systems are tested by the same reassignments.

        Parameters
        ----------
        differences : ndarray of float64, shape (n_pairs, n_queries)
            NaN where a query does not count for a pair: as for a difference of zero, the sign
            makes no difference.
        """
        rows = np.nan_to_num(differences)
        return np.atleast_1d(self.randomization(rows, np.zeros(rows.shape[1])).p_value)

    def resamples(self, n_items: int) -> npt.NDArray[np.int64]:
        """Draw the items anew, with replacement, and count how often each is drawn.

        Returns
        -------
        ndarray of int64, shape (n_resamples, n_items)
        """
        generator = np.random.default_rng(self.rng)
        share = np.full(n_items, 1 / n_items)
        return generator.multinomial(n_items, share, size=self.n_resamples)


def standard_error(drawn: npt.NDArray[np.float64]) -> float:
    """Return the standard deviation of a number over resamples; NaN if none has it."""
    known = drawn[np.isfinite(drawn)]
    return float(known.std()) if known.size else np.nan


def bootstrap_p_value(observed: float, drawn: npt.NDArray[np.float64]) -> float:
    """Return the two-sided p-value of a number that is zero in the population.

    The number is taken as normal, with the standard error over resamples. The place of the
    resamples is not used: a rank correlation, say, is lower there, because resamples add noise
    to that of the sample. No p-value is below 1 / (n_resamples + 1).
    """
    error = standard_error(drawn)
    if observed == 0 or np.isnan(error):
        return 1.0
    p_value = erfc(abs(observed) / error / sqrt(2)) if error else 0.0
    return max(p_value, 1 / (len(drawn) + 1))
