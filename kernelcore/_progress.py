"""Progress of long calls: a bar on the terminal, a callable of the user's, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from kernelcore import _extras

Report: TypeAlias = Callable[[int, int], None]
"""Called with (steps done, steps in all) from the thread that made the call."""

Progress: TypeAlias = bool | Report
"""The public option: True draws a bar (extra ``cli``), a callable is called."""


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Report | None]:
    """Give the function that reports progress, or None if nobody wants to know."""
    if callable(progress):
        yield progress
        return
    if not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False or a callable, got {progress!r}")
    if not progress:
        yield None
        return
    rich_progress = _extras.require("rich.progress")
    console = _extras.require("rich.console").Console(stderr=True)
    with rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
    ) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def working(progress: Progress, description: str) -> Iterator[None]:
    """Show that a step is under way which cannot tell how far it has come."""
    with reporting(progress, description) as report:
        yield
        if report is not None:
            report(1, 1)
