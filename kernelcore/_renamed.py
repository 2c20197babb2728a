"""Old names of arguments and of exported functions: they still work, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

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


def moved(
    package: str,
    places: Mapping[str, Sequence[str]],
    *,
    replaced: Mapping[str, tuple[str, Any]] | None = None,
    gone: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that finds what it exported in an earlier version.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    places : mapping of str to sequence of str
        Modules, and the names that are there now.
    replaced : mapping of str to (str, object), optional
        What to write in place of each old call, such as ``"sorted(x)"``, and what the old name
        is until then.
    gone : mapping of str to str, optional
        What to write in place of an old name that cannot go on working. It is no attribute; an
        import of it says what to write.

    Examples
    --------
    >>> import warnings
    >>> from kernelcore._renamed import moved
    >>> find = moved("letters", {"string": ["ascii_lowercase"]})
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     find("ascii_lowercase")[:3]
    'abc'
    >>> print(told[0].message)
    letters.ascii_lowercase is string.ascii_lowercase now
    """
    found = {name: f"{place}.{name}" for place, names in places.items() for name in names}

    def warn(what: str) -> None:
        text = f"{package}.{what} now"
        warnings.warn(text, DeprecationWarning, stacklevel=3)

    def find(name: str) -> Any:
        if gone and name in gone:
            # hasattr is False only for an AttributeError, and `from ... import` drops its text
            asks = sys._getframe(1).f_globals.get("__name__")
            error = ImportError if asks == "importlib._bootstrap" else AttributeError
            raise error(f"{package}.{name} is gone: write {gone[name]}")
        if replaced and name in replaced:
            new, old = replaced[name]
            warn(f"{name}(...) is {new}")
            return old
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, new = found[name].rpartition(".")
        warn(f"{name} is {found[name]}")
        return getattr(importlib.import_module(module), new)

    return find
