"""The whole line from photos and sentences to rankings, as one estimator."""

import json
import math
import shutil
from collections import Counter
from itertools import chain

import cv2
import numpy as np
import pytest
from resealed import parts_of, reseal

from kernelcore.captions import CaptionNormalizer
from kernelcore.datasets import make_scenes
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.images import UnreadableImagesError, UnreadableImagesWarning, VisualWords
from kernelcore.kernels import power
from kernelcore.models import KCCARanker, PhotoIndex, PhotoRanker
from kernelcore.models.photo_features import PhotoKernel
from kernelcore.reference.kernels import spatial_pyramid

SCENES = make_scenes(150, size=(48, 64))
CAPTIONS = SCENES.dataset.captions
N_TRAINING = 110
TEST = range(N_TRAINING, 150)
SENTENCES = [own[2] for own in CAPTIONS[N_TRAINING:]]
SMALL = {
    "n_components_grid": (8, 16),
    "regularization_grid": (0.3, (0.1, 1.0)),
}


@pytest.fixture(scope="module")
def words():
    n_words = {"colour": 24, "texture": 12, "sift": 24}
    words = VisualWords(n_words=n_words, n_sample_images=40, n_sample_points=200)
    return words.fit(SCENES.images)


@pytest.fixture(scope="module")
def features(words):
    return words.transform(SCENES.images)


@pytest.fixture(scope="module")
def ranker(words):
    ranker = PhotoRanker(features=words, hub_neighbors_grid=(0,), **SMALL)
    return ranker.fit(photos(range(N_TRAINING)), CAPTIONS[:N_TRAINING])


@pytest.fixture(scope="module")
def index(ranker):
    return ranker.index(SCENES.images[N_TRAINING:])


def photos(rows):
    return [SCENES.images[i] for i in rows]


def part(features, rows):
    return {name: histograms.select(list(rows)) for name, histograms in features.items()}


def fit_forty(words, *, dev=None, n_threads=None, **options):
    ranker = PhotoRanker(features=words, **{**SMALL, **options})
    return ranker.fit(photos(range(40)), CAPTIONS[:40], dev=dev, n_threads=n_threads)


def write_photos(folder, numbers):
    paths = [folder / f"{i}.png" for i in numbers]
    for path, i in zip(paths, numbers, strict=True):
        cv2.imwrite(str(path), SCENES.images[i][:, :, ::-1])
    return paths


def test_unseen_photos_and_sentences_are_ranked_far_better_than_by_chance(ranker, index):
    scores = ranker.scores(index, SENTENCES)
    assert (scores.shape, scores.dtype) == ((40, 40), np.float32)
    assert np.abs(scores).max() <= 1 + 1e-6
    own = np.diag(scores)
    # The mean of 40 ranks drawn at random is 20.5 with a standard deviation of 1.8.
    assert 1 + (scores > own[:, None]).sum(axis=1).mean() < 13
    assert 1 + (scores > own[None, :]).sum(axis=0).mean() < 13


def bag_of_words_kernel(X, Y, vocabulary):
    """Cosine of word counts times sqrt(idf), from dictionaries of words."""
    idf = {
        word: math.log(vocabulary.n_documents / (frequency + 1))
        for word, frequency in zip(
            vocabulary.words, vocabulary.document_frequency.tolist(), strict=True
        )
    }

    def product(x, y):
        return sum(x[word] * y[word] * idf.get(word, vocabulary.unknown_idf) for word in x & y)

    return np.array(
        [[product(x, y) / math.sqrt(product(x, x) * product(y, y)) for y in Y] for x in X]
    )


def test_scores_follow_from_the_formula(ranker, index, features):
    training = part(features, range(N_TRAINING))

    def photo_kernel(X):
        return np.mean(
            [
                spatial_pyramid(X[f].counts, Y.counts, X[f].totals, Y.totals, X[f].n_levels)
                for f, Y in training.items()
            ],
            axis=0,
        )

    normalizer = CaptionNormalizer().fit(CAPTIONS[:N_TRAINING])
    bags = [Counter(chain(*normalizer(own))) for own in CAPTIONS[:N_TRAINING]]
    queries = [Counter(caption) for caption in normalizer(SENTENCES)]
    vocabulary, exponent = ranker.training_.captions.vocabulary, ranker.image_power_
    assert set(vocabulary.words) == set().union(*bags)
    by_hand = KCCARanker(
        **ranker.setting_._asdict(), decomposition="eigen", tolerance=1e-6
    ).fit(photo_kernel(training) ** exponent, bag_of_words_kernel(bags, bags, vocabulary))
    expected = by_hand.scores(
        photo_kernel(part(features, TEST)) ** exponent,
        bag_of_words_kernel(queries, bags, vocabulary),
    )
    np.testing.assert_allclose(ranker.scores(index, SENTENCES), expected, atol=2e-3)


def test_photos_may_be_files_or_pixels(ranker, index, tmp_path):
    paths = write_photos(tmp_path, TEST)
    expected = ranker.scores(index, SENTENCES)
    for given in (paths, [str(path) for path in paths], photos(TEST)):
        np.testing.assert_array_equal(ranker.scores(given, SENTENCES), expected)
    assert ranker.index(paths).names == tuple(map(str, paths))
    assert index.names[:2] == ("photo 0", "photo 1")


def test_search_and_annotate_name_the_best(ranker, index):
    scores = ranker.scores(index, SENTENCES)
    for sentence, found in enumerate(ranker.search(SENTENCES, index, k=7)):
        assert [match.score for match in found] == sorted(scores[:, sentence])[:-8:-1]
        assert [scores[match.item, sentence] for match in found] == [m.score for m in found]
        assert [match.name for match in found] == [index.names[m.item] for m in found]
    for photo, found in enumerate(ranker.annotate(index, SENTENCES)):
        assert [match.score for match in found] == sorted(scores[photo])[:-6:-1]
        assert [scores[photo, match.item] for match in found] == [m.score for m in found]
        assert [match.name for match in found] == [SENTENCES[m.item] for m in found]
    assert len(ranker.search(["A dog."], index, k=1000)[0]) == len(index)


def test_equal_scores_stand_in_their_own_order(ranker):
    # Products of equal rows may differ in the last bit: of some photos they do not.
    copies = (photos([photo] * 3) for photo in TEST)
    one = next(own for own in copies if np.ptp(ranker.scores(own, ["A red ball."])) == 0)
    [found] = ranker.search(["A red ball."], one)
    assert [match.item for match in found] == [0, 1, 2]


def test_the_order_of_words_counts_for_sequences_alone(words, ranker, index, tmp_path):
    sentences = ["A dog chases a cat.", "A cat chases a dog."]
    bags = ranker.scores(index, sentences)
    np.testing.assert_array_equal(bags[:, 0], bags[:, 1])

    ordered = fit_forty(words, caption_kernel="word_sequence", n_threads=2)
    scores = ordered.scores(SCENES.images[N_TRAINING:], sentences)
    assert not np.array_equal(scores[:, 0], scores[:, 1])
    ordered.save(tmp_path / "model")
    loaded = PhotoRanker.load(tmp_path / "model")
    assert loaded.caption_kernel == "word_sequence"
    np.testing.assert_array_equal(loaded.scores(SCENES.images[N_TRAINING:], sentences), scores)


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
    training = ranker.training_
    Kx = power(PhotoKernel(training.photos.photos, None).gram(), ranker.image_power_)
    Ky = training.captions.gram()
    chosen = KCCARanker(**ranker.setting_._asdict(), decomposition="eigen").fit(
        Kx[np.ix_(rest, rest)], Ky[np.ix_(rest, rest)]
    )
    captions = training.captions.encoded.select(held_out).caption_as_image()
    scores = chosen.scores(
        Kx[np.ix_(held_out, rest)], training.captions.gram(captions)[:, rest]
    )
    ranks = retrieval_ranks(scores, np.repeat(np.arange(8), 5)).search
    np.testing.assert_allclose(
        ranker.dev_recalls_[1], [(ranks <= k).mean() for k in (1, 5, 10)]
    )
    assert len(ranker.training_) == 40
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
    learned = ranker.training_.photos.extractor.codebooks_["colour"]
    np.testing.assert_array_equal(
        learned.centers, unfitted.fit(SCENES.images[:30]).codebooks_["colour"].centers
    )
    again = PhotoRanker(features=unfitted, **SMALL).fit(SCENES.images[:30], CAPTIONS[:30])
    assert again.training_.photos.extractor is unfitted


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
    alone = PhotoRanker(features=words, **SMALL).fit(
        [paths[i] for i in good], [CAPTIONS[i] for i in good]
    )
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
    assert loaded.get_params(deep=False)["regularization_grid"] == (0.3, [0.1, 1.0])
    np.testing.assert_array_equal(
        loaded.scores(SCENES.images[N_TRAINING:], SENTENCES), ranker.scores(index, SENTENCES)
    )
    index.save(tmp_path / "index.safetensors")
    again = PhotoIndex.load(tmp_path / "index.safetensors")
    assert again.names == index.names
    np.testing.assert_array_equal(
        loaded.scores(again, SENTENCES), ranker.scores(index, SENTENCES)
    )
    refitted = loaded.fit(SCENES.images[:30], CAPTIONS[:30])
    assert len(refitted.training_) == 30


def test_only_a_model_is_overwritten_and_only_if_asked(ranker, words, tmp_path):
    other = fit_forty(words)
    (tmp_path / "empty").mkdir()
    ranker.save(tmp_path / "empty")
    with pytest.raises(FileExistsError, match="holds a model already"):
        other.save(tmp_path / "empty")
    other.save(tmp_path / "empty", overwrite=True)
    assert PhotoRanker.load(tmp_path / "empty").fingerprint == other.fingerprint
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "monday.txt").write_text("dear diary")
    for folder in ("diary", "diary/monday.txt"):
        with pytest.raises(FileExistsError, match="must be a new or empty folder"):
            ranker.save(tmp_path / folder, overwrite=True)
    assert (tmp_path / "diary" / "monday.txt").read_text() == "dear diary"


def test_a_save_that_is_stopped_leaves_what_was_there(ranker, tmp_path, monkeypatch):
    ranker.save(tmp_path / "model")
    monkeypatch.setattr(KCCARanker, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    for name in ("model", "other"):
        with pytest.raises(KeyboardInterrupt):
            ranker.save(tmp_path / name, overwrite=True)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert PhotoRanker.load(tmp_path / "model").fingerprint == ranker.fingerprint


@pytest.fixture(scope="module")
def saved(ranker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    ranker.save(folder)
    return folder


def test_a_damaged_model_is_named(saved, tmp_path):
    files = sorted(path.relative_to(saved) for path in saved.rglob("*") if path.is_file())
    assert len(files) == 11
    for name in files:
        folder = tmp_path / name.name / "model"
        shutil.copytree(saved, folder)
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=rf"{name.name} is damaged or truncated"):
            PhotoRanker.load(folder)
        (folder / name).unlink()
        with pytest.raises((FileNotFoundError, ValueError), match=name.name):
            PhotoRanker.load(folder)


def test_what_is_no_model_is_named(saved, tmp_path, words):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        PhotoRanker.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"must hold a model, and it has no model\.json"):
        PhotoRanker.load(tmp_path)
    mixed = tmp_path / "mixed"
    shutil.copytree(saved, mixed)
    fit_forty(words).save(tmp_path / "other")
    ranker = parts_of(tmp_path / "other" / "model.json") / "ranker.safetensors"
    shutil.copy(ranker, parts_of(mixed / "model.json"))
    with pytest.raises(ValueError, match=r"ranker\.safetensors is damaged"):
        PhotoRanker.load(mixed)
    reseal(mixed / "model.json")
    with pytest.raises(ValueError, match=r"files of one model, got 110 .* a ranker of 40"):
        PhotoRanker.load(mixed)
    for content, complaint in (({}, "photo ranker"), ({"kind": "x"}, "photo ranker")):
        reseal(mixed / "model.json", content)
        with pytest.raises(ValueError, match=complaint):
            PhotoRanker.load(mixed)
    description = json.loads((saved / "model.json").read_text())
    assert description["version"]


def test_an_index_belongs_to_one_model(words, ranker, index):
    other = fit_forty(words)
    with pytest.raises(ValueError, match="photos must be an index made by this model"):
        other.scores(index, SENTENCES)
