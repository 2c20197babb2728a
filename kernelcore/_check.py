"""Checks of user input. Every message names the argument, the rule and the value.

``TypeError`` is for a wrong type, ``ValueError`` for a wrong value or shape.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore import _core

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Array = npt.NDArray[Any]


_LARGEST_INTEGER = int(np.iinfo(np.int64).max)
_LONGEST_DESCRIPTION = 200  # characters of a value in a message


def check_integer(
    name: str, value: Any, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return `value` as an int between the bounds, both included.

    No integer beyond 64 bits is let through, as neither NumPy nor the core could hold it.
    """
    number: int = value
    if type(value) is not int:
        check_no_mask(name, value)
        if isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be an integer, got {_describe(value)}") from None
    lowest = -_LARGEST_INTEGER if minimum is None else minimum
    highest = _LARGEST_INTEGER if maximum is None else maximum
    if not lowest <= number <= highest:
        bound = f">= {lowest}" if number < lowest else f"<= {highest}"
        raise ValueError(f"{name} must be an integer {bound}, got {_show(number)}")
    return number


def check_real(
    name: str,
    value: Any,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive: bool = False,
) -> float:
    """Return `value` as a finite float; `exclusive` excludes the minimum itself."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {_describe(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite in float64, got {_describe(value)}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    if minimum is not None and (number < minimum or (exclusive and number == minimum)):
        bound = f"{'>' if exclusive else '>='} {minimum}"
        raise ValueError(f"{name} must be a number {bound}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be a number <= {maximum}, got {number}")
    return number


def check_flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {_show(value)}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}, got {_show(value)}")
    return value


def check_callable(name: str, value: Any) -> Any:
    """Return `value` if it can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {_describe(value)}")
    return value


def check_rng(name: str, value: Any) -> np.random.Generator:
    """Return a random generator: `value` itself, or one seeded with it."""
    if value is None or isinstance(value, np.random.Generator):
        return np.random.default_rng(value)
    return np.random.default_rng(check_integer(name, value, minimum=0))


def drawn_seed(name: str, value: Any) -> int:
    """Return a seed: `value` itself, or a number drawn from it if it is a generator or None.

    It is for callers that must record the seed or start from it repeatedly.
    """
    if value is None or isinstance(value, np.random.Generator):
        return int(np.random.default_rng(value).integers(2**63))
    return check_integer(name, value, minimum=0)


def as_list(name: str, value: Any, rule: str = "be a sequence") -> list[Any]:
    """Return the items of an iterable; an iterator is read to its end."""
    check_no_mask(name, value)
    is_one = isinstance(value, (str, bytes, Mapping)) or hasattr(value, "tocsr")
    try:
        if not is_one:
            return list(value)
    except TypeError:  # no iterable, or an array without dimensions
        pass
    except RuntimeError as error:  # a set of another thread's, say
        raise ValueError(f"{name} must not change while it is read: {error}") from None
    raise TypeError(f"{name} must {rule}, got {_kind(value)}")


def as_ordered_list(name: str, value: Any, rule: str = "be a sequence") -> list[Any]:
    """Return the items of an iterable that has an order, so not of a set."""
    if isinstance(value, (set, frozenset)):
        raise TypeError(f"{name} must {rule}, got {_kind(value)}, which has no order")
    return as_list(name, value, rule)


def as_strings(name: str, value: Any, *, unique: bool = False) -> list[str]:
    """Return a sequence of strings as a list, of which none comes twice if `unique`."""
    rule = "be a sequence of strings"
    if isinstance(value, str):
        raise TypeError(f"{name} must {rule}, got {value!r:.80}")
    texts = as_ordered_list(name, value, rule)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name} must {rule}, got {text!r:.80} at [{i}]")
    if unique and len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"{name} must be unique, got {twice!r:.80} repeatedly")
    return texts


def as_array(name: str, value: Any, *, ndim: int) -> Array:
    """Return `value` as an array of any dtype; errors ask for `ndim` dimensions."""
    check_no_mask(name, value)
    try:
        array = np.asarray(value)
    except MemoryError:
        raise
    except ValueError:  # ragged nested lists
        raise ValueError(
            f"{name} must be a {ndim}-D array, got rows of unequal length"
        ) from None
    except Exception as error:  # a tensor that NumPy cannot read, say
        raise TypeError(
            f"{name} must be a {ndim}-D array, got {_kind(value)}: {error}"
        ) from None
    if array.ndim == 0 and array.dtype.kind == "O":  # NumPy wraps objects it cannot read
        raise TypeError(f"{name} must be a {ndim}-D array, got {_kind(value)}")
    return array


def _is_laid_out(value: Any, ndim: int) -> TypeGuard[Array]:
    """Whether there is nothing to convert but its type: small arrays come very often."""
    return (
        type(value) is np.ndarray
        and value.ndim == ndim
        and (flags := value.flags).c_contiguous
        and flags.aligned
    )


def as_real_array(name: str, value: Any, *, ndim: int, keep: Iterable[Any] = ()) -> Array:
    """Return `value` as a C-contiguous array of `ndim` dimensions in the machine's byte order.

    float32, float64 and the dtypes in `keep` are kept; every other real dtype is copied to
    float64, which must hold its integers exactly.
    """
    if _is_laid_out(value, ndim) and value.dtype.char in "fd" and value.dtype.isnative:
        return value
    array = as_array(name, value, ndim=ndim)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    _check_ndim(name, array, ndim)
    dtype = array.dtype.newbyteorder("=")
    if dtype not in {np.dtype(np.float32), np.dtype(np.float64), *map(np.dtype, keep)}:
        if (
            dtype.kind in "iu"
            and array.size
            and max(-int(array.min()), int(array.max())) > 2**53
        ):
            raise ValueError(f"{name} must hold integers of at most 2**53, got larger ones")
        dtype = np.dtype(np.float64)
    return np.require(array, dtype, ["C", "ALIGNED", "ENSUREARRAY"])


def as_integer_array(name: str, value: Any, *, ndim: int, dtype: Any) -> Array:
    """Return `value`, integers that all fit into `dtype`, as a C-contiguous array of it."""
    if _is_laid_out(value, ndim) and value.dtype == dtype:
        return value
    array = as_array(name, value, ndim=ndim)
    _check_ndim(name, array, ndim)
    if array.size == 0 and not isinstance(value, np.ndarray):
        array = array.astype(dtype)  # an empty list says nothing of its kind
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise ValueError(
            f"{name} must fit into {np.dtype(dtype)}, "
            f"got values from {array.min()} to {array.max()}"
        )
    return np.require(array, dtype, ["C", "ALIGNED", "ENSUREARRAY"])


def check_indices(name: str, value: Any, length: int) -> npt.NDArray[np.intp]:
    """Return `value` as positions in a sequence of this length, counted from its start."""
    indices: npt.NDArray[np.intp] = as_integer_array(name, value, ndim=1, dtype=np.intp)
    if indices.size and (indices.min() < 0 or indices.max() >= length):
        raise ValueError(
            f"{name} must lie in [0, {length}), "
            f"got values from {indices.min()} to {indices.max()}"
        )
    return indices


def check_float_dtype(name: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` if it is float32 or float64."""
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be float32 or float64, got {_show(dtype)}") from None
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"{name} must be float32 or float64, got {kind}")
    return kind


def check_finite(name: str, array: Array, *, n_threads: int = 1) -> Array:
    """Return `array` if it holds neither NaN nor infinity."""
    is_float = array.dtype.kind == "f" and array.size
    if not is_float or scan_values(array, n_threads).is_finite:
        return array
    rows = np.atleast_1d(array)
    where = _first(~np.isfinite(rows))
    raise ValueError(f"{name} must be finite, got {rows[*where]} at {where}")


def check_non_negative(name: str, array: Array, *, n_threads: int = 1) -> Array:
    """Return `array` if it holds finite numbers >= 0 only."""
    found = scan_values(array, n_threads)
    if found.is_finite and found.smallest >= 0:
        return array
    check_finite(name, array)
    where = _first(array < 0)
    raise ValueError(f"{name} must be non-negative, got {array[*where]} at {where}")


def check_no_mask(name: str, value: Any) -> Any:
    """Return `value`; raise if it has masked elements, which no function here leaves out."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    for part in parts:
        is_array = hasattr(part, "mask")  # of numpy.ma, perhaps, which takes 10 ms to import
        if is_array and isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} must have no masked elements, got "
                f"{np.count_nonzero(np.ma.getmaskarray(part))}; fill them or leave them out"
            )
    return value


def as_csr(name: str, value: Any, *, counts: Collection[Any] = ()) -> csr_array:
    """Return a sparse matrix as a CSR copy, with ascending columns and without duplicates.

    Its indices are copied and then checked, in any format: the compiled code of SciPy and of
    this package trusts them. The dtypes in `counts` become uint64, float32 and float64 are
    kept, and all others become float64, before duplicates are summed.
    """
    from scipy.sparse import coo_array, csr_array, issparse

    matrix: Any = value if issparse(value) else value.tocsr()
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a 2-D array, got shape {matrix.shape}")
    data = getattr(matrix, "data", None)  # SciPy looks at its type only where it copies
    given = (
        data.dtype if isinstance(data, np.ndarray) and data.dtype != object else matrix.dtype
    )
    if given.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {given}")
    is_float = given in (np.float32, np.float64)
    dtype = np.dtype(np.uint64) if given in counts else given if is_float else np.float64
    for part in ("indices", "indptr", "row", "col"):
        if getattr(matrix, part, np.empty(0, int)).dtype.kind not in "iu":
            raise TypeError(f"{name} must have integers as indices, got others in its {part}")
    try:
        matrix = matrix.copy()
        offsets = getattr(matrix, "indptr", np.zeros(1))
        if (offsets[1:] < offsets[:-1]).any():  # SciPy takes differences, which overflow
            raise ValueError("index pointer values must never fall")
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            parts = (matrix.data.astype(dtype), (matrix.row, matrix.col))
            matrix = coo_array(parts, shape=matrix.shape)
        rows = csr_array(matrix.astype(dtype))
        rows.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{name} must be a valid sparse array: {error}") from None
    if given.kind in "iu" and np.abs(rows.data).max(initial=0) > 2**53:
        raise ValueError(f"{name} must hold integers of at most 2**53, got larger ones")
    rows.sum_duplicates()
    if given in counts and rows.data.max(initial=0) > np.iinfo(np.uint32).max:
        raise ValueError(f"{name} must hold counts below 2**32, got {rows.data.max()}")
    return rows


@contextmanager
def no_overflow(name: str, rule: str) -> Iterator[None]:
    """Raise an error about the argument `name` if NumPy's arithmetic overflows in the block."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise ValueError(f"{name} must {rule}, got an {error}") from None


def as_float32(name: str, array: Array) -> npt.NDArray[np.float32]:
    """Return a matrix of float32; raise if a number is too large for it or a row too small."""
    with no_overflow(name, "fit into float32"):
        rows: npt.NDArray[np.float32] = array.astype(np.float32, copy=False)
    if rows is not array:
        lost = array.any(axis=1) & ~rows.any(axis=1)
        if lost.any():
            first = int(lost.argmax())
            raise ValueError(
                f"{name} must fit into float32, got a row whose largest number is "
                f"{np.abs(array[first]).max():.2g} at [{first}]"
            )
    return rows


def result_for(out: Any, shape: tuple[int, ...], dtype: Any, inputs: Iterable[Any]) -> Array:
    """Return a new array for a result, or `out` if the result can be written into it.

    `inputs` are what it must not overlap; those that are no arrays are left out.
    """
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"out must be a NumPy array, got {_describe(out)}")
    if out.dtype != dtype:
        raise TypeError(f"out must have dtype {np.dtype(dtype)}, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out must have shape {shape}, got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out must be writeable and C-contiguous")
    arrays = (value for value in inputs if isinstance(value, np.ndarray))
    if any(np.may_share_memory(out, array) for array in arrays):
        raise ValueError("out must not overlap an input")
    return out


def _check_ndim(name: str, array: Array, ndim: int) -> None:
    if array.ndim != ndim:
        raise ValueError(f"{name} must be a {ndim}-D array, got shape {array.shape}")


def _describe(value: Any) -> str:
    return f"{_show(value)} of {_kind(value)}"


def _kind(value: Any) -> str:
    return f"type {type(value).__name__}"


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # an integer of more digits than Python prints, say
        return "a value that cannot be shown"
    return text if len(text) <= _LONGEST_DESCRIPTION else text[:_LONGEST_DESCRIPTION] + "..."


def _first(flags: Array) -> list[int]:
    """Position of the first True element, or of the first element if there is none."""
    return [int(axis) for axis in np.unravel_index(int(flags.argmax()), flags.shape)]


_Scalar = TypeVar("_Scalar", bound=np.generic)


def owned(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return a read-only copy, which changes of the original do not affect."""
    return sealed(np.array(array, order="C"))


def sealed(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return a read-only view of an array, or of a copy if other arrays can write into it.

    NumPy refuses to make such a view writeable again.
    """
    if isinstance(array.base, np.ndarray) and array.base.flags.writeable:
        array = array.copy()
    array.flags.writeable = False
    view: npt.NDArray[_Scalar] = array.view()
    return view


_DTYPES = {np.dtype(kind) for kind in (np.float32, np.float64, np.uint8, np.uint16, np.uint32)}
_BYTES_PER_THREAD = 2**22  # fewer are read in less time than a thread takes to start


class Extremes(NamedTuple):
    """Result of one pass over an array; the other values are undefined if it is not finite.

    Attributes
    ----------
    smallest, largest : float
        Smallest and largest value; 0 for an empty array.
    is_finite : bool
        Whether no value is NaN or infinite.
    gap : float or None
        Largest difference between a square matrix and its transpose, if it was computed.
    """

    smallest: float
    largest: float
    is_finite: bool
    gap: float | None = None


def scan_values(array: npt.NDArray[Any], n_threads: int) -> Extremes:
    """Scan the values of an array, in one compiled pass if its dtype and layout allow it."""
    dtype, flags = array.dtype, array.flags
    if dtype in _DTYPES and dtype.isnative and flags.c_contiguous and flags.aligned:
        threads = min(n_threads, 1 + array.nbytes // _BYTES_PER_THREAD)
        return Extremes(*_core.scan_values(array, threads))
    if not array.size:
        return Extremes(0.0, 0.0, True)
    is_finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return Extremes(float(array.min()), float(array.max()), is_finite)


def scan_gram(
    K: npt.NDArray[Any], n_threads: int, copy: npt.NDArray[Any] | None = None
) -> Extremes:
    """Scan the values and the asymmetry of a square matrix of floats, or of its copy."""
    threads = min(n_threads, 1 + K.nbytes // _BYTES_PER_THREAD)
    return Extremes(*_core.scan_gram(K, threads, copy))
