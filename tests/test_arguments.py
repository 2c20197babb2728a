"""Every argument of every public function, given something odd: an error that names it.

A function that is new needs an entry in `CALLS`: a call that works.
"""

import importlib.util
import inspect
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import evaluation, kcca, kernels, matching
from kernelcore.captions import EncodedCaptions
from kernelcore.datasets import BinarySelections, RelevanceJudgments, SelectionTriple
from kernelcore.evaluation import (
    LinkResult,
    Published,
    ResultTable,
    SelectionResult,
    evaluate,
    evaluate_relevance,
    rank_relevant,
)
from kernelcore.evaluation.labels import Labels, PoolLabels
from kernelcore.experiments.hodosh2013.first_results import (
    FirstResultScores,
    first_result_scores,
    first_result_table,
)
from kernelcore.experiments.hodosh2013.judged import unlikely_pairs
from kernelcore.images import SpatialHistograms

MODULES = (
    kernels,
    matching,
    kcca,
    evaluation,
    *(own for name in evaluation.__all__ if inspect.ismodule(own := getattr(evaluation, name))),
)
# Functions of studies, and a class that does what functions do.
OTHERS = [first_result_scores, first_result_table, unlikely_pairs]
TABLES = ("links", "selections", "relevance", "ranks")
if importlib.util.find_spec("torch"):
    from kernelcore.experiments.hessel2019 import difficulty

    OTHERS += [difficulty.auc_correlation, difficulty.explain_auc, difficulty.spread]
X = EncodedCaptions.from_lists([[[0, 1]], [[1], [0, 0]]], n_words=2)
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])
HISTOGRAMS = SpatialHistograms([[[3, 3]], [[1, 0]]], [6, 1], 1)
IDS = ["a", "b"]
JUDGMENTS = RelevanceJudgments("two", IDS, IDS, [0, 1], [0, 1], [1.0, 0.5])
SELECTIONS = BinarySelections(
    "pair",
    [
        SelectionTriple("0", "A dog digs.", "a", "a", "b"),
        SelectionTriple("1", "A fox sleeps.", "b", "b", "a"),
    ],
)
RESULT = evaluate(SQUARE)
TEXTS, REFERENCES = ["a dog runs"], [["a dog runs fast", "the dog runs"]]
LABELS = {"system": "s", "protocol": "p", "dataset": "d", "split": "t", "settings": {}}
POOL = {**LABELS, "pool": "all"}
RANKED = {"ties": "mean", "ks": (1, 5)}
RELEVANCE = evaluate_relevance(SQUARE, judgments=JUDGMENTS.select(IDS, IDS), threshold=0.5)
SELECTION = SelectionResult(("0", "1"), [1.0, 0.5])
LINKS = LinkResult([0.5, 0.7], {1: [0.5, 1.0]})
GENERATED = {"rng": 0, "n_threads": 1, "progress": False}
SOFT = {
    "X": X,
    "Y": X,
    "word_kernel": np.eye(2),
    "word_weights": [1.0, 2.0],
    "unknown_weight": 1.0,
    "dtype": np.float64,
    "out": None,
    "n_threads": 1,
    "progress": False,
}
BAG = {
    "X": X,
    "Y": X,
    "weights": [1.0, 2.0],
    "unknown_weight": 1.0,
    "dtype": "f8",
    "out": None,
    "n_threads": 1,
    "progress": False,
}
DECOMPOSE = {"decomposition": "gram_schmidt", "tolerance": 1e-6, "max_rank": 2}
PAIRED = {"systems": [[1.0, 2.0], [2.0, 3.0]], "baseline": [1.0, 3.0]}
SCORES = {"scores": SQUARE, "caption_image": [0, 1], "ties": "mean", "n_threads": 1}
EMBEDDED = {"image_vectors": SQUARE, "caption_vectors": SQUARE, "similarity": "cosine"}
CHOSEN = {
    "selections": SELECTIONS,
    "scores": SQUARE,
    "image_ids": IDS,
    "caption_ids": IDS,
}
TABLE = {"rank": "median", "standard_errors": False}
CAPTIONS = {"candidates": TEXTS, "references": REFERENCES}

# What each argument may be for a call to work.
CALLS = {
    "average": {"matrices": [SQUARE, SQUARE], "weights": [1, 2], "out": None},
    "bag_of_words": BAG,
    "bag_of_words_f1": BAG,
    "gram_blocks": {
        "kernel": kernels.histogram_intersection,
        "X": SQUARE,
        "Y": SQUARE,
        "block_size": 1,
    },
    "histogram_intersection": {
        "X": SQUARE,
        "Y": SQUARE,
        "out": None,
        "n_threads": 1,
        "progress": False,
    },
    "prepare": {"X": SQUARE, "n_threads": 1},
    "normalize": {
        "K": SQUARE,
        "diagonal_X": [2.0, 3.0],
        "diagonal_Y": [2.0, 3.0],
        "out": None,
    },
    "power": {"K": SQUARE, "exponent": 2, "out": None},
    "ridge": {"K": SQUARE, "factor": 2, "out": None},
    "spatial_pyramid": {
        "X": HISTOGRAMS,
        "Y": HISTOGRAMS,
        "level_weights": [1.0],
        "mirror": False,
        "dtype": np.float64,
        "out": None,
        "n_threads": 1,
        "progress": False,
    },
    "tag_rank": {
        "X": X,
        "Y": X,
        "training": X,
        "absolute_width": 1.0,
        "relative_width": 1.0,
        "width_factor": 1.0,
        "dtype": "f4",
        "out": None,
        "n_threads": 1,
        "progress": False,
    },
    "word_assignment": {**SOFT, "normalize": True},
    "word_sequence": {
        **SOFT,
        "normalize": True,
        "max_length": 2,
        "match_decay": 0.5,
        "gap_decay": 0.5,
    },
    "word_sequence_components": {**SOFT, "max_length": 2, "gap_decay": 0.5},
    "k_cardinality_assignments": {
        "cost": SQUARE,
        "maximize": False,
        "max_k": 2,
        "progress": False,
    },
    "linear_assignment": {
        "cost": SQUARE,
        "maximize": False,
        "k": 1,
        "threshold": 3.0,
        "return_duals": False,
    },
    "linear_assignments": {
        "costs": [SQUARE],
        "maximize": False,
        "k": 1,
        "threshold": 3.0,
        "return_duals": False,
        "n_threads": 1,
        "progress": False,
    },
    "set_similarity": {
        "S": SQUARE,
        "row_offsets": [0, 2],
        "col_offsets": [0, 1, 2],
        "method": "AP",
        "k": 1,
        "return_selected": False,
        "n_threads": 1,
        "progress": False,
    },
    "factorize": {"Kx": SQUARE, "Ky": SQUARE, **DECOMPOSE, "n_threads": 1},
    "feature_basis": {"features": SQUARE, "tolerance": 1e-6, "max_rank": 2},
    "kernel_basis": {"K": SQUARE, "n_threads": 1, **DECOMPOSE},
    "partial_gram_schmidt": {
        "K": SQUARE,
        "tolerance": 1e-6,
        "max_rank": 2,
        "centerer": kernels.GramCenterer().fit(SQUARE),
        "n_threads": 1,
    },
    "annotation_ranks": SCORES,
    "search_ranks": SCORES,
    "retrieval_ranks": SCORES,
    "bleu": {**CAPTIONS, "max_n": 2},
    "bleu_tokens": {"caption": "a dog"},
    "bootstrap_interval": {
        "metric": np.mean,
        "ranks": [1.0, 2.0],
        "n_resamples": 3,
        "confidence": 0.9,
        "rng": 0,
    },
    "chance_recall_at_k": {"n_candidates": 10, "k": 2, "n_relevant": 1},
    "cider": {**CAPTIONS, "document_frequencies": None, "max_n": 2},
    "cider_d": {**CAPTIONS, "document_frequencies": None, "max_n": 2, "sigma": 6.0},
    "coco_tokenize": {"caption": "a dog"},
    "cohen_kappa": {
        "first": [0, 1, 1],
        "second": [0, 1, 0],
        "weights": "linear",
        "categories": [0, 1],
    },
    "compare": {
        "systems": ["s", "t"],
        "baseline": "s",
        "per_query": {"search": {"P": [[1.0, 0.0], [0.5, 1.0]]}},
        "mid_p": False,
        "correction": None,
        "levels": (0.1, 0.05),
        "n_reassignments": 4,
        "rng": 0,
        "n_threads": 1,
    },
    "compact_letters": {"different": [[False, True], [True, False]]},
    "compare_selections": {"result": SELECTION, "baseline": SELECTION, "mid_p": False},
    "embedding_scores": {**EMBEDDED, "n_threads": 1},
    "streamed_ranks": {
        **EMBEDDED,
        "caption_image": [0, 1],
        "ties": "mean",
        "n_threads": 1,
        "progress": False,
    },
    "evaluate": {
        "annotation_scores": SQUARE,
        "search_scores": SQUARE,
        "image_vectors": None,
        "caption_vectors": None,
        "similarity": "cosine",
        "caption_image": [0, 1],
        "captions_per_image": None,
        "n_folds": 2,
        **RANKED,
        **POOL,
        "n_threads": 1,
    },
    "evaluate_folds": {
        "scores": SQUARE,
        "search_scores": SQUARE,
        "caption_image": [0, 1],
        "n_folds": 2,
        **RANKED,
        **POOL,
        "n_threads": 1,
    },
    "evaluate_links": {"scores": [SQUARE], "links": [[(0, 1)]], "cutoffs": (1,), **LABELS},
    "evaluate_relevance": {
        "annotation_scores": SQUARE,
        "search_scores": SQUARE,
        "judgments": JUDGMENTS,
        "threshold": 0.5,
        "search_judgments": JUDGMENTS,
        **RANKED,
        **POOL,
    },
    "evaluate_selection_predictions": {
        "selections": SELECTIONS,
        "predictions": {"0": "a", "1": "b"},
        **LABELS,
    },
    "evaluate_selections": {**CHOSEN, **LABELS},
    "predict_selections": CHOSEN,
    "first_result_scores": {
        "scores": SQUARE,
        "judgments": JUDGMENTS,
        "task": "search",
        "ties": "max",
    },
    "first_result_table": {
        "systems": {"s": FirstResultScores([4.0, 3.0])},
        "thresholds": (3.0,),
        "unjudged": "below",
    },
    "fisher_randomization": {
        **PAIRED,
        "statistic": "mean",
        "n_reassignments": 4,
        **GENERATED,
    },
    "paired_bootstrap": {
        **PAIRED,
        "statistic": "mean",
        "n_resamples": 4,
        "confidence": 0.9,
        **GENERATED,
    },
    "mcnemar": {**PAIRED, "k": 1, "mid_p": False},
    "gold_ranks": {"scores": SQUARE, "gold": [0, 1], "ties": "mean", "n_threads": 1},
    "holm": {"p_values": [0.1, 0.2]},
    "krippendorff_alpha": {"ratings": [[1, 2], [2, 2]], "level": "nominal"},
    "krippendorff_alpha_interval": {
        "ratings": [[1, 2], [2, 2]],
        "level": "nominal",
        "n_resamples": 3,
        "confidence": 0.9,
        "rng": 0,
    },
    "mean_rank": {"ranks": [1.0, 2.0]},
    "mean_reciprocal_rank": {"ranks": [1.0, 2.0]},
    "median_rank": {"ranks": [1.0, 2.0]},
    "recall_at_k": {"ranks": [1.0, 2.0], "k": 1},
    "rank_correlation": {"first": [1.0, 2.0, 3.0], "second": [1.0, 3.0, 2.0]},
    "rank_lists": {"lists": [["a", "b"]], "relevant": [["b"]], "n_candidates": 4},
    "rank_run": {"run": {"q": {"a": 0.5}}, "qrels": {"q": {"a": 1}}, "relevance": 1},
    "rank_relevant": {"scores": SQUARE, "relevant": [[0], [1]], "ties": "mean"},
    "relevance_metrics": {"ranked": rank_relevant(SQUARE, [[0], [1]]), "ks": (1,)},
    "rouge_l": {**CAPTIONS, "beta": 1.2},
    "rouge_tokens": {"caption": "a dog", "stop_words": {"a"}},
    "tie_groups": {
        "systems": [evaluate(SQUARE, system="s"), evaluate(SQUARE, system="t")],
        "metrics": ["MAP"],
        "alpha": 0.05,
        "mid_p": False,
        "n_reassignments": 4,
        "rng": 0,
        "n_threads": 1,
    },
    "trec_qrels": {
        "image_ids": IDS,
        "caption_ids": IDS,
        "caption_image": [0, 1],
        "task": "search",
    },
    "trec_run": {"scores": SQUARE, "query_ids": IDS, "candidate_ids": IDS, "k": 1},
    "unigram_bleu": {**CAPTIONS, "tokenize": str.split},
    "unigram_bleu_matrix": {**CAPTIONS, "tokenize": str.split},
    "unigram_rouge": {**CAPTIONS, "tokenize": str.split},
    "unigram_rouge_matrix": {**CAPTIONS, "tokenize": str.split},
    "unlikely_pairs": {**CAPTIONS, "threshold": 0.1, "tokenize": str.split},
    "wilson_interval": {"share": 0.5, "n": 10, "confidence": 0.9},
    "ResultTable of links": {
        "results": [LINKS, Published("s", "t", {"AUC": 0.5})],
        **TABLE,
        "metrics": ["AUC"],
    },
    "ResultTable of selections": {"results": [SELECTION], **TABLE, "metrics": ["accuracy"]},
    "ResultTable of relevance": {"results": [RELEVANCE], **TABLE, "metrics": ["MAP"]},
    "ResultTable of ranks": {"results": [RESULT], **TABLE, "metrics": ["mean_rank"]},
}
if importlib.util.find_spec("torch"):
    CALLS |= {
        "auc_correlation": {"results": [LINKS, LINKS]},
        "explain_auc": {
            "auc": [0.5, 0.6, 0.7, 0.9, 0.4, 0.3],
            "image_vectors": [SQUARE * k for k in range(1, 7)],
            "sentence_vectors": [SQUARE**k for k in range(1, 7)],
            "n_components": 1,
        },
        "spread": {"vectors": SQUARE},
    }
# They run Java, compile with Numba, or take a file; tests of their own try their arguments.
ELSEWHERE = {
    "custom",
    "meteor",
    "read_qrels",
    "read_run",
    "spice",
    "write_gram",
    "write_qrels",
    "write_run",
}
# Where the work is another function's, whose name for the argument stands in the message.
SAID_AS = {
    ("evaluate_folds", "scores"): "annotation_scores",
    ("evaluate_relevance", "threshold"): "relevant",
}


class Unreadable:
    """As a tensor that requires grad, has another layout or lies on another device."""

    shape, ndim = (2, 2), 2

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("cannot be read as a NumPy array")

    def __len__(self):
        return 2


def damaged():
    matrix = sp.csr_array(np.eye(2))
    matrix.indices[0] = 10**6
    return matrix


ODD = {
    "an object": object,
    "None": lambda: None,
    "a string": lambda: "nonsense",
    "bytes": lambda: b"nonsense",
    "a complex number": lambda: 1j,
    "a complex matrix": lambda: SQUARE * 1j,
    "a matrix of objects": lambda: SQUARE.astype(object),
    "a matrix of strings": lambda: SQUARE.astype(str),
    "dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "a masked matrix": lambda: np.ma.array(SQUARE, mask=[[0, 1], [0, 0]]),
    "masked numbers": lambda: np.ma.array([1, 2], mask=[0, 1]),
    "a masked number": lambda: np.ma.array(1, mask=True),
    "a masked row in a list": lambda: [np.ma.array([1.0, 2.0], mask=[0, 1]), [0.0, 1.0]],
    "a huge integer": lambda: 10**400,
    "2**63": lambda: 2**63,
    "-2**63": lambda: -(2**63),
    "a huge fraction": lambda: Fraction(10**400, 3),
    "a fraction": lambda: Fraction(1, 3),
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "a matrix with NaN": lambda: SQUARE * [1, np.nan],
    "a negative number": lambda: -1,
    "an array without dimensions": lambda: np.array(1.0),
    "an empty list": list,
    "an empty array": lambda: np.empty((0, 0)),
    "ragged lists": lambda: [[1.0, 2.0], [3.0]],
    "a cube": lambda: np.ones((2, 2, 2)),
    "a set": lambda: {1, 2},
    "a dictionary": lambda: {"a": 1},
    "a generator": lambda: (k for k in (0, 1)),
    "a sparse matrix": lambda: sp.csr_array(SQUARE),
    "a damaged sparse matrix": damaged,
    "a tensor": Unreadable,
    "a list of None": lambda: [None, None],
    "a boolean": lambda: True,
}
NEVER_TAKEN = {
    "an object",
    "a complex matrix",
    "dates",
    "a masked matrix",
    "masked numbers",
    "a masked number",
    "a tensor",
}


def names(message, function, argument, arguments):
    """Whether an error names the argument, or another one whose size it does not fit."""
    for said in (argument, SAID_AS.get((function, argument), argument)):
        if re.search(rf"(?<![a-z_]){said}(?![a-z_])", message):
            return True
    others = "|".join(arguments)
    return re.match(rf"({others}) must (have|hold|start|leave)", message) is not None


def fault_of(function, arguments, name, odd):
    """What is wrong with how `function` takes an odd argument, if anything."""
    arguments = {**arguments, name: ODD[odd]()}
    if name != "out" and "out" in arguments:
        del arguments["out"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(**arguments)
            if inspect.isgenerator(result):
                list(result)
    except (TypeError, ValueError, FileNotFoundError) as error:  # the last: a path of no file
        if names(str(error), function.__name__, name, arguments):
            return None
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "was taken" if odd in NEVER_TAKEN else None


def public_functions():
    return {
        name: getattr(module, name)
        for module in MODULES
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }


FUNCTIONS = public_functions()
FUNCTIONS |= {function.__name__: function for function in OTHERS}
FUNCTIONS |= {f"ResultTable of {kind}": ResultTable for kind in TABLES}


def parameters_of(function):
    """Names of all arguments, those that are labels of a result among them."""
    found = set()
    for name, parameter in inspect.signature(function).parameters.items():
        kinds = {"Unpack[Labels]": Labels, "Unpack[PoolLabels]": PoolLabels}
        kind = kinds.get(str(parameter.annotation))
        found |= {name} if kind is None else kind.__annotations__.keys()
    return found


def test_every_public_function_is_tried_with_every_argument():
    assert FUNCTIONS.keys() == CALLS.keys() | ELSEWHERE
    for name, arguments in CALLS.items():
        assert parameters_of(FUNCTIONS[name]) == arguments.keys(), name


@pytest.mark.parametrize("name", CALLS)
def test_the_call_works_as_it_stands(name):
    FUNCTIONS[name](**CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_named(name):
    faults = {
        (argument, odd): fault
        for argument in CALLS[name]
        for odd in ODD
        if (fault := fault_of(FUNCTIONS[name], CALLS[name], argument, odd))
    }
    assert not faults
