"""Targets that misbehave in every way that the runner must notice."""

import ctypes
import os
import time
from pathlib import Path

import numpy as np

from fuzz.target import Target


def one_in(rng: np.random.Generator, n: int) -> bool:
    return bool(rng.integers(n) == 0)


def well(rng: np.random.Generator, folder: Path) -> None:
    (folder / "file").write_bytes(rng.bytes(10))
    assert len(list(folder.iterdir())) == 1


def raises(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 3):
        raise KeyError("params")


def raises_twice(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 3):
        raise KeyError("params")
    if one_in(rng, 3):
        raise IndexError("of another cause")


def crashes(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 20):
        ctypes.string_at(0)


def hangs(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 5):
        time.sleep(1000)


def eats_memory(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 5):
        np.ones(2**30, np.uint8)


def leaves(rng: np.random.Generator, folder: Path) -> None:
    if one_in(rng, 5):
        os._exit(0)


def warns(rng: np.random.Generator, folder: Path) -> None:
    np.float32(1e38) * np.float32(10)


TARGETS = tuple(
    Target(function.__name__, "reader", function)
    for function in (well, raises, raises_twice, crashes, hangs, eats_memory, leaves, warns)
)
