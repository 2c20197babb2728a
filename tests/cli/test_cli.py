"""The commands as their users meet them: what they print where."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import kernelcore
from kernelcore.cli.common import list_photos
from kernelcore.datasets import DatasetWarning
from kernelcore.datasets.folder import read_sentences
from kernelcore.evaluation import Result, evaluate
from kernelcore.models import PhotoRanker

N_TRAINING, N_TEST = 24, 8  # photos of the corpus
TABLE = "------ annotation"


def test_train_tells_how_well_the_settings_did_in_percent(corpus, run, tmp_path):
    status, out, err = run(
        "train", corpus / "old", corpus / "old.tsv", "--model", tmp_path / "m", "--seed", 3,
        "--threads", 2, "--cache", tmp_path / "cache", "--features", "words",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert f"Learned from {N_TRAINING} photos." in out
    ranker = PhotoRanker.load(tmp_path / "m")
    assert ranker.rng == ranker.features.rng == 3
    for by, shares in (("", ranker.dev_recalls_), (" by chance", ranker.dev_chance_)):
        for task, recalls in zip(("annotation", "search"), shares, strict=True):
            row = " +".join(f"{100 * recall:.1f}" for recall in recalls)
            assert re.search(rf"^{task}{by} +{row}", out, re.M)
    assert "Held out to choose settings: 5 of the photos, with 25 captions in all." in out
    assert "These figures are unreliable: they come from only " in out
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == N_TRAINING


def coco(corpus, part):
    """Return the captions of a part of the corpus in the form of COCO."""
    rows = [line.split("\t") for line in (corpus / f"{part}.tsv").read_text().splitlines()]
    names = list(dict.fromkeys(name.split("#")[0] for name, _ in rows))
    return {
        "images": [{"id": i, "file_name": name} for i, name in enumerate(names)],
        "annotations": [
            {"id": i, "image_id": names.index(name.split("#")[0]), "caption": text}
            for i, (name, text) in enumerate(rows)
        ],
    }


def check_same_as_text(corpus, model, run, captions):
    """Commands print the same of these captions as of the rows of text."""
    photo = sorted((corpus / "new").iterdir())[0]
    for words in (
        ["evaluate", corpus / "new", "--model", model],
        ["annotate", photo, "--model", model, "--captions"],
    ):
        of_text = run(*words, corpus / "new.tsv")
        assert (of_text[0], of_text[2]) == (0, "")
        assert run(*words, captions) == of_text


def test_captions_may_be_json_of_coco(corpus, model, run, tmp_path):
    for part in ("new", "old"):
        (tmp_path / f"{part}.json").write_text(json.dumps(coco(corpus, part)))
    check_same_as_text(corpus, model, run, tmp_path / "new.json")
    words = ["train", corpus / "old", tmp_path / "old.json", "--model", tmp_path / "m"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert f"Learned from {N_TRAINING} photos." in out


def test_evaluate_prints_the_model_beside_chance_and_writes_json(corpus, model, run, tmp_path):
    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model]
    status, out, err = run(*words, "--json", tmp_path / "result.json")
    assert (status, err) == (0, "")
    assert TABLE in out
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

    _, out, _ = run(*words, "--pool", 2)
    assert f"pool caption #2, {N_TEST} images, {N_TEST} captions" in out


def test_search_lists_the_best_photos(corpus, model, run):
    sentences = ["A dog runs.", "a red dog in the snow"]
    words = ["search", *sentences, "--model", model, "-k", 3]
    status, out, err = run(*words, "--photos", corpus / "new")
    assert (status, err) == (0, "")
    photos = sorted((corpus / "new").iterdir())
    expected = ""
    for sentence, found in zip(
        sentences, PhotoRanker.load(model).search(sentences, photos, k=3), strict=True
    ):
        expected += f"{sentence}\n"
        expected += "".join(f"  {m.score:6.3f}  {photos[m.item]}\n" for m in found)
    assert out == expected


def test_annotate_lists_the_best_sentences(corpus, model, run):
    photos = sorted((corpus / "new").iterdir())[:2]
    status, out, err = run(
        "annotate", *photos, "--model", model, "--captions", corpus / "new.tsv", "-k", 2
    )
    assert (status, err) == (0, "")
    sentences = read_sentences(corpus / "new.tsv")
    assert len(sentences) <= 5 * N_TEST
    [first, second] = PhotoRanker.load(model).annotate(photos, sentences, k=2)
    lines = out.splitlines()
    assert [lines[0], lines[3]] == list(map(str, photos))
    assert lines[1] == f"  {first[0].score:6.3f}  {sentences[first[0].item]}"
    assert lines[5] == f"  {second[1].score:6.3f}  {sentences[second[1].item]}"


def test_a_sentence_without_a_known_word_is_warned_of(corpus, model, run):
    status, out, err = run("search", "zeppelin", "--model", model, "--photos", corpus / "new")
    assert status == 0
    assert out.startswith("zeppelin\n")
    assert err == (
        "Warning: no training caption has a word of 'zeppelin': its ranking means nothing\n"
    )


def test_damaged_photos_are_listed_or_skipped(corpus, model, run, tmp_path):
    photos = tmp_path / "photos"
    shutil.copytree(corpus / "old", photos)
    broken = sorted(photos.iterdir())[4]
    broken.write_bytes(broken.read_bytes()[:300])
    new = tmp_path / "m"
    words = ["train", photos, corpus / "old.tsv", "--model", new]
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert err.startswith(f"Error: 1 of {N_TRAINING} images cannot be read:\n  {broken}: ")
    assert not new.exists()
    status, out, err = run(*words, "--skip-damaged")
    assert status == 0
    assert f"Learned from {N_TRAINING - 1} photos." in out
    assert err.count("Warning: ") >= 1
    assert str(broken) in err

    status, out, err = run("search", "a dog", "--model", model, "--photos", photos)
    assert (status, out) == (1, "")
    status, out, _ = run(
        "search", "a dog", "--model", model, "--photos", photos, "--skip-damaged", "-k", 99
    )
    assert status == 0
    assert len(out.splitlines()) == N_TRAINING
    assert str(broken) not in out

    words = ["evaluate", photos, corpus / "old.tsv", "--model", model]
    assert run(*words)[0] == 1
    status, out, _ = run(*words, "--skip-damaged")
    assert status == 0
    assert f"{N_TRAINING - 1} images, {5 * N_TRAINING - 5} captions" in out


def test_odd_caption_rows_are_warned_of_in_one_sentence(corpus, model, run, tmp_path):
    captions = tmp_path / "captions.tsv"
    captions.write_text((corpus / "new.tsv").read_text() + "nowhere.png#0\tA ghost.\n")
    status, _, err = run("evaluate", corpus / "new", captions, "--model", model)
    assert status == 0
    assert err.startswith("Warning: ")
    assert "nowhere.png" in err
    assert err.count("\n") == 1


def test_overwrite_replaces_a_model(corpus, model, run, tmp_path):
    shutil.copytree(model, tmp_path / "m")
    words = ["train", corpus / "new", corpus / "new.tsv", "--model", tmp_path / "m"]
    status, out, _ = run(*words, "--overwrite")
    assert status == 0
    assert f"Learned from {N_TEST} photos." in out
    assert len(PhotoRanker.load(tmp_path / "m").training_) == N_TEST


def test_help_version_and_info(run):
    for words in ([], ["--help"], ["-h"]):
        status, out, _ = run(*words)
        assert status == 0
        for command in ("demo", "reproduce", "train", "search", "annotate", "evaluate", "info"):
            assert command in out
    assert run("--version") == (0, f"kernelcore {kernelcore.__version__}\n", "")
    status, out, err = run("info")
    assert (status, err) == (0, "")
    config = kernelcore.show_config()
    for name, value in {**config, **config["extras"]}.items():
        if isinstance(value, str):
            assert re.search(rf"^{name.replace('_', ' ')} +{re.escape(value)}$", out, re.M)
    assert ", ".join(config["instruction_sets"]) in out


def test_info_names_what_is_not_installed(run, monkeypatch):
    config = {**kernelcore.show_config(), "extras": {"spacy": None}}
    monkeypatch.setattr(kernelcore, "show_config", lambda: config)
    assert re.search(r"^spacy +not installed$", run("info")[1], re.M)


def test_photos_are_found_below_a_folder(tmp_path):
    for name in ("b/2.JPG", "a/1.png", "a/.hidden.png", "__MACOSX/x.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert list_photos(tmp_path) == [tmp_path / "a" / "1.png", tmp_path / "b" / "2.JPG"]
    (tmp_path / "c.heic").touch()  # read_image says how to convert it
    assert tmp_path / "c.heic" in list_photos(tmp_path)


def test_sentences_come_from_lines_tables_and_csv(tmp_path):
    text = tmp_path / "captions.txt"
    text.write_text("\ufeffA dog.\r\n\r\n1.jpg#0\tA cat.\r\n1.jpg#1\tA dog.\r\n")
    assert read_sentences(text) == ["A dog.", "A cat."]
    table = tmp_path / "captions.csv"
    table.write_text('image,caption\n1.jpg,"A dog, a cat."\n2.jpg\n')
    with pytest.warns(DatasetWarning, match="not as long as the header .*: line 3"):
        assert read_sentences(table) == ["A dog, a cat."]
    table.write_text("image,text\n1.jpg,A dog.\n")
    with pytest.raises(ValueError, match="names 'caption'"):
        read_sentences(table)


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
def test_the_documentation_names_every_option_and_no_other():
    import typer

    from kernelcore.cli.app import app

    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## kernelcore (\w+)(.*?)(?=^## |\Z)", text, re.M | re.S))
    commands = typer.main.get_command(app).commands
    assert set(sections) == set(commands)
    for name, command in commands.items():
        parts = [command, *getattr(command, "commands", {}).values()]  # a group and its own
        options = {
            option
            for part in parts
            for parameter in part.params
            for option in (*parameter.opts, *parameter.secondary_opts)
            if option.startswith("-")
        }
        documented = set(re.findall(r"`(--?[a-z-]+)", sections[name])) - {"--version"}
        assert options - {"--help", "-h"} == documented, name
