"""Every argument of every public function, given something odd: an error that names it.

An argument with a new name needs a value in `USUAL`, with which calls work.
"""

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
    Published,
    Result,
    ResultTable,
    evaluate,
    evaluate_relevance,
    rank_relevant,
)
from kernelcore.evaluation.result import Labels
from kernelcore.images import SpatialHistograms

MODULES = (
    kernels, matching, kcca, evaluation,
    *(own for name in evaluation.__all__ if inspect.ismodule(own := getattr(evaluation, name))),
)  # fmt: skip
TABLES = ("links", "relevance", "ranks")
X = EncodedCaptions.from_lists([[[0, 1]], [[1], [0, 0]]], n_words=2)
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])
HISTOGRAMS = SpatialHistograms([[[3, 3]], [[1, 0]]], [6, 1], 1)
IDS = ["a", "b"]
JUDGMENTS = RelevanceJudgments("two", IDS, IDS, [0, 1], [0, 1], [1.0, 0.5])
TRIPLES = (("0", "A dog digs.", "a", "a", "b"), ("1", "A fox sleeps.", "b", "b", "a"))
SELECTIONS = BinarySelections("pair", [SelectionTriple(*triple) for triple in TRIPLES])
RELEVANCE = evaluate_relevance(SQUARE, judgments=JUDGMENTS.select(IDS, IDS), threshold=0.5)
LINKS = Result({"links": {"AUC": [0.5, 0.7]}})
# What an argument may be for a call to work, by its name.
USUAL = {
    **dict.fromkeys(["out", "correction", "document_frequencies", "captions_per_image"]),
    **dict.fromkeys(["progress", "maximize", "mid_p", "mirror", "skip_without"], False),
    **dict.fromkeys(["return_duals", "return_selected"], False),
    **dict.fromkeys(["n_threads", "k", "block_size", "n_relevant", "n_components"], 1),
    **dict.fromkeys(["unknown_weight", "absolute_width", "relative_width"], 1.0),
    **dict.fromkeys(["width_factor", "relevance"], 1.0),
    **dict.fromkeys(["max_length", "max_rank", "max_n", "max_k", "n_folds"], 2),
    **dict.fromkeys(["n_resamples", "n_reassignments"], 4),
    **dict.fromkeys(["share", "match_decay", "gap_decay", "threshold"], 0.5),
    **dict.fromkeys(["X", "Y", "training"], X),
    **dict.fromkeys(["K", "Kx", "Ky", "S", "cost", "scores", "features", "vectors"], SQUARE),
    **dict.fromkeys(["annotation_scores", "search_scores"], SQUARE),
    **dict.fromkeys(["image_vectors", "caption_vectors"], SQUARE),
    **dict.fromkeys(["image_ids", "caption_ids", "query_ids", "candidate_ids"], IDS),
    **{key: [0, 1] for key in ("gold", "caption_image", "groups")},
    **{key: [1.0, 2.0] for key in ("ranks", "word_weights", "weights")},
    **{key: [2.0, 3.0] for key in ("diagonal_X", "diagonal_Y")},
    **{name: name for name in ("system", "protocol", "dataset", "split", "pool")},
    "alpha": 0.05, "auc": [0.5, 0.6, 0.7, 0.9, 0.4, 0.3], "baseline": [1.0, 3.0], "beta": 1.2,
    "candidates": ["a dog runs"], "caption": "a dog", "col_offsets": [0, 1, 2],
    "confidence": 0.9, "costs": [SQUARE], "cutoffs": (1,), "exponent": 2, "factor": 2,
    "decomposition": "gram_schmidt", "dtype": np.float64, "target": SQUARE,
    "judgments": JUDGMENTS, "kernel": kernels.histogram_intersection,
    "ks": (1, 5), "level": "nominal", "level_weights": [1.0], "levels": (0.1, 0.05),
    "links": [[(0, 1)]], "lists": [["a", "b"]], "matrices": [SQUARE, SQUARE], "method": "AP",
    "metrics": ["mAP@R"], "n": 10, "normalize": True, "p_values": [0.1, 0.2],
    "qrels": {"q": {"a": 1}}, "ranked": rank_relevant(SQUARE, [[0], [1]]),
    "ratings": [[1, 2], [2, 2]], "references": [["a dog runs fast", "the dog runs"]],
    "relevant": [[0], [1]], "rng": 0, "row_offsets": [0, 2], "run": {"q": {"a": 0.5}},
    "selections": SELECTIONS, "sentence_vectors": [SQUARE**k for k in range(1, 7)],
    "settings": {}, "sigma": 6.0, "similarity": "cosine", "statistic": "mean",
    "stop_words": {"a"}, "systems": [[1.0, 2.0], [2.0, 3.0]], "task": "search",
    "thresholds": (3.0,), "ties": "mean", "tokenize": str.split, "tolerance": 1e-6,
    "uncertainty": "interval", "word_kernel": np.eye(2),
}  # fmt: skip
PAIR = {"X": SQUARE, "Y": SQUARE}
# Where the same name stands for something else.
OTHERS = {
    "cohen_kappa": {"first": [0, 1, 1], "second": [0, 1, 0], "weights": "linear"},
    "evaluate": dict.fromkeys(("image_vectors", "caption_vectors", "similarity")),
    "evaluate_links": {"scores": [SQUARE], "images": [IDS]}, "gram_blocks": PAIR,
    "histogram_intersection": {**PAIR, "similarity": "jaccard"},
    "linear_assignment": {"threshold": 3.0},
    "linear_assignments": {"costs": SQUARE[None], "n_columns": [2], "threshold": 3.0},
    "ResultTable of links": {
        "results": [LINKS, Published("s", "t", {"AUC": 0.5})], "metrics": ["AUC"],
    },
    "mcnemar": {"systems": [[True, False]], "baseline": [False, False]},
    "ResultTable of ranks": {"results": [evaluate(SQUARE)], "metrics": ["mean_rank"]},
    "ResultTable of relevance": {"results": [RELEVANCE], "metrics": ["mAP@R"]},
    "prepare": {"X": SQUARE}, "rank_lists": {"relevant": [["b"]]}, "rank_run": {"relevance": 1},
    "spatial_pyramid": {"X": HISTOGRAMS, "Y": HISTOGRAMS},
}  # fmt: skip
# They run Java, compile with Numba, or take files or any number of arguments: tests of their
# own try these.
ELSEWHERE = {"compare", "custom", "meteor", "spice"}
ELSEWHERE |= {"read_qrels", "read_run", "write_qrels", "write_run"}
# Where the work is another function's, whose name for the argument stands in the message.
SAID_AS = {("evaluate_relevance", "threshold"): "relevant"}


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


# Odd values, those first that no argument may take
NEVER = {
    "an object": object, "a complex matrix": lambda: SQUARE * 1j, "a tensor": Unreadable,
    "dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "a masked matrix": lambda: np.ma.array(SQUARE, mask=[[0, 1], [0, 0]]),
    "masked numbers": lambda: np.ma.array([1, 2], mask=[0, 1]),
    "a masked number": lambda: np.ma.array(1, mask=True),
}  # fmt: skip
ODD = NEVER | {
    "None": lambda: None, "a string": lambda: "nonsense", "bytes": lambda: b"nonsense",
    "a boolean": lambda: True, "a complex number": lambda: 1j,
    "a fraction": lambda: Fraction(1, 3),
    "a huge integer": lambda: 10**400, "2**63": lambda: 2**63, "-2**63": lambda: -(2**63),
    "a huge fraction": lambda: Fraction(10**400, 3), "a negative number": lambda: -1,
    "NaN": lambda: float("nan"), "infinity": lambda: float("inf"),
    "a matrix with NaN": lambda: SQUARE * [1, np.nan],
    "a matrix of objects": lambda: SQUARE.astype(object),
    "a matrix of strings": lambda: SQUARE.astype(str),
    "a masked row in a list": lambda: [np.ma.array([1.0, 2.0], mask=[0, 1]), [0.0, 1.0]],
    "an array without dimensions": lambda: np.array(1.0), "a cube": lambda: np.ones((2, 2, 2)),
    "an empty list": list, "an empty array": lambda: np.empty((0, 0)),
    "ragged lists": lambda: [[1.0, 2.0], [3.0]], "a list of None": lambda: [None, None],
    "a set": lambda: {1, 2}, "a dictionary": lambda: {"a": 1},
    "a generator": lambda: (k for k in (0, 1)),
    "a sparse matrix": lambda: sp.csr_array(SQUARE), "a damaged sparse matrix": damaged,
}  # fmt: skip


def names(message, function, argument, arguments):
    """Whether an error names the argument, or another one whose size it does not fit."""
    for said in (argument, SAID_AS.get((function, argument), argument)):
        if re.search(rf"(?<![a-z_]){said}(?![a-z_])", message):
            return True
    others = "|".join(arguments)
    return re.match(rf"({others}) must (have|hold|lie|start|leave)", message) is not None


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
    return "was taken" if odd in NEVER else None


def public_functions():
    names = [(module, name) for module in MODULES for name in getattr(module, "__all__", ())]
    found = {name: getattr(module, name) for module, name in names}
    return {name: own for name, own in found.items() if inspect.isfunction(own)}


def parameters_of(function):
    """Names of all arguments, with the labels of a result, but those that errors print."""
    found = set()
    for name, parameter in inspect.signature(function).parameters.items():
        is_label = str(parameter.annotation) == "Unpack[Labels]"
        found |= Labels.__annotations__.keys() if is_label else {name}
    return found - {"name", "names"}


FUNCTIONS = {name: found for name, found in public_functions().items() if name not in ELSEWHERE}
FUNCTIONS |= {f"ResultTable of {kind}": ResultTable for kind in TABLES}
CALLS = {
    name: {
        argument: OTHERS.get(name, {}).get(argument, USUAL.get(argument))
        for argument in sorted(parameters_of(found))
    }
    for name, found in FUNCTIONS.items()
}


def test_every_argument_of_every_public_function_has_a_value():
    assert public_functions().keys() > ELSEWHERE
    for name, arguments in CALLS.items():
        assert arguments.keys() <= USUAL.keys() | OTHERS.get(name, {}).keys(), name
        assert OTHERS.get(name, {}).keys() <= arguments.keys(), name
    assert OTHERS.keys() <= CALLS.keys()


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
