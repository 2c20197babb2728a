"""Order embeddings and a language model, on drawn scenes and from the command line."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("matplotlib")
pytest.importorskip("typer")

from kernelcore.cli import main
from kernelcore.experiments import captioning, khojasteh2019
from kernelcore.experiments.captioning import METRICS
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.khojasteh2019 import (
    PUBLISHED,
    SYSTEMS,
    Khojasteh2019,
    Ordering,
    joined_pool,
)
from kernelcore.experiments.khojasteh2019.findings import lists_section
from kernelcore.experiments.khojasteh2019.ordering import comparison_section, order_section
from kernelcore.experiments.khojasteh2019.published import TABLE
from kernelcore.experiments.khojasteh2019.systems import (
    LANGUAGE,
    NO_ORDER,
    PRINTED,
    THESIS,
)
from kernelcore.experiments.scores import Scores, hub_corrected_name, printed

OPTIONS = {"n_epochs": 2, "batch_size": 10, "n_threads": 1}
EVERY = {**SYSTEMS, **PRINTED}


@pytest.fixture(scope="module", autouse=True)
def without_java():
    """Leave out METEOR, which has its own tests and takes a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captioning, "available_metrics", lambda: METRICS[:-1])
        yield


@pytest.fixture(scope="module")
def study(corpus, cache, without_java):
    return khojasteh2019.run(corpus, cache_dir=cache, **OPTIONS)


def section(study, title):
    return next(part for part in study.sections if part.title == title)


def variants(names):
    for name in names:
        yield name
        if EVERY[name].ranks_by == "order":
            yield hub_corrected_name(name)


def test_every_system_runs_beside_what_is_published(study):
    n = len(study.results) - len(PUBLISHED)
    measured = study.results[:n]
    assert [result.system for result in measured] == list(variants(EVERY))
    assert tuple(study.results[n:]) == PUBLISHED
    for result in measured:
        assert result.pool == "joined captions"
        assert result.facts["n_images"] == result.facts["n_captions"]
    (single,) = section(study, "All captions in the pool").tables
    assert [row[0] for row in single.rows] == list(variants(EVERY))
    assert "all captions" in str(single)
    (lists,) = section(study, "Ranked lists").tables
    assert [row[0] for row in lists.rows] == list(variants(EVERY))


def test_what_is_published_and_what_is_printed_stand_beside_ours(study):
    (table,) = section(study, "Published, as printed, ours").tables
    assert [row[0] for row in table.rows] == [
        f"{THESIS}, published (Khojasteh 2019)",
        printed(THESIS),
        f"{THESIS}, ours",
        f"{THESIS}, ours, hubs corrected",
        printed(LANGUAGE),
        f"{LANGUAGE}, ours",
    ]
    (beside,) = section(study, "Table 4.1 of the thesis").tables
    assert beside.rows[0][0] == hub_corrected_name(THESIS)
    assert len(beside.rows) == 1 + len(TABLE)


def test_what_the_language_model_writes_is_measured(study):
    written = section(study, "Captions written").tables[0]
    names = [row[0] for row in written.rows[:3]]
    assert names == [f"{LANGUAGE}, beam of {beam_size}" for beam_size in (1, 3, 5)]


def test_the_table_of_the_thesis_is_read_as_it_is_printed():
    assert len(TABLE) == 16 + 6
    rows = {row.system: row.values for row in TABLE}
    scan = {"R@1": 0.727, "R@5": 0.948, "R@10": 0.984}
    assert rows["SCAN, COCO-1K"]["annotation"] == pytest.approx(scan)
    hm_lstm = {"R@1": 0.361, "R@10": 0.867, "median_rank": 3}
    assert rows["HM-LSTM, COCO-1K"]["search"] == pytest.approx(hm_lstm)
    assert rows["DeepTwt, COCO-5K"]["search"]["median_rank"] == 3
    assert [row.system for row in PUBLISHED] == ["DeepTwt, COCO-1K", "DeepTwt, COCO-5K"]


def test_what_is_nearer_to_lying_below_what_is_told_of_every_system(study):
    (table,) = section(study, "Which texts are nearer to lying below which images").tables
    assert [(row[0], row[1]) for row in table.rows] == [
        (name, texts)
        for name, system in EVERY.items()
        if system.ranks_by == "order"
        for texts in ("joined captions", "single captions")
    ]
    below = {row[0]: row[2] for row in table.rows}
    assert below[THESIS] == "texts"
    assert below[NO_ORDER] == "none"
    (both,) = section(study, "With and without the order").tables
    assert both.columns[1:3] == (THESIS, NO_ORDER)
    assert len(both.rows) == 4


@pytest.mark.usefixtures("trains_nothing")
def test_a_second_run_trains_nothing_and_gives_the_same(corpus, cache, study):
    names = [LANGUAGE, THESIS]
    again = khojasteh2019.run(corpus, cache_dir=cache, systems=names, **OPTIONS)
    first = {result.system: result for result in study.results[: -len(PUBLISHED)]}
    assert list(again.results[:3]) == [first[name] for name in variants(names)]


def test_other_settings_are_trained_anew_and_dev_has_nothing_published(corpus, cache, study):
    other = khojasteh2019.run(
        corpus, cache_dir=cache, systems=[NO_ORDER], split="dev", rng=1, **OPTIONS
    )
    assert [result.split for result in other.results] == ["dev", "dev"]
    assert other.results[0].settings["rng"] == 1
    assert all(part.title != "Table 4.1 of the thesis" for part in other.sections)


def test_as_printed_runs_the_systems_of_the_thesis_alone(corpus, cache, study):
    found = khojasteh2019.run(corpus, cache_dir=cache, as_printed=True, **OPTIONS)
    assert [result.system for result in found.results[:-2]] == list(variants(PRINTED))
    settings = found.results[0].settings
    assert settings["batch_size"] == 16
    assert settings["learning_rate"] == 0.1
    assert settings["unit_length"] == "none"


@pytest.fixture(scope="module")
def scores(corpus, cache, study):
    """Scores of both language models."""
    again = Khojasteh2019(
        data=corpus, cache_dir=cache, systems=[LANGUAGE, printed(LANGUAGE)], **OPTIONS
    )
    again.run()
    return again, [again.score(name) for name in again.names]


def test_the_language_model_ranks_by_ratio_and_as_printed_by_likelihood(scores):
    again, (ratios, likelihoods) = scores
    pool = again.corpus.pools["test"]
    images = again.photos.value()[again.corpus.photos("test")]
    captioner = ratios.ranker
    for own, score in ((ratios, "ratio"), (likelihoods, "likelihood")):
        expected = captioner.set_params(score=score).scores(images, pool.texts, n_threads=1)
        np.testing.assert_allclose(own.annotation, expected, atol=1e-3)
        assert own.corrected is None
        assert own.orderings == {}
    owners = np.unique(pool.photos, return_inverse=True)[1]
    for photo in range(len(images)):
        summed = likelihoods.annotation[:, owners == photo].sum(axis=1)
        np.testing.assert_allclose(likelihoods.joined.search[:, photo], summed, rtol=1e-5)


def test_the_command_writes_the_report(corpus, cache, study, tmp_path, capsys):
    options = {"data": corpus, "cache": cache, "output": tmp_path, "system": THESIS}
    options |= {"epochs": 2, "batch-size": 10, "threads": 1}
    words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    assert main(["reproduce", "khojasteh2019", *words]) == 0
    out = capsys.readouterr().out
    sections = "Which texts are nearer to lying below which images", "Binary image selection"
    for text in ("DeepTwt, COCO-1K", *sections):
        assert text in out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Penalties of joined captions, {THESIS}" in page
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(results["results"]) == 2 + len(PUBLISHED)


def test_joined_texts_are_a_pool_of_one_text_for_each_photo():
    pool = Pool(("a", "b", "c"), np.array([0, 0, 1]), np.array([5, 2, 5]))
    found = joined_pool(pool)
    assert found.texts == ("b", "a c")
    np.testing.assert_array_equal(found.photos, [2, 5])
    np.testing.assert_array_equal(found.numbers, [0, 0])


class Fixed:
    """A ranker with these penalties: four images, two texts."""

    def __init__(self, similarity):
        self.similarity = similarity

    def penalties(self, images, texts, *, reverse, n_threads):
        along = np.array([[0.1, 0.4], [0.5, 0.2], [0.1, 0.1], [0.3, 0.9]], np.float32)
        return along + (1 if reverse is (self.similarity != "images below") else 0)

    def embed_images(self, images, *, n_threads):
        return np.array([[3, 0], [0, 3], [3, 0], [0, 3]], np.float32)

    def embed_captions(self, texts, *, n_threads):
        return np.array([[2, 1], [2, 1]], np.float32)


@pytest.mark.parametrize(
    ("similarity", "below"),
    [("texts below", "texts"), ("images below", "images"), ("cosine", "none")],
)
def test_pairs_are_told_apart_by_the_order_that_was_trained(similarity, below):
    fixed = Fixed(similarity)
    found = Ordering.of(fixed, np.zeros((4, 1)), ["a", "b"], [0, 1], n_threads=1)
    assert found.below == below
    np.testing.assert_allclose(found.true, [0.1, 0.2])
    np.testing.assert_allclose(found.reverse, [1.1, 1.2])
    np.testing.assert_allclose(found.mismatched, [[0.5, 0.4], [0.1, 0.1], [0.3, 0.9]])
    assert found.less_than_reverse == 1.0
    # 0.5, a half for 0.1, and 0.3; then 0.4 and 0.9
    np.testing.assert_allclose(found.shares, [2.5 / 3, 2 / 3])
    np.testing.assert_allclose(found.ratios, [0.1 / 0.3, 0.2 / (1.4 / 3)], rtol=1e-6)
    assert (found.spread_of_images, found.spread_of_texts) == (0.5, 0.0)


def test_texts_that_lie_below_everything_are_no_nearer_to_their_own_image():
    zeros = np.zeros(2, np.float32)
    collapsed = Ordering("texts", zeros, zeros, np.zeros((3, 2), np.float32), 0.0, 0.0)
    np.testing.assert_array_equal(collapsed.ratios, [1, 1])
    np.testing.assert_array_equal(collapsed.shares, [0.5, 0.5])


def test_a_text_with_a_penalty_of_its_own_image_alone_has_no_ratio():
    true, mismatched = np.array([0.0, 0.4], np.float32), np.zeros((3, 2), np.float32)
    collapsed = Ordering("texts", true, true, mismatched, 0.0, 0.0)
    assert not collapsed.has_ratios
    (table,) = order_section({"one": {"single captions": collapsed}}).tables
    assert table.rows[0][table.columns.index("ratio")] == "n/a"


def test_the_comparison_has_means_and_a_test_over_photos():
    theirs = np.random.default_rng(0).normal(size=40)
    better = comparison_section(
        {"more": (theirs + 2, theirs), "same": (theirs, theirs)},
        ("with", "without"),
        n_threads=1,
    )
    more, same = better.tables[0].rows
    assert more[3] == "+2.00"
    assert float(more[4]) < 0.001
    assert same[3:] == ("+0.00", "1")


def test_ranked_lists_count_all_captions_of_a_photo():
    pool = Pool(("a", "b", "c"), np.array([0, 1, 0]), np.array([3, 3, 7]))
    scores = np.array([[0.9, 0.1, 0.5], [0.2, 0.3, 0.4]])
    (table,) = lists_section({"one": Scores(scores, scores, {})}, pool).tables
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    # The first photo has its captions at places 1 and 3, the second at 1.
    assert cells["annotation P@5"] == "30.0"
    assert cells["annotation recall@10"] == "100.0"
    assert cells["annotation mean_average_precision"] == f"{50 * ((1 + 2 / 3) / 2 + 1):.1f}"
    # The captions find their photos at places 1, 2 and 2.
    assert cells["search mean_average_precision"] == f"{100 * (1 + 0.5 + 0.5) / 3:.1f}"
