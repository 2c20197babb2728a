"""Evaluation of rankings: from a matrix of scores to metrics that carry their settings.

Nothing here knows a model. `evaluate` takes a matrix of images by captions, higher is better,
or vectors. All evaluations return a `Result`: values of every query by task and metric, which
prints as text, Markdown, LaTeX, HTML, JSON and a data frame, alone or beside others in a
`ResultTable`; `compare` tests their differences. More is in modules of their own: `ranks` of
gold items, `metrics` of ranks and their intervals, tests of `significance`, `agreement` of
raters, `caption_metrics` and files of `trec`.
"""

from kernelcore.evaluation import agreement, caption_metrics, metrics, ranks, significance, trec
from kernelcore.evaluation.comparison import Comparison, compare
from kernelcore.evaluation.links import evaluate_links
from kernelcore.evaluation.metrics import RankedRelevance
from kernelcore.evaluation.relevance import evaluate_relevance, rank_lists, rank_relevant
from kernelcore.evaluation.result import Published, Result, ResultTable
from kernelcore.evaluation.retrieval import evaluate
from kernelcore.evaluation.selections import evaluate_selections
from kernelcore.evaluation.streaming import embedding_scores, streamed_ranks
from kernelcore.evaluation.table import Table

__all__ = [
    "Comparison",
    "Published",
    "RankedRelevance",
    "Result",
    "ResultTable",
    "Table",
    "agreement",
    "caption_metrics",
    "compare",
    "embedding_scores",
    "evaluate",
    "evaluate_links",
    "evaluate_relevance",
    "evaluate_selections",
    "metrics",
    "rank_lists",
    "rank_relevant",
    "ranks",
    "significance",
    "streamed_ranks",
    "trec",
]
