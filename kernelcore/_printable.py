"""Text that comes from files, made fit for a terminal and for the lines of a message."""

from __future__ import annotations

import os
import re

# Controls (ESC, CSI, line ends, ...), marks that change the direction of writing, line and
# paragraph separators, and what stands for bytes that are no text.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff"
    "\ud800-\udfff]"
)


def printable(text: str | os.PathLike[str], *, keep: str = "") -> str:
    r"""Write what would control a terminal as Python does in a string, except for `keep`.

    Examples
    --------
    >>> from kernelcore._printable import printable
    >>> print(printable("a dog\x1b[2J\nError: none"))
    a dog\x1b[2J\nError: none
    """

    def escaped(found: re.Match[str]) -> str:
        control = found[0]
        return control if control in keep else control.encode("unicode_escape").decode()

    return _CONTROLS.sub(escaped, os.fspath(text))
