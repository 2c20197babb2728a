"""What functions of the evaluation refuse: an odd value, and the argument that the error names.

Values of a wrong type in every argument are tried in tests/test_arguments.py.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refusals import refuses, refuses_each

from kernelcore.datasets import BinarySelections, RelevanceJudgments, SelectionTriple
from kernelcore.evaluation import (
    Published,
    Result,
    ResultTable,
    Table,
    compare,
    embedding_scores,
    evaluate,
    evaluate_links,
    evaluate_relevance,
    evaluate_selections,
    rank_lists,
    rank_relevant,
    significance,
    streamed_ranks,
)
from kernelcore.evaluation.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)
from kernelcore.evaluation.caption_metrics import (
    bleu,
    cider,
    cider_d,
    meteor,
    rouge_l,
    spice,
    unigram_bleu,
    unigram_rouge,
)
from kernelcore.evaluation.overlap import equivalence_test, overlap_standard_error, overlap_test
from kernelcore.evaluation.ranks import gold_ranks, retrieval_ranks
from kernelcore.evaluation.trec import rank_run, trec_qrels, trec_run, write_qrels, write_run

NAN, INF = float("nan"), float("inf")
EYE = np.eye(2)
WIDE = np.zeros((2, 3))
UNASKED = np.zeros(0, bool)
IDS = ("a", "b")


def of(values, **labels):
    return Result({"search": {"S@1": values}}, **labels)


def scored(system, **options):
    return evaluate(EYE, system=system, **options)


def compared(systems, **options):
    return compare(*systems, **options)


ONE, TWO = scored("one"), scored("two")
LINKS = Result({"links": {"AUC": [0.5]}})
JUDGED = RelevanceJudgments("two", IDS, IDS, [0, 1], [0, 1], [1.0, 0.5])
TRIPLES = [SelectionTriple("0", "A dog.", "a", "a", "b")]
TRIPLES.append(SelectionTriple("1", "A fox.", "b", "b", "a"))
GARDEN = BinarySelections("garden", TRIPLES)
GOOD = {"search": {"x": [1.0, 0.0]}}
NOTHING = (np.zeros((0, 3)), np.zeros((3, 0)), [[]])
BAD = [[INF, 0.0], [1.0, 1.0]]
PAIRS = {
    "systems": [[1, INF], [1, 2, 3], np.ones((0, 2)), [[1, 2], [1]]],
    "baseline": [[1, NAN], [[1, 2]], []], "statistic": ["mode"], "n_threads": [0],
}  # fmt: skip
BOTH = {"image_vectors": EYE, "caption_vectors": EYE}
# A call, what works, and by its argument what does not.
# fmt: off
REFUSED = [
    (cohen_kappa, {"first": [1, 2], "second": [1, 2]}, {
        "first": [[[1], [2]], [1, None], ["1", "2"], [1, 2, 3]],
        "second": [[1, NAN]], "weights": ["cubic"],
    }),
    (cohen_kappa, {"first": ["a"], "second": ["b"]}, {"weights": ["linear"]}),
    (krippendorff_alpha, {"ratings": [[1, 2], [2, 2]]}, {
        "ratings": [[[1, INF]], [1, 2], [[1, 2], [1]], np.zeros((0, 3)), [[1], [2]]],
        "level": ["ratio"],
    }),
    (krippendorff_alpha_interval, {"ratings": [[1, 2], [2, 2]]}, {
        "ratings": [[[1, INF]], np.zeros((0, 3)), [[1], [2]]], "level": ["ratio"],
        "groups": [[0], [[0, 1]]], "n_resamples": [0], "confidence": [95],
    }),
    (gold_ranks, {"scores": WIDE, "gold": [0, 1]}, {
        "scores": [*NOTHING, [[1, 2], [3]], [1.0, 2.0], np.zeros((2, 2, 2)), [[2**60, 1]]],
        "gold": [
            0, [0], [0, 3], [-1, 0], [[0], [3]], [[0], [-1]], [0.0, 1.0], [True, False],
            [[0], []], [[0], [1, 1]], np.zeros((2, 2), bool), np.eye(2, 3, 2, bool),
        ],
        "ties": ["average"],
    }),
    (retrieval_ranks, {"scores": WIDE, "caption_image": [0, 0, 1]}, {
        "caption_image": [None, [0, 1], [0, 1, 2], [0, -1, 1], [0, 0, 0], [0.0, 1.0, 1.0]],
        "ties": ["average"],
    }),
    (rank_relevant, {"scores": [[1.0, 2.0]], "relevant": [[0]]}, {
        "scores": NOTHING, "relevant": [[[2]], [[1, 1]], [[]], [[0], [1]], [[0.5]], 3],
        "ties": ["random"],
    }),
    (rank_lists, {"lists": [["a"]], "relevant": [["a"]]}, {
        "lists": [[["a", "a"]], [[]]], "relevant": [[], [[]]],
    }),
    (evaluate_relevance, {"annotation_scores": EYE, "judgments": JUDGED, "threshold": 0.5}, {
        "judgments": [JUDGED.select(IDS[:1], IDS), []], "ks": [(0,)], "ties": ["random"],
        "search_scores": [np.ones((3, 2)), EYE * NAN],
    }),
    (streamed_ranks, BOTH, {
        "image_vectors": [[1.0], np.empty((0, 2))], "n_threads": [0], "progress": [1],
        "caption_vectors": [np.empty((2, 0)), WIDE], "caption_image": [[0, 0]],
        "similarity": ["l2"], "ties": ["first"],
    }),
    (embedding_scores, BOTH, {"similarity": ["l2"], "caption_vectors": [WIDE]}),
    (evaluate, BOTH, {
        "image_vectors": [[EYE, WIDE], EYE[:0]], "caption_vectors": [None, WIDE],
        "annotation_scores": [EYE], "captions_per_image": [4], "similarity": ["l2"],
    }),
    (evaluate, {"annotation_scores": EYE}, {
        "annotation_scores": [None], "search_scores": [np.eye(3)], "similarity": ["dot"],
        "n_folds": [0, 3],
    }),
    (evaluate, {"annotation_scores": EYE, "caption_image": [0, 1]}, {
        "captions_per_image": [1],
    }),
    (evaluate_links, {"scores": [[[0.5, 0.1]]], "links": [{(0, 0)}], "cutoffs": (1,)}, {
        "scores": [[], [[0.5, 0.1]], [[[]]], [[[0.5], [0.1, 0]]]],
        "links": [
            [], [None], [3], [{(0, 2)}], [{(1, 0)}], [{(0, -1)}], [{(0, 0.5)}], [[(0, 0, 0)]],
            [[0]], [()],
        ],
        "cutoffs": [(0,), (1.5,)], "images": [[], [("a",)] * 2, ["a"], [(1,)]],
    }),
    (evaluate_selections, {"selections": GARDEN, "scores": EYE, "image_ids": IDS}, {
        "selections": [GARDEN.triples], "scores": [EYE[:1], np.ones((2, 3)), [1.0, 0.0]],
        "image_ids": ["ab", ("a", "c"), ("a", "a")], "caption_ids": [("a", "c")],
    }),
    (evaluate_selections, {"selections": GARDEN, "scores": {"0": "a", "1": "b"}}, {
        "scores": [{"0": "a", "9": "a"}, {"0": "c", "1": "a"}, lambda images, captions: [1.0]],
        "image_ids": [IDS], "caption_ids": [IDS],
    }),
    (significance.fisher_randomization, {"systems": [1, 3], "baseline": [2, 2]}, {
        **PAIRS, "n_reassignments": [0], "systems": [*PAIRS["systems"], [0, 3e307]],
    }),
    (significance.paired_bootstrap, {"systems": [1, 3], "baseline": [2, 2]}, {
        **PAIRS, "n_resamples": [0], "confidence": [95],
    }),
    (significance.mcnemar, {"systems": [True, False], "baseline": [True, True]}, {
        "systems": [[1, 0], [True], [[[True, True]]], np.zeros((0, 2), bool), []],
        "baseline": [[1.0, 0.0], True],
    }),
    (significance.holm, {"p_values": [0.1]}, {"p_values": [[-0.1], [0.2, 1.1], [0.1, NAN]]}),
    (overlap_standard_error, {"values": [0.5, 0.6], "items": [["a"], ["b"]]}, {
        "items": [[["a"]], IDS, [3, 4]], "values": [[0.5, NAN]],
    }),
    (overlap_test, {"systems": [0.5, 0.7], "baseline": [0.5, 0.6], "items": [["a"], ["b"]]}, {
        "systems": [[0.5]],
    }),
    (equivalence_test, {"systems": [1, 2], "baseline": [1, 3], "margin": 0.1}, {
        "margin": [-1],
    }),
    (compared, {"systems": [ONE, TWO], "baseline": 0}, {
        "systems": [
            [ONE], [ONE, "x"], [ONE, ONE], [ONE, replace(TWO, pool="five")],
            [ONE, scored("two", ks=(1,))], [of([1, 0], system="a"), of([1], system="b")],
            [of([1, 0], system="a", items=[("p",), ("q",)]), of([1, 0], system="b")],
            [of([1, NAN], system="a"), of([NAN, 0], system="b")],
        ],
        "baseline": ["none", 4, 1.0], "metrics": [["R@7"], [], ["R@1", "R@1"]],
        "correction": ["bonferroni"], "margin": [-1], "mid_p": [1], "n_reassignments": [0],
    }),
    (Result, {"values": GOOD}, {
        "values": [[1], {}, *({"search": of} for of in (
            {}, [1], {"x": [1], "y": [1, 2]}, {"x": [INF]}, {"x": [NAN]}
        ))],
        "system": ["a\nb"], "pool": [3], "settings": [{"f": print}, {"f": NAN}, [1]],
        "shown": [("y",)], "n_relevant": [{"links": [1, 1]}, {"search": [1]}],
        "n_candidates": [{"search": [0, 1]}],
        "fold": [{"search": [0.5, 1]}, {"search": [0, 2]}],
        "tie_effect": [{"search": {"y": 0.1}}, {"search": {"x": "a"}}, {"links": {}}],
        "items": [[("a",)], ["a", "b"], [(1,), ("a",)]],
    }),
    (Published, {"system": "a", "source": "b"}, {
        "system": ["a\nb"], "source": [3],
        "values": [[1], {3: 1}, {"x": "1"}, {"search": {"x": NAN}}],
    }),
    (ResultTable, {"results": [ONE]}, {
        "results": [
            [], [Published("a", "b")], [3], [LINKS, ONE], [ONE, scored("y", ks=(1,))],
            [ONE, Published("theirs", "Doe", {"search": {"r@1": 0.5}})],
            [ONE, Published("theirs", "Doe", {"accuracy": 0.5})],
        ],
        "metrics": [["AUC"], "R@1"], "uncertainty": ["sd"],
    }),
    (Table, {"columns": IDS, "rows": (IDS,)}, {
        "rows": [(("a",),)], "groups": [(("g", 3),)],
        "superscripts": [frozenset({((1, 0), "*")})],
    }),
    *((metric, {"candidates": ["a", "b"], "references": [["a"], ["b"]]}, {
        "candidates": ["ab", [3, "a"], [["a", 1], "b"]],
        "references": [[["a", None], ["b"]], IDS, 3, [["a"], []]],
    }) for metric in (bleu, rouge_l, cider, cider_d, unigram_bleu, unigram_rouge)),
    (bleu, {"candidates": ["a"], "references": [["a"]]}, {"max_n": [0], "references": [[]]}),
    (cider, {"candidates": ["a"], "references": [["a"]]}, {"document_frequencies": [{"a": 1}]}),
    (trec_run, {"scores": EYE, "query_ids": ["p", "q"], "candidate_ids": ["a", "b"]}, {
        "query_ids": [["q"], ["q", "q"], [1, 2]], "candidate_ids": ["ab", ["a b", "c"]],
        "scores": [[[1.0, 0.0], [NAN, 0.0]]],
    }),
    (rank_run, {"run": {"q": {"a": 1.0}}, "qrels": {"q": {"a": 1}}}, {
        "run": [[], {"x": {"a": 1.0}}], "qrels": [{"q": {"a": 0}}],
    }),
    (trec_qrels, {"image_ids": IDS, "caption_ids": IDS}, {"task": ["both"]}),
]
# fmt: on


@pytest.mark.parametrize(("call", "usual", "odd"), REFUSED)
def test_an_odd_value_is_named(call, usual, odd):
    refuses_each(call, odd, **usual)


# Several arguments at once, or the place of what is wrong.
# fmt: off
TOGETHER = [
    ("first", cohen_kappa, {"first": [], "second": []}),
    ("query", significance.fisher_randomization, {"systems": [], "baseline": []}),
    ("query", significance.mcnemar, {"systems": UNASKED, "baseline": UNASKED}),
    ("values", overlap_standard_error, {"values": [], "items": []}),
    ("scores", evaluate_links, {"scores": [], "links": []}),
    ("systems", compared, {"systems": [ONE]}),
    ("candidates", bleu, {"candidates": [], "references": []}),
    ("candidates", unigram_bleu, {"candidates": [], "references": []}),
    ("candidates", meteor, {"candidates": [3], "references": [["a"]]}),
    ("references", spice, {"candidates": ["a"], "references": [[]]}),
    ("caption_image", evaluate, {"annotation_scores": WIDE}),
    ("relevant", evaluate_relevance, {
        "annotation_scores": EYE, "judgments": JUDGED, "threshold": 2,
    }),
    (r"image_vectors\D+inf at \[0, 0\]", streamed_ranks, BOTH | {"image_vectors": BAD}),
    (r"caption_vectors\D+inf at \[2, 0\]", evaluate, {
        "image_vectors": np.eye(4, 2), "caption_vectors": [EYE, np.array(BAD)],
    }),
    (r"scores\[1\].*\[1, 1\]", evaluate_links, {
        "scores": [EYE, [[1, 2], [0, NAN]]], "links": [{(0, 0)}] * 2,
    }),
    ("triple '1'", evaluate_selections, {"selections": GARDEN, "scores": [[1, 1], [1, NAN]]}),
    ("n_candidates|n_relevant", Result, {
        "values": GOOD, "n_relevant": {"search": [9] * 2}, "n_candidates": {"search": [5] * 2},
    }),
]
# fmt: on


@pytest.mark.parametrize(("named", "call", "options"), TOGETHER)
def test_the_error_names_the_place(named, call, options):
    refuses((TypeError, ValueError), named, partial(call, **options))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("where", [(0, 0), (8, 1), (1, 8), (7, 3)])
def test_nan_in_scores_is_found(where, dtype, order):
    scores = np.zeros((9, 9), dtype, order)
    scores[where] = NAN
    row, column = where
    for call in (retrieval_ranks, evaluate, partial(gold_ranks, gold=range(9))):
        refuses(ValueError, rf"\w*scores.*\[{row}, {column}\]", call, scores)
    refuses(ValueError, f"query {row}, candidate {column}", rank_relevant, scores, [[0]] * 9)


@pytest.mark.parametrize("function", [streamed_ranks, embedding_scores])
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 2e19), (np.float64, 1e154)])
def test_products_out_of_range_are_refused(function, dtype, size):
    large = np.full((1, 4), size, dtype)
    refuses(ValueError, "products", function, large, -large, similarity="dot")
    assert np.isfinite(embedding_scores(large / 8, large, similarity="dot")).all()
    assert embedding_scores(large, -large) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("named", "write", "content"),
    [
        ("run", write_run, {"": {"a": 1}}), (r"run\['q'\]", write_run, {"q": {"a": "1"}}),
        ("run", write_run, {"#q": {"a": 1}}), ("qrels", write_qrels, {"q": {"a": 0.5}}),
        ("qrels", write_qrels, {"q": 1}), ("qrels", write_qrels, {"#q": {"a": 1}}),
        ("tag", partial(write_run, tag="a b"), {}),
    ],
)  # fmt: skip
def test_what_cannot_be_written_leaves_no_file(tmp_path, named, write, content):
    refuses((TypeError, ValueError), named, write, tmp_path / "x", content)
    assert not list(tmp_path.iterdir())
