"""Preparation and selection of samples: checked and copied once for many calls of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import (
    Array,
    Extremes,
    as_array,
    as_csr,
    as_real_array,
    check_finite,
    check_indices,
    check_no_mask,
    scan_gram,
    scan_values,
    sealed,
)
from kernelcore._ragged import take
from kernelcore._threads import cached_property, resolve_n_threads
from kernelcore.captions.encoded import EncodedCaptions, WordCounts, count_words, numbered
from kernelcore.images.pyramid import SpatialHistograms

Rows: TypeAlias = tuple[Array, Array, Array]
"""Sparse rows: offsets, columns and values."""

COUNTS = (np.uint8, np.uint16, np.uint32)

_BYTE = np.uint8(255)
_COUNTS_PER_LARGE = 256


def prepare(X: Any, *, n_threads: int | None = None) -> Prepared:
    """Check samples once, so that kernels need not check them at every call.

    Parameters
    ----------
    X : array_like or sparse array of shape (n_samples, n_features), EncodedCaptions or \
SpatialHistograms
        Samples in a form that kernels take, or a Gram matrix. The dtype is kept for float32,
        float64 and unsigned integers of up to 32 bits, but unsigned integers in a sparse array
        become uint64. Other real dtypes become float64.
    n_threads : int, optional
        Threads for the checks; the default is every core this process may run on.

    Returns
    -------
    Prepared
        An immutable copy; `X` itself if it is prepared.

    Raises
    ------
    TypeError
        If `X` does not hold real numbers.
    ValueError
        If `X` is not 2-D, an element is NaN or infinite, or the indices of a sparse array are
        damaged.

    See Also
    --------
    kernelcore.kcca.KernelColumns : Columns of a kernel on demand.

    Notes
    -----
    The kernels of this package, `kernelcore.kcca.partial_gram_schmidt`, `KCCA`,
    `KernelColumns.of` and `LandmarkFeatures` take it in place of `X` and give the same bits.
    Other functions see a read-only array. It stores the smallest and the largest value, the
    asymmetry of a square matrix of floats, counts in the narrowest type that holds them, and
    the counts of the words of captions. Checks of a kernel, such as that histograms are not
    negative, use these.

    Takes one pass over `X` and its copy.

    Examples
    --------
    >>> from kernelcore.kernels import histogram_intersection, prepare
    >>> X = prepare([[3.0, 1.0, 0.0], [1.0, 1.0, 2.0]])
    >>> X
    Prepared(2 x 3, float64)
    >>> histogram_intersection(X)
    array([[4., 2.],
           [2., 4.]])
    """
    return X if isinstance(X, Prepared) else Prepared(X, n_threads=n_threads)


class Prepared:
    """Samples that were copied and checked once; the output of `prepare`.

    Parameters
    ----------
    X, n_threads
        As in `prepare`.

    Attributes
    ----------
    samples : ndarray, csr_array, EncodedCaptions or SpatialHistograms
        The samples themselves; read-only.
    shape : tuple of int
        Samples, and features where they are rows of a matrix.

    See Also
    --------
    prepare : Makes one.
    """

    samples: Any
    _extremes: Extremes | None  # only of dense matrices

    def __init__(self, X: Any, *, n_threads: int | None = None) -> None:
        threads = resolve_n_threads(n_threads)
        extremes = None
        if hasattr(X, "tocsr"):
            X = as_csr("X", X, counts=COUNTS)
            check_finite("X", X.data, n_threads=threads)
            X = _sealed_rows(X)
        elif not isinstance(X, (EncodedCaptions, SpatialHistograms)):  # they own their arrays
            given = as_real_array("X", X, ndim=2, keep=COUNTS)
            X = np.empty(given.shape, given.dtype)
            if given.dtype.kind == "f" and len(given) == given.shape[1]:
                extremes = scan_gram(given, threads, X)
            else:
                X[:] = given
                extremes = scan_values(X, threads)
            X = sealed(X)
            if not extremes.is_finite:
                check_finite("X", X)
        self.__dict__.update(samples=X, _extremes=extremes)

    @classmethod
    def trusting(cls, samples: Any, extremes: Extremes | None) -> Prepared:
        """Wrap samples that are already checked, without a copy."""
        made = cls.__new__(cls)
        made.__dict__.update(samples=samples, _extremes=extremes)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Samples, and features where they are rows of a matrix."""
        return tuple(self.samples.shape) if self.is_matrix else (len(self.samples),)

    @property
    def is_matrix(self) -> bool:
        """Whether the samples are rows of a matrix, dense or sparse."""
        return not isinstance(self.samples, (EncodedCaptions, SpatialHistograms))

    @property
    def knows_asymmetry(self) -> bool:
        """Whether the difference of a square matrix and its transpose was computed."""
        return self._extremes is not None and self._extremes.gap is not None

    @property
    def extremes(self) -> Extremes:
        """Smallest and largest value of a dense matrix; for a selection, those of the whole."""
        if self._extremes is None:
            raise TypeError(f"X must be a dense matrix, got {self!r}")
        return self._extremes

    @cached_property
    def word_counts(self) -> WordCounts:
        """Counts of the words of each image; those outside the vocabulary stand behind it."""
        held = self.samples
        words, n_symbols = numbered(held.word_ids, held.n_words)
        return count_words(words, held.caption_offsets[held.image_offsets], n_symbols)

    @cached_property
    def narrow(self) -> Array:
        """Counts in the narrowest type that holds them: more of them fit into a vector."""
        narrow: Array = self.samples.astype(
            np.min_scalar_type(int(self.extremes.largest)), copy=False
        )
        return narrow

    @cached_property
    def bytes_and_rest(self) -> tuple[Array, Rows] | None:
        """Counts as bytes and sparse remainders, whose minima add up; None if many exceed 255.

        Their minima take less time than minima of wider integers.
        """
        counts: Array = self.samples
        large = np.flatnonzero(counts > _BYTE)  # in one dimension, which is faster
        if len(large) * _COUNTS_PER_LARGE > counts.size:
            return None
        rows, bins = np.divmod(large, counts.shape[1])
        offsets = np.searchsorted(rows, np.arange(len(counts) + 1))
        rest = counts.reshape(-1)[large].astype(np.uint32) - _BYTE
        low = counts.astype(np.uint8)
        low.reshape(-1)[large] = _BYTE
        return low, (offsets.astype(np.int64), bins.astype(np.int32), rest)

    def select(self, indices: npt.ArrayLike | slice) -> Prepared:
        """Return the samples at these positions, in that order; repetitions are allowed."""
        where = (
            indices
            if isinstance(indices, slice)
            else check_indices("indices", indices, len(self))
        )
        part = take(self.samples, where)
        if hasattr(part, "tocsr"):
            part = _sealed_rows(part)
        if self._extremes is None:
            return Prepared.trusting(part, None)
        rows = sealed(np.ascontiguousarray(part))  # a slice may have left out some
        return Prepared.trusting(rows, self._extremes._replace(gap=None))

    def __getitem__(self, rows: slice) -> Prepared:
        """Return the samples of a slice: rows of an array are not copied."""
        return self.select(rows)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        if not self.is_matrix:
            return f"Prepared({self.samples!r})"
        dtype, sparse = self.samples.dtype, ", sparse" if hasattr(self.samples, "tocsr") else ""
        return f"Prepared({' x '.join(f'{n:,}' for n in self.shape)}, {dtype}{sparse})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the matrix, a read-only view unless another dtype or a copy is requested."""
        if not isinstance(self.samples, np.ndarray):
            raise TypeError(f"{self!r} is no dense matrix")
        array: Array = np.array(self.samples, dtype, copy=copy)
        return array

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Restore through the constructor, which checks."""
        return Prepared, (self.samples,)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Prepared is immutable: cannot set {name}")


def _sealed_rows(rows: Any) -> Any:
    """Return a sparse matrix with read-only arrays."""
    for name in ("data", "indices", "indptr"):
        setattr(rows, name, sealed(getattr(rows, name)))
    return rows


def as_items(items: Any, name: str = "X") -> Any:
    """Return `items` in a form that `take` can index; the indices of sparse arrays are checked.

    Tables, tensors and nested lists of numbers become arrays. Objects with a method `select`
    and other sequences are returned unchanged.
    """
    if isinstance(items, Prepared):
        return items
    check_no_mask(name, items)
    if hasattr(items, "tocsr"):
        rows = as_csr(name, items, counts=COUNTS)
        return rows.astype(np.uint32) if rows.dtype == np.uint64 else rows
    if isinstance(items, (list, tuple)):
        return _as_numbers(items)
    if hasattr(items, "__array__"):
        items = as_array(name, items, ndim=2)
    elif callable(getattr(items, "select", None)):
        return items
    is_sequence = hasattr(items, "__len__") and hasattr(items, "__getitem__")
    if not is_sequence or isinstance(items, (str, bytes, Mapping)) or np.ndim(items) == 0:
        raise TypeError(f"{name} must be a sequence of samples, got {type(items).__name__}")
    return items


def _as_numbers(items: list[Any] | tuple[Any, ...]) -> Any:
    """Return an array if the items are numbers or lists of equal length, else `items`."""
    try:
        array = np.asarray(items)
    except ValueError:  # of different lengths
        return items
    return array if array.size and array.dtype.kind in "fiub" else items
