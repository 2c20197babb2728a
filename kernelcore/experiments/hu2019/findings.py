"""What else the run shows: the smaller pool, differences, training, and single queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kernelcore._validation import Array
from kernelcore.deep import History
from kernelcore.evaluation import ResultTable, RetrievalResult, compare
from kernelcore.experiments.corpora import Corpus
from kernelcore.experiments.hu2019.systems import CHOICES
from kernelcore.experiments.hu2019.training import Scored
from kernelcore.experiments.sections import choices_section, training_section
from kernelcore.images import read_image
from kernelcore.report import Example, Section, annotation_examples, search_examples


def findings(
    whole: Sequence[RetrievalResult],
    single: Sequence[RetrievalResult],
    histories: Mapping[str, History],
    left_out: Mapping[str, str],
    *,
    n_threads: int | None,
) -> Iterator[Section]:
    """Make the sections: the smaller pool, differences of systems, training, our choices.

    Parameters
    ----------
    whole, single : sequence of RetrievalResult
        Of each system, with all captions of a photo in the pool, and with one.
    histories : mapping of str to History
        Of the systems that are trained by epochs.
    left_out : mapping of str to str
        Systems that cannot run here, and what they lack.
    n_threads : int or None
    """
    yield Section(
        "One caption per image in the pool",
        ("The pool of Hodosh et al.: one caption of each image, the third one.",),
        (ResultTable(single).to_table(),),
    )
    if len(whole) > 1:
        baseline = whole[0].system
        comparison = compare(whole, baseline=baseline, rng=0, n_threads=n_threads)
        yield Section(
            f"Differences to {baseline}",
            (
                "McNemar's exact test for R@k, Fisher's randomisation with 100,000 "
                "reassignments for medians; p-values are not corrected for their number.",
            ),
            (comparison.to_table(),),
        )
    if left_out:
        yield Section(
            "Left out", tuple(f"{name}: {what}." for name, what in left_out.items()), ()
        )
    if histories:
        yield training_section(histories)
    yield choices_section(CHOICES)


def examples(
    name: str,
    scored: Scored,
    corpus: Corpus,
    split: str,
    number: int,
    *,
    n_threads: int | None,
) -> tuple[Example, ...]:
    """Good, typical and bad queries of a system, with one caption of each photo in the pool."""
    pool = corpus.pools[split]
    photos = np.unique(pool.photos)
    columns = np.flatnonzero(pool.numbers == number)
    rows = np.searchsorted(photos, pool.photos[columns])
    captions = [pool.texts[column] for column in columns]

    def pixels(i: int) -> Array:
        return read_image(corpus.files[int(photos[rows[i]])])

    search, annotation = (part[rows][:, columns] for part in (scored.search, scored.annotation))
    named: dict[str, Any] = {"system": name, "n_threads": n_threads}
    return (
        *search_examples(search, captions, pixels, **named),
        *annotation_examples(annotation, captions, pixels, **named),
    )
