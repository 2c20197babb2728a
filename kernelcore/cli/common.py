"""What the commands share: files of photos and captions, errors of options, printing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelcore._photos import IMAGE_SUFFIXES, Outside, is_visible
from kernelcore._store import printable

if TYPE_CHECKING:
    from kernelcore.datasets import CaptionedImages


@contextmanager
def given_as(option: str) -> Iterator[None]:
    """Add the name of the option to errors about its value; the functions do not know it."""
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        vars(error)["option"] = option
        raise


def on_terminal() -> bool:
    """Whether to draw bars: only if stderr is a terminal."""
    return sys.stderr.isatty()


def say(*texts: object, sep: str = "\n") -> None:
    """Print results on stdout; characters that it cannot encode become escapes."""
    text = printable(sep.join(map(str, texts)), keep="\n")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def note(line: str) -> None:
    """Print a line about a long run on stderr."""
    print(printable(line), file=sys.stderr, flush=True)


def list_photos(folder: Path) -> list[Path]:
    """Return the image files in a folder and in those below it, sorted.

    Paths are compared folder by folder, as ``sorted(Path(folder).rglob("*"))`` does:
    ``a/0.png`` comes before ``a-b/0.png``. HEIC is included: the error of reading it says how
    to convert it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.cli.common import list_photos
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.jpg", "a.PNG", "notes.txt", ".hidden.jpg"):
    ...         Path(folder, name).touch()
    ...     [path.name for path in list_photos(Path(folder))]
    ['a.PNG', 'b.jpg']
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder of photos, and it is not")
    photos = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in IMAGE_SUFFIXES
        and all(map(is_visible, path.relative_to(folder).parts))
        and path.is_file()
    )
    if not photos:
        raise FileNotFoundError(f"{folder} must hold photos, and it holds none")
    return photos


def load_photos(photos: Path, captions: Path, outside: Outside) -> CaptionedImages:
    """Return the photos of a folder with the captions of a file."""
    from kernelcore.datasets import load_folder  # not above: a search starts sooner

    with given_as("PHOTOS"):
        if not photos.is_dir():
            raise NotADirectoryError(f"{photos} must be a folder of photos, and it is not")
    with given_as("CAPTIONS"):
        return load_folder(photos, captions, outside=outside)


def load_sentences(captions: Path) -> list[str]:
    """Return the sentences of a file, without their photos."""
    from kernelcore.datasets.folder import read_sentences

    with given_as("--captions"):
        return read_sentences(captions)


def check_parent(option: str, file: Path) -> None:
    """Raise if a result could not be written, before it is computed."""
    with given_as(option):
        if not file.absolute().parent.is_dir():
            raise FileNotFoundError(
                f"there is no folder {file.parent} to write {file.name} into"
            )
        if file.is_dir():
            raise IsADirectoryError(f"{file} must be a file to write, and it is a folder")
