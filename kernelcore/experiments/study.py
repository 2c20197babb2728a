"""What an experiment hands back: results with their settings, beside the published ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelcore._files import replacing
from kernelcore.evaluation import PublishedResult, ResultTable, RetrievalResult
from kernelcore.report import StageRecorder, recall_curves, write_html, write_markdown


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
    """

    title: str
    results: Sequence[RetrievalResult | PublishedResult]
    stages: StageRecorder

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
            "results": self.results,
            "stages": self.stages,
        }
        write_markdown(target / "results.md", **shared)
        measured = [result for result in self.results if isinstance(result, RetrievalResult)]
        write_html(target / "report.html", **shared, figures=[recall_curves(measured)])
