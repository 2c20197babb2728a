"""A grid over ridges of kernel CCA: each setting is the ranker that it gives alone."""

import numpy as np
import pytest
from sklearn.base import clone

import kernelcore.kcca.factorization as factorization_module
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.evaluation.ranks import annotation_ranks, search_ranks
from kernelcore.kcca.basis import named_kernel_basis
from kernelcore.models import GridSearch, KCCARanker

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(120, 4))
IMAGES, CAPTIONS = (
    np.hstack([SHARED, RNG.normal(size=(120, 6))]) @ RNG.normal(size=(10, 10)) for _ in "xy"
)
TRAIN, DEV, TEST = slice(0, 60), slice(60, 90), slice(90, 120)
EIGEN = {"decomposition": "eigen", "tolerance": 0.0}


def cosine(X, Y=None):
    """Kernel of full rank with ones on its diagonal."""
    return np.exp(low_rank(X, Y) - 1.0)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def recalls_of(ranker):
    scores = ranker.scores(IMAGES[DEV], CAPTIONS[DEV])
    ranks = annotation_ranks(scores), search_ranks(scores)
    return [[recall_at_k(r, k) for k in (1, 5, 10)] for r in ranks]


def search_of(ranker, grid):
    search = GridSearch(ranker, grid, n_best=1)
    return search.fit(IMAGES[TRAIN], CAPTIONS[TRAIN], dev=(IMAGES[DEV], CAPTIONS[DEV]))


def low_rank(X, Y=None):
    """Kernel of rank 10 with ones on its diagonal."""
    unit_X, unit_Y = (
        Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, X if Y is None else Y)
    )
    return unit_X @ unit_Y.T


def single(kernel):
    """The same kernel in float32."""
    return lambda X, Y=None: kernel(X, Y).astype(np.float32)


@pytest.mark.parametrize("kernel", [low_rank, cosine, linear, single(low_rank)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_rank": 8},
        EIGEN,
        {"decomposition": "eigen"},
        {"decomposition": "eigen", "tolerance": 0.05},
        {"decomposition": "eigen", "max_rank": 7},
        {"decomposition": "eigen", "max_rank": 30},
    ],
    ids=str,
)
def test_the_best_ranker_is_the_one_that_its_settings_give(kernel, options):
    """On a kernel of low rank R@1 was once .32 for the one and .34 for the other."""
    ranker = KCCARanker(image_kernel=kernel, text_kernel=low_rank, **options)
    grid = {"ridge": [1.0, 1.2, (3.0, 1.0), (1.05, 5.0)], "n_components": [4, 6]}
    search = search_of(ranker, grid)
    for setting, recalls in zip(search.settings_, search.recalls_, strict=True):
        alone = clone(ranker).set_params(**setting).fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
        assert recalls.tolist() == recalls_of(alone), setting
        if setting == search.best_params_:
            np.testing.assert_array_equal(
                search.best_ranker_.scores(IMAGES[TEST], CAPTIONS[TEST]),
                alone.scores(IMAGES[TEST], CAPTIONS[TEST]),
            )


def test_a_ridge_of_one_view_leaves_the_basis_of_the_other(monkeypatch):
    """The diagonal of the captions' kernel is not constant: only they are decomposed anew."""
    made = []

    def counted(name, *args, **options):
        made.append(name)
        return named_kernel_basis(name, *args, **options)

    monkeypatch.setattr(factorization_module, "named_kernel_basis", counted)
    ranker = KCCARanker(image_kernel=cosine, text_kernel=linear, **EIGEN)
    search_of(ranker, {"ridge": [(1.0, 2.0), (3.0, 2.0), (3.0, 4.0)], "n_components": [3]})
    assert sorted(made) == ["Kx", "Ky", "Ky"]
