"""Programs of the pages, run as a reader would: from top to bottom, in a folder of their own.

`python tests/docs/pages.py PAGE...` writes what the programs print and draw into the pages.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reader import provide

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PICTURES = DOCS / "images" / "pages"
"""Pictures that programs of pages draw."""

_BLOCK = re.compile(
    r"^(?P<margin> *)```(?P<language>python|sh)\n(?P<code>.*?)^ *```\n"
    r"(?:\n? *```text\n(?P<output>.*?)^ *```$)?",
    re.S | re.M,
)
_PICTURE = re.compile(r"!\[[^]]*\]\((?:\.\./)*images/pages/([\w.-]+)\)")
_CHANGING = re.compile(r"\d+\.\d+\.\d+\w*(\.\w+)?|ranks:\w+")  # versions and digests of ranks
_NUMBER = re.compile(r"\d+(?:\.(\d+))?(?:e-?\d+)?")


@dataclass(frozen=True)
class Program:
    """A program of a page, in Python or of commands, and what the page says that it prints."""

    code: str
    is_python: bool
    shown: str | None
    place: tuple[int, int]
    """Where in the page the output stands."""


def programs_of(page: Path) -> list[Program]:
    """Programs of a page, moved to the margin: those in Python, and commands."""
    found = []
    for block in _BLOCK.finditer(page.read_text("utf-8")):
        lines = block["code"].splitlines(keepends=True)
        code = "".join(line.removeprefix(block["margin"]) for line in lines)
        is_python = block["language"] == "python"
        found.append(Program(code, is_python, block["output"], block.span("output")))
    return found


def pictures_of(page: Path) -> list[str]:
    """Names of the pictures of a page that its programs draw."""
    return _PICTURE.findall(page.read_text("utf-8"))


def pages() -> Iterator[Path]:
    """Pages with programs."""
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        if not {"generated", "gallery"} & set(page.parts) and programs_of(page):
            yield page


def run(page: Path) -> list[str]:
    """Run the programs of a page in the current folder, and return what each of them prints."""
    provide(page.read_text("utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for number, program in enumerate(programs_of(page)):
        if not program.is_python:
            commands = map(shlex.split, program.code.replace("\\\n", "").splitlines())
            output = "".join(_output_of(["-m", *words]) for words in commands)
        elif "__main__" in program.code:  # starts processes: it must be a file
            Path("program.py").write_text(program.code, "utf-8")
            output = _output_of(["program.py"])
        else:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(program.code, f"{page.name} {number}", "exec"), names)
            output = stream.getvalue()
        printed.append(output)
    return printed


def _output_of(arguments: Sequence[str]) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def is_alike(printed: str, shown: str) -> bool:
    """Whether a program prints what its page shows, but for the rounding of processors."""
    printed, shown = (_CHANGING.sub("", text) for text in (printed, shown))
    if _words(printed) != _words(shown):
        return False
    pairs = zip(_NUMBER.finditer(printed), _NUMBER.finditer(shown), strict=True)
    return all(abs(float(a[0]) - float(b[0])) <= _error(b) for a, b in pairs)


def _words(text: str) -> list[str]:
    return re.sub(r"-{2,}", "--", _NUMBER.sub("0", text)).split()


def _error(number: re.Match[str]) -> float:
    n_decimals = len(number[1] or "")
    return 0.02 * float(number[0]) + 2 * 10.0**-n_decimals


def rewrite(page: Path) -> None:
    """Write what the programs of a page print and draw into the page."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = run(page)
        for name in pictures_of(page):
            PICTURES.mkdir(exist_ok=True)
            shutil.copy(name, PICTURES)
    for program, output in reversed(list(zip(programs_of(page), printed, strict=True))):
        if program.shown is not None and not is_alike(output, program.shown):
            start, end = program.place
            text = f"{text[:start]}{output}{text[end:]}"
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        rewrite(path.resolve())
