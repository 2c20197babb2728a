"""Builds of a mutated core in a copy of the tree, of one instruction set.

What a mutant does not touch is compiled once; its own objects lie beside those of the original.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import NamedTuple


class Kind(NamedTuple):
    """One way to compile the sources.

    Attributes
    ----------
    name : str
        Of the folder of its objects.
    flags : tuple of str
    patterns : tuple of str
        Sources, from the root of the project.
    """

    name: str
    flags: tuple[str, ...]
    patterns: tuple[str, ...]


_COMMON = (
    *("-std=c++17", "-O1", "-Wno-psabi", "-pthread", "-w"),
    *("-DKERNELCORE_X86=0", "-DKERNELCORE_ISA=portable"),
)
_SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
EXTENSION = Kind("extension", (*_COMMON, "-fPIC", "-fvisibility=hidden"), ("csrc/*/*.cpp",))
STRESS = Kind(
    "stress",
    (*_COMMON, *_SANITIZED, "-DKERNELCORE_ASSERT=1"),
    (
        *(
            f"csrc/{part}/*.cpp"
            for part in ("assignment", "captions", "common", "histograms", "ranks", "scan")
        ),
        "tests/cpp/stress.cpp",
    ),
)


def build(root: Path) -> None:
    """Compile the whole core in `root`."""
    if not restore(root):
        raise SystemExit("the original cannot be built")


def rebuild(root: Path, changed: str) -> bool:
    """Build the extension with the file `changed`; whether that works."""
    if not changed.startswith("csrc/"):
        return True
    objects = _objects(root, EXTENSION, changed)
    return objects is not None and _link(root, objects)


def restore(root: Path) -> bool:
    """Build the extension of the original."""
    objects = _objects(root, EXTENSION, "")
    return objects is not None and _link(root, objects)


def passes_stress(root: Path, changed: str) -> bool:
    """Whether the C++ test runs without a finding of itself or of the sanitizers."""
    objects = _objects(root, STRESS, changed)
    program = root / "build" / "stress-test"
    return (
        objects is not None
        and _run(["g++", *_SANITIZED, "-pthread", *map(str, objects), "-o", str(program)])
        and _run([str(program)])
    )


def _objects(root: Path, kind: Kind, changed: str) -> list[Path] | None:
    """Objects of all sources, those that read `changed` compiled anew; None if one fails."""
    objects = []
    for source in (path for pattern in kind.patterns for path in sorted(root.glob(pattern))):
        target = root / "build" / kind.name / f"{source.parent.name}-{source.stem}.o"
        read = _read_by(root, source)
        if changed in read:
            target = target.with_suffix(".mutant.o")
            target.unlink(missing_ok=True)
        if not _compile(root, source, target, kind, newest=_newest(root, read)):
            return None
        objects.append(target)
    return objects


def _newest(root: Path, paths: set[str]) -> float:
    return max((root / path).stat().st_mtime for path in paths)


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


def _compile(root: Path, source: Path, target: Path, kind: Kind, *, newest: float) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.stat().st_mtime > newest:
        return True
    import pybind11  # a requirement of the build alone: tests do without

    includes = [f"-I{path}" for path in (root / "csrc", pybind11.get_include())]
    includes.append(f"-I{sysconfig.get_path('include')}")
    return _run(["g++", *kind.flags, *includes, "-c", str(source), "-o", str(target)])


def _link(root: Path, objects: list[Path]) -> bool:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    target = root / "kernelcore" / f"_core{suffix}"
    return _run(["g++", "-shared", "-pthread", *map(str, objects), "-o", str(target)])


def _run(command: list[str]) -> bool:
    run = subprocess.run(command, capture_output=True, timeout=600, check=False)
    return run.returncode == 0
