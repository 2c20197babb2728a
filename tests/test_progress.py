"""Progress of long calls, to a callable, to a bar or to nobody."""

import importlib
import inspect
import pkgutil

import pytest

import kernelcore
from kernelcore._extras import MissingExtraError
from kernelcore._progress import reporting, working


def public_functions():
    """Functions of every package and methods of its classes, by name."""
    for info in pkgutil.iter_modules(kernelcore.__path__, "kernelcore."):
        if info.ispkg and not info.name.endswith(("experiments", "cli", "reference")):
            yield from exported_of(importlib.import_module(info.name))


def exported_of(module):
    for name in module.__all__:
        try:
            public = getattr(module, name)
        except MissingExtraError:
            continue
        if inspect.ismodule(public) and hasattr(public, "__all__"):
            yield from exported_of(public)
        elif inspect.isfunction(public):
            yield f"{module.__name__}.{name}", public
        elif inspect.isclass(public):
            for method, function in inspect.getmembers(public, inspect.isfunction):
                if not method.startswith("_") or method == "__init__":
                    yield f"{module.__name__}.{name}.{method}", function


def test_nobody_is_told_unless_asked():
    defaults = {
        name: parameter.default
        for name, public in public_functions()
        for parameter in inspect.signature(public).parameters.values()
        if parameter.name == "progress"
    }
    assert len(defaults) > 30
    assert all(default is False for default in defaults.values()), defaults


def test_a_callable_is_told_every_step_and_nobody_nothing():
    calls = []
    with reporting(lambda done, total: calls.append((done, total)), "Counting") as report:
        for done in range(1, 4):
            report(done, 3)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    with reporting(False, "Counting") as report:
        assert report is None


def test_a_step_without_parts_is_told_once_it_is_done():
    calls = []
    with working(lambda *steps: calls.append(steps), "Thinking"):
        assert calls == []
    assert calls == [(1, 1)]
    with working(False, "Thinking"):
        pass


def test_a_step_that_failed_is_not_told_as_done():
    calls = []
    with (
        pytest.raises(RuntimeError, match="headache"),
        working(lambda *steps: calls.append(steps), "Thinking"),
    ):
        raise RuntimeError("headache")
    assert calls == []


def test_a_bar_goes_to_stderr_and_carries_its_description(capsys):
    with reporting(True, "Counting") as report:
        report(2, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Counting" in captured.err
    assert "2/2" in captured.err
