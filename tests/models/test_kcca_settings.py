import itertools

import numpy as np
import pytest

from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.kcca import factorize
from kernelcore.models import KCCARanker, borda_scores, hub_corrected, select_kcca
from kernelcore.models.kcca_settings import KCCASelection, KCCASetting

RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(120, 4))
IMAGES = np.hstack([SHARED, RNG.normal(size=(120, 6))]) @ RNG.normal(size=(10, 10))
CAPTIONS = np.hstack([SHARED, RNG.normal(size=(120, 6))]) @ RNG.normal(size=(10, 10))


def gram(features, rows):
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return np.exp(unit[rows] @ unit[:60].T - 1.0)


ROWS = range(60), range(60, 90), range(90, 120)
KX, KX_DEV, KX_TEST = (gram(IMAGES, rows) for rows in ROWS)
KY, KY_DEV, KY_TEST = (gram(CAPTIONS, rows) for rows in ROWS)
GRID = {
    "n_components_grid": [6, 2], "regularization_grid": [0.1, (0.5, 1.0)],
    "ridge_grid": [1.0, (1.0, 3.0)], "correlation_power_grid": [0.0, 3.0],
}  # fmt: skip


@pytest.fixture(scope="module")
def factorization():
    return factorize(KX, KY, decomposition="eigen", tolerance=0.0)


@pytest.fixture(scope="module")
def selection(factorization):
    return select_kcca(factorization, KX_DEV, KY_DEV, **GRID)


def test_grid_is_every_combination(selection):
    values = [6, 2], [(0.1, 0.1), (0.5, 1.0)], [(1.0, 1.0), (1.0, 3.0)], [0.0, 3.0]
    assert set(selection.settings) == {KCCASetting(*own) for own in itertools.product(*values)}
    assert len(selection.settings) == 16
    assert selection.recalls.shape == (16, 2, 3)


def test_recalls_are_those_of_each_ranker_alone(factorization, selection):
    for setting, recalls in zip(selection.settings, selection.recalls, strict=True):
        ranker = KCCARanker.from_factorization(factorization, **setting._asdict())
        scores = ranker.scores(KX_DEV, KY_DEV)
        for ranks, expected in zip(retrieval_ranks(scores), recalls, strict=True):
            assert [np.mean(ranks <= k) for k in (1, 5, 10)] == expected.tolist()


@pytest.mark.parametrize("hub_neighbors", [0, 4])
@pytest.mark.parametrize("d", [1.0, 3.0])
@pytest.mark.parametrize("task", ["annotation", "search"])
def test_scores_are_bordas_count_over_the_winners(factorization, task, d, hub_neighbors):
    """The bank of each winner is all training items as if they were new: without the ridge."""
    values = [2, 6], [(0.1, 0.1), (0.5, 1.0)], [(1.0, d)], [0.0, 3.0]
    settings = [KCCASetting(*own) for own in itertools.product(*values)]
    chosen = KCCASelection(factorization, settings, RNG.random((8, 2, 3)))
    winners = chosen.winners(task, n_best=2)
    assert len(winners) == 6
    lists = [corrected(factorization, one, task, hub_neighbors) for one in winners]
    expected = borda_scores(lists, task=task)
    options = {"task": task, "n_best": 2, "hub_neighbors": hub_neighbors}
    np.testing.assert_allclose(chosen.scores(KX_TEST, KY_TEST, **options), expected)


def corrected(factorization, setting, task, k):
    """Scores of one setting, corrected for hubs."""
    ranker = KCCARanker.from_factorization(factorization, **setting._asdict())
    scores = ranker.scores(KX_TEST, KY_TEST)
    bank = ranker.scores(*((KX, KY_TEST) if task == "annotation" else (KX_TEST, KY)))
    return hub_corrected(scores, bank, task=task, n_neighbors=k) if k else scores


def test_hubs_are_corrected_with_partial_gram_schmidt_too():
    factorization = factorize(KX, KY, tolerance=0.0, max_rank=40)
    setting = KCCASetting(5, (0.5, 0.5), (1.0, 1.0), 0.0)
    chosen = KCCASelection(factorization, [setting], np.zeros((1, 2, 3)))
    scores = chosen.scores(KX_TEST, KY_TEST, task="annotation", hub_neighbors=30)
    expected = corrected(factorization, setting, "annotation", 30)
    # It wins by each recall.
    np.testing.assert_allclose(scores, borda_scores([expected] * 3, task="annotation"))


def test_winners_are_the_best_by_each_recall_then_by_their_sum(factorization):
    settings = [KCCASetting(n, (0.1, 0.1), (1.0, 1.0), 0.0) for n in range(1, 6)]
    recalls = np.zeros((5, 2, 3))
    of_search = [0.1, 0.5, 0.5], [0.2, 0.3, 0.9], [0.2, 0.4, 0.9], [0.3, 0.1, 0.2]
    recalls[:, 1] = [*of_search, of_search[2]]
    selection = KCCASelection(factorization, settings, recalls)
    # By R@1: 4, then of 2, 3 and 5 the larger sums first, in the grid's order.
    found = [w.n_components for w in selection.winners("search", n_best=3)]
    assert found == [4, 3, 5, 1, 3, 5, 3, 5, 2]
    recalls[1, 0] = [0.9, 0.9, 0.9]
    assert selection.best().n_components == 2
    assert selection.winners("annotation", n_best=1) == [settings[1]] * 3
    assert len(selection.winners("search", n_best=99)) == 15


def test_several_captions_of_an_image(factorization):
    owner = np.repeat(np.arange(15), 2)
    options = {"n_components_grid": [3], "regularization_grid": [0.2], "caption_image": owner}
    selection = select_kcca(factorization, KX_DEV[:15], KY_DEV, **options)
    ranker = KCCARanker.from_factorization(factorization, 3, regularization=0.2)
    scores = ranker.scores(KX_DEV[:15], KY_DEV)
    for i, ranks in enumerate(retrieval_ranks(scores, owner)):
        assert selection.recalls[0, i, 2] == np.mean(ranks <= 10)


def test_same_bits_for_every_number_of_threads(factorization, selection):
    found = []
    for n_threads in (1, 3):
        again = select_kcca(factorization, KX_DEV, KY_DEV, **GRID, n_threads=n_threads)
        assert again.recalls.tobytes() == selection.recalls.tobytes()
        found.append(again.scores(KX_TEST, KY_TEST, task="search", n_threads=n_threads))
    assert found[0].tobytes() == found[1].tobytes()


def test_progress_counts_the_settings(factorization):
    steps = []
    progress = lambda *of: steps.append(of)  # noqa: E731
    select_kcca(factorization, KX_DEV, KY_DEV, **GRID, progress=progress)
    assert steps == [(4, 16), (8, 16), (12, 16), (16, 16)]


def test_repeated_values_count_once(factorization):
    grids = {"n_components_grid": [2, 2, 3], "regularization_grid": [0.1, (0.1, 0.1)]}
    selection = select_kcca(factorization, KX_DEV, KY_DEV, **grids)
    assert [s.n_components for s in selection.settings] == [2, 3]


def test_the_frame_has_every_setting_and_its_recalls(selection):
    frame = selection.to_frame()
    assert frame["n_components"].tolist() == [s.n_components for s in selection.settings]
    np.testing.assert_array_equal(frame["search R@5"], selection.recalls[:, 1, 1])
