"""Fragment embeddings end to end, on drawn scenes and on real captions."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

from kernelcore.datasets import make_scenes
from kernelcore.experiments import karpathy2014
from kernelcore.experiments.karpathy2014 import PUBLISHED, SYSTEMS
from kernelcore.experiments.karpathy2014.systems import FULL

OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flickr")
    make_scenes(40, rng=1, size=(64, 80)).write(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def study(corpus, cache):
    return karpathy2014.run(corpus, cache_dir=cache, **OPTIONS)


def test_every_system_runs_beside_what_is_published(study):
    measured = study.results[: len(SYSTEMS)]
    assert [result.system for result in measured] == list(SYSTEMS)
    assert tuple(study.results[len(SYSTEMS) :]) == PUBLISHED
    assert {SYSTEMS[name].published for name in SYSTEMS} == {row.system for row in PUBLISHED}
    for result in measured:
        assert result.pool == "all captions"
        assert result.search.n_candidates == result.annotation.n_queries
    smaller = study.sections[1].tables[0]
    assert "caption #0" in str(smaller)


def test_systems_choose_between_two_photos(study):
    section = study.sections[0]
    assert "no judgments of people" in section.paragraphs[1]
    for table in section.tables:
        assert [row[0] for row in table.rows] == list(SYSTEMS)


def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("kernelcore.deep.FragmentRanker.fit", refuse)
    again = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], **OPTIONS)
    assert again.results[0] == next(r for r in study.results if r.system == FULL)


def test_without_a_cache_the_results_are_the_same(corpus, study):
    again = karpathy2014.run(corpus, systems=["bigrams"], **OPTIONS)
    assert again.results[0] == next(r for r in study.results if r.system == "bigrams")


def test_other_settings_are_trained_anew(corpus, cache, study):
    other = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], rng=1, **OPTIONS)
    before = next(r for r in study.results if r.system == FULL)
    assert other.results[0].settings["rng"] == 1
    assert other.results[0] != before


def test_it_is_written_as_files(study, tmp_path):
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Our choices" in page
    assert page.count("with the best region of") >= 1
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == len(SYSTEMS) + len(PUBLISHED)


def test_a_page_is_written_where_nothing_is_kept(corpus, tmp_path):
    """The files of the steps are gone when figures are drawn."""
    found = karpathy2014.run(corpus, systems=["single words"], **OPTIONS)
    found.write(tmp_path)
    assert "with the best region of" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_development_split_has_nothing_published_beside_it(corpus, cache, study):
    found = karpathy2014.run(
        corpus, cache_dir=cache, systems=["single words"], split="dev", **OPTIONS
    )
    assert [result.split for result in found.results] == ["dev"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"systems": []}, "systems must hold at least one name"),
        ({"systems": "DeViSE"}, "systems must hold at least one name"),
        ({"systems": ["VSE"]}, "systems must be one of"),
        ({"split": "train"}, "split must be one of"),
        ({"n_epochs": 0}, "n_epochs must be an integer >= 1"),
        ({"batch_size": 1}, "batch_size must be an integer >= 2"),
        ({"rng": -1}, "rng must be an integer >= 0"),
    ],
)
def test_what_cannot_be_run_is_refused(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        karpathy2014.run(corpus, **options)
