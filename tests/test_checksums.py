"""No two writers of a file mix.

``python test_checksums.py FOLDER N`` is one of these writers.
"""

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

from kernelcore.captions import Vocabulary
from kernelcore.evaluation import evaluate
from kernelcore.kcca import KCCA
from kernelcore.models import PhotoFile, PhotoIndex, PhotoRanker

RNG = np.random.default_rng(0)
X = RNG.random((30, 6))
WORDS = [[["a", "dog", f"w{i % 7}"], ["the", f"w{i % 5}"]] for i in range(30)]
CAPTIONS = [[" ".join(own) for own in image] for image in WORDS]
FILES = [PhotoFile(1, 2, "d" * 32), PhotoFile(4, 5, "e" * 32)]


def photo_ranker(n):
    settings = {"n_components_grid": (4,), "regularization_grid": (0.1,), "rng": n}
    return PhotoRanker("precomputed", **settings).fit(X, CAPTIONS)


KINDS = {  # each in several versions
    "captions": lambda n: Vocabulary.from_captions(WORDS).encode(WORDS[n:]),
    "vocabulary": lambda n: Vocabulary.from_captions(WORDS[n:]),
    "KCCA": lambda n: KCCA(n_components=3 + n).fit(X @ X.T, (X @ X.T) ** 2),
    "index": lambda n: PhotoIndex(["a", f"b{n}"], X[:2], "m", files=FILES),
    "photo ranker": photo_ranker,
    "result": lambda n: evaluate(X @ X.T, caption_image=range(30), system=f"{n}", settings={}),
}


def saving(whole):
    """Return the function that saves a value and replaces another."""
    is_folder = isinstance(whole, (PhotoIndex, PhotoRanker))
    return partial(whole.save, overwrite=True) if is_folder else whole.save


def content(path):
    """All that a saved file or folder says, without the names that a writer draws."""
    drawn = rb'"(parts|crc32)": "[0-9a-f]+"'
    return [re.sub(drawn, b"", file) for file in files_of(path).values()]


def files_of(path):
    """Contents of a file, or of the files of a folder, by path."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {file: file.read_bytes() for file in files if file.is_file()}


def test_two_writers_of_one_path_do_not_mix(tmp_path):
    """While they write, readers find what one of them writes, and at the end it is there."""
    values = {kind: [make(n) for n in (0, 1)] for kind, make in KINDS.items()}
    expected = {}
    for kind, pair in values.items():
        for n, value in enumerate(pair):
            value.save(tmp_path / f"{kind} {n}")
            expected[kind, n] = content(tmp_path / f"{kind} {n}")
        saving(pair[0])(tmp_path / kind)
    command = [sys.executable, __file__, tmp_path]
    writers = [subprocess.Popen([*command, str(n)]) for n in (0, 1)]
    n_read = 0
    while True:
        are_done = all(writer.poll() is not None for writer in writers)
        for kind, pair in values.items():
            found = type(pair[0]).load(tmp_path / kind)
            saving(found)(tmp_path / "found")
            assert content(tmp_path / "found") in (expected[kind, 0], expected[kind, 1]), kind
            path = tmp_path / "found"
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            n_read += 1
        if are_done:
            break
    assert [writer.returncode for writer in writers] == [0, 0]
    assert n_read > 2 * len(KINDS)


if __name__ == "__main__":
    for kind, make in KINDS.items():
        save = saving(make(int(sys.argv[2])))
        for _ in range(20):
            save(Path(sys.argv[1]) / kind)
