"""Captions that systems write: their metrics, and a baseline; agreement with experts."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import make_scenes
from kernelcore.evaluation.caption_metrics import bleu, cider_d, coco_tokenize, rouge_l
from kernelcore.experiments import captioning
from kernelcore.experiments.captioning import (
    METRICS,
    agreement_table,
    measure_captions,
    nearest_captions,
    references_of,
    written_numbers,
)
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.steps import Store

REFERENCES = [["A dog runs.", "A brown dog."], ["The sea is calm.", "A calm sea."]]


@pytest.fixture(autouse=True)
def without_java(monkeypatch):
    monkeypatch.setattr(captioning, "available_metrics", lambda: METRICS[:-1])


def test_captions_are_cut_as_the_metrics_of_coco_want_them():
    candidates = ["A DOG runs!", "a boat"]
    tokens = [coco_tokenize(text) for text in candidates]
    sets = [[coco_tokenize(text) for text in own] for own in REFERENCES]
    found = measure_captions(candidates, REFERENCES)
    assert list(found) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D"]
    for n in range(4):
        assert found[f"BLEU-{n + 1}"].corpus == bleu(tokens, sets).corpus[n]
    for name, metric in (("ROUGE-L", rouge_l), ("CIDEr-D", cider_d)):
        expected = metric(tokens, sets)
        assert found[name].corpus == expected.corpus
        np.testing.assert_array_equal(found[name].captions, expected.captions)
    assert found["ROUGE-L"].captions[0] == 1


def test_meteor_is_there_with_java(monkeypatch):
    monkeypatch.setattr(captioning, "available_metrics", lambda: METRICS)
    monkeypatch.setattr(captioning, "meteor", rouge_l)
    assert list(measure_captions(["a dog"], [["a dog"]])) == list(METRICS)


def test_systems_stand_beside_people(tmp_path):
    written = {"echo": ["A dog runs.", "The sea is calm."], "noise": ["xx", "yy zz"]}
    store = Store(tmp_path)
    found = written_numbers(written, REFERENCES, store)
    fewer = [f"{name}, fewer references" for name in ("people", "echo", "noise")]
    assert list(found) == ["echo", "noise", *fewer]
    assert found["echo"]["BLEU-1"] == pytest.approx(100)
    assert found["noise"]["BLEU-1"] == pytest.approx(0, abs=0.1)
    people, echo = (found[name] for name in fewer[:2])
    assert people == echo  # echo wrote the first captions
    assert echo["BLEU-1"] < 100
    # a single caption leaves no reference beside people's
    assert list(written_numbers({"echo": ["a"]}, [["a"]], store)) == ["echo"]


def test_the_nearest_training_photo_lends_its_first_caption(corpus):
    corpus = Corpus.read(corpus)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(len(corpus.files), 4))
    train, test = corpus.photos("train"), corpus.photos("test")
    wanted = train[rng.integers(0, len(train), len(test))]
    features[test] = 3 * features[wanted]
    found = nearest_captions(corpus, features, "test")
    pool = corpus.pools["train"]
    pooled = zip(pool.photos, pool.texts, pool.numbers, strict=True)
    first = {photo: text for photo, text, number in pooled if number == 0}
    assert found == [first[photo] for photo in wanted]


def test_references_are_the_captions_of_each_photo(corpus):
    pool = Corpus.read(corpus).pools["dev"]
    sets = references_of(pool)
    assert sum(map(len, sets)) == len(pool.texts)
    for photo, own in zip(np.unique(pool.photos), sets, strict=True):
        assert own == [t for t, p in zip(pool.texts, pool.photos, strict=True) if p == photo]


# -- agreement with experts


def judge(corpus, ratings):
    """Write a file of experts: each photo's rating of captions of other photos."""
    rows = [(*pair, rating, rating, min(4, rating + 1)) for pair, rating in ratings.items()]
    lines = ["\t".join(map(str, row)) + "\n" for row in rows]
    (corpus.folder / "ExpertAnnotations.txt").write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def judged(tmp_path, scenes):
    scenes.write(tmp_path)
    corpus = Corpus.read(tmp_path)
    dataset = corpus.dataset
    ratings = {}
    for row, other in combinations(range(8), 2):
        own = {word for text in dataset.captions[row] for word in text.lower().split()}
        words = dataset.captions[other][0].lower().split()
        share = np.mean([word in own for word in words])
        rating = 1 + round(3 * share)
        ratings[dataset.image_ids[row], dataset.caption_ids[other][0]] = rating
    ratings[dataset.image_ids[0], dataset.caption_ids[0][0]] = 4  # its own caption
    judge(corpus, ratings)
    return corpus


@pytest.fixture(scope="module")
def scenes():
    return make_scenes(12, rng=3, size=(32, 32))


def test_metrics_that_count_words_agree_with_judges_who_do(judged, tmp_path):
    taus = agreement_table(judged, Store(tmp_path / "cache"))
    of = {row[0]: [float(cell) for cell in row[1:]] for row in taus.rows}
    assert list(of) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D"]
    assert of["BLEU-1"][0] > 0.4
    assert of["BLEU-1"][2] > 0
    assert "3 scores" not in taus.caption


def test_own_captions_are_left_out_and_each_photo_counts_once(judged, tmp_path, monkeypatch):
    measured = {}

    def noting(candidates, references, *, document_frequencies):
        measured.update(candidates=candidates, n_documents=document_frequencies.n_documents)
        counts = {"document_frequencies": document_frequencies}
        return measure_captions(candidates, references, **counts)

    monkeypatch.setattr(captioning, "measure_captions", noting)
    table = agreement_table(judged, Store(tmp_path / "cache"))
    assert measured["n_documents"] == 7  # the last of the eight has only captions of others
    assert len(measured["candidates"]) == 29
    texts = [text for own in judged.dataset.captions for text in own]
    assert set(measured["candidates"]) <= set(texts)
    assert "28 pairs with 84 scores of 7 photos; 1 pairs left out" in table.caption


def test_a_corpus_without_experts_is_named(judged, tmp_path):
    (judged.folder / "ExpertAnnotations.txt").unlink()
    with pytest.raises(FileNotFoundError, match="ExpertAnnotations"):
        agreement_table(judged, Store(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_experts_of_flickr8k(data_root, tmp_path):
    corpus = Corpus.read(data_root / "flickr8k")
    taus = agreement_table(corpus, Store(tmp_path))
    assert "16,992 scores" in taus.caption
    of = {row[0]: [float(cell) for cell in row[1:]] for row in taus.rows}
    assert 0.25 < of["BLEU-4"][1] < of["CIDEr-D"][1] < 0.5
