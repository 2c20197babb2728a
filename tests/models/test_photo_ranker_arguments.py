"""What photos and sentences cannot be ranked, or how, is refused by name."""

import math

import numpy as np
import pytest
from refusals import refuses

from kernelcore.datasets import make_scenes
from kernelcore.images import CNN, CNNFeatures, VisualWords
from kernelcore.models import PhotoIndex, PhotoRanker
from kernelcore.models.photo_features import check_photos, checked_names

SCENES = make_scenes(12, size=(48, 64))
CAPTIONS = SCENES.dataset.captions
SENTENCES = [own[2] for own in CAPTIONS[8:]]
VECTORS = np.random.default_rng(0).normal(size=(12, 5))


@pytest.fixture(scope="module")
def words():
    n_words = {"colour": 6, "texture": 6, "sift": 6}
    return VisualWords(n_words=n_words, n_sample_points=50).fit(SCENES.images)


@pytest.fixture(scope="module")
def ranker(words):
    return PhotoRanker(features=words).fit(photos(range(8)), CAPTIONS[:8])


@pytest.fixture(scope="module")
def index(ranker):
    return ranker.index(SCENES.images[8:])


def photos(rows):
    return [SCENES.images[i] for i in rows]


BAD_PARAMETERS = {
    "n_components_grid": [(2.5,), (), 32, {2, 3}, (i for i in (2, 3))],
    "regularization_grid": [(-1.0,), 0.1, {1.0: 2}],
    "correlation_power_grid": [("x",)],
    "hub_neighbors_grid": [(-1,), None],
    "max_rank": [0],
    "caption_kernel": ["bow"],
    "normalizer": ["x"],
    "features": ["cnn", CNN, (), (CNN(), VisualWords())],
    "rng": ["abc"],
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_refused_before_any_photo_is_read(name):
    for value in BAD_PARAMETERS[name]:
        ranker = PhotoRanker(**{name: value})
        refuses((TypeError, ValueError), name, ranker.fit, ["nowhere.jpg"] * 3, [["a"]] * 3)


@pytest.mark.parametrize(
    ("captions", "error", "message"),
    [
        (
            [["a dog"]],
            ValueError,
            r"captions must hold the captions of each image \(3\), got 1",
        ),
        ([["a"], [], ["b"]], ValueError, r"got none for \[1\]"),
        (
            [["a dog"], "a cat", ["b"]],
            TypeError,
            r"captions\[1\] must .* got 'a cat'",
        ),
        ("abc", TypeError, "captions must be a sequence"),
        (
            ["a dog", "a cat", None],
            TypeError,
            r"captions must be a sequence of strings, got None at \[2\]",
        ),
        (["a", ["b"], "c"], TypeError, r"captions must be .* strings, got \['b'\] at \[1\]"),
        (
            [None, ["a"], ["b"]],
            TypeError,
            r"captions\[0\] must .* got type NoneType",
        ),
        ([["a"], 3, ["b"]], TypeError, r"captions\[1\] must be .* strings, got type int"),
        (
            [["a"], [None], ["b"]],
            TypeError,
            r"captions\[1\] must .* got None at \[0\]",
        ),
        ({"a", "b", "c"}, TypeError, "captions must be a sequence .* type set.* has no order"),
        ([["a"], {"b", "c"}, ["b"]], TypeError, r"captions\[1\] must be a sequence of strings"),
        ([["a"], b"c", ["b"]], TypeError, r"captions\[1\] must be a sequence of strings"),
    ],
)
def test_bad_captions(captions, error, message, words):
    three = photos(range(3))
    with pytest.raises(error, match=message):
        PhotoRanker(features=words).fit(three, captions)
    with pytest.raises(error, match=r"^dev captions.* must"):
        PhotoRanker(features=words).fit(three, [["a"]] * 3, dev=(three, captions))


def test_captions_of_a_photo_may_be_an_iterator():
    given = [iter(own) for own in CAPTIONS]
    ranker = PhotoRanker("precomputed").fit(VECTORS, given)
    assert ranker.fingerprint == PhotoRanker("precomputed").fit(VECTORS, CAPTIONS).fingerprint


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"a.jpg", "b.jpg"},
            TypeError,
            "must be a sequence of photos, got type set, which has",
        ),
        ({"a.jpg": 1}, TypeError, "must be a sequence of photos, got type dict"),
        (None, TypeError, "must be a sequence of photos, got type NoneType"),
        (3, TypeError, "must be a sequence of photos, got type int"),
        (np.array("a.jpg"), TypeError, "must be a sequence of photos, got type ndarray"),
        ("a.jpg", TypeError, "must be a sequence of photos, got type str"),
        (np.zeros((3, 4)), ValueError, "must be a list of images or a 4-D array"),
    ],
)
def test_what_is_no_collection_of_photos_is_refused(given, error, message, words, ranker):
    with pytest.raises(error, match=f"^images {message}"):
        PhotoRanker(words).fit(given, CAPTIONS[:3])
    for ask in (
        ranker.index,
        lambda given: ranker.search(["a dog"], given),
        lambda given: ranker.annotate(given, ["a dog"]),
    ):
        with pytest.raises(error, match=f"^photos {message}"):
            ask(given)
    with pytest.raises(error, match=f"^images {message}"):
        ranker.scores(given, ["a dog"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (VECTORS * np.nan, "must be finite"),
        (VECTORS[:, :3], r"must have the features of the training photos \(5\), got 3"),
        (VECTORS[:0], "must not be empty"),
        (VECTORS[0], "must be a 2-D array"),
    ],
)
def test_vectors_that_do_not_fit_are_called_as_the_argument_is(rows, message):
    ranker = PhotoRanker("precomputed").fit(VECTORS, CAPTIONS)
    for ask in (
        ranker.index,
        lambda given: ranker.search(["a dog"], given),
        lambda given: ranker.annotate(given, ["a dog"]),
    ):
        with pytest.raises(ValueError, match=f"^photos {message}"):
            ask(rows)
    for ask in (ranker.embed_images, lambda given: ranker.scores(given, ["a dog"])):
        with pytest.raises(ValueError, match=f"^images {message}"):
            ask(rows)


def test_only_precomputed_features_are_given_as_vectors(words):
    for feature in (words, CNN()):
        with pytest.raises(ValueError, match=r"^images must be a list of images or"):
            PhotoRanker(feature).fit(VECTORS, CAPTIONS)
        own = CNNFeatures(VECTORS, None, np.arange(12), {})
        with pytest.raises(TypeError, match=r"^images must be a sequence of photos"):
            PhotoRanker(feature).fit(own, CAPTIONS)


def test_items_that_are_all_alike_are_called_by_their_name(words):
    with pytest.raises(ValueError, match=r"^the kernel of captions must not be constant"):
        PhotoRanker("precomputed").fit(VECTORS, [["a dog"]] * 12)
    with pytest.raises(ValueError, match=r"^images must not all have the same feature vector"):
        PhotoRanker("precomputed").fit(np.arange(1, 13)[:, None] * np.ones(3), CAPTIONS)
    with pytest.raises(ValueError, match=r"^images must leave at least 2 different"):
        PhotoRanker(words).fit(photos([0] * 12), CAPTIONS)
    dev = photos([1, 2, 3]), CAPTIONS[:3]
    with pytest.raises(ValueError, match=r"^the kernel of images must not be constant"):
        PhotoRanker(words).fit(photos([0] * 12), CAPTIONS, dev=dev)


def test_names_are_the_paths_of_any_sequence_of_them():
    pandas = pytest.importorskip("pandas")
    paths = ["4.png", "2.png"]
    series = pandas.Series(paths, index=[7, 8])
    for given in (np.array(paths), series, iter(paths)):
        checked = check_photos("photos", given, VisualWords())
        assert checked_names(checked, None) == paths


@pytest.mark.parametrize("folder", [None, 3])
def test_a_folder_is_a_path(folder, ranker):
    for ask in (ranker.save, PhotoRanker.load):
        with pytest.raises(TypeError, match=r"^folder must be a path, got (None|3)"):
            ask(folder)


def test_bad_photos_sentences_and_names(words, ranker, index):
    with pytest.raises(
        ValueError, match=r"at least 2 different ones to learn .* got 2 of which 1"
    ):
        PhotoRanker(features=words).fit(photos(range(2)), CAPTIONS[:2])
    with pytest.raises(ValueError, match=r"names must have one entry per photo \(12\), got 1"):
        ranker.index(photos(range(12)), names=["a"])
    with pytest.raises(TypeError, match="captions must be a sequence of strings, got 'a dog'"):
        ranker.scores(index, "a dog")
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        ranker.search(["a dog"], index, k=0)
    with pytest.raises(ValueError, match="task must be one of"):
        ranker.scores(index, SENTENCES, task="both")
    with pytest.raises(ValueError, match=r"names must have one entry per photo \(2\), got 1"):
        PhotoIndex(["a"], [[1.0], [2.0]], "model")
    with pytest.raises(ValueError, match="projections must be finite"):
        PhotoIndex(["a"], [[math.nan]], "model")
    for names in (None, 3, {"a"}, [1]):
        with pytest.raises(TypeError, match=r"^names must be a sequence of strings"):
            PhotoIndex(names, [[1.0]], "model")
    with pytest.raises(ValueError, match=r"^is_known must be"):
        PhotoIndex(["a"], [[1.0]], "model", is_known=[[True], [True, False]])
    with pytest.raises(TypeError, match=r"^sentences must .* got None at \[1\]"):
        ranker.search(["a dog", None], index)
    for ask in (ranker.search, lambda none, index, k: ranker.annotate(index, none, k=k)):
        with pytest.raises(ValueError, match=r"^k must be an integer >= 1"):
            ask([], index, k=0)


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ((VECTORS[:3, :4], CAPTIONS[:3]), "dev images must have the features of"),
        ((VECTORS[:3] * np.nan, CAPTIONS[:3]), "dev images must be finite"),
        (
            (["nowhere.npy"], CAPTIONS[:3]),
            r"dev images\[0\] must be an array or a .npy file",
        ),
        ((VECTORS[:3], ["a", "b"]), r"dev captions must be one per image \(3\)"),
        ((VECTORS[:3], CAPTIONS[:2]), r"dev captions must hold the captions of each"),
        ((VECTORS[:3], "abc"), "dev captions must be a sequence"),
        ((VECTORS[:3], ["a", "b"], [0, 3]), "dev caption_image must lie in"),
        ((VECTORS[:3], ["a", "b"], [0]), "dev caption_image must have one entry"),
        ((VECTORS[:3], CAPTIONS[:3], [0] * 15), "dev caption_image must"),
        (VECTORS, "dev must be a pair"),
    ],
)
def test_errors_about_development_items_say_so(dev, message):
    with pytest.raises((TypeError, ValueError, OSError), match=f"^{message}"):
        PhotoRanker("precomputed").fit(VECTORS, CAPTIONS, dev=dev)


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        (([1, 2], CAPTIONS[:2]), r"dev images\[0\] must be a path"),
        (("a.jpg", CAPTIONS[:2]), "dev images must be a sequence of photos"),
        (({"colour": 3}, CAPTIONS[:2]), "dev images must be a sequence of photos"),
    ],
)
def test_errors_about_development_photos_say_so(words, dev, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        PhotoRanker(words).fit(photos(range(8)), CAPTIONS[:8], dev=dev)


def test_errors_about_training_items_do_not_say_dev():
    with pytest.raises(ValueError, match=r"^captions must hold the captions of each image"):
        PhotoRanker("precomputed").fit(VECTORS, CAPTIONS[:3], dev=(VECTORS, CAPTIONS))
    with pytest.raises(ValueError, match=r"^images must be finite"):
        PhotoRanker("precomputed").fit(VECTORS * np.nan, CAPTIONS, dev=(VECTORS, CAPTIONS))


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ((VECTORS[:3], ["a", "b"]), r"dev captions must be one per image \(3\)"),
        ((VECTORS[:3], ["a", "b"], [0, 3]), "dev caption_image must lie in"),
        ((VECTORS[:3] * np.nan, ["a", "b", "c"]), "dev must be finite"),
    ],
)
def test_deep_rankers_say_so_too(dev, message):
    deep = pytest.importorskip("kernelcore.deep")
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        deep.EmbeddingRanker(min_count=1).fit(VECTORS, CAPTIONS, dev=dev)
