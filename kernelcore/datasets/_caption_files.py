"""Reader of caption files: CSV, TSV, Parquet, COCO JSON and Flickr token files.

A table has a header that names its columns, with commas or tabs between them. A file named
``.parquet`` has the same columns, one named ``.json`` has the form of COCO. Any other file has
rows of ``name<TAB>caption``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelcore._reading import read_text
from kernelcore.datasets._collect import CaptionRow, OddRows
from kernelcore.datasets._photos import is_missing
from kernelcore.datasets._reading import read_parquet
from kernelcore.datasets.coco import read_coco

_NUMBERED = re.compile(r"(?P<image>.+)#(?P<number>[0-9]{1,9})", re.DOTALL)
_END_OF_LINE = re.compile(r"[\r\n]")
_IMAGE, _CAPTION = "image", "caption"


def read_caption_rows(source: Path, odd: OddRows) -> list[CaptionRow]:
    """Rows of a table with the columns ``image`` and ``caption``, or as `read_token_rows`."""
    if _is(source, ".json"):
        return list(_coco_rows(source, odd))
    if _is(source, ".parquet"):
        return list(_parquet_rows(source, odd))
    text = read_text(source)
    delimiter = _delimiter(source, text, (_IMAGE, _CAPTION))
    if delimiter is None:
        return list(_token_rows(text, odd))
    return [
        CaptionRow(row[_IMAGE].strip(), row[_CAPTION], where=where)
        for where, row in _table(source, text, delimiter, (_IMAGE, _CAPTION), odd)
    ]


def read_token_rows(source: Path, odd: OddRows) -> list[CaptionRow]:
    """Rows ``image#number<TAB>caption``; the number may be left out."""
    return list(_token_rows(read_text(source), odd))


def read_sentences(source: Path) -> list[str]:
    r"""Return the captions of a file, each once, whatever images they belong to.

    Of a table the column ``caption``, of JSON all captions, else what stands after the first
    tab of a line, or the whole line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelcore.datasets._caption_files import read_sentences
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
    if _is(source, ".parquet"):
        return (text for _, _, text in _parquet_cells(source, (_CAPTION,), odd))
    text = read_text(source)
    wanted = (_CAPTION,) if _is(source, ".csv") else (_IMAGE, _CAPTION)
    delimiter = _delimiter(source, text, wanted)
    if delimiter is None:
        lines = text.split("\n")
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


def _parquet_rows(source: Path, odd: OddRows) -> Iterator[CaptionRow]:
    for where, image, text in _parquet_cells(source, (_IMAGE, _CAPTION), odd):
        if not isinstance(image, str):
            raise ValueError(f"{source}: {where} must name a photo, got {image!r:.80}")
        yield CaptionRow(image.strip(), text, where=where)


def _parquet_cells(
    source: Path, wanted: tuple[str, ...], odd: OddRows
) -> Iterator[tuple[str, Any, str]]:
    """Place, image and caption of each caption, by the names of columns in any case."""

    def choose(names: Sequence[str]) -> list[str]:
        known = _header(names)
        for name in wanted:
            if known.count(name) != 1:
                rule = "the columns " + " and ".join(map(repr, wanted))
                raise ValueError(f"{source} must have {rule}, got {', '.join(names)!r}")
        return [names[known.index(name)] for name in wanted]

    columns = read_parquet(source, choose).values()
    for i, (*image, cell) in enumerate(zip(*columns, strict=True), start=1):
        where = f"row {i}"
        for text in cell if isinstance(cell, list) else [cell]:
            if is_missing(text):
                odd.add("rows without a caption (left out)", where)
            elif not isinstance(text, str):
                raise ValueError(f"{source}: {where} must have text, got {text!r:.80}")
            else:
                yield where, image[0] if image else None, text


def _token_rows(text: str, odd: OddRows) -> Iterator[CaptionRow]:
    # Only line feeds end a line: `str.splitlines` would also cut captions at the rarer
    # separators of Unicode.
    for number, line in enumerate(text.split("\n"), start=1):
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
    """Place and cells of each row as long as the header; quotes mean something in CSV only."""
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
