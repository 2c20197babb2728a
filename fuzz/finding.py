"""What went wrong in one execution, and what makes two findings the same."""

from __future__ import annotations

import json
import re
import traceback
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_MACHINERY = {"worker.py", "run.py", "supervisor.py", "finding.py"}
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


class Finding(NamedTuple):
    """One execution that failed.

    Attributes
    ----------
    seed : int
        The execution: ``python -m fuzz.run --replay TARGET SEED`` repeats it.
    kind : str
        Type of the exception, name of the signal, or ``timeout``.
    where : str
        Innermost place in the package, else in the target: ``path:line``.
    text : str
        The traceback, or what the child had written when it died.
    """

    seed: int
    kind: str
    where: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """The same for findings that most likely have one cause."""
        return self.kind, self.where

    def to_line(self) -> str:
        """One line of JSON."""
        return json.dumps(self._asdict())

    @classmethod
    def from_line(cls, line: str) -> Finding:
        """Read what `to_line` wrote."""
        return cls(**json.loads(line))


def of_exception(seed: int, error: BaseException) -> Finding:
    """Make a finding of `error`."""
    frames = traceback.extract_tb(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    where = _innermost([(frame.filename, frame.lineno or 0) for frame in reversed(frames)])
    return Finding(seed, type(error).__name__, where, text)


def of_death(seed: int, kind: str, output: str) -> Finding:
    """Make a finding of a child that died; `output` ends with the dump of faulthandler."""
    dump = output[output.rfind("(most recent call first)") :]
    frames = [(match["file"], int(match["line"])) for match in _FRAME.finditer(dump)]
    return Finding(seed, kind, _innermost(frames), output)


def _innermost(frames: list[tuple[str, int]]) -> str:
    """Return the first of `frames` that is ours, of the package if any is; innermost first."""
    ours = [
        (path, line)
        for name, line in frames
        if (path := Path(name)).is_relative_to(ROOT)
        and path.name not in _MACHINERY
        and "site-packages" not in path.parts
    ]
    in_package = [frame for frame in ours if frame[0].is_relative_to(ROOT / "kernelcore")]
    for path, line in in_package or ours:
        return f"{path.relative_to(ROOT)}:{line}"
    return "?"
