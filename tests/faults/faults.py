"""Runs a command again and again, and lets another one of its file system calls fail each time.

The method is SQLite's (https://sqlite.org/testing.html, "I/O error testing", "Crash testing").
`shim.c` counts the calls of the command on files below one folder; call k is then failed once,
or from k on, by SIGKILL or by an error. Commands run in forks of this process, which has
imported everything already.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_long
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

HIDDEN = re.compile(r"\..+\.[0-9a-f]{32}\.tmp|\.tmp\w+|[0-9a-f]{32}")
_MANIFEST = re.compile(rb'"(parts|crc32|photos\.sqlite)": "([0-9a-f]+)",?')
_KILL, _SHORT = -1, -2  # as in shim.c
_ENDLESS = 10**9


class Fault(NamedTuple):
    """What happens to a call, and to how many that follow it."""

    name: str
    what: int
    n_calls: int = 1


FAULTS = (
    Fault("SIGKILL", _KILL),
    Fault("short write", _SHORT),
    Fault("ENOSPC once", errno.ENOSPC),
    Fault("ENOSPC from then on", errno.ENOSPC, _ENDLESS),
    Fault("EIO once", errno.EIO),
    Fault("EIO from then on", errno.EIO, _ENDLESS),
    Fault("EINTR once", errno.EINTR),
    Fault("EINTR twenty times", errno.EINTR, 20),  # for ever would be retried for ever
)


@dataclass(frozen=True)
class Case:
    """A command under test.

    Attributes
    ----------
    name : str
    prepare : callable
        ``prepare(folder)`` lays out what the command starts from, and returns the command,
        which is called with the same folder.
    names : tuple of str
        Files and folders that are there before: at every instant old or new, and whole.
    wholly : bool
        Whether every fault point is to be tried, or a random tenth.
    content : callable, optional
        ``content(path)`` gives the bytes of a file that must be the same in every run, None
        for a file that does not matter. Default: all bytes.
    names_errors : bool
        Whether an OSError of the command names a file; commands print theirs.
    is_cut : bool
        Whether the shim sees all that is written, so that power cuts can be derived.
    """

    name: str
    prepare: Callable[[Path], Callable[[Path], object]]
    names: tuple[str, ...] = ()
    wholly: bool = True
    content: Callable[[Path], bytes | None] = Path.read_bytes
    names_errors: bool = True
    is_cut: bool = True


class Ended(NamedTuple):
    """How a fork ended; `error` is None for success, and text that tells the exception."""

    signal: int = 0
    error: str | None = None
    is_os_error: bool = False
    filename: str | None = None
    n_calls: int = 0
    failed_call: str = ""


class Finding(NamedTuple):
    """What a fault point brought to light."""

    kind: str
    text: str


def build_shim(folder: Path) -> Path:
    """Compile the shim."""
    library = folder / "faults_shim.so"
    source = Path(__file__).with_name("shim.c")
    command = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library]
    subprocess.run(command, check=True)
    return library


def is_loaded() -> bool:
    """Whether this process was started with the shim."""
    return hasattr(ctypes.CDLL(None), "faults_arm")


class Bench:
    """The folder in which one case is tried, and what it must come to."""

    def __init__(self, case: Case, home: Path, timeout: float = 600.0) -> None:
        self.case, self.timeout = case, timeout
        self.work, self._template, self.log = home / "work", home / "template", home / "log"
        for folder in (self.work, self._template):
            shutil.rmtree(folder, ignore_errors=True)
        self.work.mkdir(parents=True)
        self._settled: dict[tuple[tuple[str, str], ...], list[Finding]] = {}
        self._command = case.prepare(self.work)
        shutil.copytree(self.work, self._template, symlinks=True)
        self.before = {name: self.tree(self.work / name) for name in case.names}
        self._former = _parts_in(self.work)
        clean = self.run(log=self.log)
        if clean.error is not None or clean.signal:
            raise RuntimeError(f"{case.name} fails without a fault: {clean}")
        self.n_calls = clean.n_calls
        self.expected = self.tree(self.work)
        self.after = {name: self.tree(self.work / name) for name in case.names}
        left = [name for name in self.expected if _is_hidden(name)]
        if left:
            raise RuntimeError(f"{case.name} leaves {left} without a fault")
        self.reset()
        again = self.run()
        if again.error is not None or self.tree(self.work) != self.expected:
            raise RuntimeError(f"{case.name} differs between two runs without a fault: {again}")

    def reset(self) -> None:
        """Lay out what the command starts from."""
        shutil.rmtree(self.work)
        shutil.copytree(self._template, self.work, symlinks=True)

    def run(self, at: int = 0, fault: Fault | None = None, log: Path | None = None) -> Ended:
        """Run the command in a fork, with a fault from call `at` on."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            what, end = (fault.what, at + fault.n_calls) if fault else (0, 0)
            noted = os.fsencode(log) if log else None
            armed = os.fsencode(self.work), at, end, what, noted
            _in_fork(partial(self._command, self.work), writer, armed)
        os.close(writer)
        deadline = time.monotonic() + self.timeout
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(reader)
                return Ended(signal=-1)
            time.sleep(0.002)
        with os.fdopen(reader, "rb") as file:
            report = file.read()
        if os.WIFSIGNALED(ended[1]):
            return Ended(signal=os.WTERMSIG(ended[1]))
        return Ended(*json.loads(report))

    def tree(
        self, path: Path, content: Callable[[Path], bytes | None] | None = None
    ) -> dict[str, str]:
        """Digest of every file below a path, folders by name.

        A folder that a manifest names is called "parts", whatever its name.
        """
        content = content or self.case.content
        if not os.path.lexists(path):
            return {}
        if not path.is_dir():
            return {"": _digest(path, content)}
        found, parts = {}, _parts_in(path)
        for place in sorted(path.rglob("*")):
            own = place.relative_to(path).parts
            name = str(Path(*("parts" if part in parts else part for part in own)))
            found[name] = "folder" if place.is_dir() else _digest(place, content)
        return found

    def names_lost(self) -> list[Finding]:
        """Names that are neither the old nor the new."""
        found = {name: self._visible(self.tree(self.work / name)) for name in self.case.names}
        odd = [n for n, tree in found.items() if tree not in (self.before[n], self.after[n])]
        return [Finding("nameless", f"{name} is neither old nor new") for name in odd]

    def settled(self) -> list[Finding]:
        """Run again without a fault, and tell what differs from a run that never had one.

        The answer is a matter of what lies in the folder, so it is found once for each state.
        """
        state = tuple(self.tree(self.work, Path.read_bytes).items())
        if state not in self._settled:
            self._settled[state] = self._settle()
        return self._settled[state]

    def _settle(self) -> list[Finding]:
        for path in self.work.rglob("*"):
            if _is_hidden(path.name):  # as if the writer had been killed long ago
                os.utime(path, (0, 0))
        again = self.run()
        if again.signal == -1:
            return [Finding("hangs", "the next run does not end")]
        if again.error is not None or again.signal:
            return [Finding("differing", f"the next run fails: {again}")]
        return self.differences()

    def differences(self) -> list[Finding]:
        """What differs from the folder that a run without a fault comes to."""
        found = self.tree(self.work)
        left = sorted(name for name in found if _is_hidden(name))
        names = (self.expected.keys() | found.keys()).difference(left)
        other = sorted(name for name in names if self.expected.get(name) != found.get(name))
        findings = [Finding("leftovers", f"{left} stay")] if left else []
        return findings + ([Finding("differing", f"{other} differ")] if other else [])

    def attempt(self, at: int, fault: Fault) -> list[Finding]:
        """Let call `at` fail, look at what is there, run again and compare."""
        self.reset()
        ended = self.run(at, fault)
        findings = self.names_lost()
        if ended.signal == -1:
            findings.append(Finding("hangs", "the run does not end"))
        elif not ended.signal:
            findings += self._errors(ended, fault)
        findings += self.settled()
        place = f"{fault.name} at call {at} ({ended.failed_call or '?'})"
        return [Finding(kind, f"{place}: {text}") for kind, text in findings]

    def _errors(self, ended: Ended, fault: Fault) -> list[Finding]:
        """What is wrong with a process that lives on after the fault."""
        cleaning = ended.failed_call in {"unlink", "rmdir"} or fault.n_calls > 1
        hidden = [  # former parts stay where a power cut might bring their manifest back
            name
            for name in self.tree(self.work)
            if _is_hidden(name) and self._former.isdisjoint(Path(name).parts)
        ]
        findings = []
        if hidden and not cleaning:
            findings.append(Finding("leftovers", f"{hidden} lie there while the process lives"))
        if ended.error is None:
            if self._visible() != self._visible(self.expected):
                findings.append(Finding("silent", "it went unnoticed, and the files differ"))
        elif self.case.names_errors and not (ended.is_os_error and ended.filename):
            findings.append(Finding("unnamed errors", f"{ended.error}"))
        return findings

    def _visible(self, tree: dict[str, str] | None = None) -> dict[str, str]:
        tree = self.tree(self.work) if tree is None else tree
        return {name: value for name, value in tree.items() if not _is_hidden(name)}


def _digest(path: Path, content: Callable[[Path], bytes | None]) -> str:
    found = path.read_bytes() if _is_hidden(path.name) else content(path)
    if found is not None and path.suffix == ".json":
        found = _MANIFEST.sub(b"", found)
    return "" if found is None else hashlib.blake2b(found, digest_size=12).hexdigest()


def _parts_in(path: Path) -> set[str]:
    """Names of the folders that manifests name."""
    found = [_MANIFEST.findall(file.read_bytes()) for file in path.rglob("*.json")]
    return {value.decode() for pairs in found for key, value in pairs if key == b"parts"}


def _is_hidden(name: str) -> bool:
    return any(HIDDEN.fullmatch(part) for part in Path(name).parts)


def _in_fork(command: Callable[[], object], writer: int, armed: tuple[Any, ...]) -> None:
    """Run a command with the shim armed, report how it ended, and leave."""
    shim: Any = ctypes.CDLL(None)
    shim.faults_failed.restype = c_char_p
    shim.faults_count.restype = c_long
    shim.faults_arm.argtypes = [c_char_p, c_long, c_long, c_int, c_char_p]
    error, is_os_error, filename = None, False, None
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    try:
        shim.faults_arm(*armed)
        try:
            command()
        finally:
            shim.faults_disarm()
    except BaseException as raised:
        error = "".join(traceback.format_exception(raised)[-4:])
        is_os_error = isinstance(raised, OSError)
        filename = None if not is_os_error or raised.filename is None else str(raised.filename)
    failed = shim.faults_failed().decode()
    report = (0, error, is_os_error, filename, shim.faults_count(), failed)
    os.write(writer, json.dumps(report).encode())
    sys.stdout = sys.stderr = None  # nothing is flushed twice
    os._exit(0)
