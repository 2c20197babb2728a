"""``kernelcore reproduce``: options set fields of a study, results are printed and written."""

import importlib
from dataclasses import fields
from pathlib import Path

import pytest

from kernelcore.cli import reproduce
from kernelcore.report import Section

NAMES = ["hodosh2013", "hessel2019", "karpathy2014", "hu2019", "khojasteh2019"]
TRAINED = {"--word-vectors": "glove.txt", "--epochs": 3, "--seed": 5, "--device": "cuda"}
NETWORK = {"--network": "net.onnx", "--pooling": "crop"}
PHOTOS = {"--batch-size": 7, **NETWORK}
TEXTS = {"--spacy-model": "en", "--outside-corpus": "text"}
OPTIONS = {
    "hodosh2013": {"--pool": 0, "--wordnet": "dict", "--spelling": "en.txt", **TEXTS},
    "hessel2019": {**TRAINED, **NETWORK, "--variant": "stress", "--components": 64},
    "karpathy2014": {**TRAINED, **PHOTOS, "--spacy-model": "en"},
    "hu2019": {**TRAINED, **PHOTOS, **TEXTS},
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
            self.log("begun")
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
def test_options_set_fields_and_the_study_sets_the_rest(
    run, asked, tmp_path, name, monkeypatch
):
    made = asked(name)
    (tmp_path / "corpus").mkdir()
    monkeypatch.chdir(tmp_path)
    shared = {"--data": "corpus", "--split": "dev", "--cache": "kept", "--threads": 2}
    systems = ["--system", "toy", "--system", "bear"]
    flags = ["--as-printed", "--results", tmp_path]
    words = words_of(shared | OPTIONS[name])
    status, out, err = run("reproduce", name, *words, *systems, *flags)
    assert (status, err) == (0, "begun\n")  # no terminal
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
    names = ((own.get("name"), field) for field, own in reproduce._OPTIONS.items())
    fields_of = {flag: field for flag, field in names if flag}
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
    assert options - {"--help", "-h"} == {f"--{own}" for own in shared} | OPTIONS[name].keys()
    assert all(own.help for own in command.params)
    other = "--variant" if name == "hodosh2013" else "--spelling"
    error = fails("reproduce", name, "--data", ".", other, "x", status=2)
    assert f"No such option '{other}'" in error


WRONG = """
2 --pooling mean: 'map', 'crop'
2 --epochs 0: x>=1
2 --batch-size 1: x>=2
1 --network nowhere.onnx: --network must
1 --as-printed: --as-printed must
1 --system nobody: --system must
"""


def test_wrong_values_are_named(fails, monkeypatch):
    monkeypatch.setattr(study("khojasteh2019"), "PRINTED", ())
    for row in WRONG.strip().splitlines():
        words, rule = row.split(": ")
        status, *options = words.split()
        words = "reproduce", "khojasteh2019", "--data", ".", *options
        assert rule in fails(*words, status=int(status))
