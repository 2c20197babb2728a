"""What else the run shows: the smaller pool, the course of training, and alignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from kernelcore.captions import SentenceFragments
from kernelcore.captions.encoded import offsets_of
from kernelcore.deep import History
from kernelcore.evaluation import ResultTable, RetrievalResult, Table
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.karpathy2014.corpus import Captions
from kernelcore.experiments.karpathy2014.systems import (
    CHOICES,
    PUBLISHED_FIRST,
    SYSTEMS,
    TRIPLETS,
)
from kernelcore.experiments.karpathy2014.training import Scored
from kernelcore.experiments.sections import choices_section, training_figures, training_section
from kernelcore.images import RegionFeatures, read_image
from kernelcore.report import ReportFigure, Section, aligned_regions, found_regions

_N_PHOTOS = 3
_N_REGIONS = 6


def findings(
    first: Sequence[RetrievalResult], histories: Mapping[str, History], split: str
) -> list[Section]:
    """Make the sections: captions of one number alone, training, and our choices."""
    rows = [*first, *(PUBLISHED_FIRST if split == "test" else ())]
    names = tuple((name, SYSTEMS[name].published) for name in histories)
    return [
        Section(
            "One caption per image in the pool",
            ("The pool of Hodosh et al.: the first caption of each image.",),
            (ResultTable(rows).to_table(),),
        ),
        Section(
            "Names in the paper",
            (),
            (Table(columns=("here", "the paper's table"), rows=names, n_labels=2),),
        ),
        training_section(histories),
        choices_section(CHOICES),
    ]


def figures(
    scored: Mapping[str, Scored],
    shown: str,
    corpus: Corpus,
    captions: Captions,
    regions: RegionFeatures,
    *,
    split: str,
    n_threads: int | None,
) -> list[ReportFigure]:
    """Draw the training of all systems, and what one of them aligns."""
    return [
        *training_figures({name: own.history for name, own in scored.items()}),
        *alignment_figures(
            scored[shown], corpus, captions, regions, split, n_threads=n_threads
        ),
    ]


def alignment_figures(
    scored: Scored,
    corpus: Corpus,
    captions: Captions,
    regions: RegionFeatures,
    split: str,
    *,
    n_threads: int | None,
) -> list[ReportFigure]:
    """Best regions of the fragments of some captions, and of some fragments in all photos."""
    if scored.captions == "trees" or scored.ranker.regions != "all":
        return []
    fragments = cast(SentenceFragments, captions.of(scored.captions, split))
    own = corpus.pools[split]
    figures = []
    for column in _well_ranked(scored, own.photos):
        photo = int(own.photos[column])
        caption = fragments.select([column])
        (products,) = scored.ranker.alignments(
            regions.select([photo]), caption, n_threads=n_threads
        )
        start, end = regions.offsets[photo : photo + 2]
        texts = [
            _text(fragment)
            for fragment in captions.extractor(scored.captions).decode(caption)[0]
        ]
        figures.append(
            aligned_regions(
                read_image(corpus.files[photo]),
                regions.boxes[start:end],
                products,
                texts,
                title=own.texts[column],
            )
        )
    if scored.captions == "dependencies":
        figures += _found(
            scored, corpus, captions, regions, np.unique(own.photos), n_threads=n_threads
        )
    return figures


def _found(
    scored: Scored,
    corpus: Corpus,
    captions: Captions,
    regions: RegionFeatures,
    photos: npt.NDArray[np.intp],
    *,
    n_threads: int | None,
) -> list[ReportFigure]:
    part = regions.select(photos)
    figures = []
    extractor, index = captions.extractor(scored.captions), captions.vocabulary.index
    for relation, head, dependent in TRIPLETS:
        if relation not in extractor.relations_ or not {head, dependent} <= set(index):
            continue
        ids = extractor.relations_.index(relation), index[head], index[dependent]
        relations, heads, dependents = np.array(ids, np.int32)[:, np.newaxis]
        fragment = SentenceFragments(
            relations,
            heads,
            dependents,
            offsets_of([1]),
            n_relations=len(extractor.relations_),
            n_words=len(captions.vocabulary),
        )
        found = scored.ranker.search_regions(part, fragment, k=_N_REGIONS, n_threads=n_threads)
        boxes = [part.boxes[part.offsets[match.image] + match.region] for match in found]
        figures.append(
            found_regions(
                [read_image(corpus.files[int(photos[match.image])]) for match in found],
                boxes,
                [match.score for match in found],
                title=f"Regions for {_text((relation, head, dependent))}",
            )
        )
    return figures


def _well_ranked(scored: Scored, photos: npt.NDArray[np.intp]) -> list[int]:
    """Captions that find their photo first, of different photos, with the highest scores."""
    owners = np.unique(photos, return_inverse=True)[1]
    columns = np.arange(len(owners))
    right = np.flatnonzero(scored.scores.argmax(axis=0) == owners)
    order = right[np.argsort(-scored.scores[owners[right], columns[right]], kind="stable")]
    _, first = np.unique(owners[order], return_index=True)
    return [int(column) for column in order[np.sort(first)][:_N_PHOTOS]]


def _text(fragment: tuple[str, str | None, str | None]) -> str:
    relation, first, second = fragment
    return f"{relation}({first or '?'}, {second or '?'})"
