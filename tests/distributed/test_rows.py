"""Rows on disk: any cut of the files gives the same rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.distributed import open_rows, write_rows
from kernelcore.distributed.rows import RowFiles, as_row_files, check_shard_rows


def matrix(n, dtype=np.float32):
    return (np.arange(3 * n).reshape(n, 3) % 251).astype(dtype)


@given(n=st.integers(1, 40), step=st.integers(1, 50), data=st.data())
def test_parts_are_those_of_the_matrix(tmp_path_factory, n, step, data):
    rows = write_rows(tmp_path_factory.mktemp("rows"), matrix(n), shard_rows=step)
    assert rows.shape == (n, 3)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    np.testing.assert_array_equal(rows.read(start, stop), matrix(n)[start:stop])
    positions = np.array(data.draw(st.lists(st.integers(0, n - 1))), np.intp)
    np.testing.assert_array_equal(rows.take(positions), matrix(n)[positions])


@pytest.mark.parametrize(
    ("given_as", "read_as"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.float16, np.float32),
        (np.uint8, np.uint8),
        (np.uint16, np.uint16),
        (np.uint32, np.uint32),
        (np.int64, np.float64),
    ],
)
def test_types(tmp_path, given_as, read_as):
    rows = write_rows(tmp_path, matrix(5, given_as))
    assert rows.dtype == read_as
    assert rows.read(0, 5).dtype == read_as
    np.testing.assert_array_equal(rows.read(0, 5), matrix(5))


@pytest.mark.parametrize("dtype", [">f4", "<i8", "?", "<f2"])
def test_files_of_others_are_read(tmp_path, dtype):
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, part in zip(paths, (matrix(4), matrix(2)), strict=True):
        np.save(path, part.astype(dtype))
    rows = as_row_files("X", [str(path) for path in paths], tmp_path)
    expected = np.concatenate([matrix(4), matrix(2)]).astype(dtype)
    np.testing.assert_array_equal(rows.read(2, 6), expected[2:6])
    assert rows.read(2, 6).dtype.isnative
    assert RowFiles.from_json(rows.to_json()) == rows


def test_other_content_is_refused(tmp_path):
    write_rows(tmp_path, matrix(5))
    write_rows(tmp_path, matrix(5))
    with pytest.raises(ValueError, match="content"):
        write_rows(tmp_path, matrix(5) + 1)


def test_a_store_that_is_not_complete_is_refused(tmp_path):
    write_rows(tmp_path, matrix(5), shard_rows=2)
    (tmp_path / "done" / "0000001.json").unlink()
    with pytest.raises(ValueError, match="must be complete, and 1 of 3"):
        open_rows(tmp_path)
    np.testing.assert_array_equal(
        write_rows(tmp_path, matrix(5), shard_rows=2).read(0, 5), matrix(5)
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: np.save(path, np.zeros(3)), "must hold rows in C order"),
        (lambda path: np.save(path, np.zeros((2, 3), order="F")), "must hold rows in C order"),
        (lambda path: np.save(path, np.array([["a"]])), "must hold real numbers"),
        (lambda path: path.write_bytes(b"nothing"), "damaged"),
        (lambda path: np.save(path, np.zeros((0, 3))), "must not be empty"),
    ],
)
def test_files_that_hold_no_rows_are_named(tmp_path, make, message):
    make(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=message):
        as_row_files("X", tmp_path / "a.npy", tmp_path)


def test_files_of_two_widths_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4)))
    with pytest.raises(ValueError, match="X must have files of one width"):
        as_row_files("X", [tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path)


def test_a_file_that_was_cut_short_is_named(tmp_path):
    rows = write_rows(tmp_path, matrix(5))
    path = tmp_path / "rows" / "000000.npy"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"000000.npy.*lacks 4 bytes"):
        rows.read(3, 5)
    np.testing.assert_array_equal(rows.read(0, 4), matrix(5)[:4])


@pytest.mark.parametrize(("start", "stop"), [(0, 6), (-1, 3), (4, 3), (6, 6)])
def test_rows_that_are_not_there_are_refused(tmp_path, start, stop):
    rows = write_rows(tmp_path, matrix(5), shard_rows=2)
    with pytest.raises(ValueError, match="start and stop must be in order and within 0 and 5"):
        rows.read(start, stop)


@pytest.mark.parametrize("positions", [[5], [-1], [0, 99]])
def test_positions_that_are_not_there_are_refused(tmp_path, positions):
    rows = write_rows(tmp_path, matrix(5), shard_rows=2)
    with pytest.raises(ValueError, match=r"positions must lie in \[0, 5\)"):
        rows.take(positions)


def test_rows_that_are_near_each_other_are_read_at_once(tmp_path, monkeypatch):
    rows = write_rows(tmp_path, matrix(50_000), shard_rows=20_000)
    n_reads = []
    read = RowFiles.read
    monkeypatch.setattr(
        RowFiles, "read", lambda *given: n_reads.append(given[1:]) or read(*given)
    )
    places = np.random.default_rng(0).permutation(50_000)[:30_000]
    np.testing.assert_array_equal(rows.take(places), matrix(50_000)[places])
    assert len(n_reads) <= 12  # 600 kB in parts of 64 KiB
    assert max(12 * (stop - start) for start, stop in n_reads) <= 1 << 16


@pytest.mark.parametrize("rows", [0, 4095, 5000, 12288])
def test_shards_of_blocks_are_powers_of_two(rows):
    with pytest.raises(ValueError, match="shard_rows must be"):
        check_shard_rows(rows)


@pytest.mark.parametrize("value", [[[np.nan]], [[np.inf]], [], [[]], [1.0, 2.0]])
def test_rows_are_a_finite_matrix(tmp_path, value):
    with pytest.raises(ValueError, match="rows must"):
        write_rows(tmp_path / "s", value)
    assert not (tmp_path / "s" / "about.json").exists()
