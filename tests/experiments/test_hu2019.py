"""Embeddings and cross attention end to end, on drawn scenes."""

import json
import shutil
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("spacy")

from kernelcore.evaluation import compare
from kernelcore.experiments import hu2019, sections
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hu2019 import KERNEL_SYSTEMS, PUBLISHED, SYSTEMS
from kernelcore.experiments.scores import evaluate_pool, hub_corrected_name

SINGLE, ALL = KERNEL_SYSTEMS
RUN = [SINGLE, *SYSTEMS]  # scenes come without the outside corpus that the other one needs
OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """Tests of significance draw less: their own tests are elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "compare", partial(compare, n_reassignments=2000))
        yield


@pytest.fixture(scope="module")
def study(corpus, cache, few_draws):
    return hu2019.run(corpus, cache_dir=cache, **OPTIONS)


RESULTS = [SINGLE, *(name for own in SYSTEMS for name in (own, hub_corrected_name(own)))]
"""Names of all results: scores of networks are corrected for hubs, too."""


def section(study, title):
    return next(part for part in study.sections if part.title == title)


def test_every_system_runs_beside_what_is_published(study):
    measured = study.results[: len(RESULTS)]
    assert [result.system for result in measured] == RESULTS
    assert tuple(study.results[len(RESULTS) :]) == PUBLISHED
    for result in measured:
        assert result.pool == "all captions"
        assert result.search.n_candidates == result.annotation.n_queries
    assert [part.title for part in study.sections] == [
        f"Differences to {SINGLE}",
        "Binary image selection",
        "One caption per image in the pool",
        "Left out",
        "Training",
        "Choices of ours",
    ]
    assert "caption #2" in str(section(study, "One caption per image in the pool").tables[0])
    assert "outside_corpus" in section(study, "Left out").paragraphs[0]


def test_systems_choose_between_two_photos_beside_the_paper(study):
    for table in section(study, "Binary image selection").tables:
        names = [row[0] for row in table.rows]
        published = [f"{name}, COCO-BISON (Hu et al. 2019)" for name in SYSTEMS]
        assert names == [*RESULTS, *published]


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
    measured = [r.system for r in found.results if r not in PUBLISHED]
    assert measured == [name, hub_corrected_name(name)]
    assert {example.system for example in found.examples()} == {name}
    with pytest.raises(ValueError, match="systems"):
        hu2019.run(corpus, cache_dir=cache, systems=[ALL], **OPTIONS)


def test_it_is_written_as_files(study, tmp_path):
    study.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Choices of ours" in page
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == len(RESULTS) + len(PUBLISHED)


def test_the_development_split_has_nothing_published_beside_it(corpus, cache, study):
    found = hu2019.run(corpus, cache_dir=cache, systems=["ConvNet+BoW"], split="dev", **OPTIONS)
    assert {result.split for result in found.results} == {"dev"}
    assert len(found.results) == 2


def test_pools_hold_all_captions_or_those_of_a_number(corpus):
    pool = Corpus.read(corpus).pools["test"]
    owners = np.unique(pool.photos, return_inverse=True)[1]
    scores = (np.arange(owners.max() + 1)[:, np.newaxis] == owners).astype(float)
    whole = evaluate_pool(scores, pool)
    assert (whole.annotation.n_candidates, whole.annotation.recall[1]) == (len(owners), 1.0)
    single = evaluate_pool(scores, pool, number=2)
    assert single.pool == "caption #2"
    assert single.annotation.n_candidates == (pool.numbers == 2).sum()
    other = evaluate_pool(scores, pool, search=-scores, number=2)
    assert (other.annotation.recall[1], other.search.recall[1]) == (1.0, 0.0)


def test_a_split_without_photos_is_named(corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "flickr")
    (tmp_path / "flickr" / "Flickr_8k.devImages.txt").write_text("")
    with pytest.raises(ValueError, match="dev"):
        hu2019.run(tmp_path / "flickr", systems=["ConvNet+BoW"], **OPTIONS)
