"""What else the run shows: the smaller pool, differences, and the course of training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelcore.deep import History
from kernelcore.evaluation import ResultTable, RetrievalResult, compare
from kernelcore.experiments.hu2019.systems import CHOICES
from kernelcore.experiments.sections import choices_section, training_section
from kernelcore.report import Section


def findings(
    whole: Sequence[RetrievalResult],
    single: Sequence[RetrievalResult],
    histories: Mapping[str, History],
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
    yield training_section(histories)
    yield choices_section(CHOICES)
