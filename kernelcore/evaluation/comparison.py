"""Systems side by side, and which of their differences to one of them are significant."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore.evaluation.significance import holm
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class ComparedMetric:
    """One metric of all systems, and how surprising their differences to the baseline are.

    Attributes
    ----------
    task : {"annotation", "search"}
    name : str
        ``R@1``, ``median`` or what the caller named it.
    test : str
        The test behind the p-values.
    values : ndarray of float64, shape (n_systems,)
        The metric.
    p_values : ndarray of float64, shape (n_systems,)
        Two-sided and uncorrected; NaN for the baseline itself.
    is_share : bool
        Whether it is a share in [0, 1], which tables print in percent.
    """

    task: str
    name: str
    test: str
    values: npt.NDArray[np.float64]
    p_values: npt.NDArray[np.float64]
    is_share: bool

    @property
    def adjusted_p_values(self) -> npt.NDArray[np.float64]:
        """The p-values corrected by `holm` for the number of systems."""
        adjusted = np.array(self.p_values)
        tested = ~np.isnan(adjusted)
        adjusted[tested] = holm(adjusted[tested])
        return adjusted


@dataclass(frozen=True, eq=False)
class Comparison:
    """Table of systems with superscripts where they differ significantly from one of them.

    Attributes
    ----------
    systems : tuple of str
        Names, in the order of the rows.
    baseline : int
        Row of the system that the others are compared with.
    metrics : tuple of ComparedMetric
        In the order of the columns.
    levels : tuple of float
        A p-value of at most the first gets one star, of at most the second two, and so on.
    correction : {"holm"} or None
        Whether the superscripts go by corrected p-values.
    facts : str
        What the systems share, for the caption.

    See Also
    --------
    compare : Makes one.
    """

    systems: tuple[str, ...]
    baseline: int
    metrics: tuple[ComparedMetric, ...]
    levels: tuple[float, ...]
    correction: str | None
    facts: str = ""

    def __str__(self) -> str:
        return str(self.to_table())

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """Metrics in columns, shape (n_systems, n_metrics)."""
        return np.stack([metric.values for metric in self.metrics], axis=1)

    @property
    def p_values(self) -> npt.NDArray[np.float64]:
        """Uncorrected p-values, shape (n_systems, n_metrics); NaN for the baseline."""
        return np.stack([metric.p_values for metric in self.metrics], axis=1)

    @property
    def adjusted_p_values(self) -> npt.NDArray[np.float64]:
        """P-values corrected within each column by `holm`; NaN for the baseline."""
        return np.stack([metric.adjusted_p_values for metric in self.metrics], axis=1)

    def to_table(self) -> Table:
        """Return the table as text cells, shares in percent, with their superscripts."""
        p_values = self.p_values if self.correction is None else self.adjusted_p_values
        n_stars = (p_values[..., np.newaxis] <= self.levels).sum(axis=-1)
        cells = [[_cell(value, of) for value in of.values] for of in self.metrics]
        groups = [(task, len(list(of))) for task, of in groupby(m.task for m in self.metrics)]
        return Table(
            columns=("system", *(metric.name for metric in self.metrics)),
            rows=tuple(zip(self.systems, *cells, strict=True)),
            groups=(("", 1), *groups),
            superscripts=frozenset(
                ((i, j + 1), "*" * int(n_stars[i, j]))
                for i, j in np.argwhere(n_stars > 0).tolist()
            ),
            caption=self._caption(),
        )

    def to_markdown(self) -> str:
        """Return a Markdown table; see `to_table`."""
        return self.to_table().to_markdown()

    def to_latex(self) -> str:
        """Return a LaTeX table; see `Table.to_latex`."""
        return self.to_table().to_latex()

    def to_html(self) -> str:
        """Return an HTML table; see `Table.to_html`."""
        return self.to_table().to_html()

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_html()

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per system and metric.

        Returns
        -------
        pandas.DataFrame
            Columns ``system``, ``task``, ``metric``, ``value`` (shares in [0, 1]),
            ``difference`` to the baseline, ``p_value``, ``adjusted_p_value`` and ``test``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        rows = [
            {
                "system": system,
                "task": metric.task,
                "metric": metric.name,
                "value": metric.values[i],
                "difference": metric.values[i] - metric.values[self.baseline],
                "p_value": metric.p_values[i],
                "adjusted_p_value": metric.adjusted_p_values[i],
                "test": metric.test,
            }
            for i, system in enumerate(self.systems)
            for metric in self.metrics
        ]
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame

    def _caption(self) -> str:
        stars = [f"{'*' * i} p <= {level:g}" for i, level in enumerate(self.levels, start=1)]
        corrected = " after Holm's correction in each column" if self.correction else ""
        names: dict[str, dict[str, None]] = {}
        for metric in self.metrics:
            names.setdefault(metric.test, {})[metric.name] = None
        parts = [
            "shares in percent" if any(metric.is_share for metric in self.metrics) else "",
            f"superscripts: difference to {self.systems[self.baseline]}, {', '.join(stars)}"
            f"{corrected}",
            *(f"{test} of {', '.join(of)}" for test, of in names.items()),
            self.facts,
        ]
        return "; ".join(part for part in parts if part)


def _cell(value: float, metric: ComparedMetric) -> str:
    if metric.is_share:
        return f"{100 * value:.1f}"
    return f"{value:.1f}" if metric.name == "median" else f"{value:.2f}"
