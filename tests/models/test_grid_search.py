import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import kernelcore.models.kcca_settings
from kernelcore._estimator import NotFittedError
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.evaluation.ranks import annotation_ranks, search_ranks
from kernelcore.kcca import factorize
from kernelcore.models import (
    GridSearch,
    KCCARanker,
    NearestNeighbourRanker,
    Ranker,
    SharesFit,
    borda_scores,
    select_kcca,
)

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(120, 4))
IMAGES, CAPTIONS = (
    np.hstack([SHARED, RNG.normal(size=(120, 6))]) @ RNG.normal(size=(10, 10)) for _ in "xy"
)
TRAIN, DEV, TEST = slice(0, 60), slice(60, 90), slice(90, 120)
TASKS = ("annotation", "search")


def cosine(X, Y=None):
    """Kernel with ones on its diagonal."""
    unit_X, unit_Y = (
        Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, X if Y is None else Y)
    )
    return np.exp(unit_X @ unit_Y.T - 1.0)


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


class Blend(BaseEstimator):
    """A ranker that takes nothing from this package; the tasks go different ways."""

    n_fits = 0

    def __init__(self, weight=1.0, *, only=None):
        self.weight = weight
        self.only = only

    def fit(self, images, captions):
        Blend.n_fits += 1
        self.map_ = np.linalg.lstsq(images, captions, rcond=None)[0]
        return self

    def scores(self, images, captions, *, task="annotation"):
        products = self.weight * (images @ self.map_ @ captions.T)
        if task == self.only:
            return -products
        return products - (1 - self.weight) * (captions**2).sum(axis=1)


class Bare:
    """Follows the protocol, and no more than that."""

    def fit(self, images, captions):
        return self

    def scores(self, images, captions, *, task="annotation"):
        return np.zeros((len(images), len(captions)))


def recalls_of(ranker, images=IMAGES[DEV], captions=CAPTIONS[DEV], owner=None):
    ranks = (
        annotation_ranks(ranker.scores(images, captions, task="annotation"), owner),
        search_ranks(ranker.scores(images, captions, task="search"), owner),
    )
    return [[recall_at_k(r, k) for k in (1, 5, 10)] for r in ranks]


def search_of(ranker, grid, **options):
    search = GridSearch(ranker, grid, **options)
    return search.fit(IMAGES[TRAIN], CAPTIONS[TRAIN], dev=(IMAGES[DEV], CAPTIONS[DEV]))


@pytest.fixture
def n_factorizations(monkeypatch):
    """Calls of `factorize` so far, in a list."""
    calls = []

    def counted(*args, **options):
        calls.append(options)
        return factorize(*args, **options)

    monkeypatch.setattr(kernelcore.models.kcca_settings, "factorize", counted)
    return calls


KCCA_GRID = {
    "n_components": [6, None, 2],
    "regularization": [0.1, (0.5, 1.0)],
    "ridge": [1.0, (1.0, 3.0)],
    "correlation_power": [0.0, 3.0],
}
EIGEN = {"decomposition": "eigen", "tolerance": 0.0}


def assert_is_what_every_ranker_does_alone(search, ranker):
    for setting, recalls in zip(search.settings_, search.recalls_, strict=True):
        alone = clone(ranker).set_params(**setting).fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
        assert recalls.tolist() == recalls_of(alone), setting
    for task in TASKS:
        winners = [
            clone(ranker).set_params(**setting).fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
            for setting in search.winners(task)
        ]
        items = IMAGES[TEST], CAPTIONS[TEST]
        expected = borda_scores([w.scores(*items, task=task) for w in winners], task=task)
        np.testing.assert_array_equal(search.scores(*items, task=task), expected)
    best = clone(ranker).set_params(**search.best_params_)
    assert search.best_ranker_.get_params() == best.get_params()
    np.testing.assert_allclose(
        search.best_ranker_.scores(IMAGES[TEST], CAPTIONS[TEST]),
        best.fit(IMAGES[TRAIN], CAPTIONS[TRAIN]).scores(IMAGES[TEST], CAPTIONS[TEST]),
        atol=1e-8,
    )


def test_settings_are_every_combination_in_order():
    search = search_of(Blend(), {"weight": [0.5, 2.0], "only": [None, "search"]})
    assert search.settings_ == (
        {"weight": 0.5, "only": None},
        {"weight": 0.5, "only": "search"},
        {"weight": 2.0, "only": None},
        {"weight": 2.0, "only": "search"},
    )


def test_several_grids_and_each_setting_once():
    grids = [{"weight": [1.0, 0.5, 1.0]}, {"weight": (0.5, 0.7)}, {"only": iter(["search"])}]
    search = search_of(Blend(), grids)
    assert search.settings_ == (
        {"weight": 1.0},
        {"weight": 0.5},
        {"weight": 0.7},
        {"only": "search"},
    )


def test_any_ranker_is_copied_and_fitted_for_each_setting():
    ranker, before = Blend(0.9), Blend.n_fits
    search = search_of(
        ranker, {"weight": [0.2, 0.6, 1.0, 1.4], "only": [None, *TASKS]}, n_best=2
    )
    assert Blend.n_fits - before == 12
    assert not hasattr(ranker, "map_")
    assert_is_what_every_ranker_does_alone(search, ranker)
    assert not (search.recalls_[:, 0] == search.recalls_[:, 1]).all()


def test_a_kcca_grid_costs_one_factorization(n_factorizations):
    ranker = KCCARanker(image_kernel=cosine, text_kernel=cosine, **EIGEN)
    search = search_of(ranker, KCCA_GRID, n_best=2)
    assert len(search.settings_) == 24
    assert len(n_factorizations) == 1
    assert_is_what_every_ranker_does_alone(search, ranker)


def test_what_does_not_share_a_fit_has_one_of_its_own(n_factorizations):
    ranker = KCCARanker(image_kernel=cosine, text_kernel=cosine)
    grid = {
        "n_components": [2, 5],
        "max_rank": [5, 10],
        "regularization": [0.1, 1.0],
        "image_kernel": [cosine, linear],
    }
    search = search_of(ranker, [grid, {**grid, "n_components": [3]}], n_best=1)
    assert len(search.settings_) == 24
    assert [call["max_rank"] for call in n_factorizations] == [5, 5, 10, 10]
    assert_is_what_every_ranker_does_alone(search, ranker)


@pytest.mark.parametrize(
    ("options", "text_kernel"), [({}, cosine), (EIGEN, linear)], ids=["pivots", "diagonal"]
)
def test_a_ridge_that_does_more_than_rescale_is_factorized(
    n_factorizations, options, text_kernel
):
    ranker = KCCARanker(image_kernel=cosine, text_kernel=text_kernel, **options)
    grid = {"ridge": [1.0, (1.0, 2.0)], "n_components": [3, None], "regularization": [0.5]}
    search = search_of(ranker, grid, n_best=1)
    assert len(n_factorizations) == 2
    assert_is_what_every_ranker_does_alone(search, ranker)


def test_agrees_with_select_kcca():
    grams = [cosine(Z[TRAIN]) for Z in (IMAGES, CAPTIONS)]
    dev, test = (
        [cosine(Z[rows], Z[TRAIN]) for Z in (IMAGES, CAPTIONS)] for rows in (DEV, TEST)
    )
    grid = {**KCCA_GRID, "n_components": [6, 2]}
    selection = select_kcca(factorize(*grams, **EIGEN), *dev, **grid)
    search = GridSearch(KCCARanker(**EIGEN), grid).fit(*grams, dev=dev)
    by_setting = dict(zip(selection.settings, selection.recalls.tolist(), strict=True))
    of_search = {
        KCCARanker(**setting)._setting(): recalls
        for setting, recalls in zip(search.settings_, search.recalls_.tolist(), strict=True)
    }
    assert of_search == by_setting
    search.best_ranker_.scores(*test)  # takes rows of kernel values, as it was fitted to


def test_winners_are_by_each_recall_then_by_the_sum():
    search = search_of(Blend(), {"weight": [0.1, 0.4, 0.7, 1.0, 1.3, 1.6]}, n_best=2)
    for t, task in enumerate(TASKS):
        order = [
            sorted(range(6), key=lambda i: (-of[i, k], -of[i].sum(), i))
            for of, k in itertools.product([search.recalls_[:, t]], range(3))
        ]
        for n_best, got in ((2, search.winners(task)), (4, search.winners(task, n_best=4))):
            assert got == [search.settings_[i] for by in order for i in by[:n_best]]
    total = search.recalls_.sum(axis=(1, 2))
    assert search.best_params_ == search.settings_[int(total.argmax())]


def test_several_captions_of_an_image():
    owner = np.repeat(np.arange(15), 2)
    search = GridSearch(Blend(), {"weight": [0.5, 1.0]})
    dev = IMAGES[60:75], CAPTIONS[DEV], owner
    search.fit(IMAGES[TRAIN], CAPTIONS[TRAIN], dev=dev)
    for weight, recalls in zip((0.5, 1.0), search.recalls_, strict=True):
        alone = Blend(weight).fit(IMAGES[TRAIN], CAPTIONS[TRAIN])
        assert recalls.tolist() == recalls_of(alone, *dev)


def test_same_bits_for_every_number_of_threads():
    ranker = KCCARanker(image_kernel=cosine, text_kernel=cosine, **EIGEN)
    one, three = (search_of(ranker, KCCA_GRID, n_threads=n) for n in (1, 3))
    assert one.recalls_.tobytes() == three.recalls_.tobytes()
    for task in TASKS:
        scores = [s.scores(IMAGES[TEST], CAPTIONS[TEST], task=task) for s in (one, three)]
        assert scores[0].tobytes() == scores[1].tobytes()


def test_progress_counts_the_settings():
    steps = []
    search_of(
        KCCARanker(image_kernel=cosine, text_kernel=cosine),
        {"max_rank": [5, 9], "regularization": [0.1, 1.0], "n_components": [2, 3]},
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == [(2, 8), (4, 8), (6, 8), (8, 8)]


def test_parameters_of_nested_estimators():
    class Outer(BaseEstimator):
        def __init__(self, inner):
            self.inner = inner

        def fit(self, images, captions):
            self.inner.fit(images, captions)
            return self

        def scores(self, images, captions, *, task="annotation"):
            return self.inner.scores(images, captions, task=task)

    search = search_of(Outer(Blend()), {"inner__weight": [0.3, 1.0]})
    plain = search_of(Blend(), {"weight": [0.3, 1.0]})
    np.testing.assert_array_equal(search.recalls_, plain.recalls_)


def test_is_a_ranker_and_an_estimator():
    search = GridSearch(Blend(), {"weight": [0.5]}, n_best=3)
    assert isinstance(search, Ranker)
    assert isinstance(KCCARanker(), SharesFit)
    assert not isinstance(NearestNeighbourRanker("precomputed", "precomputed"), SharesFit)
    again = clone(search).set_params(n_best=2)
    assert (again.n_best, again.param_grid) == (2, search.param_grid)
    assert again.ranker is not search.ranker
    with pytest.raises(NotFittedError, match="this GridSearch must be fitted first"):
        search.scores(IMAGES, CAPTIONS)
    with pytest.raises(NotFittedError, match="this GridSearch must be fitted first"):
        search.to_table()
    fitted = search_of(Blend(), {"weight": [0.5]})
    with pytest.raises(ValueError, match="task must be one of"):
        fitted.scores(IMAGES[TEST], CAPTIONS[TEST], task="both")
    with pytest.raises(ValueError, match="n_best must be an integer >= 1"):
        fitted.winners("search", n_best=0)
    fitted.winners("search")[0]["weight"] = 9.0
    fitted.best_params_["weight"] = 9.0
    assert fitted.settings_ == ({"weight": 0.5},)


def test_table_and_frame():
    search = search_of(Blend(0.9), [{"weight": [0.2, 1.0]}, {"only": ["search"]}])
    frame = search.to_frame()
    assert frame["weight"].tolist() == [0.2, 1.0, 0.9]
    assert frame["only"].tolist() == [None, None, "search"]
    names = [f"{task} R@{k}" for task in TASKS for k in (1, 5, 10)]
    assert {dtype.kind for dtype in frame[names].dtypes} == {"f"}
    np.testing.assert_array_equal(frame[names], search.recalls_.reshape(3, 6))
    np.testing.assert_allclose(frame["recall sum"], search.recalls_.sum(axis=(1, 2)))
    table = search.to_table()
    assert table.columns == ("weight", "only", *["R@1", "R@5", "R@10"] * 2, "sum")
    assert table.groups == (("", 2), ("annotation", 3), ("search", 3), ("", 1))
    assert [row[:2] for row in table.rows] == [
        ("0.2", "None"),
        ("1.0", "None"),
        ("0.9", "search"),
    ]
    assert table.rows[1][2] == f"{100 * search.recalls_[1, 0, 0]:.1f}"
    best = int(np.argmax(frame["recall sum"]))
    assert [i for i, j in table.emphasized if j == 8] == [best]
    kernels = search_of(
        KCCARanker(2, image_kernel=cosine, text_kernel=cosine), {"image_kernel": [linear]}
    )
    assert kernels.to_table().rows[0][0] == "linear"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ranker": object()}, TypeError, "ranker must have the methods fit and scores"),
        ({"ranker": Blend}, TypeError, "ranker must have the methods fit and scores"),
        (
            {"ranker": Bare()},
            TypeError,
            "ranker must have the methods get_params and set_params",
        ),
        ({"param_grid": 3}, TypeError, "param_grid must be a mapping or a sequence of them"),
        ({"param_grid": "weight"}, TypeError, "param_grid must be a mapping or a sequence"),
        ({"param_grid": [3]}, TypeError, "param_grid must map names of parameters to values"),
        ({"param_grid": {1: [2]}}, TypeError, "param_grid must map names of parameters"),
        ({"param_grid": []}, ValueError, "param_grid must hold at least one mapping"),
        ({"param_grid": {}}, ValueError, "param_grid must name at least one parameter"),
        (
            {"param_grid": {"weight": []}},
            ValueError,
            r"param_grid\['weight'\] must hold at lea",
        ),
        (
            {"param_grid": {"weight": 3}},
            TypeError,
            r"param_grid\['weight'\] must be a sequence",
        ),
        ({"param_grid": {"weight": "3"}}, TypeError, r"param_grid\['weight'\] must be a seq"),
        ({"param_grid": {"width": [3]}}, ValueError, "Invalid parameter 'width'"),
        ({"n_best": 0}, ValueError, "n_best must be an integer >= 1"),
        ({"n_threads": 0}, ValueError, "n_threads must be an integer >= 1"),
        ({"progress": 1}, TypeError, "progress must be True, False or a callable"),
    ],
)
def test_bad_parameters(options, error, message):
    params = {"ranker": Blend(), "param_grid": {"weight": [1.0]}, **options}
    search = GridSearch(params.pop("ranker"), params.pop("param_grid"), **params)
    with pytest.raises(error, match=message):
        search.fit(IMAGES[TRAIN], CAPTIONS[TRAIN], dev=(IMAGES[DEV], CAPTIONS[DEV]))


@pytest.mark.parametrize(
    ("dev", "owner", "error", "message"),
    [
        (IMAGES[DEV], None, TypeError, r"dev must be a pair \(images, captions\), got ndarray"),
        ((IMAGES,), None, TypeError, r"dev must be a pair \(images, captions\)"),
        ((IMAGES[DEV], CAPTIONS[DEV]), [0], ValueError, "caption_image"),
    ],
)
def test_bad_development_data(dev, owner, error, message):
    with pytest.raises(error, match=message):
        GridSearch(Blend(), {"weight": [1.0]}).fit(
            IMAGES[TRAIN], CAPTIONS[TRAIN], dev=dev, caption_image=owner
        )


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ({"kappa": [0.1]}, ValueError, "KCCARanker has no parameter 'kappa'"),
        ({"n_components": [2, 0]}, ValueError, "n_components must be an integer >= 1, got 0"),
        ({"n_components": [1000]}, ValueError, "n_components must be at most the smaller rank"),
        ({"regularization": [-1]}, ValueError, "regularization must be a number >= 0"),
        ({"ridge": [0.5]}, ValueError, "ridge must be a number >= 1"),
        ({"correlation_power": ["3"]}, TypeError, "correlation_power must be a real number"),
        ({"decomposition": ["svd"]}, ValueError, "decomposition must be one of"),
    ],
)
def test_bad_settings_of_kernel_cca(grid, error, message):
    with pytest.raises(error, match=message):
        search_of(KCCARanker(image_kernel=cosine, text_kernel=cosine), grid)
