"""Commands in a process of their own, on a terminal, and when they are stopped."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

import pytest

from kernelcore.models import PhotoIndex, PhotoRanker

N_TRAINING, N_TEST = 24, 8  # photos of the corpus
TABLE = "------ annotation"


def subprocess_of(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "kernelcore", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        **options,
    )


def test_the_demo_draws_bars_on_a_terminal_prints_a_table_and_writes_a_page(
    run, tmp_path, monkeypatch
):
    from kernelcore.cli import training

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "on_terminal", lambda: True)
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
    assert (
        done.stderr
        == f"Error: --model: {tmp_path} must hold a model, and it has no model.json\n"
    )


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
def test_a_training_that_was_stopped_goes_on_where_it_was(corpus, tmp_path, run):
    cache = tmp_path / "cache"
    words = ["train", corpus / "old", corpus / "old.tsv", "--model", tmp_path / "m"]
    words += ["--cache", cache, "--features", "words"]
    script = """
        import sys, time
        from kernelcore import cli
        from kernelcore.images._describe import FeatureCache
        save = FeatureCache.save
        FeatureCache.save = lambda *args: (save(*args), time.sleep(0.1))[0]
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
    words[words.index("--model") + 1] = tmp_path / "undisturbed"
    assert run(*words[: words.index("--cache")], "--features", "words")[0] == 0
    resumed, undisturbed = (PhotoRanker.load(tmp_path / m) for m in ("m", "undisturbed"))
    assert resumed.fingerprint == undisturbed.fingerprint


@POSIX_SIGNALS
def test_serve_answers_until_ctrl_c(corpus, model, tmp_path):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    words = ["--photos", corpus / "new", "--index", tmp_path / "index", "--port", 0]
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelcore", "serve", "--model", model, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found, process.stderr.read()
        with urllib.request.urlopen(f"{found[0]}?q=a+dog", timeout=30) as answer:
            assert answer.read().decode().count("/photo/") >= N_TEST
        assert len(PhotoIndex.load(tmp_path / "index")) == N_TEST
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert errors == ""
    assert process.returncode in {0, 130}


def test_the_help_loads_no_numbers():
    """It imports neither NumPy nor a command, so it comes at once."""
    program = "import sys; from kernelcore import cli; cli.main(['--help'])"
    program += "; sys.exit('numpy' in sys.modules or 'kernelcore.models' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=False
        ).returncode
        == 0
    )
