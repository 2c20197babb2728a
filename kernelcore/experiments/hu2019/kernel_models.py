"""Kernel CCA of captions and features of photos: the baseline that these papers do not have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelcore._extras import MissingExtraError
from kernelcore._progress import Progress
from kernelcore._validation import Array, as_real_array, check_choice, check_finite
from kernelcore.captions.normalize import english_pipeline
from kernelcore.experiments import hodosh2013
from kernelcore.experiments.corpora import SPLITS, Corpus
from kernelcore.experiments.hodosh2013.corpus import Texts
from kernelcore.experiments.hodosh2013.grams import Grams
from kernelcore.experiments.hodosh2013.lexicon import Lexicon, Resources, find_outside_corpus
from kernelcore.experiments.hodosh2013.photo_kernels import FeatureKernels
from kernelcore.experiments.hodosh2013.scorer import Scorer, Scores
from kernelcore.experiments.store import Store
from kernelcore.images import RegionFeatures, square_roots

POOL = 2
"""Number of the caption of each image on which settings are chosen; the one that images of a
system of one caption have in training too."""

KERNEL_SYSTEMS: Mapping[str, hodosh2013.System] = {
    "KCCA, one caption": hodosh2013.SYSTEMS["Tri1"],
    "KCCA, Tri5Sem": hodosh2013.SYSTEMS["Tri5Sem"],
}
"""The caption kernels of Hodosh et al. 2013 for training images with one caption, and their
best one, for images with all."""

KERNEL_GRID = hodosh2013.Grid(
    powers=(1.0,),
    n_components=(100, 150, 200, 300, 400),
    regularization=tuple(
        (photos, captions) for photos in (0.3, 1.0, 3.0) for captions in (0.3, 1.0, 3.0)
    ),
    ridge=(1.0,),
    correlation_power=(1.0, 2.0, 3.0),
)
"""Settings that are tried on the development split. The width of the kernel of photos, the mean
squared distance, is not tried: half of it and twice as much do as well."""


class KernelModels:
    """Rank all captions of a split for its photos, and the other way round.

    Photos are compared by a radial basis function of their features. For each task the five
    best settings on the development split by R@1, R@5 and R@10 are combined by Borda's count.

    Parameters
    ----------
    data : path
        Folder of the corpus. What it does not hold beside the captions is missed by the
        systems in `left_out` alone.
    corpus : Corpus
        What `data` holds.
    features : sequence of array_like of shape (n_photos, n_features)
        One or several descriptions of the photos of ``corpus.files``, in their order; see
        `joined`.
    store : Store
        Keeps the Gram matrices, their bases, what was chosen, and the scores.
    grid : Grid, default KERNEL_GRID
    outside_corpus : path, optional
        Tagged text for word similarities; the default is ``brown_tagged.txt`` in `data` or
        in ``brown`` beside it.
    spacy_model : str, optional
        Pipeline that tags captions; the default is an English one that is installed.
    n_threads : int, optional
    progress : bool or callable, default False

    Attributes
    ----------
    systems : dict of str to System
        Those of `KERNEL_SYSTEMS` that can run here.
    left_out : dict of str to str
        What the others lack, in words.

    Raises
    ------
    ValueError
        If a description does not have one row per photo, the corpus is not that of `data`,
        or an image of the three splits has no caption number `POOL`.
    FileNotFoundError
        If photos are missing, or an outside corpus that is named.
    """

    def __init__(
        self,
        data: str | os.PathLike[str],
        corpus: Corpus,
        features: Sequence[npt.ArrayLike],
        store: Store,
        *,
        grid: hodosh2013.Grid = KERNEL_GRID,
        outside_corpus: str | os.PathLike[str] | None = None,
        spacy_model: str | None = None,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> None:
        resources = Resources(
            os.devnull,  # no system here asks WordNet
            outside_corpus or find_outside_corpus(Path(data)),
            spacy_model or english_pipeline(),
        )
        if outside_corpus is not None:
            resources.corpus_path()
        self.left_out = _what_lacks(resources)
        self.systems = {n: s for n, s in KERNEL_SYSTEMS.items() if n not in self.left_out}
        rows = joined(features, n_photos=len(corpus.files))
        texts = Texts.read(Path(data), spacy_model=resources.spacy_model, progress=progress)
        for split in SPLITS:
            texts.check_pool(split, POOL)
            _check_captions(texts, corpus, split)
        place = {path: i for i, path in enumerate(corpus.files)}
        own = np.array([place[path] for path in texts.dataset.paths if path is not None])
        self._order = {s: np.argsort(own[texts.dataset.split(s)]) for s in SPLITS[1:]}
        self._store = store
        self._grams = Grams(
            texts,
            FeatureKernels(texts.dataset, rows[own], form="rbf"),
            Lexicon(texts, resources, store, progress=progress),
            store,
            grid,
            pool=POOL,
            n_threads=n_threads,
            progress=progress,
        )

    def scores(self, name: str, split: str) -> Scores:
        """Train a system, unless it has been, and score the photos and captions of a split.

        Parameters
        ----------
        name : str
            One of `systems`.
        split : {"dev", "test"}

        Returns
        -------
        Scores
            Of each task; rows are the photos of the split in the order of ``corpus.files``,
            columns the captions of ``corpus.pools[split]``.
        """
        check_choice("name", name, tuple(self.systems))
        check_choice("split", split, tuple(self._order))
        system, whole = self.systems[name], self._grams.with_all_captions()
        scorer = Scorer(system, split, self._grams, self._store, ranked=whole)
        if not scorer.is_done:
            scorer.prepare_kernels()
            self._grams.prepare_bases([system])
        scores, rows = scorer.scores(), self._order[split]
        return replace(scores, annotation=scores.annotation[rows], search=scores.search[rows])


def joined(features: Sequence[npt.ArrayLike], *, n_photos: int) -> Array:
    """Put several descriptions of photos side by side, so that each counts the same.

    Of each the `kernelcore.images.square_roots` are taken.

    Parameters
    ----------
    features : sequence of array_like of shape (n_photos, n_features)
    n_photos : int

    Returns
    -------
    ndarray of float32, shape (n_photos, total number of features)
        A description of zeros stays zeros.
    """
    if not len(features):
        raise ValueError("features must hold at least one description of the photos, got none")
    parts = []
    for i, one in enumerate(features):
        name = f"features[{i}]"
        rows = check_finite(name, as_real_array(name, one, ndim=2)).astype(np.float32)
        if len(rows) != n_photos:
            raise ValueError(
                f"{name} must have one row for each of {n_photos} photos, got {len(rows)}"
            )
        parts.append(square_roots(rows))
    return np.hstack(parts)


def mean_of_regions(regions: RegionFeatures) -> Array:
    """Mean features of the regions of each photo, one of the descriptions for `joined`."""
    counts = np.diff(regions.offsets).astype(np.float32)
    sums: Array = np.add.reduceat(regions.features, regions.offsets[:-1], axis=0)
    means: Array = sums / counts[:, None]
    return means


def _what_lacks(resources: Resources) -> dict[str, str]:
    """Find what each system needs and does not have."""
    lacks = {}
    for name, system in KERNEL_SYSTEMS.items():
        try:
            resources.check(system.lexical)
        except (FileNotFoundError, MissingExtraError, ValueError) as error:
            lacks[name] = str(error)
    return lacks


def _check_captions(texts: Texts, corpus: Corpus, split: str) -> None:
    own = [text for i in texts.dataset.split(split) for text in texts.dataset.captions[i]]
    if own != list(corpus.pools[split].texts):
        raise ValueError(f"corpus must hold the captions of data, and those of {split} differ")
