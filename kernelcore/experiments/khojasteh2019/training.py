"""Systems trained and kept, each with what it finds in a split."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore.deep import History, OrderRanker, join_captions
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.khojasteh2019.ordering import Ordering
from kernelcore.experiments.khojasteh2019.systems import SYSTEMS
from kernelcore.experiments.sentence_training import SentenceTraining
from kernelcore.experiments.store import Store
from kernelcore.images import RegionFeatures


@dataclass(frozen=True)
class Scored:
    """What a system finds in a split; photos are in the order of the corpus' files.

    Attributes
    ----------
    joined : ndarray of float32, shape (n_photos, n_photos)
        Scores of photos and texts of joined captions; text i belongs to photo i.
    captions : ndarray of float32, shape (n_photos, n_captions)
        Scores of photos and single captions.
    orderings : mapping of str to Ordering
        How true and other pairs are ordered, of either kind of texts.
    settings : mapping of str to Any
    history : History
    """

    joined: npt.NDArray[np.float32]
    captions: npt.NDArray[np.float32]
    orderings: Mapping[str, Ordering]
    settings: Mapping[str, Any]
    history: History


class Training:
    """Trains systems on the training split and asks them about others.

    Parameters
    ----------
    corpus : Corpus
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
        regions: RegionFeatures,
        store: Store,
        *,
        params: Mapping[str, Any],
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._corpus, self._params, self._n_threads = corpus, params, n_threads
        self._photos = np.asarray(regions.features[regions.offsets[:-1]])
        self._training = SentenceTraining(corpus, store, n_threads, progress)

    def run(self, name: str, split: str) -> Scored:
        """Train a system, unless it has been, and ask it about a split."""
        system = SYSTEMS[name]
        n_epochs = math.ceil(self._params["n_epochs"] * system.epochs)
        params = {**self._params, "n_epochs": n_epochs, **system.options}
        pools = self._corpus.pools
        ranker = self._training.ranker(
            OrderRanker(**params), self._photos, about=params, identity=self._photos
        )
        photos, owners = np.unique(pools[split].photos, return_inverse=True)
        texts = {
            "joined captions": join_captions(pools[split].texts, owners),
            "single captions": (pools[split].texts, owners),
        }
        asked: dict[str, Any] = {"n_threads": self._n_threads}
        joined, captions = (
            ranker.scores(self._photos[photos], own, **asked) for own, _ in texts.values()
        )
        orderings = {
            kind: Ordering.of(ranker, self._photos[photos], own, places, **asked)
            for kind, (own, places) in texts.items()
        }
        settings = {**params, "best_epoch": ranker.history_.best_epoch + 1}
        return Scored(joined, captions, orderings, settings, ranker.history_)
