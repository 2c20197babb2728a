"""Files are written whole or not at all, and damaged ones are named."""

import os
from pathlib import Path

import numpy as np
import pytest

from kernelcore._files import load_tensors, replacing, replacing_folder, save_tensors


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

    monkeypatch.setattr(Path, "rename", refuse_the_new_one)
    with pytest.raises(OSError, match="cannot be moved"), replacing_folder(path):
        pass
    assert [file.name for file in path.iterdir()] == ["old.txt"]
    assert list(tmp_path.iterdir()) == [path]


def test_tensors_come_back_with_their_metadata(tmp_path):
    path = tmp_path / "a.safetensors"
    strided = np.arange(12, dtype=np.int64).reshape(3, 4)[:, ::2]
    save_tensors(path, "things", {"x": strided, "empty": np.zeros((0, 2))}, {"n": 3, "s": "ä"})
    tensors, metadata = load_tensors(path, "things")
    np.testing.assert_array_equal(tensors["x"], strided)
    assert tensors["empty"].shape == (0, 2)
    assert metadata == {"n": 3, "s": "ä"}


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_of_tensors_are_as_readable_as_any_other(tmp_path):
    (tmp_path / "any").touch()
    save_tensors(tmp_path / "a", "things", {"x": np.ones(2)})
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tensors(tmp_path / "nowhere", "things")


@pytest.mark.parametrize("kept", [0, 5, 40, -1])
def test_a_truncated_file_is_a_value_error(tmp_path, kept):
    path = tmp_path / "a.safetensors"
    save_tensors(path, "things", {"x": np.ones(100)})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="damaged or truncated"):
        load_tensors(path, "things")


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, "things", {"x": np.ones(3)})
    with pytest.raises(ValueError, match="must hold others"):
        load_tensors(path, "others")
