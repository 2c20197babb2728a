import zlib

import numpy as np
import pytest

from kernelcore.images._describe import Rows

KINDS = {"a": ((3,), np.float32), "b": ((), np.int64)}


def row(i):
    return {"a": [i, i + 0.5, -i], "b": 10 * i}


def filled(folder, positions, n_rows=5):
    rows = Rows(folder, n_rows, KINDS)
    for i in positions:
        rows.put(i, row(i))
    return rows


@pytest.mark.parametrize("on_disk", [False, True])
def test_rows_are_filled_in_any_order(tmp_path, on_disk):
    rows = filled(tmp_path / "new" if on_disk else None, [4, 0, 2])
    assert rows.missing.tolist() == [1, 3]
    arrays = rows.arrays()
    assert arrays["a"].dtype == np.float32
    assert arrays["a"].shape == (5, 3)
    assert arrays["a"][4].tolist() == [4, 4.5, -4]
    assert arrays["b"].tolist() == [0, 0, 20, 0, 40]
    assert isinstance(arrays["a"], np.memmap) is on_disk
    with pytest.raises(ValueError, match="read-only"):
        arrays["a"][0] = 1


def test_rows_where_posix_fallocate_is_missing(tmp_path, monkeypatch):
    """As on macOS and Windows; the file has all its blocks all the same."""
    monkeypatch.delattr("os.posix_fallocate", raising=False)
    rows = Rows(tmp_path, 70, {"a": ((4, 10_000), np.float32)})
    rows.put(69, {"a": np.ones((4, 10_000))})
    assert rows.arrays()["a"].sum() == 40_000
    path = tmp_path / "a.npy"
    assert path.stat().st_blocks * 512 >= path.stat().st_size > 70 * 160_000


def test_rows_are_found_again(tmp_path):
    filled(tmp_path, [0, 3])
    again = Rows(tmp_path, 5, KINDS)
    assert again.missing.tolist() == [1, 2, 4]
    assert again.arrays()["a"][3].tolist() == [3, 3.5, -3]


@pytest.mark.parametrize("name", ["a", "b", "checksums"])
def test_a_row_that_was_changed_is_missing(tmp_path, name):
    filled(tmp_path, range(5))
    array = np.lib.format.open_memmap(tmp_path / f"{name}.npy", mode="r+")
    array[2] = array[1]
    del array
    assert Rows(tmp_path, 5, KINDS).missing.tolist() == [2]


def test_a_file_that_was_cut_off_keeps_its_beginning(tmp_path):
    filled(tmp_path, range(5))
    path = tmp_path / "a.npy"
    path.write_bytes(path.read_bytes()[:-16])
    again = Rows(tmp_path, 5, KINDS)
    assert again.missing.tolist() == [3, 4]
    assert again.arrays()["a"].shape == (5, 3)


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_file_that_is_no_array_is_made_anew(tmp_path, content):
    filled(tmp_path, range(5))
    (tmp_path / "a.npy").write_bytes(content)
    again = Rows(tmp_path, 5, KINDS)
    assert again.missing.tolist() == list(range(5))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "a.npy",
        "b.npy",
        "checksums.npy",
    ]


@pytest.mark.parametrize(
    "kinds", [{**KINDS, "a": ((4,), np.float32)}, {**KINDS, "a": ((3,), np.float64)}]
)
def test_a_file_of_other_rows_is_made_anew(tmp_path, kinds):
    filled(tmp_path, range(5))
    rows = Rows(tmp_path, 5, kinds)
    assert rows.missing.tolist() == list(range(5))
    assert rows.arrays()["a"].dtype == kinds["a"][1]


def test_an_empty_row_is_not_taken_for_a_missing_one(tmp_path):
    rows = Rows(tmp_path, 1, KINDS)
    rows.put(0, {"a": [0, 0, 0], "b": 0})
    assert Rows(tmp_path, 1, KINDS).missing.tolist() == []


def test_a_row_whose_checksum_happens_to_be_0_is_not_missing(tmp_path):
    value = np.frombuffer(bytes.fromhex("9d0ad96d"), np.uint32)[0]
    assert zlib.crc32(value.tobytes()) == 0
    kinds = {"a": ((), np.uint32)}
    Rows(tmp_path, 1, kinds).put(0, {"a": value})
    assert Rows(tmp_path, 1, kinds).missing.tolist() == []


@pytest.mark.parametrize("shape", ["(1000000000000, 2)", "(5, 2", "(-5, 2)"])
def test_a_header_does_not_lengthen_the_file(tmp_path, shape):
    Rows(tmp_path, 5, KINDS)
    path = sorted(tmp_path.glob("*.npy"))[-1]
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117)
    path.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + text + b"\n" + bytes(40))
    assert Rows(tmp_path, 5, KINDS).missing.tolist() == [0, 1, 2, 3, 4]
    assert path.stat().st_size < 10_000
