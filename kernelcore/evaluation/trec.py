"""TREC runs and judgments: from scores, from files and to files.

A run is a mapping of queries to candidates to scores, judgments ("qrels") one of queries to
candidates to relevance: the very dictionaries that pytrec_eval and ranx take.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _core
from kernelcore._check import (
    Array,
    as_strings,
    check_choice,
    check_flag,
    check_integer,
    check_real,
)
from kernelcore._store import check_is_file, reading, replacing
from kernelcore.evaluation._inputs import MatrixLike, as_caption_image, as_rows
from kernelcore.evaluation.metrics import RankedRelevance
from kernelcore.evaluation.relevance import rank_lists
from kernelcore.evaluation.result import as_mapping

__all__ = [
    "rank_run",
    "read_qrels",
    "read_run",
    "trec_qrels",
    "trec_run",
    "write_qrels",
    "write_run",
]

Run: TypeAlias = Mapping[str, Mapping[str, float]]
Qrels: TypeAlias = Mapping[str, Mapping[str, int]]

_COLUMNS = {3: "relevance", 4: "score"}  # with a number, from 0
_LARGEST = int(np.float32(np.finfo(np.float32).max).view(np.int32))


def trec_run(
    scores: MatrixLike,
    query_ids: Sequence[str],
    candidate_ids: Sequence[str],
    *,
    k: int | None = None,
) -> dict[str, dict[str, float]]:
    """Turn a matrix of scores into a run that all readers put in the same order.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_candidates)
        Higher is better. Candidates with ``-inf`` are left out. For image search, whose
        queries are captions, pass the transpose.
    query_ids, candidate_ids : sequence of str
        Different ids without white space.
    k : int, optional
        Keep the best `k` candidates of each query. Ranks beyond are lost, and with them the
        exact median, MRR and MAP; the default keeps all.

    Returns
    -------
    dict of str to dict of str to float
        Candidates of each query, the best first.

    Raises
    ------
    TypeError, ValueError
        If the scores are not a matrix of numbers or hold NaN, or an id does not fit.

    Notes
    -----
    trec_eval rounds scores to float32 and puts equal ones in the order of their ids, from
    the last to the first; ranx leaves their order open. So that all agree, scores are rounded
    to float32 here, and a score that is not below the one before it is lowered to the next
    number below. Tied candidates keep the order of the pool, as under the rule "ordinal".

    Examples
    --------
    >>> from kernelcore.evaluation.trec import trec_run
    >>> run = trec_run([[0.5, 0.75, 0.5]], ["q"], ["a", "b", "c"])
    >>> list(run["q"]), run["q"]["a"] > run["q"]["c"]
    (['b', 'a', 'c'], True)
    """
    table = as_rows("scores", scores)
    queries = _as_ids("query_ids", query_ids, table.shape[0])
    candidates = _as_ids("candidate_ids", candidate_ids, table.shape[1])
    if k is not None:
        k = check_integer("k", k, minimum=1)
    run = {}
    for rows, piece in table.pieces():
        for query, row in zip(queries[rows], piece, strict=True):
            if np.isnan(row).any():
                raise ValueError(f"scores must not hold NaN, got NaN for query {query!r}")
            order = np.argsort(-row, kind="stable")[:k]
            order = order[row[order] > -np.inf]
            strict = _strictly_falling(row[order]).tolist()
            run[query] = dict(zip([candidates[c] for c in order], strict, strict=True))
    return run


def trec_qrels(
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    *,
    caption_image: npt.ArrayLike | None = None,
    task: Literal["annotation", "search"] = "search",
) -> dict[str, dict[str, int]]:
    """Return which captions belong to which images as judgments.

    Parameters
    ----------
    image_ids, caption_ids : sequence of str
        Different ids without white space.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to. Omit it where caption i belongs to
        image i.
    task : {"annotation", "search"}, default="search"
        Whether images or captions are the queries.

    Returns
    -------
    dict of str to dict of str to int

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit.

    Examples
    --------
    >>> from kernelcore.evaluation.trec import trec_qrels
    >>> trec_qrels(["dog"], ["c0", "c1"], caption_image=[0, 0], task="annotation")
    {'dog': {'c0': 1, 'c1': 1}}
    """
    check_choice("task", task, ("annotation", "search"))
    images = _as_ids("image_ids", image_ids)
    captions = _as_ids("caption_ids", caption_ids)
    owner = as_caption_image(caption_image, (len(images), len(captions)))
    qrels: dict[str, dict[str, int]] = {}
    for caption, image in zip(captions, owner.tolist(), strict=True):
        pair = (images[image], caption)
        query, item = pair if task == "annotation" else pair[::-1]
        qrels.setdefault(query, {})[item] = 1
    return qrels


def rank_run(
    run: Run, qrels: Qrels, *, relevance: int = 1, skip_without: bool = False
) -> RankedRelevance:
    """Rank the relevant items of every judged query in a run.

    Parameters
    ----------
    run : mapping of str to mapping of str to float
        Score of each candidate that a query retrieved.
    qrels : mapping of str to mapping of str to int
        Judged relevance. Queries that are not here are left out; one that is not in the run
        found nothing.
    relevance : int, default=1
        Least relevance that counts.
    skip_without : bool, default=False
        Whether queries without relevant items are left out of means. trec_eval and pytrec_eval
        count them as 0, which is the default.

    Returns
    -------
    RankedRelevance
        Queries in the order of `qrels`; `RankedRelevance.metrics` computes all metrics.

    Raises
    ------
    TypeError, ValueError
        If a score is not a finite number, no query retrieved anything, or nothing is relevant.

    Notes
    -----
    Candidates stand as trec_eval orders them: by score in float32, equal ones by their ids
    from the last to the first.

    Examples
    --------
    >>> from kernelcore.evaluation.trec import rank_run
    >>> run = {"q": {"a": 0.5, "b": 0.5, "c": 0.1}}
    >>> rank_run(run, {"q": {"a": 1}}).reciprocal_rank()
    array([0.5])
    """
    as_mapping("run", run)
    as_mapping("qrels", qrels)
    least = check_integer("relevance", relevance, minimum=1)
    lists = [ordered(query, run.get(query, {})) for query in qrels]
    relevant = [
        {item for item, grade in judged.items() if check_integer("qrels", grade) >= least}
        for judged in (as_mapping("qrels", items) for items in qrels.values())
    ]
    if not any(lists):
        raise ValueError("run must hold candidates for a query of qrels, got none")
    if not any(relevant):
        raise ValueError(f"qrels must hold an item of relevance {least} at least, got none")
    ranked = rank_lists(lists, relevant)
    return ranked if check_flag("skip_without", skip_without) else replace(ranked, without=0.0)


def ordered(query: str, found: Mapping[str, float]) -> list[str]:
    """Return candidates as trec_eval orders them."""
    as_mapping("run", found)
    if {*map(type, found.values())} != {float}:
        for score in found.values():
            check_real(f"run[{query!r}]", score)
    scores = np.array([*found.values()], np.float64)
    if not np.isfinite(scores).all():
        check_real(f"run[{query!r}]", scores[~np.isfinite(scores)][0].item())
    with np.errstate(over="ignore"):  # as a cast in C
        rounded = scores.astype(np.float32)
    if (rounded[1:] < rounded[:-1]).all():
        return [*found]
    by_item = dict(zip(found, rounded.tolist(), strict=True))
    return sorted(sorted(found, reverse=True), key=lambda item: -by_item[item])


def check_word(name: str, word: Any) -> str:
    """Return an id without white space, which separates the columns of TREC."""
    if not isinstance(word, str):
        raise TypeError(f"{name} must hold strings, got {type(word).__name__}")
    if word.split() != [word]:
        raise ValueError(f"{name} must hold words without white space, got {word!r}")
    return word


def _strictly_falling(scores: Array) -> npt.NDArray[np.float32]:
    """Round scores that fall or stay to float32 so that they fall, each by a step at least."""
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32)
    bits = rounded.view(np.int32).astype(np.int64)
    steps = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))  # neighbours differ by 1
    steps = np.clip(steps, -_LARGEST, _LARGEST)
    places = np.arange(len(steps))
    steps = np.minimum.accumulate(steps + places) - places
    steps = np.maximum(steps, -_LARGEST + len(steps) - 1 - places)
    bits = np.where(steps >= 0, steps, -steps | 0x80000000)
    return bits.astype(np.uint32).view(np.float32)


def _as_ids(name: str, ids: Sequence[str], length: int | None = None) -> list[str]:
    words = [check_word(name, word) for word in as_strings(name, ids, unique=True)]
    if length not in (None, len(words)):
        raise ValueError(f"{name} must have one id each ({length}), got {len(words)}")
    return words


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
    >>> from kernelcore.evaluation.trec import read_run, trec_run, write_run
    >>> run = trec_run([[0.5, 0.75]], ["q"], ["a", "b"])
    >>> write_run("run.trec.gz", run)
    >>> read_run("run.trec.gz") == run
    True
    """
    as_mapping("run", run)
    check_word("tag", tag)
    known: set[str] = set()

    def lines(query: str, found: Mapping[str, float]) -> list[str]:
        order = ordered(query, found)
        for item in found.keys() - known:
            known.add(check_word("run", item))
        scores = _core.decimals(np.array([found[item] for item in order], np.float64))
        ranked = enumerate(zip(order, scores, strict=True), start=1)
        return [f"{query} Q0 {item} {rank} {score} {tag}\n" for rank, (item, score) in ranked]

    _write(path, "run", run, lines)


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
    >>> from kernelcore.evaluation.trec import read_qrels, write_qrels
    >>> write_qrels("qrels.txt", {"q": {"a": 1, "b": 0}})
    >>> read_qrels("qrels.txt")
    {'q': {'a': 1, 'b': 0}}
    """

    def lines(query: str, judged: Mapping[str, int]) -> Iterator[str]:
        for item, grade in as_mapping("qrels", judged).items():
            check_word("qrels", item)
            yield f"{query} 0 {item} {check_integer('qrels', grade)}\n"

    _write(path, "qrels", as_mapping("qrels", qrels), lines)


def read_run(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read a run of six columns, compressed or not; its ranks are ignored.

    Lines that begin with ``#`` are comments.

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
    return _read(path, 6, 4, lambda text: check_real("score", float(text)))


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Read judgments of four columns, compressed or not.

    Lines that begin with ``#`` are comments.

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
    return _read(path, 4, 3, int)


def _write(
    path: str | os.PathLike[str],
    name: str,
    table: Mapping[str, Mapping[str, Any]],
    lines: Callable[[str, Mapping[str, Any]], Iterable[str]],
) -> None:
    """Write the lines of each query."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        # No time of writing: the same bytes always.
        is_packed = Path(path).suffix == ".gz"
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if is_packed else file
        with packed:
            for query, found in table.items():
                if check_word(name, query).startswith("#"):
                    raise ValueError(
                        f"{name} must have queries that do not begin with #, as comments do, "
                        f"got {query!r}"
                    )
                packed.write("".join(lines(query, found)).encode())


def _read(
    path: str | os.PathLike[str], n_columns: int, column: int, kind: Callable[[str], Any]
) -> dict[str, dict[str, Any]]:
    """Read the number of each item from a column, query by query."""
    source = Path(path)
    check_is_file(source)
    table: dict[str, dict[str, Any]] = {}
    with reading(source):
        with source.open("rb") as file:
            opened: Any = gzip.open if file.read(2) == b"\x1f\x8b" else open
        with opened(source, "rt", encoding="utf-8") as text:
            for number, line in enumerate(text, start=1):
                columns = line.split()
                if not columns or columns[0].startswith("#"):
                    continue
                place = f"{source}, line {number},"
                if len(columns) != n_columns:
                    raise ValueError(
                        f"{place} must have {n_columns} columns, got {len(columns)}"
                    )
                query, _, item, *_ = columns
                if item in table.setdefault(query, {}):
                    raise ValueError(f"{place} must not name {item!r} again for {query!r}")
                try:
                    table[query][item] = kind(columns[column])
                except ValueError:
                    raise ValueError(
                        f"{place} must have a finite number as {_COLUMNS[column]}, "
                        f"got {columns[column]!r:.80}"
                    ) from None
    return table
