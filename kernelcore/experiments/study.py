"""What an experiment hands back: results with their settings, beside the published ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from kernelcore._files import make_folder, replacing
from kernelcore.evaluation import (
    LinkResult,
    PublishedLinks,
    PublishedResult,
    ResultTable,
    RetrievalResult,
    Table,
    link_table,
)
from kernelcore.report import (
    Example,
    ReportFigure,
    Section,
    StageRecorder,
    recall_curves,
    write_html,
    write_markdown,
)

Results: TypeAlias = (
    Sequence[RetrievalResult | PublishedResult] | Sequence[LinkResult | PublishedLinks]
)


@dataclass(frozen=True)
class Study:
    """Results of a run, one row per system.

    Attributes
    ----------
    title : str
        What was run.
    results : sequence of RetrievalResult or PublishedResult, or of LinkResult or PublishedLinks
        Our own and, to stand beside them, what the publication gives.
    stages : StageRecorder
        Time and memory of each stage.
    sections : sequence of Section
        What else was found.
    examples : callable
        Makes the examples of the page.
    figures : callable
        Makes figures of the page, beside that of recall.
    settings : mapping of str to Any
        Settings of the run.
    summary : str
        A paragraph under the title.
    """

    title: str
    results: Results
    stages: StageRecorder
    sections: Sequence[Section] = ()
    examples: Callable[[], Sequence[Example]] = tuple
    figures: Callable[[], Sequence[ReportFigure]] = tuple
    settings: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""

    def __str__(self) -> str:
        return f"{self.title}\n\n{self.table}\n\n{self.stages}"

    @property
    def table(self) -> Table:
        """The results as a table."""
        links = [r for r in self.results if isinstance(r, (LinkResult, PublishedLinks))]
        if links:
            return link_table(links, standard_errors=True)
        return ResultTable(self._rankings).to_table()

    @property
    def _rankings(self) -> list[RetrievalResult | PublishedResult]:
        return [r for r in self.results if isinstance(r, (RetrievalResult, PublishedResult))]

    def to_json(self) -> str:
        """Return everything, ranks and settings included, as JSON."""
        document = {
            "title": self.title,
            "results": [result.to_dict() for result in self.results],
            "settings": dict(self.settings),
            "stages": self.stages.to_dict(),
        }
        return json.dumps(document, indent=1)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write ``results.md``, ``results.json`` and ``report.html`` into a folder.

        Each file is written whole or not at all. The page needs the extra ``plot``.
        """
        target = Path(folder)
        make_folder(target)
        with replacing(target / "results.json") as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")
        shared: dict[str, Any] = {
            "title": self.title,
            "summary": self.summary,
            "results": self.table,
            "sections": self.sections,
            "stages": self.stages,
            "settings": self.settings,
        }
        write_markdown(target / "results.md", **shared)
        measured = [r for r in self._rankings if isinstance(r, RetrievalResult)]
        write_html(
            target / "report.html",
            **shared,
            figures=[*([recall_curves(measured)] if measured else ()), *self.figures()],
            examples=self.examples(),
        )
