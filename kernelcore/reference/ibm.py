"""IBM models 1 and 2 by the formulas of Brown et al. (1993), with dictionaries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeAlias

Pairs: TypeAlias = Sequence[tuple[Sequence[Hashable], Sequence[Hashable]]]
"""Source and target sentence of each pair, in words of any hashable kind."""

Translations: TypeAlias = dict[tuple[Hashable, Hashable], float]
"""(source word, target word) -> p(target | source); the NULL word is None."""


def ibm1(
    pairs: Pairs, n_iterations: int, null_word: bool = True
) -> tuple[Translations, list[float]]:
    """Compute translation probabilities, and the log-likelihood before each iteration."""
    pairs = _usable(pairs, null_word)
    t = _uniform(pairs)
    history = []
    for _ in range(n_iterations):
        counts: Translations = defaultdict(float)
        log_likelihood = 0.0
        for source, target in pairs:
            for e in target:
                total = sum(t[f, e] for f in source)
                log_likelihood += math.log(total / len(source))
                for f in source:
                    counts[f, e] += t[f, e] / total
        t = _normalized(counts)
        history.append(log_likelihood)
    return t, history


def ibm2(
    pairs: Pairs, n_iterations: int, n_model1_iterations: int, null_word: bool = True
) -> tuple[Translations, list[float]]:
    """Train model 1, then model 2 from its translations and uniform alignments."""
    t, _ = ibm1(pairs, n_model1_iterations, null_word)
    pairs = _usable(pairs, null_word)
    if not n_model1_iterations:
        t = _uniform(pairs)
    # a[l, m, j][i]: probability that target position j comes from source position i
    a = {
        (len(source), len(target), j): [1 / len(source)] * len(source)
        for source, target in pairs
        for j in range(len(target))
    }
    history = []
    for _ in range(n_iterations):
        counts: Translations = defaultdict(float)
        a_counts = {key: [0.0] * len(values) for key, values in a.items()}
        log_likelihood = 0.0
        for source, target in pairs:
            for j, e in enumerate(target):
                key = (len(source), len(target), j)
                total = sum(a[key][i] * t[f, e] for i, f in enumerate(source))
                log_likelihood += math.log(total)
                for i, f in enumerate(source):
                    posterior = a[key][i] * t[f, e] / total
                    counts[f, e] += posterior
                    a_counts[key][i] += posterior
        t = _normalized(counts)
        a = {key: [c / sum(values) for c in values] for key, values in a_counts.items()}
        history.append(log_likelihood)
    return t, history


def _usable(pairs: Pairs, null_word: bool) -> Pairs:
    """Pairs without an empty side, with the NULL word before each source sentence."""
    null = [None] if null_word else []
    return [([*null, *source], list(target)) for source, target in pairs if source and target]


def _uniform(pairs: Pairs) -> Translations:
    n_target_words = len({e for _, target in pairs for e in target})
    return {
        (f, e): 1 / n_target_words for source, target in pairs for f in source for e in target
    }


def _normalized(counts: Translations) -> Translations:
    totals: dict[Hashable, float] = defaultdict(float)
    for (f, _), count in counts.items():
        totals[f] += count
    return {(f, e): count / totals[f] for (f, e), count in counts.items()}
