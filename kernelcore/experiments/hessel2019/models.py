"""The trained models of the study: their recipes, and their training as cached steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from kernelcore.datasets import Document, DocumentCollection
from kernelcore.deep import DocumentLinker
from kernelcore.experiments.hessel2019.linked import Linked
from kernelcore.experiments.hessel2019.photos import Photos
from kernelcore.experiments.hessel2019.systems import MODELS, Recipe
from kernelcore.experiments.scores import printed
from kernelcore.experiments.steps import Kind, Source, Step, Store


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
    _inputs: dict[str, Source[None]] = field(default_factory=dict)

    def scored(
        self, name: str, rng: np.random.Generator | int | None, documents: Sequence[Document]
    ) -> Linked:
        """Train a system and score some documents."""
        recipe, linker = self._trained(name, rng)
        features = self.photos.features[recipe.photos]
        return Linked(
            linker.link_scores(documents, features, n_threads=self.run["n_threads"]),
            {
                **asdict(recipe),
                "similarity": linker.similarity,
                "k": linker.k,
                "epochs run": len(linker.history_.epochs),
                "epoch kept": linker.history_.best_epoch + 1,
            },
            linker.history_,
        )

    def _trained(
        self, name: str, rng: np.random.Generator | int | None
    ) -> tuple[Recipe, DocumentLinker]:
        """Return the recipe of a system and its trained model."""
        system = next(own for own in MODELS if name in {own, printed(own)})
        model = MODELS[system]
        recipe = self.recipe_as_printed
        if name == system:
            recipe = replace(self.recipe, **model.ours)
        params = asdict(recipe)
        del params["photos"]
        untrained = DocumentLinker(
            similarity=model.similarity, k=model.k, rng=rng, device=self.device, **params
        )
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
            word_vectors=self.photos.vectors,
            folder=folder,
            **self.run,
        )

    def _input(self, recipe: Recipe) -> Source[None]:
        """Identify the documents, features and word vectors that a model is trained on."""
        if recipe.photos not in self._inputs:
            vectors = self.photos.vectors
            learned_from = [
                [document.sentences, document.images]
                for split in ("train", "val")
                for document in self.collection.split(split)
            ]
            features = np.array(list(self.photos.features[recipe.photos].values()))
            self._inputs[recipe.photos] = Source(
                None, learned_from, vectors.words, vectors.vectors, features
            )
        return self._inputs[recipe.photos]
