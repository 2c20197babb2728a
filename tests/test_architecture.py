"""The layers: who may import whom, in Python and in C++."""

import ast
import functools
import re
from pathlib import Path

import pytest

import kernelcore

ROOT = Path(__file__).parents[1]
PACKAGE = Path(kernelcore.__file__).parent

PARTS = "check", "estimator", "extras", "looking", "photos", "ragged", "store", "threads"
FOUNDATION = {"errors", *(f"_{part}" for part in PARTS)}
PLAIN_TYPES = {"captions.encoded", "images.pyramid"}
PLAIN_TYPES |= {f"datasets.{part}" for part in ("records", "judgments", "selections")}
PLAIN_TYPES |= {"captions.tokens"}  # plain functions and lists
PEERS = {"captions", "images", "kernels", "matching", "evaluation", "datasets"}
MIDDLE = {"lexical", "kcca"}
UPPER = {"models", "deep", "distributed"}
CONTRACT = {"models"}  # of rankers, which those of `deep` and `distributed` keep too
BELOW_TOP = {"plots", "search"}  # both on the models, neither on the other
TOP = {"experiments", "report", "cli", "web"}


def allowed(part: str) -> set[str]:
    """Everything of kernelcore that a module of `part` may import."""
    if part == "errors":
        return set()
    # The checks have a compiled pass; `import kernelcore` reaches the version and what is lazy.
    may = FOUNDATION | {"_core", "__init__"}
    if part in FOUNDATION:
        return may
    if part in PEERS:
        return may | PLAIN_TYPES | {part}
    may |= PEERS | {part}
    if part not in MIDDLE:
        may |= MIDDLE | (CONTRACT if part in UPPER else UPPER)
    return may | (BELOW_TOP | TOP if part not in MIDDLE | UPPER | BELOW_TOP else set())


@functools.cache
def modules() -> list[Path]:
    paths = sorted(PACKAGE.rglob("*.py")) + sorted(PACKAGE.rglob("*.pyx"))
    without = {"reference", "__init__.py"}
    return [path for path in paths if path.relative_to(PACKAGE).parts[0] not in without]


@functools.cache
def imported_names(path: Path) -> set[str]:
    """What of kernelcore the module at `path` imports, as dotted names below it."""
    if path.suffix == ".pyx":
        pattern = r"(?:from|cimport|import)\s+kernelcore\.([\w.]+)"
        return set(re.findall(pattern, path.read_text()))
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            assert node.module is not None
            if node.module == "kernelcore":
                names |= {f"kernelcore.{alias.name}" for alias in node.names}
            else:
                names.add(node.module)
    own = [name for name in names if name.split(".")[0] == "kernelcore"]
    return {name.removeprefix("kernelcore").lstrip(".") or "__init__" for name in own}


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_imports_go_one_way(path):
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    may = allowed(part)
    for name in imported_names(path):
        top = name.split(".")[0]
        assert top in may or name in may, f"{part} may not import kernelcore.{name}"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_when_loaded(path: Path, known: set[str]) -> set[str]:
    """Modules that the module at `path` imports at its top level."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {name.removeprefix("kernelcore.") for name in names} & known
    return found


def test_no_module_imports_itself_in_a_circle():
    paths = {module_of(p): p for p in modules() if p.suffix == ".py" and p.stem != "__init__"}
    left = {name: imports_when_loaded(path, set(paths)) for name, path in paths.items()}
    assert sum(map(len, left.values())) > len(left)  # the graph is not empty
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]
    assert not left, f"circular imports among {sorted(left)}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "reference").glob("*.py")))
def test_reference_stands_alone(path):
    assert imported_names(path) <= {f"reference.{path.stem}"}


def test_reference_is_imported_by_no_module():
    for path in modules():
        assert not any(name.startswith("reference") for name in imported_names(path)), path


def test_each_compiled_kernel_is_called_from_one_place():
    callers: dict[str, set[Path]] = {}
    for path in modules():
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"from kernelcore\.\w*_core import", source), path
        for function in re.findall(r"\b_core\.(\w+)\(", source):
            callers.setdefault(function, set()).add(path)
    assert len(callers) > 10
    for function, paths in callers.items():
        assert len(paths) == 1, f"_core.{function} is called from {paths}"


CSRC = ROOT / "csrc"
SUBJECTS = {"assignment", "captions", "histograms", "ranks", "scan"}
INCLUDES = {
    "common": {"common"},
    **{subject: {"common", subject} for subject in SUBJECTS},
    "captions": {"assignment", "captions", "common"},  # the word assignment solves assignments
    "bindings": {"bindings", "common"} | SUBJECTS,
}


@pytest.mark.skipif(not CSRC.is_dir(), reason="the C++ sources are not here")
def test_includes_go_one_way():
    sources = sorted(CSRC.rglob("*.?pp"))
    assert sources
    for path in sources:
        part = path.relative_to(CSRC).parts[0]
        text = path.read_text()
        for include in re.findall(r'#include "([^"]+)"', text):
            assert include.split("/")[0] in INCLUDES[part], f"{path} includes {include}"
        if part != "bindings":
            assert not re.search(r"pybind11|Python\.h", text.split("#pragma", 1)[-1]), path
        if path.name not in {"parallel.cpp", "parallel.hpp"}:
            assert "std::thread" not in text, f"{path} starts threads of its own"
