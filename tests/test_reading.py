"""Whatever is wrong with a file is one ValueError that names it."""

import errno
import gzip
import os
import struct
import tokenize
import zlib

import numpy as np
import pytest
from refusals import refuses
from safetensors.numpy import save

from kernelcore import _store
from kernelcore._store import Contents, load_tensors, read_npy, reading, save_tensors

DAMAGE = [
    ValueError("n must be 3"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    TypeError("missing an argument"), KeyError("a.bin"), IndexError("out of range"),
    AttributeError("no 'get'"), RecursionError("maximum"), OverflowError("too large"),
    ZeroDivisionError("by zero"), EOFError("ended"), SyntaxError("invalid"),
    zlib.error("invalid code"), gzip.BadGzipFile("no gzip"), tokenize.TokenError("EOF"),
]  # fmt: skip


def raised(path, error):
    with reading(path):
        raise error


@pytest.mark.parametrize("error", DAMAGE, ids=lambda error: type(error).__name__)
def test_what_damage_raises_names_the_file_once(error):
    with pytest.raises(ValueError, match=r"^a\.bin is") as caught, reading("a"):
        raised("a.bin", error)
    assert caught.value.__cause__ is error


def test_other_errors_stay_and_those_of_the_system_name_the_file():
    refuses(
        OSError, r"Input/output error: .*a\.bin", raised, "a.bin",
        OSError(errno.EIO, "Input/output error"),
    )  # fmt: skip
    refuses(OSError, "other", raised, "a.bin", FileNotFoundError(errno.ENOENT, "none", "other"))
    for error in (ValueError("a.bin must hold words"), MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            raised("a.bin", error)
        assert caught.value is error


def test_text_without_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffä\n".encode())
    assert _store.read_text(path) == "ä\n"
    path.write_bytes(b"a\nb\n\xff")
    refuses(ValueError, r"a\.txt must .* 0xff in line 3", _store.read_text, path)
    refuses(FileNotFoundError, "none", _store.read_text, tmp_path / "none")


def test_json_holds_no_half_of_a_pair():
    assert _store.json_value(r'["\ud83d\ude00", "\u00e4"]') == ["\U0001f600", "ä"]
    refuses(ValueError, "surrogates", _store.json_value, r'{"a": ["\ud83d"]}')


def test_arrays_come_back(tmp_path):
    path = tmp_path / "a.npy"
    for array in (np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)[:2]), np.float32(3)):
        np.save(path, array)
        again = read_npy(path)
        np.testing.assert_array_equal(again, array)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    refuses(ValueError, r"a\.npz", read_npy, tmp_path / "a.npz")


HEADER = "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,)}"


@pytest.mark.parametrize(
    "header",
    [
        *(HEADER.replace("1000000000000,", odd) for odd in ("-1, -2", "1,}", "2,)")),
        *(HEADER.replace("<i8", odd) for odd in ("|O", "<q9", "<i8", "<a8")),
        *("(" * 100, ""),
    ],
)
def test_damaged_arrays_take_no_memory(header, tmp_path):
    text = header.encode().ljust(118 - len(header) % 2) + b"\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    (tmp_path / "a.npy").write_bytes(head + bytes(16))
    refuses(ValueError, r"a\.npy", read_npy, tmp_path / "a.npy")


def test_contents_are_asked_for_by_name():
    contents = Contents("a.bin", {"x": 1, "y": 2})
    assert contents.exactly("y", "x") == {"y": 2, "x": 1}
    refuses(ValueError, r"a\.bin .* z", contents.exactly, "x", "y", "z")
    refuses(ValueError, r"a\.bin .*'y' too", contents.exactly, "x")
    refuses(ValueError, "list", Contents, "a.bin", [])


def test_tensors_have_the_dtype_and_the_shape_that_is_asked_for():
    odd = [np.zeros((2, 3), np.float16), np.zeros((2, 3), np.int64), np.zeros(3)]
    for array in (*odd, np.zeros((3, 2)), np.array([[0, np.nan, 1]])):
        refuses(ValueError, "x", _store.check_tensor, "x", array, (None, 3))
    _store.check_tensor("x", np.zeros((0, 3)), (None, 3))
    _store.check_tensor("x", np.zeros((2, 3), np.int32), (2, 3), np.int32)


def test_a_checksum_is_of_what_is_read_back(tmp_path):
    arrays = {"big": np.arange(3, dtype=">i4"), "strided": np.eye(4)[:, ::2]}
    arrays["empty"] = np.zeros((0, 2))
    settings = {"n": {10: (1, 2), 9: float("nan")}, "m": 3, "s": "ä"}
    save_tensors(tmp_path / "a", "things", arrays, settings)
    tensors, metadata = load_tensors(tmp_path / "a", "things")
    assert metadata["n"].keys() == {"9", "10"}
    assert (metadata["m"], metadata["s"]) == (3, "ä")
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors[name], array)


def test_every_flipped_bit_of_a_file_is_noticed(tmp_path):
    path = tmp_path / "a"
    arrays = {"x": np.arange(3.0), "n": np.array(5), "none": np.zeros((0, 2), np.uint8)}
    save_tensors(path, "things", arrays, {"n": 3})
    whole, expected = path.read_bytes(), load_tensors(path, "things")
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << i % 7
        path.write_bytes(damaged)
        try:
            tensors, metadata = load_tensors(path, "things")
        except ValueError:
            continue
        # only what is no part of the content may go unnoticed
        assert metadata == expected[1], f"byte {i}"
        for name, array in expected[0].items():
            np.testing.assert_array_equal(tensors[name], array, err_msg=f"byte {i}")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_of_tensors_are_as_readable_as_any_other(tmp_path):
    (tmp_path / "any").touch()
    save_tensors(tmp_path / "a", "things", {"x": np.ones(2)})
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.parametrize(
    "about",
    [
        *('{"kind": "things", "n": 3}', "[" * 200_000, '{"kind": "things"', "[]"),
        '{"kind": "things", "n": ' + "9" * 4301 + "}",
    ],
    ids=["no checksum", "deep", "cut", "a list", "a long number"],
)
def test_damaged_metadata(about, tmp_path):
    (tmp_path / "a").write_bytes(save({"x": np.zeros(2)}, {"kernelcore": about}))
    refuses(ValueError, rf"{tmp_path / 'a'} is damaged", load_tensors, tmp_path / "a", "things")


def test_a_dtype_that_numpy_has_not(tmp_path):
    path = tmp_path / "a"
    save_tensors(path, "things", {"xy": np.zeros(2, np.float16)})
    there, other = b'"xy":{"dtype":"F16"', b'"x":{"dtype":"BF16"'
    assert there in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(there, other))
    refuses(ValueError, f"{path} .*bfloat16", load_tensors, path, "things")
    refuses(FileNotFoundError, "nowhere", load_tensors, tmp_path / "nowhere", "things")
