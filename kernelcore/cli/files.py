"""What commands read that no data set describes: a folder of photos, a file of sentences."""

from __future__ import annotations

from pathlib import Path

from kernelcore.datasets._caption_files import read_sentences
from kernelcore.datasets._photos import IMAGE_SUFFIXES, is_visible

__all__ = ["list_photos", "read_sentences"]


def list_photos(folder: Path) -> list[Path]:
    """Return the image files in a folder and in those below it, sorted.

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
