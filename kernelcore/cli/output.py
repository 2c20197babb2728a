"""Printing of commands, with control characters escaped."""

from __future__ import annotations

import sys

from kernelcore._reading import printable


def say(*texts: object, sep: str = "\n") -> None:
    """Print results on stdout; what it cannot encode is written as an escape."""
    text = printable(sep.join(map(str, texts)), keep="\n")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def complain(kind: str, text: str) -> None:
    """Print an error or a warning on stderr."""
    print(f"{kind}: {printable(text, keep=chr(10))}", file=sys.stderr)


def note(line: str) -> None:
    """Print a line about a long run on stderr."""
    print(printable(line), file=sys.stderr, flush=True)
