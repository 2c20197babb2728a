"""Training items placed as new ones, and what is found by chance with them."""

import json

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import PhotoRanker
from kernelcore.models import foreign as foreign_module

N_TRAINING = 40
SCENES = make_scenes(60, size=(32, 40))
CAPTIONS = SCENES.dataset.captions


def fitted(kernel="bag_of_words"):
    words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    ranker = PhotoRanker(words, caption_kernel=kernel, n_components=(8,))
    return ranker.fit(SCENES.images[:N_TRAINING], CAPTIONS[:N_TRAINING])


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def test_captions_are_placed_without_their_own_photo(ranker):
    known = ranker.training_.captions
    found = ranker.foreign()
    assert found.captions.shape == (N_TRAINING, ranker.embed_captions(["a"]).shape[1])
    for item in (0, 7, 39):
        text = CAPTIONS[item][item % 5]
        row = known.gram(known.encode([[text]]))[0]
        row[item] = np.delete(row, item).mean()
        np.testing.assert_allclose(
            found.captions[item], ranker._space.captions(row[None])[0], atol=1e-5
        )
        assert found.texts[item] == tuple(CAPTIONS[item])


def test_photos_are_placed_without_themselves(ranker):
    found = ranker.foreign()
    plain = ranker.embed_images(SCENES.images[:N_TRAINING])
    np.testing.assert_allclose(found.known_photos, plain, atol=1e-5)
    row = ranker.training_.photo_kernel(
        ranker.training_.known(np.array([5])), scaling=ranker.scaling_
    )
    row = row**ranker.image_power_
    row[0, 5] = np.delete(row[0], 5).mean()
    np.testing.assert_allclose(found.photos[5], ranker._space.photos(row)[0], atol=1e-4)


def test_at_most_two_thousand_items_are_drawn(ranker, monkeypatch):
    monkeypatch.setattr(foreign_module, "_MOST", 7)
    ranker = fitted()
    found = ranker.foreign()
    assert len(found.captions) == len(found.photos) == len(found.texts) == 7
    assert found.texts[0] == tuple(CAPTIONS[0])
    assert found.texts[-1] == tuple(CAPTIONS[N_TRAINING - 1])


def test_a_model_keeps_them(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    for one, other in zip(ranker.foreign()[:3], loaded.foreign()[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(map(tuple, loaded.foreign().texts)) == list(ranker.foreign().texts)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    for entry, file in (("has_foreign", "foreign.safetensors"), ("has_texts", "captions.json")):
        (tmp_path / "model" / file).unlink()
        with pytest.raises(FileNotFoundError, match=file):
            PhotoRanker.load(tmp_path / "model")
        del about[entry]  # as in a model of version 0.1
        (tmp_path / "model" / "model.json").write_text(json.dumps(about))
    old = PhotoRanker.load(tmp_path / "model")
    np.testing.assert_allclose(old.foreign().captions, ranker.foreign().captions, atol=1e-6)
    assert old.foreign().texts == ()


@pytest.mark.parametrize("damage", ['{"a": 1}', "[[1]]", '[["a dog"]]', "["])
def test_damaged_captions_are_named(ranker, tmp_path, damage):
    ranker.save(tmp_path / "model")
    (tmp_path / "model" / "captions.json").write_text(damage)
    with pytest.raises(ValueError, match=r"captions\.json"):
        PhotoRanker.load(tmp_path / "model")


def test_items_of_another_model_are_refused(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    fitted().fit(SCENES.images[:30], CAPTIONS[:30]).save(tmp_path / "other")
    (tmp_path / "other" / "foreign.safetensors").replace(
        tmp_path / "model" / "foreign.safetensors"
    )
    with pytest.raises(ValueError, match=r"foreign\.safetensors"):
        PhotoRanker.load(tmp_path / "model")


def test_a_training_photo_that_is_searched_is_no_chance(ranker):
    """Captions of photos that are in the collection do not count these as found by chance."""
    index = ranker.index(SCENES.images[:N_TRAINING])
    known = ranker.foreign()
    scores = index.projections @ known.captions.T
    np.fill_diagonal(scores, -np.inf)
    line = ranker.chance_line(index)
    np.testing.assert_allclose(line.best, np.sort(scores.max(axis=0)), atol=1e-5)
    texts = [own[0] for own in CAPTIONS[:N_TRAINING]]
    placed = ranker.embed_captions(texts)
    scores = known.photos @ placed.T
    same = np.array([[text in own for text in texts] for own in map(set, known.texts)])
    for k in range(len(texts)):
        scores[np.flatnonzero(same[:, k])[-1], k] = -np.inf
    line = ranker.chance_line(texts)
    np.testing.assert_allclose(line.best, np.sort(scores.max(axis=1)), atol=1e-5)


def test_new_queries_are_rarely_found_by_chance():
    """Sentences about other scenes: the stated rate holds, up to the size of the sample."""
    ranker = fitted("similar_words")
    index = ranker.index(SCENES.images[N_TRAINING:])
    texts = [text for own in CAPTIONS[N_TRAINING:] for text in own]
    owner = np.repeat(np.arange(20), 5)
    scores = ranker.scores(index, texts).T
    scores[np.arange(100), owner] = -np.inf
    line = ranker.chance_line(index)
    rate = (line.by_chance(scores.max(axis=1)) <= 0.25).mean()
    assert 0.05 < rate < 0.6
