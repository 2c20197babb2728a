"""``kernelcore reproduce``: options set fields of a study, results are printed and written."""

import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from kernelcore.cli import reproduce
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.study import Found, Measured
from kernelcore.report import Section

NAMES = ["hodosh2013", "hessel2019", "karpathy2014", "hu2019", "khojasteh2019"]
TRAINED = {"--word-vectors": "glove.txt", "--epochs": 3, "--seed": 5, "--device": "cuda"}
PHOTOS = {"--batch-size": 7, "--network": "net.onnx", "--pooling": "crop"}
OPTIONS = {
    "hodosh2013": {
        "--pool": 0,
        "--wordnet": "dict",
        "--outside-corpus": "text",
        "--spelling": "en.txt",
        "--spacy-model": "en",
    },
    "hessel2019": {
        **TRAINED,
        "--variant": "stress",
        "--components": 64,
        "--network": "net.onnx",
        "--pooling": "crop",
    },
    "karpathy2014": {**TRAINED, **PHOTOS, "--spacy-model": "en"},
    "hu2019": {**TRAINED, **PHOTOS, "--spacy-model": "en", "--outside-corpus": "text"},
    "khojasteh2019": {**TRAINED, **PHOTOS},
}
"""Options of each study beside those that all have."""


def study(name):
    if name != "hodosh2013":
        pytest.importorskip("torch")
    return getattr(importlib.import_module(f"kernelcore.experiments.{name}"), name.capitalize())


@pytest.fixture
def asked(monkeypatch):
    """Studies that were made by the command, and did not run."""
    made = []

    def pretend(name):
        def run(self, folder):
            made.append(self)
            return [folder / "toy.json"]

        monkeypatch.setattr(study(name), "run", run)
        sections = staticmethod(lambda folder: [Section("Found", ["In short."])])
        monkeypatch.setattr(study(name), "sections", sections)
        return made

    return pretend


def words_of(options):
    pairs = ([flag] if value is True else [flag, value] for flag, value in options.items())
    return [str(word) for pair in pairs for word in pair]


@pytest.mark.parametrize("name", NAMES)
def test_options_set_fields_and_the_rest_is_the_default_of_the_study(
    run, asked, tmp_path, name
):
    made = asked(name)
    shared = {"--data": "corpus", "--split": "dev", "--cache": "kept", "--threads": 2}
    systems = ["--system", "toy", "--system", "bear"]
    flags = ["--as-printed", "--results", tmp_path]
    words = words_of(shared | OPTIONS[name])
    status, out, err = run("reproduce", name, *words, *systems, *flags)
    assert (status, err) == (0, "")
    title = study(name).TITLE
    assert out.startswith(f"{title}\n\nFound\n\nIn short.\n")
    assert out.endswith(f"Wrote {tmp_path / 'toy.json'}.\nWrote {tmp_path / name}.md.\n")
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert page == f"# {title}\n\n## Found\n\nIn short.\n"
    (one,) = made
    assert (one.data, one.cache_dir) == (Path("corpus"), Path("kept"))
    assert (one.split, one.n_threads, one.progress) == ("dev", 2, False)
    assert one.systems == ["toy", "bear"]
    assert one.as_printed is True
    fields_of = {
        own["name"]: field for field, own in reproduce._OPTIONS.items() if "name" in own
    }
    for flag, value in OPTIONS[name].items():
        field = fields_of.get(flag, flag.strip("-").replace("-", "_"))
        assert getattr(one, field) == type(getattr(one, field))(value), flag
    assert run("reproduce", name, "--data", "corpus")[0] == 0
    plain = study(name)(data=Path("corpus"))
    for field in fields(plain):
        if field.init and field.name not in {"log", "progress"}:
            default = getattr(plain, field.name)  # of files, a text or a path
            assert str(getattr(made[1], field.name)) == str(default), field.name


@pytest.mark.parametrize("name", NAMES)
def test_the_options_of_a_study_are_its_fields_and_no_other(fails, name):
    study(name)
    command = reproduce.reproduce.load(name)
    shared = ["data", "system", "as-printed", "split", "cache", "threads", "results"]
    options = {option for own in command.params for option in own.opts}
    assert options - {"--help", "-h"} == {
        *(f"--{own}" for own in shared),
        *OPTIONS[name],
    }
    assert all(own.help for own in command.params)
    other = "--variant" if name == "hodosh2013" else "--spelling"
    error = fails("reproduce", name, "--data", ".", other, "x", status=2)
    assert f"No such option: {other}" in error


def test_a_log_says_what_is_done(run, monkeypatch, tmp_path):
    """One line per stage on stderr, which is no terminal here."""

    def prepare(self):
        with self.stages.stage("captions"):
            pass

    for name in ("inputs", "settings_of"):
        monkeypatch.setattr(hodosh2013.Hodosh2013, name, lambda *_: "the same")
    monkeypatch.setattr(hodosh2013.Hodosh2013, "prepare", prepare)
    monkeypatch.setattr(
        hodosh2013.Hodosh2013, "measure", lambda self, name: Measured({name: Found()}, {})
    )
    systems = ["--system", "BoW5", "--system", "NN_F1"]
    status, _, err = run("reproduce", "hodosh2013", "--data", tmp_path, *systems)
    assert status == 0
    lines = err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "stage 1 of 7, captions",
        "stage 6 of 7, BoW5",
        "stage 7 of 7, NN_F1",
    ]
    assert " s; about " in lines[1]
    assert lines[1].endswith(" s left")


@pytest.mark.parametrize(
    ("flag", "value", "rule"),
    [
        ("--pooling", "mean", "'map', 'crop'"),
        ("--epochs", 0, "than or equal to 1"),
        ("--batch-size", 1, "than or equal to 2"),
        ("--network", "nowhere.onnx", "network must be an ONNX file"),
        ("--as-printed", True, "as_printed must be False"),
        ("--system", "of nobody", "got 'of nobody'"),
    ],
)
def test_wrong_values_are_named(fails, monkeypatch, flag, value, rule):
    kind = study("khojasteh2019")
    monkeypatch.setattr(kind, "PRINTED", ())
    words = words_of({"--data": ".", flag: value})
    status = 2 if rule.startswith(("than", "'")) else 1
    assert rule in fails("reproduce", "khojasteh2019", *words, status=status)
