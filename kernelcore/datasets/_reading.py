"""Readers of text, JSON and tables; errors name the file and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from kernelcore import _extras
from kernelcore._reading import check_is_file, json_value, read_text, reading
from kernelcore._validation import as_list


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file without a byte order mark; a carriage return is left at the end.

    Only line feeds end a line: ``str.splitlines`` would also cut captions at the rarer
    separators of Unicode.
    """
    return read_text(path).split("\n")


def read_json(path: Path, lists: Iterable[str]) -> dict[str, Any]:
    """JSON object of a file that holds a list of objects under each of the keys `lists`."""
    content = parse_json(path)
    for key in lists:
        entries = content.get(key) if isinstance(content, dict) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise ValueError(f"{path} must hold a JSON object with a list of objects {key!r}")
    result: dict[str, Any] = content
    return result


def parse_json(path: Path) -> Any:
    """Value of a JSON file; a damaged file is an error that names the place."""
    with reading(path, "must be JSON and is damaged or truncated"):
        return json_value(read_text(path))


def field(path: Path, where: str, entry: Any, key: str, *kinds: type) -> Any:
    """Value of `key` in a JSON object; the error says where it should have been."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{path}: {where} must have {key!r} of type {names}, got {value!r:.80}"
        )
    return value


# From the names of all columns to those that are wanted.
Choice: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


def read_columns(name: str, table: Any, choose: Choice) -> dict[str, list[Any]]:
    """Return the chosen columns of a table as lists; `name` is what errors call it.

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
    """Turn what pyarrow raises of a damaged file, in many ways, into an error that names it."""
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
