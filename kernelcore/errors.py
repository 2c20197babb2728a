"""Public errors and warnings of the package.

All other errors are Python's own: `TypeError` for a wrong type, `ValueError` for a wrong value
or shape, `FileNotFoundError` for a missing file.
"""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class UnreadableImageError(ValueError):
        """The same class as `kernelcore.images.UnreadableImageError`."""


__all__ = ["DatasetWarning", "MissingExtraError", "NotFittedError", "UnreadableImageError"]


class NotFittedError(ValueError, AttributeError):
    """The estimator was used before it was fitted.

    If scikit-learn is imported when it is raised, it is also a
    `sklearn.exceptions.NotFittedError`, so that code that catches that error catches this one.

    Examples
    --------
    >>> import sklearn.exceptions
    >>> from kernelcore.kernels import GramCenterer
    >>> try:
    ...     GramCenterer().transform([[1.0]])
    ... except sklearn.exceptions.NotFittedError as error:
    ...     print(error)
    this GramCenterer must be fitted first: call fit
    """

    def __new__(cls, *args: Any) -> NotFittedError:
        """Return an error of both classes if scikit-learn is imported."""
        theirs = sys.modules.get("sklearn.exceptions")
        if theirs is None or cls is not NotFittedError:
            return super().__new__(cls, *args)
        return super().__new__(_of_both_kinds(theirs.NotFittedError), *args)

    def __reduce__(self) -> tuple[type[NotFittedError], tuple[Any, ...]]:
        return NotFittedError, self.args


@lru_cache(maxsize=1)
def _of_both_kinds(theirs: type[Exception]) -> type[NotFittedError]:
    names = {"__module__": __name__, "__doc__": NotFittedError.__doc__}
    return type(NotFittedError.__name__, (NotFittedError, theirs), names)


class MissingExtraError(ImportError):
    """An optional package is needed for this call and is not installed."""


class DatasetWarning(UserWarning):
    """Rows of a collection could not be used unchanged, or are in two parts of it."""


def __getattr__(name: str) -> Any:
    if name == "UnreadableImageError":  # defined beside the reader that raises it
        return importlib.import_module("kernelcore.images").UnreadableImageError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
