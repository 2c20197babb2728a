"""Order embeddings end to end, on drawn scenes and from the command line."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("matplotlib")
pytest.importorskip("typer")

from kernelcore.cli import main
from kernelcore.experiments import khojasteh2019
from kernelcore.experiments.khojasteh2019 import PUBLISHED, SYSTEMS, Ordering
from kernelcore.experiments.khojasteh2019.systems import THESIS

OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


@pytest.fixture(scope="module")
def study(corpus, cache):
    return khojasteh2019.run(corpus, cache_dir=cache, **OPTIONS)


def section(study, title):
    return next(part for part in study.sections if part.title == title)


def test_every_system_runs_beside_what_is_published(study):
    measured = study.results[: len(SYSTEMS)]
    assert [result.system for result in measured] == list(SYSTEMS)
    assert tuple(study.results[len(SYSTEMS) :]) == PUBLISHED
    for result in measured:
        assert result.pool == "joined captions"
        assert result.search.n_candidates == result.annotation.n_candidates
    (single,) = section(study, "All captions in the pool").tables
    assert len(single.rows) == len(SYSTEMS)
    assert "all captions" in str(single)


def test_what_lies_below_what_is_told_of_every_system(study):
    (table,) = section(study, "Which texts lie below which images").tables
    assert [(row[0], row[1]) for row in table.rows] == [
        (name, texts) for name in SYSTEMS for texts in ("joined captions", "single captions")
    ]
    below = {row[0]: row[2] for row in table.rows}
    assert below[THESIS] == "texts"
    assert below["no order"] == "none"


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study):
    again = khojasteh2019.run(corpus, cache_dir=cache, systems=[THESIS], **OPTIONS)
    assert again.results[0] == study.results[0]


def test_other_settings_are_trained_anew_and_dev_has_nothing_published(corpus, cache, study):
    other = khojasteh2019.run(
        corpus, cache_dir=cache, systems=["no order"], split="dev", rng=1, **OPTIONS
    )
    assert [result.split for result in other.results] == ["dev"]
    assert other.results[0].settings["rng"] == 1


def test_the_command_writes_the_report(corpus, cache, study, tmp_path, capsys):
    options = {"data": corpus, "cache": cache, "output": tmp_path, "system": THESIS}
    options |= {"epochs": 2, "batch-size": 10, "threads": 1}
    words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    assert main(["reproduce", "khojasteh2019", *words]) == 0
    printed = capsys.readouterr().out
    sections = "Which texts lie below which images", "Binary image selection"
    for text in ("DeepTwt, COCO-1K", *sections):
        assert text in printed
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Penalties of joined captions, {THESIS}" in page
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == 1 + len(PUBLISHED)


class Fixed:
    """A ranker with these penalties: four images, two texts."""

    def __init__(self, similarity):
        self.similarity = similarity

    def penalties(self, images, texts, *, reverse, n_threads):
        along = np.array([[0.1, 0.4], [0.5, 0.2], [0.1, 0.1], [0.3, 0.9]], np.float32)
        return along + (1 if reverse is (self.similarity == "texts below") else 0)


@pytest.mark.parametrize("similarity", ["texts below", "images below"])
def test_pairs_are_told_apart_by_the_order_that_was_trained(similarity):
    fixed = Fixed(similarity)
    found = Ordering.of(fixed, np.zeros((4, 1)), ["a", "b"], [0, 1], n_threads=1)
    assert found.below == ("images" if similarity == "images below" else "texts")
    np.testing.assert_allclose(found.true, [0.1, 0.2])
    np.testing.assert_allclose(found.reverse, [1.1, 1.2])
    np.testing.assert_allclose(found.mismatched, [[0.5, 0.4], [0.1, 0.1], [0.3, 0.9]])
    assert found.less_than_reverse == 1.0
    # 0.5, a half for 0.1, and 0.3; then 0.4 and 0.9
    assert found.less_than_mismatched == pytest.approx((2.5 + 2) / 6)
