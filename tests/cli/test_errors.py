"""What fails is named in one sentence; captions and names of files control no terminal."""

import io
import os
import re
import shutil
import sys

import pytest

import kernelcore
from kernelcore._store import printable
from kernelcore.cli import main
from kernelcore.evaluation import Result
from kernelcore.models import PhotoRanker


@pytest.fixture
def words(corpus, model, tmp_path, monkeypatch):
    """Fill in the places that a command names."""
    new, odd = tmp_path / "new", tmp_path / "cache"  # as an option
    odd.mkdir()
    monkeypatch.chdir(tmp_path)
    (odd / "latin.tsv").write_bytes("scene-000024.png\tla plage à.\n".encode("latin-1"))
    (odd / "prose.txt").write_text("Once upon a time there was a dog.\n")
    (odd / "empty.txt").write_text("\n")
    (odd / "open.csv").write_text('image,caption\na.jpg,"A dog\n')
    (odd / "header.csv").write_text("image,text\n")
    photo = corpus / "new" / "scene-000024.png"
    places = {"OLD": corpus / "new", "TSV": corpus / "new.tsv", "PHOTO": photo, "MODEL": model}
    places |= {"NONE": tmp_path / "none", "NEW": new, "ODD": odd, "ALL": corpus}
    places |= {"LONG": "x" * 5000, "CLEAR": "\x1b[2J" * 100}

    def words(text):
        parts = (word.partition("/") for word in text.split())
        return [f"{places.get(first, first)}{slash}{rest}" for first, slash, rest in parts]

    return words


REFUSED = """
train NONE TSV --model NEW: PHOTOS
train OLD NONE --model NEW: CAPTIONS
train OLD TSV --model MODEL: --model
train OLD TSV --model ALL --overwrite: --model
train OLD ODD/latin.tsv --model NEW: CAPTIONS
train OLD ODD/prose.txt --model NEW: CAPTIONS
train LONG TSV --model MODEL --overwrite: PHOTOS
train OLD CLEAR --model MODEL --overwrite: CAPTIONS
search a --model NONE --photos OLD: --model
search a --model MODEL --photos NONE: --photos
search a --model MODEL --photos ODD: --photos
search a --model MODEL --photos NONE --index NEW: --photos
serve --model MODEL --photos NONE: --photos
search a --model MODEL --photos CLEAR: --photos
search a --model MODEL --index NONE: --index
search a --model MODEL --index LONG: --index
search a --model MODEL --photos OLD --html NONE/x: --html
index NONE --model MODEL --index NEW: PHOTOS
index OLD --model MODEL --index OLD: --index
annotate NONE --model MODEL --captions TSV: PHOTOS
annotate PHOTO --model MODEL --captions NONE: --captions
annotate PHOTO --model MODEL --captions ODD: --captions
annotate PHOTO --model MODEL --captions ODD/empty.txt: --captions
annotate PHOTO --model MODEL --captions ODD/latin.tsv: --captions
annotate PHOTO --model MODEL --captions ODD/open.csv: --captions
annotate PHOTO --model MODEL --captions ODD/header.csv: --captions
annotate PHOTO --model MODEL --captions CLEAR: --captions
annotate PHOTO --model LONG --captions TSV: --model
train OLD TSV --model cache: --model: cache must
serve --photos OLD --model MODEL --host 0.0.0.0: --token must
serve --photos OLD --model MODEL --token short: --token must
evaluate OLD TSV --model MODEL --json ODD: --json
evaluate OLD TSV --model MODEL --json NONE/x: --json
evaluate OLD TSV --model MODEL --json LONG/x: --json
evaluate OLD TSV --model MODEL --pool 77: --pool
demo --output NONE/x: --output
demo --n-images 3: --n-images must
reproduce hodosh2013 --data NONE: --data
reproduce hodosh2013 --data OLD --system BoW6: --system must
"""
USAGE = """
serch a: 'serch'
search dog: --encoders
search dog --model MODEL: --photos or --index
demo --n-images many: '--n-images'
demo --n-images 9999999999999999999999999: '--n-images'
demo --threads 0: '--threads'
demo --seed -1: '--seed'
demo --sed 1: --sed
evaluate OLD TSV --model MODEL --pool -1: '--pool'
serve --model MODEL --photos OLD --false-rate 2: --false-rate
reproduce nobody1999 --data .: 'nobody1999'
reproduce hu2019 --data . --seed -1: --seed
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_the_option_is_named_and_nothing_is_written(words, fails, tmp_path, row):
    text, named = row.split(":", 1)
    assert fails(*words(text)).startswith(f"Error:{named}")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.parametrize("row", USAGE.strip().splitlines())
def test_wrong_usage_ends_with_2_and_says_where_help_is(words, fails, row):
    text, named = row.split(": ", 1)
    error = fails(*words(text), status=2)
    assert named in error
    assert "--help tells more)" in error


NEEDED = {"click": ("cli", "--version"), "rich": ("cli", "info")}
NEEDED |= {"matplotlib": ("plot", "demo"), "cv2": ("images", "demo")}
NEEDED["spacy"] = "text", "reproduce", "hodosh2013", "--system", "Tri5Sem", "--data", "."
NEEDED["uvicorn"] = "web", "serve", "--model", "m", "--photos", "p"


@pytest.mark.parametrize("module", NEEDED)
def test_a_missing_extra_is_named_before_any_work(module, fails, monkeypatch):
    extra, *words = NEEDED[module]
    monkeypatch.setitem(sys.modules, module, None)
    for name in [own for own in sys.modules if own.startswith("kernelcore.web")]:
        monkeypatch.delitem(sys.modules, name)  # as in a process that has not served yet
    assert f'pip install "kernelcore[{extra}' in fails(*words)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory for this"),
        (KeyError("x"), "unexpected KeyError: 'x' (--debug shows where)"),
        (PermissionError(13, "Permission denied", "a.txt"), "a.txt: Permission denied"),
        (OSError(98, "Address already in use"), "Address already in use"),
        (OSError("the disk is full"), "the disk is full"),
    ],
)
def test_any_other_error_is_a_sentence_too(error, sentence, fails, run, monkeypatch):
    def fail():
        raise error

    monkeypatch.setattr(kernelcore, "show_config", fail)
    assert fails("info") == f"Error: {sentence}\n"
    for words in (["--debug", "info"], ["info", "--debug"]):
        status, _, err = run(*words)
        assert status == 1
        assert err.startswith("Traceback")
        assert err.endswith(f"Error: {sentence}\n")


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


@pytest.fixture
def photo_named(corpus, tmp_path):
    def photo_named(name, folder="p"):
        (tmp_path / folder).mkdir(exist_ok=True)
        return shutil.copy(corpus / "new" / "scene-000024.png", tmp_path / folder / name)

    return photo_named


def test_printable():
    for text, shown in (
        ("plain \\ text, caf\u00e9 \U0001f436 \u0646\u200c\u0645", None),
        ("\x1b[31m\x00\x7f\x80\x9b", r"\x1b[31m\x00\x7f\x80\x9b"),
        ("a\r\nb\tc\x0b\x0c\x85", r"a\r\nb\tc\x0b\x0c\x85"),
        ("\u2028\u2029\u202e\u2069", r"\u2028\u2029\u202e\u2069"),
        ("\u200e\u061c\ufeff\udcff", r"\u200e\u061c\ufeff\udcff"),
    ):
        assert printable(text) == (text if shown is None else shown)
        assert printable(printable(text)) == printable(text)
        assert printable("\n\ta\x1b", keep="\n\t") == "\n\ta\\x1b"


def test_results_show_escapes_and_line_breaks(model, clean, photo_named, tmp_path, monkeypatch):
    captions = tmp_path / "captions.csv"
    captions.write_text(f' Image ,"Caption"\na.jpg,"A dog\n   0.999  fake"\nb.jpg,{EVIL}\n')
    photo = photo_named("a\x1b[2J\n   0.999  b \U0001f436.png")
    out, _ = clean("annotate", photo, "--model", model, "--captions", captions)
    assert len(out.splitlines()) == 3
    assert r"  A dog\n   0.999  fake" in out
    assert SHOWN in out
    words = ["search", EVIL, "zeppe\x1blin", "--model", model, "--photos", tmp_path / "p"]
    out, err = clean(*words)
    assert len(out.splitlines()) == 4
    assert out.startswith(SHOWN + "\n")
    assert r"a\x1b[2J\n   0.999  b" in out
    assert r"zeppe\x1blin" in err
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    assert main(list(map(str, words))) == 0
    assert b"b \\U0001f436.png\n" in raw.getvalue()


def test_errors_and_warnings_show_escapes(model, clean, photo_named, tmp_path):
    evil = tmp_path / "p\x1b[2J\nError: none"
    photo_named("x\x1b.png", evil)
    (evil / "bad\x1b[2J\nx.png").write_bytes(b"no photo")
    words = ["search", "a dog", "--model", model, "--photos", evil]
    err = clean(*words, status=1)[1]
    assert len(err.splitlines()) == 3
    assert "--skip-damaged" in err
    assert r"bad\x1b[2J\nx.png: it is not an image" in clean(*words, "--skip-damaged")[1]
    captions = tmp_path / "captions.tsv"
    captions.write_text("x\x1b.png\tA dog.\nnone\x9b.png\tA cat.\n")
    result = tmp_path / "r.json"
    words = ["evaluate", evil, captions, "--model", model, "--skip-damaged", "--json", result]
    assert r"none\x9b.png" in clean(*words)[1]
    assert "\\x1b[2J" in Result.load(result).dataset
    for words in (["search\x1b"], ["info", "--x\x1b"], ["--debug", "train", evil, evil]):
        clean(*words, status=2)
    photo = evil / "bad\x1b[2J\nx.png"
    clean("--debug", "annotate", photo, "--model", evil, "--captions", evil, status=1)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are no text")
def test_links_out_of_the_folder_and_names_of_no_text(model, clean, photo_named, tmp_path):
    photos = tmp_path / "p"
    photo_named("a.png")
    photo_named("private.png", "elsewhere")
    (photos / "link.png").symlink_to(tmp_path / "elsewhere" / "private.png")
    index = ["index", photos, "--model", model, "--index", tmp_path / "index"]
    search = ["search", "a dog", "--model", model, "--photos", photos]
    for words in (index, search):
        assert "link.png leads out of" in clean(*words, status=1)[1]
        out, err = clean(*words, "--skip-damaged")
        assert "link.png" in err
        assert "link.png" not in out
        clean(*words, "--allow-outside")
    photo_named(os.fsdecode(b"bad\xff.png"))
    assert "bad\\udcff.png" in clean(*index, "--allow-outside", status=1)[1]
    out, err = clean(*index, "--allow-outside", "--skip-damaged")
    assert "bad\\udcff.png" in err
    assert out.startswith("Added 0, removed 0")
    assert r"bad\udcff.png" in clean(*search, "--allow-outside")[0]


def test_options_that_help_are_named(words, fails, run, tmp_path, monkeypatch):
    new = words("train OLD TSV --model NEW --features words")
    assert " --overwrite," in fails(*words("train OLD TSV --model MODEL"))
    captions = tmp_path / "captions.tsv"
    captions.touch()
    error = fails(*new[:2], captions, *new[3:])
    assert error.endswith("captions.tsv must hold captions of photos, got none to use\n")
    captions.write_text("scene-000024.png\tA dog.\n")
    assert "images must be at least 3 different ones" in run(*new[:2], captions, *new[3:])[2]

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(PhotoRanker, "fit", stop)
    status, _, err = run(*new)
    assert status == 130
    assert re.fullmatch(r".*--cache.*\n\nStopped\.\n", err)
    assert run(*new, "--cache", tmp_path / "cache")[2] == "\nStopped.\n"


def test_photos_outside_must_be_allowed(corpus, model, fails, run, tmp_path):
    captions = tmp_path / "captions.tsv"
    lines = (corpus / "new.tsv").read_text().splitlines()
    captions.write_text("\n".join([*lines, "../old/scene-000000.png\tA dog."]))
    for command, own in (("train", tmp_path / "m"), ("evaluate", model)):
        words = command, corpus / "new", captions, "--model", own
        error = fails(*words)
        assert f"CAPTIONS: {captions}: line {len(lines) + 1} must name a photo within" in error
        assert "'../old/scene-000000.png'" in error
        assert "--allow-outside" in error
    assert "9 images" in run(*words, "--allow-outside")[1]
