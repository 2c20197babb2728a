"""Files are written whole or not at all, and damaged ones are named."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
from refusals import refuses

from kernelcore import _store
from kernelcore._store import (
    locked,
    make_folder,
    read_folder,
    remove_leftovers,
    replacing,
    write_folder,
)

HIDDEN = "0123456789abcdef" * 2


def putting(content):
    return lambda parts: (parts / "t").write_text(content)


def written(folder, content):
    """Write a folder of one file."""
    write_folder(folder, "about.json", {"a": 1}, putting(content))


def text_in(folder):
    return read_folder(folder, "about.json", lambda about, parts: (parts / "t").read_text())


def test_writers_of_one_file_do_not_mix_and_one_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk")

    with replacing(path) as one:
        one.write_text("one")
        refuses(RuntimeError, "disk", write_half)
        assert path.read_text() == "old"
        with replacing(path) as other:
            other.write_text("other")
            assert one.read_text() == "one"
        remove_leftovers(tmp_path)
        assert path.read_text() == "other"
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_by_its_manifest(tmp_path):
    home = tmp_path / "models" / "mine"
    for content in ("first", "second"):
        written(home, content)
        assert text_in(home) == content
        assert len(list(home.iterdir())) == 2, "the manifest, and the folder of the new files"
    assert list(tmp_path.iterdir()) == [home.parent]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_writer_that_fails_leaves_the_former_folder(tmp_path, is_new):
    home = tmp_path / "mine"
    if not is_new:
        written(home, "old")
    before = sorted(tmp_path.rglob("*"))

    def write_half(parts):
        (parts / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(home, "about.json", {}, write_half)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_writer_that_fails_after_the_manifest_keeps_the_new_folder(tmp_path, monkeypatch):
    home = tmp_path / "mine"
    written(home, "old")
    sync = _store.sync

    def fail_at_last(path):
        if path == home and text_in(home) == "new":
            raise OSError(errno.EIO, "Input/output error", str(path))
        sync(path)

    monkeypatch.setattr(_store, "sync", fail_at_last)
    with pytest.raises(OSError, match="Input/output"):
        write_folder(home, "about.json", {"is": "new"}, putting("new"))
    assert text_in(home) == "new"


def test_a_folder_is_read_again_if_it_is_replaced_meanwhile(tmp_path):
    written(tmp_path, "old")

    def load(about, parts):
        if not found:
            found.append("old")
            written(tmp_path, "new")
        return (parts / "t").read_text()

    found = []
    assert read_folder(tmp_path, "about.json", load) == "new"


def test_leftovers_of_killed_writers_are_removed_after_a_day(tmp_path, monkeypatch):
    path, home = tmp_path / "mine", tmp_path / "home"
    left = [tmp_path / f".mine.{HIDDEN}.tmp", home / HIDDEN]
    others = {tmp_path / name for name in (f".my.{HIDDEN}.tmp", ".mine.tmp", f".mine.{HIDDEN}")}

    def write():
        with replacing(path):
            pass
        written(home, "new")

    written(home, "old")
    left[0].touch()
    left[1].mkdir()
    for other in others:
        other.touch()
    write()
    assert all(place.exists() for place in left), "perhaps these are being written"
    yesterday = time.time() - 25 * 3600
    for place in (*left, *others):
        os.utime(place, (yesterday, yesterday))
    write()
    assert not any(place.exists() for place in left)
    assert set(tmp_path.iterdir()) == {path, home, *others}


def test_a_lock_is_held_by_one(tmp_path, monkeypatch):
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path):
        pass

    monkeypatch.setattr(fcntl, "flock", mock.Mock(side_effect=OSError(errno.ENOLCK, "none")))
    with locked(tmp_path), locked(tmp_path):
        pass  # a system without locks


@pytest.mark.parametrize("named", [False, True])
def test_an_error_of_writing_names_the_file(tmp_path, named):
    def write(path):
        with replacing(path) as temporary:
            raise OSError(errno.ENOSPC, "No space left", *([temporary] if named else []))

    def write_parts(path):
        write_folder(path.parent, "about.json", {}, lambda parts: write(parts / "a"))

    for writer in (write, write_parts):
        with pytest.raises(OSError, match="No space") as raised:
            writer(tmp_path / "a")
        assert raised.value.errno == errno.ENOSPC
        assert Path(raised.value.filename) == tmp_path / "a"
        assert list(tmp_path.iterdir()) == []


def test_errors_of_other_files_are_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, replacing(tmp_path / "a"):
        (tmp_path / "other").open()
    assert raised.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match=r"^plain$"), replacing(tmp_path / "a"):
        raise OSError("plain")


def test_file_and_name_are_forced_to_the_disk(tmp_path, monkeypatch):
    paths = []
    monkeypatch.setattr(_store, "sync", lambda path: paths.append(Path(path).name))
    with replacing(tmp_path / "a") as temporary:
        assert paths == []
    assert paths == [temporary.name, tmp_path.name]
    paths.clear()
    with replacing(tmp_path / "a", one_of_many=True):
        pass
    assert paths == []
    written(tmp_path / "new", "text")
    assert paths[-2].startswith(".about.json."), "the manifest last"
    assert paths[-1] == "new"
    assert "t" in paths[:-2]


@pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL])
def test_failing_to_sync_is_an_error_having_no_sync_is_not(tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=OSError(number, "no sync")))
    is_told = pytest.raises(OSError, match="a'") if number == errno.EIO else nullcontext()
    with is_told, replacing(tmp_path / "a"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"] * (number == errno.EINVAL)


def test_folders_are_made_with_those_above(tmp_path):
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


def test_ctrl_c_leaves_a_folder_whole_at_every_line(tmp_path):
    """In a process of its own: a small one takes less time to fork than that of all tests."""
    script = Path(__file__).with_name("interrupted_folders.py")
    command = [sys.executable, script, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50
