"""Scores of one system on one split, and their evaluation in a pool of captions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._store import check_mapping, check_tensor, load_tensors, reading, save_tensors
from kernelcore.evaluation import Result, evaluate
from kernelcore.experiments.corpus import Pool
from kernelcore.models.base import TASKS

_KIND = "scores of a system"
_NAMES = (*TASKS, *(f"corrected_{task}" for task in TASKS))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of both tasks for one split, with the settings of the system.

    Attributes
    ----------
    annotation, search : ndarray of shape (n_photos, n_captions)
        The same array where both tasks have the same scores.
    settings : mapping of str to Any
    corrected : tuple of two such ndarrays, or None
        The scores of both tasks after `kernelcore.models.hub_corrected`, with training items as
        the bank.
    """

    annotation: Array
    search: Array
    settings: Mapping[str, Any]
    corrected: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        """Convert the settings as JSON does, so that a file does not change them."""
        settings = json.loads(json.dumps(self.settings, sort_keys=True))
        object.__setattr__(self, "settings", settings)

    def variants(self, name: str) -> Iterator[tuple[str, Array, Array]]:
        """Yield the name and both scores of the system, then those corrected for hubs."""
        yield name, self.annotation, self.search
        if self.corrected is not None:
            yield hub_corrected_name(name), *self.corrected

    def save(self, path: Path) -> None:
        """Write scores and settings to one file."""
        scores = self.annotation, self.search, *(self.corrected or ())
        arrays = dict(zip(_NAMES, scores, strict=False))
        save_tensors(path, _KIND, arrays, {"settings": self.settings})

    @classmethod
    def load(cls, path: Path) -> Scores:
        """Read a file that `save` wrote."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            scores = tensors.exactly(*_NAMES[: len(tensors)])
            shape = scores["annotation"].shape[:2]
            first, second, *others = (check_tensor(n, own, shape) for n, own in scores.items())
            corrected = (others[0], others[1]) if others else None
            settings = check_mapping("settings", metadata["settings"])
            return cls(first, second, settings, corrected)


def printed(system: str) -> str:
    """Name of a system with the paper's own choices."""
    return f"{system}, as printed"


def hub_corrected_name(system: str) -> str:
    """Name of a system whose scores are corrected for hubs."""
    return f"{system}, hubs corrected"


def evaluate_pool(
    scores: npt.ArrayLike,
    pool: Pool,
    *,
    search: npt.ArrayLike | None = None,
    number: int | None = None,
    **labels: Any,
) -> Result:
    """Rank all captions of a split, or the captions of one number.

    Parameters
    ----------
    scores : array_like of shape (n_photos, n_captions)
        Rows are the photos of the pool in the order of `Corpus.files`.
    pool : Pool
    search : array_like of shape (n_photos, n_captions), optional
        Scores of search, if they differ.
    number : int, optional
        Number of the one caption of each photo in the pool; by default all are in it.
    **labels
        Arguments of `kernelcore.evaluation.evaluate`.

    Returns
    -------
    Result
    """
    columns = np.flatnonzero((number is None) | (pool.numbers == number))
    owners = np.unique(pool.photos, return_inverse=True)[1][columns]
    ranked, places = np.unique(owners, return_inverse=True)

    def part(matrix: npt.ArrayLike) -> Array:
        return np.asarray(matrix)[ranked][:, columns]

    return evaluate(
        part(scores),
        None if search is None else part(search),
        caption_image=places,
        pool="all captions" if number is None else f"caption #{number}",
        **labels,
    )
