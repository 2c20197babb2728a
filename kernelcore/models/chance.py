"""Scores that photos reach by chance, and the rank from which on results are no better."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array, as_real_array, check_finite, check_real


class ChanceLine:
    r"""Scores of a query with foreign candidates, and a line drawn by them.

    Foreign candidates are photos that a sentence was not written about, or captions of other
    photos. Let :math:`b_1, \dots, b_B` be the scores of B of them with the query. A candidate
    with the score s is then as good by chance with

    .. math:: p(s) = \frac{1 + |\{i : b_i \ge s\}|}{1 + B}

    This is the p-value of conformal prediction [1]_: a candidate that the query is not about,
    drawn as the foreign ones are, has :math:`p \le \alpha` with probability at most
    :math:`\alpha`, whatever the scores are distributed like. So of such candidates in a
    collection a share of :math:`\alpha` stands above the line, on average.

    Parameters
    ----------
    foreign : array_like of shape (n_foreign,)
        Scores of the query with foreign candidates.

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

    def __init__(self, foreign: npt.ArrayLike) -> None:
        found = check_finite("foreign", as_real_array("foreign", foreign, ndim=1))
        if not found.size:
            raise ValueError("foreign must hold the score of a candidate, got none")
        self.foreign: Array = np.sort(found)

    def by_chance(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the share of foreign candidates with a score as high, as p above.

        Parameters
        ----------
        scores : array_like of any shape

        Returns
        -------
        ndarray of float64, of the same shape
            Values in (0, 1].

        Raises
        ------
        TypeError, ValueError
            If a score is not a finite number.
        """
        asked: Array = np.asarray(scores)
        if asked.dtype.kind not in "fiu":
            raise TypeError(f"scores must be real numbers, got dtype {asked.dtype}")
        check_finite("scores", asked)
        n_higher = len(self.foreign) - np.searchsorted(self.foreign, asked, side="left")
        share: npt.NDArray[np.float64] = (n_higher + 1) / np.float64(len(self.foreign) + 1)
        return share

    def score_at(self, false_rate: float) -> float:
        """Return the score that a candidate must exceed to stand above the line.

        Parameters
        ----------
        false_rate : float
            Probability in (0, 1) that a foreign candidate stands above the line.

        Returns
        -------
        float
            Infinity where there are fewer than 1 / false_rate - 1 foreign candidates: then
            none can stand above the line.
        """
        rate = check_real("false_rate", false_rate, minimum=0.0, exclusive=True)
        if rate >= 1:
            raise ValueError(f"false_rate must be less than 1, got {false_rate}")
        n_above = math.floor(rate * (1 + len(self.foreign)) * (1 + 1e-12)) - 1
        return math.inf if n_above < 0 else float(self.foreign[-1 - n_above])

    def __repr__(self) -> str:
        return f"ChanceLine({len(self.foreign)} foreign candidates)"
