"""Java programs that end: by themselves, after a time without an answer, or on Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, Any, cast

from kernelcore._parallel import check_stopped

_INTERVAL = 0.05  # seconds between two looks of a waiting call
_GRACE = 5.0  # seconds that a process gets to end once it was killed or said its last word
_MOST_SAID = 500  # characters of its complaints in an error message


class Java:
    """A running Java program, killed with all it has started when the block is left.

    Parameters
    ----------
    metric : str
        What errors call the program.
    arguments : sequence of str
        What follows ``java`` on the command line.
    folder : Path
        Where it runs.
    timeout : float
        Seconds that it may take for each line of an answer, or to `finish`.
    """

    def __init__(
        self, metric: str, arguments: Sequence[str], folder: Path, timeout: float
    ) -> None:
        self._metric, self._timeout = metric, timeout
        self._command, self._folder = ["java", *arguments], folder
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._open = ExitStack()

    def __enter__(self) -> Java:
        self._complaints: IO[bytes] = self._open.enter_context(tempfile.TemporaryFile())
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            bufsize=0,
            start_new_session=os.name == "posix",  # a group of its own, which can be killed
        )
        self._begin(self._read)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait(_GRACE)
        for thread in self._threads:  # nobody is left at the other ends of the pipes
            thread.join(_GRACE)
        cast(IO[bytes], self._process.stdin).close()
        self._open.close()

    def ask(self, questions: Iterable[str], n_answers: int) -> list[str]:
        """Send lines and return as many lines of the answer.

        Raises
        ------
        RuntimeError
            If the program ends before.
        TimeoutError
            If a line does not come in time.
        """
        text = "".join(f"{question}\n" for question in questions).encode()
        self._begin(self._write, text)
        answers = []
        for _ in range(n_answers):
            line = self._next_line(time.monotonic() + self._timeout)
            if line is None:
                raise self.failure(f"ended with status {self._status()}")
            answers.append(line.decode(errors="replace").strip())
        return answers

    def finish(self) -> None:
        """Wait until the program has ended by itself; raise an error as `ask` does."""
        deadline = time.monotonic() + self._timeout
        while self._next_line(deadline) is not None:
            pass
        if self._status() != 0:
            raise self.failure(f"ended with status {self._status()}")

    def failure(self, what: str) -> RuntimeError:
        """Return the error of a program that `what`, with the end of its complaints."""
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip()[-_MOST_SAID:]
        because = f": {said}" if said else ""
        return RuntimeError(f"{self._metric} needs Java, but the command java {what}{because}")

    def _status(self) -> int:
        return self._process.wait(_GRACE)

    def _next_line(self, deadline: float) -> bytes | None:
        """Wait for a line, with an open ear for Ctrl-C; None at the end of all lines."""
        while time.monotonic() < deadline:
            check_stopped()
            with suppress(Empty):
                return self._lines.get(timeout=_INTERVAL)
        raise TimeoutError(
            f"{self._metric} needs Java, but the command java gave no answer within "
            f"timeout = {self._timeout:g} s"
        )

    def _read(self) -> None:
        with io.BufferedReader(cast(io.RawIOBase, self._process.stdout)) as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def _write(self, text: bytes) -> None:
        rest = memoryview(text)
        with suppress(OSError):  # it reads no more
            while rest:
                rest = rest[cast(IO[bytes], self._process.stdin).write(rest) :]

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        # A daemon, so that no pipe that stays open keeps the interpreter from its end.
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
