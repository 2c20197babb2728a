"""Systems trained and kept, each with its scores of a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore.deep import FragmentRanker, History
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.karpathy2014.corpus import Captions
from kernelcore.experiments.karpathy2014.systems import SYSTEMS
from kernelcore.experiments.store import Store, key_of
from kernelcore.images import RegionFeatures


@dataclass(frozen=True)
class Scored:
    """A trained system.

    Attributes
    ----------
    ranker : FragmentRanker
    captions : str
        What captions are cut into for it.
    scores : ndarray of float32, shape (n_photos, n_captions)
        Photos of the split in the order of their files, and all captions.
    settings : dict of str to Any
    """

    ranker: FragmentRanker
    captions: str
    scores: npt.NDArray[np.float32]
    settings: dict[str, Any]

    @property
    def history(self) -> History:
        """Losses of each epoch."""
        return self.ranker.history_


class Training:
    """Trains systems on the training split and scores others.

    Parameters
    ----------
    corpus : Corpus
    captions : Captions
    regions : RegionFeatures
        Of all photos of the corpus, in the order of its files.
    store : Store
        Keeps the trained models and a checkpoint of the one in hand.
    params : mapping of str to Any
        Parameters that all systems share.
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        corpus: Corpus,
        captions: Captions,
        regions: RegionFeatures,
        store: Store,
        *,
        params: Mapping[str, Any],
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._corpus, self._captions, self._regions = corpus, captions, regions
        self._store, self._params = store, params
        self._n_threads, self._progress = n_threads, progress
        # what the features depend on: boxes, and the network, by what it makes of whole photos
        self._identity = key_of(regions.boxes, regions.features[regions.offsets[:-1]])

    def run(self, name: str, split: str) -> Scored:
        """Train a system, unless it has been, and score the photos and captions of a split."""
        system = SYSTEMS[name]
        params = {**self._params, **system.options}
        key = key_of(
            params,
            self._identity,
            self._corpus.word_vectors.vectors,
            *(self._captions.key(system.captions, part) for part in ("train", "dev")),
        )
        ranker = self._store.value(
            "model",
            key,
            lambda: self._train(FragmentRanker(**params), system.captions, key),
            FragmentRanker.save,
            FragmentRanker.load,
        )
        photos = np.unique(self._corpus.pools[split].photos)
        scores = ranker.scores(
            self._regions.select(photos),
            self._captions.of(system.captions, split),
            n_threads=self._n_threads,
        )
        settings = {
            **params,
            "captions": system.captions,
            "best_epoch": ranker.history_.best_epoch + 1,
        }
        return Scored(ranker, system.captions, scores, settings)

    def _train(self, ranker: FragmentRanker, kind: str, key: str) -> FragmentRanker:
        train, dev = (self._corpus.pools[part].photos for part in ("train", "dev"))
        return ranker.fit(
            self._regions,
            self._captions.of(kind, "train"),
            caption_image=train,
            word_vectors=self._corpus.word_vectors,
            dev=(self._regions, self._captions.of(kind, "dev"), dev),
            folder=self._store.unfinished(f"training-{key}"),
            n_threads=self._n_threads,
            progress=self._progress,
        )
