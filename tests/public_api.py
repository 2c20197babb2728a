"""Public callables of the package, found by introspection, for tests of its habits."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import kernelcore
from kernelcore._extras import MissingExtraError

# Parameters of commands are options of the command line; the references import nothing.
NOT_AN_API = {"cli", "reference", "__main__"}


def public_modules() -> Iterator[Any]:
    """Modules whose whole path is public, the package first."""
    yield kernelcore
    for info in pkgutil.walk_packages(kernelcore.__path__, "kernelcore.", lambda _: None):
        parts = info.name.split(".")[1:]
        if parts[0] in NOT_AN_API or any(part.startswith("_") for part in parts):
            continue
        try:
            yield importlib.import_module(info.name)
        except MissingExtraError:
            continue


def methods_of(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """A callable and, of a class, its public methods, by name."""
    yield name, found
    if inspect.isclass(found):
        for method, function in inspect.getmembers(found, inspect.isroutine):
            own = getattr(function, "__module__", None) or ""
            if own.startswith("kernelcore") and not method.startswith("_"):
                yield f"{name}.{method}", function


def defined_callables() -> dict[str, Any]:
    """Every callable with a public name that a public module defines."""
    found: dict[str, Any] = {}
    for module in public_modules():
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", None) == module.__name__
            if callable(value) and is_own and not name.startswith("_"):
                found.update(methods_of(f"{module.__name__}.{name}", value))
    return found


def exported_callables() -> dict[str, Any]:
    """What `__all__` of a public package hands out, and the experiments' `run`."""
    found: dict[str, Any] = {}
    namespaces: set[str] = set()
    for module in public_modules():
        is_public = hasattr(module, "__path__") or module.__name__ in namespaces
        names = list(getattr(module, "__all__", ()) if is_public else ())
        namespaces |= {
            f"{module.__name__}.{name}"
            for name in names
            if inspect.ismodule(getattr(module, name))
        }
        if module.__name__.startswith("kernelcore.experiments.") and hasattr(module, "run"):
            names.append("run")
        for name in names:
            try:
                value = getattr(module, name)
            except MissingExtraError:
                continue
            if callable(value):
                found.update(methods_of(f"{module.__name__}.{name}", value))
    return found


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """Parameters by name; none where there is no signature to be had."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}
