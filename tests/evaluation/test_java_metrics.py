"""METEOR and SPICE end, whatever the command java does; here it is a script of ours."""

import json
import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses

from kernelcore.evaluation.caption_metrics import java, meteor, spice

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="the scripts have a first line of POSIX"
)

CAPTIONS, REFERENCES = [["a", "dog"], "  a   cat |||"], [["dogs"], ["cats", "the  cat"]]

FAILS = "print('Java has no memory', file=sys.stderr); sys.exit(1)"
HANGS = "time.sleep(1000)"
METEOR = """
asked = sys.stdin.read()
open("asked.txt", "a").write(asked + " ".join(sys.argv[1:]) + "\\n")
print("counts 1\\ncounts 2" if asked.startswith("SCORE") else "0.25\\n0.75\\n0.6")
"""
SPICE = """
asked, told = sys.argv[sys.argv.index("-cache") - 1], sys.argv[sys.argv.index("-out") + 1]
open("asked.json", "w").write(open(asked).read())
scores = [{"image_id": 1, "scores": {"All": {"f": None}}},
          {"image_id": 0, "scores": {"All": {"f": 0.5}}}]
open(told, "w").write(json.dumps(scores))
"""


@pytest.fixture
def run_java(tmp_path, monkeypatch):
    """Return a function that puts a script in the place of Java."""
    (tmp_path / "lib").mkdir()
    for name in java._SPICE_MODELS:
        (tmp_path / "lib" / name).touch()
    found = SimpleNamespace(__file__=str(tmp_path / "there.py"))
    monkeypatch.setattr(java, "require", lambda _: found)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def put(body):
        script = tmp_path / "java"
        first = f"#!{sys.executable}\nimport json, subprocess, sys, time\n"
        script.write_text(first + textwrap.dedent(body))
        script.chmod(0o755)
        return tmp_path

    return put


def test_meteor_asks_for_counts_and_then_for_scores(run_java):
    folder = run_java(METEOR)
    scores = meteor(CAPTIONS, REFERENCES)
    arguments = "-Xmx2G -jar meteor-1.5.jar - - -stdio -l en -norm"
    counted = ["SCORE ||| dogs ||| a dog", "SCORE ||| cats ||| the cat ||| a cat", arguments]
    scored = ["EVAL ||| counts 1 ||| counts 2", arguments]
    assert (folder / "asked.txt").read_text().splitlines() == counted + scored
    assert scores.captions.tolist() == [0.25, 0.75]
    assert scores.corpus == 0.6


def test_spice_reads_what_the_program_writes(run_java):
    folder = run_java(SPICE)
    scores = spice([*CAPTIONS[:1], "a  cat"], REFERENCES)
    assert json.loads((folder / "asked.json").read_text()) == [
        {"image_id": 0, "test": "a dog", "refs": ["dogs"]},
        {"image_id": 1, "test": "a cat", "refs": ["cats", "the cat"]},
    ]
    np.testing.assert_array_equal(scores.captions, [0.5, np.nan])
    assert np.isnan(scores.corpus)


def test_spice_names_models_that_are_missing(run_java):
    folder = run_java(SPICE)
    (folder / "lib" / java._SPICE_MODELS[1]).unlink()
    named = r"needs .*models\.jar in .*get_stanford_models"
    refuses(FileNotFoundError, named, spice, ["a"], [["a"]])


@pytest.mark.parametrize("metric", ["meteor", "spice"])
def test_ctrl_c_ends_the_call_and_the_process_exits(run_java, metric):
    folder = run_java(HANGS)
    script = f"""
        import os, signal, threading, time
        from types import SimpleNamespace
        from kernelcore.evaluation.caption_metrics import {metric}
        from kernelcore.evaluation.caption_metrics import java
        signal.signal(signal.SIGINT, signal.default_int_handler)
        java.require = lambda _: SimpleNamespace(__file__={str(folder / "there.py")!r})
        sent = []
        def press():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.3, press).start()
        try:
            {metric}(["a"], [["a"]])
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 1.5, done.stdout


@pytest.mark.parametrize("metric", [meteor, spice])
def test_a_program_that_does_not_answer_is_a_clear_error(run_java, monkeypatch, metric):
    name = metric.__name__.upper()
    run_java(FAILS)
    refuses(RuntimeError, f"{name}.*Java has no memory", metric, CAPTIONS, REFERENCES)
    monkeypatch.setattr(java, "_SECONDS", 0.3)
    run_java(HANGS)
    unread = ["dog " * 100_000]  # more than a pipe holds
    begin = time.monotonic()
    refuses(TimeoutError, name, metric, unread, [unread])
    assert time.monotonic() - begin < 8


def test_rubbish_is_a_clear_error(run_java):
    for told, named in (("rubbish", "METEOR.*rubbish"), ("1", "METEOR.*2.*0")):
        run_java(f"print({told!r})")
        refuses(RuntimeError, named, meteor, CAPTIONS, REFERENCES)
    for told in ("rubbish", "3", '[{"image_id": 5}]', '[{"image_id": 0, "scores": 1}]', "[]"):
        run_java(f"open(sys.argv[sys.argv.index('-out') + 1], 'w').write({told!r})")
        refuses(RuntimeError, "SPICE", spice, CAPTIONS, REFERENCES)
