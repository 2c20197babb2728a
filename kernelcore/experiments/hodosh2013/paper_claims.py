"""The claims of the paper about systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from kernelcore.experiments.hodosh2013.ablation import system_name
from kernelcore.experiments.hodosh2013.claims import (
    Claim,
    Evidence,
    drawn_claim,
)
from kernelcore.experiments.hodosh2013.correlations import (
    MEDIAN,
    PRECISION,
    RECALLS,
    SUCCESSES,
    Correlation,
    Orders,
    fisher_z,
)
from kernelcore.experiments.hodosh2013.measures import (
    HITS,
    HITS_OF_TASK,
    first_results,
    gold,
    relevant_not_gold,
)
from kernelcore.experiments.hodosh2013.systems import BASELINE, SYSTEMS
from kernelcore.models.base import TASKS

NEIGHBOUR = "NN_F1^idf"
"""The nearest neighbours of the paper's tables 1 to 5."""
_OTHERS = ("BoW1", "BoW5", "TagRank", "Tri5")  # the other systems of tables 3 to 5
SHOWN = (NEIGHBOUR, *_OTHERS, BASELINE)
_RANKS = [f"{task} {metric}" for task in TASKS for metric in (*RECALLS, MEDIAN)]
_PRECISION = [f"{task} {PRECISION}" for task in TASKS]
_ANNOTATION, _SEARCH = _PRECISION
_TEXT = ("BLEU", "ROUGE")
_CO_OCCURRENCE = ({"D_out"}, {"D_ic"}, {"D_out", "D_ic"})
_SIMILARITIES = [
    set(alignment) | set(others)
    for others in (set[str](), *_CO_OCCURRENCE)
    for alignment in (set[str](), {"A"})
]


def rank_claims(evidence: Evidence) -> Iterator[Claim]:
    """Claims on the ranks of the gold items."""
    kinds = {name: one.ranker for name, one in SYSTEMS.items()}
    kcca, neighbours = (
        [name for name, kind in kinds.items() if kind == wanted]
        for wanted in ("kcca", "nearest_neighbour")
    )
    above_neighbours = list(product(kcca, neighbours))
    best = f"{BASELINE} is the best system"
    others = [(BASELINE, name) for name in SYSTEMS if name != BASELINE]
    yield evidence.above(
        "Nearest neighbours are below every kernel CCA", above_neighbours, [HITS]
    )
    yield evidence.above("... on every metric", above_neighbours, _RANKS)
    yield evidence.above("BoW1 is below BoW5", [("BoW5", "BoW1")], [HITS])
    yield evidence.above("BoW1 is below TagRank", [("TagRank", "BoW1")], [HITS])
    yield evidence.above("Tri1 is below Tri5", [("Tri5", "Tri1")], [HITS])
    yield evidence.alike("BoW5 and TagRank do not differ", [("BoW5", "TagRank")], [HITS])
    yield evidence.alike(
        "Tri5_Lin is at or below Tri5", [("Tri5_Lin", "Tri5")], _RANKS, may_be_below=True
    )
    yield evidence.above(best, others, [HITS])
    yield evidence.alike(
        f"{BASELINE} is alike in both tasks", [("annotation", "search")], [HITS_OF_TASK]
    )
    tri = [(BASELINE, "Tri5")]
    yield evidence.alike(
        f"annotation: R@1 does not tell {BASELINE} from Tri5", tri, ["annotation R@1"]
    )
    yield evidence.above("... and R@5, R@10 and the median do", tri, _RANKS[1:4])
    yield evidence.above(
        f"annotation: {BASELINE} is above BoW5 and TagRank in R@1",
        [(BASELINE, "BoW5"), (BASELINE, "TagRank")],
        ["annotation R@1"],
    )
    yield evidence.above(
        f"search: {BASELINE} is above the others of table 3 in R@1",
        [(BASELINE, name) for name in SHOWN[:-1]],
        ["search R@1"],
    )


def relevance_claims(evidence: Evidence) -> Iterator[Claim]:
    """Claims on the judgments of the crowd, but for the effects of features."""
    better = [(BASELINE, name) for name in SHOWN[:-1]]
    for task in TASKS:
        yield evidence.above(
            f"{task}: S@1 is at least twice R@1, for the systems of table 4",
            [(relevant_not_gold(name), gold(name)) for name in SHOWN],
            [first_results(task)],
        )
    yield evidence.above(
        f"annotation: {BASELINE} is above NN and BoW1 in S@1", better[:2], ["annotation S@1"]
    )
    yield evidence.alike(
        f"... and BoW5, TagRank and Tri5 do not differ from {BASELINE}",
        better[2:],
        ["annotation S@1"],
    )
    yield evidence.above(
        f"{BASELINE} is above the others of table 4 in all other S@k",
        better,
        ["annotation S@5", "annotation S@10", *(f"search {name}" for name in SUCCESSES)],
    )
    yield evidence.above(
        "R-precision: NN is below the others of table 5",
        [(name, NEIGHBOUR) for name in SHOWN[1:]],
        _PRECISION,
    )
    yield evidence.above(
        f"R-precision: {BASELINE} is above the others of table 5", better, _PRECISION
    )
    yield evidence.alike(
        "R-precision: BoW1, BoW5 and TagRank do not differ",
        [("BoW5", "BoW1"), ("TagRank", "BoW1"), ("BoW5", "TagRank")],
        _PRECISION,
    )
    for name in ("BoW1", "BoW5"):
        yield evidence.above(
            f"R-precision, search: Tri5 is above {name} (BoW1 or BoW5: the number is lost)",
            [("Tri5", name)],
            [_SEARCH],
        )


def feature_claims(evidence: Evidence) -> Iterator[Claim]:
    """Claims on what weights and similarities add to R-precision."""

    def name(weights: str, *similarities: str) -> str:
        return system_name(weights, set(similarities))

    plain, weighted, aligned = name("none"), name("sqrt_idf"), name("none", "A")
    both = name("none", "D_out", "D_ic")
    by_idf = {
        name("none", *of): (name("sqrt_idf", *of), name("none", *of)) for of in _SIMILARITIES
    }
    for measure, system in ((_ANNOTATION, plain), (_SEARCH, aligned)):
        yield evidence.above(f"{measure}: idf improves {system}", [by_idf[system]], [measure])
        others = [pair for of, pair in by_idf.items() if of != system]
        yield evidence.alike("... and no other system", others, [measure], may_be_below=True)
    yield evidence.above(
        "R-precision: every similarity but WordNet's improves Tri5, with idf or without",
        [
            (name(weights, *of), plain)
            for weights in ("none", "sqrt_idf")
            for of in _SIMILARITIES[1:]
        ],
        _PRECISION,
    )
    yield evidence.alike(
        "R-precision: Tri5_Lin is at or below Tri5",
        [("Tri5_Lin", plain)],
        _PRECISION,
        may_be_below=True,
    )
    yield evidence.above(
        f"{_SEARCH}: every co-occurrence improves {weighted}",
        [(name("sqrt_idf", *of), weighted) for of in _CO_OCCURRENCE],
        [_SEARCH],
    )
    with_alignment = [(name("none", "A", *of), aligned) for of in _CO_OCCURRENCE]
    yield evidence.alike(
        f"{_ANNOTATION}: no co-occurrence changes {aligned}", with_alignment, [_ANNOTATION]
    )
    yield evidence.alike(
        f"{_SEARCH}: co-occurrence in one corpus does not improve {aligned}",
        with_alignment[:2],
        [_SEARCH],
        may_be_below=True,
    )
    yield evidence.above("... and in both corpora does", with_alignment[2:], [_SEARCH])
    yield evidence.above(
        f"{_ANNOTATION}: alignment improves {both}",
        [(name("none", "A", "D_out", "D_ic"), both)],
        [_ANNOTATION],
    )
    yield evidence.above(
        f"R-precision: alignment improves {weighted}",
        [(name("sqrt_idf", "A"), weighted)],
        _PRECISION,
    )
    yield evidence.above(
        f"R-precision: {BASELINE} is above {weighted}", [(BASELINE, weighted)], _PRECISION
    )


def correlation_claims(orders: Orders) -> Iterator[Claim]:
    """Claims on the correlation of metrics over the systems."""
    for task in TASKS:
        with_precision = {
            name: orders.correlation(task, name, PRECISION) for name in (*RECALLS, MEDIAN)
        }
        yield from _correlation_claims(
            f"{task}: R@5, R@10 and the median correlate with R-precision", with_precision
        )
        with_successes = {
            recall: orders.correlation(task, recall, success)
            for recall, success in zip(RECALLS, SUCCESSES, strict=True)
        }
        yield from _correlation_claims(
            f"{task}: R@5 correlates with S@5, and R@10 with S@10", with_successes
        )


def _correlation_claims(text: str, found: Mapping[str, Correlation]) -> Iterator[Claim]:
    """Test whether all correlations but the first are above zero, and above the first."""
    first, *others = found.values()
    parts = [
        f"{name} {one.spearman:.2f} [{one.interval[0]:.2f}, {one.interval[1]:.2f}]"
        for name, one in found.items()
    ]
    yield drawn_claim(
        text,
        [fisher_z(one.spearman) for one in others],
        [fisher_z(one.drawn) for one in others],
        f"Spearman: {', '.join(parts)}",
    )
    above = [one.spearman - first.spearman for one in others]
    yield drawn_claim(
        "... and R@1 less",
        above,
        [one.drawn - first.drawn for one in others],
        f"others - R@1: {', '.join(f'{one:+.2f}' for one in above)}",
    )
