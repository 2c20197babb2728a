"""The stages of a run of a study: recorded, and told line by line while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from kernelcore.experiments.steps import AnyStep
from kernelcore.report import StageRecorder

Log: TypeAlias = Callable[[str], None]

_SECONDS_BETWEEN_LINES = 30.0


class _Loop(NamedTuple):
    """A loop that reports: time and count of its first report, last count, number of steps."""

    begin: float
    first: int
    done: int
    total: int


class Stages(StageRecorder):
    """Record the stages of a run, and write one line for each to a log.

    A line has the time of the stage and an estimate of the time left: the mean time of the
    systems so far, times the number of systems left. Systems that were read from the cache do
    not count for the mean.

    Parameters
    ----------
    plan : sequence of str
        Names of all stages, in the order in which they will run.
    systems : sequence of str
        Names of the stages that score one system each.
    log : callable, optional
        Called with each line.
    """

    def __init__(self, plan: Sequence[str], systems: Sequence[str], log: Log | None) -> None:
        super().__init__()
        self._plan, self._systems, self._log = list(plan), set(systems), log
        self._stage = ""
        self._last_line = time.monotonic()
        self._loop = _Loop(0.0, 0, 0, 0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage, record it and log it."""
        self._stage = name
        with super().stage(name):
            yield
        place = self._plan.index(name) + 1 if name in self._plan else len(self.stages)
        line = f"stage {place} of {max(len(self._plan), place)}, {name}: "
        self._say(line + _duration(self.stages[-1].seconds), self._seconds_left(place))

    def report(self, done: int, total: int) -> None:
        """Log how far a loop within a stage is, at most one line in 30 seconds."""
        now, loop = time.monotonic(), self._loop
        if total != loop.total or done < loop.done:  # another loop
            loop = _Loop(now, done, done, total)
        self._loop = loop._replace(done=done)
        n_since = done - loop.first
        if now - self._last_line >= _SECONDS_BETWEEN_LINES and n_since > 0 and done < total:
            left = (now - loop.begin) / n_since * (total - done)
            self._say(f"{self._stage}: {done} of {total}", left)

    def compute(self, name: str, steps: Iterable[AnyStep]) -> None:
        """Run the steps of one stage, one after another."""
        own = [step for step in steps if step.stage == name]
        with self.stage(name):
            for i, step in enumerate(own, 1):
                step.value()
                self.report(i, len(own))

    def _seconds_left(self, place: int) -> float | None:
        n_left = sum(name in self._systems for name in self._plan[place:])
        seconds = [stage.seconds for stage in self.stages if stage.name in self._systems]
        trained = [one for one in seconds if one > max(seconds) / 100]
        return n_left * sum(trained) / len(trained) if trained and n_left else None

    def _say(self, line: str, left: float | None) -> None:
        self._last_line = time.monotonic()
        if self._log is not None:
            self._log(line if left is None else f"{line}; about {_duration(left)} left")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
