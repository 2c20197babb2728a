"""The command ``serve`` as a process: it answers a browser until Ctrl-C."""

import re
import shutil
import signal
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from kernelcore.models import PhotoIndex

N_TEST = 8


@pytest.fixture
def photos(corpus, tmp_path):
    shutil.copytree(corpus / "new", tmp_path / "photos")
    return tmp_path / "photos"


def test_a_page_answers_until_ctrl_c(model, photos, tmp_path):
    words = ["--model", model, "--photos", photos, "--index", tmp_path / "index", "--port", 0]
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelcore", "serve", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, (line, process.stderr.read())
        with urllib.request.urlopen(f"{found[0]}?q=a+dog", timeout=30) as answer:
            page = answer.read().decode()
        assert page.count("/photo/") >= N_TEST
        assert len(PhotoIndex.load(tmp_path / "index")) == N_TEST
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert errors == ""
    assert process.returncode in {0, 130}


def test_bad_addresses_are_refused_before_any_work(corpus, model, fails):
    words = ["serve", "--model", model, "--photos", corpus / "new"]
    error = fails(*words, "--host", "0.0.0.0")
    assert error.startswith("Error: --host: token must have at least")
    assert "at least 16 characters" in fails(*words, "--token", "short")
    assert "--false-rate must lie" in fails(*words, "--false-rate", 2, status=2)


def test_the_extra_is_named(corpus, model, fails, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    error = fails("serve", "--model", model, "--photos", corpus / "new")
    assert "kernelcore[web" in error
