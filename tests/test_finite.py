"""No public function gives NaN or infinity for finite input without an error that names it."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from kernelcore import evaluation, images, kcca, kernels, matching
from kernelcore.captions import EncodedCaptions
from kernelcore.evaluation import metrics, significance
from kernelcore.evaluation.agreement import krippendorff_alpha
from kernelcore.evaluation.ranks import gold_ranks
from kernelcore.lexical import WordKernel, WordVectors, combine

EXTREMES = [1e308, 1e200, 1e160, 1e77, 1e60, 6e38, 1e30, 1e-30, 1e-60, 1e-100, 1e-160, 1e-200]
EXTREMES += [1e-308, 5e-324]
WORDS = EncodedCaptions.from_lists([[[0, 1, 2]], [[1], [2, -1]], [[]], [[0, 0]]], n_words=3)
SINGLES = EncodedCaptions.from_lists([[[0]], [[1], [-2]], [[]]], n_words=3)
LONG = EncodedCaptions.from_lists([[list(range(3)) * 30]], n_words=3)
KAPPA = np.array([[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]])
SQUARE = np.array([[4.0, 2.0, 1.0], [2.0, 3.0, 0.5], [1.0, 0.5, 2.0]])
RNG = np.random.default_rng(5)
PYRAMIDS = [
    images.SpatialHistograms.from_finest(np.array(counts, np.uint16), 2)
    for counts in ([[[1, 2]] * 4] * 2, [[[1, 2]] * 4, [[0, 1]] * 4])
]


def captions(x, call):
    """The same of several captions; weights vary, so that their ratio may be extreme too."""
    return [
        (lambda X=X, weights=weights, more=more: call(X, weights, more))
        for X in (WORDS, SINGLES, LONG)
        for weights in (np.full(3, x), np.array([1.0, x, 0.0]), np.array([x, 1 / x, 1.0]))
        if np.isfinite(weights).all()
        for more in ({}, {"dtype": np.float32})
    ]


def weighted(function, x, X, weights, more):
    return function(X, word_weights=weights, unknown_weight=x, **more)


def soft(x, function, **options):
    calls = captions(x, lambda X, w, more: function(X, word_weights=w, **more, **options))
    calls += captions(x, lambda X, _, more: function(X, unknown_weight=x, **more, **options))
    for scaled in (KAPPA * x, sp.csr_array(KAPPA * x), np.eye(3) + x * (KAPPA - np.eye(3))):
        calls.append(lambda K=scaled: function(WORDS, word_kernel=K, **options))
        calls.append(lambda K=scaled: function(WORDS, word_kernel=K, dtype="f4", **options))
    return calls


def of_matrix(x, *functions):
    """Of a matrix, all of it or one element near the extreme, in both dtypes."""
    calls = []
    for dtype in (np.float64, np.float32):
        largest = float(np.finfo(dtype).max)
        value = min(x, largest)
        one = SQUARE.copy()
        one[0, 0] = value
        corner = SQUARE.copy()
        corner[0, 1] = corner[1, 0] = value
        every = SQUARE / 4 * value
        signed = every * [[1, -1, 1], [-1, 1, -1], [1, -1, 1]]
        matrices = [matrix.astype(dtype) for matrix in (one, corner, every, signed)]
        calls += [partial(function, matrix) for function in functions for matrix in matrices]
    return calls


def combined(x):
    return combine(WordKernel(["a", "b"], [[1, x], [x, 1]]), threshold=x)


def vectors(x, *functions):
    given = [SQUARE / 4 * x * s for s in (1, -1, [1, 1, 1 / 1024])]
    return [partial(function, rows) for function in functions for rows in given]


CASES = {
    "word_sequence": lambda x: [
        *soft(x, kernels.word_sequence),
        *soft(x, kernels.word_sequence, normalize=False),
        *soft(x, kernels.word_sequence, max_length=1),
        *soft(x, kernels.word_sequence, match_decay=min(1 / x, 1e300)),
        lambda: kernels.word_sequence(WORDS, match_decay=x),
        lambda: kernels.word_sequence(WORDS, match_decay=x, word_kernel=KAPPA),
        lambda: kernels.word_sequence(SINGLES, match_decay=x, word_kernel=KAPPA),
        lambda: kernels.word_sequence(["a b c", "a"], match_decay=x, normalize=False),
        lambda: kernels.word_sequence(["a b c", "a"], gap_decay=min(x, 1.0)),
        lambda: kernels.word_sequence(WORDS, word_kernel=KAPPA, gap_decay=min(x, 1.0))],
    "word_sequence_components": lambda x: soft(x, kernels.word_sequence_components),
    "word_assignment": lambda x: [
        *soft(x, kernels.word_assignment),
        *soft(x, kernels.word_assignment, normalize=False)],
    "bags of words": lambda x: [
        call
        for bag in (kernels.bag_of_words, kernels.bag_of_words_f1)
        for call in captions(x, partial(weighted, bag, x))],
    "tag_rank": lambda x: [
        lambda: kernels.tag_rank(WORDS, absolute_width=x, relative_width=x),
        lambda: kernels.tag_rank(WORDS, width_factor=x, dtype=np.float32),
        lambda: (
            kernels.TagRank(absolute_width=x, relative_width=x).fit(WORDS).gram(LONG, WORDS)
        )],
    "spatial_pyramid": lambda x: [
        lambda X=X, w=w, dtype=dtype: kernels.spatial_pyramid(X, level_weights=w, dtype=dtype)
        for X in PYRAMIDS
        for w in ([x, x], [x, 0], [1, x])
        for dtype in ("f4", "f8")],
    "histogram_intersection": lambda x: of_matrix(x,
        lambda X: kernels.histogram_intersection(abs(X)),
        lambda X: kernels.histogram_intersection(sp.csr_array(abs(X))),
        lambda X: kernels.histogram_intersection(abs(X), X * 0 + 1)),
    "normalize": lambda x: [
        *of_matrix(x, kernels.normalize),
        lambda: kernels.normalize(SQUARE, np.full(3, x), np.ones(3)),
        lambda: kernels.normalize(SQUARE, np.full(3, x), np.full(3, x))],
    "power": lambda x: of_matrix(x,
        lambda K: kernels.power(K, 2), lambda K: kernels.power(abs(K), 0.5),
        lambda K: kernels.power(abs(K), min(x, 1000))),
    "ridge": lambda x: of_matrix(x,
        lambda K: kernels.ridge(K, 3), lambda K: kernels.ridge(K, max(x, 1.0))),
    "average": lambda x: [
        *of_matrix(x, lambda K: kernels.average([K, K])),
        *of_matrix(x, lambda K: kernels.average([K, SQUARE], weights=[x, 1])),
        lambda: kernels.average([SQUARE, SQUARE, SQUARE], weights=[x, x, x])],
    "GramCenterer": lambda x: [
        *of_matrix(x, lambda K: kernels.GramCenterer().fit_transform(K)),
        *of_matrix(x, lambda K: kernels.GramCenterer().fit(SQUARE).transform(K)),
        lambda: kernels.GramCenterer.from_means([x, x]).transform([[1.0, -x]])],
    "WordKernel": lambda x: of_matrix(x, lambda K: WordKernel(["a", "b", "c"], K)),
    "combine": lambda x: [partial(combined, min(x, 1))],
    "WordVectors": lambda x: [
        lambda: WordVectors(["a", "b"], [[x, 1], [x, -x]]).mean([["a", "b"], ["a"]])],
    "Codebook": lambda x: [
        lambda: images.Codebook([[x, 0], [0, 1]]).assign([[x, x]]),
        lambda: images.learn_codebook([[x, 0], [0, 1]], 2, rng=0).centers],
    "square_roots": lambda x: vectors(x, images.square_roots),
    "linear_assignment": lambda x: of_matrix(x,
        lambda C: matching.linear_assignments([C, C.T]).totals,
        lambda C: matching.linear_assignments([C], maximize=True, k=2).totals,
        lambda C: matching.linear_assignment(C, threshold=x)[0],
        lambda C: matching.k_cardinality_assignments(C).totals),
    "set_similarity": lambda x: of_matrix(x,
        lambda S: matching.set_similarity(S, [0, 1, 3], [0, 2, 3], method="TK", k=1)),
    "gold_ranks": lambda x: of_matrix(x,
        lambda S: gold_ranks(S, [0, 1, 2]),
        lambda S: evaluation.evaluate(S).values["annotation"]["mean_rank"],
        lambda S: evaluation.evaluate_links([S], [[(0, 1)]]).values["links"]["AUC"]),
    "embedding_scores": lambda x: vectors(x,
        lambda V: evaluation.embedding_scores(V, V),
        lambda V: evaluation.embedding_scores(V, SQUARE, similarity="dot"),
        lambda V: evaluation.streamed_ranks(V, V)),
    "ranks": lambda x: [
        lambda: metrics.chance_recall_at_k(10, 3),
        lambda: metrics.wilson_interval(min(x, 1.0), 7),
        lambda: metrics.wilson_interval(0.5, 7, confidence=min(x, 0.999)),
        lambda: significance.holm([min(x, 1.0), 0.5])],
    "agreement": lambda x: [
        lambda: krippendorff_alpha([[x, 1.0], [2.0, x], [3.0, 3.0]], level="interval"),
        lambda: krippendorff_alpha([[x, 1.0], [2.0, x], [3.0, 3.0]], level="ordinal")],
    "tests": lambda x: [
        lambda: significance.fisher_randomization([x, 1.0, 2.0], [1.0, x, 2.0], rng=0),
        lambda: significance.paired_bootstrap([x, 1, 2.0], [1, x, 2.0], rng=0, n_resamples=20),
        lambda: significance.paired_bootstrap([x, 1, 2.0], [-x, -x, 2], rng=0, n_resamples=20)],
    # Beyond these extremes linear algebra itself overflows.
    "kcca": lambda x: [
        lambda: kcca.KernelColumns(lambda i: SQUARE[:, i], [x, x, x]).diagonal,
        *linear_algebra(min(max(x, 1e-12), 1e12))],
}  # fmt: skip


def linear_algebra(x):
    return of_matrix(
        x,
        lambda K: kcca.kernel_basis(K).vectors,
        lambda K: kcca.partial_gram_schmidt(K).features,
        lambda F: kcca.feature_basis(F).vectors,
        lambda K: kcca.factorize(K, SQUARE).directions(regularization=0.1).correlations,
        lambda K: kcca.KCCA().fit(SQUARE, SQUARE).transform_x(K),
        lambda K: kcca.KCCA().fit(K, SQUARE).correlations_,
    )


# The argument that a message must begin with: the one that is extreme, or whose range is left.
NAMED = re.compile(
    r"^(word_weights|unknown_weight|match_decay|max_length|word_kernel|dtype|weights|width_factor"
    r"|level_weights|X|Y|K|Kx|Ky|exponent|factor|matrices|matrix|column_means|vectors|centers"
    r"|points|features|costs?|S|scores|image_vectors|caption_vectors|ranks|ratings|first|second"
    r"|systems|baseline|threshold|the diagonal of K|diagonal|absolute_width|relative_width"
    r"|k|p_values|share|metric)\b"
)


# Calls that start threads or cluster take longer; the ends of the range have to do.
SLOW = dict.fromkeys(("kcca", "Codebook", "embedding_scores"), (1e308, 5e-324))


def numbers(result):
    """All numbers that a result holds."""
    if isinstance(result, tuple):
        return [number for part in result for number in numbers(part)]
    if hasattr(result, "matrix"):
        return numbers(WordKernel.to_dense(result))
    if hasattr(result, "p_value"):
        return numbers((result.difference, result.p_value))
    return np.asarray(result, dtype=np.float64).ravel().tolist()


def fault_of(call):
    """What is wrong with a call, if anything: a warning, another error, a number or a name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call()
    except (ValueError, TypeError) as error:
        return None if NAMED.match(str(error)) else f"{type(error).__name__}: {error}"
    except Exception as error:  # a warning among them
        return f"{type(error).__name__}: {error}"
    return None if np.isfinite(numbers(result)).all() else f"the result {result}"


@pytest.mark.parametrize("name", CASES)
def test_finite_or_refused_by_name(name):
    faults = {
        (x, number): fault
        for x in SLOW.get(name, EXTREMES)
        for number, call in enumerate(CASES[name](x))
        if (fault := fault_of(call))
    }
    assert not faults
