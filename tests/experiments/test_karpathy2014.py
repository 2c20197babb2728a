"""Fragment embeddings end to end, on drawn scenes and on real captions."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

from kernelcore.evaluation import Result, evaluate
from kernelcore.experiments import karpathy2014
from kernelcore.experiments.corpus import Corpus, Pool
from kernelcore.experiments.karpathy2014 import PRINTED, PUBLISHED, SYSTEMS, Karpathy2014
from kernelcore.experiments.karpathy2014.findings import parts_section
from kernelcore.experiments.karpathy2014.systems import FULL, RANDOM
from kernelcore.experiments.scores import hub_corrected_name, printed

OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}
RUN = [*SYSTEMS, *map(printed, ("alignment only", FULL))]


@pytest.fixture(scope="module", autouse=True)
def crops():
    """Regions that the network runs on are told from parts of a map, and cost no time."""
    regions = Corpus.regions

    def quick(self, *, pooling="map", **options):
        found = regions(self, pooling="map", **options)
        if pooling == "map":
            return found
        return replace(found, features=np.sqrt(np.abs(found.features)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Corpus, "regions", quick)
        yield


@pytest.fixture(scope="module")
def study(corpus, cache, crops):
    return karpathy2014.run(corpus, cache_dir=cache, systems=RUN, **OPTIONS)


def measured(study):
    return {r.system: r for r in study.results if isinstance(r, Result)}


def section(study, title):
    return next(one for one in study.sections if one.title == title)


def test_every_system_runs_beside_what_is_published(study):
    results = measured(study)
    corrected = [hub_corrected_name(name) for name in RUN if name != RANDOM]
    assert sorted(results) == sorted([*RUN, *corrected])
    assert study.results[len(results) :] == PUBLISHED
    assert {SYSTEMS[name].published for name in SYSTEMS} == {row.system for row in PUBLISHED}
    for result in results.values():
        assert result.pool == "all captions"
        assert set(result.n_candidates["search"]) == {result.facts["n_images"]}
    smaller = section(study, "One caption per image in the pool").tables[0]
    assert "caption #0" in str(smaller)


def test_systems_have_rows_published_as_printed_and_ours(study):
    rows = section(study, "Published, as printed, ours").tables[0].rows
    names = [row[0] for row in rows]
    for name in ("alignment only", FULL):
        assert {f"{name}, ours", printed(name)} <= set(names)
        assert any(one.startswith(f"{name}, published") for one in names)


def test_systems_as_printed_have_the_choices_of_the_paper(study):
    settings = measured(study)[printed(FULL)].settings
    assert (settings["optimizer"], settings["balanced"]) == ("sgd", False)
    assert (settings["dropout"], settings["n_drawn"]) == (0, None)
    assert settings["weight_decay"] > 0
    assert (settings["n_components"], settings["words"]) == (1000, "pretrained")
    assert settings["pooling"] == "crop"
    assert measured(study)[FULL].settings["pooling"] == "map"
    assert PRINTED[printed(FULL)].n_epochs == 20


def test_systems_choose_between_two_photos(study):
    selection = section(study, "Binary image selection")
    assert "no judgments of people" in selection.paragraphs[1]
    for table in selection.tables:
        assert {row[0] for row in table.rows} == set(measured(study))


def test_parts_are_differences_of_mean_recalls():
    pool = Pool(("a", "b", "c"), np.zeros(3, np.int64), np.arange(3))
    right, wrong = np.eye(3), np.roll(np.eye(3), 1, axis=0)
    results = [
        evaluate(right, system=FULL),
        evaluate(wrong, system="alignment + ranking"),
        evaluate(wrong, system="bigrams"),
    ]
    (table,) = parts_section(results, PUBLISHED, pool).tables
    by_part = {row[0]: row[3:] for row in table.rows}
    assert set(by_part) == {"multiple instances", "dependencies for bigrams"}
    means = [result.rsum / 6 * 100 for result in results]
    assert by_part["multiple instances"][1] == f"{means[0] - means[1]:+.1f}"
    assert by_part["multiple instances"][0] == "+1.9"  # 28.55 less 26.62
    assert by_part["dependencies for bigrams"][1:] == ("+0.0", "0.0")
    (without_paper,) = parts_section(results, (), pool).tables
    assert "the paper" not in without_paper.columns
    assert parts_section(results[:1], PUBLISHED, pool) is None


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study):
    again = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], **OPTIONS)
    assert measured(again)[FULL] == measured(study)[FULL]


def test_other_settings_are_trained_anew(corpus, cache, study):
    other = karpathy2014.run(corpus, cache_dir=cache, systems=[FULL], rng=1, **OPTIONS)
    assert other.results[0].settings["rng"] == 1
    assert other.results[0] != measured(study)[FULL]


def test_it_is_written_as_files(study, tmp_path):
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("with the best region of") >= 1
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == len(study.results)
    pictures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert pictures[0] == "01-recall-at-k.png"
    assert len(pictures) >= 3


def test_without_a_cache_results_and_page_are_the_same(corpus, study, tmp_path):
    """The files of the steps are gone when figures are drawn."""
    again = karpathy2014.run(corpus, systems=["bigrams"], **OPTIONS)
    assert again.results[0] == measured(study)["bigrams"]
    again.write(tmp_path)
    assert "with the best region of" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_development_split_has_nothing_published_beside_it(corpus, cache, study):
    found = karpathy2014.run(
        corpus, cache_dir=cache, systems=["single words"], split="dev", **OPTIONS
    )
    assert {result.split for result in found.results} == {"dev"}


def test_a_run_without_a_trained_system_has_no_alignments(corpus, cache):
    found = karpathy2014.run(corpus, cache_dir=cache, systems=[RANDOM], **OPTIONS)
    assert found.figures() == []


def test_the_first_region_is_the_whole_photo(corpus, cache, study):
    own = Karpathy2014(data=corpus, cache_dir=cache, systems=[FULL], split="dev", **OPTIONS)
    own.run()
    plain, photo = own.regions, own._described(own._system(FULL)).value()
    starts = photo.offsets[:-1]
    np.testing.assert_array_equal(photo.features[starts], own.whole)
    others = np.setdiff1d(np.arange(len(photo.features)), starts)
    np.testing.assert_array_equal(photo.features[others], plain.features[others])
    assert not np.array_equal(photo.features[starts], plain.features[starts])

    joined, pretrained = own._words["joined"], own._words["pretrained"]
    assert pretrained is own.vectors
    assert set(joined.words) == {*own.vectors.words, *own.embeddings.words}
    assert own._captions["pretrained"].vocabulary.words == pretrained.words


def test_captions_lose_only_words_without_a_vector(corpus, cache, study):
    """A word of dev or test that no training caption has keeps the vector of the file."""
    own = Karpathy2014(data=corpus, cache_dir=cache, systems=[RANDOM], **OPTIONS)
    own.run()
    seen = set(own.embeddings.words)
    new = [word for word in own.vectors.words if word not in seen]
    for words, captions in own._captions.items():
        assert set(new) <= set(captions.vocabulary.words)
        assert own._words[words].words == captions.vocabulary.words
    for word in new:
        vector = own._words["joined"][word]
        assert not vector[own.vectors.n_dimensions :].any()
        assert np.linalg.norm(vector) == pytest.approx(4, rel=1e-5)
