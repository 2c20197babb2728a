"""The commands ``index``, ``search`` and ``annotate``."""

import json
import re
import shutil

import numpy as np
import pytest

from kernelcore.models import PhotoIndex, PhotoRanker

N_TEST = 8


@pytest.fixture
def photos(corpus, tmp_path):
    place = tmp_path / "photos"
    shutil.copytree(corpus / "new", place / "sub")
    return place


def test_an_index_grows_and_shrinks_with_its_folder(corpus, model, run, photos, tmp_path):
    index = tmp_path / "index"
    words = ["index", photos, "--model", model, "--index", index]
    assert run(*words) == (0, f"Added {N_TEST}, removed 0; {index} has {N_TEST} photos.\n", "")
    first = PhotoIndex.load(index)
    assert first.names == tuple(sorted(f"sub/{p.name}" for p in (photos / "sub").iterdir()))
    assert run(*words)[1].startswith("Added 0, removed 0;")
    gone = sorted((photos / "sub").iterdir())[0]
    gone.unlink()
    shutil.copy(sorted((corpus / "old").iterdir())[0], photos / "new.png")
    assert run(*words)[1].startswith("Added 1, removed 1;")
    grown = PhotoIndex.load(index)
    assert grown.names == (*first.names[1:], "new.png")
    np.testing.assert_array_equal(grown.projections[:-1], first.projections[1:])


def test_search_in_an_index_prints_what_search_in_the_folder_prints(
    model, run, photos, tmp_path
):
    index = tmp_path / "index"
    assert run("index", photos, "--model", model, "--index", index)[0] == 0
    words = ["search", "A dog runs.", "A dog runs.", "--model", model, "-k", 3]
    status, out, err = run(*words, "--photos", photos)
    assert (status, err) == (0, "")
    assert run(*words, "--index", index) == (0, out.replace(f"{photos}/", ""), "")
    assert out.count("A dog runs.\n") == 2  # a query may be given twice


def test_an_index_of_another_model_stays_unless_asked(model, run, fails, photos, tmp_path):
    index = tmp_path / "index"
    PhotoIndex(["a"], [[1.0]], "other").save(index)
    words = ["index", photos, "--model", model, "--index", index]
    error = fails(*words)
    assert error.startswith(f"Error: --index: {index} holds an index of another model;")
    assert PhotoIndex.load(index).model == "other"
    assert run(*words, "--overwrite")[0] == 0
    assert len(PhotoIndex.load(index)) == N_TEST
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").touch()
    words[-1] = tmp_path / "mine"
    assert "must be a new or empty folder" in fails(*words, "--overwrite")


def test_damaged_photos_stop_an_index_or_are_left_out(model, run, fails, photos, tmp_path):
    (photos / "bad.png").write_text("no photo")
    words = ["index", photos, "--model", model, "--index", tmp_path / "index"]
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert "bad.png" in err
    assert not (tmp_path / "index").exists()
    status, out, err = run(*words, "--skip-damaged")
    assert (status, out.split(";")[0]) == (0, f"Added {N_TEST}, removed 0")
    assert err.startswith("Warning: 1 photos were left out:\n")
    assert "bad.png" in err


def test_calibrated_results_tell_where_chance_begins(corpus, model, run, photos):
    words = ["search", "A dog.", "--model", model, "--photos", photos, "-k", N_TEST]
    ranker = PhotoRanker.load(model)
    files = sorted((photos / "sub").iterdir())
    [matches] = ranker.search(["A dog."], files, k=N_TEST, calibrated=True)
    status, out, err = run(*words, "--calibrated")
    assert (status, err) == (0, "")
    n_above = sum(match.by_chance <= 0.05 for match in matches)
    lines = out.splitlines()
    assert lines[1 + n_above : 2 + n_above] in (
        ["  ------  from here on by chance (5 %)"],
        [],  # all are above the line
    )
    assert len(lines) == N_TEST + 1 + (n_above < N_TEST)
    shown = [line for line in lines[1:] if "------" not in line]
    assert shown[0].endswith(f"{100 * matches[0].by_chance:5.1f} %  {files[matches[0].item]}")
    status, out, _ = run(*words, "--calibrated", "--json")
    [row] = json.loads(out)
    assert row["sentence"] == "A dog."
    assert [photo["by_chance"] for photo in row["photos"]] == [m.by_chance for m in matches]
    assert [photo["name"] for photo in row["photos"]] == [str(files[m.item]) for m in matches]
    [plain] = json.loads(run(*words, "--json")[1])
    assert set(plain["photos"][0]) == {"name", "score"}


def test_a_page_shows_the_photos_and_the_line(model, run, fails, photos, tmp_path):
    index, page = tmp_path / "index", tmp_path / "found.html"
    run("index", photos, "--model", model, "--index", index)
    words = ["search", "A <b>dog</b>.", "--model", model, "-k", 3, "--html", page]
    status, _, err = run(*words, "--photos", photos, "--index", index, "--calibrated")
    assert status == 0, err
    text = page.read_text(encoding="utf-8")
    assert "A &lt;b&gt;dog&lt;/b&gt;." in text
    assert text.count("<img ") == 3
    assert "From here on by chance" in text or "chance" not in text.split("</style>")[1]
    assert run(*words, "--photos", photos)[0] == 0
    assert "chance" not in page.read_text(encoding="utf-8").split("</style>")[1]
    assert "--photos must name the folder" in fails(*words, "--index", index, status=2)


def test_unknown_words_are_named_with_known_ones(model, run, photos):
    status, _, err = run("search", "a dogg and a dog", "--model", model, "--photos", photos)
    assert status == 0
    assert err.startswith(
        "Warning: no training caption has the word 'dogg' of 'a dogg and a dog'"
    )
    assert "; it has dog" in err


def test_annotate_takes_folders(corpus, model, run, photos):
    words = ["--model", model, "--captions", corpus / "new.tsv", "-k", 2]
    status, out, err = run("annotate", photos, *words)
    assert (status, err) == (0, "")
    files = sorted((photos / "sub").iterdir())
    assert run("annotate", *files, *words) == (0, out, "")
    rows = json.loads(run("annotate", photos, *words, "--json", "--calibrated")[1])
    assert [row["photo"] for row in rows] == list(map(str, files))
    assert all(0 < one["by_chance"] <= 1 for row in rows for one in row["sentences"])


ENCODERS = """
import os

def texts(items):
    return [[item.count("a"), item.count("o"), 1] for item in items]

def photos(paths):
    return [[os.path.getsize(path) % 7, 1, 2] for path in paths]
"""


@pytest.fixture
def encoders(tmp_path, monkeypatch):
    (tmp_path / "cli_encoders.py").write_text(ENCODERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return ["--caption-encoder", "cli_encoders:texts", "--image-encoder", "cli_encoders:photos"]


def test_encoders_take_the_place_of_a_model(encoders, corpus, run, fails, photos):
    tmp_path = photos.parent
    index = tmp_path / "index"
    status, out, err = run("index", photos, *encoders, "--index", index)
    assert (status, err) == (0, ""), err
    status, out, err = run("search", "a dog", *encoders, "--index", index, "-k", 2)
    assert (status, err, len(out.splitlines())) == (0, "", 3)
    words = ["search", "a dog", *encoders, "--index", index, "--calibrated"]
    assert "--foreign-vectors must be given" in fails(*words, status=2)
    np.save(tmp_path / "others.npy", np.random.default_rng(0).normal(size=(30, 3)))
    status, out, err = run(*words, "--foreign-vectors", tmp_path / "others.npy")
    assert status == 0, err
    assert re.search(r"^  +-?\d\.\d{3}  +\d+\.\d %  ", out, re.M)
    status, out, _ = run("annotate", photos, *encoders, "--captions", corpus / "new.tsv")
    assert status == 0


def test_vectors_serve_with_an_encoder_of_sentences_alone(
    encoders, run, fails, photos, tmp_path
):
    np.save(tmp_path / "v.npy", np.arange(3 * N_TEST, dtype=np.float32).reshape(N_TEST, 3))
    words = ["search", "a dog", *encoders[:2], "--photos", photos]
    status, out, err = run(*words, "--features", tmp_path / "v.npy")
    assert (status, err, len(out.splitlines())) == (0, "", 1 + N_TEST)
    assert "photos must be vectors" in fails(*words)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "either --model or --caption-encoder"),
        (["--model", "m", "--caption-encoder", "a:b"], "either --model or --caption-encoder"),
        (["--model", "m", "--image-encoder", "a:b"], "--image-encoder must be left out"),
        (["--caption-encoder", "nonsense"], "--caption-encoder must be MODULE:FUNCTION"),
        (["--caption-encoder", "os:getcwd", "--cache", "c"], "--cache must be left out"),
    ],
)
def test_models_that_exclude_each_other_are_refused(fails, photos, words, complaint):
    said = re.sub(r"\s+", " ", fails("search", "a", "--photos", photos, *words, status=2))
    assert complaint in said
