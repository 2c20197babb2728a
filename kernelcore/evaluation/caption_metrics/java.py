"""METEOR and SPICE, run in bounded Java processes."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
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

import numpy as np

from kernelcore._check import check_real
from kernelcore._extras import MissingExtraError, require
from kernelcore._threads import check_stopped
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    References,
    as_texts,
)

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


_METEOR = ("-Xmx2G", "-jar", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm")
_SPICE = ("-Xmx8G", "-jar", "spice-1.0.jar")
_SPICE_MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")


def meteor(
    candidates: Sequence[Caption], references: References, *, timeout: float = 300.0
) -> CaptionScores:
    """METEOR 1.5, as the COCO caption evaluation runs it.

    Aligns words that are equal, have equal stems, are synonyms or paraphrases.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    timeout : float, default 300.0
        Seconds that the program may take for one caption, > 0; the first one waits for Java
        to start.

    Returns
    -------
    CaptionScores
        In [0, 1]. The corpus score is computed from the counts of all captions and is not
        the mean of the captions'.

    Raises
    ------
    MissingExtraError
        If Java or pycocoevalcap is not installed.
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, there is
        no candidate, or `timeout` is not positive.
    RuntimeError
        If the program fails or answers with anything but scores.
    TimeoutError
        If it does not answer in time.

    References
    ----------
    .. [1] M. Denkowski and A. Lavie, "Meteor universal: language specific translation
       evaluation for any target language", WMT 2014.
    """
    timeout = check_real("timeout", timeout, minimum=0.0, exclusive=True)
    texts, groups = as_texts(candidates, references)
    folder = _folder_with_java("METEOR", "pycocoevalcap.meteor.meteor")
    # bars divide the fields of what the program reads, the candidate comes last
    questions = [
        _fields("SCORE", *map(_without_bars, (*group, text)))
        for text, group in zip(texts, groups, strict=True)
    ]
    with Java("METEOR", _METEOR, folder, timeout) as program:
        counts = program.ask(questions, len(texts))
        answers = program.ask([_fields("EVAL", *counts)], len(texts) + 1)
        try:
            *scores, score = map(float, answers)
        except ValueError as error:
            raise program.failure(
                f"answered with something else than scores: {error}"
            ) from None
    return CaptionScores(score, np.array(scores, dtype=np.float64))


def spice(
    candidates: Sequence[Caption], references: References, *, timeout: float = 36_000.0
) -> CaptionScores:
    """SPICE: the F1 of the objects, attributes and relations that captions name.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.
    timeout : float, default 36000.0
        Seconds that the program may take for all captions, > 0.

    Returns
    -------
    CaptionScores
        In [0, 1]. The corpus score is the mean of the captions'.

    Raises
    ------
    MissingExtraError
        If Java or pycocoevalcap is not installed.
    FileNotFoundError
        If the models of Stanford CoreNLP are not there: this package downloads nothing.
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, there is
        no candidate, or `timeout` is not positive.
    RuntimeError
        If the program fails or answers with anything but scores.
    TimeoutError
        If it does not answer in time.

    Notes
    -----
    The program was written for Java 8, takes up to 8 GB and keeps a cache inside the folder
    of pycocoevalcap.

    References
    ----------
    .. [1] P. Anderson, B. Fernando, M. Johnson and S. Gould, "SPICE: semantic propositional
       image caption evaluation", ECCV 2016.
    """
    timeout = check_real("timeout", timeout, minimum=0.0, exclusive=True)
    texts, groups = as_texts(candidates, references)
    home = _folder_with_java("SPICE", "pycocoevalcap.spice.spice")
    missing = [name for name in _SPICE_MODELS if not (home / "lib" / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"SPICE needs {' and '.join(missing)} in {home / 'lib'}: run get_stanford_models() "
            "of pycocoevalcap.spice.get_stanford_models once, which downloads them"
        )
    questions = [
        {"image_id": i, "test": text, "refs": group}
        for i, (text, group) in enumerate(zip(texts, groups, strict=True))
    ]
    cache = home / "cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "captions.json", Path(folder) / "scores.json"
        asked.write_text(json.dumps(questions), encoding="utf-8")
        files = (str(asked), "-cache", str(cache), "-out", str(told), "-subset", "-silent")
        with Java("SPICE", (*_SPICE, *files), home, timeout) as program:
            program.finish()
            try:
                found = {item["image_id"]: _f_score(item) for item in _read(told)}
                scores = np.array([found[i] for i in range(len(texts))])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise program.failure(f"wrote something else than scores: {error!r}") from None
    return CaptionScores(float(scores.mean()), scores)


def _read(path: Path) -> Iterable[Any]:
    content: Iterable[Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _f_score(item: Any) -> float:
    """F1 over all tuples; NaN where the program gives none."""
    score = item["scores"]["All"]["f"]
    return math.nan if score is None else float(score)


def _folder_with_java(metric: str, module: str) -> Path:
    """Folder of the program that the module runs, if it can run."""
    found, missing = None, []
    if shutil.which("java") is None:
        missing.append("Java (no command java)")
    try:
        found = require(module)
    except MissingExtraError as error:
        missing.append(str(error))
    if missing or found is None:
        raise MissingExtraError(
            f"{metric} needs Java and the package pycocoevalcap; missing: {'; '.join(missing)}"
        )
    return Path(str(found.__file__)).parent


def _fields(*fields: str) -> str:
    return " ||| ".join(fields)


def _without_bars(text: str) -> str:
    return " ".join(text.replace("|||", " ").split())
