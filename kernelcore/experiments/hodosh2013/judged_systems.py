"""All systems beside the judgments of people: the measures, and the sections about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelcore.evaluation import Result
from kernelcore.experiments.hodosh2013.agreement import (
    agreement_section,
    crowd_agreement_section,
    text_agreement_section,
)
from kernelcore.experiments.hodosh2013.filtering import filter_section
from kernelcore.experiments.hodosh2013.first_captions import (
    expert_scores,
    expert_section,
    mean_section,
    text_scores,
)
from kernelcore.experiments.hodosh2013.first_results import FirstResultScores
from kernelcore.experiments.hodosh2013.judged import (
    ALL,
    CaptionPool,
    Judgments,
    TextMatrices,
    chance_relevance,
    counts_section,
    crowd_section,
    relevance_results,
    text_matrices,
)
from kernelcore.experiments.hodosh2013.kappas import Floats, ScoredPairs, resamples
from kernelcore.experiments.scores import Scores
from kernelcore.report import Section


@dataclass(frozen=True, eq=False)
class JudgedSystems:
    """All systems, measured by the judgments of people and by text metrics.

    Attributes
    ----------
    judgments : Judgments
    pool : CaptionPool
    matrices : mapping of references to mapping of metric to ndarray
        BLEU, BLEU_pre and ROUGE of all pairs.
    relevance : mapping of str to Result
        By system.
    chance : mapping of task to mapping of str to float
        What a random order is expected to reach.
    experts : mapping of str to FirstResultScores
        Expert scores of the first captions; an own caption that nobody judged is perfect.
    texts : mapping of (references, metric) to mapping of str to ndarray
        BLEU and ROUGE of the first captions; empty if an image has one caption only.
    """

    judgments: Judgments
    pool: CaptionPool
    matrices: TextMatrices
    relevance: Mapping[str, Result]
    chance: Mapping[str, Mapping[str, float]]
    experts: Mapping[str, FirstResultScores]
    texts: Mapping[tuple[str, str], Mapping[str, Floats]]

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Scores],
        judgments: Judgments,
        pool: CaptionPool,
        labels: Mapping[str, Any],
    ) -> JudgedSystems:
        """Measure all systems."""
        matrices = text_matrices(pool)
        results = relevance_results(scores, judgments, pool, labels)
        return cls(
            judgments,
            pool,
            matrices,
            {result.system: result for result in results},
            chance_relevance(judgments.relevance(pool)),
            expert_scores(scores, judgments.expert_and_gold(pool)),
            text_scores(scores, matrices),
        )

    def system_sections(self, baseline: str, *, n_threads: int | None) -> Iterator[Section]:
        """Yield the sections on relevance, expert scores, BLEU and ROUGE of the systems."""
        yield counts_section(self.judgments, self.pool)
        yield crowd_section(list(self.relevance.values()), self.chance)
        expert = self.judgments.expert_and_gold(self.pool)
        yield expert_section(self.experts, expert, baseline=baseline, n_threads=n_threads)
        if len(self.experts) > 1 or self.texts:
            yield mean_section(
                self.experts, self.texts, self.matrices, baseline=baseline, n_threads=n_threads
            )

    def judgment_sections(self) -> Iterator[Section]:
        """Yield the sections on the judgments and text metrics alone."""
        yield agreement_section(self.judgments.expert)
        pairs = ScoredPairs.of(self.judgments.expert, self.judgments.crowd, self.matrices)
        yield text_agreement_section(pairs, resamples(pairs.n_images))
        yield crowd_agreement_section(pairs)
        if ALL in self.matrices:
            yield filter_section(self.pool, self.judgments, self.matrices)
