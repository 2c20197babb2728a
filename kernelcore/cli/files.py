"""What commands read that no data set describes: a folder of photos, a file of sentences."""

from __future__ import annotations

import csv
from pathlib import Path

from kernelcore.datasets._photos import IMAGE_SUFFIXES, is_visible
from kernelcore.datasets._reading import read_lines


def list_photos(folder: Path) -> list[Path]:
    """Return the image files in a folder and in those below it, sorted.

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


def read_sentences(path: Path) -> list[str]:
    r"""Return the sentences of a text file, each once.

    A line holds a sentence, or something and a sentence after a tab, as caption files do. A
    ``.csv`` file has them in its column ``caption``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.cli.files import read_sentences
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "captions.txt")
    ...     _ = path.write_text("A dog.\n\n1.jpg#0\tA cat.\nA dog.\n")
    ...     read_sentences(path)
    ['A dog.', 'A cat.']
    """
    lines = read_lines(path)
    if path.suffix.lower() == ".csv":
        rows = csv.DictReader(lines)
        if "caption" not in (rows.fieldnames or ()):
            raise ValueError(f"{path} must begin with a header that names 'caption'")
        texts = [row["caption"] or "" for row in rows]
    else:
        texts = [line.rpartition("\t")[2] for line in lines]
    sentences = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not sentences:
        raise ValueError(f"{path} must hold sentences, and it holds none")
    return sentences
