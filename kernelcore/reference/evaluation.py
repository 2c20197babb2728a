"""Ranks, relevance, caption metrics, agreement and significance tests by their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, groupby, permutations, product
from math import comb, isnan
from statistics import median
from typing import Any, TypeAlias


def gold_ranks(
    scores: Sequence[Sequence[float]], gold: Sequence[Sequence[int]], *, ties: str = "mean"
) -> list[float]:
    """Rank, from 1, of the best gold candidate of each row; `gold` lists them by row."""
    return [
        _first_gold_rank(list(row), set(relevant), ties)
        for row, relevant in zip(scores, gold, strict=True)
    ]


def _first_gold_rank(row: list[float], relevant: set[int], ties: str) -> float:
    order = sorted(range(len(row)), key=lambda candidate: -row[candidate])  # stable
    ordinal = next(p for p, candidate in enumerate(order, start=1) if candidate in relevant)
    value = row[order[ordinal - 1]]
    tied = [position for position, candidate in enumerate(order, 1) if row[candidate] == value]
    n_tied, n_gold = len(tied), sum(row[candidate] == value for candidate in relevant)
    if ties == "ordinal":
        return ordinal
    if ties == "min":
        return tied[0]
    if ties == "max":  # every other tied candidate stands before the first gold one
        return tied[n_tied - n_gold]
    # Of all ways to place n_gold items on n_tied positions, comb(n_tied - 1 - i, n_gold - 1)
    # have the first one on position i.
    ways = [comb(n_tied - 1 - i, n_gold - 1) for i in range(n_tied)]
    return sum(n * position for n, position in zip(ways, tied, strict=True)) / sum(ways)


def relevance_metrics(
    scores: Sequence[Sequence[float]],
    relevant: Sequence[Collection[int]],
    *,
    ks: Sequence[int],
    ties: str = "mean",
) -> list[dict[str, float] | None]:
    """Metrics of each row by name; None for a row without relevant candidates."""
    return [
        _of_query(list(row), set(items), ks, ties) if items else None
        for row, items in zip(scores, relevant, strict=True)
    ]


def _of_query(
    row: list[float], relevant: set[int], ks: Sequence[int], ties: str
) -> dict[str, float]:
    rankings = list(_rankings(row, relevant, ties))  # all equally likely
    first = Fraction(sum(1 + flags.index(True) for flags in rankings), len(rankings))
    values: dict[str, Fraction] = {}
    for k in ks:
        hits = _mean([Fraction(sum(flags[:k])) for flags in rankings])
        precision, recall = hits / k, hits / len(relevant)
        values[f"S@{k}"] = Fraction(first <= k)
        values[f"P@{k}"] = precision
        values[f"recall@{k}"] = recall
        values[f"F1@{k}"] = (
            2 * precision * recall / (precision + recall) if hits else Fraction(0)
        )
    n = len(relevant)
    values["R-precision"] = _mean([Fraction(sum(flags[:n]), n) for flags in rankings])
    values["MAP"] = _mean([_precision_sum(flags) / n for flags in rankings])
    values["mAP@R"] = _mean([_precision_sum(flags[:n]) / n for flags in rankings])
    values["MRR"] = 1 / first
    return {name: float(value) for name, value in values.items()}


def _rankings(row: list[float], relevant: set[int], ties: str) -> Iterator[list[bool]]:
    """Every order that the tie rule allows, as a list of flags: relevant or not."""
    order = sorted(range(len(row)), key=lambda candidate: -row[candidate])  # stable
    blocks = [
        [candidate in relevant for candidate in block]
        for _, block in groupby(order, key=lambda candidate: row[candidate])
    ]
    if ties == "ordinal":
        choices = [[block] for block in blocks]
    elif ties in {"min", "max"}:
        choices = [[sorted(block, reverse=ties == "min")] for block in blocks]
    else:
        choices = [
            [[place in chosen for place in range(len(block))] for chosen in chosen_places]
            for block in blocks
            for chosen_places in [combinations(range(len(block)), sum(block))]
        ]
    for parts in product(*choices):
        yield [flag for part in parts for flag in part]


def _precision_sum(flags: Sequence[bool]) -> Fraction:
    """Sum of the precisions at the ranks of relevant items."""
    return sum(
        (Fraction(sum(flags[:i]), i) for i in range(1, len(flags) + 1) if flags[i - 1]),
        Fraction(0),
    )


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


Tokens: TypeAlias = Sequence[str]
Counts: TypeAlias = Counter[tuple[str, ...]]


def unigram_bleu(candidate: Tokens, references: Sequence[Tokens]) -> float:
    """Share of the candidate's words that occur in one of the references."""
    return _clipped(candidate, references, 1) / len(candidate) if candidate else 0.0


def unigram_rouge(candidate: Tokens, references: Sequence[Tokens]) -> float:
    """Share of the references' words that occur in the candidate."""
    total = sum(len(reference) for reference in references)
    shared = sum((Counter(candidate) & Counter(reference)).total() for reference in references)
    return shared / total if total else 0.0


def bleu(
    candidates: Sequence[Tokens], references: Sequence[Sequence[Tokens]], max_n: int = 4
) -> tuple[list[float], list[list[float]]]:
    """BLEU-1 to BLEU-n of the corpus, and of each candidate."""
    rows = [
        [
            len(candidate),
            min((abs(len(r) - len(candidate)), len(r)) for r in sets)[1],
            *(_clipped(candidate, sets, n) for n in range(1, max_n + 1)),
            *(_ngrams(candidate, n).total() for n in range(1, max_n + 1)),
        ]
        for candidate, sets in zip(candidates, references, strict=True)
    ]
    corpus = [sum(column) for column in zip(*rows, strict=True)]
    return _bleu(corpus, max_n), [_bleu(row, max_n) for row in rows]


def _bleu(row: Sequence[int], max_n: int) -> list[float]:
    length, reference_length, *counts = row
    ratio = (length + 1e-15) / (reference_length + 1e-9)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    precisions = [
        (matches + 1e-15) / (total + 1e-9)
        for matches, total in zip(counts[:max_n], counts[max_n:], strict=True)
    ]
    return [penalty * math.prod(precisions[:n]) ** (1 / n) for n in range(1, max_n + 1)]


def rouge_l(candidate: Tokens, references: Sequence[Tokens], beta: float = 1.2) -> float:
    """F-measure of the best precision and the best recall by longest common subsequence."""
    common = [_longest_common_subsequence(candidate, reference) for reference in references]
    if not any(common):
        return 0.0
    precision = max(common) / len(candidate)
    recall = max(c / len(r) for c, r in zip(common, references, strict=True) if r)
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


def document_frequencies(references: Sequence[Sequence[Tokens]], max_n: int = 4) -> Counts:
    """Count the reference sets in which each n-gram occurs."""
    return Counter(
        ngram
        for sets in references
        for ngram in {g for r in sets for n in range(1, max_n + 1) for g in _ngrams(r, n)}
    )


def cider(
    candidates: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    *,
    frequencies: Counts | None = None,
    n_documents: int | None = None,
    max_n: int = 4,
    sigma: float | None = None,
) -> list[float]:
    """Ten times the mean cosine, over orders and references, of tf-idf vectors.

    With `sigma` CIDEr-D: clipped counts and a penalty on the difference in bigrams.
    """
    known = frequencies or document_frequencies(references, max_n)
    total = n_documents or len(references)

    def tf_idf(counts: Counts) -> dict[tuple[str, ...], float]:
        return {g: n * math.log(total / max(known[g], 1)) for g, n in counts.items()}

    def cosine(mine: Counts, theirs: Counts) -> float:
        a, b = tf_idf(mine), tf_idf(theirs)
        shared = a if sigma is None else tf_idf(mine & theirs)
        norms = math.hypot(*a.values()) * math.hypot(*b.values())
        return sum(shared[g] * b[g] for g in shared if g in b) / norms if norms else 0.0

    def similarity(candidate: Tokens, reference: Tokens) -> float:
        orders = range(1, max_n + 1)
        mean = sum(cosine(_ngrams(candidate, n), _ngrams(reference, n)) for n in orders) / max_n
        if sigma is None:
            return mean
        difference = max(len(candidate) - 1, 0) - max(len(reference) - 1, 0)
        return mean * math.exp(-(difference**2) / (2 * sigma**2))

    return [
        10 * sum(similarity(candidate, reference) for reference in sets) / len(sets)
        for candidate, sets in zip(candidates, references, strict=True)
    ]


def _ngrams(tokens: Tokens, n: int) -> Counts:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _clipped(candidate: Tokens, references: Sequence[Tokens], n: int) -> int:
    """Count the candidate's n-grams, clipped at the largest count in one reference."""
    most: Counts = Counter()
    for reference in references:
        most |= _ngrams(reference, n)
    return (_ngrams(candidate, n) & most).total()


def _longest_common_subsequence(a: Tokens, b: Tokens) -> int:
    if not a or not b:
        return 0
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, start=1):
        for j, y in enumerate(b, start=1):
            table[i][j] = (
                table[i - 1][j - 1] + 1 if x == y else max(table[i - 1][j], table[i][j - 1])
            )
    return table[-1][-1]


def cohen_kappa(
    first: Sequence[int], second: Sequence[int], weights: list[list[float]]
) -> float:
    """Cohen's kappa of two raters; a rating is the position of its category."""
    observed = [weights[a][b] for a, b in zip(first, second, strict=True)]
    expected = [weights[a][b] for a in first for b in second]
    if not any(expected):
        return float("nan")
    return 1 - (sum(observed) / len(observed)) / (sum(expected) / len(expected))


def krippendorff_alpha(ratings: Sequence[Sequence[float]], *, level: str = "nominal") -> float:
    """Krippendorff's alpha from all ordered pairs of ratings, within units and overall."""
    given = [[value for value in unit if not isnan(value)] for unit in ratings]
    units = [unit for unit in given if len(unit) > 1]
    pooled = [value for unit in units for value in unit]

    def difference(c: float, d: float) -> float:
        if level == "nominal":
            return float(c != d)
        if level == "interval":
            return (c - d) ** 2
        low, high = min(c, d), max(c, d)
        between = sum(low <= value <= high for value in pooled)
        return (between - (pooled.count(c) + pooled.count(d)) / 2) ** 2

    observed = sum(
        sum(difference(c, d) for c, d in permutations(unit, 2)) / (len(unit) - 1)
        for unit in units
    ) / len(pooled)
    expected = sum(difference(c, d) for c, d in permutations(pooled, 2))
    if not expected:
        return float("nan")
    return 1 - observed / (expected / (len(pooled) * (len(pooled) - 1)))


def median_differences(
    first: Sequence[float], second: Sequence[float], swaps: Sequence[Sequence[bool]]
) -> list[float]:
    """Median of `first` minus median of `second`, after each of the swaps."""
    return [_difference(median, first, second, swap) for swap in swaps]


def fisher_randomization(
    first: Sequence[float],
    second: Sequence[float],
    *,
    statistic: str = "mean",
    groups: Sequence[int] | None = None,
) -> float:
    """P-value over all 2^n reassignments of n groups; exact if the values are fractions."""
    measure = _MEASURES[statistic]
    observed = abs(measure(first) - measure(second))
    own = range(len(first)) if groups is None else groups
    known = sorted(set(own))
    drawn = product([False, True], repeat=len(known))
    swaps = [[sides[known.index(group)] for group in own] for sides in drawn]
    extreme = [s for s in swaps if abs(_difference(measure, first, second, s)) >= observed]
    return len(extreme) / len(swaps)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    draws: Sequence[Sequence[int]],
    *,
    statistic: str = "mean",
) -> list[float]:
    """Difference of the statistic in each resample of queries in `draws`."""
    measure = _MEASURES[statistic]
    return [
        float(measure([first[q] for q in d]) - measure([second[q] for q in d])) for d in draws
    ]


def mcnemar(first: Sequence[bool], second: Sequence[bool], *, mid_p: bool = False) -> float:
    """Two-sided binomial probability of the discordant pairs, summed in fractions."""
    wins = sum(a and not b for a, b in zip(first, second, strict=True))
    losses = sum(b and not a for a, b in zip(first, second, strict=True))
    n, fewer = wins + losses, min(wins, losses)
    tail = Fraction(sum(comb(n, i) for i in range(fewer + 1)), 2**n)
    if mid_p:
        return float(2 * tail - Fraction(comb(n, fewer), 2**n))
    return float(min(Fraction(1), 2 * tail))


def holm(p_values: Sequence[float]) -> list[float]:
    """For each hypothesis, the smallest level at which Holm's procedure rejects it."""
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    adjusted = [0.0] * m
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((m - j) * p_values[order[j]] for j in range(place + 1)))
    return adjusted


def _difference(
    measure: Callable[..., Any],
    first: Sequence[float],
    second: Sequence[float],
    swap: Sequence[bool],
) -> Any:
    pairs = list(zip(first, second, swap, strict=True))
    return measure([b if moved else a for a, b, moved in pairs]) - measure(
        [a if moved else b for a, b, moved in pairs]
    )


def _exact_mean(values: Sequence[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0)) / len(values)


_MEASURES: dict[str, Callable[..., Any]] = {"mean": _exact_mean, "median": median}
