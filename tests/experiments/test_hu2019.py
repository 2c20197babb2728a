"""Embeddings, cross attention and captioners end to end, on drawn scenes."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

from kernelcore.evaluation import compare
from kernelcore.experiments import captioning, hu2019, sections
from kernelcore.experiments.captioning import METRICS
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hu2019 import (
    CAPTIONER,
    KERNEL_SYSTEMS,
    PUBLISHED,
    SYSTEMS,
    Hu2019,
    captioners,
)
from kernelcore.experiments.result_files import read_files
from kernelcore.experiments.scores import evaluate_pool, hub_corrected_name

SINGLE, ALL = KERNEL_SYSTEMS
NAMES = [SINGLE, *SYSTEMS]  # scenes lack the outside corpus of the other one
TRAINED = [name for name in NAMES if name not in KERNEL_SYSTEMS]
OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


@pytest.fixture(scope="module", autouse=True)
def quick_tests():
    """Tests of significance draw less, and Java is not there: they have their own tests."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "compare", partial(compare, n_reassignments=2000))
        patch.setattr(captioning, "available_metrics", lambda: METRICS[:-1])
        patch.setattr(Hu2019, "SETTINGS", {**Hu2019.SETTINGS, "n_components": 8})
        patch.setattr(captioners, "CAPTIONER_SETTINGS", {"n_components": 8})
        yield


@pytest.fixture(scope="module")
def study(corpus, cache, quick_tests):
    every = [*KERNEL_SYSTEMS, *SYSTEMS, CAPTIONER]
    return hu2019.run(corpus, cache_dir=cache, systems=every, **OPTIONS)


def systems_of(study):
    return [result.system for result in study.results if result not in PUBLISHED]


def section(study, title):
    return next(part for part in study.sections if part.title == title)


def names_in(table):
    return [row[0] for row in table.rows]


def test_every_system_runs_beside_what_is_published(study):
    measured = study.results[: -len(PUBLISHED)]
    assert [name for name in systems_of(study) if not name.endswith("corrected")] == NAMES
    assert {hub_corrected_name(name) for name in TRAINED} <= set(systems_of(study))
    assert tuple(study.results[-len(PUBLISHED) :]) == PUBLISHED
    for result in measured:
        assert result.pool == "all captions"
        assert set(result.n_candidates["search"]) == {result.facts["n_images"]}
    assert [part.title for part in study.sections] == [
        "Differences to ConvNet+Bi-GRU",
        "Binary image selection",
        "Selection beside retrieval",
        "Captions written",
        "Captioners that select photos",
        "Retrieval by a captioner",
        "One caption per image in the pool",
        "Left out",
        "Training",
    ]
    (single,) = section(study, "One caption per image in the pool").tables
    assert "caption #2" in str(single)
    assert "outside_corpus" in section(study, "Left out").paragraphs[0]


def test_systems_choose_between_two_photos(study):
    published = [f"{name}, COCO-BISON (Hu et al. 2019)" for name in SYSTEMS]
    for table in section(study, "Binary image selection").tables:
        assert names_in(table) == [*systems_of(study), *published]
    (orders,) = section(study, "Selection beside retrieval").tables
    assert [row[1] for row in orders.rows] == ["search R@1", "search R@5", "search R@10"]


def test_captioners_write_select_and_rank(study):
    every, with_people = section(study, "Captions written").tables
    assert names_in(every)[:2] == ["caption of the nearest photo", CAPTIONER]
    assert "recalled" in names_in(every)[2]
    assert names_in(with_people) == ["people", *names_in(every)[:2]]
    assert "METEOR is left out" in " ".join(section(study, "Captions written").paragraphs)
    selections = section(study, "Captioners that select photos").tables
    assert [names_in(own) for own in selections] == [[CAPTIONER]] * len(selections)
    (ranked,) = section(study, "Retrieval by a captioner").tables
    assert names_in(ranked) == [CAPTIONER]


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study):
    again = hu2019.run(corpus, cache_dir=cache, systems=["SCAN t2i"], **OPTIONS)
    assert again.results[0] == next(r for r in study.results if r.system == "SCAN t2i")


def test_other_settings_are_trained_anew(corpus, cache, study):
    name = "ConvNet+BoW"
    other = hu2019.run(corpus, cache_dir=cache, systems=[name], rng=1, **OPTIONS)
    assert other.results[0].settings["rng"] == 1
    assert other.results[0] != next(r for r in study.results if r.system == name)


def test_a_system_that_cannot_run_here_stops_no_other(corpus, cache):
    name = "ConvNet+BoW"
    found = hu2019.run(corpus, cache_dir=cache, systems=[name, ALL], **OPTIONS)
    assert systems_of(found) == [name, hub_corrected_name(name)]
    assert {example.system for example in found.examples()} == {name}
    for systems in ([ALL], [CAPTIONER]):
        with pytest.raises(ValueError, match="systems"):
            hu2019.run(corpus, cache_dir=cache, systems=systems, **OPTIONS)


def test_captioners_alone_are_refused_before_anything_is_read():
    refuses(ValueError, "systems", hu2019.run, "nowhere", systems=[CAPTIONER], **OPTIONS)


def test_it_is_written_as_files(study, tmp_path):
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "look at their results on test" in page
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == len(study.results)


def test_the_development_split_has_nothing_published_beside_it(corpus, cache, study):
    found = hu2019.run(corpus, cache_dir=cache, systems=["ConvNet+BoW"], split="dev", **OPTIONS)
    assert [result.split for result in found.results] == ["dev"] * 2
    assert "COCO" not in str(found.sections[0]) + str(found.sections[1])


def test_pools_hold_all_captions_or_those_of_a_number(corpus):
    pool = Corpus.read(corpus).pools["test"]
    owners = np.unique(pool.photos, return_inverse=True)[1]
    scores = (np.arange(owners.max() + 1)[:, np.newaxis] == owners).astype(float)
    whole = evaluate_pool(scores, pool)
    assert set(whole.n_candidates["annotation"]) == {len(owners)}
    assert whole.mean["annotation"]["R@1"] == 1
    single = evaluate_pool(scores, pool, number=2)
    assert single.pool == "caption #2"
    assert set(single.n_candidates["annotation"]) == {(pool.numbers == 2).sum()}
    other = evaluate_pool(scores, pool, search=-scores, number=2)
    assert (other.mean["annotation"]["R@1"], other.mean["search"]["R@1"]) == (1.0, 0.0)


def test_a_split_without_photos_is_named(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "flickr")
    (tmp_path / "flickr" / "Flickr_8k.devImages.txt").write_text("")
    with pytest.raises(ValueError, match="dev"):
        hu2019.run(tmp_path / "flickr", systems=["ConvNet+BoW"], **OPTIONS)


def test_each_system_has_a_file_with_what_the_page_says(study, corpus, cache, tmp_path):
    wanted = [SINGLE, TRAINED[0]]
    run = Hu2019(data=corpus, cache_dir=cache, systems=wanted, **OPTIONS)
    assert len(run.write_results(tmp_path)) == 2
    files = read_files(tmp_path, "hu2019")
    assert sorted(files) == sorted([*wanted, *map(hub_corrected_name, wanted)])
    for result in study.results:
        if result.system in files:
            found = files[result.system].results["all captions"]
            for task, of in found.mean.items():
                assert {name: result.mean[task][name] for name in of} == pytest.approx(of)
