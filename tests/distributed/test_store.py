"""Stores: pieces are complete or missing, and other content is refused."""

import json
import multiprocessing
import re
import threading
import time

import hostile
import numpy as np
import pytest

import kernelcore
from kernelcore.datasets import make_scenes
from kernelcore.distributed import (
    extract_features,
    gram_to_store,
    open_features,
    open_rows,
    read_gram,
    write_rows,
)
from kernelcore.distributed.store import Piece, Store, working_on
from kernelcore.images import CNN


def begun(folder, **changes):
    about = {"kind": "a kind", "n_pieces": 3, "settings": {"a": 1}, "inputs": {}} | changes
    return Store.begin(folder, *about.values())


def piece(value):
    return Piece({"x/0.npy": np.full((2, 2), value), "raw": np.arange(3)}, {"value": value})


def test_a_piece_is_read_as_it_was_written(tmp_path):
    store = begun(tmp_path / "s")
    assert store.missing() == [0, 1, 2]
    store.put(1, piece(5.0))
    assert store.missing() == [0, 2]
    assert store.is_done(1)
    assert store.facts(1) == {"value": 5.0}
    np.testing.assert_array_equal(np.load(tmp_path / "s" / "x" / "0.npy"), np.full((2, 2), 5.0))
    raw = np.fromfile(tmp_path / "s" / "raw", "<i8")
    np.testing.assert_array_equal(raw, np.arange(3))
    assert store.digests(1) == piece(5.0).digests()


def test_a_piece_may_have_a_long_number(tmp_path):
    store = begun(tmp_path, n_pieces=10**7 + 1)
    store.put(10**7, piece(1.0))
    assert store.is_done(10**7)
    assert store.done() == {10**7}


def test_the_same_store_is_gone_on_with(tmp_path):
    begun(tmp_path).put(0, piece(1.0))
    assert begun(tmp_path).missing() == [1, 2]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kind": "another"}, "kind"),
        ({"n_pieces": 4}, "n_pieces"),
        ({"settings": {"a": 2}}, "a "),
        ({"inputs": {"X": {"digest": "1"}}}, "input X"),
        ({"inputs": {"a": {"digest": "1"}}}, "input a"),
    ],
)
def test_another_store_is_refused_and_nothing_is_lost(tmp_path, changes, named):
    begun(tmp_path).put(0, piece(1.0))
    before = (tmp_path / "about.json").read_bytes()
    with pytest.raises(ValueError, match=f"must be empty or the same store.*{named}"):
        begun(tmp_path, **changes)
    assert (tmp_path / "about.json").read_bytes() == before
    assert begun(tmp_path).missing() == [1, 2]


def test_pieces_of_two_versions_are_not_mixed(tmp_path, monkeypatch):
    begun(tmp_path).put(0, piece(1.0))
    monkeypatch.setattr(kernelcore, "__version__", "99.0")
    assert Store.open(tmp_path).facts(0) == {"value": 1.0}
    with pytest.raises(ValueError, match=r"differs in version .*99\.0"):
        begun(tmp_path)


def test_inputs_may_have_moved(tmp_path):
    begun(tmp_path, inputs={"X": {"digest": "1", "path": "old"}})
    assert begun(tmp_path, inputs={"X": {"digest": "1", "path": "new"}}).inputs["X"][
        "path"
    ] == ("new")
    assert Store.open(tmp_path).inputs["X"]["path"] == "new"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"format": 2, "kind": "k", "n_pieces": 1, "settings": {}, "inputs": {}}',
        '{"format":1, "version":"", "kind": 3, "n_pieces": 1, "settings": {}, "inputs": {}}',
        '{"format":1, "version":"", "kind": "k", "n_pieces": -1, "settings": {}, "inputs": {}}',
        '{"format":1, "version":"", "kind": "k", "n_pieces": 1, "settings": 3, "inputs": {}}',
    ],
)
def test_damaged_metadata_is_named(tmp_path, text):
    (tmp_path / "about.json").write_text(text)
    with pytest.raises(ValueError, match=r"about\.json"):
        Store.open(tmp_path)


def test_a_folder_without_a_store_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be a store"):
        Store.open(tmp_path)


@pytest.mark.parametrize(
    "mark", ["", "3", '{"files": {}}', '{"files": {"../a": "b"}, "facts": {}}']
)
def test_a_damaged_mark_is_named(tmp_path, mark):
    store = begun(tmp_path)
    store.put(0, piece(1.0))
    (tmp_path / "done" / "0000000.json").write_text(mark)
    with pytest.raises(ValueError, match=r"0000000\.json"):
        store.digests(0)


ODD = (-1, 0, 10**7, 10**18, 10**400, 1.5, None, "x", [], [1, 2], {}, True)


@pytest.mark.parametrize("kind", ["gram", "rows", "photos"])
def test_odd_numbers_in_metadata_are_refused_at_once(tmp_path, kind):
    """Neither memory nor time follows from a number that the files do not bear out."""
    X = np.arange(12.0).reshape(6, 2)
    if kind == "gram":
        gram_to_store("histogram_intersection", X, None, tmp_path / "s", tile=2)
        read = read_gram
    elif kind == "rows":
        write_rows(tmp_path / "s", X, shard_rows=2)
        read = open_rows
    else:
        make_scenes(2, rng=0, size=(32, 32)).write(tmp_path / "photos")
        photos = sorted((tmp_path / "photos").rglob("*.png"))
        extract_features(photos, CNN(), tmp_path / "s", shard_photos=1)
        read = open_features
    path = tmp_path / "s" / "about.json"
    about = json.loads(path.read_text())
    places = [(about, "n_pieces"), *((about["settings"], name) for name in about["settings"])]
    for place, name in places:
        if name in {"content", "kernel", "cnn", "identity", "photos"}:
            continue
        for odd in (*ODD, [10**18] * 2):
            whole, place[name] = place[name], odd
            path.write_text(json.dumps(about))
            place[name] = whole
            if odd == whole:
                continue
            start = time.monotonic()
            with pytest.raises(ValueError, match=re.escape(str(tmp_path / "s"))):
                read(tmp_path / "s")
            assert time.monotonic() - start < 1.0


def test_of_two_beginnings_one_is_the_store(tmp_path):
    """Eight threads begin stores of their own settings in one folder."""
    results = []
    barrier = threading.Barrier(8)

    def begin(a):
        barrier.wait()
        try:
            results.append(begun(tmp_path / "s", settings={"a": a}).settings["a"])
        except ValueError:
            results.append(None)

    threads = [threading.Thread(target=begin, args=(a,)) for a in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [a for a in results if a is not None]
    assert winners == [json.loads((tmp_path / "s" / "about.json").read_text())["settings"]["a"]]


def test_a_second_run_is_refused_while_one_works(tmp_path):
    other = working_on(tmp_path / "s")
    with (
        working_on(tmp_path / "s"),
        pytest.raises(RuntimeError, match="another run is working on"),
        other,
    ):
        pass
    with working_on(tmp_path / "s"):
        pass


def test_a_run_that_was_killed_keeps_no_one_off(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hostile.holds, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(RuntimeError, match="another run"), working_on(tmp_path):
        pass
    process.kill()
    process.join()
    with working_on(tmp_path):
        pass
