"""What stands around the deep models."""

import subprocess
import sys

import pytest


def python(code):
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_without_torch_the_extra_is_named():
    done = python("import sys; sys.modules['torch'] = None; import kernelcore.deep")
    assert "MissingExtraError: this needs torch" in done.stderr
    assert 'pip install "kernelcore[deep]' in done.stderr


def test_torch_is_loaded_with_the_deep_models_alone():
    pytest.importorskip("torch")
    done = python(
        "import sys, kernelcore; assert 'deep' in dir(kernelcore)\n"
        "import kernelcore.models, kernelcore.lexical, kernelcore.report, kernelcore.images\n"
        "assert 'torch' not in sys.modules\n"
        "kernelcore.deep\n"
        "assert 'torch' in sys.modules"
    )
    assert done.returncode == 0, done.stderr
