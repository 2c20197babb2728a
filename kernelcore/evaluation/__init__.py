"""Evaluation of rankings: from a matrix of scores to metrics that carry their settings.

Nothing here knows a model. Scores come as a matrix of images by captions, higher is better;
`evaluate` ranks the gold items of both tasks with a named tie rule and returns a
`RetrievalResult`, which prints as text, Markdown, LaTeX, HTML, JSON and a data frame, alone or
beside others in a `ResultTable`. More is in modules of their own: `ranks` of gold items,
`metrics` of ranks and their intervals, tests of `significance`, `agreement` of raters,
`caption_metrics` and files of `trec`.
"""

from collections.abc import Sequence

from kernelcore._renamed import moved
from kernelcore.evaluation import agreement, caption_metrics, metrics, ranks, significance, trec
from kernelcore.evaluation.comparing import Comparison, compare
from kernelcore.evaluation.evaluating import evaluate, evaluate_folds
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
    predict_selections,
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
    "evaluate_folds",
    "evaluate_links",
    "evaluate_relevance",
    "evaluate_selection_predictions",
    "evaluate_selections",
    "metrics",
    "predict_selections",
    "rank_lists",
    "rank_relevant",
    "ranks",
    "relevance_metrics",
    "significance",
    "streamed_ranks",
    "tie_groups",
    "trec",
]


def _table(
    results: Sequence[Result | Published],
    *,
    metrics: Sequence[str] | None = None,
    standard_errors: bool = False,
) -> Table:
    """Return the cells that `link_table` and its like returned."""
    return ResultTable(results, metrics=metrics, standard_errors=standard_errors).to_table()


_PUBLISHED = "a Published(system, source, values), where values is like"

__getattr__ = moved(
    __name__,
    {
        **{
            module.__name__: module.__all__
            for module in (agreement, caption_metrics, metrics, ranks, significance, trec)
        },
        "kernelcore.evaluation.comparing": ["ComparedMetric"],
        "kernelcore.evaluation.grouping": ["GroupedMetric"],
        "kernelcore.experiments.document_difficulty": [
            "AucExplanation",
            "AucRegression",
            "auc_correlation",
            "explain_auc",
            "spread",
        ],
        "kernelcore.experiments.hodosh2013.first_results": [
            "FirstResultScores",
            "first_result_scores",
            "first_result_table",
        ],
        "kernelcore.experiments.hodosh2013.judged": ["unlikely_pairs"],
    },
    replaced=dict.fromkeys(
        ("link_table", "relevance_table", "selection_table"),
        ("kernelcore.evaluation.ResultTable(...).to_table()", _table),
    ),
    gone={
        "PublishedLinks": f"{_PUBLISHED} {{'AUC': 0.9, 'p@1': 0.7}}",
        "PublishedMetrics": "a dict like {'R@1': 0.1, 'median_rank': 34.0}",
        "PublishedResult": f"{_PUBLISHED} {{'search': {{'R@1': 0.1, 'median_rank': 34.0}}}}",
        "PublishedSelection": f"{_PUBLISHED} {{'accuracy': 0.8}}",
    },
)
