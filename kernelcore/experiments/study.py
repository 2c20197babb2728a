"""What an experiment hands back: results with their settings, beside the published ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelcore._files import replacing
from kernelcore.evaluation import PublishedResult, ResultTable, RetrievalResult
from kernelcore.report import (
    Example,
    Section,
    StageRecorder,
    recall_curves,
    write_html,
    write_markdown,
)


@dataclass(frozen=True)
class Study:
    """Results of a run, one row per system.

    Attributes
    ----------
    title : str
        What was run.
    results : sequence of RetrievalResult or PublishedResult
        Our own and, to stand beside them, what the publication gives.
    stages : StageRecorder
        Time and memory of each stage.
    sections : sequence of Section
        What else was found.
    examples : callable
        Makes the examples of the page.
    settings : mapping of str to Any
        Settings of the run.
    summary : str
        A paragraph under the title.
    """

    title: str
    results: Sequence[RetrievalResult | PublishedResult]
    stages: StageRecorder
    sections: Sequence[Section] = ()
    examples: Callable[[], Sequence[Example]] = tuple
    settings: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""

    def __str__(self) -> str:
        return f"{self.title}\n\n{self.table}\n\n{self.stages}"

    @property
    def table(self) -> ResultTable:
        """The results as a table."""
        return ResultTable(self.results)

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
        target.mkdir(parents=True, exist_ok=True)
        with replacing(target / "results.json") as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")
        shared: dict[str, Any] = {
            "title": self.title,
            "summary": self.summary,
            "results": self.results,
            "sections": self.sections,
            "stages": self.stages,
            "settings": self.settings,
        }
        write_markdown(target / "results.md", **shared)
        measured = [result for result in self.results if isinstance(result, RetrievalResult)]
        write_html(
            target / "report.html",
            **shared,
            figures=[recall_curves(measured)],
            examples=self.examples(),
        )
