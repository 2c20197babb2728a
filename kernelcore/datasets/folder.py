"""The user's own photos: a folder and a file of captions in any of several forms, or pairs.

A table has a header that names its columns, with commas or tabs between them. A file named
``.json`` has the form of COCO. Any other file has rows of ``name<TAB>caption``.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kernelcore._check import as_list
from kernelcore._photos import (
    NamedPhoto,
    Outside,
    Photos,
    Source,
    as_photo,
    digest,
    find_photos,
    is_missing,
)
from kernelcore._store import is_file, lines_of, read_text
from kernelcore.datasets._collect import CaptionRow, OddRows, collect, named_in
from kernelcore.datasets.coco import read_coco
from kernelcore.datasets.records import CaptionedImages

_NUMBERED = re.compile(r"(?P<image>.+)#(?P<number>[0-9]{1,9})", re.DOTALL)
_END_OF_LINE = re.compile(r"[\r\n]")
_IMAGE, _CAPTION = "image", "caption"
_DIGEST_LENGTH = 16
_NAMES_OF_DEV = frozenset({"val", "valid", "validation"})


def load_folder(
    images_dir: str | os.PathLike[str],
    captions_file: str | os.PathLike[str],
    *,
    outside: Outside = "refuse",
) -> CaptionedImages:
    r"""Load a folder of photos with a file of captions.

    Parameters
    ----------
    images_dir : path
        Folder of the photos.
    captions_file : path
        One caption a row, any number of rows an image, as UTF-8 text in one of the forms

        - ``name<TAB>caption``, without a header;
        - ``name#number<TAB>caption``, the form of the Flickr corpora;
        - comma-separated values whose header names the columns ``image`` and ``caption``,
          with double quotes around captions that hold commas or line breaks;
        - the same with tabs instead of commas, where quotes have no meaning;

        or as a ``.json`` file of COCO.

        Names are file names in `images_dir`; they may stand in folders below it.
    outside : {"refuse", "allow"}, default "refuse"
        A name that leads out of `images_dir`, by ``..``, as an absolute path (of any
        system) or through a symbolic link, is an error unless this allows it: a file of
        captions from elsewhere could name any file of this machine.

    Returns
    -------
    CaptionedImages
        Named like the folder, without splits: see `random_splits`. Captions without a
        number are numbered from 0.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If the folder or the file is not there.
    ValueError
        If the file has no such form, or names no photo of the folder, or
        one outside of it.

    Warns
    -----
    DatasetWarning
        Once, if rows are odd: see `load_flickr`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets import load_folder, make_scenes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_scenes(3).write(folder)
    ...     captions = Path(folder) / "captions.tsv"
    ...     _ = captions.write_text(
    ...         "scene-000000.png\tA first picture.\n"
    ...         "scene-000001.png\tA second picture.\n"
    ...         "scene-000002.png\tA third picture.\n"
    ...     )
    ...     photos = load_folder(Path(folder) / "images", captions)
    >>> photos
    CaptionedImages('images', 3 images, 3 captions)
    """
    source = Path(captions_file)
    odd = OddRows(source)
    rows = read_caption_rows(source, odd)
    files, folder = named_in(rows), Path(images_dir)
    photos = find_photos(source, files, folder, folder, outside=outside, argument="images_dir")
    return collect(folder.resolve().name, files, rows, photos, odd)


def read_caption_rows(source: Path, odd: OddRows) -> list[CaptionRow]:
    """Rows of a table with the columns ``image`` and ``caption``, or as `token_rows`."""
    if _is(source, ".json"):
        return list(_coco_rows(source, odd))
    text = read_text(source)
    delimiter = _delimiter(source, text, (_IMAGE, _CAPTION))
    if delimiter is None:
        return list(token_rows(text, odd))
    return [
        CaptionRow(row[_IMAGE].strip(), row[_CAPTION], where=where)
        for where, row in _table(source, text, delimiter, (_IMAGE, _CAPTION), odd)
    ]


def read_sentences(source: Path) -> list[str]:
    r"""Return the distinct captions of a file, without their images.

    A table gives its column ``caption``, JSON all captions, other text the part of each line
    after the first tab, or the whole line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets.folder import read_sentences
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "captions.txt")
    ...     _ = path.write_text("A dog.\n\n1.jpg#0\tA cat.\nA dog.\n")
    ...     read_sentences(path)
    ['A dog.', 'A cat.']
    """
    odd = OddRows(source)
    texts = list(_sentences(source, odd))
    sentences = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not sentences:
        raise ValueError(f"{source} must hold sentences, and it holds none")
    odd.warn()
    return sentences


def _sentences(source: Path, odd: OddRows) -> Iterator[str]:
    if _is(source, ".json"):
        return (row.text for row in read_coco(source, odd)[1])
    text = read_text(source)
    wanted = (_CAPTION,) if _is(source, ".csv") else (_IMAGE, _CAPTION)
    delimiter = _delimiter(source, text, wanted)
    if delimiter is None:
        lines = lines_of(text)
        return (line.partition("\t")[2] if "\t" in line else line for line in lines)
    return (row[_CAPTION] for _, row in _table(source, text, delimiter, wanted, odd))


def _coco_rows(source: Path, odd: OddRows) -> Iterator[CaptionRow]:
    """Rows by the names of the photos, as in any other file of captions."""
    files, rows = read_coco(source, odd)
    for row in rows:
        photo = files.get(row.image_id)
        if photo is None:
            odd.add("captions of images that are not listed (left out)", str(row.caption_id))
        else:
            yield row._replace(image_id=photo.name, where=photo.where)


def token_rows(text: str, odd: OddRows) -> Iterator[CaptionRow]:
    """Give rows ``image#number<TAB>caption``; the number may be left out."""
    for number, line in enumerate(lines_of(text), start=1):
        image, tab, caption = line.partition("\t")
        where = f"line {number}"
        if not line.strip():
            continue
        if not tab:
            odd.add("lines cut off before the caption (left out)", where)
        elif match := _NUMBERED.fullmatch(image.strip()):
            yield CaptionRow(match["image"], caption, int(match["number"]), where=where)
        else:
            yield CaptionRow(image.strip(), caption, where=where)


def _delimiter(source: Path, text: str, wanted: tuple[str, ...]) -> str | None:
    """Delimiter of the first line if it is a header that names all `wanted` columns."""
    first = _END_OF_LINE.split(text, maxsplit=1)[0]
    for delimiter in (",",) if _is(source, ".csv") else (",", "\t"):
        if set(wanted) <= set(_header(first.split(delimiter))):
            return delimiter
    if _is(source, ".csv"):
        names = " and ".join(map(repr, wanted))
        got = ", ".join(_header(first.split(",")))
        raise ValueError(f"{source} must begin with a header that names {names}, got {got!r}")
    return None


def _is(source: Path, suffix: str) -> bool:
    return source.suffix.lower() == suffix


def _table(
    source: Path, text: str, delimiter: str, wanted: tuple[str, ...], odd: OddRows
) -> Iterator[tuple[str, dict[str, str]]]:
    """Place and cells of each row as long as the header; only CSV has quotes."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE,
        strict=True,
    )
    begin = 1
    try:
        header = _header(next(reader))
        for name in wanted:
            if header.count(name) > 1:
                raise ValueError(f"{source} must have one column {name!r}, got more")
        begin = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(header):
                yield f"line {begin}", dict(zip(header, cells, strict=True))
            elif cells:
                odd.add("rows not as long as the header (left out)", f"line {reader.line_num}")
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{source}: line {reader.line_num} is not valid CSV: {error} "
            f"(in the row that begins in line {begin})"
        ) from None


def _header(cells: Iterable[str]) -> list[str]:
    return [cell.strip().strip('"').strip().lower() for cell in cells]


def collect_pairs(
    pairs: Any, name: str, images_dir: str | os.PathLike[str] | None, outside: Outside
) -> CaptionedImages:
    """Gather the captions of each photo; warn once about rows that cannot be used."""
    odd = OddRows("pairs")
    files: dict[str, NamedPhoto] = {}
    sources: dict[str, Source] = {}
    image_ids: dict[str, None] = {}
    splits: dict[str, dict[str, None]] = {}
    rows: list[CaptionRow] = []
    for i, pair in enumerate(as_list("pairs", pairs, "be an iterable of pairs")):
        where = f"pairs[{i}]"
        if not isinstance(pair, (tuple, list)) or not 2 <= len(pair) <= 4:
            raise TypeError(
                f"{where} must be (photo, caption), (photo, caption, split) or (photo, "
                f"caption, split, image id), got {pair!r:.80}"
            )
        photo, caption, split, own_id = (*pair, None, None)[:4]
        photo = as_photo(where, photo)
        if photo is None:
            odd.add("rows without a photo (left out)", where)
            continue
        image_id = _image_id(where, photo, own_id)
        if image_id not in image_ids:
            image_ids[image_id] = None
            if isinstance(photo, (str, os.PathLike)):
                files[image_id] = NamedPhoto(os.fspath(photo), where)
            else:
                sources[image_id] = photo
        rows += [
            CaptionRow(image_id, text, where=where) for text in _texts(where, caption, odd)
        ]
        if not is_missing(split):
            if not isinstance(split, str) or not split:
                raise TypeError(f"{where} must have a split that is a name, got {split!r:.80}")
            split = "dev" if split in _NAMES_OF_DEV else split
            splits.setdefault(split, {})[image_id] = None
    photos: Photos | None
    if images_dir is None:
        paths = {image_id: Path(photo.name) for image_id, photo in files.items()}
        photos = Photos({name: path for name, path in paths.items() if is_file(path)}, ())
    else:
        photos = find_photos(
            "pairs", files, Path(images_dir), images_dir, outside=outside, argument="images_dir"
        )
    return collect(name, image_ids, rows, photos, odd, splits=splits, sources=sources, depth=2)


def _image_id(where: str, photo: Any, own_id: Any) -> str:
    """Return the id as given, the path of a file, or the digest of a photo in memory."""
    if not is_missing(own_id):
        return str(own_id)
    if isinstance(photo, (str, os.PathLike)):
        return str(os.fspath(photo))
    return digest(where, photo)[:_DIGEST_LENGTH]


def _texts(where: str, value: Any, odd: OddRows) -> list[str]:
    """Captions of a pair without missing ones."""
    cells = [value] if isinstance(value, str) or is_missing(value) else value
    texts = []
    for text in as_list(f"{where} captions", cells, "be text or a list of texts"):
        if is_missing(text):
            odd.add("rows without a caption (left out)", where)
        elif isinstance(text, str):
            texts.append(text)
        else:
            raise TypeError(f"{where} must have captions that are text, got {text!r:.80}")
    return texts
