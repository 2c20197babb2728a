"""One system on one split: its settings chosen on the development split, and its scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._files import load_tensors, save_tensors
from kernelcore._reading import check_mapping, check_tensor, reading
from kernelcore._validation import Array
from kernelcore.experiments.hodosh2013.corpus import SPLITS
from kernelcore.experiments.hodosh2013.grams import Grams
from kernelcore.experiments.hodosh2013.systems import System
from kernelcore.experiments.store import Store, key_of
from kernelcore.kcca import KCCAFactorization
from kernelcore.kernels import power
from kernelcore.models import KCCASelection, KCCASetting, NearestNeighbourRanker
from kernelcore.models.base import TASKS
from kernelcore.models.selection import select_with_powers

_KIND = "scores of a system"


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of both tasks, rows are images, with the settings that gave them."""

    annotation: Array
    search: Array
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Bring the settings into the form and order in which a file gives them back."""
        settings = json.loads(json.dumps(self.settings, sort_keys=True))
        object.__setattr__(self, "settings", settings)

    def save(self, path: Path) -> None:
        """Write everything as one file."""
        scores: dict[str, Array] = {task: getattr(self, task) for task in TASKS}
        save_tensors(path, _KIND, scores, {"settings": self.settings})

    @classmethod
    def load(cls, path: Path) -> Scores:
        """Read what `save` wrote."""
        with reading(path):
            tensors, metadata = load_tensors(path, _KIND)
            scores = tensors.exactly(*TASKS)
            shape = scores["annotation"].shape
            for task in TASKS:
                check_tensor(task, scores[task], (None, None))
                check_tensor(task, scores[task], shape)
            return cls(**scores, settings=check_mapping("settings", metadata["settings"]))


class Scorer:
    """Rank the photos and captions of a split by one system.

    Parameters
    ----------
    system : System
    split : str
        The split to rank.
    grams : Grams
    store : Store
        Keeps the scores.
    ranked : Grams, optional
        The same with another pool, whose captions of the split are ranked; settings are
        chosen by the pool of `grams` in any case.
    """

    def __init__(
        self,
        system: System,
        split: str,
        grams: Grams,
        store: Store,
        *,
        ranked: Grams | None = None,
    ) -> None:
        self.system, self._split = system, split
        self._grams, self._store = grams, store
        self._ranked = grams if ranked is None else ranked
        self._key = key_of(
            grams.key(system, *SPLITS[:2]), self._ranked.key(system, self._split)
        )

    @property
    def is_done(self) -> bool:
        """Whether the scores have been kept."""
        return self._store.has("scores", self._key)

    def prepare_kernels(self) -> None:
        """Compute the Gram matrices that are not yet kept."""
        learned_from = SPLITS[:2] if self.system.ranker == "kcca" else SPLITS[:1]
        for grams, split in (*((self._grams, s) for s in learned_from), self._new):
            grams.image(split, self.system)
            grams.text(split, self.system)

    def scores(self) -> Scores:
        """Return the scores, computed unless they have been kept."""
        rank = self._by_kcca if self.system.ranker == "kcca" else self._by_neighbours
        return self._store.value("scores", self._key, rank, Scores.save, Scores.load)

    @property
    def _new(self) -> tuple[Grams, str]:
        return self._ranked, self._split

    def _by_neighbours(self) -> Scores:
        ranker = NearestNeighbourRanker("precomputed", "precomputed")
        known, new = (
            (grams.image(split, self.system), grams.text(split, self.system))
            for grams, split in ((self._grams, "train"), self._new)
        )
        ranker.fit(*known)
        scores = {task: ranker.scores(*new, task=task) for task in TASKS}
        return Scores(**scores, settings=asdict(self.system))

    def _by_kcca(self) -> Scores:
        exponent, selection = self._select()
        photos = power(self._ranked.image(self._split, self.system), exponent)
        captions = self._ranked.text(self._split, self.system)
        n_threads = self._grams.n_threads
        scores = {
            task: selection.scores(photos, captions, task=task, n_threads=n_threads)
            for task in TASKS
        }
        settings: dict[str, Any] = {
            **asdict(self.system),
            "grid": asdict(self._grams.grid),
            "power": exponent,
            "best_sum_on_dev": selection.recalls.sum(axis=(1, 2)).max(),
            **{task: [s._asdict() for s in selection.winners(task)] for task in TASKS},
        }
        return Scores(**scores, settings=settings)

    def _select(self) -> tuple[float, KCCASelection]:
        """Choose the settings of kernel CCA on the development split, the power first."""
        tried = self._store.json(
            "selection", self._grams.key(self.system, *SPLITS[:2]), self._try_all
        )
        best = max(tried, key=lambda one: np.sum(one["recalls"], axis=(1, 2)).max())
        settings = [KCCASetting.from_json(setting) for setting in best["settings"]]
        recalls = np.array(best["recalls"])
        factorization = KCCAFactorization(
            self._grams.image_basis(best["power"], self.system),
            self._grams.text_basis(self.system),
        )
        return best["power"], KCCASelection(factorization, settings, recalls)

    def _try_all(self) -> list[dict[str, Any]]:
        """Recalls on the development split of each power and setting of the grid."""
        grams, grid = self._grams, self._grams.grid
        caption_basis = grams.text_basis(self.system)
        # A ridge needs a constant diagonal; an image without words spoils it.
        ridges = grid.ridge if caption_basis.diagonal is not None else (1.0,)
        selections = select_with_powers(
            grid.powers,
            lambda exponent: KCCAFactorization(
                grams.image_basis(exponent, self.system), caption_basis
            ),
            grams.image("dev", self.system),
            grams.text("dev", self.system),
            n_components=grid.n_components,
            regularization=grid.regularization,
            ridge=[(1.0, d) for d in ridges],
            correlation_power=grid.correlation_power,
            n_threads=grams.n_threads,
            progress=grams.progress,
        )
        return [
            {
                "power": exponent,
                "settings": [setting._asdict() for setting in selection.settings],
                "recalls": selection.recalls.tolist(),
            }
            for exponent, selection in selections
        ]
