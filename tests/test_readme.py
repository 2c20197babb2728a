"""What the README shows works as printed."""

import inspect
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


DOCS = README.parent / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
def test_pages_ask_for_the_same_compilers():
    """`__builtin_shufflevector` came with GCC 12; tests/cpp asks Clang 18 for x86-64-v3."""
    for page in (README, DOCS / "getting_started.md"):
        asked = re.findall(r"GCC (\d+) or Clang (\d+) or later", page.read_text("utf-8"))
        assert asked == [("12", "18")], page.name


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
def test_pages_and_docstrings_tell_the_limit_on_pixels():
    pytest.importorskip("cv2")
    from kernelcore.images import CNN, VisualWords, read_image

    page = (DOCS / "images.md").read_text("utf-8")
    told = re.findall(r"`max_pixels`\s+\(2\^(\d+)\)", page)
    for function in (read_image, CNN, VisualWords):
        limit = inspect.signature(function).parameters["max_pixels"].default
        exponents = re.findall(r"max_pixels : int, default 2\*\*(\d+)", function.__doc__)
        assert [2 ** int(n) for n in exponents] == [limit]
        assert [2 ** int(n) for n in told] == [limit]
