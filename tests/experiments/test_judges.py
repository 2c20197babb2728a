"""Judgments of a pool, by hand and against the libraries of agreement."""

import numpy as np
import pytest
from judged_scenes import write_judgments

pytest.importorskip("cv2")

from sklearn.metrics import cohen_kappa_score

from kernelcore.datasets import make_scenes
from kernelcore.evaluation.agreement import krippendorff_alpha
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.judges import Judges, best_kappa


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    scenes = make_scenes(40, rng=1, size=(32, 32))
    scenes.write(folder)
    write_judgments(scenes.dataset, folder)
    dataset = Corpus.read(folder).dataset
    return folder, dataset, Judges.of(folder, dataset, "test", 2)


def test_own_captions_are_relevant_and_perfect_unless_an_expert_says_otherwise(world):
    _, dataset, judges = world
    rows = dataset.split("test")
    n = len(rows)
    assert [own[0] for own in judges.image_captions] == [dataset.captions[i][2] for i in rows]
    place = np.arange(n)
    np.testing.assert_array_equal(judges.relevance.scores_of(place, place), 1)
    np.testing.assert_array_equal(judges.expert_and_gold.scores_of(place, place), 4)
    result = judges.crowd_result(np.eye(n), np.eye(n), system="own")
    assert result.mean["annotation"]["S@1"] == result.mean["search"]["S@1"] == 1
    assert {"S@1", "S@5", "S@10", "R-precision"} == set(result.values["search"])


def test_first_captions_have_the_experts_scores_and_ties_never_help(world):
    _, _, judges = world
    n = len(judges.image_captions)
    assert judges.first_numbers(np.eye(n))["mean score"] == 4
    after = np.roll(np.eye(n), 1, axis=1)  # the next image's caption
    found = judges.first_numbers(after)
    scores = judges.expert.scores_of(np.arange(n), np.roll(np.arange(n), -1))
    known = scores[np.isfinite(scores)]
    assert found["judged"] == pytest.approx(100 * len(known) / n)
    assert found["mean score"] == pytest.approx(known.mean())
    assert found[">= 3"] == pytest.approx(100 * np.mean(scores >= 3))
    both = judges.first_numbers(np.eye(n) + after)
    assert both[">= 4"] == pytest.approx(100 * np.mean(scores >= 4))
    assert judges.first_numbers(np.ones((n, n)))["judged"] == 0


def test_agreement_is_that_of_the_libraries(world):
    _, _, judges = world
    found = judges.agreement()
    for level in ("nominal", "ordinal", "interval"):
        own = found[f"experts, {level}"]
        assert own["alpha"] == krippendorff_alpha(judges.expert.ratings, level=level)
        assert own["low"] <= own["alpha"] <= own["high"]
    assert found["pairs"]["judged by experts"] == len(judges.expert)
    assert found["crowd"]["pairs"] == len(judges.crowd)
    assert len([name for name in found if "BLEU_pre" in name]) == 4
    rng = np.random.default_rng(0)
    expert, values = rng.integers(3, 13, 80) / 3, rng.random(80)
    values[:7] = np.nan
    best = best_kappa(expert, values)
    assert best["pairs"] == 73
    verdicts = expert[7:] >= best["experts >="], values[7:] >= best["measure >="]
    assert best["kappa"] == pytest.approx(cohen_kappa_score(*verdicts))
    assert set(best_kappa(np.ones(4), np.ones(4))) == {"pairs"}


def test_judgments_that_are_not_there_or_of_another_pool_are_none(world, tmp_path):
    folder, dataset, _ = world
    assert Judges.of(tmp_path, dataset, "test", 2) is None
    assert Judges.of(folder, dataset, "test", 1) is None
    assert Judges.of(folder, dataset, "dev", 2) is None
