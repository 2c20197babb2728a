"""What all rankers have in common, chance and nearest neighbour."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from kernelcore._estimator import NotFittedError
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import SpatialHistograms
from kernelcore.kernels import bag_of_words, bag_of_words_f1
from kernelcore.models import ChanceRanker, KCCARanker, NearestNeighbourRanker, Ranker


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(30, 4))
CAPTIONS = IMAGES @ RNG.normal(size=(4, 3)) + 0.1 * RNG.normal(size=(30, 3))
TRAIN, TEST = slice(0, 22), slice(22, 30)
RANKERS = {
    "chance": ChanceRanker(rng=0),
    "nearest": NearestNeighbourRanker(linear, linear),
    "kcca": KCCARanker(image_kernel=linear, text_kernel=linear),
}


@pytest.fixture(params=RANKERS)
def ranker(request):
    return clone(RANKERS[request.param])


@pytest.mark.parametrize("task", ["annotation", "search"])
def test_rows_are_images_for_both_tasks(ranker, task):
    assert isinstance(ranker, Ranker)
    assert ranker.fit(IMAGES[TRAIN], CAPTIONS[TRAIN]) is ranker
    scores = ranker.scores(IMAGES[TEST], CAPTIONS[TEST][:5], task=task)
    assert scores.shape == (8, 5)
    assert np.isfinite(scores).all()


def test_task_must_be_one_of_two(ranker):
    ranker.fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
    with pytest.raises(ValueError, match="task must be one of 'annotation', 'search', got 'x'"):
        ranker.scores(IMAGES[TEST], CAPTIONS[TEST], task="x")


def test_annotation_is_the_default_task(ranker):
    ranker.fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
    np.testing.assert_array_equal(
        ranker.scores(IMAGES[TEST], CAPTIONS[TEST]),
        ranker.scores(IMAGES[TEST], CAPTIONS[TEST], task="annotation"),
    )


def test_parameters_follow_scikit_learn(ranker):
    assert repr(ranker).startswith(type(ranker).__name__)
    assert set(clone(ranker).get_params()) == set(ranker.get_params())


class TestChance:
    def test_a_seed_repeats_and_a_generator_goes_on(self):
        seeded = ChanceRanker(rng=3)
        first = seeded.scores(IMAGES, CAPTIONS)
        np.testing.assert_array_equal(first, seeded.scores(IMAGES, CAPTIONS))
        going_on = ChanceRanker(rng=np.random.default_rng(3))
        np.testing.assert_array_equal(first, going_on.scores(IMAGES, CAPTIONS))
        assert (first != going_on.scores(IMAGES, CAPTIONS)).all()

    def test_photos_and_captions_are_counted_in_any_form(self):
        histograms = SpatialHistograms(np.ones((6, 1, 3), int), [3] * 6, 1)
        photos = {"colour": histograms, "sift": histograms}
        bags = scipy.sparse.csr_matrix(np.eye(4))
        assert ChanceRanker(rng=0).scores(photos, bags).shape == (6, 4)

    def test_ranks_are_uniform(self):
        scores = ChanceRanker(rng=0).scores(range(1000), range(1000))
        for ranks in retrieval_ranks(scores):
            assert np.mean(ranks) == pytest.approx(500.5, abs=4 * 1000 / np.sqrt(12 * 1000))


class TestNearestNeighbour:
    """Three training items; the numbers below are similarities with them."""

    IMAGES = np.array([[0.9, 0.1, 0.3], [0.2, 0.6, 0.5]])
    CAPTIONS = np.array([[0.0, 0.3, 0.8], [0.7, 0.2, 0.1], [0.1, 0.9, 0.4]])

    @pytest.fixture
    def fitted(self):
        ranker = NearestNeighbourRanker("precomputed", "precomputed")
        return ranker.fit(np.eye(3), np.eye(3))

    def test_search_goes_by_the_image_of_the_nearest_captions(self, fitted):
        # The captions' nearest training items are 2, 0 and 1.
        np.testing.assert_array_equal(
            fitted.scores(self.IMAGES, self.CAPTIONS, task="search"),
            [[0.3, 0.9, 0.1], [0.5, 0.2, 0.6]],
        )

    def test_annotation_goes_by_the_captions_of_the_nearest_image(self, fitted):
        # The images' nearest training items are 0 and 1.
        np.testing.assert_array_equal(
            fitted.scores(self.IMAGES, self.CAPTIONS, task="annotation"),
            [[0.0, 0.7, 0.1], [0.3, 0.2, 0.9]],
        )

    def test_equally_near_items_count_in_their_order(self, fitted):
        scores = fitted.scores(self.IMAGES, [[0.5, 0.1, 0.5]], task="search")
        np.testing.assert_array_equal(scores, self.IMAGES[:, :1])

    @pytest.mark.parametrize("text_similarity", [bag_of_words, bag_of_words_f1])
    def test_captions_retrieve_their_photo(self, text_similarity):
        training = [[["red", "dog"]], [["blue", "cat"]], [["green", "bird"]]]
        vocabulary = Vocabulary.from_captions(training)
        query = vocabulary.encode([[["a", "bird", "green"]], [["cat"]]])
        ranker = NearestNeighbourRanker(text_similarity, linear)
        ranker.fit(np.eye(3), vocabulary.encode(training))
        scores = ranker.scores(np.eye(3), query, task="search")
        assert scores.argmax(axis=0).tolist() == [2, 1]
        assert isinstance(ranker.captions_, EncodedCaptions)

    def test_bad_input(self, fitted):
        with pytest.raises(NotFittedError, match="NearestNeighbourRanker must be fitted"):
            NearestNeighbourRanker(linear, linear).scores(IMAGES, CAPTIONS)
        with pytest.raises(ValueError, match="equally many and at least one, got 2 and 3"):
            fitted.fit(np.eye(2), np.eye(3))
        with pytest.raises(ValueError, match="equally many and at least one, got 0 and 0"):
            fitted.fit([], [])
        with pytest.raises(ValueError, match=r"images must have one similarity .* \(3\), got"):
            fitted.fit(np.eye(3), np.eye(3)).scores(np.eye(2), np.eye(3))
        with pytest.raises(ValueError, match="captions must be finite, got nan"):
            fitted.scores(self.IMAGES, np.full((1, 3), np.nan))
        with pytest.raises(TypeError, match='images must be a function or "precomputed"'):
            NearestNeighbourRanker(linear, 3).fit(IMAGES, CAPTIONS).scores(IMAGES, CAPTIONS)
