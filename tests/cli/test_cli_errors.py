"""What fails is named in one sentence, and wrong usage ends with 2."""

import shutil
import sys

import pytest
from resealed import parts_of

import kernelcore


def test_missing_things_are_named(corpus, model, fails, tmp_path):
    old, captions, nowhere = corpus / "old", corpus / "old.tsv", tmp_path / "nowhere"
    new = tmp_path / "m"
    assert "nowhere" in fails("train", nowhere, captions, "--model", new)
    assert "nowhere" in fails("train", old, nowhere, "--model", new)
    assert "there is no folder" in fails("search", "a", "--model", nowhere, "--photos", old)
    assert "must be a folder" in fails("search", "a", "--model", model, "--photos", nowhere)
    assert "holds none" in fails("search", "a", "--model", model, "--photos", tmp_path)
    assert "no index" in fails("search", "a", "--model", model, "--index", nowhere)
    assert "nowhere" in fails("index", nowhere, "--model", model, "--index", new)
    assert "nowhere" in fails("annotate", nowhere, "--model", model, "--captions", nowhere)
    assert "nowhere" in fails("reproduce", "hodosh2013", "--data", nowhere)
    page = nowhere / "demo.html"
    assert "no folder" in fails("demo", "--output", page)
    for option in (["--json", page], ["--json", tmp_path]):
        fails("evaluate", old, captions, "--model", model, *option)
    assert "no folder" in fails(
        "search", "a", "--model", model, "--photos", old, "--html", page
    )
    assert not list(tmp_path.iterdir())


def test_wrong_things_are_named(corpus, model, fails, tmp_path):
    old, captions = corpus / "old", corpus / "old.tsv"
    assert "model already" in fails("train", old, captions, "--model", model)
    assert "new or empty" in fails("train", old, captions, "--model", corpus, "--overwrite")
    latin = tmp_path / "latin.tsv"
    latin.write_bytes("scene-000000.png\tUn chien à la plage.\n".encode("latin-1"))
    assert "must be UTF-8 text" in fails("train", old, latin, "--model", tmp_path / "m")
    prose = tmp_path / "prose.txt"
    prose.write_text("Once upon a time there was a dog.\n")
    assert "prose.txt" in fails("train", old, prose, "--model", tmp_path / "m")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    photo = old / "scene-000000.png"
    assert "must hold sentences" in fails(
        "annotate", photo, "--model", model, "--captions", empty
    )
    error = fails("reproduce", "hodosh2013", "--data", corpus, "--system", "BoW6")
    assert "'BoW5'" in error
    assert "'BoW6'" in error
    assert "n_images" in fails("demo", "--n-images", 3)
    assert "--seed" in fails("demo", "--seed", -1, status=2)
    for name in ("hessel2019", "hu2019", "karpathy2014", "khojasteh2019"):
        words = ["reproduce", name, "--data", corpus, "--seed", -1]
        assert "--seed" in fails(*words, status=2)


def test_a_truncated_model_is_named(model, corpus, fails, tmp_path):
    broken = tmp_path / "model"
    shutil.copytree(model, broken)
    ranker = parts_of(broken / "model.json") / "ranker.safetensors"
    ranker.write_bytes(ranker.read_bytes()[:1000])
    error = fails("search", "a dog", "--model", broken, "--photos", corpus / "new")
    assert f"{ranker} is damaged or truncated" in error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["serch", "a dog"], "No such command 'serch'"),
        (["search", "a dog"], "either --model or --caption-encoder"),
        (["demo", "--n-images", "many"], "'--n-images'"),
        (["demo", "--threads", "0"], "'--threads'"),
        (["demo", "--sed", "1"], "--sed"),
        (["reproduce", "nobody1999", "--data", "."], "'nobody1999'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_where_help_is(words, complaint, fails):
    error = fails(*words, status=2)
    assert complaint in error
    assert "--help tells more)" in error


def test_search_must_be_told_where(model, fails):
    assert "--photos or --index" in fails("search", "a dog", "--model", model, status=2)


@pytest.mark.parametrize("place", [0, 2])
def test_debug_shows_where_an_error_arose(place, run):
    words = ["demo", "--n-images", "3"]
    words.insert(place, "--debug")
    status, _, err = run(*words)
    assert status == 1
    assert err.startswith("Traceback")
    assert err.rstrip().splitlines()[-1].startswith("Error: n_images must be")


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("typer", ["--version"], "cli"),
        ("rich", ["info"], "cli"),
        ("matplotlib", ["demo"], "plot"),
        ("cv2", ["demo"], "images"),
    ],
)
def test_a_missing_extra_is_named_before_any_work(module, words, extra, fails, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert f'pip install "kernelcore[{extra}]"' in fails(*words)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory for this"),
        (KeyError("x"), "unexpected KeyError: 'x' (--debug shows where)"),
        (PermissionError(13, "Permission denied", "a.txt"), "a.txt: Permission denied"),
        (OSError("the disk is full"), "the disk is full"),
    ],
)
def test_any_other_error_is_a_sentence_too(error, sentence, fails, monkeypatch):
    def fail():
        raise error

    monkeypatch.setattr(kernelcore, "show_config", fail)
    assert fails("info") == f"Error: {sentence}\n"
