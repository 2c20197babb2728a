"""Agreement of caption metrics with experts, against plain counting."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("cv2")

from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation.caption_metrics import cider_d, coco_tokenize
from kernelcore.experiments import captioning, metric_agreement
from kernelcore.experiments.captioning import METRICS
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.metric_agreement import (
    RatedCaptions,
    agreement_table,
)
from kernelcore.experiments.steps import Store


@pytest.fixture(autouse=True)
def without_java(monkeypatch):
    for module in (captioning, metric_agreement):
        monkeypatch.setattr(module, "available_metrics", lambda: METRICS[:-1])


def judge(corpus, ratings):
    """Write a file of experts: each photo's rating of captions of other photos."""
    lines = [
        f"{photo}\t{caption}\t{rating}\t{rating}\t{min(4, rating + 1)}\n"
        for (photo, caption), rating in ratings.items()
    ]
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
    from kernelcore.datasets import make_scenes

    return make_scenes(12, rng=3, size=(32, 32))


def test_metrics_that_count_words_agree_with_judges_who_do(judged, tmp_path):
    taus = agreement_table(judged, Store(tmp_path / "cache"))
    of = {row[0]: [float(cell) for cell in row[1:]] for row in taus.rows}
    assert list(of) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D"]
    assert of["BLEU-1"][0] > 0.4
    assert of["BLEU-1"][2] > 0
    assert "3 scores" not in taus.caption


def test_own_captions_are_left_out_and_frequencies_count_each_photo_once(judged):
    from kernelcore.datasets import load_flickr_expert

    judgments = load_flickr_expert(judged.folder / "ExpertAnnotations.txt")
    rated = RatedCaptions.of(judged, judgments)
    dataset = judged.dataset
    rows = {image_id: row for row, image_id in enumerate(dataset.image_ids)}
    own = [dataset.captions[rows[judgments.image_ids[i]]] for i in judgments.images]
    expected = [text in texts for text, texts in zip(rated.candidates, own, strict=True)]
    assert rated.is_reference.tolist() == expected
    assert any(expected)
    assert rated.frequencies.n_documents == len(np.unique(judgments.images))
    tokens = [coco_tokenize(text) for text in rated.candidates]
    references = [[coco_tokenize(text) for text in texts] for texts in rated.references]
    found = cider_d(tokens, references, document_frequencies=rated.frequencies)
    np.testing.assert_array_equal(rated.metrics()["CIDEr-D"], found.captions)


def test_judgments_of_other_photos_or_without_ratings_are_refused(judged):
    pair = (judged.dataset.image_ids[0], judged.dataset.caption_ids[1][0])
    with pytest.raises(ValueError, match="judgments must have ratings"):
        RatedCaptions.of(judged, RelevanceJudgments.from_pairs("one", [pair], [1.0]))
    ratings = np.ones((1, 1))
    other = RelevanceJudgments.from_pairs("one", [("nobody", pair[1])], [1.0], ratings=ratings)
    with pytest.raises(ValueError, match="nobody"):
        RatedCaptions.of(judged, other)


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
