"""The package where modules of POSIX are missing, as on Windows: a simulation of that alone."""

import json
import subprocess
import sys

import pytest
from programs import output_of

WITHOUT = """
import os, sys
import multiprocessing, random, threading
sys.modules["fcntl"] = sys.modules["resource"] = None
register = os.register_at_fork
del os.register_at_fork
import kernelcore._store, kernelcore._threads
os.register_at_fork = register  # packages that were built for POSIX call it
"""


def test_every_module_is_imported():
    names = output_of(f"""{WITHOUT}
import importlib, pkgutil
import kernelcore

for module in pkgutil.walk_packages(kernelcore.__path__, "kernelcore."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:  # of an extra
            if error.name in {{"fcntl", "resource"}}:
                raise
print(*sys.modules)
""")
    assert {"kernelcore._store", "kernelcore.models"} <= set(names.split())


def test_files_and_folders_are_replaced(tmp_path):
    shown = output_of(f"""{WITHOUT}
from pathlib import Path
from kernelcore import _store

folder = Path({str(tmp_path)!r})
for content in ("old", "new"):
    with _store.replacing(folder / "file.txt") as temporary:
        temporary.write_text(content)
    _store.write_folder(
        folder / "mine", "about.json", {{}}, lambda parts: (parts / "text").write_text(content)
    )
print((folder / "file.txt").read_text())
read = lambda about, parts: (parts / "text").read_text()
print(_store.read_folder(folder / "mine", "about.json", read))
print(*sorted(path.name for path in folder.iterdir()))
""")
    assert shown.split() == ["new", "new", "file.txt", "mine"]


def test_uploads_are_not_decoded_by_a_process_without_limits():
    pytest.importorskip("cv2")
    program = f"{WITHOUT}\nfrom kernelcore.web.uploads import main\nmain()"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=b"", capture_output=True, check=True)
    about = json.loads(done.stdout)
    assert about["status"] == 501
    assert "cannot limit" in about["reason"]
