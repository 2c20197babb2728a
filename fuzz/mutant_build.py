"""A core of one instruction set in a copy of the tree; only what changed is compiled."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

_FLAGS = (
    *("-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-w"),
    *("-DKERNELCORE_X86=0", "-DKERNELCORE_ISA=portable"),
)


def build(root: Path) -> None:
    """Compile the whole core in `root`."""
    sources = _sources(root)
    if not all(_compile(root, source, _object(root, source)) for source in sources):
        raise SystemExit("the original does not compile")
    if not _link(root, [_object(root, source) for source in sources]):
        raise SystemExit("the original cannot be linked")


def rebuild(root: Path, changed: str) -> bool:
    """Compile what depends on the file `changed`, beside the original; whether that works.

    The objects of the original stay: `restore` only links them again.
    """
    if not changed.startswith("csrc/"):
        return True
    objects = []
    for source in _sources(root):
        target = _object(root, source)
        if changed in _read_by(root, source):
            target = target.with_suffix(".mutant.o")
            target.unlink(missing_ok=True)
            if not _compile(root, source, target):
                return False
        objects.append(target)
    return _link(root, objects)


def restore(root: Path, changed: str) -> None:
    """Link the core of the original again after a mutant of the file `changed`."""
    if changed.startswith("csrc/"):
        _link(root, [_object(root, source) for source in _sources(root)])


def _sources(root: Path) -> list[Path]:
    return sorted((root / "csrc").rglob("*.cpp"))


def _object(root: Path, source: Path) -> Path:
    return root / "build" / f"{source.parent.name}-{source.stem}.o"


def _read_by(root: Path, source: Path) -> set[str]:
    """Paths of `source` and of all that it includes, from `root` on."""
    found: set[str] = set()
    todo = [source.relative_to(root).as_posix()]
    while todo:
        path = todo.pop()
        if path in found or not (root / path).is_file():
            continue
        found.add(path)
        text = (root / path).read_text("utf-8")
        todo += [f"csrc/{name}" for name in re.findall(r'#include "([^"]+)"', text)]
    return found


def _compile(root: Path, source: Path, target: Path) -> bool:
    target.parent.mkdir(exist_ok=True)
    newest = max((root / path).stat().st_mtime for path in _read_by(root, source))
    if target.exists() and target.stat().st_mtime > newest:
        return True
    import pybind11  # a requirement of the build alone: tests do without

    includes = [f"-I{path}" for path in (root / "csrc", pybind11.get_include())]
    includes.append(f"-I{sysconfig.get_path('include')}")
    return _run(["g++", *_FLAGS, *includes, "-c", str(source), "-o", str(target)])


def _link(root: Path, objects: list[Path]) -> bool:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    target = root / "kernelcore" / f"_core{suffix}"
    return _run(["g++", "-shared", "-pthread", *map(str, objects), "-o", str(target)])


def _run(command: list[str]) -> bool:
    run = subprocess.run(command, capture_output=True, timeout=600, check=False)
    return run.returncode == 0
