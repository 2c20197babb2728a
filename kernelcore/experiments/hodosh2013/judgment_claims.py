"""The claims of the paper about judgments and text metrics, which need no system."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelcore.datasets import RelevanceJudgments
from kernelcore.experiments.hodosh2013.claims import FISHER, Claim, drawn_claim, verdict_of
from kernelcore.experiments.hodosh2013.draws import Draws
from kernelcore.experiments.hodosh2013.filtering import (
    FILTERS,
    GOOD,
    good_pairs,
    places_among_all,
)
from kernelcore.experiments.hodosh2013.judged import (
    ALL,
    ONE_OTHER,
    OTHERS,
    TextMatrices,
)
from kernelcore.experiments.hodosh2013.kappas import (
    LEAST,
    THRESHOLDS,
    Counts,
    Floats,
    ScoredPairs,
    greatest,
)
from kernelcore.experiments.judged import CROWD_SHARE

METRICS = ("BLEU", "ROUGE")
"""The metrics that the paper compares with the experts."""
_BEST = LEAST.index(10 / 3)
_ANY, _MOST, _EVERYBODY = (THRESHOLDS.index(share) for share in (0.05, CROWD_SHARE, 1.0))


def crowd_claims(pairs: ScoredPairs, counts: Counts) -> Iterator[Claim]:
    """Claims on the agreement of the crowd with the experts, on the pairs of both."""
    judged = np.isfinite(pairs.crowd)
    of_crowd = pairs.kappas(pairs.crowd)
    table, drawn = of_crowd.table()[np.newaxis], of_crowd.drawn(counts)

    def above_others(kappas: Floats) -> Floats:
        """Kappa of the best threshold of the experts less the greatest of the others."""
        others = np.delete(kappas, _BEST, axis=1)
        return greatest(kappas[:, _BEST : _BEST + 1]) - greatest(others)

    def above_other_shares(kappas: Floats) -> Floats:
        """Kappa of a majority less that of one yes, or of all."""
        best = kappas[:, _BEST]
        above: Floats = best[:, _MOST] - best[:, [_ANY, _EVERYBODY]].max(axis=1)
        return above

    row = table[0]
    yield drawn_claim(
        "The crowd agrees with the experts best at a mean expert score of 3.33",
        above_others(table),
        [above_others(drawn)],
        ", ".join(f"{LEAST[i]:.3g}: {np.nanmax(row[i]):.2f}" for i in range(len(LEAST)))
        if np.isfinite(row).any(axis=1).all()
        else "",
    )
    yield drawn_claim(
        "... and if most of the crowd say yes",
        above_other_shares(table),
        [above_other_shares(drawn)],
        f"one yes {row[_BEST, _ANY]:.2f}, most {row[_BEST, _MOST]:.2f}, all "
        f"{row[_BEST, _EVERYBODY]:.2f}",
    )
    measures = {key: of for key, of in pairs.texts.items() if key[1] in METRICS}
    best, of_best = float(greatest(table)[0]), greatest(drawn)
    differences, in_draws = [], []
    for values in measures.values():
        kappas = pairs.kappas(values, where=judged)
        differences.append(float(best - greatest(kappas.table()[np.newaxis])[0]))
        in_draws.append(of_best - greatest(kappas.drawn(counts)))
    weakest = int(np.argmin(differences))
    metric_of = [f"{metric}, {references}" for references, metric in measures]
    yield drawn_claim(
        "The crowd agrees better with the experts than BLEU and ROUGE do",
        differences,
        in_draws,
        f"{len(measures)} metrics and references; weakest: crowd {best:.2f}, "
        f"{metric_of[weakest]} {best - differences[weakest]:.2f}",
    )


def reference_claims(pairs: ScoredPairs, counts: Counts) -> Iterator[Claim]:
    """Claims on the agreement of BLEU and ROUGE with the experts, by their references."""
    tables, drawn = {}, {}
    for key, values in pairs.texts.items():
        kappas = pairs.kappas(values)
        tables[key] = float(greatest(kappas.table()[np.newaxis])[0])
        drawn[key] = greatest(kappas.drawn(counts))

    def claim(text: str, compared: list[tuple[tuple[str, str], tuple[str, str]]]) -> Claim:
        differences = [tables[better] - tables[worse] for better, worse in compared]
        in_draws = [drawn[better] - drawn[worse] for better, worse in compared]
        evidence = "; ".join(
            f"{better[1]}, {better[0]} {tables[better]:.2f}, {worse[1]}, {worse[0]} "
            f"{tables[worse]:.2f}"
            for better, worse in compared
        )
        return drawn_claim(text, differences, in_draws, evidence)

    yield claim(
        "All captions as references: BLEU agrees better with the experts than ROUGE",
        [((ALL, "BLEU"), (ALL, "ROUGE"))],
    )
    yield claim(
        "BLEU and ROUGE agree less without the caption itself among the references",
        [((ALL, metric), (OTHERS, metric)) for metric in METRICS],
    )
    yield claim(
        "... and still less with one other caption",
        [((OTHERS, metric), (ONE_OTHER, metric)) for metric in METRICS],
    )


def filter_claim(expert: RelevanceJudgments, matrices: TextMatrices, draws: Draws) -> Claim:
    """Test whether BLEU_pre tells good pairs from all pairs better than BLEU does."""
    rows, columns = good_pairs(expert, GOOD)
    text = "BLEU_pre is a better filter than BLEU"
    if not len(rows):
        return Claim(text, verdict_of(0.0, 1.0), f"no pair has a score of {GOOD:g}")
    places = [
        places_among_all(matrix, matrix[rows, columns])
        for matrix in (matrices[ALL][name] for name in FILTERS)
    ]
    by_image = np.bincount(rows, places[0] - places[1]).astype(np.float64)
    p = float(draws.sign_flips(by_image[np.newaxis])[0])
    shown = [
        f"{name} {100 * of.mean():.1f} %" for name, of in zip(FILTERS, places, strict=True)
    ]
    evidence = f"of all pairs, a pair with a score of {GOOD:g} is above: {', '.join(shown)}"
    return Claim(text, verdict_of(by_image.sum(), p), evidence, FISHER, p)
