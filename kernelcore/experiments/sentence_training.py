"""Rankers of raw captions, trained on a corpus and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from kernelcore._progress import Progress
from kernelcore.deep.base import SentenceRanker
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.store import Store, key_of

_Ranker = TypeVar("_Ranker", bound=SentenceRanker)


@dataclass(frozen=True)
class SentenceTraining:
    """Trains rankers on the training split, and lets the development split choose the epoch.

    Attributes
    ----------
    corpus : Corpus
    store : Store
        Keeps the trained models and a checkpoint of the one in hand.
    n_threads : int or None
    progress : bool or callable
    """

    corpus: Corpus
    store: Store
    n_threads: int | None
    progress: Progress

    def ranker(
        self,
        ranker: _Ranker,
        images: Any,
        *,
        about: Any,
        identity: Any,
        from_word_vectors: bool = True,
    ) -> _Ranker:
        """Train a ranker, unless one like it has been.

        Parameters
        ----------
        ranker : SentenceRanker
        images : RegionFeatures or array_like of shape (n_photos, n_features)
            Of all photos of the corpus, in the order of its files.
        about : anything JSON can hold
            What tells the ranker from others.
        identity : array, or anything JSON can hold
            What tells the images from others.
        from_word_vectors : bool, default True
            Whether word embeddings start from the corpus' word vectors, or at random.

        Returns
        -------
        SentenceRanker
        """
        train, dev = (self.corpus.pools[part] for part in ("train", "dev"))
        key = key_of(
            about,
            identity,
            self.corpus.word_vectors.vectors,
            *([pool.texts, pool.photos.tolist()] for pool in (train, dev)),
        )

        def make() -> _Ranker:
            return ranker.fit(
                images,
                train.texts,
                caption_image=train.photos,
                word_vectors=self.corpus.word_vectors if from_word_vectors else None,
                dev=(images, dev.texts, dev.photos),
                folder=self.store.unfinished(f"training-{key}"),
                n_threads=self.n_threads,
                progress=self.progress,
            )

        kind = type(ranker)
        return self.store.value("model", key, make, kind.save, kind.load)
