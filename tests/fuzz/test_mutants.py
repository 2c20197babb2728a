"""Mutants are small, are where code is, and can be taken up again from a ledger."""

import ast
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kernelcore
from fuzz import mutants
from fuzz.mutant_rules import mutants_of
from fuzz.mutants import Verdict, _note, all_mutants, draw, suite_of, summary

KCCA = Path(__file__).parents[1] / "kcca"

CPP = """\
// Not 1 < 2 here.
#include <cstddef>
#if KERNELCORE_X86
int special() { return a < b; }
#else
int other() { return 1 + x; }
#endif
int f(int a) {
  if (a < 0) throw std::invalid_argument("a < 0");
  return std::min(a, 7);
}
"""

PYTHON = '''\
"""A docstring: 1 < 2."""
def f(a: int = 1) -> int:
    """Say 1 + 1."""
    if not a and a < 3:  # 1 == 1
        return min(a, 2)
    return a + 1
'''


def made(source, path):
    return {mutant.apply(source) for mutant in mutants_of(source, path)}


def changed_lines(source, other):
    pairs = zip(source.splitlines(), other.splitlines(), strict=True)
    return [new for old, new in pairs if old != new]


def test_cpp_mutants():
    lines = [line for other in made(CPP, "f.cpp") for line in changed_lines(CPP, other)]
    assert len(lines) == len(made(CPP, "f.cpp"))  # one line each
    assert "int other() { return 1 - x; }" in lines
    assert "int other() { return 2 + x; }" in lines
    assert "  return std::max(a, 7);" in lines
    assert '  if (a <= 0) throw std::invalid_argument("a < 0");' in lines
    assert '  if (false) throw std::invalid_argument("a < 0");' in lines
    assert '  if (!(a < 0)) throw std::invalid_argument("a < 0");' in lines
    assert not any("special" in line or "Not" in line or "(#" in line for line in lines)


def test_python_mutants():
    lines = [line for other in made(PYTHON, "f.py") for line in changed_lines(PYTHON, other)]
    assert "    if not a or a < 3:  # 1 == 1" in lines
    assert "    if not a and a <= 3:  # 1 == 1" in lines
    assert "        return max(a, 2)" in lines
    assert "    return a - 1" in lines
    assert not any(line.startswith(("def", '"', '    "')) for line in lines)


def test_mutants_of_the_tree():
    mutants = all_mutants()
    assert len(mutants) > 1000
    drawn = draw(200, seed=1)
    assert drawn == draw(200, seed=1)
    assert drawn != draw(200, seed=2)
    assert len({mutant.path for mutant in drawn}) == len({mutant.path for mutant in mutants})
    for mutant in drawn:
        assert re.fullmatch(r"(csrc|kernelcore)/.*\.(cpp|hpp|py)", mutant.path)
        assert mutant.before != mutant.after


def test_python_mutants_of_the_tree_compile():
    source = (Path(kernelcore.__file__).parent / "kernels/spatial_pyramid.py").read_text(
        "utf-8"
    )
    for mutant in mutants_of(source, "spatial_pyramid.py"):
        ast.parse(mutant.apply(source))


def test_every_part_has_tests():
    assert "tests/kernels/test_tag_rank.py" in suite_of("csrc/captions/tag_rank_simd.cpp")
    assert "tests/kernels/test_spatial_pyramid.py" in suite_of(
        "kernelcore/kernels/spatial_pyramid.py"
    )
    suite = suite_of("kernelcore/kcca/basis.py")
    assert set(suite) >= {f"tests/kcca/{path.name}" for path in KCCA.glob("test_*.py")}
    assert suite[0] == "tests/kcca/test_basis.py"


def test_the_ledger_has_several_writers(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "LEDGER", tmp_path / "ledger.json")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: _note(f"mutant {i}", Verdict("killed", "a test")), range(40)))
    assert summary() == "40 killed"
