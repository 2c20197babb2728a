"""Renamed arguments: the old name still works, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def renamed(**names: str) -> Callable[[Callable[_Params, _Result]], Callable[_Params, _Result]]:
    """Accept arguments under the names of an earlier version.

    Parameters
    ----------
    **names
        The new name of each old one. Signatures show the new names only.

    Examples
    --------
    >>> import warnings
    >>> from kernelcore._renamed import renamed
    >>> @renamed(colour="color")
    ... def paint(color):
    ...     return f"all {color}"
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     paint(colour="red")
    'all red'
    >>> print(told[0].message)
    colour is called color now
    """

    def with_old_names(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
        @wraps(function)
        def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
            for old, new in names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{old} is called {new} now, got both")
                    warnings.warn(
                        f"{old} is called {new} now", DeprecationWarning, stacklevel=2
                    )
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return with_old_names
