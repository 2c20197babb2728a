"""Files of runs and judgments in the formats of TREC."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelcore._files import replacing
from kernelcore._reading import check_is_file, reading
from kernelcore._validation import check_integer
from kernelcore.evaluation.trec import Qrels, Run, check_mapping, check_word, ordered

_GZIP = b"\x1f\x8b"


def write_run(path: str | os.PathLike[str], run: Run, *, tag: str = "kernelcore") -> None:
    """Write a run with explicit ranks: ``query Q0 candidate rank score tag``.

    Parameters
    ----------
    path : path
        A name that ends in ``.gz`` is compressed.
    run : mapping of str to mapping of str to float
        What `trec_run` gives.
    tag : str, default="kernelcore"
        Name of the run, without white space.

    Raises
    ------
    TypeError, ValueError
        If an id or the tag is empty or has white space, or a score is not a finite number.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from kernelcore.evaluation import read_run, trec_run, write_run
    >>> run = trec_run([[0.5, 0.75]], ["q"], ["a", "b"])
    >>> write_run("run.trec.gz", run)
    >>> read_run("run.trec.gz") == run
    True
    """
    check_mapping("run", run)
    check_word("tag", tag)
    _write(
        path,
        (
            f"{check_word('run', query)} Q0 {check_word('run', item)} {rank} "
            f"{float(found[item])!r} {tag}\n"
            for query, found in run.items()
            for rank, item in enumerate(ordered(query, found), start=1)
        ),
    )


def write_qrels(path: str | os.PathLike[str], qrels: Qrels) -> None:
    """Write judgments: ``query 0 candidate relevance``.

    Parameters
    ----------
    path : path
        A name that ends in ``.gz`` is compressed.
    qrels : mapping of str to mapping of str to int
        What `trec_qrels` gives.

    Raises
    ------
    TypeError, ValueError
        If an id is empty or has white space, or a relevance is not an integer.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from kernelcore.evaluation import read_qrels, write_qrels
    >>> write_qrels("qrels.txt", {"q": {"a": 1, "b": 0}})
    >>> read_qrels("qrels.txt")
    {'q': {'a': 1, 'b': 0}}
    """
    check_mapping("qrels", qrels)
    _write(
        path,
        (
            f"{check_word('qrels', query)} 0 {check_word('qrels', item)} "
            f"{check_integer('qrels', grade)}\n"
            for query, judged in qrels.items()
            for item, grade in check_mapping("qrels", judged).items()
        ),
    )


def read_run(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read a run of six columns, compressed or not; the ranks in it are not looked at.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict of str to dict of str to float
        Candidates of each query in the order of the file.

    Raises
    ------
    ValueError
        If a line has another form, a score is not finite, or a candidate comes twice.
    OSError
        If the file cannot be read.

    See Also
    --------
    write_run : With an example.
    """
    run: dict[str, dict[str, float]] = {}
    for place, (query, _, item, _, score, _) in _lines(path, 6):
        number = _number(float, place, "score", score)
        if not math.isfinite(number):
            raise ValueError(f"{place} must have a finite score, got {score}")
        _put(run, place, query, item, number)
    return run


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Read judgments of four columns, compressed or not.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict of str to dict of str to int
        Judged items of each query in the order of the file.

    Raises
    ------
    ValueError
        If a line has another form or an item is judged twice for a query.
    OSError
        If the file cannot be read.

    See Also
    --------
    write_qrels : With an example.
    """
    qrels: dict[str, dict[str, int]] = {}
    for place, (query, _, item, grade) in _lines(path, 4):
        _put(qrels, place, query, item, _number(int, place, "relevance", grade))
    return qrels


def _write(path: str | os.PathLike[str], lines: Iterator[str]) -> None:
    is_packed = Path(path).suffix == ".gz"
    with replacing(path) as temporary, temporary.open("wb") as file:
        if not is_packed:
            file.writelines(line.encode() for line in lines)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:  # the same bytes always
            packed.writelines(line.encode() for line in lines)


def _lines(path: str | os.PathLike[str], n_columns: int) -> Iterator[tuple[str, list[str]]]:
    """Give the columns of each line, and where it stands."""
    source = Path(path)
    check_is_file(source)
    with reading(source):
        with source.open("rb") as file:
            is_packed = file.read(2) == _GZIP
        opened = gzip.open if is_packed else open
        with opened(source, "rt", encoding="utf-8") as text:
            for number, line in enumerate(text, start=1):
                columns = line.split()
                place = f"{source}, line {number},"
                if columns and len(columns) != n_columns:
                    raise ValueError(
                        f"{place} must have {n_columns} columns, got {len(columns)}"
                    )
                if columns:
                    yield place, columns


def _number(kind: Any, place: str, what: str, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{place} must have a number as {what}, got {text!r:.80}") from None


def _put(table: dict[str, dict[str, Any]], place: str, query: str, item: str, v: Any) -> None:
    found = table.setdefault(query, {})
    if item in found:
        raise ValueError(f"{place} must not name {item!r} a second time for {query!r}")
    found[item] = v
