"""Whatever kernel CCA cannot use is refused with an error that names it."""

import dataclasses

import numpy as np
import pytest
from refusals import refuses, refuses_each
from scipy.spatial.distance import cdist

from kernelcore._estimator import NotFittedError
from kernelcore.kcca import (
    KCCA,
    KernelBasis,
    KernelColumns,
    LandmarkFeatures,
    factorize,
    feature_basis,
    kernel_basis,
    partial_gram_schmidt,
)
from kernelcore.kernels import histogram_intersection

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(50, 4)), RNG.normal(size=(9, 4))
EIGEN = {"decomposition": "eigen"}


def rbf(A, B):
    return np.exp(-cdist(A, B, "sqeuclidean") / 10.0)


K, K_NEW = rbf(X, X), rbf(X_NEW, X)


def fit_kcca(**options):
    return KCCA(**{"tolerance": 0.0, **options}).fit(K, K)


def fit_landmarks(**options):
    return LandmarkFeatures(**options).fit(K)


CUTS = {"tolerance": [-0.1, 1.1], "max_rank": [0, 1.5]}
OPTIONS = {
    "partial_gram_schmidt": (lambda **o: partial_gram_schmidt(K, **o), CUTS),
    "kernel_basis": (lambda **o: kernel_basis(K, **o), CUTS | {"decomposition": ["svd"]}),
    "feature_basis": (lambda **o: feature_basis(X, **o), CUTS),
    "LandmarkFeatures": (
        fit_landmarks,
        {"kernel": ["rbv", 3], "n_landmarks": [0], "choice": ["first"], "tolerance": [2.0]},
    ),
    "KCCA": (
        fit_kcca,
        CUTS
        | {"n_components": [0, 50, 2.0], "decomposition": ["svd"], "n_threads": [0]}
        | {"regularization": [-1.0, (0.1, -1), (0.1,), "strong"]},
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_refused_by_name(name):
    refuses_each(*OPTIONS[name])


def asymmetric(by):
    features = np.random.default_rng(8).normal(size=(300, 5))
    matrix = features @ features.T
    matrix[270, 3] += by
    return matrix


ODD_GRAMS = [
    *(np.ones((3, 2)), np.empty((0, 0)), [[1.0, np.nan], [np.nan, 1.0]], [["a"]]),
    *(np.array([[1, 1.7e308], [-1.7e308, 1]]), asymmetric(1e-3), asymmetric(-1e-3)),
    *(np.eye(3).astype(complex), np.full((3, 3), np.inf), np.triu(K)),
]
CONSTANT = [np.full((3, 3), 0.3), np.eye(1)]
TAKING_GRAMS = {
    "K": (partial_gram_schmidt, []),
    "K, pivots": (kernel_basis, CONSTANT),
    "K, eigenvectors": (lambda odd: kernel_basis(odd, **EIGEN), CONSTANT),
    "Kx": (lambda odd: KCCA(n_threads=2).fit(odd, K), CONSTANT),
    "Kx, eigenvectors": (lambda odd: KCCA(**EIGEN).fit(odd, K), CONSTANT),
    "Ky": (lambda odd: KCCA(n_threads=2).fit(K, odd), CONSTANT),
    "Ky, eigenvectors": (lambda odd: KCCA(**EIGEN).fit(K, odd), CONSTANT),
    "X": (lambda odd: LandmarkFeatures().fit(odd), [X]),
}


@pytest.mark.parametrize("name", TAKING_GRAMS)
def test_what_is_no_training_kernel_is_refused_by_name(name):
    call, more = TAKING_GRAMS[name]
    for odd in (*ODD_GRAMS, *more):
        refuses((TypeError, ValueError), name.partition(",")[0], call, odd)


FITTED, LANDMARKS = KCCA(2).fit(K, K), LandmarkFeatures(n_landmarks=5).fit(K)
CHANGED = LandmarkFeatures(rbf, n_landmarks=5).fit(X)
CHANGED.kernel = lambda A, B: K  # it gave other shapes before
WHOLE = kernel_basis(K, **EIGEN)
PARTS = {"all_vectors": WHOLE.vectors[:, :3], "all_eigenvalues": WHOLE.eigenvalues[:3]}
CUT = dataclasses.replace(WHOLE, **PARTS, rank=3)
OF_THREE = KernelColumns(lambda _: np.ones((3, 1)), np.ones(3))
REFUSED = [
    (TypeError, "columns", KernelColumns, None, [1.0]),
    (TypeError, "diagonal", KernelColumns, len, ["a"]),
    *(
        (ValueError, "diagonal", KernelColumns, len, odd)
        for odd in ([[1.0]], [], [-1.0], [np.nan])
    ),
    (ValueError, "diagonal", KernelColumns.of, histogram_intersection, np.empty((0, 3))),
    (ValueError, "max_rank", partial_gram_schmidt, OF_THREE),
    (ValueError, "50 and 3", factorize, K, np.eye(3)),
    (ValueError, "50 and 3", factorize, WHOLE, kernel_basis(np.eye(3))),
    (ValueError, "ridge", factorize(X @ X.T, K).lifted, (2.0, 1.0)),
    (ValueError, "ridge", CUT.lifted, 2.0),
    *((ValueError, "features", feature_basis, odd) for odd in (np.ones(3), np.empty((0, 3)))),
    *(
        (ValueError, "features", feature_basis, odd)
        for odd in ([[np.nan, 1.0]], np.ones((1, 4)))
    ),
    (ValueError, "features", feature_basis, np.full((9, 2), 0.1)),
    (TypeError, "features", feature_basis, [["a"]]),
    (ValueError, "features", KCCA(2).fit(*2 * (feature_basis(X),)).transform_x, X_NEW[:, :3]),
    (ValueError, r"\(50\)", FITTED.transform_x, K_NEW[:, :49]),
    (ValueError, "K", FITTED.transform_y, np.full((1, 50), np.nan)),
    (NotFittedError, "KCCA", KCCA().transform_x, K_NEW),
    (NotFittedError, "KCCA", KCCA().save, "unfitted"),
    (NotFittedError, "LandmarkFeatures", LandmarkFeatures(rbf).transform, X),
    *((ValueError, r"\(50\)", LANDMARKS.transform, np.ones((3, n))) for n in (49, 5)),
    (ValueError, r"\(9, 5\)", CHANGED.transform, X_NEW),
    (ValueError, r"\(50, 50\)", LandmarkFeatures(lambda A, B: K).fit, X[:3]),
    (ValueError, "kernel", LandmarkFeatures().fit, np.zeros((3, 3))),
    (ValueError, "kernel=", LandmarkFeatures().fit, X),
    (ValueError, "element", LandmarkFeatures(rbf).fit, np.empty((0, 4))),
    (FileNotFoundError, "absent", KCCA.load, "absent"),
    (FileNotFoundError, "absent", KernelBasis.load, "absent"),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row[1]}-{row[2].__qualname__}")
def test_everything_else_is_refused_by_name(row):
    refuses(*row)


@pytest.mark.parametrize(
    "values", [np.ones((3, 2)), np.ones(3), np.full((3, 1), np.inf), np.full((3, 1), "a")]
)
def test_columns_that_do_not_fit_are_refused_when_they_come(values):
    of_three = KernelColumns(lambda _: values, np.ones(3))
    error = ValueError if values.dtype.kind == "f" else TypeError
    refuses(error, r"columns\(indices\)", partial_gram_schmidt, of_three, max_rank=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decomposition", ["gram_schmidt", "eigen"])
def test_values_that_would_overflow_are_refused_by_name(dtype, decomposition):
    F, most = np.random.default_rng(0).normal(size=(20, 3)).astype(dtype), np.finfo(dtype).max
    huge, large, one = dtype(most / 50.0), most**0.25, np.eye(20, dtype=dtype)
    linear = F @ F.T
    kcca = KCCA(2, decomposition=decomposition).fit(linear, linear)
    for transform in (kcca.transform_x, kcca.transform_y):
        refuses(ValueError, "^K", transform, np.where(one > 0, 49 * huge, -49 * huge))
    refuses(ValueError, "^Ky", KCCA(2, decomposition=decomposition).fit, linear, huge * one)
    refuses(ValueError, "^the diagonal of K", partial_gram_schmidt, huge * one)
    refuses(ValueError, "^features", feature_basis, huge * F)
    assert len(kernel_basis(large * linear, decomposition=decomposition).spectrum()) == 3
    assert len(feature_basis(large * F).eigenvalues) == 3
