"""Binary image selection beside retrieval: the order of systems, and errors people accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import BinarySelections
from kernelcore.evaluation import (
    RetrievalResult,
    SelectionResult,
    Table,
    compare_selections,
)
from kernelcore.evaluation.significance import rank_correlation
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.judged import Questions
from kernelcore.experiments.scores import hub_corrected_name
from kernelcore.report import Section

Selected: TypeAlias = Mapping[str, Sequence[SelectionResult]]
"""Results of all systems by the source of their triples."""

_N_RESAMPLES = 2000
_P = 0.05
_PUBLISHED_ERRORS = ("SCAN t2i, COCO (Hu et al. 2019)", "376", "376", "211", "56.1", "56.1")
"""Table 1 of the paper."""


def correlation_section(
    results: Sequence[RetrievalResult], selected: Selected, questions: Questions, pool: Pool
) -> Section | None:
    """Compare the order of systems by selection with their order by recalls.

    Parameters
    ----------
    results : sequence of RetrievalResult
        Of all systems, in the pool of all captions.
    selected : mapping of str to sequence of SelectionResult
        Of the same systems.
    questions : Questions
    pool : Pool

    Returns
    -------
    Section or None
        None for fewer than three systems.
    """
    if len(results) < 3 or not selected:
        return None
    return Section(
        "Selection beside retrieval",
        (
            "The paper finds that both order the systems in a similar way. The first table has "
            "the rank correlation of the accuracy of binary image selection with recalls of "
            "search, over all systems of this page, and over those without correction for "
            "hubs. p is that of Kendall's tau if no order is more likely than another. It is "
            "too small where systems are variants of one another, as many are here.",
            "The paper also finds that the accuracy of every system is above its R@1. In the "
            "second table, the standard error and the one-sided p of this difference come from "
            f"{_N_RESAMPLES:,} resamples of photos, with their captions and triples. Chance is "
            "50 % in the one and 1 in the number of photos in the other, so that the "
            "comparison says little of which is the better measure.",
        ),
        (
            _correlations({result.system: result for result in results}, selected),
            _above_recall({r.system: r for r in results}, selected, questions, pool),
        ),
    )


def _correlations(results: Mapping[str, RetrievalResult], selected: Selected) -> Table:
    rows = []
    corrected = {hub_corrected_name(name) for name in results}
    for own in selected.values():
        plain = [one for one in own if one.system not in corrected]
        for k in results[own[0].system].search.ks:
            cells = [
                cell
                for group in (own, plain)
                for cell in _correlation(
                    [one.accuracy for one in group],
                    [results[one.system].search.recall[k] for one in group],
                )
            ]
            rows.append((own[0].selections, f"search R@{k}", *cells))
    columns = ("triples", "recall", *(("Spearman", "Kendall", "p") * 2))
    n_all, n_plain = (len(results), len(results.keys() - corrected))
    return Table(
        columns=columns,
        rows=tuple(rows),
        n_labels=2,
        groups=(("", 2), (f"all {n_all} systems", 3), (f"{n_plain} without correction", 3)),
    )


def _correlation(first: Sequence[float], second: Sequence[float]) -> tuple[str, str, str]:
    """Return Spearman's rho, Kendall's tau-b, and the p-value of the latter."""
    if len(first) < 3:
        return "-", "-", "-"
    from scipy.stats import kendalltau

    found = rank_correlation(first, second)
    if np.isnan(found.kendall):
        return "-", "-", "-"
    p = kendalltau(first, second).pvalue
    return f"{found.spearman:.2f}", f"{found.kendall:.2f}", f"{p:.3f}"


def _above_recall(
    results: Mapping[str, RetrievalResult],
    selected: Selected,
    questions: Questions,
    pool: Pool,
) -> Table:
    rows = []
    owners = np.unique(pool.photos, return_inverse=True)[1]
    for source, own in selected.items():
        true = _true_photos(questions.selections[source], questions)
        tested = {}
        for one in own:
            hits = (results[one.system].search.ranks <= 1).astype(np.float64)
            tested[one.system] = _difference(one.outcomes, true, hits, owners)
        least = min(tested, key=lambda name: tested[name][0])
        difference, error, _ = tested[least]
        n_above = sum(p <= _P for _, _, p in tested.values())
        rows.append(
            (
                own[0].selections,
                least,
                f"{100 * difference:+.1f} ± {100 * error:.1f}",
                f"{n_above} of {len(tested)}",
            )
        )
    return Table(
        columns=("triples", "least difference", "accuracy - R@1", f"systems with p <= {_P:g}"),
        rows=tuple(rows),
        n_labels=2,
    )


def _true_photos(selections: BinarySelections, questions: Questions) -> npt.NDArray[np.intp]:
    """Return the row of the true photo of each triple."""
    photos = questions.photos
    return np.asarray(
        selections.positions(photos.photos.image_ids, tuple(photos.caption_ids)).true_images
    )


def _difference(
    first: npt.NDArray[np.float64],
    first_photos: npt.NDArray[np.intp],
    second: npt.NDArray[np.float64],
    second_photos: npt.NDArray[np.intp],
) -> tuple[float, float, float]:
    """Return the difference of two means, its standard error and p for "not above 0".

    Photos are resampled, with all values that belong to them.
    """
    n_photos = 1 + max(first_photos.max(), second_photos.max())
    drawn = np.random.default_rng(0).multinomial(
        n_photos, np.full(n_photos, 1 / n_photos), _N_RESAMPLES
    )
    means = []
    for values, photos in ((first, first_photos), (second, second_photos)):
        sums, counts = (np.bincount(photos, w, n_photos) for w in (values, None))
        means.append((drawn @ sums) / np.maximum(drawn @ counts, 1))
    differences = means[0] - means[1]
    p = (1 + np.count_nonzero(differences <= 0)) / (1 + _N_RESAMPLES)
    return float(first.mean() - second.mean()), float(differences.std(ddof=1)), float(p)


def hub_section(
    by_caption: Selected, by_photo: Selected, names: Sequence[str]
) -> Section | None:
    """Tabulate what the correction for hubs does to selection by caption and by photo.

    Parameters
    ----------
    by_caption, by_photo : mapping of str to sequence of SelectionResult
        Of systems with and without correction.
    names : sequence of str
        Systems without correction.

    Returns
    -------
    Section or None
        None if no system is corrected.
    """
    rows = []
    for source, own in by_caption.items():
        captions = {one.system: one for one in own}
        photos = {one.system: one for one in by_photo.get(source, ())}
        for name in names:
            if hub_corrected_name(name) in captions:
                cells = [*_effect(captions, name), *_effect(photos, name)]
                rows.append((own[0].selections, name, *cells))
    if not rows:
        return None
    columns = ("triples", "system", *(("plain", "corrected", "p") * 2))
    table = Table(
        columns=columns,
        rows=tuple(rows),
        n_labels=2,
        groups=(("", 2), ("two photos of a caption", 3), ("two captions of a photo", 3)),
    )
    return Section(
        "Correction for hubs and selection",
        (
            "Accuracy in percent without and with correction for hubs, and McNemar's exact "
            "p-value, not corrected for multiple tests. Each triple counts as independent; "
            "where photos or captions are in several triples, the p-values are too small. The "
            "correction lowers the scores of photos for search, and of captions for "
            "annotation.",
        ),
        (table,),
    )


def _effect(results: Mapping[str, SelectionResult], name: str) -> Iterator[str]:
    if name not in results:
        yield from ("-", "-", "-")
        return
    plain, corrected = results[name], results[hub_corrected_name(name)]
    yield f"{100 * plain.accuracy:.1f}"
    yield f"{100 * corrected.accuracy:.1f}"
    yield f"{float(compare_selections(corrected, plain).p_value):.3f}"


def accepted_section(
    scores: Mapping[str, npt.ArrayLike], questions: Questions, pool: Pool, number: int
) -> Section | None:
    """Count the errors of search that people accept, as table 1 of the paper.

    Parameters
    ----------
    scores : mapping of str to array_like of shape (n_photos, n_captions)
        Scores of search by each system.
    questions : Questions
    pool : Pool
    number : int
        Number of the caption of each photo that is a query. Those of Flickr8k that were
        judged have the number 2.

    Returns
    -------
    Section or None
        None if nobody judged pairs of this split.
    """
    if not questions.judgments:
        return None
    columns = np.flatnonzero(pool.numbers == number)
    own = np.unique(pool.photos, return_inverse=True)[1][columns]
    tables = []
    for source, judged in questions.judgments:
        rows = []
        for name, values in scores.items():
            first = np.asarray(values)[:, columns].argmax(axis=0)
            is_error = first != own
            verdicts = judged.scores_of(first[is_error], columns[is_error])
            n_judged = int(np.isfinite(verdicts).sum())
            rows.append(
                (name, *_shares(len(verdicts), n_judged, (verdicts >= source.right).sum()))
            )
        tables.append(
            Table(
                columns=(
                    "system",
                    "errors",
                    "judged",
                    "accepted",
                    "% of errors",
                    "% of judged",
                ),
                rows=(*rows, _PUBLISHED_ERRORS),
                caption=f"{judged.name}, accepted from {source.right:g} on; "
                f"{len(columns)} captions, number {number} of each photo",
            )
        )
    return Section(
        "Errors that people accept",
        (
            "An error is a caption for which another photo than its own comes first. The paper "
            "had people judge all 376 errors of one system. Here judgments are those that "
            "Flickr8k comes with, made for other systems, so that most errors were judged by "
            "nobody: the share of all errors is a lower bound. Pairs were judged because a "
            "system ranked them high or their words are alike, so that the share of judged "
            "errors may be above that of all.",
        ),
        tables,
    )


def _shares(n_errors: int, n_judged: int, n_accepted: int) -> tuple[str, ...]:
    counts = map(str, (n_errors, n_judged, n_accepted))
    shares = (f"{100 * n_accepted / n:.1f}" if n else "-" for n in (n_errors, n_judged))
    return (*counts, *shares)
