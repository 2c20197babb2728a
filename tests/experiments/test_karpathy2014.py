"""Fragment embeddings end to end, on drawn scenes and on real captions."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

from kernelcore.experiments import karpathy2014
from kernelcore.experiments.karpathy2014 import PUBLISHED, SYSTEMS
from kernelcore.experiments.karpathy2014.systems import FULL
from kernelcore.experiments.scores import hub_corrected_name

OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


@pytest.fixture(scope="module")
def study(corpus, cache):
    return karpathy2014.run(corpus, cache_dir=cache, **OPTIONS)


RESULTS = [name for own in SYSTEMS for name in (own, hub_corrected_name(own))]


def section(study, title):
    return next(part for part in study.sections if part.title == title)


def test_every_system_runs_beside_what_is_published(study):
    measured = study.results[: len(RESULTS)]
    assert [result.system for result in measured] == RESULTS
    assert tuple(study.results[len(RESULTS) :]) == PUBLISHED
    assert {SYSTEMS[name].published for name in SYSTEMS} == {row.system for row in PUBLISHED}
    for result in measured:
        assert result.pool == "all captions"
        assert result.search.n_candidates == result.annotation.n_queries
    smaller = section(study, "One caption per image in the pool").tables[0]
    assert "caption #0" in str(smaller)


def test_systems_choose_between_two_photos(study):
    selections = section(study, "Binary image selection")
    assert "no judgments of people" in selections.paragraphs[1]
    for table in selections.tables:
        assert [row[0] for row in table.rows] == RESULTS


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study):
    again = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], **OPTIONS)
    assert again.results[0] == next(r for r in study.results if r.system == FULL)


def test_other_settings_are_trained_anew(corpus, cache, study):
    other = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], rng=1, **OPTIONS)
    before = next(r for r in study.results if r.system == FULL)
    assert other.results[0].settings["rng"] == 1
    assert other.results[0] != before


def test_it_is_written_as_files(study, tmp_path):
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Choices of ours" in page
    assert page.count("with the best region of") >= 1
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == len(RESULTS) + len(PUBLISHED)


def test_without_a_cache_results_and_page_are_the_same(corpus, study, tmp_path):
    """The files of the steps are gone when figures are drawn."""
    again = karpathy2014.run(corpus, systems=["bigrams"], **OPTIONS)
    assert again.results[0] == next(r for r in study.results if r.system == "bigrams")
    again.write(tmp_path)
    assert "with the best region of" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_development_split_has_nothing_published_beside_it(corpus, cache, study):
    found = karpathy2014.run(
        corpus, cache_dir=cache, systems=["single words"], split="dev", **OPTIONS
    )
    assert {result.split for result in found.results} == {"dev"}
    assert len(found.results) == 2
