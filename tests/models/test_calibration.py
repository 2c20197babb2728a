"""Conformal p-values of search scores, and the training items they are estimated from."""

import math

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore._ragged import take
from kernelcore.datasets import make_scenes
from kernelcore.images import VisualWords
from kernelcore.models import ChanceLine, PhotoRanker, calibration
from kernelcore.models.photo_features import PhotoKernel

N_TRAINING = 40
SCENES = make_scenes(60, size=(32, 40))
CAPTIONS = SCENES.dataset.captions


def fitted(kernel="bag_of_words"):
    words = VisualWords(n_words={"colour": 16, "sift": 16}, n_sample_images=10)
    ranker = PhotoRanker(words, caption_kernel=kernel, n_components_grid=(8,))
    return ranker.fit(SCENES.images[:N_TRAINING], CAPTIONS[:N_TRAINING])


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def test_captions_are_placed_without_their_own_photo(ranker):
    known = ranker.captions_
    found = ranker.foreign()
    assert found.captions.shape == (N_TRAINING, ranker.embed_captions(["a"]).shape[1])
    for item in (0, 7, 39):
        row = known.gram(known.encode([[CAPTIONS[item][item % 5]]]))
        row[0, item] = np.delete(row, item).mean()
        [expected] = ranker.ranker_.embed_captions(row)
        np.testing.assert_allclose(found.captions[item], expected, atol=1e-5)


def test_photos_are_placed_without_themselves(ranker):
    found = ranker.foreign()
    known = ranker.photos_.photos
    row = PhotoKernel(known, None).gram(take(known, np.array([5])))
    row = row**ranker.image_power_
    row[0, 5] = np.delete(row[0], 5).mean()
    np.testing.assert_allclose(found.photos[5], ranker.ranker_.embed_images(row)[0], atol=1e-4)


def test_at_most_two_thousand_items_are_drawn(ranker, monkeypatch):
    whole = ranker.foreign()
    monkeypatch.setattr(calibration, "_MOST", 7)
    found = fitted().foreign()
    assert len(found.captions) == len(found.photos) == 7
    np.testing.assert_allclose(found.photos[[0, -1]], whole.photos[[0, -1]], atol=1e-5)


def test_lines_are_drawn_by_foreign_items(ranker):
    index = ranker.index(SCENES.images[N_TRAINING:])
    texts = ["A dog runs.", "A red dog."]
    known = ranker.foreign()
    for text, line in zip(texts, ranker.chance_lines(texts), strict=True):
        [query] = ranker.embed_captions([text])
        np.testing.assert_allclose(line.foreign, np.sort(known.photos @ query), atol=1e-5)
    for photo, line in zip(index.projections, ranker.chance_lines(index), strict=True):
        np.testing.assert_allclose(line.foreign, np.sort(known.captions @ photo), atol=1e-5)
    [matches] = ranker.search(texts[:1], index, k=3, calibrated=True)
    [line] = ranker.chance_lines(texts[:1])
    scores = [match.score for match in matches]
    shares = line.by_chance(np.float32(scores))
    np.testing.assert_array_equal([match.by_chance for match in matches], shares)
    [plain] = ranker.search(texts[:1], index, k=3)
    assert [match.by_chance for match in plain] == [None] * 3
    [unknown] = ranker.search(["zzz"], index, k=3, calibrated=True)
    assert [match.by_chance for match in unknown] == [1.0] * 3


def test_the_stated_rate_is_that_of_new_photos_and_sentences():
    """Scenes that the model never saw, searched by each other's sentences."""
    scenes = make_scenes(300, size=(32, 40))
    ranker = fitted("similar_words")
    index = ranker.index(scenes.images[100:])
    texts = [own[0] for own in scenes.dataset.captions[100:]]
    scores = ranker.scores(index, texts).T
    lines = ranker.chance_lines(texts)
    for rate in (0.1, 0.25):
        drawn = np.array([[line.score_at(rate)] for line in lines])
        above = scores > drawn
        np.fill_diagonal(above, False)
        assert abs(above.sum() / above.size - rate) < 0.05


def test_shares_count_foreign_candidates_with_a_score_as_high():
    line = ChanceLine([0.3, 0.1, 0.4, 0.2])
    found = line.by_chance([[0.5, 0.4], [0.15, -1.0]])
    np.testing.assert_array_equal(found, [[1 / 5, 2 / 5], [4 / 5, 1]])


@pytest.mark.parametrize("n_foreign", [1, 3, 19, 20, 100, 399])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5, 0.58, 0.999])
def test_the_line_stands_where_the_share_exceeds_the_rate(n_foreign, rate):
    best = np.random.default_rng(n_foreign).standard_normal(n_foreign)
    line = ChanceLine(best)
    threshold = line.score_at(rate)
    candidates = np.concatenate([best, best + 1e-9, best - 1e-9, [-9, 9]])
    above = candidates > threshold
    np.testing.assert_array_equal(above, line.by_chance(candidates) <= rate + 1e-12)
    assert (threshold == math.inf) == (rate * (1 + n_foreign) < 1 - 1e-9)
