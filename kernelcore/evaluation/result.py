"""Results that carry the settings under which they were obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._files import digest
from kernelcore.evaluation.labelled_result import DirectionMetrics, LabelledResult
from kernelcore.evaluation.ranking_metrics import RankingMetrics
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas

    from kernelcore.evaluation.result_table import ResultTable


class RankedMetrics(DirectionMetrics, Protocol):
    """What a ranked result needs to know of the metrics of one direction."""

    @property
    def ranks(self) -> npt.NDArray[np.float64]: ...  # noqa: D102
    @property
    def recall(self) -> dict[int, float]: ...  # noqa: D102


_Metrics = TypeVar("_Metrics", bound=RankedMetrics)


@dataclass(frozen=True)
class RankedResult(LabelledResult[_Metrics]):
    """What results of ranking share: their sum of recalls, their signature and their tables."""

    @property
    def rsum(self) -> float:
        """Sum of the recalls of both tasks, as shares: at most 6 for three k (600 percent)."""
        return sum(self.annotation.recall.values()) + sum(self.search.recall.values())

    @property
    def signature(self) -> str:
        """One line to print under a table: whoever gets the same line has the same ranks.

        It names what the ranks depend on, and ends with a digest of the rank of every query.
        """
        ranks = (np.asarray(side.ranks, "<f8") for side in (self.annotation, self.search))
        parts = {
            "kernelcore": self.version,
            "images": self.n_images,
            "captions": self.n_captions,
            "folds": getattr(self, "n_folds", None),
            "similarity": self.settings.get("similarity"),
            "ties": self.ties,
            "k": ",".join(map(str, self.ks)),
            "ranks": digest(*(array.tobytes() for array in ranks))[:12],
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)

    def _numbers(self) -> dict[str, Any]:
        return {"signature": self.signature, "rsum": self.rsum, **super()._numbers()}

    def summary(
        self,
        *,
        n_resamples: int = 1000,
        confidence: float = 0.95,
        rng: np.random.Generator | int | None = 0,
    ) -> Table:
        """Return every metric with its interval, what ties make of it, and chance.

        Parameters
        ----------
        n_resamples : int, default=1000
            How many times the queries are drawn anew for the bootstrap intervals.
        confidence : float, default=0.95
            Share of the resampled values inside an interval, between 0 and 1.
        rng : numpy.random.Generator, int or None, default=0
            Source of the draws; an int is a seed.

        Returns
        -------
        Table
            One row per metric and, for each task, the value, the percentile interval of
            `bootstrap_interval`, the difference between ties in favour of the system and
            against it, and what a random order is expected to reach. Recalls, MAP and nDCG
            are in percent. What is not known is left empty.

        Raises
        ------
        TypeError, ValueError
            If an option is out of range.

        Notes
        -----
        An interval speaks of other queries from the same source. Captions of one image are
        drawn as if they were independent, which makes the intervals of search narrow.

        Examples
        --------
        >>> from kernelcore.evaluation import evaluate
        >>> print(evaluate([[0.9, 0.4], [0.9, 0.3]], ks=(1,)).summary())
                     ------------ annotation ------------  -------------- search --------------
        metric       value             95%   ties  chance  value             95%   ties  chance
        R@1           50.0    0.0 to 100.0    0.0   50.00    0.0      0.0 to 0.0   50.0   50.00
        ...
        rsum 50.0; R@k, MAP, nDCG and rsum in percent;
        ...
        """
        from kernelcore.evaluation.summary import summary_table

        return summary_table(self, n_resamples, confidence, rng)

    def to_table(self) -> Table:
        """Return a table of one row, recalls in percent."""
        return self._as_table().to_table()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per direction; see `ResultTable.to_frame`."""
        return self._as_table().to_frame()

    def _as_table(self) -> ResultTable:
        from kernelcore.evaluation.result_table import ResultTable

        return ResultTable([self])  # type: ignore[list-item]


@dataclass(frozen=True)
class RetrievalResult(RankedResult[RankingMetrics]):
    """Both directions of one system on one pool of images and captions.

    Attributes
    ----------
    annotation : RankingMetrics
        Queries are images, candidates are captions.
    search : RankingMetrics
        Queries are captions, candidates are images.
    system, protocol, dataset, split, pool : str
        What was measured, on what, and which captions formed the pool. One line each.
    settings : mapping of str to Any
        Settings of the system: anything JSON can hold; NumPy scalars become plain numbers.
    version : str
        Version of kernelcore that computed the result.

    Raises
    ------
    TypeError, ValueError
        If the directions do not belong together, a label is not one line of text, or the
        settings do not fit into JSON.

    See Also
    --------
    evaluate : Makes one from a matrix of scores.

    Examples
    --------
    >>> from kernelcore.evaluation import RetrievalResult, evaluate
    >>> result = evaluate([[0.9, 0.4], [0.1, 0.3]], system="toy", split="test")
    >>> RetrievalResult.from_json(result.to_json()) == result
    True
    """

    _kind = "retrieval result"
    _metrics = RankingMetrics
