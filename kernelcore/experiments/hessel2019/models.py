"""The trained models of the study: their recipes, their training as cached steps, its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from kernelcore.datasets import Document, DocumentCollection
from kernelcore.deep import DocumentLinker
from kernelcore.experiments.hessel2019.linked import Linked, hub_corrected, pair_gains
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.systems import (
    MAIN,
    MODELS,
    NO_STRUCT,
    PRINTED_COMPONENTS,
    Recipe,
)
from kernelcore.experiments.hessel2019.timing import StepTime, step_times
from kernelcore.experiments.scores import printed
from kernelcore.experiments.steps import Kind, Source, Step, Store

_N_TIMED_DOCUMENTS = 330
_N_TIMED_STEPS = 5  # of models of the printed sizes
_TIMED_SIZES = (256, 512, PRINTED_COMPONENTS)


@dataclass
class Models:
    """Trains the models of documents and scores links by them.

    Attributes
    ----------
    photos : Photos
    collection : DocumentCollection
    store : Store
        Keeps the trained models, and a checkpoint after each epoch.
    recipe, recipe_as_printed : Recipe
    device : str
    run : mapping of str to Any
        Number of threads and progress, which do not change results.
    """

    photos: Photos
    collection: DocumentCollection
    store: Store
    recipe: Recipe
    recipe_as_printed: Recipe
    device: str
    run: Mapping[str, Any]
    _inputs: dict[tuple[str, str], Source[None]] = field(default_factory=dict)

    def untrained(
        self, name: str, rng: np.random.Generator | int | None, change: Mapping[str, Any]
    ) -> tuple[Recipe, DocumentLinker]:
        """Return the recipe of a system after a change, and its model before training."""
        system = next(own for own in MODELS if name in {own, printed(own)})
        model = MODELS[system]
        recipe = self.recipe_as_printed
        if name == system:
            recipe = replace(self.recipe, **model.ours)
        recipe = replace(recipe, **change)
        params = asdict(recipe)
        del params["photos"], params["words"]
        return recipe, DocumentLinker(
            similarity=model.similarity, k=model.k, rng=rng, device=self.device, **params
        )

    def trained(
        self, name: str, rng: np.random.Generator | int | None, change: Mapping[str, Any]
    ) -> tuple[Recipe, DocumentLinker]:
        """Return the recipe of a system after a change, and its trained model."""
        recipe, untrained = self.untrained(name, rng, change)
        step = Step(
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
        )
        return recipe, step.value()

    def scored(
        self,
        name: str,
        rng: np.random.Generator | int | None,
        documents: Sequence[Document],
        change: Mapping[str, Any],
        *,
        is_corrected: bool = True,
    ) -> Linked:
        """Train a system after a change, and score some documents.

        With `is_corrected`, the scores are corrected for hubs too.
        """
        recipe, linker = self.trained(name, rng, change)
        features = self.photos.features[recipe.photos]
        threads = {"n_threads": self.run["n_threads"]}
        scores = linker.link_scores(documents, features, **threads)
        known, dev = (self.collection.split(split) for split in ("train", "val"))
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
                hub_corrected(linker, scores, documents, known, features, **threads)
                if is_corrected
                else None
            ),
            gains=pair_gains(linker, dev, features, **threads),
        )

    def step_times(self, rng: np.random.Generator | int | None) -> dict[str, StepTime]:
        """Time training steps of the structured similarities, with our recipe."""
        names = [name for name in MODELS if name != NO_STRUCT]
        return self._times({name: self.untrained(name, rng, {}) for name in names})

    def size_times(self, rng: np.random.Generator | int | None) -> dict[str, StepTime]:
        """Time training steps of AP as printed, by the number of components."""
        sizes = sorted({self.recipe_as_printed.n_components, *_TIMED_SIZES})
        made = {str(n): self.untrained(printed(MAIN), rng, {"n_components": n}) for n in sizes}
        return self._times(made, n_steps=_N_TIMED_STEPS)

    @property
    def n_steps(self) -> int:
        """Training steps of an epoch, as printed."""
        n_documents = len(self.collection.split("train"))
        return -(-n_documents // (self.recipe_as_printed.n_negatives + 1))

    def _times(
        self, made: Mapping[str, tuple[Recipe, DocumentLinker]], **options: Any
    ) -> dict[str, StepTime]:
        recipe = next(iter(made.values()))[0]
        return step_times(
            {label: linker for label, (_, linker) in made.items()},
            self.collection.split("train")[:_N_TIMED_DOCUMENTS],
            self.photos.features[recipe.photos],
            word_vectors=self.photos.words[recipe.words],
            **options,
            **self.run,
        )

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
            self.collection.without_links().split("train"),
            self.photos.features[recipe.photos],
            dev=self.collection.split("val"),
            word_vectors=self.photos.words[recipe.words],
            folder=folder,
            **self.run,
        )

    def _input(self, recipe: Recipe) -> Source[None]:
        """Identify the documents, features and word vectors that a model is trained on."""
        key = recipe.photos, recipe.words
        if key not in self._inputs:
            vectors = self.photos.words[recipe.words]
            learned_from = [
                [document.sentences, document.images]
                for split in ("train", "val")
                for document in self.collection.split(split)
            ]
            features = np.array(list(self.photos.features[recipe.photos].values()))
            self._inputs[key] = Source(
                None, learned_from, vectors.words, vectors.vectors, features
            )
        return self._inputs[key]
