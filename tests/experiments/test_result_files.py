"""Files of the systems of a study: written one by one, read back, skipped and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kernelcore.evaluation import Result, evaluate, evaluate_links
from kernelcore.experiments.result_files import (
    SystemFile,
    has_result,
    path_of,
    read_files,
)


def system_file(system="full model", inputs="a", **results):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (40, 200)).astype(np.float32)
    found = {"all captions": evaluate(scores, captions_per_image=5, system=system), **results}
    return SystemFile("toy", system, inputs, "k", found, settings={"n": 1}, seconds=2.5)


def linked():
    docs = [np.random.default_rng(i).random((5, 6)) for i in range(4)]
    images = [[f"{i}{j}" for j in range(i, i + 6)] for i in range(4)]
    links = [[(0, 0), (1, 3)]] * 4
    return evaluate_links(docs, links, images=images)


def test_a_file_gives_the_results_again(tmp_path):
    pair = Result({"selection": {"accuracy": [0.0, 0.5, 1.0]}})
    written = system_file(links=linked(), pair=pair)
    path = written.save(tmp_path)
    assert path == tmp_path / "toy" / "full-model.json"
    again = SystemFile.load(path)
    ranked, own = (file.results["all captions"] for file in (written, again))
    for task, of in own.values.items():
        for name, values in of.items():
            np.testing.assert_allclose(values, ranked.values[task][name], rtol=1e-15)
    assert {"R@1", "R@5", "R@10", "median_rank"} <= set(own.values["search"])
    assert own.chance == ranked.chance
    assert str(own.to_table()) == str(ranked.to_table())
    assert again.results["links"].standard_error == written.results["links"].standard_error
    assert again.results["pair"] == pair
    assert (again.settings, again.seconds, again.inputs) == ({"n": 1}, 2.5, "a")


def test_six_thousand_ranks_take_a_few_kilobytes(tmp_path):
    scores = np.random.default_rng(0).random((1000, 5000), np.float32)
    found = {"all captions": evaluate(scores, captions_per_image=5)}
    path = SystemFile("toy", "one", "", "", found).save(tmp_path)
    assert path.stat().st_size < 20_000


def test_large_ranks_and_halves_are_exact(tmp_path):
    ranks = np.array([1.0, 1.5, 32_767.5, 32_768.0, 4e6, 0.5])
    result = Result({"search": {"median_rank": ranks, "mean_rank": ranks}})
    path = SystemFile("toy", "one", "", "", {"all": result}).save(tmp_path)
    again = SystemFile.load(path).results["all"]
    np.testing.assert_array_equal(again.values["search"]["median_rank"], ranks)


def test_files_of_other_inputs_do_not_stand_on_one_page(tmp_path):
    system_file("one").save(tmp_path)
    system_file("two").save(tmp_path)
    assert sorted(read_files(tmp_path, "toy")) == ["one", "two"]
    system_file("three", inputs="b").save(tmp_path)
    with pytest.raises(ValueError, match="same inputs"):
        read_files(tmp_path, "toy")
    assert read_files(tmp_path, "other") == {}


def test_a_file_is_known_by_its_key_and_a_damaged_one_is_none(tmp_path):
    path = system_file().save(tmp_path)
    assert has_result(tmp_path, "toy", "full model", "k")
    assert not has_result(tmp_path, "toy", "full model", "other")
    assert not has_result(tmp_path, "toy", "bigrams", "k")
    document = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**document, "seconds": 1.0}), "utf-8")
    assert not has_result(tmp_path, "toy", "full model", "k")
    path.write_text("{", "utf-8")
    assert not has_result(tmp_path, "toy", "full model", "k")
    with pytest.raises(ValueError, match="full-model"):
        SystemFile.load(path)


@pytest.fixture(scope="module")
def made(corpus, cache, tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    pytest.importorskip("spacy")
    from kernelcore.experiments.karpathy2014 import Karpathy2014

    folder = tmp_path_factory.mktemp("results")
    options = {"n_epochs": 1, "batch_size": 10, "n_threads": 1, "cache_dir": cache}
    study = Karpathy2014(data=corpus, systems=["random", "DeViSE"], **options)
    return study, folder, study.write_results(folder)


def test_each_system_and_variant_has_a_file(made):
    study, folder, paths = made
    assert paths == [path_of(folder, "karpathy2014", name) for name in study.names]
    files = read_files(folder, "karpathy2014")
    assert sorted(files) == ["DeViSE", "DeViSE, hubs corrected", "random"]
    assert all(path.stat().st_size < 60_000 for path in paths)
    file = files["DeViSE"]
    assert {"all captions", "caption #0", "neighbours"} == set(file.results)
    assert len(file.history) == 1
    hits = file.results["all captions"].values["search"]["R@1"]
    own = file.arrays["photo of each caption"]
    np.testing.assert_array_equal(file.arrays["first photo of each caption"] == own, hits)
    assert file.machine
    expected = next(r for r in study.run().results if r.system == "DeViSE")
    assert (
        file.results["all captions"].mean["search"]["R@5"] == (expected.mean["search"]["R@5"])
    )


def test_what_is_written_is_not_run_again(made, monkeypatch):
    study, folder, paths = made
    times = [path.stat().st_mtime_ns for path in paths]
    monkeypatch.setattr(type(study), "score", None)
    assert study.write_results(folder) == paths
    assert [path.stat().st_mtime_ns for path in paths] == times


def test_other_settings_or_another_recipe_are_run(made, monkeypatch):
    study, folder, _ = made

    def refuse(self, name):
        raise KeyError(name)

    monkeypatch.setattr(type(study), "score", refuse)
    with pytest.raises(KeyError, match="DeViSE"):
        replace(study, systems=["DeViSE"], n_epochs=2).write_results(folder)
    monkeypatch.setattr(type(study), "RECIPE", 2)
    with pytest.raises(KeyError, match="random"):
        study.write_results(folder)


def test_systems_that_were_done_stay_after_an_error(made, tmp_path, monkeypatch):
    study = made[0]
    score = type(study).score

    def fails(self, name):
        if name == "DeViSE":
            raise KeyboardInterrupt
        return score(self, name)

    monkeypatch.setattr(type(study), "score", fails)
    with pytest.raises(KeyboardInterrupt):
        study.write_results(tmp_path)
    assert list(read_files(tmp_path, "karpathy2014")) == ["random"]
