"""What models cannot work with is refused by the name of the argument."""

import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from refusals import refuses, refuses_each

pytest.importorskip("cv2")

from kernelcore.datasets import Document, make_scenes
from kernelcore.errors import NotFittedError
from kernelcore.images import CNN, CNNFeatures, VisualWords
from kernelcore.kcca import KCCA, factorize
from kernelcore.lexical import WordVectors
from kernelcore.models import (
    ChanceLine,
    Encoders,
    KCCARanker,
    NearestNeighbourRanker,
    ObjectLabelLinker,
    PhotoIndex,
    PhotoRanker,
    borda_scores,
    hub_corrected,
    select_kcca,
)
from kernelcore.models.base import Pairs, dev_parts, held_out
from kernelcore.models.photo_search import best_matches

ONES, RNG = np.ones((2, 3)), np.random.default_rng(0)
EITHER = TypeError, ValueError


def letters(items):
    return np.array([[str(item).count(letter) for letter in "abc"] for item in items], float)


def two(items):
    return np.ones((len(items), 2))


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


VECTORS = WordVectors(["dog", "boat"], np.eye(2))
DOCUMENT = Document("1", ("A dog",), ("a", "b"), {(0, 0)})
SEEN = {"a": [0.7, 0.1], "b": [0.2, 0.6]}
K = RNG.normal(size=(9, 5)) @ np.eye(5, 9)
ITEMS = RNG.normal(size=(8, 4))
GRAM, ROWS = linear(ITEMS), linear(ITEMS[:3], ITEMS)
of_labels = partial(ObjectLabelLinker, VECTORS, labels=["dog", "boat"])
nearest = partial(NearestNeighbourRanker, "precomputed", "precomputed")
encoders = Encoders(letters, letters)
index = partial(PhotoIndex, ["a", "b"], [[1.0], [2.0]], "m")
PLACED = PhotoIndex(["a.jpg"], np.ones((1, 3)), "m", files=[(1, 2, "a")])


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("captions", lambda: Pairs.of("ab", ["x"])),
        ("captions", lambda: Pairs.of("a", ["x", "y"])),
        ("captions", lambda: Pairs.of("ab", [["x"]])),
        ("caption_image", lambda: Pairs.of("ab", [["x"], ["y"]], [0, 1])),
        ("caption_image", lambda: Pairs.of("ab", ["x", "y"], [0])),
        ("caption_image", lambda: Pairs.of("ab", [], [])),
        ("caption_image", lambda: Pairs.of("ab", ["x"], [2])),
        ("images", lambda: held_out(np.arange(2))),
        ("dev and probabilities", lambda: of_labels().fit()),
        ("dev", lambda: of_labels().fit([replace(DOCUMENT, links=None)], SEEN)),
        ("n_labels", lambda: of_labels(n_labels=0).fit()),
        ("images", lambda: nearest().fit(np.eye(2), np.eye(3))),
        ("images", lambda: nearest().fit([], [])),
        ("images", lambda: nearest().fit(np.eye(3), np.eye(3)).scores(np.eye(2), np.eye(3))),
        ("captions", lambda: nearest().fit(np.eye(3), np.eye(3)).scores(ONES, ONES * np.nan)),
        ("foreign", lambda: ChanceLine([])),
        ("foreign", lambda: ChanceLine([np.nan])),
        *(("scores", partial(ChanceLine([1.0]).by_chance, x)) for x in (np.nan, [0.0, np.inf])),
        *(("false_rate", partial(ChanceLine([1.0]).score_at, x)) for x in (0, 1, 2, math.nan)),
        ("score_matrices", lambda: borda_scores([], task="search")),
        ("score_matrices", lambda: borda_scores([np.eye(2), np.ones((1, 4))], task="search")),
        (r"score_matrices\[0\]", lambda: borda_scores([[[np.nan]]], task="search")),
        ("task", lambda: borda_scores([np.eye(2)], task="both")),
        ("photos", lambda: Encoders(letters).index(["a.png"])),
        ("names", lambda: encoders.index(np.ones((4, 3)), names=["a"])),
        ("captions", lambda: Encoders("refusals:nothing")),
        ("images", lambda: Encoders(letters, "nowhere:f")),
        ("photos", lambda: encoders.search(["a"], PhotoIndex(["a"], [[1.0]], "other"))),
        ("captions", lambda: Encoders(letters, two).search(["a"], ["x"])),
        ("captions", lambda: Encoders(two, letters).search(["a"], ["x"])),
        ("foreign_images", lambda: encoders.search(["a"], ["b"], calibrated=True)),
        ("foreign_captions", lambda: encoders.annotate(["b"], ["a"], calibrated=True)),
        ("k", lambda: best_matches(np.zeros(3, np.float32), 0, ["a", "b", "c"])),
        ("k", lambda: encoders.search([], ["a"], k=0)),
        ("k", lambda: encoders.annotate(["a"], [], k=0)),
        ("task", lambda: encoders.scores(["a"], ["b"], task="both")),
        ("images", lambda: KCCARanker().fit(ROWS, GRAM)),
        ("8 and 5", lambda: KCCARanker().fit(GRAM, GRAM[:5, :5])),
        (r"one column.*\(8\)", lambda: KCCARanker(2).fit(GRAM, GRAM).scores(ROWS, ROWS[:, :5])),
        ("names", lambda: PhotoIndex(["a"], [[1.0], [2.0]], "m")),
        ("projections", lambda: PhotoIndex(["a"], [[math.nan]], "m")),
        *(("numbers", partial(index, numbers=n)) for n in ([0, 0], [1], [-1, 2], [[0], [1]])),
        ("is_known", lambda: index(is_known=[[True], [True, False]])),
        ("is_known", lambda: index(is_known=[True])),
        ("names.*'a.jpg'", lambda: PLACED.with_photos(["a.jpg"], ONES[:1], files=[(1, 2, "")])),
        ("projections", lambda: PLACED.with_photos(["x"], [[1.0]], files=[(1, 2, "")])),
        ("files", lambda: PLACED.with_photos(["x"], ONES[:1])),
        ("names", lambda: PLACED.with_photos(["x"], ONES, files=[(1, 2, "")] * 2)),
        ("files", lambda: PLACED.with_photos(["x"], ONES[:1], files=[(1, 2, "")] * 2)),
    ],
)
def test_a_wrong_value_is_named(named, call):
    refuses(ValueError, named, call)


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("dev", lambda: dev_parts("ab")), ("dev", lambda: dev_parts((1, 2, 3, 4))),
        ("images", lambda: NearestNeighbourRanker(linear, 3).fit(K, K).scores(K, K)),
        ("foreign", lambda: ChanceLine("a")),
        ("scores", lambda: ChanceLine([1.0]).by_chance("a")),
        ("false_rate", lambda: ChanceLine([1.0]).score_at("5 %")),
        (r"score_matrices\[0\]", lambda: borda_scores([[["a"]]], task="search")),
        ("captions", lambda: Encoders(3)), ("name", lambda: Encoders(letters, name=3)),
        ("calibrated", lambda: encoders.search(["a"], ["b"], calibrated="yes")),
        ("captions", lambda: encoders.scores(["a"], "a dog")),
        (r"sentences.* \[1\]", lambda: encoders.search(["a dog", None], ["a"])),
        ("sentences", lambda: encoders.search("a dog", ["a"])),
        ("images", lambda: KCCARanker(image_kernel="rbf").fit(GRAM, GRAM)),
        ("numbers", lambda: index(numbers=[0.5, 1])),
        ("is_known", lambda: index(is_known=[0, 1])),
        ("model", lambda: PhotoIndex(["a"], [[1.0]], 4)),
        *(("names", partial(PhotoIndex, x, [[1.0]], "m")) for x in (None, 3, {"a"}, [1], "a")),
        *(("folder", partial(PhotoRanker.load, x)) for x in (None, 3)),
        *(("folder", partial(PLACED.save, x)) for x in (None, 3)),
    ]
)  # fmt: skip
def test_a_wrong_type_is_named(named, call):
    refuses(TypeError, named, call)


@pytest.mark.parametrize(
    "call",
    [
        lambda: of_labels().link_scores([DOCUMENT], SEEN), lambda: KCCARanker().save("nowhere"),
        lambda: PhotoRanker().search(["a"], ["a.png"]),
        lambda: PhotoRanker().embed_captions(["a"]), lambda: PhotoRanker().fingerprint,
    ]
)  # fmt: skip
def test_what_was_not_fitted_says_so(call):
    refuses(NotFittedError, "must be fitted first", call)


def test_odd_arguments_are_named():
    link = of_labels(n_labels=1).fit().link_scores
    odd = [{"a": SEEN["a"]}, *({**SEEN, "b": x} for x in ([0.5], [0.5, -0.5], [0.5, np.nan]))]
    refuses_each(partial(link, [DOCUMENT]), {"probabilities": odd}, probabilities=SEEN)
    odd = {
        "bank": [np.ones((4, 2)), np.ones((0, 3)), np.full((4, 3), np.nan)],
        "scores": [ONES * np.inf, ONES * 1.7e308], "task": ["both"], "n_neighbors": [0],
    }  # fmt: skip
    refuses_each(hub_corrected, odd, scores=ONES, bank=ONES, task="annotation", n_neighbors=1)
    refuses(ValueError, "bank", hub_corrected, ONES, np.ones((4, 3)), task="search")
    odd = {
        "correlation_power": [-1.0], "hub_neighbors": [-1], "ridge": [0.5, (1.0, "2")],
        "n_components": [1000],
    }  # fmt: skip
    refuses_each(lambda **own: KCCARanker(**own).fit(GRAM, GRAM), odd)


def test_odd_settings_of_kernel_cca_are_named():
    factorization = factorize(GRAM, GRAM)
    odd = {
        "n_components_grid": [[], 3, [3, 0]], "regularization_grid": [[-1], "0.1"],
        "ridge_grid": [[0.5]], "correlation_power_grid": [[-1]], "caption_image": [[0]],
        "n_threads": [0],
    }  # fmt: skip
    usual = {"n_components_grid": [2], "regularization_grid": [0.1]}
    call = partial(select_kcca, factorization, ROWS, ROWS)
    refuses_each(call, odd, **usual)
    refuses(ValueError, "n_components", call, **{**usual, "n_components_grid": [1000]})
    selection = call(**usual)
    odd = {"task": ["both"], "hub_neighbors": [-1], "n_best": [0]}
    refuses_each(partial(selection.scores, ROWS, ROWS), odd, task="search")
    narrow = partial(selection.scores, ROWS[:, :5], ROWS, task="search")
    refuses(ValueError, r"one column.*\(8\)", narrow)
    solve = partial(KCCARanker.from_factorization, factorization)
    refuses(ValueError, "correlation_power", solve, correlation_power=-1.0)


def test_a_file_holds_no_function_and_one_kind(tmp_path):
    functions = KCCARanker(2, image_kernel=linear).fit(ITEMS, GRAM)
    refuses(ValueError, "image_kernel", functions.save, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    KCCA(2).fit(GRAM, GRAM).save(tmp_path / "x")
    refuses(ValueError, "kernel CCA ranker", KCCARanker.load, tmp_path / "x")


@pytest.mark.parametrize("encoder", [lambda items: [[1.0]], partial(letters), VECTORS.mean])
def test_what_cannot_be_imported_needs_a_name(encoder):
    for own in ((encoder,), (letters, encoder)):
        refuses(ValueError, "name", Encoders, *own)
        assert Encoders(*own, name="letters").fingerprint == "letters"


@pytest.mark.parametrize(
    "result",
    [
        lambda items: np.ones((len(items) + 1, 2)),
        lambda items: np.ones((len(items), 2 + (len(items) < 64))),
        lambda items: np.full((len(items), 2), np.nan), lambda items: np.ones(len(items)),
        lambda items: [["a"]] * len(items), lambda items: [[1.0], [1.0, 2.0]],
    ]
)  # fmt: skip
def test_what_a_function_returns_is_checked(result):
    refuses(EITHER, "result of images", Encoders(letters, result, name="odd").index, ["a"] * 66)


# Photos and their captions.

SCENES = make_scenes(12, size=(48, 64))
PHOTOS, CAPTIONS = list(SCENES.images), SCENES.dataset.captions
FEATURES = RNG.normal(size=(12, 5))
THREE = FEATURES[:3]
precomputed = partial(PhotoRanker, "precomputed")


@cache
def words():
    n_words = {"colour": 6, "texture": 6, "sift": 6}
    return VisualWords(n_words=n_words, n_sample_points=50).fit(PHOTOS)


@cache
def by_words():
    return PhotoRanker(words()).fit(PHOTOS[:8], CAPTIONS[:8])


@cache
def by_vectors():
    return precomputed().fit(FEATURES, CAPTIONS)


BAD_PARAMETERS = {
    "n_components_grid": [(2.5,), (), 32, {2, 3}, (i for i in (2, 3))],
    "regularization_grid": [(-1.0,), 0.1, {1.0: 2}], "correlation_power_grid": [("x",)],
    "hub_neighbors_grid": [(-1,), None], "max_rank": [0], "caption_kernel": ["bow"],
    "normalizer": ["x"], "features": ["cnn", CNN, (), (CNN(), VisualWords())], "rng": ["abc"],
}  # fmt: skip


def test_bad_options_are_refused_before_any_photo_is_read():
    items = ["nowhere.jpg"] * 3, [["a"]] * 3
    for name, values in BAD_PARAMETERS.items():
        for value in values:
            refuses(EITHER, name, PhotoRanker(**{name: value}).fit, *items)
    fit = partial(PhotoRanker().fit, *items)
    refuses(ValueError, "on_error", fit, on_error="x")
    refuses(ValueError, "n_threads", fit, n_threads=0)
    refuses(ValueError, "on_error", by_vectors().index, THREE, on_error="x")


@pytest.mark.parametrize(
    ("named", "captions"),
    [
        ("captions", [["a dog"]]), (r"captions.* \[1\]", [["a"], [], ["b"]]),
        (r"captions\[1\].*'a cat'", [["a dog"], "a cat", ["b"]]), ("captions", "abc"),
        (r"captions.* \[2\]", ["a dog", "a cat", None]),
        (r"captions.* \[1\]", ["a", ["b"], "c"]), (r"captions\[0\]", [None, ["a"], ["b"]]),
        (r"captions\[0\]", [[1], ["a"], ["b"]]), (r"captions\[1\]", [["a"], 3, ["b"]]),
        (r"captions\[1\].* \[0\]", [["a"], [None], ["b"]]),
        ("captions.* has no order", {"a", "b", "c"}),
        (r"captions\[1\]", [["a"], {"b", "c"}, ["b"]]),
        (r"captions\[1\]", [["a"], b"c", ["b"]]), ("captions", np.array(CAPTIONS[:2])),
        ("captions", ["a", "b"]),
    ]
)  # fmt: skip
def test_bad_captions(named, captions):
    refuses(EITHER, f"^{named}", precomputed().fit, THREE, captions)
    usual = partial(precomputed().fit, THREE, [["a"]] * 3)
    refuses(EITHER, f"^dev {named}", usual, dev=(THREE, captions))


def asking(ranker, given):
    """Calls with photos, by what errors call these."""
    yield "photos", partial(ranker.index, given)
    yield "photos", partial(ranker.search, ["a dog"], given)
    yield "photos", partial(ranker.annotate, given, ["a dog"])
    yield "images", partial(ranker.embed_images, given)
    yield "images", partial(ranker.scores, given, ["a dog"])


@pytest.mark.parametrize(
    "given",
    [{"a"}, {"a": 1}, None, 3, np.array("a"), "a.jpg", np.zeros((3, 4)), [1, 2]],
    ids=repr,
)
def test_what_is_no_collection_of_photos_is_refused(given):
    refuses(EITHER, "^images", PhotoRanker(words()).fit, given, CAPTIONS[:3])
    dev = given, [""]
    refuses(EITHER, "^dev images", PhotoRanker(words()).fit, PHOTOS, CAPTIONS, dev=dev)
    for name, ask in asking(by_words(), given):
        refuses(EITHER, f"^{name}", ask)


@pytest.mark.parametrize(
    "rows",
    [
        FEATURES * np.nan, FEATURES[:, :3], FEATURES[:0], FEATURES[0], np.full((3, 5), 1e300),
        np.full((3, 5), 1e-60), ["nowhere.npy"],
    ]
)  # fmt: skip
def test_vectors_that_do_not_fit_are_called_as_the_argument_is(rows):
    for name, ask in asking(by_vectors(), rows):
        refuses((OSError, ValueError), rf"^{name}(\[0\])?", ask)
    if len(rows) == 12:
        dev = rows, CAPTIONS
        refuses(ValueError, "^dev images", precomputed().fit, FEATURES, CAPTIONS, dev=dev)


@pytest.mark.parametrize(
    ("named", "dev"),
    [
        ("dev caption_image", (THREE, ["a", "b"], [0, 3])),
        ("dev caption_image", (THREE, ["a", "b"], [0])),
        ("dev caption_image", (THREE, CAPTIONS[:3], [0] * 15)),
        (r"dev images\[0\]", (["nowhere.npy"], CAPTIONS[:3])),
        ("dev", FEATURES),
    ],
)
def test_errors_about_development_items_say_so(named, dev):
    refuses((*EITHER, OSError), f"^{named}", precomputed().fit, FEATURES, CAPTIONS, dev=dev)


def test_errors_about_training_items_do_not_say_dev():
    dev = FEATURES, CAPTIONS
    refuses(ValueError, "^captions", precomputed().fit, FEATURES, CAPTIONS[:3], dev=dev)
    refuses(ValueError, "^images", precomputed().fit, FEATURES * np.nan, CAPTIONS, dev=dev)


def test_deep_rankers_name_development_items_too():
    fit = pytest.importorskip("kernelcore.deep").EmbeddingRanker(min_count=1).fit
    own = THREE, ["a", "b"]
    odd = {"dev captions": own, "dev caption_image": (*own, [0, 3])}
    odd["dev"] = THREE * np.nan, "abc"
    for named, dev in odd.items():
        refuses(EITHER, f"^{named}", fit, FEATURES, CAPTIONS, dev=dev)


def test_only_precomputed_features_are_given_as_vectors():
    for feature in (words(), CNN()):
        refuses(ValueError, "^images", PhotoRanker(feature).fit, FEATURES, CAPTIONS)
        own = CNNFeatures(FEATURES, None, np.arange(12), {})
        refuses(TypeError, "^images", PhotoRanker(feature).fit, own, CAPTIONS)


def test_items_that_are_all_alike_are_called_by_their_name():
    same = np.arange(1, 13)[:, None] * np.ones(3)
    refuses(ValueError, "^the kernel of captions", precomputed().fit, FEATURES, [["a"]] * 12)
    refuses(ValueError, "^images", precomputed().fit, same, CAPTIONS)
    fit = partial(PhotoRanker(words()).fit, PHOTOS[:1] * 12, CAPTIONS)
    refuses(ValueError, "^images must be", fit)
    refuses(ValueError, "^the kernel of images", fit, dev=(PHOTOS[1:4], CAPTIONS[:3]))


def test_names_fit_the_photos():
    for names in (["a"], "abc"):
        refuses(EITHER, "names", by_vectors().index, THREE, names=names)
    narrow = PhotoIndex(["a"], [[1.0]], by_vectors().fingerprint)
    refuses(ValueError, "captions", by_vectors().search, ["a dog"], narrow)
