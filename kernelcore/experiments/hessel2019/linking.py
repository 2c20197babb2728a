"""Training the systems, or finding them trained already, and letting them link."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernelcore._progress import Progress
from kernelcore._validation import Array
from kernelcore.datasets import Document, DocumentCollection
from kernelcore.deep import DocumentLinker, History
from kernelcore.experiments.hessel2019.corpus import Photos
from kernelcore.experiments.hessel2019.systems import CHANCE, LABELS, MODELS, NO_STRUCT, Size
from kernelcore.experiments.store import Store, key_of
from kernelcore.models import ChanceLinker, ObjectLabelLinker


@dataclass(frozen=True)
class Linked:
    """What a system says of the documents of the split that is reported.

    Attributes
    ----------
    scores : sequence of ndarray of shape (n_sentences, n_images)
        One matrix per document.
    settings : mapping of str to Any
        What was asked for and what was chosen.
    history : History or None
        Of the training, where there was any.
    """

    scores: Sequence[Array]
    settings: Mapping[str, Any]
    history: History | None = None


@dataclass(frozen=True)
class Linking:
    """All that the systems of a run share.

    Attributes
    ----------
    photos : Photos
    collection : DocumentCollection
    size : Size
    rng : int
        Source of all random choices.
    device : str
        Where models are trained.
    store : Store
        Keeps what was trained.
    n_threads : int or None
    progress : bool or callable
    """

    photos: Photos
    collection: DocumentCollection
    size: Size
    rng: int
    device: str
    store: Store
    n_threads: int | None
    progress: Progress

    def run(self, system: str, documents: Sequence[Document]) -> Linked:
        """Let a system link the sentences and images of documents."""
        if system == CHANCE:
            return Linked(ChanceLinker(rng=self.rng).link_scores(documents), {})
        if system == LABELS:
            labels = ObjectLabelLinker(self.photos.word_vectors).fit(
                self.collection.split("val"), self.photos.probabilities
            )
            scores = labels.link_scores(documents, self.photos.probabilities)
            return Linked(scores, {"n_labels": labels.n_labels_})
        linker = self._trained(system)
        scores = linker.link_scores(documents, self.photos.features, n_threads=self.n_threads)
        settings = {
            **linker.get_params(),
            "epochs run": len(linker.history_.epochs),
            "epoch kept": linker.history_.best_epoch + 1,
        }
        return Linked(scores, settings, linker.history_)

    def untrained(self, system: str) -> DocumentLinker:
        """Return the model of a system, before it has learned."""
        size, model = self.size, MODELS[system]
        factor = size.no_struct_factor if system == NO_STRUCT else 1
        return DocumentLinker(
            similarity=model.similarity,
            k=model.k,
            negatives=model.negatives,
            n_components=size.n_components,
            dropout=size.dropout,
            learning_rate=size.learning_rate / factor,
            n_warm_up=factor * size.n_warm_up,
            n_epochs=factor * size.n_epochs,
            rng=self.rng,
            device=self.device,
        )

    def _trained(self, system: str) -> DocumentLinker:
        linker = self.untrained(system)
        key = key_of(linker.get_params(), self._data_key())
        name = system.replace(" ", "-")
        unfinished = self.store.unfinished(f"training-{name}-{key}")
        trained = self.store.value(
            name,
            key,
            partial(
                linker.fit,
                self.collection.without_links().split("train"),
                self.photos.features,
                dev=self.collection.split("val"),
                word_vectors=self.photos.word_vectors,
                folder=unfinished,
                n_threads=self.n_threads,
                progress=self.progress,
            ),
            DocumentLinker.save,
            partial(DocumentLinker.load, device=self.device),
        )
        shutil.rmtree(unfinished, ignore_errors=True)
        return trained

    def _data_key(self) -> str:
        """Digest of everything that is learned from."""
        documents = [
            [document.sentences, document.images]
            for split in ("train", "val")
            for document in self.collection.split(split)
        ]
        vectors = self.photos.word_vectors
        features = np.array(list(self.photos.features.values()))
        return key_of(documents, vectors.words, vectors.vectors, features)
