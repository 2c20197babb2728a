"""The filter that spares the crowd unlikely pairs: what it removes and what it loses."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation import Table
from kernelcore.evaluation.caption_metrics import bleu_tokens, unigram_bleu
from kernelcore.experiments.hodosh2013.judged import ALL, CaptionPool, Judgments, TextMatrices
from kernelcore.experiments.judged import CROWD_SHARE, PERFECT
from kernelcore.report import Section

_Floats: TypeAlias = npt.NDArray[np.float64]

FILTERS = ("BLEU_pre", "BLEU")
GOOD = 3.0
"""Least mean expert score of a good caption: most experts see minor errors at most."""
_THRESHOLDS = tuple(np.arange(0.05, 0.51, 0.05).round(2).tolist())


def filter_section(pool: CaptionPool, judgments: Judgments, matrices: TextMatrices) -> Section:
    """Tabulate how many pairs a filter removes, and how many good ones among them."""
    return Section(
        "Filters of unlikely pairs",
        (
            "A filter removes the pairs that score below a threshold against all captions of "
            "the image. The paper filters by BLEU_pre, BLEU with the preprocessing of ROUGE; "
            "its thresholds and figures cannot be read in the text that we have. "
            "Lost are the removed pairs that people find right, in percent of all such pairs: "
            f"pairs with a mean expert score of at least {GOOD:g} or of {PERFECT:g}, and pairs "
            "that at least half of the crowd accepts. The crowd saw mostly pairs that pass the "
            "filter of the paper, so its losses are lower bounds. The columns of the crowd's "
            "verdict are about the removed pairs that it judged all the same.",
        ),
        (_curve(pool, judgments, matrices),),
    )


def good_pairs(judgments: RelevanceJudgments, least: float) -> tuple[npt.NDArray[np.intp], ...]:
    """Return rows and columns of the pairs with at least a score, without own captions.

    An image's own caption is among its references, so that no filter can lose it.
    """
    chosen = (judgments.scores >= least) & (judgments.images != judgments.captions)
    return judgments.images[chosen], judgments.captions[chosen]


def _curve(pool: CaptionPool, judgments: Judgments, matrices: TextMatrices) -> Table:
    right = {
        f"lost, experts >= {GOOD:g}": good_pairs(judgments.expert, GOOD),
        f"lost, experts {PERFECT:g}": good_pairs(judgments.expert, PERFECT),
        "lost, crowd": good_pairs(judgments.crowd, CROWD_SHARE),
    }
    crowd = judgments.crowd
    rows = []
    for threshold in _THRESHOLDS:
        cells = []
        for name in FILTERS:
            removed = matrices[ALL][name] < threshold
            cells += [_percent(removed), *(_percent(removed[of]) for of in right.values())]
            if name == FILTERS[0]:
                shares = crowd.scores[removed[crowd.images, crowd.captions]]
                verdicts = _percent(shares == 0), _percent(shares < CROWD_SHARE)
                cells += [f"{len(shares):,}", *verdicts]
        rows.append((f"{threshold:.2f}", *cells))
    columns = ("removed", *right)
    verdict = ("judged by the crowd", "no yes", "most say no")
    return Table(
        columns=("threshold", *columns, *verdict, *columns),
        rows=tuple(rows),
        groups=(("", 1), (FILTERS[0], len(columns + verdict)), (FILTERS[1], len(columns))),
        caption=f"In percent; {matrices[ALL]['BLEU'].size:,} pairs, of which "
        f"{', '.join(f'{len(of[0]):,}' for of in right.values())} are right "
        "(an image's own caption does not count, because it is a reference); "
        + _shared_words(pool, matrices),
    )


def _shared_words(pool: CaptionPool, matrices: TextMatrices) -> str:
    """Say how many pairs share a word, and two words in a row, with a caption of the image."""
    words = (matrices[ALL]["BLEU"] > 0).mean()
    bigrams = unigram_bleu(pool.captions, pool.all_captions, tokenize=_bigrams) > 0
    return (
        f"{100 * words:.1f} % of all pairs share a word with a caption of the image, and "
        f"{100 * bigrams.mean():.1f} % two words in a row"
    )


def _bigrams(text: str) -> list[str]:
    tokens = bleu_tokens(text)
    return [f"{first} {second}" for first, second in pairwise(tokens)]


def _percent(chosen: npt.NDArray[np.bool_]) -> str:
    return f"{100 * chosen.mean():.1f}" if chosen.size else "-"
