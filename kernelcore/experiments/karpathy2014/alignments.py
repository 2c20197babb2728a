"""Figures of a trained system: regions of fragments of captions, and of single fragments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._ragged import offsets_of
from kernelcore.captions import SentenceFragments
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.karpathy2014.captions import FragmentSteps
from kernelcore.experiments.karpathy2014.systems import TRIPLETS, System
from kernelcore.images import RegionFeatures, read_image
from kernelcore.report import ReportFigure
from kernelcore.report.figures import alignment_figure, region_figure

_N_RIGHT, _N_WRONG = 3, 1
_N_CAPTIONS = 5
_N_REGIONS = 6


class Alignments:
    """Figures of the regions that a system aligns with fragments of captions.

    Everything that a figure needs is loaded here, because a study without a cache deletes its
    files before the figures are drawn.

    Parameters
    ----------
    system : System
        Systems of trees and of single regions have no alignments, and so no figures.
    ranker : FragmentRanker
        The trained system.
    scores : ndarray of shape (n_photos, n_captions)
    pool : Pool
        Captions of the scores.
    captions : FragmentSteps
    split : str
        The split of the pool.
    regions : RegionFeatures
        Of all photos of the corpus.
    files : sequence of Path
        The photos.
    n_threads : int or None
    """

    def __init__(
        self,
        system: System,
        ranker: Any,
        scores: Array,
        *,
        pool: Pool,
        captions: FragmentSteps,
        split: str,
        regions: RegionFeatures,
        files: Sequence[Path],
        n_threads: int | None,
    ) -> None:
        self._kind, self._ranker, self._scores = system.captions, ranker, scores
        self._pool, self._regions, self._files = pool, regions, files
        self._n_threads = n_threads
        self._is_drawn = self._kind != "trees" and ranker.regions == "all"
        if self._is_drawn:
            self._fragments: Any = captions.step(self._kind, split).value()
            self._extractor = captions.extractor(self._kind)
            self._vocabulary = captions.vocabulary

    def figures(self) -> list[ReportFigure]:
        """Draw regions of the fragments of some captions, and regions of some fragments."""
        if not self._is_drawn:
            return []
        photos = np.unique(self._pool.photos)
        drawn = [self._annotated(row, photos) for row in self._shown()]
        if self._kind == "dependencies":
            for triplet in TRIPLETS:
                fragment = self._fragment(*triplet)
                if fragment is not None:
                    drawn.append(self._found(as_text(triplet), fragment, photos))
        return drawn

    def _annotated(self, row: int, photos: npt.NDArray[np.intp]) -> ReportFigure:
        """Draw the captions ranked first for a photo, and the fragments of the first."""
        photo = int(photos[row])
        best = np.argsort(-self._scores[row], kind="stable")[:_N_CAPTIONS]
        caption = self._fragments.select([int(best[0])])
        (products,) = self._ranker.alignments(
            self._regions.select([photo]), caption, n_threads=self._n_threads
        )
        start, end = self._regions.offsets[photo : photo + 2]
        return alignment_figure(
            read_image(self._files[photo]),
            self._regions.boxes[start:end],
            products,
            [as_text(fragment) for fragment in self._extractor.decode(caption)[0]],
            title=self._pool.texts[best[0]],
            ranked=[(self._pool.texts[j], bool(self._pool.photos[j] == photo)) for j in best],
        )

    def _fragment(self, relation: str, head: str, dependent: str) -> SentenceFragments | None:
        """Return a fragment as a caption of its own, or None if its words are unknown."""
        relations, index = self._extractor.relations_, self._vocabulary.index
        if relation not in relations or not {head, dependent} <= set(index):
            return None
        ids = relations.index(relation), index[head], index[dependent]
        kinds, heads, dependents = np.array(ids, np.int32)[:, np.newaxis]
        return SentenceFragments(
            kinds,
            heads,
            dependents,
            offsets_of([1]),
            n_relations=len(relations),
            n_words=len(self._vocabulary),
        )

    def _found(
        self, text: str, fragment: SentenceFragments, photos: npt.NDArray[np.intp]
    ) -> ReportFigure:
        """Draw the best regions of a fragment among all photos of the split."""
        part = self._regions.select(photos)
        found = self._ranker.search_regions(
            part, fragment, k=_N_REGIONS, n_threads=self._n_threads
        )
        return region_figure(
            [read_image(self._files[int(photos[match.image])]) for match in found],
            [part.boxes[part.offsets[match.image] + match.region] for match in found],
            [match.score for match in found],
            title=f"Regions for {text}",
        )

    def _shown(self) -> list[int]:
        """Rows of photos with the best scores: some with a right first caption, one without."""
        best = self._scores.argmax(axis=1)
        rows = np.arange(len(best))
        owners = np.unique(self._pool.photos, return_inverse=True)[1]
        order = np.argsort(-self._scores[rows, best], kind="stable")
        is_right = owners[best[order]] == order
        return [*order[is_right][:_N_RIGHT].tolist(), *order[~is_right][:_N_WRONG].tolist()]


def as_text(fragment: Sequence[str | None]) -> str:
    """Write a fragment as a relation with its words."""
    relation, first, second = fragment
    return f"{relation}({first or '?'}, {second or '?'})"
