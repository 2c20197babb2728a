"""Indices of vectors by FAISS: exact or approximate search, rows added and removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._files import replacing_folder
from kernelcore._reading import Contents, json_value, read_text, reading
from kernelcore._validation import (
    Array,
    as_float32,
    as_integer_array,
    as_real_array,
    check_choice,
    check_finite,
    check_integer,
)
from kernelcore.distributed.rows import BLOCK, RowFiles, open_rows
from kernelcore.distributed.search import Best
from kernelcore.distributed.store import digest_of_file
from kernelcore.evaluation.streaming import VectorSimilarity

_INDEX, _ABOUT = "index.faiss", "index.json"
_TRAINING_ROWS_PER_LIST = 64
_LONGEST = float(np.finfo(np.float32).max) ** 0.5
IndexKind = Literal["exact", "lists"]


class VectorIndex:
    """Index of vectors of photos or captions, for search by FAISS.

    Parameters
    ----------
    rows : RowFiles, path of a store of rows, or array_like of shape (n, n_dimensions)
        The vectors.
    ids : array_like of int, shape (n,), optional
        A number for each row, which `search` returns. The default is their positions.
    kind : {"exact", "lists"}, default "exact"
        "exact" compares a query with all vectors. "lists" divides them among lists by k-means
        and compares a query with those of the `n_probes` nearest lists.
    similarity : {"cosine", "dot"}, default "cosine"
        How vectors are compared.
    n_lists : int, optional
        The default is four times the square root of the number of rows.
    n_probes : int, default 16
        Lists that a search looks at.

    Attributes
    ----------
    n_dimensions : int
    kind, similarity, n_probes
        As given.

    Raises
    ------
    MissingExtraError
        If FAISS is not installed (extra ``index``).
    TypeError, ValueError
        If the vectors are empty or not finite, products may exceed float32 under "dot", or an
        option is out of range.

    See Also
    --------
    best_candidates : Exact search over vectors on disk, on a cluster.

    Notes
    -----
    Vectors are kept in memory as float32. `recall` measures what an approximate index loses.
    Rows that are added later go to the lists that were learned at first, so after many
    additions an index that is made anew may be better.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.distributed import VectorIndex
    >>> index = VectorIndex(np.eye(3), ids=[7, 8, 9])
    >>> index.search([[0.0, 1.0, 0.1]], k=2).positions
    array([[8, 9]])
    >>> index.remove([8])
    1
    >>> len(index)
    2
    """

    def __init__(
        self,
        rows: RowFiles | npt.ArrayLike | str | os.PathLike[str],
        ids: npt.ArrayLike | None = None,
        *,
        kind: IndexKind = "exact",
        similarity: VectorSimilarity = "cosine",
        n_lists: int | None = None,
        n_probes: int = 16,
    ) -> None:
        self.kind = check_choice("kind", kind, ("exact", "lists"))
        self.similarity = check_choice("similarity", similarity, ("cosine", "dot"))
        self.n_probes = check_integer("n_probes", n_probes, minimum=1)
        faiss = _extras.require("faiss")
        files = open_rows(rows) if isinstance(rows, (str, os.PathLike)) else rows
        held: Any = files if isinstance(files, RowFiles) else _vectors("rows", files)
        if not len(held):
            raise ValueError("rows must not be empty")
        self.n_dimensions = int(held.shape[1])
        metric = faiss.METRIC_INNER_PRODUCT
        if kind == "exact":
            self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(self.n_dimensions))
        else:
            most = len(held)
            count = min(most, int(4 * most**0.5) + 1)
            if n_lists is not None:
                count = check_integer("n_lists", n_lists, minimum=1, maximum=most)
            quantizer = faiss.IndexFlatIP(self.n_dimensions)
            self._index = faiss.IndexIVFFlat(quantizer, self.n_dimensions, count, metric)
            self._index.nprobe = min(self.n_probes, count)
            self._index.cp.min_points_per_centroid = 1  # no warning about small collections
            step = max(1, most // (_TRAINING_ROWS_PER_LIST * count))
            chosen = np.arange(0, most, step)
            sample = held.take(chosen) if isinstance(held, RowFiles) else held[chosen]
            self._index.train(self._scaled("rows", _vectors("rows", sample)))
        numbers = np.arange(len(held)) if ids is None else _ids("ids", ids, len(held))
        for start in range(0, len(held), BLOCK):
            stop = min(start + BLOCK, len(held))
            part = held.read(start, stop) if isinstance(held, RowFiles) else held[start:stop]
            vectors = self._scaled("rows", _vectors("rows", part))
            self._index.add_with_ids(vectors, numbers[start:stop])

    def __len__(self) -> int:
        """Return the number of vectors."""
        return int(self._index.ntotal)

    def add(self, rows: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Add vectors.

        Parameters
        ----------
        rows : array_like of shape (n, n_dimensions)
        ids : array_like of int, shape (n,)
            Numbers that the index does not have yet.

        Raises
        ------
        TypeError, ValueError
            If a vector has another length or is not finite, or a number is not new.
        """
        vectors = self._checked("rows", rows)
        numbers = _ids("ids", ids, len(vectors))
        known = np.intersect1d(numbers, self.ids())
        if known.size:
            raise ValueError(f"ids must be new, got {known[0]}, which the index has")
        self._index.add_with_ids(self._scaled("rows", vectors), numbers)

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove vectors; return how many there were.

        Parameters
        ----------
        ids : array_like of int, shape (n,)
            Their numbers; those that the index does not have change nothing.
        """
        numbers = as_integer_array("ids", ids, ndim=1, dtype=np.int64)
        gone = np.intersect1d(numbers, self.ids())
        return int(self._index.remove_ids(gone)) if gone.size else 0

    def ids(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all vectors, ascending."""
        faiss = _extras.require("faiss")
        if self.kind == "exact":
            return np.sort(faiss.vector_to_array(self._index.id_map))
        lists = self._index.invlists
        parts = [np.empty(0, np.int64)]
        for number in range(self._index.nlist):
            size = lists.list_size(number)
            if size:
                parts.append(faiss.rev_swig_ptr(lists.get_ids(number), size).copy())
        return np.sort(np.concatenate(parts))

    def search(self, queries: npt.ArrayLike, *, k: int = 10) -> Best:
        """Find the best vectors for each query.

        Parameters
        ----------
        queries : array_like of shape (n_queries, n_dimensions)
        k : int, default 10
            Vectors for each query, at most all.

        Returns
        -------
        Best
            Numbers of vectors in `positions`. An approximate search may find fewer than k:
            then -1 and -inf fill the row.

        Raises
        ------
        TypeError, ValueError
            If a query has another length or is not finite, k is out of range, or the index
            is empty.
        """
        vectors = self._checked("queries", queries)
        count = check_integer("k", k, minimum=1)
        if not len(self):
            raise ValueError("the index must hold a vector, and all have been removed")
        scores, found = self._index.search(
            self._scaled("queries", vectors), min(count, len(self))
        )
        scores[found < 0] = -np.inf
        return Best(found, scores)

    def recall(self, queries: npt.ArrayLike, *, k: int = 10) -> float:
        """Measure the share of the k best vectors of each query that `search` finds.

        Parameters
        ----------
        queries : array_like of shape (n_queries, n_dimensions)
        k : int, default 10

        Returns
        -------
        float
            1.0 for an exact index.

        Raises
        ------
        TypeError, ValueError
            As `search`, and if there are no queries.
        """
        found = self.search(queries, k=k).positions
        if not len(found):
            raise ValueError("queries must hold a vector, got none")
        if self.kind == "exact":
            return 1.0
        probes = self._index.nprobe
        try:
            self._index.nprobe = self._index.nlist  # all lists: an exact search
            best = self.search(queries, k=k).positions
        finally:
            self._index.nprobe = probes
        shared = [np.isin(a, b).mean() for a, b in zip(best, found, strict=True)]
        return float(np.mean(shared))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index as a folder, whole or not at all.

        It holds ``index.faiss``, which FAISS reads alone, and ``index.json``.
        """
        faiss = _extras.require("faiss")
        about = {
            "kind": self.kind,
            "similarity": self.similarity,
            "n_probes": self.n_probes,
            "n_dimensions": self.n_dimensions,
        }
        with replacing_folder(path) as folder:
            faiss.write_index(self._index, os.fspath(folder / _INDEX))
            about["digest"] = digest_of_file(folder / _INDEX)
            (folder / _ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> VectorIndex:
        """Read the folder of `save`.

        Raises
        ------
        FileNotFoundError
            If there is none.
        ValueError
            If a file is damaged: its digest is compared before FAISS reads it.
        """
        faiss = _extras.require("faiss")
        folder = Path(path)
        with reading(folder / _ABOUT):
            about = Contents(folder / _ABOUT, json_value(read_text(folder / _ABOUT)))
            written = about.pop("digest", "")
            if digest_of_file(folder / _INDEX) != written:
                raise ValueError(f"{_INDEX} is not as it was written")
            index = cls.__new__(cls)
            index.kind = check_choice("kind", about["kind"], ("exact", "lists"))
            index.similarity = check_choice(
                "similarity", about["similarity"], ("cosine", "dot")
            )
            index.n_probes = check_integer("n_probes", about["n_probes"], minimum=1)
            index.n_dimensions = check_integer("n_dimensions", about["n_dimensions"], minimum=1)
        index._index = faiss.read_index(os.fspath(folder / _INDEX))
        return index

    def _checked(self, name: str, rows: npt.ArrayLike) -> Array:
        vectors = _vectors(name, rows)
        if vectors.shape[1] != self.n_dimensions:
            raise ValueError(
                f"{name} must have {self.n_dimensions} dimensions, got {vectors.shape[1]}"
            )
        return vectors

    def _scaled(self, name: str, rows: Array) -> npt.NDArray[np.float32]:
        """Return float32 vectors, of length 1 for the cosine."""
        exact = rows.astype(np.float64)
        largest = np.abs(exact).max(axis=1, keepdims=True)
        exact /= np.maximum(largest, np.finfo(np.float64).tiny)
        lengths = np.linalg.norm(exact, axis=1, keepdims=True)
        if self.similarity == "cosine":
            exact /= np.where(lengths > 0, lengths, 1.0)
            return exact.astype(np.float32)
        with np.errstate(over="ignore"):
            longest = float((largest * lengths).max(initial=0.0))
        if longest > _LONGEST:
            raise ValueError(
                f"{name} must have no vector longer than {_LONGEST:.3g}, so that products fit "
                f"into float32, got {longest:.3g}"
            )
        return as_float32(name, rows)


def _vectors(name: str, rows: Any) -> Array:
    matrix = as_real_array(name, rows, ndim=2)
    check_finite(name, matrix)
    if not matrix.shape[1]:
        raise ValueError(f"{name} must have dimensions, got shape {matrix.shape}")
    return matrix


def _ids(name: str, ids: Any, count: int) -> npt.NDArray[np.int64]:
    numbers = as_integer_array(name, ids, ndim=1, dtype=np.int64)
    if len(numbers) != count or len(np.unique(numbers)) != count or (numbers < 0).any():
        raise ValueError(
            f"{name} must be {count} different numbers >= 0, one for each row, got "
            f"{len(numbers)}"
        )
    return numbers
