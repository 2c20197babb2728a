"""Experiments from the command line: options go through, results are written."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcore.evaluation import evaluate, evaluate_links
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.study import Study
from kernelcore.report import Section, StageRecorder


def test_reproduce_runs_the_experiment_and_writes_its_results(run, monkeypatch, tmp_path):
    asked = {}

    def experiment(data, **options):
        asked.update(options, data=data)
        return Study("A study", [evaluate([[1.0]], system="BoW5")], StageRecorder())

    monkeypatch.setattr(hodosh2013, "run", experiment)
    words = ["reproduce", "hodosh2013", "--data", "corpus"]
    status, out, _ = run(
        *words, "--system", "BoW5", "--system", "NN_F1", "--split", "dev", "--pool", 0,
        "--cache", "kept", "--output", tmp_path / "results", "--threads", 2,
        "--wordnet", "dict", "--outside-corpus", "text", "--spacy-model", "en",
    )  # fmt: skip
    assert status == 0
    assert out.startswith("A study\n")
    assert asked == {
        "data": Path("corpus"),
        "systems": ["BoW5", "NN_F1"],
        "split": "dev",
        "pool": 0,
        "cache_dir": Path("kept"),
        "wordnet_dir": Path("dict"),
        "outside_corpus": Path("text"),
        "spacy_model": "en",
        "n_threads": 2,
        "progress": False,
    }
    document = json.loads((tmp_path / "results" / "results.json").read_text())
    assert document["title"] == "A study"
    assert run(*words)[0] == 0
    assert (asked["systems"], asked["split"], asked["pool"]) == (None, "test", 2)


def test_reproduce_hessel2019_passes_its_options_on(run, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from kernelcore.experiments import hessel2019

    asked = {}

    def experiment(data, **options):
        asked.update(options, data=data)
        links = evaluate_links([[[0.9, 0.1]]], [{(0, 0)}], system="AP")
        found = Section("What was found", ["In short."])
        return Study("A study", [links], StageRecorder(), sections=[found])

    monkeypatch.setattr(hessel2019, "run", experiment)
    words = ["reproduce", "hessel2019", "--data", "corpus"]
    status, out, _ = run(
        *words, "--system", "AP", "--variant", "stress", "--split", "val", "--epochs", 3,
        "--components", 64, "--word-vectors", "glove.txt", "--seed", 5, "--device", "cuda",
        "--cache", "kept", "--output", tmp_path / "results", "--threads", 2,
    )  # fmt: skip
    assert status == 0
    assert out.startswith("A study\n")
    assert "What was found\n\nIn short." in out
    assert asked == {
        "data": Path("corpus"),
        "systems": ["AP"],
        "variant": "stress",
        "split": "val",
        "size": replace(hessel2019.SIZE, n_epochs=3, n_components=64),
        "word_vectors_file": Path("glove.txt"),
        "rng": 5,
        "device": "cuda",
        "cache_dir": Path("kept"),
        "n_threads": 2,
        "progress": False,
    }
    assert (tmp_path / "results" / "report.html").is_file()
    assert run(*words)[0] == 0
    assert (asked["systems"], asked["variant"], asked["size"]) == (
        None,
        "mixed",
        hessel2019.SIZE,
    )


@pytest.mark.parametrize("name", ["karpathy2014", "hu2019", "khojasteh2019"])
def test_reproduce_of_trained_systems_passes_its_options_on(run, monkeypatch, tmp_path, name):
    pytest.importorskip("torch")
    experiment = importlib.import_module(f"kernelcore.experiments.{name}")
    asked = {}

    def instead(data, **options):
        asked.clear()
        asked.update(options, data=data)
        result = evaluate([[0.9, 0.1], [0.2, 0.3]], system="toy")
        found = Section("What was found", ["In short."])
        return Study("A study", [result], StageRecorder(), sections=[found])

    monkeypatch.setattr(experiment, "run", instead)
    words = ["reproduce", name, "--data", "corpus"]
    status, out, _ = run(
        *words, "--system", "toy", "--split", "dev", "--epochs", 3, "--batch-size", 7,
        "--word-vectors", "glove.txt", "--seed", 5, "--device", "cuda", "--cache", "kept",
        "--output", tmp_path / "results", "--threads", 2,
    )  # fmt: skip
    assert status == 0
    assert "What was found\n\nIn short." in out
    own = {
        "karpathy2014": {"spacy_model": None},
        "hu2019": {"spacy_model": None, "outside_corpus": None},
    }.get(name, {})
    shared = {"data": Path("corpus"), "word_vectors_file": Path("glove.txt"), "progress": False}
    assert asked == {
        **own,
        **shared,
        "systems": ["toy"],
        "split": "dev",
        "n_epochs": 3,
        "batch_size": 7,
        "rng": 5,
        "device": "cuda",
        "cache_dir": Path("kept"),
        "n_threads": 2,
    }
    assert (tmp_path / "results" / "report.html").is_file()
    assert run(*words)[0] == 0
    assert not {"n_epochs", "batch_size"} & set(asked)
