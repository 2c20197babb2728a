"""Files of captions, in whatever form: the one reader of all loaders and commands.

A table has a header that names its columns, with commas or tabs between them. Any other file
has rows of ``name<TAB>caption``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelcore._reading import read_text
from kernelcore.datasets._collect import CaptionRow, OddRows

_NUMBERED = re.compile(r"(?P<image>.+)#(?P<number>[0-9]{1,9})", re.DOTALL)
_END_OF_LINE = re.compile(r"[\r\n]")
_IMAGE, _CAPTION = "image", "caption"


def read_caption_rows(source: Path, odd: OddRows) -> list[CaptionRow]:
    """Rows of a table with the columns ``image`` and ``caption``, or as `read_token_rows`."""
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

    Of a table the column ``caption``, else what stands after the first tab of a line, or the
    whole line.

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
    text, odd = read_text(source), OddRows(source)
    wanted = (_CAPTION,) if _is_csv(source) else (_IMAGE, _CAPTION)
    delimiter = _delimiter(source, text, wanted)
    if delimiter is None:
        texts = [line.partition("\t")[2] if "\t" in line else line for line in text.split("\n")]
    else:
        texts = [row[_CAPTION] for _, row in _table(source, text, delimiter, wanted, odd)]
    sentences = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not sentences:
        raise ValueError(f"{source} must hold sentences, and it holds none")
    odd.warn()
    return sentences


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
    for delimiter in (",",) if _is_csv(source) else (",", "\t"):
        if set(wanted) <= set(_header(first.split(delimiter))):
            return delimiter
    if _is_csv(source):
        names = " and ".join(map(repr, wanted))
        got = ", ".join(_header(first.split(",")))
        raise ValueError(f"{source} must begin with a header that names {names}, got {got!r}")
    return None


def _is_csv(source: Path) -> bool:
    return source.suffix.lower() == ".csv"


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
