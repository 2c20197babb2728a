"""Tables of text cells in several formats, and base classes of objects with a table."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from itertools import accumulate
from typing import Any

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "#$%&_"},
}


@dataclass(frozen=True)
class Table:
    """Text cells under columns that may stand in groups.

    Attributes
    ----------
    columns : tuple of str
        Heading of each column.
    rows : tuple of tuple of str
        Cells, one per column.
    n_labels : int
        Leading columns that hold words; the others hold numbers and align to the right.
    groups : tuple of (str, int)
        Headings over neighbouring columns and how many each spans, in order and without
        gaps; an empty heading spans columns of no group. Empty for a table without groups.
    emphasized : frozenset of (int, int)
        Row and column of the cells that stand out, by bold type where a format has it.
    caption : str
        What the numbers are.
    superscripts : frozenset of ((int, int), str)
        Row and column of the cells that carry a mark, and the mark.

    Raises
    ------
    ValueError
        If a row, the groups or a superscript does not fit the columns and rows.

    Examples
    --------
    >>> from kernelcore.evaluation import Table
    >>> print(Table(columns=("stage", "seconds"), rows=(("read", "0.5"), ("rank", "12.0"))))
    stage  seconds
    read       0.5
    rank      12.0
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_labels: int = 1
    groups: tuple[tuple[str, int], ...] = ()
    emphasized: frozenset[tuple[int, int]] = frozenset()
    caption: str = ""
    superscripts: frozenset[tuple[tuple[int, int], str]] = frozenset()

    def __post_init__(self) -> None:
        n_columns = len(self.columns)
        for row in self.rows:
            if len(row) != n_columns:
                raise ValueError(f"rows must have {n_columns} cells each, got {len(row)}")
        n_grouped = sum(span for _, span in self.groups)
        if self.groups and n_grouped != n_columns:
            raise ValueError(f"groups must span {n_columns} columns, got {n_grouped}")
        for (i, j), _ in self.superscripts:
            if not (0 <= i < len(self.rows) and 0 <= j < n_columns):
                raise ValueError(
                    f"superscripts must belong to one of {len(self.rows)} x {n_columns} cells, "
                    f"got row {i} and column {j}"
                )

    def __str__(self) -> str:
        columns = [self._text_column(j) for j in range(len(self.columns))]
        widths = [max(map(len, cells)) for cells in columns]
        lines = []
        if self.groups:
            headings = []
            for heading, first, last in self._spans():
                rule = f"- {heading} -" if heading else ""
                widths[last] += max(len(rule) - _width(widths[first : last + 1]), 0)
                headings.append(rule.center(_width(widths[first : last + 1]), rule[:1] or " "))
            lines.append("  ".join(headings))
        justified = [
            [cell.ljust(width) if j < self.n_labels else cell.rjust(width) for cell in cells]
            for j, (cells, width) in enumerate(zip(columns, widths, strict=True))
        ]
        lines += ["  ".join(cells).rstrip() for cells in zip(*justified, strict=True)]
        return "\n".join([*lines, self.caption] if self.caption else lines)

    def _text_column(self, j: int) -> list[str]:
        """Return a heading and its cells, with room for superscripts behind each number."""
        marks = {i: mark for (i, column), mark in self.superscripts if column == j}
        room = max(map(len, marks.values()), default=0)
        cells = [row[j] + marks.get(i, "").ljust(room) for i, row in enumerate(self.rows)]
        return [self.columns[j], *cells]

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_html()

    def to_dict(self) -> dict[str, Any]:
        """Return columns, rows and caption as plain values; group headings join the columns'.

        Examples
        --------
        >>> from kernelcore.evaluation import Table
        >>> Table(columns=("stage", "seconds"), rows=(("read", "0.5"),)).to_dict()
        {'columns': ['stage', 'seconds'], 'rows': [['read', '0.5']], 'caption': ''}
        """
        rows = [list(row) for row in self.rows]
        return {"columns": self._headings(), "rows": rows, "caption": self.caption}

    def to_markdown(self) -> str:
        r"""Return a GitHub-flavoured Markdown table; group headings join the columns'.

        Returns
        -------
        str

        Examples
        --------
        >>> from kernelcore.evaluation import Table
        >>> print(Table(columns=("a|b", "n"), rows=(("x", "1"),)).to_markdown())
        | a\|b | n |
        | :-- | --: |
        | x | 1 |
        """
        headings = self._headings()
        marks = [":--" if i < self.n_labels else "--:" for i in range(len(self.columns))]
        lines = [map(escape_markdown, headings), marks]
        lines += self._cells(escape_markdown, "**{}**".format, "<sup>{}</sup>".format)
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"{text}\n\n{escape_markdown(self.caption)}" if self.caption else text

    def to_latex(self) -> str:
        r"""Return a LaTeX ``tabular`` with the rules of the booktabs package.

        The caption stands above it as a comment: the numbers stay with their settings, and
        where they are printed is the author's choice.

        Returns
        -------
        str

        Examples
        --------
        >>> from kernelcore.evaluation import Table
        >>> print(Table(columns=("R_1", "n"), rows=(("x", "1"),)).to_latex())
        \begin{tabular}{lr}
        \toprule
        R\_1 & n \\
        \midrule
        x & 1 \\
        \bottomrule
        \end{tabular}
        """
        n_numbers = len(self.columns) - self.n_labels
        lines = [f"% {line}" for line in self.caption.splitlines()]
        lines += [rf"\begin{{tabular}}{{{'l' * self.n_labels}{'r' * n_numbers}}}", r"\toprule"]
        if self.groups:
            headings, rules = [], []
            for heading, first, last in self._spans():
                span = f"{{{last - first + 1}}}"
                headings.append(rf"\multicolumn{span}{{c}}{{{escape_latex(heading)}}}")
                if heading:
                    rules.append(rf"\cmidrule(lr){{{first + 1}-{last + 1}}}")
            lines += [_latex_line(headings), " ".join(rules)]
        lines += [_latex_line(map(escape_latex, self.columns)), r"\midrule"]
        cells = self._cells(
            escape_latex, r"\textbf{{{}}}".format, r"\textsuperscript{{{}}}".format
        )
        lines += map(_latex_line, cells)
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def to_html(self) -> str:
        """Return an HTML ``table`` without styles; cells that stand out are ``strong``.

        Returns
        -------
        str

        Examples
        --------
        >>> from kernelcore.evaluation import Table
        >>> print(Table(columns=("a<b", "n"), rows=(("x", "1"),)).to_html())
        <table>
        <thead>
        <tr><th scope="col">a&lt;b</th><th scope="col">n</th></tr>
        </thead>
        <tbody>
        <tr><th scope="row">x</th><td>1</td></tr>
        </tbody>
        </table>
        """
        lines = ["<table>"]
        if self.caption:
            lines.append(f"<caption>{escape_html(self.caption)}</caption>")
        lines.append("<thead>")
        if self.groups:
            cells = [
                f'<th scope="colgroup" colspan="{span}">{escape_html(heading)}</th>'
                if heading
                else f'<td colspan="{span}"></td>'
                for heading, span in self.groups
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        cells = [f'<th scope="col">{escape_html(column)}</th>' for column in self.columns]
        lines += [f"<tr>{''.join(cells)}</tr>", "</thead>", "<tbody>"]
        rows = self._cells(escape_html, "<strong>{}</strong>".format, "<sup>{}</sup>".format)
        for first, *others in rows:
            cells = [f'<th scope="row">{first}</th>', *(f"<td>{cell}</td>" for cell in others)]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return "\n".join([*lines, "</tbody>", "</table>"])

    def _headings(self) -> list[str]:
        """Return the heading of each column behind that of its group."""
        groups = [heading for heading, span in self.groups for _ in range(span)]
        pairs = zip(groups or [""] * len(self.columns), self.columns, strict=True)
        return [f"{group} {column}".strip() for group, column in pairs]

    def _spans(self) -> list[tuple[str, int, int]]:
        """Return the heading, first and last column of each group."""
        ends = accumulate(span for _, span in self.groups)
        return [
            (heading, end - span, end - 1)
            for (heading, span), end in zip(self.groups, ends, strict=True)
        ]

    def _cells(
        self,
        escape: Callable[[str], str],
        emphasize: Callable[[str], str],
        superscript: Callable[[str], str],
    ) -> list[list[str]]:
        """Return the cells as a format writes them."""
        marks = {place: superscript(escape(mark)) for place, mark in self.superscripts}
        return [
            [
                (emphasize(escape(cell)) if (i, j) in self.emphasized else escape(cell))
                + marks.get((i, j), "")
                for j, cell in enumerate(row)
            ]
            for i, row in enumerate(self.rows)
        ]


def escape_markdown(text: str) -> str:
    """Return `text` so that Markdown prints it as it stands, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def escape_latex(text: str) -> str:
    """Return `text` so that LaTeX prints it as it stands."""
    return "".join(_LATEX.get(character, character) for character in text)


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


class Tabular:
    """Base of objects that print as the table that `to_table` returns."""

    __slots__ = ()

    @abstractmethod
    def to_table(self) -> Table:
        """Return the table as text cells."""

    def __str__(self) -> str:
        return str(self.to_table())

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_html()

    def to_html(self) -> str:
        """Return an HTML table; see `Table.to_html`."""
        return self.to_table().to_html()

    def to_latex(self) -> str:
        """Return a LaTeX table; see `Table.to_latex`."""
        return self.to_table().to_latex()

    def to_markdown(self) -> str:
        """Return a Markdown table; see `Table.to_markdown`."""
        return self.to_table().to_markdown()
