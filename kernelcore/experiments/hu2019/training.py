"""Systems trained and kept, each with its scores of a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore.deep import History
from kernelcore.deep.sentence_ranker import SentenceRanker
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hu2019.systems import SYSTEMS, System
from kernelcore.experiments.store import Store, key_of
from kernelcore.images import RegionFeatures

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Scored:
    """A system's scores of a split, rows are its photos and columns all its captions.

    Attributes
    ----------
    annotation, search : ndarray of float32, shape (n_photos, n_captions)
        Photos in the order of the corpus' files; the same array where both tasks have the
        same scores.
    settings : mapping of str to Any
    history : History or None
        How training went, of a system that is trained by epochs.
    """

    annotation: Scores
    search: Scores
    settings: Mapping[str, Any]
    history: History | None = None


class Training:
    """Trains systems on the training split and scores others.

    Parameters
    ----------
    corpus : Corpus
    photos : ndarray of float32, shape (n_photos, n_features)
        Features of all photos of the corpus as wholes, in the order of its files.
    regions : RegionFeatures
        Of the same photos.
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
        photos: npt.NDArray[np.float32],
        regions: RegionFeatures,
        store: Store,
        *,
        params: Mapping[str, Any],
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._corpus, self._photos, self._regions = corpus, photos, regions
        self._store, self._params = store, params
        self._n_threads, self._progress = n_threads, progress
        # what regions depend on: boxes, and the network, by what it makes of whole photos
        self._keys = {
            "photos": key_of(photos),
            "regions": key_of(regions.boxes, regions.features[regions.offsets[:-1]]),
        }

    def run(self, name: str, split: str) -> Scored:
        """Train a system, unless it has been, and score the photos and captions of a split."""
        system = SYSTEMS[name]
        params = {"n_epochs": system.n_epochs, **self._params, **system.options}
        pools = self._corpus.pools
        key = key_of(
            [system.kind.__name__, params],
            self._keys[system.reads],
            self._corpus.word_vectors.vectors,
            *([pools[part].texts, pools[part].photos.tolist()] for part in ("train", "dev")),
        )
        ranker = self._store.value(
            "model",
            key,
            lambda: self._train(system.kind(**params), self._images(system), key),
            system.kind.save,
            system.kind.load,
        )
        own = np.unique(pools[split].photos)
        images = self._regions.select(own) if system.reads == "regions" else self._photos[own]
        scores = ranker.scores(images, pools[split].texts, n_threads=self._n_threads)
        settings = {**params, "best_epoch": ranker.history_.best_epoch + 1}
        return Scored(scores, scores, settings, ranker.history_)

    def _images(self, system: System) -> Any:
        return self._regions if system.reads == "regions" else self._photos

    def _train(self, ranker: SentenceRanker, images: Any, key: str) -> SentenceRanker:
        train, dev = (self._corpus.pools[part] for part in ("train", "dev"))
        return ranker.fit(
            images,
            train.texts,
            caption_image=train.photos,
            word_vectors=self._corpus.word_vectors,
            dev=(images, dev.texts, dev.photos),
            folder=self._store.folder / f"training-{key}",
            n_threads=self._n_threads,
            progress=self._progress,
        )
