"""All systems beside the judgments of people: the measures, and the sections about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelcore.evaluation import RelevanceResult, RetrievalResult
from kernelcore.experiments.hodosh2013.agreement import (
    agreement_section,
    crowd_agreement_section,
    text_agreement_section,
)
from kernelcore.experiments.hodosh2013.claims import Claim, Evidence, Measure
from kernelcore.experiments.hodosh2013.draws import Draws
from kernelcore.experiments.hodosh2013.filtering import filter_section
from kernelcore.experiments.hodosh2013.first_caption_claims import (
    between_claim,
    expert_claims,
    random_claim,
    text_claims,
)
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
from kernelcore.experiments.hodosh2013.judgment_claims import (
    crowd_claims,
    filter_claim,
    reference_claims,
)
from kernelcore.experiments.hodosh2013.kappas import Counts, ScoredPairs
from kernelcore.experiments.hodosh2013.measures import (
    Floats,
    of_first_captions,
    of_relevance,
)
from kernelcore.experiments.hodosh2013.paper_claims import feature_claims, relevance_claims
from kernelcore.experiments.judged import CROWD_SHARE
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
    relevance : mapping of str to RelevanceResult
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
    relevance: Mapping[str, RelevanceResult]
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

    def system_sections(self, baseline: str, draws: Draws) -> Iterator[Section]:
        """Yield the sections on relevance, expert scores, BLEU and ROUGE of the systems."""
        yield counts_section(self.judgments, self.pool)
        yield crowd_section(list(self.relevance.values()), self.chance)
        expert = self.judgments.expert_and_gold(self.pool)
        yield expert_section(self.experts, expert, baseline=baseline, draws=draws)
        if len(self.experts) > 1 or self.texts:
            yield mean_section(
                self.experts, self.texts, self.matrices, baseline=baseline, draws=draws
            )

    def judgment_sections(self, draws: Draws) -> Iterator[Section]:
        """Yield the sections on the judgments and text metrics alone."""
        counts = self._counts(draws)
        yield agreement_section(self.judgments.expert, draws)
        yield text_agreement_section(self._pairs, counts)
        yield crowd_agreement_section(self._pairs)
        if ALL in self.matrices:
            yield filter_section(self.pool, self.judgments, self.matrices)

    def measures(self, results: Mapping[str, RetrievalResult]) -> dict[str, Measure]:
        """Return the measures of some of the systems, for tests."""
        relevance = {name: self.relevance[name] for name in results}
        experts = {name: self.experts[name] for name in results}
        texts = {key: {name: of[name] for name in results} for key, of in self.texts.items()}
        return {
            **of_relevance(relevance, results),
            **of_first_captions(experts, texts, results),
        }

    def system_claims(self, evidence: Evidence) -> Iterator[Claim]:
        """Test the claims about systems."""
        yield from relevance_claims(evidence)
        yield from feature_claims(evidence)
        yield from expert_claims(evidence)
        yield between_claim(self.experts, self.relevance)
        compared = {"annotation S@1": self._relevance_matrix()}
        if self.texts:
            yield from text_claims(evidence)
            compared |= {name: self.matrices[ALL][name] for name in ("BLEU", "ROUGE")}
        yield random_claim(evidence, compared)

    def judgment_claims(self, draws: Draws) -> Iterator[Claim]:
        """Test the claims about judgments and text metrics alone."""
        counts = self._counts(draws)
        yield from crowd_claims(self._pairs, counts)
        if ALL in self.matrices:
            yield from reference_claims(self._pairs, counts)
            yield filter_claim(self.judgments.expert, self.matrices, draws)

    def _counts(self, draws: Draws) -> Counts:
        return draws.resamples(len(self.pool.image_ids))

    @property
    def _pairs(self) -> ScoredPairs:
        return ScoredPairs.of(self.judgments.expert, self.judgments.crowd, self.matrices)

    def _relevance_matrix(self) -> Floats:
        """Return 1 where a caption is relevant to an image, and 0 elsewhere."""
        relevance = self.judgments.relevance(self.pool)
        matrix = np.zeros((len(relevance.image_ids), len(relevance.caption_ids)))
        matrix[relevance.images, relevance.captions] = relevance.scores >= CROWD_SHARE
        return matrix
