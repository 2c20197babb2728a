"""Search by lists of FAISS in the folder of an index."""

import shutil

import numpy as np
import pytest

pytest.importorskip("faiss")

from kernelcore.models import Encoders, PhotoIndex
from kernelcore.search import ApproximateSearch
from kernelcore.search.approximate import has_lists, remove_lists

N_PHOTOS, N_DIMENSIONS = 3000, 8


def drawn(texts):
    """Return a vector for each text, drawn by what the text is."""
    rows = [
        np.random.default_rng(list(text.encode())).standard_normal(N_DIMENSIONS)
        for text in texts
    ]
    return np.array(rows, np.float32)


@pytest.fixture(scope="module")
def model():
    return Encoders(drawn, drawn, name="drawn", foreign_images=drawn(map(str, range(500))))


@pytest.fixture(scope="module")
def index(model):
    return model.index([f"photo {i}" for i in range(N_PHOTOS)])


@pytest.fixture
def folder(model, index, tmp_path):
    place = tmp_path / "index"
    index.save(place)
    ApproximateSearch.build(index, model, place)
    return place


def test_most_of_the_best_are_found_with_their_own_scores(model, index, folder):
    sentences = [f"sentence {i}" for i in range(50)]
    approximate = ApproximateSearch(model, folder).search(sentences, k=10, calibrated=True)
    exact = model.search(sentences, index, k=10, calibrated=True)
    shared = 0
    for one, other in zip(approximate, exact, strict=True):
        assert [match.score for match in one] == sorted((m.score for m in one), reverse=True)
        known = {match.item: match for match in other}
        for match in one:
            assert match.name == index.names[match.item] == f"photo {match.item}"
            if match.item in known:
                shared += 1
                assert match.score == pytest.approx(known[match.item].score, abs=1e-6)
                assert match.by_chance == pytest.approx(known[match.item].by_chance, abs=0.01)
    assert 0.5 < shared / 500 < 1.0  # the lists are few enough that some are missed


def test_a_few_photos_are_all_found(model, tmp_path):
    index = model.index(["a", "b", "c"])
    index.save(tmp_path / "index")
    ApproximateSearch.build(index, model, tmp_path / "index")
    [found] = ApproximateSearch(model, tmp_path / "index").search(["x"], k=10)
    [expected] = model.search(["x"], index, k=10)
    assert [match[2:] for match in found] == [match[2:] for match in expected]
    assert ApproximateSearch(model, tmp_path / "index").search([]) == []


def test_an_index_that_is_written_again_has_no_lists(index, folder):
    assert has_lists(folder)
    index.save(folder, overwrite=True)
    assert not has_lists(folder)


def test_lists_can_be_removed_and_the_index_stays(model, index, folder):
    remove_lists(folder)
    remove_lists(folder)
    assert not has_lists(folder)
    assert PhotoIndex.load(folder).names == index.names
    with pytest.raises(FileNotFoundError, match="no lists of FAISS in"):
        ApproximateSearch(model, folder)


def test_another_model_is_refused(folder):
    with pytest.raises(ValueError, match="made by this model"):
        ApproximateSearch(Encoders(drawn, drawn, name="other"), folder)


def test_lists_of_another_index_are_refused(model, folder, tmp_path):
    shorter = model.index(["a", "b"])
    shorter.save(tmp_path / "shorter")
    shutil.copytree(folder / "faiss", tmp_path / "shorter" / "faiss")
    with pytest.raises(ValueError, match="one photo for each of the 3000 rows"):
        ApproximateSearch(model, tmp_path / "shorter")


def test_lists_are_made_of_the_index_in_the_folder_alone(model, index, folder, tmp_path):
    with pytest.raises(TypeError, match="index must be a PhotoIndex, got str"):
        ApproximateSearch.build("index", model, folder)
    other = model.index([f"other {i}" for i in range(N_PHOTOS)])
    with pytest.raises(ValueError, match=r"index must be what .* holds"):
        ApproximateSearch.build(other, model, folder)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ApproximateSearch.build(index, model, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["index.faiss", "index.json"])
def test_damaged_lists_are_named(model, folder, name):
    content = bytearray((folder / "faiss" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "faiss" / name).write_bytes(content)
    with pytest.raises(ValueError, match="faiss"):
        ApproximateSearch(model, folder)


@pytest.mark.parametrize(("options", "name"), [({"k": 0}, "k"), ({"calibrated": 1}, "cal")])
def test_wrong_options_are_named(model, folder, options, name):
    with pytest.raises((TypeError, ValueError), match=f"^{name}"):
        ApproximateSearch(model, folder).search(["a"], **options)
