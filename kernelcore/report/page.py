"""Pages: a report or the photos found, as one self-contained HTML file, or Markdown."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

import kernelcore
from kernelcore import _extras
from kernelcore._store import replacing
from kernelcore.evaluation import Published, Result, ResultTable, Table
from kernelcore.evaluation.table import Tabular, escape_markdown
from kernelcore.images import read_image
from kernelcore.models import Match
from kernelcore.plots.ranking import TASKS
from kernelcore.report.examples import Example, Thumbnail, data_uri, make_thumbnail
from kernelcore.report.figures import DOTS_PER_INCH, ReportFigure
from kernelcore.report.stages import StageRecorder
from kernelcore.search.collection import n_fitting

CSS_DOTS_PER_INCH = 96
_TEXT_WIDTH = 88
_WIDE = 480  # CSS pixels: wider figures are moved sideways on a narrow screen, not shrunk

Results: TypeAlias = Table | Tabular | Sequence[Result | Published]

Found: TypeAlias = Sequence[tuple[str, Sequence[Match]]]
"""Sentences and the photos that were found for each, the best first."""


@dataclass(frozen=True)
class Section:
    """An additional part of a report: a heading, paragraphs, and tables.

    Attributes
    ----------
    title : str
    paragraphs : sequence of str, optional
        What the tables show and how they were made.
    tables : sequence of Table, optional
    """

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return title, paragraphs and tables as plain values."""
        return {
            "title": self.title,
            "paragraphs": list(self.paragraphs),
            "tables": [table.to_dict() for table in self.tables],
        }

    def to_markdown(self) -> str:
        """Return heading, paragraphs and tables as Markdown."""
        tables = [table.to_markdown() for table in self.tables]
        paragraphs = map(escape_markdown, self.paragraphs)
        return "\n\n".join([f"## {escape_markdown(self.title)}", *paragraphs, *tables])

    def __str__(self) -> str:
        paragraphs = [fill(text, _TEXT_WIDTH) for text in self.paragraphs]
        return "\n\n".join([self.title, *paragraphs, *map(str, self.tables)])


def write_html(
    path: str | os.PathLike[str],
    *,
    title: str,
    results: Results,
    summary: str = "",
    examples: Sequence[Example] = (),
    sections: Sequence[Section] = (),
    figures: Sequence[ReportFigure] = (),
    stages: StageRecorder | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of a run as one HTML file.

    The page holds its pictures and its style, runs no script, asks no other host for
    anything (its content security policy forbids it) and follows the reader's choice of a
    light or a dark ground. Equal input gives equal bytes.

    Parameters
    ----------
    path : path-like
        File to write, whole or not at all.
    title : str
        Heading of the page.
    results : Table, ResultTable, or sequence of Result or Published
        The table of results, anything else with `to_table`, or the rows of the table, of which
        at least one was measured.
    summary : str, optional
        A paragraph under the heading.
    examples : sequence of Example, optional
        From `query_examples`, in the order of the page.
    sections : sequence of Section, optional
        What else was found, under headings of their own.
    figures : sequence of ReportFigure, optional
        Figures of this package, or your own.
    stages : StageRecorder, optional
        Times and memory of the stages of the run.
    settings : mapping of str to Any, optional
        Settings of the run. Versions and the instruction set are added by themselves.

    Raises
    ------
    ValueError
        If no result was measured.
    MissingExtraError
        If Jinja or, with figures, matplotlib is not installed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import write_html
    >>> result = evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "report.html")
    ...     write_html(page, title="A toy", results=[result])
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    _render(
        path,
        "page.html.j2",
        title=title,
        summary=summary,
        results=_as_table(results),
        sections=sections,
        figures=[_figure_parts(figure) for figure in figures],
        example_groups=_grouped(examples),
        stages=stages.to_table() if stages is not None else None,
        settings=_settings_tables(settings),
    )


def write_markdown(
    path: str | os.PathLike[str],
    *,
    title: str,
    results: Results,
    summary: str = "",
    sections: Sequence[Section] = (),
    stages: StageRecorder | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write the tables of the report as Markdown.

    Parameters
    ----------
    path : path-like
        File to write, whole or not at all.
    title, results, summary, sections, stages, settings
        As for `write_html`.

    Raises
    ------
    ValueError
        If no result was measured.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kernelcore.evaluation import evaluate
    >>> from kernelcore.report import write_markdown
    >>> result = evaluate([[0.9, 0.1], [0.8, 0.3]], system="toy")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder, "report.md")
    ...     write_markdown(page, title="A toy", results=[result])
    ...     page.read_text(encoding="utf-8").splitlines()[0]
    '# A toy'
    """
    parts = [f"# {escape_markdown(title)}"]
    if summary:
        parts.append(escape_markdown(summary))
    parts += ["## Results", _as_table(results).to_markdown()]
    parts += [section.to_markdown() for section in sections]
    if stages is not None:
        parts += ["## Time and memory", stages.to_table().to_markdown()]
    parts += ["## Settings and versions"]
    parts += [table.to_markdown() for table in _settings_tables(settings)]
    _write(path, "\n\n".join(parts) + "\n")


def write_found(
    path: str | os.PathLike[str],
    found: Found,
    file_of: Callable[[str], str | os.PathLike[str]],
    *,
    false_rate: float = 0.05,
) -> None:
    """Write the results of a search as one HTML file that holds its pictures.

    Parameters
    ----------
    path : path
        File to write, whole or not at all.
    found : sequence of (str, sequence of Match)
        Sentences, and the photos found for each.
    file_of : callable
        Returns the file of a photo by its name.
    false_rate : float, default 0.05
        Where matches say how often they are found by chance, those from the first match
        above this share on stand below a line.

    Raises
    ------
    UnreadableImageError
        If a photo cannot be read.
    MissingExtraError
        If Jinja or Pillow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import make_scenes
    >>> from kernelcore.models import Match
    >>> from kernelcore.report import write_found
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(1).write(folder)
    ...     [photo] = Path(folder, "images").iterdir()
    ...     write_found(
    ...         Path(folder, "page.html"),
    ...         [("a dog", [Match(0, 0.5, photo.name)])],
    ...         lambda name: photo,
    ...     )
    ...     "a dog" in Path(folder, "page.html").read_text(encoding="utf-8")
    True
    """

    def thumbnail(match: Match) -> Thumbnail:
        return make_thumbnail("photo", read_image(Path(file_of(match.name))), alt=match.name)

    values = {"found": found, "thumbnail": thumbnail, "n_fitting": n_fitting}
    _render(path, "found.html.j2", **values, false_rate=false_rate)


def _render(path: str | os.PathLike[str], template: str, **values: Any) -> None:
    """Fill a template of this package, and write the page."""
    jinja2 = _extras.require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernelcore.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    version = kernelcore.__version__
    text = environment.get_template(template).render(**values, version=version)
    _write(path, text)


def _write(path: str | os.PathLike[str], text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _as_table(results: Results) -> Table:
    if isinstance(results, Table):
        return results
    return (results if isinstance(results, Tabular) else ResultTable(results)).to_table()


def _figure_parts(figure: ReportFigure) -> dict[str, Any]:
    light, dark = figure.to_png("light"), figure.to_png("dark")
    size = struct.unpack(">II", light[16:24])  # of the PNG header
    width, height = (round(n * CSS_DOTS_PER_INCH / DOTS_PER_INCH) for n in size)
    return {
        "title": figure.title,
        "alt": figure.alt,
        "light": data_uri("image/png", light),
        "dark": data_uri("image/png", dark),
        "width": width,
        "height": height,
        "is_wide": width > _WIDE,
    }


def _settings_tables(settings: Mapping[str, Any] | None) -> list[Table]:
    """Return the settings of the run, if any, and the versions of the packages."""
    versions = kernelcore.show_config()
    versions["kernelcore"] = versions.pop("version")
    versions |= {name: found for name, found in versions.pop("extras").items() if found}
    parts = {"setting": settings or {}, "version": dict(sorted(versions.items()))}
    return [
        Table(
            columns=(heading, "value"),
            rows=tuple((str(name), _as_text(value)) for name, value in part.items()),
            n_labels=2,
        )
        for heading, part in parts.items()
        if part
    ]


def _as_text(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def _grouped(examples: Sequence[Example]) -> list[tuple[str, list[Example]]]:
    """Neighbouring examples of one task and system, under a heading."""

    def heading(example: Example) -> str:
        return f"{TASKS[example.task]}{f' by {example.system}' if example.system else ''}"

    return [(name, list(group)) for name, group in groupby(examples, heading)]
