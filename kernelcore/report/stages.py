"""Time and peak memory of the stages of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kernelcore.evaluation.table import Table, Tabular


class Stage(NamedTuple):
    """One finished stage of a run.

    Attributes
    ----------
    name : str
    seconds : float
        Wall time from beginning to end.
    peak_bytes : int or None
        Largest resident memory, from the start of the process to the end of the stage, of
        this process or of a single child it has waited for; None where the system does not
        tell. It never falls from one stage to the next: a stage that raises it needed it.
        On Linux, a process starts with the peak of the one that started it.
    """

    name: str
    seconds: float
    peak_bytes: int | None


class StageRecorder(Tabular):
    """Record the stages of a run as they end.

    Attributes
    ----------
    stages : list of Stage
        The stages that have ended, in that order.

    Examples
    --------
    >>> from kernelcore.report import StageRecorder
    >>> recorder = StageRecorder()
    >>> with recorder.stage("read"):
    ...     photos = list(range(3))
    >>> with recorder.stage("rank"):
    ...     order = sorted(photos)
    >>> [stage.name for stage in recorder.stages]
    ['read', 'rank']
    """

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block and record it under `name`, also when it raises."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - begin
            self.stages.append(Stage(name, seconds, peak_memory()))

    def to_table(self) -> Table:
        """Return the stages and their total as a table."""
        peaks = [stage.peak_bytes for stage in self.stages if stage.peak_bytes]
        seconds = sum(stage.seconds for stage in self.stages)
        total = Stage("total", seconds, max(peaks, default=None))
        return Table(
            columns=("stage", "seconds", "peak MiB"),
            rows=tuple(
                (name, f"{seconds:.2f}", "n/a" if peak is None else f"{peak / 2**20:,.0f}")
                for name, seconds, peak in (*self.stages, total)
            ),
            caption="wall time; largest resident memory of one process since its start",
        )

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the stages as plain values."""
        return [stage._asdict() for stage in self.stages]


def peak_memory() -> int | None:
    """Largest resident memory so far, in bytes, of this process or of one waited-for child.

    Returns
    -------
    int or None
        None where the system does not tell (Windows).
    """
    try:
        import resource
    except ImportError:
        return None
    largest = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return largest if sys.platform == "darwin" else 1024 * largest  # elsewhere in KiB
