"""Judgments of the pairs of a pool: relevance, scores of first captions, and agreement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore.datasets import (
    CaptionedImages,
    RelevanceJudgments,
    load_flickr_crowd,
    load_flickr_expert,
)
from kernelcore.evaluation import Result, evaluate_relevance
from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from kernelcore.evaluation.caption_metrics import rouge_tokens, unigram_bleu, unigram_rouge
from kernelcore.experiments.judged import CROWD_FILE, CROWD_SHARE, EXPERT_FILE, PERFECT

# Means of three scores from 1 to 4, from all experts saying 4 down to all saying 1.
_LEAST = tuple(total / 3 for total in range(12, 2, -1))
_SHOWN = ("S@1", "S@5", "S@10", "R-precision")
_SHARES = tuple(np.arange(0.05, 1.01, 0.05).round(2).tolist())


@dataclass(frozen=True, eq=False)
class Judges:
    """Judgments of the pairs of a pool with one caption of each image.

    Attributes
    ----------
    image_captions : tuple of tuple of str
        All captions of each image, the one in the pool first.
    relevance : RelevanceJudgments
        The crowd's share of yes, and 1 for the caption of the image itself.
    crowd, expert : RelevanceJudgments
        Share of yes; mean of three scores from 1 to 4.
    expert_and_gold : RelevanceJudgments
        The same, and 4 for an image's own caption that no expert saw.
    """

    image_captions: tuple[tuple[str, ...], ...]
    relevance: RelevanceJudgments
    crowd: RelevanceJudgments
    expert: RelevanceJudgments
    expert_and_gold: RelevanceJudgments

    @classmethod
    def of(
        cls, folder: Path | str, dataset: CaptionedImages, split: str, number: int
    ) -> Judges | None:
        """Read the judgments of a corpus; return None if it has none of this pool."""
        paths = [Path(folder) / name for name in (CROWD_FILE, EXPERT_FILE)]
        if not all(path.is_file() for path in paths):
            return None
        rows = dataset.split(split)
        places = [dataset.caption_numbers[i].index(number) for i in rows]
        ids = (
            [dataset.image_ids[i] for i in rows],
            [dataset.caption_ids[i][at] for i, at in zip(rows, places, strict=True)],
        )
        crowd = load_flickr_crowd(paths[0]).select(*ids)
        expert = load_flickr_expert(paths[1]).select(*ids)
        if not len(crowd) or not len(expert):
            return None
        texts = [(dataset.captions[i], at) for i, at in zip(rows, places, strict=True)]
        relevant, perfect = (
            RelevanceJudgments.from_pairs(
                "gold", zip(*ids, strict=True), np.full(len(rows), score)
            ).select(*ids)
            for score in (1.0, PERFECT)
        )
        return cls(
            tuple((own[at], *own[:at], *own[at + 1 :]) for own, at in texts),
            crowd.union(relevant),
            crowd,
            expert,
            expert.union(perfect, both="first"),
        )

    def crowd_result(self, annotation: Array, search: Array, **labels: Any) -> Result:
        """Evaluate scores by the crowd: success at k and R-precision."""
        result = evaluate_relevance(
            annotation, search, judgments=self.relevance, threshold=CROWD_SHARE, **labels
        )
        values = {
            task: {name: own[name] for name in _SHOWN} for task, own in result.values.items()
        }
        return replace(result, values=values, shown=_SHOWN)

    def first_numbers(self, annotation: Array) -> dict[str, float]:
        """Cumulative distribution of the experts' scores of the first captions, in percent.

        Of several captions with the same best score the worst counts, and one that nobody
        judged is worse than all others: a lower bound.
        """
        rows, columns = np.nonzero(annotation == annotation.max(axis=1, keepdims=True))
        every = self.expert_and_gold.scores_of(rows, columns)
        scores = np.minimum.reduceat(every, np.flatnonzero(np.diff(rows, prepend=-1)))
        judged = np.isfinite(scores)
        numbers = {"judged": 100 * float(judged.mean())}
        if judged.any():
            numbers["mean score"] = float(scores[judged].mean())
        at_least = {
            f">= {least:.3g}": 100 * float((scores >= least).mean()) for least in _LEAST
        }
        return numbers | at_least

    def agreement(self) -> dict[str, dict[str, float]]:
        """Measure how judges agree with each other, and other measures of a pair with them."""
        ratings = self.expert.ratings
        assert ratings is not None, "the expert file holds three scores a pair"
        found = {}
        for level in ("nominal", "ordinal", "interval"):
            low, high = krippendorff_alpha_interval(
                ratings, level=level, groups=self.expert.images, rng=0
            )
            alpha = krippendorff_alpha(ratings, level=level)
            found[f"experts, {level}"] = {"alpha": alpha, "low": low, "high": high}
        pairs = self.expert.images, self.expert.captions
        measures = {"crowd": self.crowd.scores_of(*pairs)}
        every = self.image_captions
        captions = [own[0] for own in every]
        for of, references in {
            "all captions": every,
            "its caption in the pool": [own[:1] for own in every],
            "the other captions": [own[1:] for own in every],
            "one other caption": [own[1:2] for own in every],
        }.items():
            bleu = unigram_bleu(captions, references, tokenize=rouge_tokens)
            measures[f"BLEU, {of}"] = unigram_bleu(captions, references)[pairs]
            measures[f"BLEU_pre, {of}"] = bleu[pairs]
            measures[f"ROUGE, {of}"] = unigram_rouge(captions, references)[pairs]
        for name, values in measures.items():
            found[name] = best_kappa(self.expert.scores, values)
        relevant = sum(map(len, self.relevance.relevant_captions(CROWD_SHARE)))
        found["pairs"] = {
            "judged by experts": len(self.expert),
            "judged by the crowd": len(self.crowd),
            "relevant": relevant,
            "of them gold": len(every),
        }
        return found


def best_kappa(
    expert: npt.NDArray[np.float64], values: npt.NDArray[np.float64]
) -> dict[str, float]:
    """Return Cohen's kappa of experts and another measure, greatest over both thresholds.

    Pairs without a value of the measure are left out.
    """
    known = np.isfinite(values)
    best: dict[str, float] = {"pairs": float(known.sum())}
    for least, share in product(_LEAST[:7], _SHARES):
        verdicts = expert[known] >= least, values[known] >= share
        if all(own.any() and not own.all() for own in verdicts):
            kappa = cohen_kappa(*(own.astype(int) for own in verdicts))
            if kappa > best.get("kappa", -np.inf):
                best |= {"kappa": kappa, "experts >=": least, "measure >=": share}
    return best
