"""Files that commands read and write."""

from __future__ import annotations

from pathlib import Path

from kernelcore.cli.options import given_as
from kernelcore.datasets import CaptionedImages, load_folder
from kernelcore.datasets._photos import IMAGE_SUFFIXES, is_visible
from kernelcore.datasets.folder import read_sentences

__all__ = ["check_parent", "list_photos", "load_photos", "paths_of", "read_sentences"]


def list_photos(folder: Path) -> list[Path]:
    """Return the image files in a folder and in those below it, sorted.

    Paths are compared folder by folder, as ``sorted(Path(folder).rglob("*"))`` does:
    ``a/0.png`` stands before ``a-b/0.png``, which comes first where names are compared as text.

    HEIC and AVIF are among them: the error of reading them says how to convert them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.cli.files import list_photos
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


def load_photos(photos: Path, captions: Path, *, allow_outside: bool) -> CaptionedImages:
    """Return the photos of a folder with the captions of a file."""
    with given_as("PHOTOS"):
        if not photos.is_dir():
            raise NotADirectoryError(f"{photos} must be a folder of photos, and it is not")
    with given_as("CAPTIONS"):
        return load_folder(photos, captions, outside="allow" if allow_outside else "refuse")


def paths_of(dataset: CaptionedImages) -> list[Path]:
    """Return the files of the photos."""
    return [path for path in dataset.paths if path is not None]


def check_parent(option: str, file: Path) -> None:
    """Raise, before the work is done, if its result could not be written."""
    with given_as(option):
        if not file.absolute().parent.is_dir():
            raise FileNotFoundError(
                f"there is no folder {file.parent} to write {file.name} into"
            )
        if file.is_dir():
            raise IsADirectoryError(f"{file} must be a file to write, and it is a folder")
