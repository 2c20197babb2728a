"""One contract for rankers: whatever the package exports as a ranker passes the same test."""

import copy
import functools
import inspect
import pickle
from typing import NamedTuple

import joblib
import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("torch")
pytest.importorskip("cv2")

from sklearn.base import clone

import kernelcore
from kernelcore import models
from kernelcore.datasets import make_scenes
from kernelcore.deep import (
    Captioner,
    CrossAttentionRanker,
    EmbeddingRanker,
    FragmentRanker,
    OrderRanker,
)
from kernelcore.errors import NotFittedError
from kernelcore.images import VisualWords
from kernelcore.kernels import histogram_intersection, word_sequence

TASKS = ("annotation", "search")
SCENES = make_scenes(16, size=(32, 48))
NESTED = [list(own[:2]) for own in SCENES.dataset.captions[:12]]
FLAT = [text for own in NESTED for text in own]
OWNERS = np.repeat(np.arange(12), 2)
DEV_NESTED = [list(own[:2]) for own in SCENES.dataset.captions[12:]]
DEV_FLAT = [text for own in DEV_NESTED for text in own]
DEV_OWNERS = np.repeat(np.arange(4), 2)
SENTENCES = ["a dog chases a cat", "the tree", "zzz"]


def cells(picture):
    """Mean colour of the six cells of a picture: what rankers of features read."""
    return picture.reshape(2, 16, 3, 16, 3).mean(axis=(1, 3)).ravel() / 255


PICTURES = list(SCENES.images)
FEATURES = np.array([cells(picture) for picture in PICTURES])

TINY = {"n_components": 4, "n_epochs": 1, "batch_size": 12, "rng": 0}
WORDS = {**TINY, "min_count": 1}


class Recipe(NamedTuple):
    """How to make a ranker, and what is to be expected of it."""

    make: object
    images: object = FEATURES
    product: object = None  # from the products of both sides' vectors to the scores
    knows_pairs: bool = True  # both forms of captions are the same training items
    chooses: bool = False  # development items matter


def kcca():
    return models.KCCARanker(2, image_kernel=histogram_intersection, text_kernel=word_sequence)


def nearest():
    return models.NearestNeighbourRanker(word_sequence, histogram_intersection)


@functools.cache
def visual_words():
    words = VisualWords(n_words={"colour": 6}, n_sample_images=6, n_sample_points=50)
    return words.fit(PICTURES[:12])


def photo():
    grids = {"n_components_grid": (2, 4), "regularization_grid": (0.3,)}
    return models.PhotoRanker(features=visual_words(), **grids)


def order():
    return OrderRanker(similarity="cosine", n_hidden=4, n_states=4, **WORDS)


def fragments():
    return FragmentRanker(sentence="mean", regions="mean", **TINY)


def as_they_are(products):
    return products


def positive(products):
    return np.maximum(products, 0)


deep = functools.partial(Recipe, chooses=True)
DEEP = {
    "EmbeddingRanker": deep(lambda: EmbeddingRanker(n_hidden=4, **WORDS), product=as_they_are),
    "CrossAttentionRanker": deep(lambda: CrossAttentionRanker(**WORDS)),
    "OrderRanker": deep(order, product=as_they_are),
    "FragmentRanker": deep(fragments, product=positive),
    "Captioner": deep(lambda: Captioner(n_embedding=4, n_prior=2, **WORDS)),
}
RECIPES = {
    "ChanceRanker": Recipe(lambda: models.ChanceRanker(rng=0)),
    "NearestNeighbourRanker": Recipe(nearest, knows_pairs=False),
    "KCCARanker": Recipe(kcca, product=as_they_are, knows_pairs=False),
    "PhotoRanker": Recipe(photo, images=PICTURES, product=as_they_are, chooses=True),
    **DEEP,
}


LEARNERS = pytest.mark.parametrize("name", sorted(RECIPES.keys() - {"ChanceRanker"}))


def exported():
    """Every class of the package that can be fitted and hands out scores."""
    for package in kernelcore.__all__:
        module = getattr(kernelcore, package)
        for name in getattr(module, "__all__", ()) if inspect.ismodule(module) else ():
            found = getattr(module, name)
            is_class = inspect.isclass(found) and found is not models.Ranker
            if is_class and all(hasattr(found, method) for method in ("fit", "scores")):
                yield name


def test_every_ranker_of_the_package_is_here():
    assert set(exported()) == set(RECIPES)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("KERNELCORE_NUM_THREADS", "1")


@pytest.fixture(params=RECIPES)
def name(request):
    return request.param


def images(name, rows):
    own = RECIPES[name].images
    return own[rows] if isinstance(own, np.ndarray) else list(own[rows])


TRAIN, DEV = slice(0, 12), slice(12, 16)


def fit(name, ranker, *, nested=True, dev=True):
    captions, owners = (NESTED, None) if nested else (FLAT, OWNERS)
    of_dev = (DEV_NESTED,) if nested else (DEV_FLAT, DEV_OWNERS)
    options = {"dev": (images(name, DEV), *of_dev)} if dev else {}
    return ranker.fit(images(name, TRAIN), captions, caption_image=owners, **options)


@functools.cache
def fitted(name, *, nested=True, dev=True):
    return fit(name, RECIPES[name].make(), nested=nested, dev=dev)


def scores(name, ranker, task="annotation"):
    return ranker.scores(images(name, DEV), SENTENCES, task=task)


def test_the_signature_is_that_of_the_protocol(name):
    kind = type(RECIPES[name].make())
    for method in ("fit", "scores"):
        own = inspect.signature(getattr(kind, method)).parameters
        for wanted in inspect.signature(getattr(models.Ranker, method)).parameters.values():
            assert own[wanted.name].kind == wanted.kind, wanted
            assert own[wanted.name].default == wanted.default, wanted
        required = [p.name for p in own.values() if p.default is inspect.Parameter.empty]
        assert required == ["self", "images", "captions"]


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "flat"])
@pytest.mark.parametrize("dev", [True, False], ids=["dev", "no dev"])
def test_both_forms_of_captions_are_learned_from(name, nested, dev):
    ranker = RECIPES[name].make()
    assert fit(name, ranker, nested=nested, dev=dev) is ranker
    for task in TASKS:
        found = scores(name, ranker, task)
        assert found.shape == (4, 3)
        assert np.isfinite(found).all()
    if RECIPES[name].knows_pairs:
        other = fitted(name, nested=not nested, dev=dev)
        np.testing.assert_array_equal(scores(name, ranker), scores(name, other))
    if not RECIPES[name].chooses:
        other = fitted(name, nested=nested, dev=not dev)
        np.testing.assert_array_equal(scores(name, ranker), scores(name, other))


@LEARNERS
def test_captions_that_belong_to_no_image_are_refused(name):
    for captions, owners in ((FLAT[:5], None), (FLAT, OWNERS + 1), (FLAT, OWNERS[:5])):
        with pytest.raises(ValueError, match=r"caption|training samples"):
            RECIPES[name].make().fit(images(name, TRAIN), captions, caption_image=owners)
    refuses(ValueError, "task", scores, name, fitted(name), "both")


def test_products_of_vectors_are_the_scores(name):
    ranker, from_products = fitted(name), RECIPES[name].product
    assert hasattr(ranker, "embed_images") == hasattr(ranker, "embed_captions")
    assert hasattr(ranker, "embed_images") == (from_products is not None)
    if from_products is not None:
        of_images = ranker.embed_images(images(name, DEV))
        of_captions = ranker.embed_captions(SENTENCES)
        assert (len(of_images), len(of_captions)) == (4, 3)
        found = from_products(of_images @ of_captions.T)
        np.testing.assert_allclose(found, scores(name, ranker), atol=1e-6)


UNSAVED = {"ChanceRanker", "NearestNeighbourRanker", "KCCARanker"}  # the last: of functions
MORE = [*SENTENCES, "two dogs", "a red ball", "a cat sleeps"]


@LEARNERS
def test_a_score_depends_on_its_image_and_caption_alone(name):
    ranker, order = fitted(name), np.random.default_rng(0).permutation(len(MORE))
    for task in TASKS:
        whole = ranker.scores(images(name, DEV), MORE, task=task)
        part = ranker.scores(images(name, slice(13, 15)), MORE[1:4], task=task)
        np.testing.assert_allclose(part, whole[1:3, 1:4], rtol=1e-4, atol=1e-5)
        permuted = ranker.scores(images(name, DEV), [MORE[i] for i in order], task=task)
        np.testing.assert_allclose(permuted, whole[:, order], rtol=1e-4, atol=1e-5)


ODD_IMAGES = (None, 3, "abc", {"a": 1}, np.full((2, 18), np.nan))


@LEARNERS
def test_odd_inputs_are_refused(name):
    ranker = fitted(name)
    for odd in ODD_IMAGES:
        with pytest.raises((TypeError, ValueError)):
            ranker.scores(odd, SENTENCES)
    for odd in (None, 3, [None], [3], {"a": 1}):
        with pytest.raises((TypeError, ValueError)):
            ranker.scores(images(name, DEV), odd)


@pytest.mark.parametrize("name", sorted(RECIPES.keys() - UNSAVED))
def test_a_file_holds_all_that_is_needed(name, tmp_path):
    ranker = fitted(name)
    ranker.save(tmp_path / "model")
    again = type(ranker).load(tmp_path / "model")
    for task in TASKS:
        np.testing.assert_array_equal(scores(name, again, task), scores(name, ranker, task))
    assert set(again.get_params()) >= set(clone(RECIPES[name].make()).get_params(deep=False))
    again.save(tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []
    with pytest.raises(FileNotFoundError):
        type(ranker).load(tmp_path / "nowhere")


def test_copies_are_the_same(name, tmp_path):
    ranker = fitted(name)
    joblib.dump(ranker, tmp_path / "model.joblib")
    copies = pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)
    for again in (*copies, joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(scores(name, again), scores(name, ranker))


def test_a_clone_has_the_parameters_alone(name):
    ranker = fitted(name)
    bare = clone(ranker)
    assert set(bare.get_params()) == set(RECIPES[name].make().get_params())
    if name == "ChanceRanker":  # learns nothing
        return
    refuses(NotFittedError, "must be fitted first", scores, name, bare)
    fit(name, bare)
    np.testing.assert_array_equal(scores(name, bare), scores(name, ranker))
