"""Readers of pairs, tables and datasets of other libraries; they build `CaptionedImages`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from kernelcore import _extras
from kernelcore._check import as_list
from kernelcore._store import check_is_file, is_file
from kernelcore.datasets._collect import CaptionRow, OddRows, collect
from kernelcore.datasets._photos import (
    NamedPhoto,
    Outside,
    Photos,
    Source,
    as_photo,
    digest,
    find_photos,
    is_missing,
)
from kernelcore.datasets.records import CaptionedImages

_DIGEST_LENGTH = 16
_NAMES_OF_DEV = frozenset({"val", "valid", "validation"})
_CAPTION_COLUMNS = ("caption", "captions")
_SPLIT_COLUMN = "split"

# Chooses the wanted columns among the names of all.
Choice: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


class Row(NamedTuple):
    """A photo with captions; its path or content identifies it if there is no `image_id`."""

    where: str
    photo: Any
    captions: Sequence[Any]
    split: Any = None
    image_id: Any = None


class Columns(NamedTuple):
    """Names of the columns to read; None stands for the default column, if it is there."""

    image: str
    caption: str | Sequence[str] | None
    split: str | None
    image_id: str | None

    def find(self, table: str, names: Sequence[str]) -> Columns:
        """Return the columns by names that the table has, captions as a list."""
        if self.caption is None:
            captions = [name for name in _CAPTION_COLUMNS if name in names][:1]
        elif isinstance(self.caption, str):
            captions = [self.caption]
        else:
            captions = as_list("caption", self.caption, "name one column or several")
        if not captions:
            raise ValueError(
                f"caption must name a column of {table}, which has {_listed(names)}"
            )
        wanted = [("image", self.image), *(("caption", name) for name in captions)]
        for argument, name in (("split", self.split), ("image_id", self.image_id)):
            if name is not None:
                wanted.append((argument, name))
        for argument, name in wanted:
            if name not in names:
                raise ValueError(
                    f"{argument} must be one of the columns of {table} ({_listed(names)}), "
                    f"got {name!r}"
                )
        usual = _SPLIT_COLUMN if _SPLIT_COLUMN in names else None
        return self._replace(caption=captions, split=self.split or usual)

    @property
    def names(self) -> list[str]:
        """All columns, after `find`."""
        return [self.image, *self.without_image]

    @property
    def without_image(self) -> list[str]:
        """All columns but that of the photos."""
        others = [name for name in (self.split, self.image_id) if name is not None]
        return list(dict.fromkeys([*(self.caption or ()), *others]))

    def row(self, where: str, photo: Any, cells: Mapping[str, Any]) -> Row:
        """Make the row of a photo from its other cells, after `find`."""
        captions = [text for name in self.caption or () for text in _texts(where, cells[name])]
        split = None if self.split is None else cells[self.split]
        image_id = None if self.image_id is None else cells[self.image_id]
        if self.image_id is not None and is_missing(image_id):
            raise ValueError(f"{where} must have an id in {self.image_id!r}, got {image_id!r}")
        return Row(where, photo, captions, split, image_id)


def rows_of_pairs(pairs: Any) -> Iterator[Row]:
    """Rows of ``(photo, caption)`` or ``(photo, caption, split)``."""
    for i, pair in enumerate(as_list("pairs", pairs, "be an iterable of pairs")):
        where = f"pairs[{i}]"
        if not isinstance(pair, (tuple, list)) or len(pair) not in {2, 3}:
            raise TypeError(
                f"{where} must be (photo, caption) or (photo, caption, split), "
                f"got {_shown(pair)}"
            )
        photo, captions, *split = pair
        yield Row(where, as_photo(where, photo), _texts(where, captions), *split)


def rows_of_frame(frame: Any, columns: Columns) -> Iterator[Row]:
    """Rows of a table."""
    found = columns

    def choose(names: Sequence[str]) -> Sequence[str]:
        nonlocal found
        found = columns.find("frame", names)
        return found.names

    cells = read_columns("frame", frame, choose)
    for i, values in enumerate(zip(*cells.values(), strict=True)):
        row, where = dict(zip(cells, values, strict=True)), f"frame, row {i},"
        yield found.row(where, as_photo(where, row[found.image]), row)


def rows_of_dataset(dataset: Any, columns: Columns) -> Iterator[Row]:
    """Rows of a dataset, or of several by the names of their splits; photos are read later."""
    parts = dataset if isinstance(dataset, Mapping) else {None: dataset}
    for split, part in parts.items():
        name = "dataset" if split is None else f"dataset[{split!r}]"
        if not (hasattr(part, "__len__") and hasattr(part, "__getitem__")):
            raise TypeError(
                f"{name} must have a length and rows by number, got type {type(part).__name__}"
            )
        names, rows = None, part
        if hasattr(part, "column_names") and hasattr(part, "select_columns"):
            # Of Hugging Face, which would decode each photo with its row.
            names = part.column_names
            rows = part.select_columns(columns.find(name, names).without_image)
        for i in range(len(part)):
            where = f"{name}[{i}]"
            cells = _cells(where, rows[i], columns.image)
            found = columns.find(where, list(cells) if names is None else names)
            photo = read = partial(_photo_of, part, i, columns.image, where)
            if names is None:
                given = as_photo(where, cells[columns.image])
                photo = given if given is None or _is_path(given) else read
            row = found.row(where, photo, cells)
            if row.image_id is None and not _is_path(photo):
                row = row._replace(image_id=str(i) if split is None else f"{split}/{i}")
            yield row if found.split is not None else row._replace(split=split)


def read_columns(name: str, table: Any, choose: Choice) -> dict[str, list[Any]]:
    """Return the chosen columns of a table as lists; `name` is its name in errors.

    A table is a mapping of columns, a DataFrame of pandas, or anything with the Arrow stream
    interface, which needs pyarrow.
    """
    if isinstance(table, Mapping):
        wanted = choose(list(table))
        columns = {column: as_list(f"{name}[{column!r}]", table[column]) for column in wanted}
    elif hasattr(table, "iloc") and hasattr(table, "columns"):
        wanted = _each_once(name, list(table.columns), choose)
        columns = {column: table[column].tolist() for column in wanted}
    elif hasattr(table, "__arrow_c_stream__"):
        found = _extras.require("pyarrow").table(table)
        wanted = _each_once(name, found.column_names, choose)
        columns = {column: found[column].to_pylist() for column in wanted}
    else:
        raise TypeError(
            f"{name} must be a DataFrame of pandas or Polars, a table with the Arrow stream "
            f"interface or a mapping of columns, got type {type(table).__name__}"
        )
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name} must have columns of one length, got {lengths}")
    return columns


def read_parquet(path: Path, choose: Choice) -> dict[str, list[Any]]:
    """Return the chosen columns of a Parquet file as lists."""
    check_is_file(path)
    open_parquet = _extras.require("pyarrow.parquet").ParquetFile
    with path.open("rb") as content:
        with _naming(path):
            file = open_parquet(content)
            names = list(file.schema_arrow.names)
        wanted = list(_each_once(str(path), names, choose))
        with _naming(path):
            table = file.read(columns=wanted)
            return {column: table[column].to_pylist() for column in wanted}


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn the many errors of pyarrow for damaged files into one that names the file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(
            f"{path} must be Parquet and is damaged or truncated: "
            f"{type(error).__name__}: {error}"
        ) from error


def _each_once(name: str, names: Sequence[str], choose: Choice) -> Sequence[str]:
    wanted = choose(names)
    for column in wanted:
        if names.count(column) > 1:
            raise ValueError(f"{name} must have one column {column!r}, got more")
    return wanted


def gather(
    source: str,
    name: str,
    rows: Iterable[Row],
    *,
    images_dir: str | os.PathLike[str] | None = None,
    outside: Outside = "refuse",
) -> CaptionedImages:
    """Collect rows for the class methods of `CaptionedImages`; warn once about odd rows."""
    odd = OddRows(source)
    files: dict[str, NamedPhoto] = {}
    sources: dict[str, Source] = {}
    image_ids: dict[str, None] = {}
    splits: dict[str, dict[str, None]] = {}
    captions: list[CaptionRow] = []
    photos: Photos | None
    for where, photo, texts, split, own_id in rows:
        if photo is None:
            odd.add("rows without a photo (left out)", where)
            continue
        image_id = _name_of(where, photo) if own_id is None else str(own_id)
        if image_id not in image_ids:
            image_ids[image_id] = None
            if _is_path(photo):
                files[image_id] = NamedPhoto(os.fspath(photo), where)
            else:
                sources[image_id] = photo
        for text in texts:
            if text is None:
                odd.add("rows without a caption (left out)", where)
            else:
                captions.append(CaptionRow(image_id, text, where=where))
        if not is_missing(split):
            splits.setdefault(_split_name(where, split), {})[image_id] = None
    if images_dir is None:
        photos = Photos(Path(), _present(files), ())
        captions = list(_without_absent(captions, files.keys() - photos.paths.keys(), odd))
        image_ids = {key: None for key in image_ids if key in photos.paths or key in sources}
    else:
        folder = Path(images_dir)
        photos = find_photos(
            source, files, folder, folder, outside=outside, argument="images_dir"
        )
    dataset = collect(
        source,
        name,
        image_ids=image_ids,
        rows=captions,
        photos=photos,
        splits={split: list(members) for split, members in splits.items()},
        odd=odd,
        sources=sources,
    )
    odd.warn(depth=2)
    return dataset


def _without_absent(
    rows: Iterable[CaptionRow], absent: Set[str], odd: OddRows
) -> Iterator[CaptionRow]:
    for row in rows:
        if row.image_id in absent:
            odd.add("captions of photos that are not there (left out)", row.image_id)
        else:
            yield row


def _cells(where: str, row: Any, image: str) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, (tuple, list)) and len(row) == 2:
        return {image: row[0], _CAPTION_COLUMNS[0]: row[1]}
    raise TypeError(f"{where} must be a mapping or (image, captions), got {_shown(row)}")


def _photo_of(dataset: Any, i: int, image: str, where: str) -> Any:
    photo = as_photo(where, _cells(where, dataset[i], image)[image])
    if photo is None:
        raise ValueError(f"{where} must have a photo, got none")
    return photo


def _texts(where: str, value: Any) -> list[str | None]:
    """Captions of a cell, None for one that is missing."""
    cells = [value] if isinstance(value, str) or is_missing(value) else value
    texts = as_list(f"{where} captions", cells, "be text or a list of texts")
    for text in texts:
        if not isinstance(text, str) and not is_missing(text):
            raise TypeError(f"{where} must have captions that are text, got {_shown(text)}")
    return [None if is_missing(text) else str(text) for text in texts]


def _split_name(where: str, split: Any) -> str:
    if not isinstance(split, str) or not split:
        raise TypeError(f"{where} must have a split that is a name, got {_shown(split)}")
    return "dev" if split in _NAMES_OF_DEV else str(split)


def _name_of(where: str, photo: Any) -> str:
    """Path of a photo in a file, first digits of the digest of a photo in memory."""
    if _is_path(photo):
        return str(os.fspath(photo))
    return digest(where, photo)[:_DIGEST_LENGTH]


def _present(files: Mapping[str, NamedPhoto]) -> dict[str, Path]:
    return {
        image_id: Path(photo.name)
        for image_id, photo in files.items()
        if "\0" not in photo.name and is_file(Path(photo.name))
    }


def _is_path(photo: Any) -> bool:
    return isinstance(photo, (str, os.PathLike))


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _shown(value: Any) -> str:
    return " ".join(f"{value!r:.80}".split())
