"""The command that a message names installs an extra from where the package came."""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelcore import _extras

SOURCE = Path(_extras.__file__)


@pytest.fixture
def extras(tmp_path, monkeypatch):
    """Return the module as from a folder of installed packages, and what pip wrote down."""
    folder = tmp_path / "site-packages" / "kernelcore"
    folder.mkdir(parents=True)
    (folder / "_extras.py").write_text(SOURCE.read_text("utf-8"), "utf-8")
    spec = importlib.util.spec_from_file_location("installed_extras", folder / "_extras.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def written(about):
        text = about if isinstance(about, str) or about is None else json.dumps(about)
        found = SimpleNamespace(read_text=lambda name: text)
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)
        return module.install_command("plot")

    return SimpleNamespace(written=written, folder=folder)


def test_an_index(extras):
    assert extras.written(None) == 'pip install "kernelcore[plot]"'
    for damaged in ("[]", "{", "7"):
        assert extras.written(damaged) == 'pip install "kernelcore[plot]"'


def test_a_wheel_a_source_archive_or_a_tree(extras, tmp_path):
    for name in ("kernelcore-0.2-py3-none-any.whl", "kernelcore 0.2.tar.gz"):
        url = (tmp_path / name).as_uri()
        assert extras.written({"url": url}) == 'pip install "kernelcore[plot]"'  # it is gone
        (tmp_path / name).touch()
        assert extras.written({"url": url, "archive_info": {}}) == (
            f'pip install "kernelcore[plot] @ {url}"'
        )
    about = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    assert extras.written(about) == f'pip install "kernelcore[plot] @ {tmp_path.as_uri()}"'


def test_a_repository(extras):
    about = {
        "url": "https://example.org/kernelcore.git",
        "vcs_info": {"vcs": "git", "commit_id": "abc"},
    }
    expected = "kernelcore[plot] @ git+https://example.org/kernelcore.git@abc"
    assert extras.written(about) == f'pip install "{expected}"'


def test_a_tree_of_sources(extras):
    tree = extras.folder.parent
    (tree / "pyproject.toml").touch()
    assert extras.written(None) == f'pip install "kernelcore[plot] @ {tree.as_uri()}"'


def test_no_installation(extras, monkeypatch):
    command = extras.written(None)

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert command == 'pip install "kernelcore[plot]"'


def test_pip_understands_it(tmp_path):
    """A tree with an extra that has no requirements: pip need not ask any index."""
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False
    )
    if pip.returncode:
        pytest.skip("pip is not here")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "kernelcore"\nversion = "0.1"\n'
        "[project.optional-dependencies]\nplot = []\n"
        '[build-system]\nrequires = []\nbuild-backend = "setuptools.build_meta"\n'
        "[tool.setuptools]\npackages = []\n",
        encoding="utf-8",
    )
    command = re.sub("@ .*", f"@ {tmp_path.as_uri()}", "kernelcore[plot] @ X")
    options = [
        "--no-index",
        "--no-build-isolation",
        "--no-deps",
        "--target",
        str(tmp_path / "to"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *options, command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _extras.install_command("plot") == 'pip install "kernelcore[plot]"'
