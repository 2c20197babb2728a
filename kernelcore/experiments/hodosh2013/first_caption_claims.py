"""The claims of the paper about the captions ranked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import erfc, sqrt

import numpy as np

from kernelcore.evaluation import RelevanceResult
from kernelcore.evaluation.significance import holm
from kernelcore.experiments.hodosh2013.claims import (
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Claim,
    Evidence,
    verdict_of,
)
from kernelcore.experiments.hodosh2013.first_results import EXPERT_THRESHOLDS, FirstResultScores
from kernelcore.experiments.hodosh2013.measures import (
    BY_THRESHOLD,
    EXPERT_MEAN,
    HITS,
    NO_ERROR,
    Floats,
    gold,
    no_error,
)
from kernelcore.experiments.hodosh2013.paper_claims import NEIGHBOUR, SHOWN
from kernelcore.experiments.hodosh2013.systems import BASELINE

_TINY = float(np.finfo(np.float64).tiny)  # p-values below are not told apart

_SHOWN = [name for name in SHOWN if name != "Tri5"]  # of tables 1 and 2
_TEXT = ("BLEU", "ROUGE")


def expert_claims(evidence: Evidence) -> Iterator[Claim]:
    """Claims on the expert scores of the captions ranked first."""
    thresholds = list(BY_THRESHOLD.values())
    bow_or_tags = [(BASELINE, "BoW5"), (BASELINE, "TagRank")]
    yield evidence.above(
        "Experts: NN is below the others of table 1 at every threshold",
        [(name, NEIGHBOUR) for name in _SHOWN[1:]],
        thresholds,
    )
    yield evidence.alike(
        "Experts: BoW5 and TagRank do not differ at any threshold",
        [("BoW5", "TagRank")],
        [*thresholds, EXPERT_MEAN],
    )
    yield evidence.above(
        "Experts: BoW1 is below BoW5 and TagRank (the thresholds are lost; means)",
        [("BoW5", "BoW1"), ("TagRank", "BoW1")],
        [EXPERT_MEAN],
    )
    yield evidence.alike(
        f"Experts: {BASELINE} does not differ from BoW5 and TagRank at 4",
        bow_or_tags,
        thresholds[:1],
    )
    yield evidence.above(
        f"Experts: {BASELINE} is above the others of table 2 in the mean",
        [(BASELINE, name) for name in _SHOWN[:-1]],
        [EXPERT_MEAN],
    )
    yield evidence.above(
        "Experts: more first captions are without error than gold",
        [(no_error(name), gold(name)) for name in (BASELINE, "BoW5", "TagRank")],
        [NO_ERROR],
    )


def text_claims(evidence: Evidence) -> Iterator[Claim]:
    """Claims on BLEU and ROUGE of the captions ranked first, all captions as references."""
    yield evidence.above(
        "BLEU, ROUGE: NN is below the others of table 2",
        [(name, NEIGHBOUR) for name in _SHOWN[1:]],
        _TEXT,
    )
    yield evidence.alike(
        "BLEU, ROUGE: BoW5 and TagRank do not differ", [("BoW5", "TagRank")], _TEXT
    )
    yield evidence.above(
        f"ROUGE: {BASELINE} is above BoW5 and TagRank",
        [(BASELINE, "BoW5"), (BASELINE, "TagRank")],
        ["ROUGE"],
    )
    yield evidence.above(
        f"BLEU: {BASELINE} is above TagRank", [(BASELINE, "TagRank")], ["BLEU"]
    )
    yield evidence.alike(
        f"... and does not tell {BASELINE} from BoW5", [(BASELINE, "BoW5")], ["BLEU"]
    )


def random_claim(evidence: Evidence, matrices: Mapping[str, Floats]) -> Claim:
    """Test whether the first captions of all systems are better than random ones.

    The mean of random captions, one for each image, is nearly normal.

    Parameters
    ----------
    evidence : Evidence
    matrices : mapping of str to ndarray, shape (n_images, n_captions)
        By a measure of the evidence: its value for each caption, if that is ranked first.
    """
    text = f"First captions of {NEIGHBOUR} and of all other systems are better than random ones"
    if NEIGHBOUR not in evidence.measures[HITS].values:
        return Claim(text, NOT_RUN, f"without {NEIGHBOUR}")
    differences, p_values, parts = [], [], []
    for name, matrix in matrices.items():
        found = {of: float(own.mean()) for of, own in evidence.measures[name].values.items()}
        chance = float(matrix.mean())
        error = float(np.sqrt(matrix.var(axis=1).sum())) / len(matrix)
        for mean in found.values():
            differences.append(mean - chance)
            p_values.append(max(erfc(abs(mean - chance) / error / sqrt(2)), _TINY))
        lowest = min(found, key=lambda of: found[of])
        parts.append(
            f"{name} {100 * found[lowest]:.1f} or more ({lowest}), of random ones "
            f"{100 * chance:.1f}"
        )
    adjusted = holm(p_values)
    verdict = verdict_of(differences, adjusted)
    return Claim(text, verdict, "; ".join(parts), "normal", float(adjusted.max()))


def between_claim(
    experts: Mapping[str, FirstResultScores], relevance: Mapping[str, RelevanceResult]
) -> Claim:
    """Look between which thresholds of the experts S@1 lies, where experts judged."""
    text = "annotation: S@1 lies between the same thresholds of the experts for all of table 4"
    missing = [name for name in SHOWN if name not in experts]
    if missing:
        return Claim(text, NOT_RUN, f"without {', '.join(missing)}")
    places = {}
    for name in SHOWN:
        scores = experts[name].scores
        judged = ~np.isnan(scores)
        success = relevance[name].annotation.per_query["S@1"][judged].mean()
        shares = [(scores[judged] >= least).mean() for least in EXPERT_THRESHOLDS]
        at = int(np.clip(np.searchsorted(shares, success), 1, len(shares) - 1))
        places[name] = f"{EXPERT_THRESHOLDS[at]:.3g} and {EXPERT_THRESHOLDS[at - 1]:.3g}"
    groups = {
        place: [name for name, of in places.items() if of == place]
        for place in dict.fromkeys(places.values())
    }
    evidence = "; ".join(f"{place}: {', '.join(names)}" for place, names in groups.items())
    return Claim(text, HOLDS if len(groups) == 1 else UNDECIDED, evidence)
