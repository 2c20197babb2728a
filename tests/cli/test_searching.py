"""The commands ``index``, ``search`` and ``annotate``."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
import sentence_transformers_stub as stub

from kernelcore.datasets.folder import read_sentences
from kernelcore.models import PhotoIndex, PhotoRanker

N_TEST = 8


@pytest.fixture
def photos(corpus, tmp_path):
    place = tmp_path / "photos"
    shutil.copytree(corpus / "new", place / "sub")
    return place


@pytest.fixture
def files(photos):
    return sorted((photos / "sub").iterdir())


@pytest.fixture
def index(model, run, photos, tmp_path):
    words = "index", photos, "--model", model, "--index", tmp_path / "index"
    said = f"Added {N_TEST}, removed 0; {tmp_path / 'index'} has {N_TEST} photos.\n"
    assert run(*words) == (0, said, "")
    return tmp_path / "index"


def test_an_index_grows_and_shrinks_with_its_folder(corpus, model, run, photos, index):
    words = ["index", photos, "--model", model, "--index", index]
    first = PhotoIndex.load(index)
    assert run(*words)[1].startswith("Added 0, removed 0;")
    sorted((photos / "sub").iterdir())[0].unlink()
    shutil.copy(sorted((corpus / "old").iterdir())[0], photos / "new.png")
    assert run(*words)[1].startswith("Added 1, removed 1;")
    grown = PhotoIndex.load(index)
    assert grown.names == (*first.names[1:], "new.png")
    np.testing.assert_array_equal(grown.projections[:-1], first.projections[1:])
    (photos / "bad.png").write_text("no photo")
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert "bad.png" in err
    status, out, err = run(*words, "--skip-damaged")
    assert (status, out.split(";")[0]) == (0, "Added 0, removed 0")
    assert err.startswith("Warning: left out 1 unreadable photo:\n")
    assert "bad.png" in err


def listed(queries, found, names):
    """What is printed: each query, and its matches with their scores and names."""
    lines = []
    for query, matches in zip(queries, found, strict=True):
        lines += [f"{query}\n", *(f"  {m.score:6.3f}  {names[m.item]}\n" for m in matches)]
    return "".join(lines)


def test_search_prints_the_best_photos_of_folder_or_index(model, run, photos, files, index):
    sentences = ["A dog runs.", "a red dog in the snow", "A dog runs."]
    words = ["search", *sentences, "--model", model, "-k", 3]
    found = PhotoRanker.load(model).search(sentences, files, k=3)
    expected = listed(sentences, found, files)
    assert run(*words, "--photos", photos) == (0, expected, "")
    assert run(*words, "--index", index, "--photos", photos) == (0, expected, "")
    assert run(*words, "--index", index) == (0, expected.replace(f"{photos}/", ""), "")


def test_search_brings_the_index_of_a_folder_up_to_date(model, run, photos, files, index):
    words = "search", "A dog.", "--model", model, "--photos", photos
    files[0].rename(photos / "new.png")
    files[1].unlink()
    (photos / "bad.png").write_text("no photo")
    status, out, err = run(*words, "--index", index, "--skip-damaged")
    assert (status, len(out.splitlines())) == (0, N_TEST)
    assert f"{photos}/new.png" in out
    assert "bad.png" in err
    assert "new.png" in PhotoIndex.load(index).names
    made = photos.parent / "made"
    assert run(*words, "--index", made, "--skip-damaged")[1] == out
    assert len(PhotoIndex.load(made)) == N_TEST - 1


def test_an_index_of_another_model_stays_unless_asked(model, run, fails, photos, tmp_path):
    index = tmp_path / "index"
    PhotoIndex(["a"], [[1.0]], "other").save(index)
    words = ["index", photos, "--model", model, "--index", index]
    assert f"Error: --index: {index} holds an index of another model;" in fails(*words)
    error = fails("search", "A dog.", "--model", model, "--index", index)
    assert error.startswith(f"Error: --index: {index} must be an index made by this model; ")
    assert PhotoIndex.load(index).model == "other"
    assert run(*words, "--overwrite")[0] == 0
    assert len(PhotoIndex.load(index)) == N_TEST
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").touch()
    words[-1] = tmp_path / "mine"
    assert "must be a new or empty folder" in fails(*words, "--overwrite")


def test_calibrated_results_tell_where_chance_begins(model, run, photos, files):
    words = ["search", "A dog.", "--model", model, "--photos", photos, "-k", N_TEST]
    [matches] = PhotoRanker.load(model).search(["A dog."], files, k=N_TEST, calibrated=True)
    status, out, err = run(*words, "--calibrated")
    assert (status, err) == (0, "")
    n_above = sum(match.by_chance <= 0.05 for match in matches)
    lines = out.splitlines()
    if n_above < N_TEST:
        assert lines.pop(1 + n_above) == "  ------  from here on by chance (5 %)"
    for line, match in zip(lines[1:], matches, strict=True):
        assert line.endswith(f"{100 * match.by_chance:5.1f} %  {files[match.item]}")
    [row] = json.loads(run(*words, "--calibrated", "--json")[1])
    assert row["sentence"] == "A dog."
    assert [photo["by_chance"] for photo in row["photos"]] == [m.by_chance for m in matches]
    assert [photo["name"] for photo in row["photos"]] == [str(files[m.item]) for m in matches]
    [plain] = json.loads(run(*words, "--json")[1])
    assert set(plain["photos"][0]) == {"name", "score"}


def test_a_page_shows_the_photos_and_the_line(model, run, fails, photos, index):
    page = photos.parent / "found.html"
    words = ["search", "A <b>dog</b>.", "--model", model, "-k", 3, "--html", page]
    status, _, err = run(*words, "--photos", photos, "--index", index, "--calibrated")
    assert status == 0, err
    text = page.read_text(encoding="utf-8")
    assert "A &lt;b&gt;dog&lt;/b&gt;." in text
    assert text.count("<img ") == 3
    assert run(*words, "--photos", photos)[0] == 0
    assert "chance" not in page.read_text(encoding="utf-8").split("</style>")[1]
    assert "--photos must name the folder" in fails(*words, "--index", index, status=2)


def test_unknown_words_are_named_and_without_a_known_one_all_is_by_chance(model, run, photos):
    words = ["--model", model, "--photos", photos, "--calibrated"]
    status, _, err = run("search", "a dogg and a dog", *words)
    assert status == 0
    assert re.match("Warning: .* 'dogg' of 'a dogg and a dog'; it has dog", err)
    status, out, err = run("search", "zeppelin", *words)
    assert status == 0
    assert re.fullmatch("Warning: .*'zeppelin'.* means nothing\n", err)
    assert out.splitlines()[1].startswith("  ------  from here on by chance (5 %)")
    assert out.count("%") == 1
    out = run("search", "a dogg and a dog", *words, "-k", N_TEST)[1]
    assert "\n  ------  from here on by chance (5 %), without the unknown 'dogg'\n" in out
    queries = "zeppelin", "the dogg and a dog", "A dog."
    rows = json.loads(run("search", *queries, *words, "--json")[1])
    assert [row["unknown"] for row in rows] == [["zeppelin"], ["dogg"], []]
    shares = [[photo["by_chance"] for photo in row["photos"]] for row in rows]
    assert shares[0] == [None] * N_TEST
    assert all(0 < share <= 1 for own in shares[1:] for share in own)


def test_annotate_lists_the_best_sentences_of_photos(corpus, model, run, photos, files):
    words = ["--model", model, "--captions", corpus / "new.tsv", "-k", 2]
    sentences = read_sentences(corpus / "new.tsv")
    found = PhotoRanker.load(model).annotate(files, sentences, k=2)
    expected = listed(files, found, sentences)
    assert run("annotate", photos, *words) == (0, expected, "")
    assert run("annotate", *files, *words) == (0, expected, "")
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
    tmp_path, index = photos.parent, photos.parent / "index"
    status, _, err = run("index", photos, *encoders, "--index", index)
    assert (status, err) == (0, "")
    status, out, err = run("search", "a dog", *encoders, "--index", index, "-k", 2)
    assert (status, err, len(out.splitlines())) == (0, "", 3)
    words = ["search", "a dog", *encoders, "--index", index, "--calibrated"]
    assert "--foreign-vectors must be given" in fails(*words, status=2)
    np.save(tmp_path / "others.npy", np.random.default_rng(0).normal(size=(30, 3)))
    status, out, err = run(*words, "--foreign-vectors", tmp_path / "others.npy")
    assert status == 0, err
    assert re.search(r"^  +-?\d\.\d{3}  +\d+\.\d %  ", out, re.M)
    assert run("annotate", photos, *encoders, "--captions", corpus / "new.tsv")[0] == 0

    np.save(tmp_path / "v.npy", np.arange(3 * N_TEST, dtype=np.float32).reshape(N_TEST, 3))
    words = ["search", "a dog", *encoders[:2], "--photos", photos]
    status, out, err = run(*words, "--features", tmp_path / "v.npy")
    assert (status, err, len(out.splitlines())) == (0, "", 1 + N_TEST)
    assert "photos must be vectors" in fails(*words)
    (photos / "torn.jpg").write_bytes(b"no photo")
    words = ["search", "a dog", *encoders, "--photos", photos]
    status, _, err = run(*words)
    assert status == 1
    assert "--skip-damaged leaves out" in err
    status, out, err = run(*words, "--skip-damaged")
    assert (status, len(out.splitlines())) == (0, 1 + N_TEST)
    assert "torn.jpg" in err
    np.save(tmp_path / "v.npy", np.ones((N_TEST + 1, 3), np.float32))  # no photo is read
    assert run(*words, "--features", tmp_path / "v.npy")[0] == 0


def test_sentence_transformers_is_taken_for_a_model(corpus, run, fails, photos, monkeypatch):
    tmp_path = photos.parent
    monkeypatch.setitem(sys.modules, "sentence_transformers", stub)
    place = stub.write_model(tmp_path / "clip")
    encoders, index = ["--encoders", f"sentence-transformers:{place}"], tmp_path / "index"
    assert run("index", photos, *encoders, "--index", index)[0] == 0
    words = ["search", "a red bird", "--index", index, "-k", 2]
    status, out, err = run(*words, *encoders)
    assert (status, err, len(out.splitlines())) == (0, "", 3)
    assert run("annotate", photos, *encoders, "--captions", corpus / "new.tsv")[0] == 0
    status, out, err = run("evaluate", corpus / "new", corpus / "new.tsv", *encoders)
    assert status == 0, err
    assert re.search("^clip ", out, re.M)
    encoders[1] += "2"
    assert fails(*words, *encoders).startswith("Error: --encoders: ")
    stub.write_model(tmp_path / "clip2", weights=(3, 2, 1))
    assert fails(*words, *encoders).startswith(f"Error: --index: {index} must be an index made")


EXCLUDED = """
: one of --model, --encoders and --caption-encoder
--model m --caption-encoder a:b: one of --model, --encoders and --caption-encoder
--model m --encoders sentence-transformers:a: one of --model, --encoders and
--encoders clip: --encoders must be sentence-transformers:
--encoders sentence-transformers:: --encoders must be sentence-transformers:
--encoders sentence-transformers:a --image-encoder a:b: --image-encoder must be left out
--model m --image-encoder a:b: --image-encoder must be left out
--model m --foreign-vectors a: --foreign-vectors must be left out
--caption-encoder nonsense: --caption-encoder must be MODULE:FUNCTION
--caption-encoder os:getcwd --cache c: --cache must be left out
--model m --index i --features v.npy: --features must be left out
--model m --index i --skip-damaged: --skip-damaged must be left out
"""


def test_options_that_exclude_each_other_are_refused(fails, photos):
    for row in EXCLUDED.strip().splitlines():
        words, complaint = row.split(": ")
        place = [] if "--index" in words else ["--photos", photos]
        said = fails("search", "a", *place, *words.split(), status=2)
        assert complaint in re.sub(r"\s+", " ", said)
        said = fails("search", "a", "  ", *words.split(), status=2)
        assert "SENTENCES must have words, got '  '" in said
