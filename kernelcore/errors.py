"""Errors and warnings of this package that a caller may want to catch by name.

Everything else is one of Python's own: `TypeError` for the wrong kind of thing, `ValueError`
for a wrong value or shape, `FileNotFoundError` for a file that is not there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class UnreadableImageError(ValueError):
        """See `kernelcore.images.UnreadableImageError`, which this is."""


__all__ = ["DatasetWarning", "MissingExtraError", "NotFittedError", "UnreadableImageError"]


class NotFittedError(ValueError, AttributeError):
    """The estimator was used before it was fitted."""


class MissingExtraError(ImportError):
    """An optional package is needed for this call and is not installed."""


class DatasetWarning(UserWarning):
    """Rows of a collection that could not be used as they stand, counted and named."""


def __getattr__(name: str) -> Any:
    if name == "UnreadableImageError":  # it stands beside the reader that raises it
        return importlib.import_module("kernelcore.images").UnreadableImageError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
