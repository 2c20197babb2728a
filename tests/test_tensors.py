"""Files of tensors: what comes back, and how damage is noticed."""

import json
import os
import signal

import numpy as np
import pytest
from safetensors.numpy import save

from kernelcore._store import load_tensors, save_tensors
from kernelcore.experiments.steps import Store


def test_a_checksum_is_of_what_is_read_back(tmp_path):
    arrays = {"big": np.arange(3, dtype=">i4"), "strided": np.eye(4)[:, ::2]}
    arrays["empty"] = np.zeros((0, 2))
    metadata = {"n": {10: (1, 2), 9: float("nan")}, "m": 3, "s": "ä"}
    save_tensors(tmp_path / "a", "things", arrays, metadata)
    tensors, metadata = load_tensors(tmp_path / "a", "things")
    assert metadata["n"].keys() == {"9", "10"}
    assert (metadata["m"], metadata["s"]) == (3, "ä")
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors[name], array)


def test_a_file_without_a_checksum_is_refused(tmp_path):
    content = save({"x": np.ones(2)}, metadata={"kernelcore": '{"kind": "things", "n": 3}'})
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="a is damaged: its checksum"):
        load_tensors(tmp_path / "a", "things")


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


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tensors(tmp_path / "nowhere", "things")


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, "things", {"x": np.ones(3)})
    with pytest.raises(ValueError, match="must hold others"):
        load_tensors(path, "others")


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files")
def test_tensors_that_find_no_room_are_an_error_that_names_the_file(tmp_path):
    """safetensors itself would tell of an error of the system without a name."""
    resource = pytest.importorskip("resource")
    path, (soft, hard) = tmp_path / "a", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            save_tensors(path, "things", {"x": np.ones(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelcore": "[" * 200_000},
        {"kernelcore": '{"kind": "things"'},
        {"kernelcore": "[]"},
        {"kernelcore": '{"kind": "things", "n": ' + "9" * 4301 + "}"},
    ],
)
def test_damaged_metadata(metadata, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(save({"x": np.zeros(2)}, metadata))
    with pytest.raises(ValueError, match=r"a\.safetensors is damaged or truncated"):
        load_tensors(path, "things")


def as_dtype(path, old, new):
    """Call the tensors of a file by another dtype of as many bits."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    for about in header.values():
        about["dtype"] = new if about.get("dtype") == old else about.get("dtype")
    header = {name: about for name, about in header.items() if name != "__metadata__"} | {
        "__metadata__": json.loads(content[8 : 8 + size])["__metadata__"]
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])


def test_a_dtype_that_numpy_has_not(tmp_path):
    path = tmp_path / "a.safetensors"
    save_tensors(path, "things", {"x": np.zeros(2, np.float16)})
    as_dtype(path, "F16", "BF16")
    with pytest.raises(ValueError, match=r"a\.safetensors is damaged or truncated: .*bfloat16"):
        load_tensors(path, "things")


def test_a_value_is_made_where_its_file_is_missing_or_damaged(tmp_path):
    def value(number):
        return (
            Store(tmp_path)
            .value(
                "a",
                "x",
                lambda: {"x": np.full(2, number)},
                lambda arrays, path: save_tensors(path, "things", arrays),
                lambda path: load_tensors(path, "things")[0],
            )["x"]
            .tolist()
        )

    assert value(1.0) == value(2.0) == [1.0, 1.0]
    content = bytearray((tmp_path / "a-x").read_bytes())
    content[-1] ^= 1
    (tmp_path / "a-x").write_bytes(content)
    assert value(3.0) == value(4.0) == [3.0, 3.0]
