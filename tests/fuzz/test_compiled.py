"""A short sample of every compiled target, and that they miss no compiled function."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelcore
from fuzz.compiled import TARGETS
from kernelcore import _core

PACKAGE = Path(kernelcore.__file__).parent
ROOT = Path(__file__).parents[2]
# Of the machine, not of data.
NOT_KERNELS = {"active_isa", "compiler", "select_isa", "supported_isas"}


def execute(target, seed, folder):
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        target.run(np.random.default_rng(seed), folder)


def compiled_functions():
    """Modules and names of all that is compiled."""
    stub = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.FunctionDef) and node.name not in NOT_KERNELS:
            yield _core.__name__, node.name
    for path in sorted(PACKAGE.rglob("*.pyx")):
        module = ".".join(("kernelcore", *path.relative_to(PACKAGE).with_suffix("").parts))
        for name in re.findall(r"^(?:def|cpdef \w+) (\w+)\(", path.read_text(), re.M):
            yield module, name


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_sample_agrees_with_the_definition(target, tmp_path):
    for seed in range(8):
        execute(target, seed, tmp_path / str(seed))


def test_every_compiled_function_has_a_target(monkeypatch, tmp_path):
    called = set()

    def watched(module, name, function):
        def call(*args):
            called.add((module, name))
            return function(*args)

        return call

    wanted = set(compiled_functions())
    assert len(wanted) > 20
    for module, name in wanted:
        __import__(module)
        function = getattr(sys.modules[module], name)
        monkeypatch.setattr(sys.modules[module], name, watched(module, name, function))
    for target in TARGETS:
        for seed in range(3):
            execute(target, seed, tmp_path / f"{target.name} {seed}")
    assert wanted - called == set()


def test_targets_have_one_name_each_and_one_kind():
    assert len({target.name for target in TARGETS}) == len(TARGETS)
    assert {target.kind for target in TARGETS} == {"compiled"}
