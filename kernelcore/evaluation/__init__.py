"""Evaluation of rankings: from a matrix of scores to metrics that carry their settings.

Nothing here knows a model. Scores come as a matrix of images by captions, higher is better;
`evaluate` ranks the gold items of both directions with a named tie rule and returns a
`RetrievalResult` that prints as text, Markdown, LaTeX, JSON and a data frame, alone or beside
others in a `ResultTable`.
"""

from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from kernelcore.evaluation.binary_selection import (
    evaluate_selection_predictions,
    evaluate_selections,
    predict_selections,
)
from kernelcore.evaluation.caption_metrics import (
    BleuScores,
    CaptionScores,
    DocumentFrequencies,
    bleu,
    bleu_tokens,
    cider,
    cider_d,
    coco_tokenize,
    meteor,
    rouge_l,
    rouge_tokens,
    spice,
    unigram_bleu,
    unigram_bleu_matrix,
    unigram_rouge,
    unigram_rouge_matrix,
    unlikely_pairs,
)
from kernelcore.evaluation.comparing import ComparedMetric, Comparison, compare
from kernelcore.evaluation.document_difficulty import (
    AucExplanation,
    AucRegression,
    auc_correlation,
    explain_auc,
    spread,
)
from kernelcore.evaluation.evaluating import evaluate, evaluate_folds
from kernelcore.evaluation.first_results import (
    FirstResultScores,
    first_result_scores,
    first_result_table,
)
from kernelcore.evaluation.folds import FoldedMetrics, FoldedResult
from kernelcore.evaluation.links import LinkResult, PublishedLinks, evaluate_links, link_table
from kernelcore.evaluation.metrics import (
    RankingMetrics,
    bootstrap_interval,
    chance_recall_at_k,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    recall_at_k,
    wilson_interval,
)
from kernelcore.evaluation.places import GoldPlaces
from kernelcore.evaluation.ranked_relevance import RankedRelevance, rank_lists, rank_relevant
from kernelcore.evaluation.ranks import (
    RetrievalRanks,
    Ties,
    annotation_ranks,
    gold_ranks,
    retrieval_ranks,
    search_ranks,
)
from kernelcore.evaluation.relevance_result import (
    RelevanceMetrics,
    RelevanceResult,
    evaluate_relevance,
    relevance_metrics,
    relevance_table,
)
from kernelcore.evaluation.result import (
    PublishedMetrics,
    PublishedResult,
    ResultTable,
    RetrievalResult,
)
from kernelcore.evaluation.selection_result import (
    PublishedSelection,
    SelectionResult,
    compare_selections,
    selection_table,
)
from kernelcore.evaluation.significance import (
    PairedBootstrap,
    PairedTest,
    RankCorrelation,
    fisher_randomization,
    holm,
    mcnemar,
    paired_bootstrap,
    rank_correlation,
)
from kernelcore.evaluation.streaming import embedding_scores, streamed_ranks
from kernelcore.evaluation.table import Table
from kernelcore.evaluation.tie_groups import (
    GroupedMetric,
    TieGroups,
    compact_letters,
    tie_groups,
)
from kernelcore.evaluation.trec import (
    rank_run,
    read_qrels,
    read_run,
    trec_qrels,
    trec_run,
    write_qrels,
    write_run,
)

__all__ = [
    "AucExplanation",
    "AucRegression",
    "BleuScores",
    "CaptionScores",
    "ComparedMetric",
    "Comparison",
    "DocumentFrequencies",
    "FirstResultScores",
    "FoldedMetrics",
    "FoldedResult",
    "GoldPlaces",
    "GroupedMetric",
    "LinkResult",
    "PairedBootstrap",
    "PairedTest",
    "PublishedLinks",
    "PublishedMetrics",
    "PublishedResult",
    "PublishedSelection",
    "RankCorrelation",
    "RankedRelevance",
    "RankingMetrics",
    "RelevanceMetrics",
    "RelevanceResult",
    "ResultTable",
    "RetrievalRanks",
    "RetrievalResult",
    "SelectionResult",
    "Table",
    "TieGroups",
    "Ties",
    "annotation_ranks",
    "auc_correlation",
    "bleu",
    "bleu_tokens",
    "bootstrap_interval",
    "chance_recall_at_k",
    "cider",
    "cider_d",
    "coco_tokenize",
    "cohen_kappa",
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
    "explain_auc",
    "first_result_scores",
    "first_result_table",
    "fisher_randomization",
    "gold_ranks",
    "holm",
    "krippendorff_alpha",
    "krippendorff_alpha_interval",
    "link_table",
    "mcnemar",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "meteor",
    "paired_bootstrap",
    "predict_selections",
    "rank_correlation",
    "rank_lists",
    "rank_relevant",
    "rank_run",
    "read_qrels",
    "read_run",
    "recall_at_k",
    "relevance_metrics",
    "relevance_table",
    "retrieval_ranks",
    "rouge_l",
    "rouge_tokens",
    "search_ranks",
    "selection_table",
    "spice",
    "spread",
    "streamed_ranks",
    "tie_groups",
    "trec_qrels",
    "trec_run",
    "unigram_bleu",
    "unigram_bleu_matrix",
    "unigram_rouge",
    "unigram_rouge_matrix",
    "unlikely_pairs",
    "wilson_interval",
    "write_qrels",
    "write_run",
]
