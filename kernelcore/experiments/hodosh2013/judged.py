"""Sections on human judgments and on text metrics: relevance, experts, BLEU, agreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcore._validation import check_real
from kernelcore.datasets import (
    CaptionedImages,
    RelevanceJudgments,
    load_flickr_crowd,
    load_flickr_expert,
)
from kernelcore.evaluation import RelevanceResult, ResultTable, Table, evaluate_relevance
from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from kernelcore.evaluation.caption_metrics import (
    rouge_tokens,
    unigram_bleu,
    unigram_bleu_matrix,
    unigram_rouge,
    unigram_rouge_matrix,
)
from kernelcore.experiments.hodosh2013.first_results import (
    first_result_scores,
    first_result_table,
)
from kernelcore.experiments.hodosh2013.systems import SOURCE
from kernelcore.experiments.judged import CROWD_FILE, CROWD_SHARE, EXPERT_FILE
from kernelcore.experiments.scores import Scores
from kernelcore.report import Section

_EXPERT_THRESHOLDS = (3.0, 10 / 3, 11 / 3, 4.0)
_SIMILARITY_THRESHOLDS = tuple(np.arange(0.05, 1.0, 0.05).round(2).tolist())


@dataclass(frozen=True, eq=False)
class CaptionPool:
    """The images of a split and one caption of each, the pool.

    Attributes
    ----------
    image_ids, caption_ids : tuple of str
    captions : tuple of str
        Raw captions of the pool.
    others : tuple of tuple of str
        The other captions of each image.
    """

    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    captions: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]

    @property
    def has_references(self) -> bool:
        """Whether every image has captions outside the pool."""
        return all(self.others)

    @classmethod
    def of(cls, dataset: CaptionedImages, split: str, number: int) -> CaptionPool:
        """Return the pool of a split."""
        rows = dataset.split(split)
        places = [dataset.caption_numbers[i].index(number) for i in rows]
        return cls(
            tuple(dataset.image_ids[i] for i in rows),
            tuple(dataset.caption_ids[i][at] for i, at in zip(rows, places, strict=True)),
            tuple(dataset.captions[i][at] for i, at in zip(rows, places, strict=True)),
            tuple(
                dataset.captions[i][:at] + dataset.captions[i][at + 1 :]
                for i, at in zip(rows, places, strict=True)
            ),
        )


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judgments of the pairs of a pool.

    Attributes
    ----------
    crowd : RelevanceJudgments
        Share of yes.
    expert : RelevanceJudgments
        Mean of three scores from 1 to 4.
    """

    crowd: RelevanceJudgments
    expert: RelevanceJudgments

    @classmethod
    def of(cls, folder: Path | str, pool: CaptionPool) -> Judgments | None:
        """Read the judgments of a corpus; return None if it has none of this pool."""
        paths = [Path(folder) / name for name in (CROWD_FILE, EXPERT_FILE)]
        if not all(path.is_file() for path in paths):
            return None
        crowd, expert = (
            judgments.select(pool.image_ids, pool.caption_ids)
            for judgments in (load_flickr_crowd(paths[0]), load_flickr_expert(paths[1]))
        )
        return cls(crowd, expert) if len(crowd) and len(expert) else None

    def relevance(self, pool: CaptionPool) -> RelevanceJudgments:
        """Return the judgments of the crowd, with every image's own caption as relevant."""
        pairs = zip(pool.image_ids, pool.caption_ids, strict=True)
        gold = RelevanceJudgments.from_pairs("gold", pairs, np.ones(len(pool.image_ids)))
        return self.crowd.union(gold.select(pool.image_ids, pool.caption_ids))


def relevance_results(
    scores: Mapping[str, Scores],
    judgments: Judgments,
    pool: CaptionPool,
    labels: Mapping[str, Any],
) -> list[RelevanceResult]:
    """Evaluate every system by the judgments of the crowd."""
    relevance = judgments.relevance(pool)
    return [
        evaluate_relevance(
            of.annotation,
            of.search,
            judgments=relevance,
            threshold=CROWD_SHARE,
            system=name,
            protocol=SOURCE,
            **labels,
        )
        for name, of in scores.items()
    ]


def crowd_section(results: Sequence[RelevanceResult]) -> Section:
    """Tabulate the share of relevant captions among the first ranks."""
    return Section(
        "Human judgments of relevance",
        (
            "A caption is relevant to an image if it was written for the image, or if at "
            "least half of the crowd said that it describes the image.",
        ),
        (ResultTable(results).to_table(),),
    )


def expert_section(scores: Mapping[str, Scores], judgments: Judgments) -> Section:
    """Tabulate the expert scores of the captions ranked first."""
    first = {
        name: first_result_scores(of.annotation, judgments.expert)
        for name, of in scores.items()
    }
    return Section(
        "Expert scores of the first caption",
        (
            "The experts judged only pairs that the systems of the paper ranked first. Many "
            "of our first results were not judged. They count as below every threshold, so "
            "the shares are lower bounds.",
        ),
        (first_result_table(first),),
    )


def unlikely_pairs(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    threshold: float,
    tokenize: Callable[[str], Sequence[str]] = rouge_tokens,
) -> npt.NDArray[np.bool_]:
    """Tell which captions are too unlike an image's own to be judged by people.

    Hodosh et al. (2013) spare their judges the pairs of low BLEU_pre, which is
    `unigram_bleu` on the tokens of ROUGE.

    Parameters
    ----------
    candidates : sequence of str, length n_captions
    references : sequence of sequences of str, length n_images
        The captions of each image, at least one.
    threshold : float
        Pairs that score less are unlikely; in [0, 1].
    tokenize : callable, default `rouge_tokens`
        From a caption to its tokens.

    Returns
    -------
    ndarray of bool, shape (n_images, n_captions)

    Raises
    ------
    TypeError, ValueError
        As `unigram_bleu_matrix`, or if `threshold` is not a number in [0, 1].

    Examples
    --------
    >>> from kernelcore.experiments.hodosh2013.judged import unlikely_pairs
    >>> images = [["The dog runs."], ["A cat sleeps."]]
    >>> unlikely_pairs(["a running dog", "a white cat"], images, threshold=0.25)
    array([[False,  True],
           [ True, False]])
    """
    threshold = check_real("threshold", threshold, minimum=0.0, maximum=1.0)
    return unigram_bleu_matrix(candidates, references, tokenize=tokenize) < threshold


def text_scores(
    scores: Mapping[str, Scores], pool: CaptionPool
) -> dict[str, npt.NDArray[np.float64]]:
    """Return BLEU and ROUGE of the caption ranked first, each of shape (n_systems, n_images).

    The references are the captions of the image outside the pool.
    """
    first = [of.annotation.argmax(axis=1) for of in scores.values()]
    candidates = [[pool.captions[i] for i in row] for row in first]
    return {
        name: np.stack([np.asarray(measure(row, pool.others)) for row in candidates])
        for name, measure in (("BLEU", unigram_bleu), ("ROUGE", unigram_rouge))
    }


def text_section(
    names: Sequence[str], values: Mapping[str, npt.NDArray[np.float64]]
) -> Section:
    """Tabulate mean BLEU and ROUGE of each system."""
    columns = [of.mean(axis=1) for of in values.values()]
    return Section(
        "BLEU and ROUGE of the first caption",
        (
            "The scores compare unigrams, without brevity penalty. The references are the "
            "captions of the image that are not in the pool, so a caption is never its own "
            "reference.",
        ),
        (
            Table(
                columns=("system", *values),
                rows=tuple(
                    (name, *(f"{column[i]:.3f}" for column in columns))
                    for i, name in enumerate(names)
                ),
            ),
        ),
    )


def agreement_section(judgments: Judgments, pool: CaptionPool, *, rng: int = 0) -> Section:
    """Tabulate the agreement of experts, crowd and text metrics."""
    return Section(
        "Agreement",
        (
            "The first table has Krippendorff's alpha of the three expert scores of a pair, "
            "with 95 % intervals over 1,000 resamples of pairs. The scores of a pair are "
            "sorted in the file, so a column is not a judge; alpha does not depend on this "
            "order. The second table has Cohen's kappa of two binary verdicts on the pairs "
            "that both judged. The first verdict is an expert mean at or above a threshold. "
            "The second is the crowd's share of yes, BLEU, BLEU_pre (BLEU with the "
            "preprocessing of ROUGE) or ROUGE, at or above the threshold with the greatest "
            "kappa.",
        ),
        (_alpha_table(judgments, rng), _kappa_table(judgments, pool)),
    )


def _alpha_table(judgments: Judgments, rng: int) -> Table:
    ratings = judgments.expert.ratings
    assert ratings is not None, "the expert file holds three scores a pair"
    rows = []
    for level in ("nominal", "ordinal", "interval"):
        alpha = krippendorff_alpha(ratings, level=level)
        low, high = krippendorff_alpha_interval(ratings, level=level, rng=rng)
        rows.append((level, f"{alpha:.3f}", f"{low:.3f}", f"{high:.3f}"))
    return Table(
        columns=("level", "alpha of the experts", "low", "high"),
        rows=tuple(rows),
        caption=f"{len(judgments.expert):,} pairs",
    )


def _kappa_table(judgments: Judgments, pool: CaptionPool) -> Table:
    expert = judgments.expert
    pairs = expert.images, expert.captions
    measures = {"crowd": judgments.crowd.scores_of(*pairs)}
    if pool.has_references:
        others = (pool.captions, pool.others)
        measures |= {
            "BLEU": unigram_bleu_matrix(*others)[pairs],
            "BLEU_pre": unigram_bleu_matrix(*others, tokenize=rouge_tokens)[pairs],
            "ROUGE": unigram_rouge_matrix(*others)[pairs],
        }
    rows = []
    for least in _EXPERT_THRESHOLDS:
        verdict = expert.scores >= least
        cells = [_best_kappa(verdict, values) for values in measures.values()]
        rows.append((f">= {least:.3g}", *cells))
    judged = np.isfinite(measures["crowd"]).sum()
    return Table(
        columns=("expert mean", *measures),
        rows=tuple(rows),
        caption=f"kappa, and the threshold in brackets; {len(expert):,} pairs, of which the "
        f"crowd judged {judged:,}",
    )


def _best_kappa(verdict: npt.NDArray[np.bool_], values: npt.NDArray[np.float64]) -> str:
    known = np.isfinite(values)
    if not known.any():
        return "-"
    kappas = [
        cohen_kappa(verdict[known], values[known] >= threshold)
        for threshold in _SIMILARITY_THRESHOLDS
    ]
    if np.isnan(kappas).all():
        return "-"
    best = int(np.nanargmax(kappas))
    return f"{kappas[best]:.2f} ({_SIMILARITY_THRESHOLDS[best]:.2f})"
