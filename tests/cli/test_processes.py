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

import numpy as np
import pytest

from kernelcore.evaluation import Result
from kernelcore.models import PhotoIndex, PhotoRanker

N_TRAINING, N_TEST = 24, 8  # photos of the corpus


def started(*words):
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, *map(str, words)], text=True, **pipes)


def test_the_demo_draws_bars_prints_a_table_and_writes_a_page(run, tmp_path, monkeypatch):
    from kernelcore.cli import training

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training, "on_terminal", lambda: True)
    status, out, err = run("demo", "--n-images", 25)
    assert status == 0
    assert "------ annotation" in out
    for row in ("kernel CCA", "nearest neighbour", "chance", "Who does what"):
        assert re.search(f"^{row}", out, re.M)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.html"]
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    for bar in ("Drawing scenes", "Describing images", "Factorising", "Writing the page"):
        assert bar in err
        assert bar not in out


def test_a_process_of_its_own(tmp_path, corpus, model, run):
    """An error, a reader who leaves early, and help, which is fast because it loads little."""
    process = started("-m", "kernelcore", "search", "a", "--model", tmp_path, "--photos", ".")
    said = f"Error: --model: {tmp_path} must hold a model, and it has no model.json\n"
    assert (*process.communicate(timeout=60), process.returncode) == ("", said, 1)
    process = started("-m", "kernelcore", "info")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1
    result = tmp_path / "result.json"
    np.save(tmp_path / "scores.npy", np.eye(3))
    words = "evaluate", "--scores", tmp_path / "scores.npy", "--json", result
    process = started("-m", "kernelcore", *words)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1
    assert Result.load(result).mean["search"]["R@1"] == 1
    own = ["--model", str(model), "--index", str(tmp_path / "index")]
    assert run("index", corpus / "new", *own)[0] == 0
    for called, heavy in (
        (["--help"], "numpy kernelcore.models"),
        (["search", "a", *own], "scipy.sparse kernelcore.evaluation numpy.ma numpy.random"),
    ):
        program = f"import sys; from kernelcore import cli; cli.main({called});"
        program += f"sys.exit(any(own in sys.modules for own in {heavy.split()}))"
        process = started("-c", program)
        process.communicate(timeout=60)
        assert process.returncode == 0, heavy


def test_ctrl_c_while_a_file_is_written_leaves_none(corpus, model, run, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    words = ["evaluate", corpus / "new", corpus / "new.tsv", "--model", model]
    monkeypatch.setattr(Path, "replace", stop)
    status, _, err = run(*words, "--json", tmp_path / "result.json")
    assert (status, err) == (130, "\nStopped.\n")
    assert not list(tmp_path.iterdir())


POSIX_SIGNALS = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@POSIX_SIGNALS
def test_ctrl_c_stops_the_demo_with_130_and_one_line(tmp_path):
    script = """
        import os, signal, sys, threading
        import kernelcore.experiments.demo
        from kernelcore.cli import main
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        sys.exit(main(["demo", "--n-images", "3000", "--output", sys.argv[1]]))
    """
    process = started("-c", textwrap.dedent(script), tmp_path / "demo.html")
    assert process.communicate(timeout=60) == ("", "\nStopped.\n")
    assert process.returncode == 130
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
    process = started("-c", textwrap.dedent(script), *words, "--threads", 1)
    deadline = time.monotonic() + 60
    while not list(cache.rglob("*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "\nStopped.\n")
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
    process = started("-m", "kernelcore", "serve", "--model", model, *words)
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
