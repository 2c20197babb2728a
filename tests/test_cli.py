"""The command line as its users meet it: what it prints where, and how it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernelcore
from kernelcore import cli
from kernelcore.cli.files import list_photos, read_sentences
from kernelcore.datasets import make_scenes
from kernelcore.evaluation import RetrievalResult, evaluate, evaluate_links
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.study import Study
from kernelcore.models import PhotoIndex, PhotoRanker
from kernelcore.report import Section, StageRecorder

N_TRAINING, N_TEST = 24, 8
TABLE = "------ annotation"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Photos and captions of a user: two folders of photos, two files of captions."""
    folder = tmp_path_factory.mktemp("corpus")
    scenes = make_scenes(N_TRAINING + N_TEST, size=(32, 40))
    scenes.write(folder)
    for part, numbers in (
        ("old", range(N_TRAINING)),
        ("new", range(N_TRAINING, N_TRAINING + N_TEST)),
    ):
        (folder / part).mkdir()
        rows = []
        for i in numbers:
            name = scenes.dataset.image_ids[i]
            shutil.copy(folder / "images" / name, folder / part)
            rows += [
                f"{name}#{k}\t{text}\n" for k, text in enumerate(scenes.dataset.captions[i])
            ]
        (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(corpus):
    words = ["train", corpus / "old", corpus / "old.tsv", "--model", corpus / "model"]
    assert cli.main(list(map(str, words))) == 0
    return corpus / "model"


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit status, stdout and stderr."""

    def run(*words):
        capsys.readouterr()
        status = cli.main(list(map(str, words)))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def fails(run):
    """Run a command that must fail, and return its one sentence."""

    def fails(*words, status=1):
        ended, out, err = run(*words)
        assert ended == status, err
        assert out == ""
        assert err.startswith("Error: ")
        assert "Traceback" not in err
        assert err.count("\n") == 1
        return err

    return fails


def subprocess_of(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "kernelcore", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        **options,
    )


def test_train_tells_how_well_the_settings_did_in_percent(corpus, run, tmp_path):
    status, out, err = run(
        "train", corpus / "old", corpus / "old.tsv", "--model", tmp_path / "m", "--seed", 3,
        "--threads", 2, "--cache", tmp_path / "cache",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert f"Learned from {N_TRAINING} photos." in out
    ranker = PhotoRanker.load(tmp_path / "m")
    assert ranker.rng == ranker.visual_words.rng == 3
    for task, recalls in zip(("annotation", "search"), ranker.dev_recalls_, strict=True):
        assert re.search(
            rf"^{task} +" + " +".join(f"{100 * recall:.1f}" for recall in recalls), out, re.M
        )
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == N_TRAINING


def test_evaluate_prints_the_model_beside_chance_and_writes_json(corpus, model, run, tmp_path):
    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model]
    status, out, err = run(*words, "--json", tmp_path / "result.json")
    assert (status, err) == (0, "")
    assert TABLE in out
    result = RetrievalResult.load(tmp_path / "result.json")
    assert (result.system, result.dataset, result.pool) == ("model", "new", "all captions")
    assert (result.n_images, result.n_captions) == (N_TEST, 5 * N_TEST)
    assert next(line for line in str(result).splitlines() if line.startswith("model")) in out
    assert re.search(r"^chance +\d", out, re.M)

    ranker = PhotoRanker.load(model)
    assert result.settings["model"] == ranker.fingerprint
    captions = [line.split("\t") for line in (corpus / "new.tsv").read_text().splitlines()]
    photos = [corpus / "new" / name.split("#")[0] for name, _ in captions[::5]]
    scores = ranker.scores(photos, [text for _, text in captions])
    expected = evaluate(scores, caption_image=np.repeat(np.arange(N_TEST), 5))
    np.testing.assert_array_equal(result.search.ranks, expected.search.ranks)
    np.testing.assert_array_equal(result.annotation.ranks, expected.annotation.ranks)

    _, out, _ = run(*words, "--pool", 2)
    assert f"pool caption #2, {N_TEST} images, {N_TEST} captions" in out


def test_search_lists_the_best_photos_and_an_index_answers_without_them(
    corpus, model, run, tmp_path
):
    sentences = ["A dog chases a cat.", "a red ball in the snow"]
    index = tmp_path / "index.safetensors"
    words = ["search", *sentences, "--model", model, "-k", 3, "--index", index]
    status, out, err = run(*words, "--photos", corpus / "new")
    assert (status, err) == (0, "")
    photos = sorted((corpus / "new").iterdir())
    expected = ""
    for sentence, found in zip(
        sentences, PhotoRanker.load(model).search(sentences, photos, k=3), strict=True
    ):
        expected += f"{sentence}\n"
        expected += "".join(f"  {score:6.3f}  {photos[item]}\n" for item, score in found)
    assert out == expected
    assert len(PhotoIndex.load(index)) == N_TEST
    assert run(*words) == (0, expected, "")


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


def test_missing_things_are_named(corpus, model, fails, tmp_path):
    old, captions, nowhere = corpus / "old", corpus / "old.tsv", tmp_path / "nowhere"
    new = tmp_path / "m"
    assert "nowhere" in fails("train", nowhere, captions, "--model", new)
    assert "nowhere" in fails("train", old, nowhere, "--model", new)
    assert "there is no folder" in fails("search", "a", "--model", nowhere, "--photos", old)
    assert "must be a folder" in fails("search", "a", "--model", model, "--photos", nowhere)
    assert "holds none" in fails("search", "a", "--model", model, "--photos", tmp_path)
    assert "no such file" in fails("search", "a", "--model", model, "--index", nowhere)
    assert "nowhere" in fails("annotate", nowhere, "--model", model, "--captions", nowhere)
    assert "nowhere" in fails("reproduce", "hodosh2013", "--data", nowhere)
    page = nowhere / "demo.html"
    assert "no folder" in fails("demo", "--output", page)
    for option in (["--json", page], ["--json", tmp_path]):
        fails("evaluate", old, captions, "--model", model, *option)
    assert "no folder" in fails(
        "search", "a", "--model", model, "--photos", old, "--index", page
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
    assert "seed" in fails("demo", "--seed", -1)


def test_a_truncated_model_is_named(model, corpus, fails, tmp_path):
    broken = tmp_path / "model"
    shutil.copytree(model, broken)
    ranker = broken / "ranker.safetensors"
    ranker.write_bytes(ranker.read_bytes()[:1000])
    error = fails("search", "a dog", "--model", broken, "--photos", corpus / "new")
    assert f"{ranker} is damaged or truncated" in error


def test_overwrite_replaces_a_model(corpus, model, run, tmp_path):
    shutil.copytree(model, tmp_path / "m")
    words = ["train", corpus / "new", corpus / "new.tsv", "--model", tmp_path / "m"]
    status, out, _ = run(*words, "--overwrite")
    assert status == 0
    assert f"Learned from {N_TEST} photos." in out
    assert len(PhotoRanker.load(tmp_path / "m").training_) == N_TEST


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["serch", "a dog"], "No such command 'serch'"),
        (["search", "a dog"], "'--model'"),
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


def test_reproduce_runs_the_experiment_and_writes_its_results(run, monkeypatch, tmp_path):
    asked = {}

    def experiment(data, **options):
        asked.update(options, data=data)
        return Study("A study", [evaluate([[1.0]], system="BoW5")], StageRecorder())

    monkeypatch.setattr(hodosh2013, "run", experiment)
    words = ["reproduce", "hodosh2013", "--data", "corpus"]
    status, out, _ = run(
        *words, "--system", "BoW5", "--system", "NN_F1", "--split", "dev", "--pool", 0,
        "--cache", "kept", "--output", tmp_path / "results", "--threads", 2,
        "--wordnet", "dict", "--outside-corpus", "text", "--spacy-model", "en",
    )  # fmt: skip
    assert status == 0
    assert out.startswith("A study\n")
    assert asked == {
        "data": Path("corpus"),
        "systems": ["BoW5", "NN_F1"],
        "split": "dev",
        "pool": 0,
        "cache_dir": Path("kept"),
        "wordnet_dir": Path("dict"),
        "outside_corpus": Path("text"),
        "spacy_model": "en",
        "n_threads": 2,
        "progress": False,
    }
    document = json.loads((tmp_path / "results" / "results.json").read_text())
    assert document["title"] == "A study"
    assert run(*words)[0] == 0
    assert (asked["systems"], asked["split"], asked["pool"]) == (None, "test", 2)


def test_reproduce_hessel2019_passes_its_options_on(run, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from kernelcore.experiments import hessel2019

    asked = {}

    def experiment(data, **options):
        asked.update(options, data=data)
        links = evaluate_links([[[0.9, 0.1]]], [{(0, 0)}], system="AP")
        found = Section("What was found", ["In short."])
        return Study("A study", [links], StageRecorder(), sections=[found])

    monkeypatch.setattr(hessel2019, "run", experiment)
    words = ["reproduce", "hessel2019", "--data", "corpus"]
    status, out, _ = run(
        *words, "--system", "AP", "--variant", "stress", "--split", "val", "--epochs", 3,
        "--components", 64, "--word-vectors", "glove.txt", "--seed", 5, "--device", "cuda",
        "--cache", "kept", "--output", tmp_path / "results", "--threads", 2,
    )  # fmt: skip
    assert status == 0
    assert out.startswith("A study\n")
    assert "What was found\n\nIn short." in out
    assert asked == {
        "data": Path("corpus"),
        "systems": ["AP"],
        "variant": "stress",
        "split": "val",
        "size": replace(hessel2019.SIZE, n_epochs=3, n_components=64),
        "word_vectors": Path("glove.txt"),
        "seed": 5,
        "device": "cuda",
        "cache_dir": Path("kept"),
        "n_threads": 2,
        "progress": False,
    }
    assert (tmp_path / "results" / "report.html").is_file()
    assert run(*words)[0] == 0
    assert (asked["systems"], asked["variant"], asked["size"]) == (
        None,
        "mixed",
        hessel2019.SIZE,
    )


def test_the_demo_draws_bars_on_a_terminal_prints_a_table_and_writes_a_page(
    run, tmp_path, monkeypatch
):
    from kernelcore.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "on_terminal", lambda: True)
    status, out, err = run("demo", "--n-images", 25)
    assert status == 0
    assert TABLE in out
    for row in ("kernel CCA", "nearest neighbour", "chance", "Who does what to whom"):
        assert re.search(f"^{row}", out, re.M)
    assert re.search(r"^Wrote demo\.html; \d+ seconds in all\.$", out, re.M)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.html"]
    for bar in ("Drawing scenes", "Describing images", "Factorising", "Writing the page"):
        assert bar in err
        assert bar not in out


def test_the_demo_in_a_process_of_its_own_prints_no_colour_codes(tmp_path):
    environment = {**os.environ, "FORCE_COLOR": "", "LC_ALL": "C"}
    del environment["FORCE_COLOR"]
    done = subprocess_of("demo", "--n-images", 25, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert TABLE in done.stdout
    assert (tmp_path / "demo.html").stat().st_size > 10_000


def test_errors_of_a_process_of_its_own(tmp_path):
    done = subprocess_of("search", "a dog", "--model", tmp_path, "--photos", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: {tmp_path} must hold a model, and it has no model.json\n"


def test_a_reader_who_leaves_early_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelcore", "info"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 1


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


def test_ctrl_c_while_a_file_is_written_leaves_none(corpus, model, run, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model]
    monkeypatch.setattr(Path, "replace", stop)
    status, _, err = run(*words, "--json", tmp_path / "result.json")
    assert (status, err) == (130, "Stopped.\n")
    assert not list(tmp_path.iterdir())


POSIX_SIGNALS = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@POSIX_SIGNALS
def test_ctrl_c_stops_the_demo_with_130_and_one_line(tmp_path):
    script = """
        import os, signal, sys, threading
        import kernelcore.experiments.demo
        from kernelcore.cli import main
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        sys.exit(main(["demo", "--n-images", "3000"]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")
    assert not list(tmp_path.iterdir())


@POSIX_SIGNALS
def test_a_training_that_was_stopped_goes_on_where_it_was(corpus, model, tmp_path, run):
    cache = tmp_path / "cache"
    words = ["train", corpus / "old", corpus / "old.tsv", "--model", tmp_path / "m"]
    words += ["--cache", cache]
    script = """
        import sys, time
        from kernelcore import cli
        from kernelcore.images.cache import FeatureCache
        save = FeatureCache.save
        FeatureCache.save = lambda *args: (save(*args), time.sleep(0.1))
        sys.exit(cli.main(sys.argv[1:]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, words), "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(cache.rglob("*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "Stopped.\n")
    kept = {path: path.stat().st_mtime_ns for path in cache.rglob("*.safetensors")}
    assert 0 < len(kept) < N_TRAINING
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    assert not [path for path in cache.rglob("*") if path.suffix == ".tmp"]

    assert run(*words)[0] == 0
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    undisturbed, resumed = PhotoRanker.load(model), PhotoRanker.load(tmp_path / "m")
    assert resumed.fingerprint == undisturbed.fingerprint


def test_photos_are_found_below_a_folder(tmp_path):
    for name in ("b/2.JPG", "a/1.png", "a/.hidden.png", "__MACOSX/x.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert list_photos(tmp_path) == [tmp_path / "a" / "1.png", tmp_path / "b" / "2.JPG"]


def test_sentences_come_from_lines_tables_and_csv(tmp_path):
    text = tmp_path / "captions.txt"
    text.write_text("\ufeffA dog.\r\n\r\n1.jpg#0\tA cat.\r\n1.jpg#1\tA dog.\r\n")
    assert read_sentences(text) == ["A dog.", "A cat."]
    table = tmp_path / "captions.csv"
    table.write_text('image,caption\n1.jpg,"A dog, a cat."\n2.jpg\n')
    assert read_sentences(table) == ["A dog, a cat."]
    table.write_text("image,text\n1.jpg,A dog.\n")
    with pytest.raises(ValueError, match="names 'caption'"):
        read_sentences(table)


DOCS = Path(__file__).parents[1] / "docs"


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
            for option in parameter.opts
            if option.startswith("-")
        }
        documented = set(re.findall(r"`(--?[a-z-]+)", sections[name])) - {"--version"}
        assert options - {"--help", "-h"} == documented, name
