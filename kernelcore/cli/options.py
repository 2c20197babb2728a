"""Options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

MODEL = "Folder of the model."
PHOTOS = "Folder of the photos."
CAPTIONS = (
    "File of captions: rows of name<TAB>caption, CSV or Parquet with the columns image and "
    "caption, or JSON of COCO."
)
Threads = Annotated[int | None, typer.Option(min=1, help="Threads to use. Default: all cores.")]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder that keeps what was computed of each photo, so that a command that was "
        "stopped goes on where it was."
    ),
]
SkipDamaged = Annotated[
    bool, typer.Option("--skip-damaged", help="Leave out photos that cannot be read.")
]
AllowOutside = Annotated[
    bool,
    typer.Option("--allow-outside", help="Let the captions name photos outside of the folder."),
]


@contextmanager
def given_as(option: str) -> Iterator[None]:
    """Let errors of what was given as this option say so, for the functions do not know."""
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        vars(error)["option"] = option
        raise


def on_terminal() -> bool:
    """Bars are for people: where stderr is a file or a pipe there are none."""
    return sys.stderr.isatty()
