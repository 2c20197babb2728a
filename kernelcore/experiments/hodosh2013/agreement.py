"""Sections on agreement: experts among each other, with text metrics, and with the crowd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation import Table
from kernelcore.evaluation.agreement import krippendorff_alpha, krippendorff_alpha_interval
from kernelcore.experiments.hodosh2013.judged import ALL, ONE_OTHER, OTHERS, OWN
from kernelcore.experiments.hodosh2013.kappas import (
    LEAST,
    N_RESAMPLES,
    THRESHOLDS,
    Counts,
    Floats,
    Kappas,
    ScoredPairs,
    greatest,
    standard_error,
)
from kernelcore.experiments.judged import CROWD_SHARE
from kernelcore.report import Section

METRICS = ("BLEU", "BLEU_pre", "ROUGE")


def agreement_section(expert: RelevanceJudgments) -> Section:
    """Tabulate Krippendorff's alpha of the experts."""
    ratings = expert.ratings
    assert ratings is not None, "the expert file holds three scores a pair"
    rows = []
    for level in ("nominal", "ordinal", "interval"):
        alpha = krippendorff_alpha(ratings, level=level)
        low, high = krippendorff_alpha_interval(
            ratings,
            level=level,
            groups=expert.images,
            rng=0,
            n_resamples=N_RESAMPLES,
        )
        rows.append((level, f"{alpha:.3f}", f"{low:.3f}", f"{high:.3f}"))
    return Section(
        "Agreement of the experts",
        (
            "Krippendorff's alpha of the three expert scores of a pair, with 95 % intervals "
            f"over {N_RESAMPLES:,} resamples of the images. The scores of a pair are "
            "sorted in the file, so a column is not a judge; alpha does not depend on this "
            "order. The paper calls its alpha high; its number cannot be read in the text that "
            "we have.",
        ),
        (
            Table(
                columns=("level", "alpha", "low", "high"),
                rows=tuple(rows),
                caption=f"{len(expert):,} pairs",
            ),
        ),
    )


def text_agreement_section(pairs: ScoredPairs, counts: Counts) -> Section:
    """Tabulate kappa of the experts and of BLEU, BLEU_pre and ROUGE."""
    tables = []
    for sets in ((ALL, OWN), (OTHERS, ONE_OTHER)):
        shown = [of for of in sets if (of, METRICS[0]) in pairs.texts]
        if shown:
            tables.append(_text_table(pairs, shown))
    return Section(
        "Agreement of text metrics with the experts",
        (
            "Cohen's kappa of two binary verdicts on the pairs that the experts scored: the "
            "mean expert score is at or above a threshold, and BLEU, BLEU_pre (BLEU with the "
            "preprocessing of ROUGE) or ROUGE is at or above the threshold in brackets, the "
            "one with the greatest kappa. The references are all captions of an image, its "
            "caption in the pool, the captions outside the pool, or the first of these.",
            "The last table has the greatest kappa over all thresholds of both, and its 95 % "
            f"interval by the standard error over {len(counts):,} resamples of the images, "
            "each with its own best thresholds.",
        ),
        (*tables, _best_table(pairs, counts)),
    )


def crowd_agreement_section(pairs: ScoredPairs) -> Section:
    """Tabulate kappa of the crowd and the experts; precision and recall of the crowd."""
    return Section(
        "Agreement of the crowd with the experts",
        (
            "The first table has the pairs that both judged. The crowd says yes if its share "
            f"of yes is at least {CROWD_SHARE}, as in the paper, or the threshold with the "
            "greatest kappa.",
            "The second table has precision, recall and F1 of the crowd's yes against a mean "
            "expert score at or above a threshold: on the pairs that both judged, and on all "
            "pairs that the experts scored, by the verdict that S@k and R-precision use: an "
            "image's own caption is relevant, and what the crowd did not judge is not.",
        ),
        (_crowd_table(pairs), _precision_table(pairs)),
    )


def _text_table(pairs: ScoredPairs, sets: Sequence[str]) -> Table:
    kappas = [
        pairs.kappas(pairs.texts[references, metric])
        for references in sets
        for metric in METRICS
    ]
    return Table(
        columns=("mean expert score", *METRICS * len(sets)),
        rows=tuple(
            (f">= {least:.3g}", *(best_cell(of.table()[i]) for of in kappas))
            for i, least in enumerate(LEAST)
        ),
        groups=(("", 1), *((of, len(METRICS)) for of in sets)),
        caption=f"{len(pairs.expert):,} pairs, of which {pairs.is_gold.sum():,} are gold",
    )


def _best_table(pairs: ScoredPairs, counts: Counts) -> Table:
    measures = {
        ("", "crowd"): pairs.crowd,
        **{key: values for key, values in pairs.texts.items() if key[1] in METRICS},
    }
    rows = [
        (metric, references, *_best_cells(pairs.kappas(values), counts))
        for (references, metric), values in measures.items()
    ]
    return Table(
        columns=(
            "measure",
            "references",
            "pairs",
            "kappa",
            "low",
            "high",
            "experts",
            "measure",
        ),
        rows=tuple(rows),
        n_labels=2,
        caption="the last two columns are the thresholds",
    )


def _best_cells(kappas: Kappas, counts: Counts) -> tuple[str, ...]:
    best = kappas.best()
    if np.isnan(best.kappa):
        return (f"{kappas.n_pairs:,}", *["-"] * 5)
    half = 1.96 * standard_error(greatest(kappas.drawn(counts)))
    cells = [f"{kappa:.2f}" for kappa in (best.kappa, best.kappa - half, best.kappa + half)]
    thresholds = f">= {best.expert:.3g}", f">= {best.measure:.2f}"
    return (f"{kappas.n_pairs:,}", *cells, *thresholds)


def _crowd_table(pairs: ScoredPairs) -> Table:
    kappas = pairs.kappas(pairs.crowd)
    fixed = THRESHOLDS.index(CROWD_SHARE)
    table = kappas.table()
    return Table(
        columns=("mean expert score", f"kappa at {CROWD_SHARE}", "greatest kappa"),
        rows=tuple(
            (f">= {least:.3g}", _number(row[fixed]), best_cell(row))
            for least, row in zip(LEAST, table, strict=True)
        ),
        caption=f"{kappas.n_pairs:,} pairs, the threshold of the greatest kappa in brackets",
    )


def _precision_table(pairs: ScoredPairs) -> Table:
    known = np.isfinite(pairs.crowd)
    says_yes = np.nan_to_num(pairs.crowd) >= CROWD_SHARE
    rows = []
    for least in LEAST:
        is_good = pairs.expert >= least
        rows.append(
            (
                f">= {least:.3g}",
                *_precision_cells(says_yes[known], is_good[known]),
                *_precision_cells(says_yes | pairs.is_gold, is_good),
            )
        )
    names = ("precision", "recall", "F1")
    return Table(
        columns=("mean expert score", *names, *names),
        rows=tuple(rows),
        groups=(("", 1), ("judged by both", 3), ("all, as S@k counts them", 3)),
        caption=f"In percent; {known.sum():,} and {len(known):,} pairs",
    )


def _precision_cells(
    says_yes: npt.NDArray[np.bool_], is_good: npt.NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return precision, recall and F1 in percent."""
    n_both, n_yes, n_good = (
        int(np.count_nonzero(of)) for of in (says_yes & is_good, says_yes, is_good)
    )
    parts = ((n_both, n_yes), (n_both, n_good), (2 * n_both, n_yes + n_good))
    return tuple(f"{100 * part / whole:.1f}" if whole else "-" for part, whole in parts)


def best_cell(kappas: Floats) -> str:
    """Return the greatest kappa over the thresholds of a measure, and its threshold."""
    if np.isnan(kappas).all():
        return "-"
    best = int(np.nanargmax(kappas))
    return f"{kappas[best]:.2f} ({THRESHOLDS[best]:.2f})"


def _number(kappa: float) -> str:
    return "-" if np.isnan(kappa) else f"{kappa:.2f}"
