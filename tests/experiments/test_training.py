"""What studies of trained systems share: tests, embeddings, features of photos."""

import shutil
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from outside import write_outside_corpus
from refusals import refuses
from small_corpus import with_other_captions

pytest.importorskip("cv2")
pytest.importorskip("torch")

from kernelcore.captions.tokens import tokenize
from kernelcore.evaluation.significance import fisher_randomization
from kernelcore.experiments import corpus as corpus_module
from kernelcore.experiments.corpus import Corpus, Pool, mean_of_regions
from kernelcore.experiments.page import main_sections, photo_recalls, recalls_of
from kernelcore.experiments.result_files import SystemFile, read_files
from kernelcore.experiments.scores import Scores, evaluate_pool, hub_corrected_name
from kernelcore.experiments.steps import Source, Store
from kernelcore.experiments.training import TrainedStudy, grouping, resumed
from kernelcore.images import CNN, square_roots
from kernelcore.lexical import WordVectors, learn_word_vectors
from kernelcore.models import hub_corrected


@dataclass(kw_only=True)
class Toy(TrainedStudy):
    """Systems whose scores are the truth and noise."""

    NAME = "toy"
    TITLE = "A toy"
    SYSTEMS = ("sharp", "blurred")
    SOURCE = "nobody"
    SETTINGS: ClassVar = {"size": 3}
    NOISE: ClassVar = {"sharp": 0.7, "blurred": 1.2}

    def prepare(self):
        self.read()
        self.photos = Source(np.zeros(1))

    def settings_of(self, name):
        return self.NOISE[name]

    def measure(self, name):
        owners = np.unique(self.corpus.pools[self.split].photos, return_inverse=True)[1]
        own = np.arange(owners.max() + 1)[:, np.newaxis] == owners
        noise = np.random.default_rng(self.rng).normal(size=own.shape)
        scores = own + self.NOISE[name] * noise
        pair = scores + own, scores + own
        return self.evaluated(name, Scores(scores, scores, {"rng": self.rng}, corrected=pair))

    @classmethod
    def tables(cls, files):
        return main_sections(files, cls.SYSTEMS, "sharp", {})


@pytest.fixture(scope="module")
def glove(corpus, tmp_path_factory):
    """Vectors of some words of the captions, and of a word that is not among them."""
    path = tmp_path_factory.mktemp("glove") / "glove.txt"
    path.write_text("a 1 0 0\nman 0 2 0\nzebra 0 0 1\n", encoding="utf-8")
    return path


def test_all_systems_are_tested_against_the_main_one(corpus, tmp_path):
    study = Toy(data=corpus, n_threads=1, rng=5)
    study.run(tmp_path)
    summary, results, _ = Toy.sections(tmp_path)
    assert [row[0] for row in summary.tables[0].rows] == ["sharp"]
    table = results.tables[0]
    assert [row[0] for row in table.rows] == ["sharp", "blurred"]
    files = read_files(tmp_path, "toy")
    names = "blurred", "sharp"
    assert sorted(files) == [n for s in names for n in (s, hub_corrected_name(s))]
    ours, theirs = (recalls_of(files[name]) for name in ("blurred", "sharp"))
    gains = ours - theirs
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    tested = fisher_randomization(ours, theirs, rng=0).p_value
    assert table.rows[1][-3] == f"{ours.mean():.1f}"
    assert table.rows[1][-2:] == (f"{gains.mean():+.2f} ± {error:.2f}", f"{tested:.2g}")


def test_options_are_checked_before_anything_is_read(corpus, glove):
    odd = {"pooling": ["mean"], "n_epochs": [0], "batch_size": [1], "rng": [-1]}
    odd["network"] = [corpus / "net.onnx", corpus]
    error = TypeError, ValueError, FileNotFoundError
    for name, values in odd.items():
        for value in values:
            refuses(error, name, Toy.reproduce, "nowhere", "results", **{name: value})


# -- hubs


class Products:
    """A ranker whose scores are products, which notes what it scores."""

    def __init__(self):
        self.asked = []

    def get_params(self):
        return {"n": 2}

    def scores(self, images, captions, *, n_threads):
        self.asked.append((len(images), len(captions)))
        return np.asarray(images) @ np.asarray(captions).T


def test_hubs_are_corrected_by_two_thousand_training_items(corpus):
    rng = np.random.default_rng(0)
    images, captions = rng.normal(size=(7, 4)), rng.normal(size=(9, 4))
    photos, texts = rng.normal(size=(2400, 4)), rng.normal(size=(40, 4))
    study, ranker = Toy(data=corpus, n_threads=1), Products()
    study.corpus = SimpleNamespace(photos={"train": np.arange(2300)}.get)
    found = study.scored(ranker, (images, captions), (photos, texts), words="all")
    annotation, search = found.corrected
    assert found.settings == {"n": 2, "words": "all"}
    assert ranker.asked == [(7, 9), (2000, 9), (7, 40)]
    np.testing.assert_array_equal(found.search, images @ captions.T)
    expected = hub_corrected(images @ captions.T, images @ texts.T, task="search")
    np.testing.assert_allclose(search, expected)
    bank = photos[:2300] @ captions.T
    every = hub_corrected(images @ captions.T, bank, task="annotation")
    np.testing.assert_allclose(annotation, every, atol=0.5)
    photos[2300:] = np.nan  # no training photos
    again = study.scored(Products(), (images, captions), (photos, texts))
    np.testing.assert_array_equal(again.corrected[0], annotation)


# -- a photo and its captions


def test_a_photos_captions_stay_together():
    rng = np.random.default_rng(3)
    order = rng.permutation(12)
    photos = np.repeat(order, rng.integers(1, 5, 12))
    pool = Pool(("",) * len(photos), np.zeros(len(photos), np.int64), photos)
    truth = np.arange(12)[:, np.newaxis] == photos
    scores = truth + 0.6 * rng.normal(size=truth.shape)
    result = evaluate_pool(scores, pool, system="one")
    groups = grouping(pool)
    np.testing.assert_array_equal(groups["photos"], order)
    np.testing.assert_array_equal(np.repeat(order, groups["captions"]), photos)
    recalls = photo_recalls(result, photos)
    for photo in range(12):
        ranks = result.values["search"]["mean_rank"][photos == photo]
        own = result.values["annotation"]["mean_rank"][photo]
        parts = [np.mean(ranks <= k) / 6 + (own <= k) / 6 for k in (1, 5, 10)]
        assert recalls[photo] == pytest.approx(100 * sum(parts))
    file = SystemFile("toy", "one", "", "", {"all captions": result}, groups)
    np.testing.assert_array_equal(recalls_of(file), recalls)


def test_a_checkpoint_of_other_learning_rates_begins_anew(tmp_path):
    """Where rates fall near the end, longer training does not continue a shorter one."""
    images, captions = np.random.default_rng(0).normal(size=(6, 5)), ["a dog"] * 6

    def fit(n_epochs, folder=None):
        from kernelcore.deep import EmbeddingRanker

        ranker = EmbeddingRanker(n_components=4, n_epochs=n_epochs, rng=0)
        return ranker.fit(images, captions, dev=(images, captions), folder=folder)

    resumed(partial(fit, 4), tmp_path / "run")  # the last epoch has a lower rate
    again = resumed(partial(fit, 8), tmp_path / "run")
    expected = fit(8)
    assert len(again.history_.epochs) == 8
    np.testing.assert_array_equal(again.embed_images(images), expected.embed_images(images))


def test_more_epochs_continue(corpus, glove, tmp_path, monkeypatch):
    from kernelcore.deep import EmbeddingRanker

    study = Toy(data=corpus, word_vectors_file=glove, cache_dir=tmp_path, n_threads=1)

    def trained(n_epochs):
        with study._prepared():
            n = len(study.corpus.files)
            photos = Source(np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32))
            ranker = EmbeddingRanker(n_components=4, n_epochs=n_epochs, rng=0)
            return study.train(ranker, photos, study.raw_captions, word_vectors=None)

    first, more = trained(2), trained(3)
    assert more.history_.epochs[:2] == first.history_.epochs  # with the same seconds
    assert len(more.history_.epochs) == 3


# -- words


def test_embeddings_join_vectors_of_a_file_with_learned_ones(tmp_path, corpus):
    own = Corpus.read(corpus)
    texts = own.pools["train"].texts
    pretrained = WordVectors(["man", "zebra"], [[0.0, 2.0, 0.0], [1.0, 1.0, 1.0]])
    store = Store(tmp_path)
    plain = own.embeddings(pretrained, store)
    assert list(plain.words) == list(dict.fromkeys(w for text in texts for w in tokenize(text)))
    assert "zebra" not in plain
    np.testing.assert_allclose(plain["man"][:3], [0, 1, 0])
    np.testing.assert_allclose(np.linalg.norm(plain["man"][3:]), 1, rtol=1e-6)
    assert not plain["a"][:3].any()
    assert len(list(tmp_path.iterdir())) == 1


def test_learned_vectors_are_kept_for_each_outside_corpus(tmp_path, corpus, monkeypatch):
    learned = []

    def noted(sentences, **options):
        learned.append(len(sentences))
        return learn_word_vectors(sentences, **options)

    monkeypatch.setattr(corpus_module, "learn_word_vectors", noted)
    data, store = tmp_path / "data", Store(tmp_path / "store")
    shutil.copytree(corpus, data)
    pretrained = WordVectors(["man"], [[1.0]])
    first, again = (Corpus.read(data).embeddings(pretrained, store) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert len(learned) == 1
    write_outside_corpus(data)
    other = Corpus.read(data).embeddings(pretrained, store)
    assert learned[1] > learned[0]
    assert other.words == first.words
    assert not np.array_equal(other.vectors, first.vectors)


def test_nothing_is_learned_from_captions_of_other_splits(corpus, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(corpus, data)
    own = Corpus.read(data)
    ids = {own.dataset.image_ids[i] for s in ("dev", "test") for i in own.dataset.split(s)}
    with_other_captions(data, "scenes.token.txt", ids)
    pretrained, store = WordVectors(["man", "zebra"], [[1.0], [1.0]]), Store(tmp_path / "store")
    before = own.embeddings(pretrained, store)
    after = Corpus.read(data).embeddings(pretrained, store)
    assert after.words == before.words
    np.testing.assert_array_equal(after.vectors, before.vectors)


# -- photos


def test_photos_are_described_by_whole_and_regions(corpus, glove, cache):
    study = Toy(data=corpus, cache_dir=cache, n_threads=1)
    study.corpus = Corpus.read(corpus)
    vars(study.corpus)["files"] = study.corpus.files[:4]  # a few are enough
    study.describe()
    rows = study.photos.value()
    whole = CNN().transform(study.corpus.files).features
    parts = [square_roots(whole), square_roots(mean_of_regions(study.regions))]
    np.testing.assert_allclose(rows, np.hstack(parts), atol=1e-6)


def test_a_corpus_is_identified_by_photos_captions_and_what_describes_them(corpus, tmp_path):
    data, network = tmp_path / "data", tmp_path / "net.onnx"
    shutil.copytree(corpus, data)
    network.write_bytes(b"layers")
    own = Corpus.read(data).identity
    digests = [own(), own(pooling="crop"), own(network=network)]
    network.write_bytes(b"others")
    digests.append(own(network=network))
    write_outside_corpus(data)
    digests.append(own())
    with_other_captions(data, "scenes.token.txt", [Corpus.read(data).dataset.image_ids[0]])
    digests.append(Corpus.read(data).identity())
    Corpus.read(data).files[0].write_bytes(b"no photo")
    digests.append(Corpus.read(data).identity())
    assert len(set(digests)) == len(digests)
    assert Corpus.read(corpus).identity() == digests[0]
