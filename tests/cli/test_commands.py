"""The commands as their users meet them: what they print where."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import kernelcore
from kernelcore.cli.common import list_photos
from kernelcore.evaluation import Result, evaluate
from kernelcore.models import PhotoRanker

N_TRAINING, N_TEST = 24, 8  # photos of the corpus
DOCS = Path(__file__).parents[2] / "docs"


def test_train_tells_how_well_the_settings_did_in_percent(corpus, run, tmp_path):
    words = ["train", corpus / "old", corpus / "old.tsv", "--model", tmp_path / "m"]
    words += ["--seed", 3, "--threads", 2, "--features", "words", "--cache", tmp_path / "cache"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert f"Learned from {N_TRAINING} photos." in out
    ranker = PhotoRanker.load(tmp_path / "m")
    assert ranker.rng == ranker.features.rng == 3
    for by, shares in (("", ranker.dev_recalls_), (" by chance", ranker.dev_chance_)):
        for task, recalls in zip(("annotation", "search"), shares, strict=True):
            row = " +".join(f"{100 * recall:.1f}" for recall in recalls)
            assert re.search(rf"^{task}{by} +{row}", out, re.M)
    assert "5 of the photos, with 25 captions" in out
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == N_TRAINING
    words[1:3] = corpus / "new", corpus / "new.tsv"
    assert run(*words, "--overwrite")[0] == 0
    assert len(PhotoRanker.load(tmp_path / "m").captions_) == N_TEST


def test_evaluate_prints_the_model_beside_chance_and_writes_json(corpus, model, run, tmp_path):
    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model]
    status, out, err = run(*words, "--json", tmp_path / "result.json")
    assert (status, err) == (0, "")
    assert "------ annotation" in out
    result = Result.load(tmp_path / "result.json")
    assert (result.system, result.dataset, result.pool) == ("model", "new", "all captions")
    assert (result.facts["n_images"], result.facts["n_captions"]) == (N_TEST, 5 * N_TEST)
    assert next(line for line in str(result).splitlines() if line.startswith("model")) in out
    assert re.search(r"^chance +\d", out, re.M)

    ranker = PhotoRanker.load(model)
    assert result.settings["model"] == ranker.fingerprint
    captions = [line.split("\t") for line in (corpus / "new.tsv").read_text().splitlines()]
    photos = [corpus / "new" / name.split("#")[0] for name, _ in captions[::5]]
    scores = ranker.scores(photos, [text for _, text in captions])
    expected = evaluate(scores, caption_image=np.repeat(np.arange(N_TEST), 5))
    np.testing.assert_equal(result.values, expected.values)
    assert f"pool caption #2, {N_TEST} images, {N_TEST} captions" in run(*words, "--pool", 2)[1]

    words[1:3] = corpus / "old", corpus / "old.tsv"
    assert "the model learned from 24 of these 24 photos" in run(*words)[2]


def test_damaged_photos_are_listed_or_skipped(corpus, model, run, tmp_path):
    photos, new = tmp_path / "photos", tmp_path / "m"
    shutil.copytree(corpus / "old", photos)
    broken = sorted(photos.iterdir())[4]
    broken.write_bytes(broken.read_bytes()[:300])
    old = photos, corpus / "old.tsv", "--model"
    search = "search", "dog", "--model", model, "--photos", photos, "-k", 99
    for words, shown in (
        (("train", *old, new), f"from {N_TRAINING - 1} photos."),
        (search, "dog\n"),
        (("evaluate", *old, model), f"{N_TRAINING - 1} images"),
    ):
        status, out, err = run(*words)
        assert (status, out) == (1, "")
        assert err.startswith(f"Error: 1 of {N_TRAINING} images cannot be read:\n  {broken}: ")
        assert words[0] != "train" or not new.exists()
        status, out, err = run(*words, "--skip-damaged")
        assert status == 0
        assert shown in out
        assert str(broken) not in out
        assert str(broken) in err
        assert words[0] != "search" or len(out.splitlines()) == N_TRAINING


def test_odd_caption_rows_are_warned_of_in_one_sentence(corpus, model, run, tmp_path):
    captions = tmp_path / "captions.tsv"
    captions.write_text((corpus / "new.tsv").read_text() + "nowhere.png#0\tA ghost.\n")
    status, _, err = run("evaluate", corpus / "new", captions, "--model", model)
    assert status == 0
    assert re.fullmatch(r"Warning: .*nowhere\.png.*\n", err)


def test_version_and_info(run, monkeypatch):
    assert run("--version") == (0, f"kernelcore {kernelcore.__version__}\n", "")
    config = kernelcore.show_config() | {"extras": {"spacy": None, "cv2": "1.2.3"}}
    monkeypatch.setattr(kernelcore, "show_config", lambda: config)
    status, out, err = run("info")
    assert (status, err) == (0, "")
    for name, value in {**config, "spacy": "not installed", "cv2": "1.2.3"}.items():
        if isinstance(value, str):
            assert re.search(rf"^{name.replace('_', ' ')} +{re.escape(value)}$", out, re.M)
    assert ", ".join(config["instruction_sets"]) in out


def test_photos_are_found_below_a_folder(tmp_path):
    kept = ["a/1.png", "a-b/1.png", "b/2.JPG", "c.heic"]  # an error says how to convert HEIC
    for name in (*kept, "a/.hidden.png", "__MACOSX/x.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert list_photos(tmp_path) == [tmp_path / name for name in kept]


def test_every_option_has_help_and_is_documented(run):
    pytest.importorskip("torch")
    from kernelcore.cli.app import app

    for words in ([], ["--help"], ["-h"]):
        assert run(*words)[0] == 0
    listed = run()[1]
    text = (DOCS / "command_line.md").read_text(encoding="utf-8") if DOCS.is_dir() else ""
    sections = dict(re.findall(r"^## kernelcore (\w+)(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert not text or set(sections) == set(app.summaries)
    for name in app.summaries:
        assert f" {name} " in listed
        command = app.load(name)
        parts = [command.load(own) for own in getattr(command, "summaries", ())] or [command]
        parameters = [parameter for part in parts for parameter in part.params]
        assert all(parameter.help for parameter in parameters), name
        options = {o for own in parameters for o in own.opts if o.startswith("-")}
        documented = set(re.findall(r"`(--?[a-z-]+)", sections.get(name, ""))) - {"--version"}
        assert not text or options - {"--help", "-h"} == documented, name
