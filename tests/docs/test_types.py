"""mypy finds nothing to say about the programs that README and docs print.

A program stands for itself but for the imports of those before it on its page. Names that it
does not make are the reader's own data, of any type; a name of the package among them is an
import that is missing.
"""

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, pages, programs_of
from public_api import public_modules

import kernelcore

# Functions of the package by whose names pages call a split and an array of the reader's.
DATA = {"histograms", "train"}


def in_python(page):
    return [program.code for program in programs_of(page) if program.is_python]


def imports_of(program):
    nodes = ast.walk(ast.parse(program))
    return [ast.unparse(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]


def missing_names(program):
    """Return the names that a program reads and nowhere makes."""
    tree = ast.parse(program)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        if isinstance(node, ast.arg):
            made.add(node.arg)
        if isinstance(node, ast.alias):
            made.add((node.asname or node.name).split(".")[0])
    return {node.id for node in names} - made - set(vars(builtins))


def public_names():
    """Return the functions and classes that a module of the package hands out."""
    found = {
        name
        for module in public_modules()
        for name in getattr(module, "__all__", ())
        if callable(getattr(module, name))
    }
    return found - DATA


def complete_programs():
    """Return each program with what it needs of its page, by a name for its file."""
    found = {}
    for page in pages():
        before: list[str] = []
        name = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix()).lower()
        for number, program in enumerate(in_python(page)):
            head = "".join(f"{line}\n" for line in dict.fromkeys(before))
            own = missing_names(head + program)
            declared = "".join(f"{data}: Any\n" for data in sorted(own))
            found[f"{name}_{number}"] = f"from typing import Any\n{head}{declared}{program}"
            before += imports_of(program)
    return found


def test_no_import_is_missing():
    pytest.importorskip("torch")
    public = public_names()
    for page in pages():
        before: list[str] = []
        for program in in_python(page):
            lacking = missing_names("\n".join([*before, program])) & public
            assert not lacking, f"{page.name} uses {lacking} and never imports them"
            before += imports_of(program)


@pytest.mark.slow  # .ci/run has it beside mypy over the package
def test_mypy_passes(tmp_path, pytestconfig):
    """What mypy has found out about the package and its requirements is kept between runs."""
    pytest.importorskip("mypy")
    # mypy follows no finder of an editable install; without the path, all would be Any.
    home = Path(kernelcore.__file__).parents[1]
    path = {"MYPYPATH": str(home)} if home == ROOT else {}
    kept = getattr(pytestconfig, "cache", None)
    cache = kept.mkdir("mypy") if kept else ".cache"
    for name, program in complete_programs().items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    options = ["--config-file=", "--ignore-missing-imports", "--check-untyped-defs"]
    options += ["--follow-imports=silent", "--cache-dir", cache]
    command = [sys.executable, "-m", "mypy", *options, "."]
    environment = {**os.environ, **path}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(command, **options, check=False)
    assert done.returncode == 0, done.stdout
