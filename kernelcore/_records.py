"""Records that are checked once and then trusted: they own what they hold."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Scalar = TypeVar("_Scalar", bound=np.generic)


def owned(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return a read-only copy: whatever the caller does to his array, this one stays."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


class CheckedRecord:
    """Base of dataclasses that compiled code trusts: a pickle or a deep copy is checked anew.

    Restored field by field, the arrays would be writeable, and nobody would have looked at
    them.
    """

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Restore through the constructor."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return partial(type(self), **values), ()
