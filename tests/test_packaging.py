"""What a release says of itself, and how it is built."""

import importlib.util
import io
import os
import re
import tarfile
import tomllib
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from refusals import refuses

import kernelcore

ROOT = Path(__file__).parents[1]
in_tree = pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="no tree of sources")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@in_tree
def test_one_version():
    version = Version(kernelcore.__version__)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [str(version)]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest, _, date = re.search(r"^## (.+)$", changes, re.M)[1].partition(", ")
    assert newest == version.base_version
    assert re.fullmatch("unreleased" if version.is_devrelease else r"\d{4}-\d\d-\d\d", date)


@in_tree
def test_one_oldest_python():
    about = project()
    supported = SpecifierSet(about["project"]["requires-python"])
    pattern = r"Programming Language :: Python :: (3\.\d+)"
    known = [re.fullmatch(pattern, text) for text in about["project"]["classifiers"]]
    named = [found[1] for found in known if found]
    assert [f"3.{n}" for n in range(40) if f"3.{n}" in supported][: len(named)] == named
    assert about["tool"]["mypy"]["python_version"] == named[0]
    assert about["tool"]["ruff"]["target-version"] == f"py{named[0].replace('.', '')}"
    built = about["tool"]["cibuildwheel"]["build"]
    tags = [f"cp{name.replace('.', '')}-*" for name in named]
    assert built[: len(tags)] == tags


@pytest.fixture
def build(monkeypatch):
    """Return setup.py as a module, in its folder: nothing is built."""
    if not (ROOT / "setup.py").is_file():
        pytest.skip("no tree of sources")
    for name in ("Cython", "pybind11", "setuptools"):
        pytest.importorskip(name)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    for name in ("ARCHFLAGS", "CC", "CXXFLAGS"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("kernelcore_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


X86, PORTABLE = ["v2", "v3", "v4"], ["portable"]


@pytest.mark.parametrize(
    ("platform", "archflags", "levels"),
    [
        *(("linux-x86_64", "", X86), ("linux-aarch64", "", PORTABLE)),
        ("linux-x86_64", "-arch arm64", X86),  # says nothing outside macOS
        *(("win-amd64", "", X86), ("win-arm64", "", PORTABLE), ("win32", "", PORTABLE)),
        *(("macosx-11.0-arm64", "", PORTABLE), ("macosx-10.13-x86_64", "", X86)),
        ("macosx-10.13-universal2", "", PORTABLE),
        ("macosx-10.13-universal2", "-arch x86_64", X86),
        ("macosx-11.0-arm64", "-arch x86_64", X86),
        ("macosx-10.13-x86_64", "-arch arm64 -arch x86_64", PORTABLE),
    ],
)
def test_the_target_decides_about_instructions(build, monkeypatch, platform, archflags, levels):
    monkeypatch.setenv("ARCHFLAGS", archflags)
    assert build.instruction_sets(platform) == levels


def test_windows_has_clang_cl_or_an_error(build, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "cl.exe").touch(mode=0o755)
    for wanted in ("clang-cl", "cl.exe", "no-such-clang-cl"):
        monkeypatch.setenv("CC", wanted)
        refuses(build.PlatformError, wanted, build.use_clang_cl, SimpleNamespace(), "win-amd64")
    monkeypatch.delenv("CC")
    refuses(build.PlatformError, "clang-cl", build.use_clang_cl, SimpleNamespace(), "win-amd64")
    (tmp_path / "clang-cl").touch(mode=0o755)
    started, options = [], ["/nologo", "/GL"]
    own = {"initialize": started.append, "compile_options": options}
    compiler = SimpleNamespace(initialized=False, **own)
    build.use_clang_cl(compiler, "win-amd64")
    assert started == ["win-amd64"]
    assert compiler.cc == str(tmp_path / "clang-cl")
    assert compiler.linker == str(tmp_path / "lld-link.exe")
    assert compiler.compile_options == ["/nologo"]


def test_objects_are_kept_until_a_file_that_they_read_changes(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, header, compiled = map(Path, ("a.cpp", "a b.hpp", "a.o"))
    for seconds, path in enumerate((source, header, compiled)):
        path.touch()
        os.utime(path, (seconds, seconds))
    notes = compiled.with_suffix(".d")
    command = build.BuildExtensions(pytest.importorskip("setuptools").Distribution())
    command.force = False

    is_stale = partial(command.is_stale, str(compiled), str(source))
    assert is_stale()  # nothing is known
    escaped = str(header).replace(" ", "\\ ")
    of_a_tool = tmp_path / "removed.h"  # by pip, after a build
    notes.write_text(f"{compiled}: {source} \\\n {escaped} {of_a_tool}\n", "utf-8")
    assert not is_stale()
    os.utime(header, (2, 2))
    assert is_stale()  # as new as the object
    os.utime(header, (1, 1))
    command.force = True
    assert is_stale()
    command.force = False
    header.unlink()
    assert is_stale()


def test_source_archives_say_nothing_of_the_machine(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    archive = build.SourceArchive(pytest.importorskip("setuptools").Distribution())
    written = []
    for seconds, umask in ((1, 0o22), (2, 0o77)):
        folder = tmp_path / str(seconds)
        for name in ("b.py", "a.sh"):
            path = folder / "kernelcore-1" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name, "utf-8")
            path.chmod((0o777 if name == "a.sh" else 0o666) & ~umask)
            os.utime(path, (seconds, seconds))
        monkeypatch.chdir(folder)
        target = archive.make_archive("dist/kernelcore-1", "gztar", base_dir="kernelcore-1")
        written.append(Path(target).read_bytes())
    assert written[0] == written[1]
    with tarfile.open(fileobj=io.BytesIO(written[0])) as found:
        entries = {entry.name: (entry.mode, entry.mtime, entry.uid) for entry in found}
    modes = {"kernelcore-1": 0o755, "kernelcore-1/a.sh": 0o755, "kernelcore-1/b.py": 0o644}
    assert entries == {name: (mode, 1000000000, 0) for name, mode in modes.items()}
