"""Captions and names of files that control terminals, lead elsewhere, or are no text."""

import os
import shutil
import sys

import pytest

from kernelcore._store import printable
from kernelcore.cli import main
from kernelcore.evaluation import Result

EVIL = "A dog \x1b]0;PWNED\x07\x1b[2J\x9b31m \u202edog\u2066 runs"
SHOWN = r"A dog \x1b]0;PWNED\x07\x1b[2J\x9b31m \u202edog\u2066 runs"


@pytest.fixture
def clean(run):
    """Run a command whose output must hold no control characters but line ends."""

    def clean(*words, status=0):
        ended, out, err = run(*words)
        assert ended == status, err
        assert printable(out + err, keep="\n") == out + err
        return out, err

    return clean


def photo_named(corpus, folder, name):
    folder.mkdir(exist_ok=True)
    return shutil.copy(corpus / "new" / "scene-000024.png", folder / name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \\ text, caf\u00e9 \U0001f436 \u0646\u200c\u0645", None),
        ("\x1b[31m\x00\x7f\x80\x9b", r"\x1b[31m\x00\x7f\x80\x9b"),
        ("a\r\nb\tc\x0b\x0c\x85", r"a\r\nb\tc\x0b\x0c\x85"),
        ("\u2028\u2029\u202e\u2069", r"\u2028\u2029\u202e\u2069"),
        ("\u200e\u061c\ufeff", r"\u200e\u061c\ufeff"),
        ("\udcff", r"\udcff"),
    ],
)  # fmt: skip
def test_printable(text, shown):
    assert printable(text) == (text if shown is None else shown)
    assert printable(printable(text)) == printable(text)


def test_printable_keeps_what_it_is_told_to():
    assert printable("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


def test_annotate_shows_escapes_and_line_breaks(corpus, model, clean, tmp_path):
    captions = tmp_path / "captions.csv"
    captions.write_text(f'image,caption\na.jpg,"A dog\n   0.999  fake"\nb.jpg,{EVIL}\n')
    photo = photo_named(corpus, tmp_path / "p", "a\x1b[2Jb\n.png")
    out, _ = clean("annotate", photo, "--model", model, "--captions", captions)
    assert len(out.splitlines()) == 3
    assert r"  A dog\n   0.999  fake" in out
    assert SHOWN in out
    assert r"a\x1b[2Jb\n.png" in out.splitlines()[0]


def test_search_shows_escapes_in_names_and_sentences(corpus, model, clean, tmp_path):
    photo_named(corpus, tmp_path / "p", "a\x1b[2J\n   0.999  b.png")
    out, err = clean(
        "search", EVIL, "zeppe\x1blin", "--model", model, "--photos", tmp_path / "p"
    )
    assert len(out.splitlines()) == 4
    assert out.startswith(SHOWN + "\n")
    assert r"a\x1b[2J\n   0.999  b.png" in out
    assert r"zeppe\x1blin" in err


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are no text")
def test_names_that_are_no_text_are_shown(corpus, model, clean, tmp_path):
    photo_named(corpus, tmp_path / "p", os.fsdecode(b"caf\xe9.png"))
    out, _ = clean("search", "a dog", "--model", model, "--photos", tmp_path / "p")
    assert r"caf\udce9.png" in out


def test_errors_and_warnings_show_escapes(corpus, model, clean, tmp_path):
    evil = tmp_path / "p\x1b[2J\nError: none"
    photo_named(corpus, evil, "x\x1b.png")
    (evil / "bad\x1b[2J\nx.png").write_bytes(b"no photo")
    _, err = clean("search", "a dog", "--model", model, "--photos", evil, status=1)
    assert len(err.splitlines()) == 2
    _, err = clean("search", "a dog", "--model", model, "--photos", evil, "--skip-damaged")
    assert r"bad\x1b[2J\nx.png: it is not an image" in err
    captions = tmp_path / "captions.tsv"
    captions.write_text("x\x1b.png\tA dog.\nnone\x9b.png\tA cat.\n")
    _, err = clean(
        "evaluate", evil, captions, "--model", model, "--skip-damaged", "--json",
        tmp_path / "r.json",
    )  # fmt: skip
    assert r"none\x9b.png" in err
    assert "\\x1b[2J" in Result.load(tmp_path / "r.json").dataset
    for words in (["search\x1b"], ["info", "--x\x1b"], ["--debug", "train", evil, evil]):
        clean(*words, status=2)
    photo = evil / "bad\x1b[2J\nx.png"
    clean("--debug", "annotate", photo, "--model", evil, "--captions", evil, status=1)


def test_what_the_terminal_cannot_encode_is_written_as_an_escape(
    corpus, model, tmp_path, monkeypatch
):
    import io

    photo_named(corpus, tmp_path / "p", "caf\u00e9 \U0001f436.png")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    words = ["search", "a dog", "--model", model, "--photos", tmp_path / "p"]
    assert main(list(map(str, words))) == 0
    assert b"caf\xe9 \\U0001f436.png\n" in raw.getvalue()


def test_annotate_keeps_line_breaks_of_captions_as_train_does(corpus, model, run, tmp_path):
    captions = tmp_path / "captions.csv"
    captions.write_text(' Image ,"Caption"\na.jpg,"A dog\nruns fast"\n')
    photo = corpus / "new" / "scene-000024.png"
    _, out, _ = run("annotate", photo, "--model", model, "--captions", captions)
    assert out.splitlines()[1].endswith(r"A dog\nruns fast")


def test_links_out_of_the_folder_and_names_that_are_no_text(corpus, model, clean, tmp_path):
    photos = tmp_path / "photos"
    photo_named(corpus, photos, "a.png")
    photo_named(corpus, tmp_path, "private.png")
    (photos / "link.png").symlink_to(tmp_path / "private.png")
    index = ["index", photos, "--model", model, "--index", tmp_path / "index"]
    search = ["search", "a dog", "--model", model, "--photos", photos]
    for words in (index, search):
        _, err = clean(*words, status=1)
        assert "link.png leads out of" in err
        out, err = clean(*words, "--skip-damaged")
        assert "link.png" in err
        assert "link.png" not in out
        clean(*words, "--allow-outside")
    photo_named(corpus, photos, os.fsdecode(b"bad\xff.png"))
    _, err = clean(*index, "--allow-outside", status=1)
    assert "bad\\udcff.png" in err
    out, err = clean(*index, "--allow-outside", "--skip-damaged")
    assert "bad\\udcff.png" in err
    assert out.startswith("Added 0, removed 0")


def test_photos_outside_must_be_allowed(corpus, model, fails, run, tmp_path):
    captions = tmp_path / "captions.tsv"
    lines = (corpus / "new.tsv").read_text().splitlines()
    captions.write_text("\n".join([*lines, "../old/scene-000000.png\tA dog."]))
    words = ["evaluate", corpus / "new", captions, "--model", model]
    error = fails(*words)
    assert f"CAPTIONS: {captions}: line {len(lines) + 1} must name a photo within" in error
    assert "'../old/scene-000000.png'" in error
    assert "--allow-outside" in error
    status, out, _ = run(*words, "--allow-outside")
    assert status == 0
    assert "9 images" in out
    train = ["train", corpus / "new", captions, "--model", tmp_path / "m"]
    assert "'../old/scene-000000.png'" in fails(*train)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such file"),
        (b"", "must hold sentences"),
        (b"caf\xe9\n", "must be UTF-8 text, got byte 0xe9 in line 1"),
        (b'image,caption\na.jpg,"A dog\n', "line 2 is not valid CSV"),
        (b"image,text\n", "header that names 'caption'"),
        ("folder", "no such file"),
    ],
)
def test_unusable_captions_are_named_with_their_option(
    model, fails, tmp_path, content, complaint
):
    captions = tmp_path / "captions.csv"
    if content == "folder":
        captions.mkdir()
    elif content is not None:
        captions.write_bytes(content)
    if content == b"":
        captions = captions.rename(tmp_path / "captions.txt")
    error = fails("annotate", "photo.png", "--model", model, "--captions", captions)
    assert error.startswith(f"Error: --captions: {captions}") or complaint == "no such file"
    assert complaint in error
    assert "--captions: " in error


def test_the_option_is_named_whatever_is_wrong(corpus, model, fails, tmp_path):
    old, captions, none = corpus / "old", corpus / "old.tsv", tmp_path / "none"
    for words, option in (
        (["train", none, captions, "--model", none], "PHOTOS"),
        (["train", old, none, "--model", none], "CAPTIONS"),
        (["train", old, captions, "--model", model], "--model"),
        (["search", "a", "--model", none, "--photos", old], "--model"),
        (["search", "a", "--model", model, "--photos", none], "--photos"),
        (["search", "a", "--model", model, "--index", none], "--index"),
        (["search", "a", "--model", model, "--photos", old, "--html", none / "x"], "--html"),
        (["index", none, "--model", model, "--index", none], "PHOTOS"),
        (["index", old, "--model", model, "--index", old], "--index"),
        (["serve", "--photos", old, "--model", model, "--host", "0.0.0.0"], "--host"),
        (["evaluate", old, captions, "--model", model, "--json", tmp_path], "--json"),
        (["demo", "--output", none / "x"], "--output"),
    ):
        assert fails(*words).startswith(f"Error: {option}: ")


def test_numbers_beyond_reason_are_named(corpus, model, fails):
    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model, "--pool"]
    assert "--pool: no photo has a caption of number 77" in fails(*words, 77)
    assert "'--pool'" in fails(*words, -1, status=2)
    assert "'--n-images'" in fails("demo", "--n-images", "9" * 25, status=2)


@pytest.mark.parametrize("name", ["x" * 5000, "\x1b[2J" * 100])
def test_names_that_are_too_long_are_an_error_of_one_line(corpus, model, fails, name):
    photo = corpus / "new" / "scene-000024.png"
    for words in (
        ["annotate", photo, "--model", model, "--captions", name],
        ["annotate", photo, "--model", name, "--captions", corpus / "old.tsv"],
        ["search", "a", "--model", model, "--photos", name],
        ["search", "a", "--model", model, "--index", name],
        ["train", name, corpus / "old.tsv", "--model", model, "--overwrite"],
        ["train", corpus / "old", name, "--model", model, "--overwrite"],
        [
            "evaluate",
            corpus / "old",
            corpus / "old.tsv",
            "--model",
            model,
            "--json",
            name + "/x",
        ],
    ):
        assert fails(*words).startswith(("Error: --", "Error: PHOTOS", "Error: CAPTIONS"))
