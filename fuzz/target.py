"""What a fuzz target is: one execution, determined by its random numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np


class Target(NamedTuple):
    """One function under test.

    Attributes
    ----------
    name : str
        What is tested, such as ``kernels.word_sequence`` or ``datasets.load_flickr``.
    kind : {"compiled", "reader", "images"}
        Compared with its reference, or given damaged files.
    run : callable
        ``run(rng, folder)`` does one execution with the numbers of `rng` and an empty folder
        for its files. It returns nothing where all is well, and raises where it found a
        fault: an answer that differs, an exception that the function does not document.
    """

    name: str
    kind: Literal["compiled", "reader", "images"]
    run: Callable[[np.random.Generator, Path], None]
