"""Evaluation of rankings: from a matrix of scores to metrics that carry their settings.

Nothing here knows a model. Scores come as a matrix of images by captions, higher is better;
`evaluate` ranks the gold items of both tasks with a named tie rule and returns a
`RetrievalResult`, which prints as text, Markdown, LaTeX, HTML, JSON and a data frame, alone or
beside others in a `ResultTable`. More is in modules of their own: `ranks` of gold items,
`metrics` of ranks and their intervals, tests of `significance`, `agreement` of raters,
`caption_metrics` and files of `trec`.
"""

from kernelcore.evaluation import agreement, caption_metrics, metrics, ranks, significance, trec
from kernelcore.evaluation.comparing import Comparison, compare
from kernelcore.evaluation.evaluating import evaluate
from kernelcore.evaluation.grouping import TieGroups, compact_letters, tie_groups
from kernelcore.evaluation.links import LinkResult, evaluate_links
from kernelcore.evaluation.metrics import RankingMetrics
from kernelcore.evaluation.places import GoldPlaces
from kernelcore.evaluation.published import Published
from kernelcore.evaluation.ranked_relevance import RankedRelevance, rank_lists, rank_relevant
from kernelcore.evaluation.relevance import (
    RelevanceMetrics,
    RelevanceResult,
    evaluate_relevance,
    relevance_metrics,
)
from kernelcore.evaluation.result import Result, ResultTable
from kernelcore.evaluation.retrieval import FoldedMetrics, FoldedResult, RetrievalResult
from kernelcore.evaluation.selections import (
    SelectionResult,
    compare_selections,
    evaluate_selection_predictions,
    evaluate_selections,
)
from kernelcore.evaluation.streaming import embedding_scores, streamed_ranks
from kernelcore.evaluation.table import Table

__all__ = [
    "Comparison",
    "FoldedMetrics",
    "FoldedResult",
    "GoldPlaces",
    "LinkResult",
    "Published",
    "RankedRelevance",
    "RankingMetrics",
    "RelevanceMetrics",
    "RelevanceResult",
    "Result",
    "ResultTable",
    "RetrievalResult",
    "SelectionResult",
    "Table",
    "TieGroups",
    "agreement",
    "caption_metrics",
    "compact_letters",
    "compare",
    "compare_selections",
    "embedding_scores",
    "evaluate",
    "evaluate_links",
    "evaluate_relevance",
    "evaluate_selection_predictions",
    "evaluate_selections",
    "metrics",
    "rank_lists",
    "rank_relevant",
    "ranks",
    "relevance_metrics",
    "significance",
    "streamed_ranks",
    "tie_groups",
    "trec",
]
