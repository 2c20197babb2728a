"""Gram matrices of user-defined functions, compiled by Numba (extra ``jit``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, as_real_array, check_flag, check_float_dtype, result_for
from kernelcore._ragged import offsets_of
from kernelcore._threads import (
    Progress,
    cached_property,
    check_stopped,
    in_threads,
    reporting,
    resolve_n_threads,
    stop_flag,
)
from kernelcore.captions.encoded import EncodedCaptions
from kernelcore.kernels._texts import as_captions
from kernelcore.kernels.blocks import square_tiles
from kernelcore.kernels.prepared import Prepared

Items: TypeAlias = "npt.ArrayLike | list[npt.ArrayLike] | EncodedCaptions"
"""Rows of a matrix, a list of 1-D arrays of any lengths, or the captions of images."""

_KEPT = [np.dtype(kind) for kind in "?bhilqBHILQ"]
_TILE_BYTES = 2**18  # of the items of each side, so that both stay in the second-level cache
_SMALLEST_TILE, _LARGEST_TILE = 4, 128  # rows, and as many columns
_TILES_PER_THREAD = 16  # of a whole matrix: enough to share, and each costs some 20 us


def custom(fn: Any, *, symmetric: bool = True) -> CustomKernel:
    """Make a threaded Gram function from a compiled function of two items.

    Parameters
    ----------
    fn : function compiled by ``numba.njit``
        ``fn(x, y)`` returns a real number for two 1-D C-contiguous arrays, which it must not
        change: they are read-only. It must depend on nothing else, as tiles of the matrix are
        computed in any order and by several threads.
    symmetric : bool, default True
        Whether ``fn(x, y) == fn(y, x)``: half the values of one input are computed then, and
        the others are their mirror image.

    Returns
    -------
    CustomKernel
        Called like the other kernels of this package.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    TypeError
        If `fn` is a plain function or `symmetric` no bool.
    ValueError
        If `fn` was compiled with ``parallel=True``: Numba's threads do not stand being called
        from several others.

    See Also
    --------
    kernelcore.reference.kernels.custom : The definition in Python.

    Notes
    -----
    A plain function is refused rather than compiled behind the caller's back, as the compiled
    one differs: its integers wrap around and the globals it reads are frozen. Whatever is
    not finite is refused, so ``fastmath`` can hide no NaN from this function, only from `fn`.

    Examples
    --------
    >>> import numba
    >>> from kernelcore.kernels import custom
    >>> @numba.njit
    ... def shared(x, y):
    ...     return len(set(x) & set(y)) / max(len(x), len(y), 1)
    >>> gram = custom(shared)
    >>> gram([[1, 2, 3], [3, 4], [5]])
    array([[1.        , 0.33333333, 0.        ],
           [0.33333333, 1.        , 0.        ],
           [0.        , 0.        , 1.        ]])
    """
    dispatcher = _extras.require("numba.core.dispatcher").Dispatcher
    if not isinstance(fn, dispatcher):
        raise TypeError(f"fn must be compiled with numba.njit, got {fn!r}")
    if fn.targetoptions.get("parallel"):
        raise ValueError("fn must be compiled without parallel=True: tiles run in threads")
    return CustomKernel(fn, check_flag("symmetric", symmetric))


@dataclass(frozen=True, eq=False)
class CustomKernel:
    """A Gram function made by `custom`.

    Attributes
    ----------
    fn : function compiled by ``numba.njit``
        The function of two items.
    symmetric : bool
        Whether its arguments may change places.
    """

    fn: Any
    symmetric: bool = True

    def __call__(
        self,
        X: Items,
        Y: Items | None = None,
        *,
        dtype: npt.DTypeLike | None = None,
        out: Array | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> npt.NDArray[Any]:
        """Gram matrix of the function over all pairs of items.

        Parameters
        ----------
        X : array_like of shape (n_samples_X, n_features), list of 1-D array_like, or captions
            Items: the rows of a matrix, arrays of any lengths, or `EncodedCaptions`, whose
            captions are arrays of word ids (int32, negative outside the vocabulary). Real
            numbers of any dtype, NaN and infinity among them.
        Y : as X, optional
            Items of the columns. Omit it for the Gram matrix of `X`, which does half the work
            if the function is symmetric.
        dtype : {float32, float64}, optional
            Dtype of the result; the default is float32 for float32 items, float64 otherwise.
        out : ndarray of shape (n_samples_X, n_samples_Y), optional
            Where to put the result: C-contiguous, of the dtype of the result. A call that is
            interrupted leaves it unusable.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The result is
            the same, bit for bit, for every value.
        progress : bool or callable, default False
            True draws a bar (extra ``cli``); a callable is called with (tiles done, tiles).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Of two images with captions, the mean over all pairs of their captions; 0 where
            an image has none.

        Raises
        ------
        TypeError
            If an input does not hold real numbers, or Numba cannot compile the function for
            its dtype.
        ValueError
            If the widths of two matrices differ, two inputs have different vocabularies, or
            the function returns NaN or infinity for a pair, which the message names.
        Exception
            Whatever the function raises.

        Notes
        -----
        Integers stay integers; items of different dtypes are converted to a common one.
        The first call for a dtype compiles, for a second or so. Ctrl-C stops a call after the
        pair that each thread is at.
        """
        left, right = _as_ragged(X, Y)
        if dtype is None:
            dtype = np.float32 if left.values.dtype == np.float32 else np.float64
        kind = check_float_dtype("dtype", dtype)
        shape = (left.n_rows, right.n_rows)
        inputs = (left.values, right.values)
        result = result_for(out, shape, kind, inputs)
        mirrored, threads = self.symmetric and Y is None, resolve_n_threads(n_threads)
        fill_tile = self._compile((left, right), mirrored, stop_flag(), result)

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            stop = stop_flag()
            bounds = (rows.start, rows.stop, columns.start, columns.stop)
            fill_tile((left, right), bounds, mirrored, stop, result)
            check_stopped()
            values = result[rows, columns]
            if not np.isfinite(values).all():
                i, j = np.argwhere(~np.isfinite(values))[0]
                name = "X" if Y is None else "Y"
                raise ValueError(
                    f"fn must return finite numbers, got {values[i, j]} for "
                    f"X[{rows.start + i}] and {name}[{columns.start + j}]"
                )

        # The items of a tile fit into the cache, and all threads get tiles.
        n_bytes = max(part.values.nbytes // max(part.n_rows, 1) for part in (left, right))
        per_side = math.isqrt(_TILES_PER_THREAD * threads)
        side = min(_TILE_BYTES // max(n_bytes, 1), max(shape) // per_side)
        side = min(max(side, _SMALLEST_TILE), _LARGEST_TILE)
        tiles = list(square_tiles(*shape, side, mirrored=mirrored))
        with reporting(progress, "custom kernel") as report:
            in_threads(fill, tiles, threads, report=report)
        return result

    def _compile(self, sides: tuple[_Ragged, _Ragged], *others: Any) -> Any:
        """Return the function that fills a tile, compiled for the types of the inputs."""
        try:
            self._fill(sides, (0, 0, 0, 0), *others)
        except _extras.require("numba").errors.NumbaError as error:
            raise TypeError(
                "fn must return a real number for two read-only 1-D arrays of "
                f"{sides[0].values.dtype}, which Numba could not compile it for: {error}"
            ) from error
        return self._fill

    @cached_property
    def _fill(self) -> Any:
        """Function that fills a tile with the means over the pairs of items of its rows."""
        njit, fn = _extras.require("numba").njit, self.fn

        def fill(sides: Any, tile: Any, mirrored: bool, stop: Any, result: Any) -> None:
            (left, starts, rows), (right, ends, columns) = sides
            for i in range(tile[0], tile[1]):
                first = max(tile[2], i) if mirrored else tile[2]
                totals = np.zeros(tile[3] - first)
                for a in range(rows[i], rows[i + 1]):
                    x = left[starts[a] : starts[a + 1]]
                    for j in range(first, tile[3]):
                        if stop[0]:
                            return
                        for b in range(columns[j], columns[j + 1]):
                            totals[j - first] += float(fn(x, right[ends[b] : ends[b + 1]]))
                for j in range(first, tile[3]):
                    n_pairs = (rows[i + 1] - rows[i]) * (columns[j + 1] - columns[j])
                    result[i, j] = totals[j - first] / max(n_pairs, 1)
                    if mirrored:
                        result[j, i] = result[i, j]

        return njit(fill, nogil=True)


class _Ragged(NamedTuple):
    """Items end to end, where each starts, and where the items of each row of K start."""

    values: Array
    items: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        return len(self.rows) - 1

    def astype(self, name: str, dtype: np.dtype[Any]) -> _Ragged:
        values = self.values
        if values.dtype != dtype:  # checked: large integers may not fit into float64
            keep = () if dtype == np.float64 else (values.dtype,)
            values = as_real_array(name, values, ndim=1, keep=keep).astype(dtype)
        values = values.view()
        values.flags.writeable = False
        return self._replace(values=values)


def _as_ragged(X: Any, Y: Any) -> tuple[_Ragged, _Ragged]:
    """Both inputs with items of one dtype; `X` twice if `Y` is omitted."""
    X, Y = (value.samples if isinstance(value, Prepared) else value for value in (X, Y))
    if isinstance(X, EncodedCaptions) or isinstance(Y, EncodedCaptions):
        pair = as_captions(X, Y)
        left, right = (
            _Ragged(side.word_ids, side.caption_offsets, side.image_offsets) for side in pair
        )
        return left, right
    if isinstance(X, (list, tuple)) or isinstance(Y, (list, tuple)):
        left = _from_list("X", X)
        right = left if Y is None else _from_list("Y", Y)
    else:
        left = _from_matrix("X", X)
        right = left if Y is None else _from_matrix("Y", Y)
        if Y is not None and np.shape(X)[1] != np.shape(Y)[1]:
            raise ValueError(
                f"Y must have as many columns as X ({np.shape(X)[1]}), got {np.shape(Y)[1]}"
            )
    dtype = np.result_type(left.values, right.values)
    rows = left.astype("X", dtype)
    return rows, rows if Y is None else right.astype("Y", dtype)


def _from_matrix(name: str, value: Any) -> _Ragged:
    matrix = as_real_array(name, value, ndim=2, keep=_KEPT)
    every = np.arange(len(matrix) + 1)
    return _Ragged(matrix.reshape(-1), every * matrix.shape[1], every)


def _from_list(name: str, value: Any) -> _Ragged:
    arrays = [
        as_real_array(f"{name}[{i}]", item, ndim=1, keep=_KEPT) for i, item in enumerate(value)
    ]
    filled = [array for array in arrays if array.size]  # an empty list says nothing of its kind
    values = np.concatenate(filled) if filled else np.empty(0)
    return _Ragged(
        values, offsets_of([len(array) for array in arrays]), np.arange(len(arrays) + 1)
    )
