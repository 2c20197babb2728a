"""Every example of the gallery runs, and the gallery uses every public name."""

import ast
import importlib

import pytest
from names import public_names
from pages import ROOT

from kernelcore.errors import MissingExtraError

EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))

# They need Java, a network or another file that the gallery does not have, or never end.
NOT_SHOWN = {
    "kernelcore.evaluation.caption_metrics.meteor",
    "kernelcore.evaluation.caption_metrics.spice",
    "kernelcore.images.FastestDet",
    "kernelcore.web.serve",
}


def classes_in(values):
    """Classes of objects, and of what lists and mappings of them hold."""
    for value in values:
        yield type(value)
        if isinstance(value, list | tuple):
            yield from map(type, value)
        if isinstance(value, dict):
            yield from map(type, value.values())


def imported_by(source):
    """Objects that a program imports from the package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelcore"):
            module = importlib.import_module(node.module)
            for name in node.names:
                yield getattr(module, name.name)


@pytest.fixture(scope="module")
def used():
    """Objects that the examples import, and classes of the objects that they make."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example, used, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot.switch_backend("agg")
    source = example.read_text("utf-8")
    names = {"__name__": "__main__"}
    try:
        exec(compile(source, example.name, "exec"), names)
        used[example] = {id(value) for value in imported_by(source)}
    except (MissingExtraError, ModuleNotFoundError) as error:
        if str(error.name).startswith("kernelcore"):
            raise
        pytest.skip(str(error))
    finally:
        pyplot.close("all")
    used[example] |= {id(kind) for kind in classes_in(names.values())}


@pytest.mark.slow
def test_the_gallery_uses_every_public_name(used):
    if len(used) < len(EXAMPLES):
        pytest.skip("not all examples ran")
    found = set().union(*used.values())
    missing = []
    for names in public_names():
        module, _, last = min(names, key=len).rpartition(".")
        value = getattr(importlib.import_module(module), last)
        if id(value) not in found and not names & NOT_SHOWN:
            missing.append(min(names, key=len))
    assert not sorted(missing)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_begins_with_a_title_and_says_what_it_shows(example):
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    title, rule, blank, *rest = docstring.splitlines()
    assert set(rule) == {"="}
    assert len(rule) == len(title)
    assert not blank
    assert len(" ".join(rest)) > 60
