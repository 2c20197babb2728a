"""Files are written whole or not at all, and damaged ones are named."""

import errno
import fcntl
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from kernelcore import _store
from kernelcore._store import (
    make_folder,
    recover_folder,
    remove_leftovers,
    replacing,
    replacing_folder,
    save_tensors,
)

HIDDEN = "0123456789abcdef" * 2


def test_replacing_leaves_the_old_file_when_the_writer_fails(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk")

    with pytest.raises(RuntimeError, match="disk"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_puts_the_new_file_in_place(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("exists", [False, True])
def test_a_new_folder_takes_the_old_one_s_place(tmp_path, exists):
    path = tmp_path / "models" / "mine"
    if exists:
        path.mkdir(parents=True)
        (path / "old.txt").write_text("old")
    with replacing_folder(path) as temporary:
        (temporary / "new.txt").write_text("new")
        assert not (path / "new.txt").exists()
    assert [file.name for file in path.iterdir()] == ["new.txt"]
    assert list(path.parent.iterdir()) == [path]


def test_the_old_folder_stays_when_the_writer_fails_or_the_new_one_cannot_be_moved(
    tmp_path, monkeypatch
):
    path = tmp_path / "mine"
    path.mkdir()
    (path / "old.txt").write_text("old")

    def write_half():
        with replacing_folder(path) as temporary:
            (temporary / "half.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [file.name for file in path.iterdir()] == ["old.txt"]

    rename = Path.rename

    def refuse_the_new_one(self, target):
        if self.name.endswith(".tmp"):
            raise OSError("it cannot be moved")
        return rename(self, target)

    monkeypatch.setattr(_store, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", refuse_the_new_one)
    with pytest.raises(OSError, match="cannot be moved"), replacing_folder(path):
        pass
    assert [file.name for file in path.iterdir()] == ["old.txt"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(params=["at once", "in steps"])
def exchange(request, monkeypatch):
    """Both ways to exchange two folders."""
    if request.param == "in steps":
        monkeypatch.setattr(_store, "_exchange", lambda one, other: False)


@pytest.mark.usefixtures("exchange")
def test_a_folder_takes_the_place_of_another_and_leaves_nothing(tmp_path):
    path = tmp_path / "mine"
    for content in ("first", "second"):
        with replacing_folder(path) as temporary:
            (temporary / "content.txt").write_text(content)
        assert (path / "content.txt").read_text() == content
        assert list(tmp_path.iterdir()) == [path]


def test_the_former_folder_goes_even_if_its_name_stays(tmp_path, monkeypatch):
    path = tmp_path / "mine"
    path.mkdir()
    rename = Path.rename

    def refuse_the_third(self, target):
        if self.name.endswith(".old"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(_store, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", refuse_the_third)
    with replacing_folder(path) as temporary:
        (temporary / "new.txt").touch()
    assert [file.name for file in path.iterdir()] == ["new.txt"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_exchange_of_this_system_is_one_step(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not _store._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this system exchanges in steps")
    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        _store._exchange(tmp_path / "a", tmp_path / "nowhere")


def test_a_folder_that_is_replaced_elsewhere_at_the_same_time_is_an_error(
    tmp_path, monkeypatch
):
    path = tmp_path / "mine"
    path.mkdir()
    monkeypatch.setattr(_store, "_exchange", lambda one, other: False)
    samestat = os.path.samestat
    with replacing_folder(path) as temporary:
        monkeypatch.setattr(os.path, "samestat", lambda *stats: False)
        with pytest.raises(BlockingIOError, match="mine"):
            _store._exchange_in_steps(temporary, path)
        monkeypatch.setattr(os.path, "samestat", samestat)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("end", ["tmp", "old"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_dead_writer_left_goes_with_the_next_write(tmp_path, kind, end):
    path, left = tmp_path / "mine", tmp_path / f".mine.{HIDDEN}.{end}"
    left.mkdir() if kind == "folder" else left.touch()
    others = {tmp_path / name for name in (f".my.{HIDDEN}.tmp", ".mine.tmp", f".mine.{HIDDEN}")}
    for other in others:
        other.touch()
    replace = replacing_folder if kind == "folder" else replacing
    path.mkdir() if kind == "folder" else path.touch()
    with replace(path):
        assert not left.exists()
    assert set(tmp_path.iterdir()) == {path, *others}


def test_what_a_live_writer_writes_stays(tmp_path):
    path = tmp_path / "file.txt"
    with replacing(path) as one:
        one.write_text("one")
        with replacing(path) as other:
            other.write_text("other")
            assert one.read_text() == "one"
        remove_leftovers(tmp_path)
        assert path.read_text() == "other"
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_name_is_taken_where_another_writer_swept_the_first_away(tmp_path, monkeypatch):
    flock, n_tries = fcntl.flock, []

    def too_late(descriptor, operation):
        n_tries.append(descriptor)
        if len(n_tries) == 1:
            remove_leftovers(tmp_path)  # takes the file before it is held
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with replacing(tmp_path / "file.txt", one_of_many=True) as temporary:
        temporary.write_text("new")
    assert len(n_tries) == 3
    assert (tmp_path / "file.txt").read_text() == "new"


def test_files_are_written_where_there_are_no_locks(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    left = tmp_path / f".file.txt.{HIDDEN}.tmp"
    left.touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with replacing(tmp_path / "file.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "file.txt").read_text() == "new"
    assert left.exists()  # perhaps it is somebody's


def test_a_name_that_a_dead_writer_took_away_is_given_back(tmp_path):
    path, former = tmp_path / "mine", tmp_path / f".mine.{HIDDEN}.old"
    former.mkdir()
    (former / "old.txt").touch()
    remove_leftovers(tmp_path)
    assert former.exists(), "it is the only copy"
    recover_folder(path)
    assert [file.name for file in path.iterdir()] == ["old.txt"]
    assert list(tmp_path.iterdir()) == [path]
    former.mkdir()
    recover_folder(path)
    assert former.exists(), "the name is taken"
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    recover_folder(tmp_path / "missing" / "folder")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("replace", [replacing, replacing_folder])
def test_an_error_of_writing_names_the_file(tmp_path, replace, number):
    path = tmp_path / "mine"

    def write(named):
        with replace(path) as temporary:
            raise OSError(number, os.strerror(number), *([temporary] if named else []))

    for named in (False, True):
        with pytest.raises(OSError, match="mine") as raised:
            write(named)
        assert raised.value.errno == number
        assert Path(raised.value.filename) == path
        assert list(tmp_path.iterdir()) == []


def test_an_error_within_a_new_folder_names_the_file_in_the_folder(tmp_path):
    def write():
        with replacing_folder(tmp_path / "mine") as folder, replacing(folder / "part"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as raised:
        write()
    assert raised.value.filename == str(tmp_path / "mine" / "part")


def test_errors_of_other_files_are_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, replacing(tmp_path / "a"):
        (tmp_path / "other").open()
    assert raised.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match=r"^plain$"), replacing(tmp_path / "a"):
        raise OSError("plain")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    def write():
        with replacing(tmp_path / "a") as new:
            new.unlink()
            new.symlink_to("/dev/full")
            new.write_bytes(bytes(10**6))

    with pytest.raises(OSError, match="No space") as raised:
        write()
    assert raised.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def synced(monkeypatch):
    paths = []
    monkeypatch.setattr(_store, "sync", lambda path: paths.append(Path(path).name))
    return paths


def test_file_and_name_are_forced_to_the_disk(tmp_path, monkeypatch):
    paths = synced(monkeypatch)
    with replacing(tmp_path / "a") as temporary:
        assert paths == []
    assert paths == [temporary.name, tmp_path.name]
    paths.clear()
    with replacing(tmp_path / "a", one_of_many=True):
        pass
    assert paths == []
    with replacing_folder(tmp_path / "new" / "folder") as temporary:
        assert paths == [tmp_path.name]  # the name of the folder above
        save_tensors(temporary / "tensors", "things", {})
        assert paths == [tmp_path.name]  # with the rest of the folder, below
    assert paths[1:] == ["tensors", temporary.name, "new"]


def test_a_disk_that_cannot_sync_is_an_error_and_a_system_without_it_is_not(
    tmp_path, monkeypatch
):
    for number in (errno.EIO, errno.EINVAL):

        def fail(descriptor, number=number):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        told = number == errno.EIO
        with (
            pytest.raises(OSError, match="a'") if told else nullcontext(),
            replacing(tmp_path / "a"),
        ):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_folders_are_made_with_those_above(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize("way", ["at once", "in steps"])
def test_ctrl_c_leaves_a_folder_whole_wherever_it_strikes(tmp_path, way):
    """In a process of its own: a small one takes less time to fork than that of all tests."""
    script = Path(__file__).with_name("interrupted_folders.py")
    command = [sys.executable, script, tmp_path, way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50
