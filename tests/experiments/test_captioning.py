"""Captions that systems write: their metrics, a baseline, and selection by likelihood."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import BinarySelections, SelectionTriple
from kernelcore.evaluation import evaluate_selections
from kernelcore.evaluation.caption_metrics import bleu, cider_d, coco_tokenize, rouge_l
from kernelcore.experiments import captioning
from kernelcore.experiments.captioning import (
    METRICS,
    measure_captions,
    nearest_captions,
    references_of,
    selection_scorer,
    written_numbers,
)
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.steps import Store

REFERENCES = [["A dog runs.", "A brown dog."], ["The sea is calm.", "A calm sea."]]


@pytest.fixture
def without_java(monkeypatch):
    monkeypatch.setattr(captioning, "available_metrics", lambda: METRICS[:-1])


@pytest.mark.usefixtures("without_java")
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


@pytest.mark.usefixtures("without_java")
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
    first = {
        p: t for p, t, n in zip(pool.photos, pool.texts, pool.numbers, strict=True) if n == 0
    }
    assert found == [first[photo] for photo in wanted]
    with pytest.raises(ValueError, match="features"):
        nearest_captions(corpus, np.full_like(features, np.nan), "test")


def test_references_are_the_captions_of_each_photo(corpus):
    pool = Corpus.read(corpus).pools["dev"]
    sets = references_of(pool)
    assert sum(map(len, sets)) == len(pool.texts)
    for photo, own in zip(np.unique(pool.photos), sets, strict=True):
        assert own == [t for t, p in zip(pool.texts, pool.photos, strict=True) if p == photo]


class Likes:
    """A captioner that finds a caption likely for photos with its number of words."""

    def log_likelihoods(self, photos, captions, *, caption_image, n_threads):
        lengths = np.array([len(text.split()) for text in captions])
        return -np.abs(lengths - photos[caption_image, 0]).astype(np.float32)


def test_a_captioner_selects_the_photo_of_the_higher_likelihood():
    captions = {"c1": "one", "c2": "one two"}
    scorer = selection_scorer(Likes(), np.array([[1.0], [2.0]]), ["a", "b"], captions)
    triple = partial(SelectionTriple, true_image_id="a", other_image_id="b")
    selections = BinarySelections(
        "two",
        [
            triple("0", caption=captions["c1"], caption_id="c1"),
            triple("1", caption=captions["c2"], caption_id="c2"),
        ],
    )
    result = evaluate_selections(selections, scorer)
    assert result.values["selection"]["accuracy"].tolist() == [1, 0]
