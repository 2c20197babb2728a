"""The table of lines that ran."""

import shutil
import subprocess

import pytest

from fuzz import coverage

SOURCE = """\
int called(int a) {
  return a + 1;
}
int idle(int a) {
  return a - 1;
}
int main() { return called(-1); }
"""


def test_report_names_the_lines_that_never_ran():
    text, share = coverage.report({"csrc/b.cpp": {1: 4, 2: 0, 9: 0}, "csrc/a.cpp": {3: 1}})
    lines = text.splitlines()
    assert lines[0].split() == ["csrc/a.cpp", "1", "of", "1"]
    assert lines[1].split() == ["csrc/b.cpp", "1", "of", "3", "2", "9"]
    assert share == 50


@pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcov")), reason="needs gcov")
def test_counts_come_from_gcov(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "ROOT", tmp_path)
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "f.cpp").write_text(SOURCE)
    build = ["g++", "--coverage", "-O0", "csrc/f.cpp", "-o", "f"]
    subprocess.run(build, cwd=tmp_path, check=True)
    subprocess.run(["./f"], cwd=tmp_path, check=True)
    counts = coverage.counts_of(tmp_path)["csrc/f.cpp"]
    assert {line for line, count in counts.items() if count} == {1, 2, 7}
    assert {line for line, count in counts.items() if not count} == {4, 5}
