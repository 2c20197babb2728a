"""Damage is named, and repaired by the next run."""

import numpy as np
import pytest

from kernelcore.distributed import (
    fit_landmark_kcca,
    gram_to_store,
    read_gram,
    verify,
    write_rows,
)

X = np.arange(40.0).reshape(20, 2)


@pytest.fixture
def store(tmp_path):
    gram_to_store("histogram_intersection", X, None, tmp_path / "s", tile=8)
    return tmp_path / "s"


def test_an_intact_store_is_said_to_be(store):
    found = verify(store, rng=0)
    assert [one.folder for one in found] == [store, store / "X"]
    assert all(one.is_intact for one in found)
    assert len(found[0].recomputed) == 3
    assert "6 pieces as written, 3 computed again" in str(found[0])


@pytest.mark.parametrize("chunk", ["0/0", "1/0", "2/2"])
def test_damage_is_named_and_repaired(store, chunk):
    expected = read_gram(store)
    path = store / "gram.zarr" / "c" / chunk
    content = bytearray(path.read_bytes())
    content[3] ^= 64
    path.write_bytes(content)
    found = verify(store, n_recomputed=0, repair=True)[0]
    assert len(found.damaged) == 1
    assert chunk in str(found)
    assert found.missing == list(found.damaged)
    gram_to_store("histogram_intersection", X, None, store, tile=8)
    np.testing.assert_array_equal(read_gram(store), expected)
    assert all(one.is_intact for one in verify(store, rng=0))


def test_a_matrix_that_is_repaired_cannot_be_opened_before(store):
    (store / "gram.zarr" / "c" / "1" / "0").write_bytes(b"")
    verify(store, n_recomputed=0, repair=True)
    assert not (store / "gram.zarr" / "zarr.json").exists()
    gram_to_store("histogram_intersection", X, None, store, tile=8)
    assert (store / "gram.zarr" / "zarr.json").exists()


def test_damaged_landmarks_and_models_are_named_and_repaired(tmp_path):
    def fit():
        return fit_landmark_kcca(X, X[:, ::-1], tmp_path, n_landmarks=3, n_components=1)

    model = fit()
    assert all(one.is_intact for one in verify(tmp_path, rng=0))
    for name in ("model.safetensors", "images/landmarks.safetensors"):
        path = tmp_path / name
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
    damaged = [one for one in verify(tmp_path, rng=0, repair=True) if one.damaged]
    assert [one.folder for one in damaged] == [tmp_path, tmp_path / "images"]
    np.testing.assert_array_equal(fit().embed_images(X), model.embed_images(X))
    assert all(one.is_intact for one in verify(tmp_path, rng=0))


def test_values_that_were_written_wrongly_are_found(store, monkeypatch):
    """The digest is right, the values are not."""
    from kernelcore.distributed import gram

    made = gram.make

    def wrong(store, number):
        piece = made(store, number)
        for array in piece.files.values():
            np.add(array, 1, out=array)
        return piece

    monkeypatch.setattr(gram, "make", wrong)
    found = verify(store, n_recomputed=6, rng=0)[0]
    assert sorted(found.differing) == list(range(6))
    assert not found.is_intact


def test_damaged_metadata_and_lost_inputs_are_told(store):
    (store / "X" / "rows" / "000000.npy").unlink()
    found = verify(store, rng=0)
    assert "cannot be computed again" in str(found[0])
    assert "000000.npy" in str(found[1])
    (store / "about.json").write_text("{")
    found = verify(store)
    assert "about.json" in found[0].damaged[-1]
    assert not found[0].is_intact


def test_missing_pieces_are_counted(store):
    (store / "done" / "0000002.json").unlink()
    assert verify(store)[0].missing == [2]


def test_a_folder_without_a_store_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold a store"):
        verify(tmp_path)


def test_rows_from_memory_are_not_computed_again(tmp_path):
    write_rows(tmp_path, X)
    [found] = verify(tmp_path)
    assert found.is_intact
    assert found.recomputed == []
