"""The command ``kernelcore``: results go to stdout, progress and errors to stderr.

The commands are in ``app``, which needs the extra ``cli``. This module calls them and turns
every error into one sentence and an exit status.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kernelcore import _extras

__all__ = ["main"]

_FAILED = 1
_STOPPED = 130  # as shells report a command that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after ``kernelcore``; the default is those of this process.

    Returns
    -------
    int
        Exit status: 0, 1 after an error, 2 after wrong usage, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug = "--debug" in words
    if debug:  # wherever it stands
        words = ["--debug", *(word for word in words if word != "--debug")]
    try:
        with _warnings_as_sentences():
            status = _run(words)
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = _STOPPED
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except Exception as error:
        if debug:
            _complain(traceback.format_exc().rstrip())
        _complain(f"Error: {_sentence(error)}")
        return int(getattr(error, "exit_code", _FAILED))
    if status == _STOPPED:
        print("Stopped.", file=sys.stderr)
    return status


def _run(words: list[str]) -> int:
    click = _extras.require("click")
    _extras.require("rich")
    from kernelcore.cli.app import app

    try:
        return int(app(words, prog_name="kernelcore", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return int(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None


def _sentence(error: Exception) -> str:
    """Describe the error, with its option and what helps where these are known."""
    option, reason = getattr(error, "option", None), _reason(error)
    if option and not reason.startswith(option):
        reason = f"{option}: {reason}"
    return "\n".join([reason, *getattr(error, "__notes__", ())])


def _reason(error: Exception) -> str:
    if hasattr(error, "format_message"):  # wrong usage, in the words of the parser
        command = getattr(getattr(error, "ctx", None), "command_path", "kernelcore")
        return f"{error.format_message()} ({command} --help tells more)"
    if isinstance(error, OSError) and error.strerror:
        file = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return f"{file}{error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return str(error)
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"


def _complain(text: str) -> None:
    """Print an error or a warning on stderr; control characters become escapes."""
    from kernelcore._store import printable  # here, because NumPy comes with it

    print(printable(text, keep="\n"), file=sys.stderr)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Show the package's warnings without their place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _complain(f"Warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
