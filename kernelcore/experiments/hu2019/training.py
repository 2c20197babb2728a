"""Systems trained and kept, each with its scores of a split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore.deep import History
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hu2019.systems import SYSTEMS
from kernelcore.experiments.sentence_training import SentenceTraining
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
        self._params, self._n_threads = params, n_threads
        self._training = SentenceTraining(corpus, store, n_threads, progress)
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
        images = self._regions if system.reads == "regions" else self._photos
        ranker = self._training.ranker(
            system.kind(**params),
            images,
            about=[system.kind.__name__, params],
            identity=self._keys[system.reads],
            from_word_vectors="n_embedding" not in system.options,
        )
        own = np.unique(pools[split].photos)
        asked = self._regions.select(own) if system.reads == "regions" else self._photos[own]
        scores = ranker.scores(asked, pools[split].texts, n_threads=self._n_threads)
        settings = {**params, "best_epoch": ranker.history_.best_epoch + 1}
        return Scored(scores, scores, settings, ranker.history_)
