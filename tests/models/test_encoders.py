"""Search by vectors of any pair of functions."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelcore.models import Encoders
from kernelcore.models.photo_search import best_matches

LETTERS = "abcdefgh"
NAMES = ["bad.png", "fed.png", "cab.png", "hag.png"]
FINITE = {"allow_nan": False, "allow_infinity": False}
SCORES = arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.floats(width=32, **FINITE)
) | arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40])
)


def letters(items):
    return np.array([[str(item).count(letter) for letter in LETTERS] for item in items], float)


def cosines(photos, sentences):
    rows, columns = letters(photos), letters(sentences)
    lengths = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(columns, axis=1)
    return rows @ columns.T / np.where(lengths > 0, lengths, 1)


@given(SCORES, st.integers(1, 50))
def test_the_best_are_the_first_of_all(scores, k):
    names = [f"photo {i}" for i in range(len(scores))]
    order = np.argsort(-scores, kind="stable")[:k]
    expected = [(i, scores[i], names[i], None) for i in order]
    assert best_matches(scores, k, names) == expected


def test_scores_are_cosines_of_what_the_functions_return(tmp_path):
    encoders, sentences = Encoders(letters, letters), ["a cab", "bed", "xyz"]
    np.save(tmp_path / "v.npy", letters(NAMES))
    index = encoders.index(NAMES)
    assert index.projections.dtype == np.float32
    of_vectors = Encoders(letters).index(np.load(tmp_path / "v.npy"), names=NAMES)
    assert of_vectors.names == index.names
    expected = cosines(NAMES, sentences)
    np.testing.assert_allclose(encoders.scores(index, sentences), expected, atol=1e-6)
    np.testing.assert_allclose(encoders.scores(NAMES, sentences), expected, atol=1e-6)
    scores = Encoders(letters).scores(of_vectors, sentences)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    [found, *_] = encoders.search(sentences, index, k=2)
    assert [match.name for match in found] == ["cab.png", "bad.png"]
    [[best]] = encoders.annotate(["fed.png"], sentences, k=1)
    assert best.name == "bed"
    assert encoders.search([], ["x.png"]) == []


def test_functions_are_called_with_at_most_64_items():
    sizes, done = [], []

    def counted(items):
        sizes.append(len(items))
        return letters(items)

    names = [f"{i}.png" for i in range(150)]
    encoders = Encoders(counted, counted, name="counted")
    encoders.index(names, progress=lambda *of: done.append(of))
    assert sizes == [64, 64, 22]
    assert done[-1] == (150, 150)


def test_functions_may_be_named(monkeypatch, tmp_path):
    code = "def lengths(items):\n    return [[len(str(item)), 1] for item in items]\n"
    (tmp_path / "my_encoders.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    encoders = Encoders("my_encoders:lengths", "my_encoders:lengths")
    assert encoders.index(["a"]).model == "my_encoders:lengths my_encoders:lengths"
    assert Encoders("my_encoders:lengths", name="lengths 2").fingerprint == "lengths 2"
    assert Encoders(letters).fingerprint.endswith(":letters")


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
    captions = Encoders(letters, letters, foreign_captions=["ace", "fig", "dab"])
    [matches] = captions.annotate(NAMES[:1], ["cab", "head"], calibrated=True)
    assert all(match.by_chance in {0.25, 0.5, 0.75, 1.0} for match in matches)
