"""Progress of long calls: a bar on the terminal, or a callable of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from kernelcore import _extras
from kernelcore._parallel import check_stopped, is_stoppable

Report: TypeAlias = Callable[[int, int], None]
"""Called with (steps done, steps in all) from the thread that made the call."""

Progress: TypeAlias = bool | Report
"""The public option: True draws a bar (extra ``cli``), a callable is called."""


@contextmanager
def reporting(progress: Progress, description: str) -> Iterator[Report | None]:
    """Yield the function that reports progress, or None.

    It is `attentive`: compiled code that calls it can be stopped.
    """
    if callable(progress):
        yield attentive(progress)
        return
    if not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False or a callable, got {progress!r}")
    if not progress:
        yield attentive(None)
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
        yield attentive(lambda done, total: bar.update(task, completed=done, total=total))


@contextmanager
def working(progress: Progress, description: str) -> Iterator[None]:
    """Show that a step without known progress is running."""
    with reporting(progress, description) as report:
        yield
        if report is not None:
            report(1, 1)


def attentive(report: Report | None) -> Report | None:
    """Return a report function for compiled code, by which it can be stopped in any thread.

    Compiled code notices Ctrl-C by itself in the main thread only. In a thread of `in_threads`
    the function calls `check_stopped`, even if no report is wanted.
    """
    if not is_stoppable():
        return report

    def checking(done: int, total: int) -> None:
        check_stopped()
        if report is not None:
            report(done, total)

    return checking
