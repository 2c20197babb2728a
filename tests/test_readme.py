"""What the README shows works as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not here")
def test_vectors_are_scored_as_printed(capsys):
    found = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    assert found is not None
    exec(compile(found[1], "README.md", "exec"), {})
    assert capsys.readouterr().out == found[2]


@pytest.mark.skipif(not README.is_file(), reason="the README is not here")
def test_the_example_of_a_cluster_runs(tmp_path):
    pytest.importorskip("distributed")
    programs = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    (program,) = (code for code in programs if "LocalCluster" in code)
    (tmp_path / "example.py").write_text(program)
    for _ in range(2):  # the second time from the store
        found = subprocess.run(
            [sys.executable, "example.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "2000 images, 2000 captions" in found.stdout
