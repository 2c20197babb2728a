"""What an experiment keeps is what it has computed, or is computed again."""

import json

import numpy as np
import pytest

from kernelcore._files import save_tensors
from kernelcore.experiments.hodosh2013.scorer import Scores
from kernelcore.experiments.store import Store
from kernelcore.lexical import WordKernel

HIDDEN = "0123456789abcdef" * 2
WORDS = WordKernel(["a", "b"], np.eye(2))


class Made:
    """Makes a value and counts how often it was asked to."""

    def __init__(self, value):
        self.value, self.n_times = value, 0

    def __call__(self):
        self.n_times += 1
        return self.value


def ask(store, kind, made):
    if kind == "arrays":
        return store.arrays("x", "key", made)["v"].tolist()
    if kind == "json":
        return store.json("x", "key", made)
    return store.value("x", "key", made, WordKernel.save, WordKernel.load).words


KINDS = {
    "arrays": ({"v": np.arange(3)}, [0, 1, 2]),
    "json": ({"b": [1.5, None], "a": "ä"}, {"b": [1.5, None], "a": "ä"}),
    "value": (WORDS, ("a", "b")),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_what_is_there_is_not_made_again(tmp_path, kind):
    value, expected = KINDS[kind]
    made = Made(value)
    for _ in range(2):
        assert ask(Store(tmp_path), kind, made) == expected
    assert made.n_times == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x-key"]


@each_kind
def test_one_flipped_bit_is_noticed_and_the_value_is_made_again(tmp_path, kind):
    value, expected = KINDS[kind]
    made, store, path = Made(value), Store(tmp_path), tmp_path / "x-key"
    ask(store, kind, made)
    whole = path.read_bytes()
    for place in range(8, len(whole), 5):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert ask(store, kind, made) == expected, place
    made.n_times = 0
    damaged = bytearray(whole)
    damaged[-1 if kind != "json" else whole.index(b"json") + 12] ^= 2
    path.write_bytes(damaged)
    assert ask(store, kind, made) == expected
    assert made.n_times == 1
    assert path.read_bytes() == whole


def test_keys_of_json_stay_in_their_order(tmp_path):
    for _ in range(2):
        found = Store(tmp_path).json("x", "key", lambda: {"b": 1, "a": 2})
        assert json.dumps(found) == '{"b": 1, "a": 2}'


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", bytes(100), b"\xff" * 50])
def test_a_file_that_is_no_entry_is_made_again(tmp_path, content):
    for kind, (value, expected) in KINDS.items():
        (tmp_path / "x-key").write_bytes(content)
        assert ask(Store(tmp_path), kind, Made(value)) == expected


def test_an_entry_of_another_kind_is_made_again(tmp_path):
    save_tensors(tmp_path / "x-key", "things", {"v": np.ones(2)})
    for kind, (value, expected) in KINDS.items():
        assert ask(Store(tmp_path), kind, Made(value)) == expected


def test_what_dead_writers_left_is_removed_when_a_store_is_opened(tmp_path):
    (tmp_path / f".x-key.{HIDDEN}.tmp").touch()
    Store(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_state_of_training_is_removed(tmp_path):
    folder = tmp_path / "training-key"
    assert Store(tmp_path).unfinished("training-key") == folder
    folder.mkdir()
    for name in ("sound", "flipped", "cut"):
        save_tensors(folder / f"{name}.safetensors", "state", {"v": np.ones(3)})
    flipped, cut = folder / "flipped.safetensors", folder / "cut.safetensors"
    flipped.write_bytes(flipped.read_bytes()[:-1] + b"\1")
    cut.write_bytes(cut.read_bytes()[:-1])
    (folder / "log.csv").touch()
    assert Store(tmp_path).unfinished("training-key") == folder
    assert {path.name for path in folder.iterdir()} == {"log.csv", "sound.safetensors"}


def test_scores_have_the_same_settings_before_and_after_a_file(tmp_path):
    settings = {"weights": "idf", "grid": {"powers": (1.0, 2.0), "max_rank": 9}, "lexical": ()}
    made = Scores(np.eye(2), np.eye(2), settings)
    made.save(tmp_path / "scores")
    loaded = Scores.load(tmp_path / "scores")
    assert json.dumps(made.settings) == json.dumps(loaded.settings)
