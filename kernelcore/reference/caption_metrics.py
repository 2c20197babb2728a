"""Caption metrics by their formulas, with dictionaries.

Captions are sequences of tokens; `references` holds those of each candidate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

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
) -> list[float]:
    """Ten times the mean cosine, over orders and references, of tf-idf vectors."""
    idf = _Idf(references, frequencies, n_documents, max_n)
    return [
        10
        / (max_n * len(sets))
        * sum(
            idf.cosine(_ngrams(candidate, n), _ngrams(reference, n), clip=False)
            for reference in sets
            for n in range(1, max_n + 1)
        )
        for candidate, sets in zip(candidates, references, strict=True)
    ]


def cider_d(
    candidates: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    *,
    frequencies: Counts | None = None,
    n_documents: int | None = None,
    max_n: int = 4,
    sigma: float = 6.0,
) -> list[float]:
    """CIDEr with clipped counts and a penalty on the difference in bigrams."""
    idf = _Idf(references, frequencies, n_documents, max_n)
    scores = []
    for candidate, sets in zip(candidates, references, strict=True):
        total = 0.0
        for reference in sets:
            difference = max(len(candidate) - 1, 0) - max(len(reference) - 1, 0)
            penalty = math.exp(-(difference**2) / (2 * sigma**2))
            for n in range(1, max_n + 1):
                mine, theirs = _ngrams(candidate, n), _ngrams(reference, n)
                total += penalty * idf.cosine(mine, theirs, clip=True)
        scores.append(10 * total / (max_n * len(sets)))
    return scores


class _Idf:
    def __init__(
        self,
        references: Sequence[Sequence[Tokens]],
        frequencies: Counts | None,
        n_documents: int | None,
        max_n: int,
    ) -> None:
        self.frequencies = frequencies or document_frequencies(references, max_n)
        self.n_documents = n_documents or len(references)

    def cosine(self, mine: Counts, theirs: Counts, *, clip: bool) -> float:
        a, b = self._vector(mine), self._vector(theirs)
        shared = self._vector(mine & theirs) if clip else a
        norms = math.hypot(*a.values()) * math.hypot(*b.values())
        return sum(shared[g] * b[g] for g in shared if g in b) / norms if norms else 0.0

    def _vector(self, counts: Counts) -> dict[tuple[str, ...], float]:
        return {
            ngram: count * math.log(self.n_documents / max(self.frequencies[ngram], 1))
            for ngram, count in counts.items()
        }


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
