"""Whatever the package exported before goes on working, or says what to write."""

import importlib
import warnings

import pytest

from kernelcore import evaluation
from kernelcore.datasets import RelevanceJudgments
from kernelcore.evaluation import (
    LinkResult,
    Published,
    ResultTable,
    SelectionResult,
    Table,
    evaluate_relevance,
)
from kernelcore.experiments.hodosh2013 import judged
from kernelcore.report import write_markdown

OLD = [
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
TABLES = {"link_table", "relevance_table", "selection_table"}
GONE = {"PublishedLinks", "PublishedMetrics", "PublishedResult", "PublishedSelection"}


def test_there_are_fewer_than_fifty_names():
    assert len(OLD) == 95
    assert len(evaluation.__all__) < 50
    assert len(set(evaluation.__all__)) == len(evaluation.__all__)
    for name in evaluation.__all__:
        assert getattr(evaluation, name) is not None


@pytest.mark.parametrize("name", OLD)
def test_an_old_name_is_found(name):
    if name in evaluation.__all__:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(evaluation, name)
        return
    if name in GONE:
        with pytest.raises(AttributeError, match=f"{name} is gone: write "):
            getattr(evaluation, name)
        return
    if name in TABLES:
        with pytest.warns(
            DeprecationWarning, match=rf"{name}\(.*\) is .*to_table\(\) now"
        ) as told:
            getattr(evaluation, name)
        assert told[0].filename == __file__
        return
    with pytest.warns(DeprecationWarning, match=rf"{name} is [\w.]+ now") as told:
        found = getattr(evaluation, name)
    assert told[0].filename == __file__
    module, _, new = str(told[0].message).split()[2].rpartition(".")
    assert getattr(importlib.import_module(module), new) is found
    assert new == name


def old_tables():
    links = [LinkResult([0.5, 0.7], {1: [1.0, 0.0]}, system=system) for system in "ab"]
    triples = SelectionResult(["a", "b"], [1, 0], system="ours")
    pairs = RelevanceJudgments.from_pairs("own", [("a", "a#0"), ("b", "b#0")], [1, 1])
    relevant = evaluate_relevance([[2, 1], [1, 2]], judgments=pairs, threshold=1)
    return {
        "link_table": ([*links, Published("p", "q", {"AUC": 0.8})], {"standard_errors": True}),
        "selection_table": ([triples, Published("p", "q", {"accuracy": 0.8})], {}),
        "relevance_table": ([relevant], {"metrics": ["S@1", "MRR"]}),
    }


@pytest.mark.parametrize("name", sorted(TABLES))
def test_an_old_table_is_a_table_of_cells(name, tmp_path):
    results, options = old_tables()[name]
    with pytest.warns(DeprecationWarning, match=name):
        made = getattr(evaluation, name)(results, **options)
    assert isinstance(made, Table)
    assert made == ResultTable(results, **options).to_table()
    assert len(made.rows) == len(results)
    write_markdown(tmp_path / "page.md", title="t", results=made)
    assert made.to_markdown() in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(GONE))
def test_a_name_that_is_gone_is_no_attribute_and_an_import_says_what_to_write(name):
    assert not hasattr(evaluation, name)
    assert getattr(evaluation, name, None) is None
    with pytest.raises(ImportError, match=rf"{name} is gone: write a .*like"):
        exec(f"from kernelcore.evaluation import {name}", {})


def test_caption_metrics_had_a_name_more():
    with pytest.warns(DeprecationWarning, match="hodosh2013.judged.unlikely_pairs now"):
        from kernelcore.evaluation.caption_metrics import unlikely_pairs
    assert unlikely_pairs is judged.unlikely_pairs
    assert not hasattr(evaluation.caption_metrics, "no_such_name")


def test_an_old_import_names_the_line_that_has_it(tmp_path, monkeypatch):
    (tmp_path / "of_a_user.py").write_text("from kernelcore.evaluation import read_run\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(
        DeprecationWarning, match=r"kernelcore\.evaluation\.trec\.read_run"
    ) as told:
        importlib.import_module("of_a_user")
    assert {warning.filename for warning in told} == {str(tmp_path / "of_a_user.py")}


def test_other_names_are_no_attributes():
    assert not hasattr(evaluation, "no_such_name")
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        from kernelcore.evaluation import no_such_name  # noqa: F401
