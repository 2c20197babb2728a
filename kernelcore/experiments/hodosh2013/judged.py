"""The pool, what people said of its pairs, and the metrics that follow from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._check import check_real
from kernelcore.datasets import (
    CaptionedImages,
    RelevanceJudgments,
    load_flickr_crowd,
    load_flickr_expert,
)
from kernelcore.evaluation import Result, ResultTable, Table, evaluate_relevance
from kernelcore.evaluation.caption_metrics import (
    rouge_tokens,
    unigram_bleu,
    unigram_rouge,
)
from kernelcore.experiments.hodosh2013.systems import SOURCE
from kernelcore.experiments.judged import CROWD_FILE, CROWD_SHARE, EXPERT_FILE, PERFECT
from kernelcore.experiments.scores import Scores
from kernelcore.models.base import TASKS
from kernelcore.report import Section

RANDOM = "Random (expected)"
_MOST = 4  # larger numbers of relevant items are counted together


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

    @property
    def all_captions(self) -> tuple[tuple[str, ...], ...]:
        """All captions of each image, the one in the pool first."""
        pairs = zip(self.captions, self.others, strict=True)
        return tuple((own, *others) for own, others in pairs)

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

    def gold(self, score: float) -> RelevanceJudgments:
        """Return every image with its own caption in the pool, all with the same score."""
        pairs = zip(self.image_ids, self.caption_ids, strict=True)
        scores = np.full(len(self.image_ids), score)
        gold = RelevanceJudgments.from_pairs("gold", pairs, scores)
        return gold.select(self.image_ids, self.caption_ids)


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
        return self.crowd.union(pool.gold(1.0))

    def expert_and_gold(self, pool: CaptionPool) -> RelevanceJudgments:
        """Return the experts' scores; an own caption that no expert saw is perfect."""
        return self.expert.union(pool.gold(PERFECT), both="first")


def relevance_results(
    scores: Mapping[str, Scores],
    judgments: Judgments,
    pool: CaptionPool,
    labels: Mapping[str, Any],
) -> list[Result]:
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


def chance_relevance(relevance: RelevanceJudgments) -> dict[str, dict[str, float]]:
    """Return what a random order is expected to reach, by task and metric."""
    flat = np.zeros((len(relevance.image_ids), len(relevance.caption_ids)))
    # Means over the orders of ties are those over all orders here, but for S@k.
    result = evaluate_relevance(flat, judgments=relevance, threshold=CROWD_SHARE)
    return {task: result.mean[task] | result.chance[task] for task in TASKS}


def crowd_section(
    results: Sequence[Result], chance: Mapping[str, Mapping[str, float]]
) -> Section:
    """Tabulate S@k and R-precision by the judgments of the crowd.

    The last column is the mean R-precision over the queries of both tasks.
    """
    names = results[0].columns
    table = ResultTable(results).to_table()
    random = [f"{100 * chance[task][name]:.1f}" for task in TASKS for name in names]
    totals = [
        np.concatenate([of.values[task]["R-precision"] for task in TASKS]).mean()
        for of in results
    ]
    totals.append(np.mean([chance[task]["R-precision"] for task in TASKS]))
    rows = [
        (*row, f"{100 * total:.1f}")
        for row, total in zip([*table.rows, (RANDOM, *random)], totals, strict=True)
    ]
    return Section(
        "Human judgments of relevance",
        (
            "A caption is relevant to an image if it was written for the image, or if at "
            "least half of the crowd said that it describes the image. Only pairs that the "
            "systems of the paper ranked high were judged, and all others count as not "
            "relevant. So these figures are lower bounds, and they favour the systems of the "
            "paper over others.",
        ),
        (
            replace(
                table,
                columns=(*table.columns, "R-precision"),
                groups=(*table.groups, ("both", 1)),
                rows=tuple(rows),
            ),
        ),
    )


def counts_section(judgments: Judgments, pool: CaptionPool) -> Section:
    """Tabulate how many images a caption describes, and how many captions an image has."""
    relevance = judgments.relevance(pool)
    sizes = {
        "captions": [len(images) for images in relevance.relevant_images(CROWD_SHARE)],
        "images": [len(captions) for captions in relevance.relevant_captions(CROWD_SHARE)],
    }
    counts = {name: np.bincount(np.minimum(of, _MOST)) for name, of in sizes.items()}
    n_relevant, n_gold = sum(sizes["images"]), len(pool.image_ids)
    share = 100 * n_relevant / (n_gold * len(pool.caption_ids))
    rows = [
        (
            f"{size} or more" if size == _MOST else str(size),
            *(f"{of[size] if size < len(of) else 0:,}" for of in counts.values()),
        )
        for size in range(1, _MOST + 1)
    ]
    most = [str(max(of)) for of in sizes.values()]
    return Section(
        "Relevant pairs",
        (
            "The first column is a number of relevant items: images that a caption describes, "
            "or captions that describe an image.",
        ),
        (
            Table(
                columns=("relevant items", "captions with so many", "images with so many"),
                rows=(*rows, ("largest number", *most)),
                caption=f"{n_relevant:,} relevant pairs: {n_gold:,} gold pairs and "
                f"{n_relevant - n_gold:,} others; {share:.2f} % of all pairs",
            ),
        ),
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
        As `unigram_bleu`, or if `threshold` is not a number in [0, 1].

    Examples
    --------
    >>> from kernelcore.experiments.hodosh2013.judged import unlikely_pairs
    >>> images = [["The dog runs."], ["A cat sleeps."]]
    >>> unlikely_pairs(["a running dog", "a white cat"], images, threshold=0.25)
    array([[False,  True],
           [ True, False]])
    """
    threshold = check_real("threshold", threshold, minimum=0.0, maximum=1.0)
    return unigram_bleu(candidates, references, tokenize=tokenize) < threshold


ALL, OWN = "all captions", "the caption in the pool"
OTHERS, ONE_OTHER = "the other captions", "one other caption"

TextMatrices: TypeAlias = Mapping[str, Mapping[str, npt.NDArray[np.float64]]]
"""By references and by metric, each of shape (n_images, n_captions)."""


def text_matrices(pool: CaptionPool) -> TextMatrices:
    """Return BLEU, BLEU_pre and ROUGE of every caption of a pool for every image.

    The references of an image are all its captions, its caption in the pool, its other
    captions, or the first of the others. If an image has no other caption, only the caption in
    the pool is a reference.
    """
    references: dict[str, Sequence[Sequence[str]]] = {OWN: [(own,) for own in pool.captions]}
    if pool.has_references:
        references = {
            ALL: pool.all_captions,
            **references,
            OTHERS: pool.others,
            ONE_OTHER: [others[:1] for others in pool.others],
        }
    return {
        name: {
            "BLEU": unigram_bleu(pool.captions, of),
            "BLEU_pre": unigram_bleu(pool.captions, of, tokenize=rouge_tokens),
            "ROUGE": unigram_rouge(pool.captions, of),
        }
        for name, of in references.items()
    }
