"""What a query of a collection finds."""

import itertools
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from refusals import refuses

from kernelcore.images import read_image
from kernelcore.models import ChanceLine, Encoders, PhotoIndex
from kernelcore.search import Collection, update_index
from kernelcore.search.collection import best_first

N_TRAINING = 40


@pytest.fixture
def place(files, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for file in files[N_TRAINING:]:
        shutil.copy(file, photos)
    return photos


def names(place):
    return sorted(path.name for path in place.glob("*.png"))


@pytest.fixture
def update(ranker, place):
    return lambda index: update_index(index, ranker, place, names(place), on_error="skip")


@pytest.fixture
def collection(ranker, place, update):
    return Collection(ranker, place, update(None)[0], update=update)


def test_search_ranks_all_photos(collection, ranker):
    sentence = "A dog chases a cat."
    found = collection.search(sentence)
    index = collection._current.index
    [matches] = ranker.search([sentence], index, k=99, calibrated=True)
    shown = [match for match in matches if match.item in found.numbers]
    assert [match.item for match in shown] == found.numbers.tolist()
    assert found.n_fitting == sum(match.by_chance <= 0.05 for match in shown)
    assert len(found.numbers) == len(collection)


def test_similar_photos_leave_out_the_photo_itself(collection, ranker, place):
    number = int(collection.numbers()[3])
    found = collection.similar(number)
    assert number not in found.numbers
    own = ranker.directions(collection._current.index.projections[3:4])[0]
    line = ChanceLine(ranker.directions(ranker.foreign().photos) @ own)
    pixels = read_image(collection.path(number))
    other = collection.similar_to(pixels)
    assert other.numbers[0] == number
    index = collection._current.index
    directions = ranker.directions(index.projections)
    cosines = directions @ directions[3]
    order = np.argsort(-cosines, kind="stable")
    assert [n for n in order if n != number] == found.numbers.tolist()
    assert found.n_fitting == (cosines > line.score_at(0.05)).sum() - 1
    assert 0 < other.n_fitting <= found.n_fitting + 1


def test_a_photo_and_a_sentence_are_ranked_by_both(collection, ranker):
    number = int(collection.numbers()[3])
    found = collection.similar(number), collection.search("a dog")
    lists = [own.numbers.tolist() for own in found]
    cosines, scores = (dict(zip(own, range(len(own)), strict=True)) for own in lists)
    found = collection.similar(number, "a dog").numbers.tolist()
    assert number not in found
    both = itertools.permutations(found, 2)
    better = [(a, b) for a, b in both if cosines[a] < cosines[b] and scores[a] < scores[b]]
    assert better
    assert all(found.index(a) < found.index(b) for a, b in better)
    uploaded = collection.similar_to(read_image(collection.path(number)), "a dog")
    assert set(uploaded.numbers.tolist()) == {*found, number}


def test_photos_are_annotated_with_the_captions_of_training(collection, ranker, scenes):
    assert set(collection.captions) == {own[0] for own in scenes.dataset.captions[:N_TRAINING]}
    number = int(collection.numbers()[0])
    found = collection.annotate_photo(number, k=3)
    [expected] = ranker.annotate([collection.path(number)], collection.captions, k=3)
    assert [match.name for match in found] == [match.name for match in expected]
    assert all(match.by_chance is not None for match in found)
    pixels = read_image(collection.path(number))
    again = collection.annotate(pixels, k=3)
    assert [match.name for match in again] == [match.name for match in found]
    scores = [match.score for match in found]
    assert [match.score for match in again] == pytest.approx(scores, rel=1e-5)
    refuses(ValueError, "k", collection.annotate_photo, number, k=0)


def test_words_are_told(collection):
    assert list(collection.unknown_words("a zeppelin and a dog")) == ["zeppelin"]
    number = int(collection.numbers()[0])
    shares = collection.contributions("dog zeppelin", number)
    assert [word for word, _ in shares] == ["dog", "zeppelin"]
    assert shares[1][1] == pytest.approx(0, abs=1e-9)


def test_a_folder_that_changes_is_followed(collection, place, files, tmp_path):
    before = collection.version
    kept = int(collection.numbers()[5])
    name = collection.name(kept)
    (place / names(place)[0]).unlink()
    shutil.copy(files[0], place / "new.png")
    changes = collection.refresh()
    assert (changes.added, changes.removed, changes.unreadable) == (1, 1, ())
    assert collection.version != before
    assert collection.name(kept) == name
    assert "new.png" in {collection.name(int(n)) for n in collection.numbers()}
    refuses(KeyError, "0", collection.name, 0)
    same = collection.version
    collection.refresh()
    assert collection.version == same


def test_an_index_on_disk_is_written_and_read_again(ranker, place, update, files, tmp_path):
    index, _ = update(None)
    index.save(tmp_path / "index")
    options = {"source": tmp_path / "index", "update": update}
    one, other = (Collection(ranker, place, index, **options) for _ in range(2))
    assert not one.reload()
    shutil.copy(files[0], place / "new.png")
    one.refresh()
    assert not one.reload()
    assert len(PhotoIndex.load(tmp_path / "index")) == len(one)
    assert other.reload()
    assert len(other) == len(one)
    assert not other.reload()


def test_encoders_serve_too(place):
    def lengths(items):
        return [[float(len(str(item))), 1.0] for item in items]

    encoders = Encoders(lengths, lengths, name="lengths")
    index, _ = update_index(None, encoders, place, names(place))
    collection = Collection(encoders, place, index)
    found = collection.search("a dog")
    assert found.n_fitting is None
    assert collection.unknown_words("zeppelin") == {}
    assert collection.contributions("a dog", 0) == []
    assert collection.annotate_photo(0) == []
    assert len(Collection(encoders, place, index, captions=["a dog"]).annotate_photo(0)) == 1
    refuses(ValueError, "update", collection.refresh)
    assert not collection.reload()


def test_bad_rates_are_refused():
    encoders = Encoders(len, len)
    index = PhotoIndex(["a"], [[1.0]], encoders.fingerprint)
    for rate in (0, 1, -1, 1.5):
        refuses(ValueError, "false_rate", Collection, encoders, ".", index, false_rate=rate)


FINITE = {"allow_nan": False, "allow_infinity": False}
SCORES = arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.floats(width=32, **FINITE)
) | arrays.arrays(
    np.float32, st.integers(0, 40), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40])
)


@given(SCORES)
def test_the_highest_come_first_and_ties_keep_their_order(scores):
    expected = sorted(range(len(scores)), key=lambda i: -scores[i])
    assert best_first(scores).tolist() == expected
    assert best_first(scores.astype(np.float64)).tolist() == expected
