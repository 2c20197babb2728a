import errno
import importlib
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore.captions import EncodedCaptions
from kernelcore.images import SpatialHistograms
from kernelcore.kcca import KernelColumns
from kernelcore.kernels import (
    bag_of_words,
    gram_blocks,
    histogram_intersection,
    spatial_pyramid,
    word_sequence,
    write_gram,
)

blocks = importlib.import_module("kernelcore.kernels.blocks")
RNG = np.random.default_rng(0)
DENSE = RNG.random((11, 6))
CAPTIONS = EncodedCaptions.from_lists(
    [[list(RNG.integers(0, 5, 4)), list(RNG.integers(0, 5, 3))] for _ in range(11)]
)
PYRAMIDS = SpatialHistograms.from_finest(
    RNG.multinomial(64, np.full(12, 1 / 12), size=11).reshape(11, 4, 3), n_levels=2
)


def assemble(blocks, shape):
    K = np.full(shape, np.nan)
    for rows, columns, values in blocks:
        assert np.isnan(K[rows, columns]).all()
        K[rows, columns] = values
    return K


@pytest.mark.parametrize("block_size", [1, 3, 4, 11, 50])
@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        pytest.param(histogram_intersection, DENSE, id="dense"),
        pytest.param(histogram_intersection, sp.csr_array(DENSE > 0.5) * 1.0, id="sparse"),
        pytest.param(partial(spatial_pyramid, mirror=True), PYRAMIDS, id="pyramid"),
        pytest.param(partial(bag_of_words, word_weights=np.ones(5)), CAPTIONS, id="bag"),
        pytest.param(partial(word_sequence, gap_decay=0.5), CAPTIONS, id="sequence"),
        pytest.param(lambda X, Y=None: X @ (X if Y is None else Y).T, DENSE, id="own"),
    ],
)
def test_tiles_make_up_the_matrix(kernel, X, block_size, tmp_path):
    whole = kernel(X)
    upper = assemble(gram_blocks(kernel, X, block_size=block_size), (11, 11))
    missing = np.isnan(upper)
    assert not np.triu(missing).any()
    upper[missing] = upper.T[missing]
    np.testing.assert_allclose(upper, whole, rtol=1e-13)
    np.testing.assert_allclose(
        assemble(gram_blocks(kernel, X, X, block_size=block_size), (11, 11)), whole, rtol=1e-13
    )
    K = write_gram(tmp_path / "K.npy", kernel, X, block_size=block_size, dtype=np.float64)
    np.testing.assert_allclose(K, whole, rtol=1e-13)
    assert (K == K.T).all()


def test_rectangle_of_two_inputs(tmp_path):
    Y = RNG.random((7, 6))
    whole = histogram_intersection(DENSE, Y)
    blocks = list(gram_blocks(histogram_intersection, DENSE, Y, block_size=4))
    assert len(blocks) == 3 * 2
    assert (assemble(blocks, (11, 7)) == whole).all()
    K = write_gram(tmp_path / "K.npy", histogram_intersection, DENSE, Y, block_size=4)
    assert K.dtype == np.float32
    assert (whole.astype(np.float32) == K).all()
    assert not K.flags.writeable
    assert (np.load(tmp_path / "K.npy") == K).all()
    assert [path.name for path in tmp_path.iterdir()] == ["K.npy"]


class Stops:
    """A kernel that breaks down at its n-th call, and counts its calls."""

    def __init__(self, at, factor=1.0):
        self.calls, self.at, self.factor = 0, at, factor

    def __call__(self, *inputs):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return self.factor * histogram_intersection(*inputs)


@pytest.mark.parametrize("at", [1, 2, 4, 6])
def test_goes_on_where_it_was_stopped(at, tmp_path):
    path = tmp_path / "K.npy"
    with pytest.raises(KeyboardInterrupt):
        write_gram(path, Stops(at), DENSE, block_size=4, dtype=np.float64)
    assert not path.exists()
    rest, steps = Stops(99), []
    K = write_gram(
        path,
        rest,
        DENSE,
        block_size=4,
        dtype=np.float64,
        progress=lambda *step: steps.append(step),
    )
    assert (histogram_intersection(DENSE) == K).all()
    n_compared = 2 if at > 1 else 0
    assert rest.calls == 6 - (at - 1) + n_compared
    assert steps == [(done, 6) for done in range(1, 7)]
    assert [file.name for file in tmp_path.iterdir()] == ["K.npy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": Stops(99, factor=1.01)}, "other values in rows from 0, columns from 0"),
        ({"X": np.vstack([DENSE[:4], DENSE[:7]])}, "rows from 0, columns from 8"),
        ({"X": DENSE[:10]}, r"'shape': \[10, 10\]"),
        ({"Y": DENSE}, "'symmetric': False"),
        ({"block_size": 5}, "'block_size': 5"),
        ({"dtype": np.float64}, "'dtype': 'float64'"),
    ],
)
def test_a_file_begun_otherwise_is_refused(change, message, tmp_path):
    call = {"kernel": Stops(4), "X": DENSE, "block_size": 4}
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", **call)
    call["kernel"] = Stops(99)
    with pytest.raises(ValueError, match=message) as raised:
        write_gram(tmp_path / "K.npy", **(call | change))
    assert "remove it and K.npy.partial.json" in str(raised.value)


def damage_notes(folder):
    (folder / "K.npy.partial.json").write_text("{")


def damage_count(folder):
    path = folder / "K.npy.partial.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_finished": 100}))


def truncate(folder):
    path = folder / "K.npy.partial"
    path.write_bytes(path.read_bytes()[:-1])


def remove(folder):
    (folder / "K.npy.partial").unlink()


@pytest.mark.parametrize("damage", [damage_notes, damage_count, truncate, remove])
def test_a_damaged_beginning_is_refused(damage, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", Stops(4), DENSE, block_size=4)
    damage(tmp_path)
    with pytest.raises(ValueError, match=r"K\.npy\.partial must be the beginning"):
        write_gram(tmp_path / "K.npy", Stops(99), DENSE, block_size=4)


def test_notes_that_outlived_the_last_rename_are_no_obstacle(tmp_path):
    """A kill after the file has its name and before its notes are removed."""
    path, notes = tmp_path / "K.npy", tmp_path / "K.npy.partial.json"
    unlink = Path.unlink

    def kill(self, *, missing_ok=False):
        if self == notes:
            raise KeyboardInterrupt
        unlink(self, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", kill)
        with pytest.raises(KeyboardInterrupt):
            write_gram(path, histogram_intersection, DENSE, block_size=4)
    assert path.exists()
    assert notes.exists()
    K = write_gram(path, Stops(99), DENSE, block_size=4)
    assert (histogram_intersection(DENSE).astype(np.float32) == K).all()
    assert [file.name for file in tmp_path.iterdir()] == ["K.npy"]


def test_notes_never_speak_of_a_file_that_was_begun_after_them(tmp_path, monkeypatch):
    """Those of a finished file are gone before another one, of zeros, is begun."""
    notes = tmp_path / "K.npy.partial.json"
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", Stops(6), DENSE, block_size=4)
    notes.write_text(json.dumps(json.loads(notes.read_text()) | {"n_finished": 6}))
    (tmp_path / "K.npy.partial").unlink()

    def stop(self, mode):
        assert mode == "wb"
        assert not notes.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(blocks._GrowingFile, "_writing", stop)
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", Stops(99), DENSE, block_size=4)


def test_a_damaged_header_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", Stops(4), DENSE, block_size=4)
    partial_file = tmp_path / "K.npy.partial"
    content = bytearray(partial_file.read_bytes())
    content[30] ^= 1
    partial_file.write_bytes(content)
    with pytest.raises(ValueError, match="its header is damaged"):
        write_gram(tmp_path / "K.npy", Stops(99), DENSE, block_size=4)


def test_a_tile_is_on_the_disk_before_it_is_counted(tmp_path, monkeypatch):
    events = []
    monkeypatch.setattr(blocks, "sync", lambda path: events.append(path.name))
    counted = blocks._GrowingFile._note
    monkeypatch.setattr(
        blocks._GrowingFile,
        "_note",
        lambda self: (events.append(self.n_finished), counted(self)),
    )
    write_gram(tmp_path / "K.npy", histogram_intersection, DENSE[:4], block_size=2)
    part = "K.npy.partial"
    assert events == [part, 0, part, 1, part, 2, part, 3, tmp_path.name]


def test_a_full_disk_is_an_error_that_names_the_file_and_no_end(tmp_path, monkeypatch):
    def fail(self, file, rows, columns, values):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(blocks._GrowingFile, "_write", fail)
        with pytest.raises(OSError, match=r"No space left on device: .*K\.npy\.partial"):
            write_gram(tmp_path / "K.npy", histogram_intersection, DENSE)
    K = write_gram(tmp_path / "K.npy", histogram_intersection, DENSE)
    assert (histogram_intersection(DENSE).astype(np.float32) == K).all()


@pytest.mark.parametrize("scale", [1e-9, 1e-30, 1e9])
def test_other_samples_are_noticed_however_small_their_kernel_is(scale, tmp_path):
    def kernel(X, Y=None):
        return scale * X @ (X if Y is None else Y).T

    def stops(*inputs):
        if len(inputs[0]) < 4:  # the last tiles
            raise KeyboardInterrupt
        return kernel(*inputs)

    options = {"block_size": 4, "dtype": np.float64}
    with pytest.raises(KeyboardInterrupt):
        write_gram(tmp_path / "K.npy", stops, DENSE, **options)
    with pytest.raises(ValueError, match="other values in rows from 0, columns from 0"):
        write_gram(tmp_path / "K.npy", kernel, DENSE[::-1], **options)
    K = write_gram(tmp_path / "K.npy", kernel, DENSE, **options)
    np.testing.assert_allclose(K, kernel(DENSE), rtol=1e-12)


def test_a_second_writer_is_refused(tmp_path):
    refused = []

    def kernel(*inputs):
        if not refused:
            with pytest.raises(
                RuntimeError, match=r"another call is writing .*K\.npy"
            ) as error:
                write_gram(tmp_path / "K.npy", histogram_intersection, DENSE[::-1])
            refused.append(error)
        return histogram_intersection(*inputs)

    K = write_gram(tmp_path / "K.npy", kernel, DENSE, block_size=4)
    assert refused
    np.testing.assert_array_equal(K, histogram_intersection(DENSE).astype(np.float32))
    assert [file.name for file in tmp_path.iterdir()] == ["K.npy"]


def test_a_lock_that_a_kill_left_behind_is_no_obstacle(tmp_path):
    (tmp_path / "K.npy.lock").mkdir()
    write_gram(tmp_path / "K.npy", histogram_intersection, DENSE)
    assert [file.name for file in tmp_path.iterdir()] == ["K.npy"]


def test_a_finished_file_is_replaced(tmp_path):
    path = tmp_path / "K.npy"
    write_gram(path, histogram_intersection, DENSE[:3])
    assert write_gram(path, histogram_intersection, DENSE).shape == (11, 11)


def test_bad_input_is_named(tmp_path):
    path = tmp_path / "K.npy"
    with pytest.raises(TypeError, match="kernel must be callable, got 3"):
        gram_blocks(3, DENSE)
    with pytest.raises(ValueError, match="block_size must be an integer >= 1, got 0"):
        gram_blocks(histogram_intersection, DENSE, block_size=0)
    with pytest.raises(ValueError, match=r"kernel must return a matrix of shape \(4, 4\)"):
        list(gram_blocks(lambda *inputs: np.ones(3), DENSE, block_size=4))
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got int64"):
        write_gram(path, histogram_intersection, DENSE, dtype=int)
    with pytest.raises(ValueError, match="X and Y must hold samples"):
        write_gram(path, histogram_intersection, DENSE[:0])
    with pytest.raises(FileNotFoundError, match="no such folder"):
        write_gram(tmp_path / "missing" / "K.npy", histogram_intersection, DENSE)
    assert list(gram_blocks(histogram_intersection, DENSE[:0])) == []
    assert list(tmp_path.iterdir()) == []


def frame(X):
    return pytest.importorskip("pandas").DataFrame(X, index=range(7, 7 + len(X)))


def tensor(X):
    return pytest.importorskip("torch", reason="tensors need PyTorch: extra deep").tensor(X)


SPARSE = [sp.coo_array, sp.csc_array, sp.bsr_array, sp.dia_array, sp.dok_array, sp.lil_array]


@pytest.mark.parametrize("make", [frame, tensor, np.ndarray.tolist, *SPARSE])
def test_tiles_of_all_that_kernels_take(make, tmp_path):
    X, Y = make(DENSE), make(DENSE)
    expected = histogram_intersection(X, Y)
    np.testing.assert_allclose(expected, histogram_intersection(DENSE), rtol=1e-14)
    K = assemble(gram_blocks(histogram_intersection, X, Y, block_size=4), (11, 11))
    np.testing.assert_array_equal(K, expected)
    K = write_gram(tmp_path / "K.npy", histogram_intersection, X, block_size=4, dtype="f8")
    np.testing.assert_array_equal(K, expected)
    columns = KernelColumns.of(histogram_intersection, X).columns([3, 10])
    np.testing.assert_array_equal(columns, expected[:, [3, 10]])


@pytest.mark.parametrize("X", [np.array(1.0), 3, None, object(), "text", iter(DENSE)])
def test_what_has_no_samples_is_named(X, tmp_path):
    for call in (gram_blocks, partial(write_gram, tmp_path / "K.npy")):
        with pytest.raises(TypeError, match=r"^X must be a sequence of samples, got "):
            list(call(histogram_intersection, X))
    with pytest.raises(TypeError, match=r"^Y must be a sequence of samples, got "):
        list(gram_blocks(histogram_intersection, DENSE, X if X is not None else 3))


def test_what_numpy_cannot_read_is_named_by_what_it_should_be():
    class Elsewhere:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on another device")

    message = "^X must be a 2-D array, got type Elsewhere: on another device$"
    with pytest.raises(TypeError, match=message):
        next(gram_blocks(histogram_intersection, Elsewhere()))
