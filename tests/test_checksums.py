"""No damage to a file of this package goes unnoticed."""

import random
import shutil

import numpy as np
import pytest

from kernelcore.captions import Vocabulary
from kernelcore.evaluation import evaluate
from kernelcore.kcca import KCCA
from kernelcore.lexical import WordKernel
from kernelcore.models import KCCARanker, PhotoFile, PhotoIndex, PhotoRanker

RNG = np.random.default_rng(0)
X = RNG.random((30, 6))
WORDS = [[["a", "dog", f"w{i % 7}"], ["the", f"w{i % 5}"]] for i in range(30)]
CAPTIONS = [[" ".join(own) for own in image] for image in WORDS]
N_DAMAGES = 40


def photo_ranker():
    settings = {"n_components": (4,), "regularization": (0.1,), "rng": 0}
    return PhotoRanker("precomputed", **settings).fit(X, CAPTIONS)


KINDS = {
    "captions": lambda: Vocabulary.from_captions(WORDS).encode(WORDS),
    "vocabulary": lambda: Vocabulary.from_captions(WORDS),
    "word kernel": lambda: WordKernel(("a", "b"), [[1.0, 0.5], [0.5, 1.0]]),
    "KCCA": lambda: KCCA(n_components=3).fit(X @ X.T, (X @ X.T) ** 2),
    "KCCA ranker": lambda: KCCARanker(
        image_kernel="precomputed", text_kernel="precomputed", n_components=3
    ).fit(X @ X.T, X @ X.T),
    "index": lambda: PhotoIndex(
        ["a", "b"],
        X[:2],
        "m",
        files=[PhotoFile(1, 2, "d" * 32, 3), PhotoFile(4, 5, "e" * 32, 6)],
    ),
    "photo ranker": photo_ranker,
    "result": lambda: evaluate(X @ X.T, caption_image=range(30), system="one", settings={}),
}


def damaged(content, rng):
    """Flip a bit, cut, swap two parts, overwrite with zeros, insert or remove bytes."""
    kind, n = rng.randrange(6), len(content)
    start = rng.randrange(n)
    stop = min(n, start + rng.choice([1, 4, 64, 512]))
    if kind == 0:
        return (
            content[:start]
            + bytes([content[start] ^ 1 << rng.randrange(8)])
            + content[start + 1 :]
        )
    if kind == 1:
        return content[:start]
    if kind == 2:
        return content[start:stop] + content[:start] + content[stop:]
    if kind == 3:
        return content[:start] + bytes(stop - start) + content[stop:]
    if kind == 4:
        return content[:start] + content[start:stop] * 2 + content[stop:]
    return content[:start] + content[stop:]


def files_of(path):
    """Contents of a file, or of the files of a folder, by path."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {file: file.read_bytes() for file in files if file.is_file()}


def loaded_or_error(cls, path):
    try:
        return cls.load(path)
    except (ValueError, OSError) as error:
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_an_error_that_names_the_file(kind, tmp_path):
    rng = random.Random(kind)
    whole = KINDS[kind]()
    path, again = tmp_path / "saved", tmp_path / "again"
    whole.save(path)
    files = files_of(path)
    whole.save(again)
    expected = list(files_of(again).values())
    for _ in range(N_DAMAGES):
        file = rng.choice(list(files))
        content = damaged(files[file], rng)
        if content == files[file]:
            continue
        file.write_bytes(content)
        found = loaded_or_error(type(whole), path)
        if isinstance(found, Exception):
            assert str(file) in str(found), file
        else:  # blanks, or what is no part of the content: the same is loaded
            shutil.rmtree(again) if again.is_dir() else again.unlink()
            found.save(again)
            assert list(files_of(again).values()) == expected, file
        file.write_bytes(files[file])
