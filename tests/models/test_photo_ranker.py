"""The whole line from photos and sentences to rankings, as one estimator."""

import json
import math
import re
import shutil
from collections import Counter
from itertools import chain

import cv2
import numpy as np
import pytest
from refusals import refuses
from resealed import parts_of, reseal

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import make_scenes
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import UnreadableImagesError, UnreadableImagesWarning, VisualWords
from kernelcore.kernels import power
from kernelcore.models import KCCARanker, PhotoRanker
from kernelcore.models.photo_features import PhotoKernel
from kernelcore.reference.kernels import spatial_pyramid

SCENES = make_scenes(150, size=(48, 64))
CAPTIONS = SCENES.dataset.captions
N_TRAINING = 110
TEST = range(N_TRAINING, 150)
SENTENCES = [own[2] for own in CAPTIONS[N_TRAINING:]]
SMALL = {"n_components_grid": (8, 16), "regularization_grid": (0.3, (0.1, 1.0))}


@pytest.fixture(scope="module")
def words():
    n_words = {"colour": 24, "texture": 12, "sift": 24}
    words = VisualWords(n_words=n_words, n_sample_images=40, n_sample_points=200)
    return words.fit(SCENES.images)


@pytest.fixture(scope="module")
def ranker(words):
    grids = {**SMALL, "n_components_grid": np.array([8, 16]), "hub_neighbors_grid": range(1)}
    ranker = PhotoRanker(features=words, **grids)
    return ranker.fit(photos(range(N_TRAINING)), CAPTIONS[:N_TRAINING])


@pytest.fixture(scope="module")
def index(ranker):
    return ranker.index(SCENES.images[N_TRAINING:])


def photos(rows):
    return [SCENES.images[i] for i in rows]


def fit_forty(words, *, dev=None, n_threads=None, **options):
    ranker = PhotoRanker(features=words, **{**SMALL, **options})
    return ranker.fit(photos(range(40)), CAPTIONS[:40], dev=dev, n_threads=n_threads)


def write_photos(folder, numbers):
    paths = [folder / f"{i}.png" for i in numbers]
    for path, i in zip(paths, numbers, strict=True):
        cv2.imwrite(str(path), SCENES.images[i][:, :, ::-1])
    return paths


def bag_of_words_kernel(X, Y, vocabulary):
    """Cosine of word counts times sqrt(idf), from dictionaries of words."""
    counts = zip(vocabulary.words, vocabulary.document_frequency.tolist(), strict=True)
    idf = {word: math.log(vocabulary.n_documents / (n + 1)) for word, n in counts}

    def product(x, y):
        return sum(x[word] * y[word] * idf.get(word, vocabulary.unknown_idf) for word in x & y)

    both = np.array([[product(x, y) for y in Y] for x in X])
    own = (np.array([product(x, x) for x in side]) for side in (X, Y))
    return both / np.sqrt(np.multiply.outer(*own))


def test_scores_follow_from_the_formula(ranker, index, words):
    kernels = []
    for own in words.transform(SCENES.images).values():
        X, Y = own, own.select(list(range(N_TRAINING)))
        kernels.append(spatial_pyramid(X.counts, Y.counts, X.totals, Y.totals, X.n_levels))
    normalizer = CaptionNormalizer().fit(CAPTIONS[:N_TRAINING])
    bags = [Counter(chain(*normalizer(own))) for own in CAPTIONS[:N_TRAINING]]
    queries = [Counter(caption) for caption in normalizer(SENTENCES)]
    vocabulary, exponent = ranker.captions_.vocabulary, ranker.image_power_
    assert set(vocabulary.words) == set().union(*bags)
    by_hand = KCCARanker(**ranker.setting_._asdict(), decomposition="eigen", tolerance=1e-6)
    Kx, Kx_new = np.split(np.mean(kernels, axis=0) ** exponent, [N_TRAINING])
    Ky, Ky_new = (bag_of_words_kernel(X, bags, vocabulary) for X in (bags, queries))
    expected = by_hand.fit(Kx, Ky).scores(Kx_new, Ky_new)
    scores = ranker.scores(index, SENTENCES)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=2e-3)


def test_photos_may_be_files_or_pixels(ranker, index, tmp_path):
    paths = write_photos(tmp_path, TEST)
    expected = ranker.scores(index, SENTENCES)
    for given in (paths, [str(path) for path in paths], photos(TEST)):
        np.testing.assert_array_equal(ranker.scores(given, SENTENCES), expected)
    assert ranker.index(paths).names == tuple(map(str, paths))
    assert index.names[:2] == ("photo 0", "photo 1")


def test_search_and_annotate_name_the_best(ranker, index):
    scores = ranker.scores(index, SENTENCES)
    searched = zip(ranker.search(SENTENCES, index, k=7), scores.T, strict=True)
    annotated = zip(ranker.annotate(index, SENTENCES), scores, strict=True)
    for answers, k, names in ((searched, 7, index.names), (annotated, 5, SENTENCES)):
        for found, row in answers:
            assert [match.score for match in found] == sorted(row)[: -k - 1 : -1]
            assert [row[match.item] for match in found] == [match.score for match in found]
            assert [match.name for match in found] == [names[m.item] for m in found]
    assert len(ranker.search(["A dog."], index, k=1000)[0]) == len(index)


def test_the_order_of_words_counts_for_sequences_alone(words, ranker, index):
    sentences = ["A dog chases a cat.", "A cat chases a dog."]
    bags = ranker.scores(index, sentences)
    np.testing.assert_array_equal(bags[:, 0], bags[:, 1])

    ordered = fit_forty(words, caption_kernel="word_sequence", n_threads=2)
    scores = ordered.scores(SCENES.images[N_TRAINING:], sentences)
    assert not np.array_equal(scores[:, 0], scores[:, 1])


def test_settings_are_the_best_ones_on_the_development_photos(words):
    dev = photos(range(100, 150)), CAPTIONS[100:]
    fits = {n: fit_forty(words, dev=dev, n_components_grid=(n,)) for n in (2, 16)}
    best = max(fits.values(), key=lambda fitted: fitted.dev_recalls_.sum())
    both = fit_forty(words, dev=dev, n_components_grid=(2, 16))
    assert fits[2].dev_recalls_.sum() != fits[16].dev_recalls_.sum()
    assert both.setting_ == best.setting_
    pool = [caption for own in CAPTIONS[100:] for caption in own]
    ranks = retrieval_ranks(both.scores(dev[0], pool), np.repeat(np.arange(50), 5)).search
    np.testing.assert_allclose(both.dev_recalls_[1], [(ranks <= k).mean() for k in (1, 5, 10)])


def test_without_development_photos_a_share_is_held_out_and_learned_from_in_the_end(words):
    ranker = fit_forty(words, rng=5)
    order = np.random.default_rng(5).permutation(40)
    held_out, rest = np.sort(order[:8]), np.sort(order[8:])
    known = ranker.captions_
    Kx = power(PhotoKernel(ranker.photos_.photos, None).gram(), ranker.image_power_)
    Ky = known.gram()
    chosen = KCCARanker(**ranker.setting_._asdict(), decomposition="eigen")
    chosen.fit(Kx[np.ix_(rest, rest)], Ky[np.ix_(rest, rest)])
    captions = known.encoded.select(held_out).caption_as_image()
    scores = chosen.scores(Kx[np.ix_(held_out, rest)], known.gram(captions)[:, rest])
    ranks = retrieval_ranks(scores, np.repeat(np.arange(8), 5)).search
    recalls = [(ranks <= k).mean() for k in (1, 5, 10)]
    np.testing.assert_allclose(ranker.dev_recalls_[1], recalls)
    assert len(ranker.captions_) == 40
    assert len(ranker.ranker_.kcca_.x_scores_) == 40
    others = (fit_forty(words, rng=rng).fingerprint for rng in range(6, 11))
    assert any(other != ranker.fingerprint for other in others)


def test_same_bits_for_every_number_of_threads(words):
    one, three = (fit_forty(words, n_threads=n) for n in (1, 3))
    assert one.setting_ == three.setting_
    assert one.fingerprint == three.fingerprint


def test_numbers_of_components_beyond_the_rank_are_left_out(words):
    ranker = PhotoRanker(features=words).fit(photos(range(6)), CAPTIONS[:6])
    assert 1 <= ranker.setting_.n_components < 6
    assert np.isfinite(ranker.scores(photos(TEST), SENTENCES)).all()


def test_codebooks_are_learned_from_the_training_photos_unless_they_were_before():
    unfitted = VisualWords(n_words={"colour": 6}, n_sample_points=50)
    ranker = PhotoRanker(features=unfitted, **SMALL).fit(SCENES.images[:30], CAPTIONS[:30])
    assert not hasattr(unfitted, "codebooks_")
    learned = ranker.photos_.extractor.codebooks_["colour"]
    known = unfitted.fit(SCENES.images[:30]).codebooks_["colour"]
    np.testing.assert_array_equal(learned.centers, known.centers)
    again = PhotoRanker(features=unfitted, **SMALL).fit(SCENES.images[:30], CAPTIONS[:30])
    assert again.photos_.extractor is unfitted


def test_skipped_photos_take_their_captions_with_them(tmp_path, words):
    paths = write_photos(tmp_path, range(40))
    paths[7].write_bytes(b"\x89PNG\r\n\x1a\n")
    paths[20].unlink()
    good = [i for i in range(40) if i not in {7, 20}]
    ranker = PhotoRanker(features=words, **SMALL)
    with pytest.raises(UnreadableImagesError, match=r"2 of 40.*\n.*7\.png.*\n.*20\.png"):
        ranker.fit(paths, CAPTIONS[:40])
    for own in (ranker, PhotoRanker(VisualWords(**words.get_params()), **SMALL)):
        with pytest.warns(UnreadableImagesWarning, match="2 of 40") as told:
            own.fit(paths, CAPTIONS[:40], on_error="skip")
        assert [warning.filename for warning in told] == [__file__]
    alone = PhotoRanker(features=words, **SMALL)
    alone.fit([paths[i] for i in good], [CAPTIONS[i] for i in good])
    assert ranker.fingerprint == alone.fingerprint
    with pytest.warns(UnreadableImagesWarning):
        index = ranker.index(paths, names=[str(i) for i in range(40)], on_error="skip")
    assert index.names == tuple(map(str, good))


def test_a_saved_model_gives_the_same_bits(ranker, index, tmp_path):
    folder = tmp_path / "models" / "scenes"
    ranker.save(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    loaded = PhotoRanker.load(folder)
    assert loaded.setting_ == ranker.setting_
    assert loaded.image_power_ == ranker.image_power_
    np.testing.assert_array_equal(loaded.dev_recalls_, ranker.dev_recalls_)
    assert loaded.n_components_grid == (8, 16)
    assert loaded.regularization_grid == (0.3, [0.1, 1.0])
    expected = ranker.scores(index, SENTENCES)
    new = SCENES.images[N_TRAINING:]
    np.testing.assert_array_equal(loaded.scores(new, SENTENCES), expected)
    np.testing.assert_array_equal(loaded.scores(index, SENTENCES), expected)
    for one, other in zip(ranker.foreign(), loaded.foreign(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(map(tuple, loaded.captions_.texts)) == list(map(tuple, CAPTIONS[:N_TRAINING]))
    assert len(loaded.fit(SCENES.images[:30], CAPTIONS[:30]).captions_) == 30


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two models of other photos and captions with similar words."""
    root = tmp_path_factory.mktemp("saved")
    words = VisualWords(n_words={"colour": 6, "sift": 6}, n_sample_points=50)
    for name, n in (("model", 30), ("other", 6)):
        ranker = PhotoRanker(words, caption_kernel="similar_words", n_components_grid=(8,))
        ranker.fit(photos(range(n)), CAPTIONS[:n]).save(root / name)
    return root


def test_what_is_no_model_is_named(saved, tmp_path):
    refuses(FileNotFoundError, "nowhere", PhotoRanker.load, tmp_path / "nowhere")
    refuses(ValueError, r"model\.json", PhotoRanker.load, tmp_path)
    manifest = tmp_path / "model" / "model.json"
    shutil.copytree(saved / "model", manifest.parent)
    about = json.loads(manifest.read_text())
    assert about["version"]
    odd = [{}, {"kind": "x"}, {**about, "scaling": "length"}, {**about, "caption_kernel": "x"}]
    odd += [{**about, "image_power": 3.0}, {**about, "dev_recalls": [0.1]}]
    odd += [{**about, "photos": one} for one in ([], {}, None, "ab", [1], {"kind": "x"})]
    needed = "scaling", "dev_recalls", "dev_captions", "image_power", "params", "photos"
    odd += [{k: v for k, v in about.items() if k != name} for name in needed]
    for content in odd:
        reseal(manifest, content)
        refuses(ValueError, r"model\.json", PhotoRanker.load, manifest.parent)


NAMED = {"ranker.safetensors": r"\[6, 30\] items"}
NAMED["visual_words.safetensors"] = r"photos-\w+\.safetensors"
OWN = (
    "captions.json", "captions.safetensors", "foreign.safetensors", "similar_words.safetensors",
)  # fmt: skip


@pytest.mark.parametrize("name", [*OWN, *NAMED])
def test_files_of_two_models_are_refused(saved, tmp_path, name):
    manifest = tmp_path / "model" / "model.json"
    shutil.copytree(saved / "model", manifest.parent)
    other = parts_of(saved / "other" / "model.json") / name
    if name == "visual_words.safetensors":
        other = tmp_path / "words"
        words = VisualWords(n_words={"colour": 5, "sift": 6}, n_sample_points=50)
        words.fit(SCENES.images[:20]).save(other)
    if name == "foreign.safetensors":  # of as many items
        other = tmp_path / "foreign"
        PhotoRanker.load(saved / "model").foreign().save(other, "another model")
    shutil.copy(other, parts_of(manifest) / name)
    refuses(ValueError, rf"{name} is damaged", PhotoRanker.load, manifest.parent)
    reseal(manifest)
    named = NAMED.get(name, re.escape(name))
    refuses(ValueError, named, PhotoRanker.load, manifest.parent)


def test_an_index_belongs_to_one_model(words, ranker, index):
    refuses(ValueError, "photos", fit_forty(words).scores, index, SENTENCES)
