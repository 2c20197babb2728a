"""Search by vectors of any pair of functions."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sentence_transformers_stub as stub
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from refusals import refuses

from kernelcore.errors import MissingExtraError
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


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """Files of a red, a green and a blue photo."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", stub)
    for place, name in enumerate(stub.COLOURS):
        pixels = np.zeros((4, 6, 3), np.uint8)
        pixels[:, :, place] = 255
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    return [tmp_path / f"{name}.png" for name in stub.COLOURS]


def test_a_model_of_sentence_transformers_on_disk(colours, tmp_path):
    folder = stub.write_model(tmp_path / "clip")
    encoders = Encoders.from_sentence_transformers(folder, foreign_images=colours[:2])
    index = encoders.index(colours)
    assert index.names == tuple(map(str, colours))
    scores = encoders.scores(index, ["a blue bird", "red and green"])
    expected = [[0, 0.5**0.5], [0, 0.5**0.5], [1, 0]]
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    [[best]] = encoders.search(["a blue bird"], index, k=1, calibrated=True)
    assert (best.item, best.by_chance) == (2, 1 / 3)
    assert set(stub.calls) == {False}
    pixels = np.asarray(Image.open(colours[0]))
    of_pixels = encoders.index([pixels, Image.open(colours[1])])
    np.testing.assert_array_equal(of_pixels.projections, index.projections[:2])
    loaded = stub.SentenceTransformer(folder, local_files_only=True)
    own = Encoders.from_sentence_transformers(loaded, name="mine")
    assert own.fingerprint == "mine"
    np.testing.assert_array_equal(own.index(colours).projections, index.projections)


def test_another_model_of_sentence_transformers_cannot_use_the_index(colours, tmp_path):
    """It is known by the content of its files, not by its place or their names."""
    one, same = (stub.write_model(tmp_path / name) for name in ("one", "same"))
    index = Encoders.from_sentence_transformers(one).index(colours)
    assert Encoders.from_sentence_transformers(str(same)).search(["red"], index)
    other = stub.write_model(tmp_path / "other", (1.0, 1.0, 2.0))
    (same / "modules.json").rename(same / "config.json")
    for folder in (other, same):
        encoders = Encoders.from_sentence_transformers(folder)
        refuses(ValueError, "photos", encoders.search, ["red"], index)


def test_only_models_of_sentence_transformers_are_taken(colours, tmp_path, monkeypatch):
    of = Encoders.from_sentence_transformers
    folder = stub.write_model(tmp_path / "clip")
    refuses(TypeError, "model", of, 3)
    refuses(ValueError, "name", of, stub.SentenceTransformer(folder, local_files_only=True))
    with pytest.raises(OSError, match="not cached"):
        of("clip-ViT-B-32")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"kernelcore\[clip\]"):
        of(folder)
