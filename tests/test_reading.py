"""Whatever is wrong with a file is one ValueError that names it."""

import errno
import gzip
import struct
import tokenize
import zlib

import numpy as np
import pytest

from kernelcore._store import (
    Contents,
    check_tensor,
    json_value,
    read_npy,
    read_text,
    reading,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("n must be 3"), "n must be 3"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "invalid start"),
        (TypeError("missing an argument"), "missing an argument"),
        (KeyError("params"), "it does not hold 'params'"),
        (IndexError("out of range"), "IndexError: out of range"),
        (AttributeError("no 'get'"), "AttributeError: no 'get'"),
        (RecursionError("maximum"), "it is nested too deeply"),
        (OverflowError("too large"), "OverflowError: too large"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
        (EOFError("ended"), "EOFError: ended"),
        (SyntaxError("invalid"), "SyntaxError: invalid"),
        (zlib.error("invalid code"), "invalid code"),
        (gzip.BadGzipFile("not a gzip file"), "BadGzipFile: not a gzip file"),
        (tokenize.TokenError("EOF in statement"), "TokenError: EOF in statement"),
    ],
)
def test_what_damage_raises_names_the_file(error, reason, tmp_path):
    path = tmp_path / "a.bin"
    with pytest.raises(ValueError, match="is damaged or truncated") as caught, reading(path):
        raise error
    assert str(caught.value).startswith(f"{path} is damaged or truncated: ")
    assert reason in str(caught.value)
    assert caught.value.__cause__ is error


def test_an_error_that_names_the_file_passes(tmp_path):
    error = ValueError(f"{tmp_path / 'a'} must hold words")
    with pytest.raises(ValueError, match="must hold words") as caught, reading(tmp_path / "a"):
        raise error
    assert caught.value is error


def test_nested_readers_name_the_file_once(tmp_path):
    with (
        pytest.raises(ValueError, match="is damaged") as caught,
        reading(tmp_path),
        reading(tmp_path / "part"),
        reading(tmp_path / "part"),
    ):
        raise KeyError("x")
    assert str(caught.value) == (
        f"{tmp_path / 'part'} is damaged or truncated: it does not hold 'x'"
    )


def test_errors_of_the_system_stay_and_name_the_file(tmp_path):
    with pytest.raises(OSError, match=r"Input/output error: .*a\.bin"), reading("a.bin"):
        raise OSError(errno.EIO, "Input/output error")
    with pytest.raises(FileNotFoundError, match="other"), reading("a.bin"):
        raise FileNotFoundError(errno.ENOENT, "none", "other")
    with pytest.raises(MemoryError), reading("a.bin"):
        raise MemoryError
    with pytest.raises(KeyboardInterrupt), reading("a.bin"):
        raise KeyboardInterrupt


def test_text_without_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffä\n".encode())
    assert read_text(path) == "ä\n"
    path.write_bytes(b"a\nb\n\xff")
    with pytest.raises(ValueError, match=r"a\.txt must be UTF-8 text, got byte 0xff in line 3"):
        read_text(path)
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none"):
        read_text(tmp_path / "none")


def test_json_holds_no_half_of_a_pair():
    assert json_value(r'["\ud83d\ude00", "\u00e4"]') == ["\U0001f600", "ä"]
    with pytest.raises(ValueError, match="surrogates"):
        json_value(r'{"a": ["\ud83d"]}')


def npy(path, header, content=b""):
    text = header.encode().ljust(118 - len(header) % 2) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content)
    return path


def test_arrays_come_back(tmp_path):
    path = tmp_path / "a.npy"
    for array in (np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)[:2]), np.float32(3)):
        np.save(path, array)
        again = read_npy(path)
        np.testing.assert_array_equal(again, array)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1, -2)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1,}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<q9', 'fortran_order': False, 'shape': (2,)}",
        "(" * 100,
        "",
    ],
)
def test_damaged_arrays_take_no_memory(header, tmp_path):
    with pytest.raises(ValueError, match=r"a\.npy must be an array of NumPy, got a damaged"):
        read_npy(npy(tmp_path / "a.npy", header, bytes(16)))


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"a\.npz must be an array of NumPy"):
        read_npy(tmp_path / "a.npz")


def test_contents_are_asked_for_by_name():
    contents = Contents("a.bin", {"x": 1, "y": 2})
    assert contents.exactly("y", "x") == {"y": 2, "x": 1}
    with pytest.raises(ValueError, match=r"a\.bin is damaged .*: it does not tell its z"):
        contents.exactly("x", "y", "z")
    with pytest.raises(ValueError, match=r"a\.bin is damaged .*: it must hold x, got 'y' too"):
        contents.exactly("x")
    with pytest.raises(ValueError, match="must hold a JSON object, got a list"):
        Contents("a.bin", [])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3), np.float16), "x must be of dtype float32 or float64, got float16"),
        (np.zeros((2, 3), np.int64), "x must be of dtype float32 or float64, got int64"),
        (np.zeros(3), r"x must have shape \(any, 3\), got \(3,\)"),
        (np.zeros((3, 2)), r"x must have shape \(any, 3\), got \(3, 2\)"),
        (np.array([[0, np.nan, 1]]), r"x must be finite, got nan at \[0, 1\]"),
    ],
)
def test_tensors_are_checked(array, message):
    with pytest.raises(ValueError, match=message):
        check_tensor("x", array, (None, 3))
    check_tensor("x", np.zeros((0, 3)), (None, 3))
    check_tensor("x", np.zeros((2, 3), np.int32), (2, 3), np.int32)
