"""How well a system ranks: from a matrix of scores to numbers that carry their settings.

Nothing here knows a model. Scores come as a matrix of images by captions, higher is better;
`evaluate` ranks the gold items of both directions with a named tie rule and returns a
`RetrievalResult` that prints as text, Markdown, LaTeX, JSON and a data frame, alone or beside
others in a `ResultTable`.
"""

from kernelcore.evaluation.metrics import (
    bootstrap_interval,
    chance_recall_at_k,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    recall_at_k,
)
from kernelcore.evaluation.ranking_metrics import RankingMetrics
from kernelcore.evaluation.ranks import Ties, annotation_ranks, gold_ranks, search_ranks
from kernelcore.evaluation.result import RetrievalResult, evaluate
from kernelcore.evaluation.result_table import PublishedMetrics, PublishedResult, ResultTable
from kernelcore.evaluation.table import Table

__all__ = [
    "PublishedMetrics",
    "PublishedResult",
    "RankingMetrics",
    "ResultTable",
    "RetrievalResult",
    "Table",
    "Ties",
    "annotation_ranks",
    "bootstrap_interval",
    "chance_recall_at_k",
    "evaluate",
    "gold_ranks",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "recall_at_k",
    "search_ranks",
]
