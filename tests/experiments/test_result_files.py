"""Files of the systems of a study: written one by one, read back, skipped and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kernelcore.evaluation import Result, evaluate, evaluate_links
from kernelcore.experiments.result_files import SystemFile, kept_file, read_files


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
    written = replace(written, arrays={"n": np.arange(3)}, numbers={"group": {"x": 0.1}})
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
    np.testing.assert_array_equal(again.arrays["n"], [0, 1, 2])
    assert again.numbers == {"group": {"x": 0.1}}
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


def test_a_damaged_file_is_none(tmp_path):
    path = system_file().save(tmp_path)
    assert kept_file(path).key == "k"
    assert kept_file(tmp_path / "toy" / "bigrams.json") is None
    document = json.loads(path.read_text("utf-8"))
    for text in (json.dumps({**document, "seconds": 1.0}), "{"):
        path.write_text(text, "utf-8")
        assert kept_file(path) is None
        with pytest.raises(ValueError, match="full-model"):
            SystemFile.load(path)
