"""Indices of photos: a folder of vectors, names and facts about the files."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    as_array,
    as_integer_array,
    as_real_array,
    as_strings,
    check_finite,
    check_integer,
    owned,
)
from kernelcore._store import (
    Contents,
    check_is_file,
    check_tensor,
    printable,
    read_npy,
    reading,
)
from kernelcore.models.saving import INDEX, load_parts, save_parts

_VECTORS, _PHOTOS = "vectors.npy", "photos.sqlite"
_TABLE = """CREATE TABLE photos (
    number INTEGER PRIMARY KEY,
    row INTEGER NOT NULL UNIQUE,
    name TEXT NOT NULL,
    size INTEGER,
    modified INTEGER,
    digest TEXT
)"""
_DIGEST = re.compile("[0-9a-f]{32}")
_MOST = 2**62  # of numbers: later ones must fit into SQLite, too
_COLUMNS = "number, row, name, size, modified, digest"


class PhotoFile(NamedTuple):
    """Facts about the file of a photo.

    Attributes
    ----------
    size : int
        In bytes.
    modified : int
        Time of the last change, in nanoseconds since 1970.
    digest : str
        BLAKE2b digest of the content, hexadecimal.
    """

    size: int
    modified: int
    digest: str


class PhotoIndex:
    """Names and vectors of photos, to be searched many times without the photos.

    Parameters
    ----------
    names : sequence of str
        Name of each photo, as searches will quote it.
    projections : array_like of shape (n_photos, n_components)
        Photos in the space of the model.
    model : str
        ``fingerprint`` of the model; no other model can use the index.
    is_known : array_like of bool, shape (n_photos,), optional
        Whether the photo was in the training set; not saved.
    numbers : array_like of int, shape (n_photos,), optional
        Numbers >= 0 by which photos are known, all different. The default is their positions.
        `with_photos` and `without_photos` keep them, and no number is given twice.
    files : sequence of PhotoFile, optional
        Facts about the file of each photo.

    Raises
    ------
    TypeError, ValueError
        If there is not one name, number and file per photo, a number occurs twice or a
        projection is not a finite number.

    See Also
    --------
    kernelcore.models.PhotoRanker.index : Makes one.

    Notes
    -----
    `save` writes a folder that other programs can read: ``vectors.npy`` has a row per photo,
    the table ``photos`` in the SQLite file ``photos.sqlite`` has its row, number, name, size,
    time of change and digest.

    Examples
    --------
    >>> from kernelcore.models import PhotoIndex
    >>> index = PhotoIndex(["a.jpg", "b.jpg"], [[0.5, 0.1], [0.2, 0.3]], model="1f0e")
    >>> index
    PhotoIndex(2 photos)
    >>> grown = index.without_photos(["a.jpg"]).with_photos(["c.jpg"], [[0.0, 1.0]])
    >>> grown.names, grown.numbers
    (('b.jpg', 'c.jpg'), array([1, 2]))
    """

    def __init__(
        self,
        names: Sequence[str],
        projections: npt.ArrayLike,
        model: str,
        *,
        is_known: npt.ArrayLike | None = None,
        numbers: npt.ArrayLike | None = None,
        files: Sequence[PhotoFile] | None = None,
    ) -> None:
        if not isinstance(model, str):
            raise TypeError(f"model must be a fingerprint, got {model!r:.80}")
        self.names, self.model = tuple(as_strings("names", names)), model
        self.projections: npt.NDArray[Any] = owned(
            check_finite("projections", as_real_array("projections", projections, ndim=2))
        )
        self.is_known = None
        if is_known is not None:
            self.is_known = owned(as_array("is_known", is_known, ndim=1))
            if self.is_known.dtype != bool:
                raise TypeError(f"is_known must hold bools, got {self.is_known.dtype}")
        self.files = None if files is None else tuple(PhotoFile(*one) for one in files)
        n_photos = len(self.projections)
        given: Any = np.arange(n_photos) if numbers is None else numbers
        self.numbers: npt.NDArray[np.int64] = owned(
            as_integer_array("numbers", given, ndim=1, dtype=np.int64)
        )
        for name in ("names", "is_known", "files", "numbers"):
            values = getattr(self, name)
            if values is not None and len(values) != n_photos:
                raise ValueError(
                    f"{name} must have one entry per photo ({n_photos}), got {len(values)}"
                )
        least, most = self.numbers.min(initial=0), self.numbers.max(initial=-1)
        if least < 0 or most >= _MOST or not np.diff(np.sort(self.numbers)).all():
            raise ValueError(
                f"numbers must differ and be from 0 to {_MOST - 1}, got {numbers!r:.80}"
            )
        self._next_number = int(most) + 1

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"PhotoIndex({len(self)} photos)"

    def with_photos(
        self,
        names: Sequence[str],
        projections: npt.ArrayLike,
        *,
        files: Sequence[PhotoFile] | None = None,
    ) -> PhotoIndex:
        """Return an index with further photos; those that are here keep their numbers.

        Where `is_known` is known, the further photos count as photos outside the training set.

        Parameters
        ----------
        names : sequence of str
            Names that the index does not have yet.
        projections : array_like of shape (n_new, n_components)
        files : sequence of PhotoFile, optional
            Facts about their files; needed if the index has them.

        Returns
        -------
        PhotoIndex

        Raises
        ------
        TypeError, ValueError
            If a name is not new, a vector has another length or `files` is missing.
        """
        new = PhotoIndex(names, projections, self.model, files=files)
        if new.projections.shape[1] != self.projections.shape[1]:
            raise ValueError(
                f"projections must have {self.projections.shape[1]} components, "
                f"got {new.projections.shape[1]}"
            )
        twice = set(self.names) & set(new.names)
        if twice:
            raise ValueError(f"names must be new, got {min(twice)!r}, which the index has")
        if (self.files is None) != (new.files is None) and len(self) and len(new):
            has = "none" if self.files is None else "some"
            raise ValueError(f"files must be given as the index has them: it has {has}")
        old, known = self.files or (), self.is_known
        return self._replaced(
            names=self.names + new.names,
            projections=np.concatenate([self.projections, new.projections]),
            is_known=None if known is None else np.append(known, np.zeros(len(new), bool)),
            numbers=np.append(self.numbers, self._next_number + new.numbers),
            files=(*old, *(new.files or ())) or None,
        )

    def without_photos(self, names: Sequence[str]) -> PhotoIndex:
        """Return an index without the photos of these names; unknown names change nothing."""
        gone = set(as_strings("names", names))
        rows = [row for row, name in enumerate(self.names) if name not in gone]
        return self._replaced(
            names=[self.names[row] for row in rows],
            projections=self.projections[rows],
            is_known=None if self.is_known is None else self.is_known[rows],
            numbers=self.numbers[rows],
            files=None if self.files is None else [self.files[row] for row in rows],
        )

    def with_names(self, names: Sequence[str], files: Sequence[PhotoFile]) -> PhotoIndex:
        """Return an index of the same photos under other names, with new facts about files.

        Parameters
        ----------
        names : sequence of str
        files : sequence of PhotoFile

        Returns
        -------
        PhotoIndex
        """
        return self._replaced(names=names, files=files)

    def _replaced(self, **changes: Any) -> PhotoIndex:
        """Return an index with other parts, which gives no number that was given before."""
        parts = ("names", "projections", "model", "is_known", "numbers", "files")
        other = PhotoIndex(**{name: getattr(self, name) for name in parts} | changes)
        other._next_number = max(other._next_number, self._next_number)
        return other

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the index as a folder, whole or not at all.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default False
            Replace an index that is there.

        Raises
        ------
        FileExistsError
            If something is there, unless it is an index and `overwrite` is True.
        ValueError
            If the name of a photo is not text in UTF-8.
        """
        for name in self.names:
            try:
                name.encode()
            except UnicodeEncodeError:
                why = f"names must be text in UTF-8 to be saved, got {printable(name)}"
                raise ValueError(why) from None
        files = self.files or [(None, None, None)] * len(self)
        rows = zip(self.numbers.tolist(), range(len(self)), self.names, files, strict=True)
        about = {"model": self.model, "next_number": self._next_number}

        def write_parts(folder: Path) -> None:
            with (folder / _VECTORS).open("wb") as file:
                header = np.lib.format.header_data_from_array_1_0(self.projections)
                np.lib.format.write_array_header_1_0(file, header)
                file.write(self.projections.data)  # np.save hides why a write fails
            with _opened(folder / _PHOTOS, mode="rwc") as table:
                table.execute("PRAGMA journal_mode = OFF")  # the manifest makes it valid
                table.execute("PRAGMA synchronous = OFF")  # `write_folder` syncs it
                table.execute(_TABLE)
                table.executemany(
                    f"INSERT INTO photos ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
                    ((number, row, name, *own) for number, row, name, own in rows),
                )
                table.commit()

        save_parts(path, INDEX, about, write_parts, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PhotoIndex:
        """Read the folder of `save`.

        Raises
        ------
        FileNotFoundError
            If there is none.
        ValueError
            If a file is damaged.
        """
        return load_parts(path, INDEX, cls._of_parts)

    @classmethod
    def _of_parts(cls, about: Contents, folder: Path) -> PhotoIndex:
        with reading(folder.parent / INDEX):
            model = about["model"]
            following = check_integer(
                "next_number", about["next_number"], minimum=0, maximum=_MOST
            )
        vectors = read_npy(folder / _VECTORS)
        with reading(folder / _VECTORS):
            check_tensor("vectors", vectors, (None, None))
        with reading(folder / _PHOTOS):
            rows = _rows(folder / _PHOTOS, len(vectors))
            index = cls(
                [row[2] for row in rows],
                vectors,
                model,
                numbers=np.array([row[0] for row in rows], np.int64),
                files=_files([row[3:] for row in rows]),
            )
        index._next_number = max(following, index._next_number)
        return index


@contextmanager
def _opened(path: Path, *, mode: str) -> Iterator[sqlite3.Connection]:
    """Open a file of SQLite; its errors become ValueError."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    if mode == "ro":
        address += "&immutable=1"  # so that nothing is written beside it
    try:
        with closing(sqlite3.connect(address, uri=True)) as table:
            table.execute("PRAGMA trusted_schema = OFF")
            yield table
    except sqlite3.Error as error:
        if mode == "ro":
            raise ValueError(f"it must be a file of SQLite with its table: {error}") from None
        raise OSError(errno.EIO, str(error), os.fspath(path)) from error


def _rows(path: Path, n_photos: int) -> list[tuple[Any, ...]]:
    """Read the table of photos, which must be as `PhotoIndex.save` makes it."""
    check_is_file(path)
    with _opened(path, mode="ro") as table:
        made = table.execute("SELECT sql FROM sqlite_master WHERE name = 'photos'").fetchone()
        if made is None or str(made[0]).split() != _TABLE.split():
            raise ValueError("it must have a table photos with the columns of an index")
        asked = table.execute(f"SELECT {_COLUMNS} FROM photos ORDER BY row")
        rows = asked.fetchmany(n_photos + 1)
    if [row[1] for row in rows] != list(range(n_photos)):
        raise ValueError(
            f"it must have one photo for each of the {n_photos} rows of {_VECTORS}"
        )
    return rows


def _files(found: Sequence[tuple[Any, ...]]) -> list[PhotoFile] | None:
    """Return checked facts about files; None where there are none."""
    if set(found) <= {(None, None, None)}:
        return None
    files = [PhotoFile(*one) for one in found]
    for file in files:
        is_known = isinstance(file.size, int) and isinstance(file.modified, int)
        if not (is_known and isinstance(file.digest, str) and _DIGEST.fullmatch(file.digest)):
            raise ValueError(f"size, modified and digest must be known, got {file!r:.80}")
    return files
