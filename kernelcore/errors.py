"""Public errors and warnings of the package.

All other errors are Python's own: `TypeError` for a wrong type, `ValueError` for a wrong value
or shape, `FileNotFoundError` for a missing file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = [
    "DatasetWarning",
    "MissingExtraError",
    "NotFittedError",
    "UnreadableImageError",
    "UnreadableImagesError",
    "UnreadableImagesWarning",
]


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


class UnreadableImageError(ValueError):
    """An image file that cannot be used; the message names the file and the reason."""


class UnreadableImagesError(ValueError):
    """Image files that cannot be used; the message lists every one of them.

    Attributes
    ----------
    failures : dict of int to str
        Position of each such image in the input, and the reason.
    """

    def __init__(self, failures: Mapping[int, str], n_images: int) -> None:
        self.failures = dict(failures)
        self.n_images = n_images
        super().__init__(describe_failures(failures, n_images))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failures, self.n_images)


class UnreadableImagesWarning(UserWarning):
    """Image files were left out because they cannot be used; the message lists them."""


def describe_failures(failures: Mapping[int, str], n_images: int) -> str:
    """Say in one message which of `n_images` images failed and why."""
    lines = "".join(f"\n  {reason}" for reason in failures.values())
    return f"{len(failures)} of {n_images} images cannot be read:{lines}"
