"""Cached steps: values are read back, damaged ones are computed again, keys follow inputs."""

import json
import os

import numpy as np
import pytest

from kernelcore._store import save_tensors
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Kind, Source, Step, Store, compute, key_of, pending
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


FORMATS = {
    "array": Kind.array("x", 1),
    "json": Kind.json("x", 1),
    "value": Kind.of("x", 1, WordKernel),
}


def ask(store, kind, made):
    form = FORMATS[kind]
    found = store.value("x", "key", made, form.save, form.load)
    plain = {"array": list, "json": lambda value: value, "value": lambda value: value.words}
    return plain[kind](found)


KINDS = {
    "array": (np.arange(3), [0, 1, 2]),
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
        found = ask(Store(tmp_path), "json", lambda: {"b": 1, "a": 2})
        assert json.dumps(found) == '{"b": 1, "a": 2}'


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", bytes(100), b"\xff" * 50])
def test_a_file_that_is_no_entry_is_made_again(tmp_path, content):
    for kind, (value, expected) in KINDS.items():
        (tmp_path / "x-key").write_bytes(content)
        assert ask(Store(tmp_path), kind, Made(value)) == expected


@pytest.mark.parametrize("content", [None, b"", b"damaged"])
def test_an_error_of_making_a_value_stands_alone(tmp_path, content):
    kind = Kind.array("squares", 1)
    store = Store(tmp_path)
    if content is not None:
        (tmp_path / "squares-00").write_bytes(content)
    with pytest.raises(ZeroDivisionError) as caught:
        store.value("squares", "00", lambda: np.array(1 // 0), kind.save, kind.load)
    assert caught.value.__context__ is None


def test_an_entry_of_another_kind_is_made_again(tmp_path):
    save_tensors(tmp_path / "x-key", "things", {"v": np.ones(2)})
    for kind, (value, expected) in KINDS.items():
        assert ask(Store(tmp_path), kind, Made(value)) == expected


def test_what_dead_writers_left_is_removed_when_a_store_is_opened(tmp_path):
    left = tmp_path / f".x-key.{HIDDEN}.tmp"
    left.touch()
    Store(tmp_path)
    assert left.exists(), "perhaps it is being written"
    os.utime(left, (0, 0))
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


LENGTHS = Kind.array("lengths", 1)
SUMS = Kind.json("sums", 1)


class World:
    """Two steps, one on the other, that count their calls."""

    def __init__(self, store, n=3, *, lengths=LENGTHS, add=0, by=1):
        self.calls = []
        self.lengths = Step(store, lengths, self.make_lengths, n, by=by, stage="first")
        self.sum = Step(store, SUMS, self.make_sum, [self.lengths], add=add, stage="second")

    def make_lengths(self, n, *, by):
        self.calls.append("lengths")
        return np.arange(n) * by

    def make_sum(self, steps, *, add):
        self.calls.append("sum")
        return int(sum(step.value().sum() for step in steps)) + add


def test_a_step_computes_what_it_needs_once(tmp_path):
    world = World(Store(tmp_path))
    assert world.sum.value() == 3
    assert world.calls == ["sum", "lengths"]
    again = World(Store(tmp_path))
    assert again.sum.value() == 3
    assert again.calls == []


def test_pending_steps_are_inputs_first_and_each_once(tmp_path):
    world = World(Store(tmp_path))
    assert [step.stage for step in pending([world.sum, world.sum])] == ["first", "second"]
    compute([world.lengths])
    assert [step.stage for step in pending([world.sum])] == ["second"]
    world.sum.value()
    assert pending([world.sum, world.lengths]) == []


def test_an_input_is_not_needed_where_the_value_is_kept(tmp_path):
    world = World(Store(tmp_path))
    world.sum.value()
    for path in tmp_path.glob("lengths-*"):
        path.unlink()
    assert pending([world.sum]) == []
    assert World(Store(tmp_path)).sum.value() == 3


@pytest.mark.parametrize("change", [{"n": 4}, {"by": 2}, {"lengths": Kind.array("lengths", 2)}])
def test_a_key_depends_on_inputs_settings_and_version_of_all_before_it(tmp_path, change):
    one, other = World(Store(tmp_path)), World(Store(tmp_path), **change)
    assert one.lengths.key != other.lengths.key
    assert one.sum.key != other.sum.key


def test_settings_share_inputs(tmp_path):
    one, other = World(Store(tmp_path)), World(Store(tmp_path), add=5)
    assert one.lengths.key == other.lengths.key
    assert (one.sum.value(), other.sum.value()) == (3, 8)
    assert other.calls == ["sum"]


def test_keys_tell_arrays_and_sources_apart():
    row = np.arange(4, dtype=np.float32)
    parts = [row, row.astype(np.float64), row.reshape(2, 2), row + 1, b"ab", "ab", [1], None]
    keys = {key_of(part) for part in parts} | {key_of("a", "b"), key_of(["a", "b"])}
    assert len(keys) == len(parts) + 2
    assert key_of((1, 2)) == key_of([1, 2])
    assert Source("value", row).key == Source("another value", row).key
    assert Source(row).key == key_of(row)
    assert key_of(Source(row)) != key_of(Source(row + 1))


def test_a_value_that_came_as_a_by_product_is_kept(tmp_path):
    world = World(Store(tmp_path))
    world.lengths.keep(np.array([10]))
    assert world.sum.value() == 10
    assert world.calls == ["sum"]
    world.lengths.keep(np.array([11]))
    assert world.lengths.value().tolist() == [10]


def test_checkpoints_are_kept_for_more_epochs(tmp_path):
    folders = []

    def train(n, *, n_epochs, folder):
        folder.mkdir(exist_ok=True)
        folders.append(folder)
        if len(folders) == 1:
            (folder / "log.csv").touch()
            raise KeyboardInterrupt
        assert (folder / "log.csv").is_file()
        return n + n_epochs

    def step(n, n_epochs):
        kind = Kind.json("model", 1)
        return Step(Store(tmp_path), kind, train, n, resumes=True, n_epochs=n_epochs)

    with pytest.raises(KeyboardInterrupt):
        step(7, 2).value()
    assert step(7, 2).value() == 9
    assert step(7, 3).value() == 10
    assert len(set(folders)) == 1
    assert step(7, 2).key != step(7, 3).key
