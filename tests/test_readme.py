"""What the README shows works as printed."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not here")
def test_the_eight_lines_of_python_run():
    pytest.importorskip("cv2")
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert code is not None
    lines = code.group(1).strip().splitlines()
    assert sum(bool(line) for line in lines) <= 8
    small = code.group(1).replace("make_scenes(500", "make_scenes(40")
    assert small != code.group(1)
    exec(compile(small, "README.md", "exec"), {})


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
def test_the_programs_about_clip_vectors_run_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    images, train_images = rng.normal(size=(2, 12, 8)).astype(np.float32)
    captions, train_captions = (
        np.repeat(rows, 5, axis=0) + rng.normal(size=(60, 8)).astype(np.float32)
        for rows in (images, train_images)
    )
    np.save("a.npy", images)
    np.save("b.npy", captions)
    owner = np.repeat(np.arange(12), 5)
    sentences = [f"a w{k % 7} on a v{i}" for k, i in enumerate(owner)]
    names = {
        "images": images,
        "captions": captions,
        "train_images": train_images,
        "train_captions": train_captions,
        "sentences": sentences,
        "train_sentences": sentences,
        "owner": owner,
        "train_owner": owner,
        "image_ids": [f"i{i}" for i in range(12)],
        "caption_ids": [f"c{k}" for k in range(60)],
        "models": {"one": (images, captions), "two": (images, captions[::-1])},
    }
    page = (DOCS / "clip_vectors.md").read_text("utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(programs) == 5
    for number, program in enumerate(programs):
        exec(compile(program, f"clip_vectors.md {number}", "exec"), names)
    assert "R@1" in capsys.readouterr().out
    assert Path("search.qrels").is_file()


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
def test_pages_ask_for_the_compilers_that_know_the_levels_of_x86_64():
    """`__builtin_cpu_supports("x86-64-v3")` came with GCC 12 and Clang 18."""
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
