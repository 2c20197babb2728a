"""Results that show themselves as a data frame and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernelcore import _extras
from kernelcore.evaluation.table import Table

if TYPE_CHECKING:
    import pandas


class Shown:
    """Base of results that are rows of numbers: one is made by `_rows`."""

    __slots__ = ()

    def to_frame(self) -> pandas.DataFrame:
        """Return the numbers as a pandas DataFrame; shares are in [0, 1].

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(self._rows())
        return frame

    def _repr_html_(self) -> str:
        """Show the numbers in a notebook."""
        rows = self._rows()
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        cells = tuple(tuple(_cell(row.get(name)) for name in columns) for row in rows)
        return Table(columns=columns, rows=cells, n_labels=0).to_html()

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows of the frame, each by column; here the one row of `to_dict`."""
        document: Mapping[str, Any] = self.to_dict()  # type: ignore[attr-defined]
        return [plain(document)]


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is one value in a document, and not a list of values of every query."""
    return {k: v for k, v in document.items() if not isinstance(v, (list, tuple, Mapping))}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
