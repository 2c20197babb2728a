"""Search by vectors of any pair of functions."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from kernelcore.models import Encoders, PhotoIndex

LETTERS = "abcdefgh"


def letters(items):
    return np.array([[str(item).count(letter) for letter in LETTERS] for item in items], float)


NAMES = ["bad.png", "fed.png", "cab.png", "hag.png"]


def cosines(photos, sentences):
    rows, columns = letters(photos), letters(sentences)
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(columns, axis=1)
    return rows @ columns.T / np.where(lengths > 0, lengths, 1)


def test_scores_are_cosines_of_what_the_functions_return():
    encoders, sentences = Encoders(letters, letters), ["a cab", "bed", "xyz"]
    index = encoders.index(NAMES)
    assert index.projections.dtype == np.float32
    expected = cosines(NAMES, sentences)
    np.testing.assert_allclose(encoders.scores(index, sentences), expected, atol=1e-6)
    np.testing.assert_allclose(encoders.scores(NAMES, sentences), expected, atol=1e-6)
    [found, *_] = encoders.search(sentences, index, k=2)
    assert found[0].name == "cab.png"
    [[best]] = encoders.annotate(["fed.png"], sentences, k=1)
    assert best.name == "bed"


def test_photos_may_be_vectors_on_disk(tmp_path):
    np.save(tmp_path / "v.npy", letters(NAMES))
    encoders = Encoders(letters)
    index = encoders.index(np.load(tmp_path / "v.npy"), names=NAMES)
    np.testing.assert_allclose(
        encoders.scores(index, ["a cab"]), cosines(NAMES, ["a cab"]), atol=1e-6
    )
    with pytest.raises(ValueError, match="photos must be vectors, because"):
        encoders.index(NAMES)
    with pytest.raises(ValueError, match=r"names must have one entry per photo \(4\), got 1"):
        encoders.index(letters(NAMES), names=["a"])


def test_functions_are_called_with_at_most_64_items():
    sizes = []

    def counted(items):
        sizes.append(len(items))
        return letters(items)

    done = []
    names = [f"{i}.png" for i in range(150)]
    Encoders(counted, counted, name="counted").index(
        names, progress=lambda *of: done.append(of)
    )
    assert sizes == [64, 64, 22]
    assert done[-1] == (150, 150)


def test_functions_may_be_named(monkeypatch, tmp_path):
    (tmp_path / "my_encoders.py").write_text(
        "def lengths(items):\n    return [[len(str(item)), 1] for item in items]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    encoders = Encoders("my_encoders:lengths", "my_encoders:lengths")
    assert encoders.index(["a"]).model == "my_encoders:lengths my_encoders:lengths"
    named = Encoders("my_encoders:lengths", name="lengths 2")
    assert (named.fingerprint, repr(named)) == ("lengths 2", "Encoders(lengths 2)")
    assert Encoders(letters).fingerprint.endswith(":letters")
    with pytest.raises(ValueError, match="captions must be a function that can be imported"):
        Encoders("my_encoders:nothing")
    with pytest.raises(ValueError, match="images must be a function that can be imported"):
        Encoders(letters, "nowhere:f")
    with pytest.raises(TypeError, match="captions must be callable"):
        Encoders(3)


class Model:
    def vectors(self, items):
        return letters(items)

    __call__ = vectors


@pytest.mark.parametrize(
    "encoder", [lambda items: [[1.0]], Model(), Model().vectors, partial(letters)]
)
def test_what_cannot_be_imported_needs_a_name(encoder):
    for own in ((encoder,), (letters, encoder)):
        with pytest.raises(ValueError, match="name must be given unless functions can"):
            Encoders(*own)
        assert Encoders(*own, name="letters").fingerprint == "letters"


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_query_is_embedded_once(calibrated):
    asked = []

    def counted(items):
        asked.extend(items)
        return letters(items)

    foreign = {"foreign_images": letters(["ace"]), "foreign_captions": ["fig"]}
    encoders = Encoders(counted, counted, name="counted", **foreign)
    encoders.foreign()
    index = encoders.index(NAMES)
    asked.clear()
    encoders.search(["cab"], index, calibrated=calibrated)
    encoders.annotate(index, ["bed"], calibrated=calibrated)
    encoders.annotate(["hag.png"], ["fed"], calibrated=calibrated)
    assert sorted(asked) == ["bed", "cab", "fed", "hag.png"]


def test_an_index_of_other_encoders_is_refused():
    index = PhotoIndex(["a"], [[1.0]], "other")
    with pytest.raises(ValueError, match="photos must be an index made by this model"):
        Encoders(letters, letters).search(["a"], index)


def test_widths_that_differ_are_told():
    encoders = Encoders(letters, lambda items: [[1.0, 2.0]] * len(items), name="two")
    with pytest.raises(
        ValueError,
        match=r"captions must have vectors of 8 numbers .*, got 2|of 2 numbers .*, got 8",
    ):
        encoders.search(["a"], ["x.png"])
    assert encoders.search([], ["x.png"]) == []


def test_no_two_calls_run_at_the_same_time():
    running, most = [], []

    def slow(items):
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return letters(items)

    encoders = Encoders(slow, name="slow")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: encoders.embed_captions(["a"]), range(8)))
    assert max(most) == 1


@pytest.mark.parametrize(
    "result",
    [
        lambda items: np.ones((len(items) + 1, 2)),
        lambda items: np.full((len(items), 2), np.nan),
        lambda items: np.ones(len(items)),
        lambda items: [["a"]] * len(items),
        lambda items: [[1.0], [1.0, 2.0]],
    ],
)
def test_what_a_function_returns_is_checked(result):
    with pytest.raises((TypeError, ValueError), match="result of images"):
        Encoders(letters, result, name="odd").index(["a", "b"])


def test_chance_comes_from_foreign_photos_and_sentences():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list(LETTERS), 3)) for _ in range(50)]
    encoders = Encoders(letters, letters, foreign_images=words)
    index = encoders.index(NAMES)
    known = np.sort(cosines(words, ["cab"])[:, 0])
    [line] = encoders.chance_lines(["cab"])
    np.testing.assert_allclose(line.foreign, known, atol=1e-6)
    [matches] = encoders.search(["cab"], index, calibrated=True)
    for match in matches:
        most, least = ((1 + (known >= match.score - d).sum()) / 51 for d in (1e-6, -1e-6))
        assert least - 1e-9 <= match.by_chance <= most + 1e-9
    with pytest.raises(ValueError, match=r"calibrated .* give foreign_images"):
        Encoders(letters, letters).search(["cab"], index, calibrated=True)
    with pytest.raises(ValueError, match=r"calibrated .* give foreign_captions"):
        encoders.annotate(NAMES, ["cab"], calibrated=True)
    captions = Encoders(letters, letters, foreign_captions=["ace", "fig", "dab"])
    [matches] = captions.annotate(NAMES[:1], ["cab", "head"], calibrated=True)
    assert all(match.by_chance in {0.25, 0.5, 0.75, 1.0} for match in matches)
    with pytest.raises(TypeError, match="calibrated must"):
        encoders.search(["cab"], index, calibrated="yes")
