"""Kernel CCA of captions and features of photos: a baseline that the paper does not have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import as_real_array, check_choice, check_finite
from kernelcore._threads import Progress
from kernelcore.captions.normalize import english_pipeline
from kernelcore.experiments.corpus import SPLITS, Corpus, find_outside_corpus
from kernelcore.experiments.kernel_systems import Grid, System
from kernelcore.experiments.kernels import (
    BASES,
    KERNELS,
    Kernels,
    feature_steps,
)
from kernelcore.experiments.ranking import score
from kernelcore.experiments.scores import Scores
from kernelcore.experiments.steps import Store, compute, compute_side_by_side, pending
from kernelcore.experiments.words import (
    STAGE,
    Lexicon,
    Resources,
    Texts,
)

POOL = 2
"""Number of the caption of each image on which settings are chosen. A system of one caption is
also trained on this caption."""

KERNEL_GRID = Grid(
    powers=(1.0,),
    n_components=(100, 150, 200, 300, 400),
    regularization=tuple(
        (photos, captions) for photos in (0.3, 1.0, 3.0) for captions in (0.3, 1.0, 3.0)
    ),
    ridge=(1.0,),
    correlation_power=(1.0, 2.0, 3.0),
)
"""Settings that are tried on the development split. The width of the kernel of photos is fixed:
half of the mean squared distance and twice as much do as well."""


class KernelModels:
    """Rank all captions of a split for its photos, and all photos for its captions.

    Photos are compared by a radial basis function of their features. For each task the five
    best settings on the development split by R@1, R@5 and R@10 are combined by Borda's count.

    Parameters
    ----------
    corpus : Corpus
    features : array_like of shape (n_photos, n_features)
        A description of the photos of ``corpus.files``, in their order; see
        `kernelcore.experiments.corpus.joined`.
    store : Store
    systems : iterable of System
        Systems whose resources must be there.
    grid : Grid, default KERNEL_GRID
    outside_corpus : path, optional
        Tagged text for word similarities; the default is ``brown_tagged.txt`` in the folder of
        the corpus or in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions; the default is an English one that is installed.
    n_threads : int, optional
    progress : bool or callable, default False

    Raises
    ------
    ValueError
        If `features` does not have one row per photo, or an image of the three splits has
        no caption number `POOL`.
    FileNotFoundError, MissingExtraError
        If photos are missing, or an outside corpus or a pipeline that the systems need.
    """

    def __init__(
        self,
        corpus: Corpus,
        features: npt.ArrayLike,
        store: Store,
        systems: Iterable[System],
        *,
        grid: Grid = KERNEL_GRID,
        outside_corpus: str | os.PathLike[str] | None = None,
        spacy_model: str | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> None:
        resources = Resources(
            os.devnull,  # no system here reads WordNet
            outside_corpus or find_outside_corpus(corpus.folder),
            spacy_model or english_pipeline(),
        )
        resources.check(similarity for system in systems for similarity in system.lexical)
        rows = check_finite("features", as_real_array("features", features, ndim=2))
        if len(rows) != len(corpus.files):
            raise ValueError(
                f"features must have one row for each of {len(corpus.files)} photos, "
                f"got {len(rows)}"
            )
        texts = Texts.of(corpus, spacy_model=resources.spacy_model, progress=progress)
        for split in SPLITS:
            texts.check_pool(split, POOL)
        place = {path: i for i, path in enumerate(corpus.files)}
        order = np.array([place[path] for path in texts.dataset.paths if path is not None])
        self._order = {s: np.argsort(order[texts.dataset.split(s)]) for s in SPLITS[1:]}
        self._run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        self._kernels = Kernels(
            texts,
            feature_steps(texts.dataset, rows[order], store),
            Lexicon(texts, resources, store, progress=progress),
            store,
            grid,
            pool=POOL,
            **self._run,
        )

    def scores(self, system: System, split: str) -> Scores:
        """Train a system and score the photos and captions of a split, as cached steps.

        Parameters
        ----------
        system : System
        split : {"dev", "test"}

        Returns
        -------
        Scores
            Rows are the photos of the split in the order of ``corpus.files``, columns the
            captions of ``corpus.pools[split]``. They come as they are and corrected for hubs.
        """
        check_choice("split", split, tuple(self._order))
        whole = self._kernels.with_all_captions()
        step = score(system, split, self._kernels, ranked=whole)
        needed = pending([step])
        compute(one for one in needed if one.stage in (STAGE, KERNELS))
        compute_side_by_side((one for one in needed if one.stage == BASES), **self._run)
        scores, rows = step.value(), self._order[split]
        ordered = [one[rows] for _, *pair in scores.variants("") for one in pair]
        return replace(
            scores,
            annotation=ordered[0],
            search=ordered[1],
            corrected=(ordered[2], ordered[3]),
        )
