"""Photos and captions as the grids of a run describe them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelcore._threads import Progress
from kernelcore.datasets import CaptionedImages
from kernelcore.experiments.corpus import Corpus
from kernelcore.experiments.kernel_systems import Grid
from kernelcore.experiments.kernels import (
    Described,
    Kernels,
    describe_photos,
    pyramid_steps,
)
from kernelcore.experiments.steps import Store, key_of
from kernelcore.experiments.words import Lexicon, Resources, Texts


class Descriptions:
    """Words of captions, visual words of photos, and the kernels of a grid.

    What several grids share is computed once.

    Parameters
    ----------
    corpus : Corpus
    resources : Resources
    store : Store
    cache_dir : path or None
        Where histograms of photos are kept.
    n_threads : int or None
    progress : bool or callable
    """

    def __init__(
        self,
        corpus: Corpus,
        resources: Resources,
        store: Store,
        *,
        cache_dir: Path | str | None,
        n_threads: int | None,
        progress: Progress,
    ) -> None:
        self._corpus, self._resources, self._store = corpus, resources, store
        self._cache_dir = cache_dir
        self._run: dict[str, Any] = {"n_threads": n_threads, "progress": progress}
        self._captions: dict[bool, tuple[Texts, Lexicon]] = {}
        self._features: dict[str, list[Described]] = {}

    @property
    def dataset(self) -> CaptionedImages:
        """The images of the three splits, once captions were read."""
        texts, _ = next(iter(self._captions.values()))
        return texts.dataset

    def captions(self, grid: Grid) -> tuple[Texts, Lexicon]:
        """Words of the captions, with the spelling corrected if the grid says so."""
        if grid.spelling not in self._captions:
            resources, progress = self._resources, self._run["progress"]
            texts = Texts.of(
                self._corpus,
                spacy_model=resources.spacy_model,
                spelling=resources.spelling if grid.spelling else None,
                progress=progress,
            )
            lexicon = Lexicon(texts, resources, self._store, progress=progress)
            self._captions[grid.spelling] = texts, lexicon
        return self._captions[grid.spelling]

    def photos(self, grid: Grid) -> Sequence[Described]:
        """Visual words of all recipes of a grid."""
        for recipe in grid.visual_words:
            if key_of(recipe) not in self._features:
                self._features[key_of(recipe)] = describe_photos(
                    self.captions(grid)[0].dataset,
                    recipe,
                    self._store,
                    cache_dir=self._cache_dir,
                    **self._run,
                )
        recipes = [self._features[key_of(recipe)] for recipe in grid.visual_words]
        return [feature for recipe in recipes for feature in recipe]

    def kernels(self, grid: Grid, *, pool: int) -> Kernels:
        """Kernels of photos and captions, and their bases."""
        texts, lexicon = self.captions(grid)
        photos = pyramid_steps(self.photos(grid), self._store, mirror=grid.mirror, **self._run)
        return Kernels(texts, photos, lexicon, self._store, grid, pool=pool, **self._run)
