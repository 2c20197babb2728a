"""Means over folds of a pool, and tables that have them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.datasets import load_eccv_caption
from kernelcore.evaluation import (
    FoldedMetrics,
    FoldedResult,
    Published,
    RankingMetrics,
    ResultTable,
    evaluate,
)


def pool(rng, n_images, n_captions, dtype=np.float64):
    """Scores and owners: every image has a caption, and they stand in any order."""
    owner = np.concatenate(
        [np.arange(n_images), rng.integers(0, n_images, n_captions - n_images)]
    )
    rng.shuffle(owner)
    return rng.integers(0, 9, (n_images, n_captions)).astype(dtype), owner


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 9),
    st.sampled_from(["mean", "min", "max", "ordinal"]),
)
def test_folds_are_evaluated_on_their_own(seed, n_folds, size, n_more, ties):
    rng = np.random.default_rng(seed)
    n_images = n_folds * size
    scores, owner = pool(rng, n_images, n_images + n_more, np.float32)
    other = scores[::-1]
    result = evaluate(scores, other, caption_image=owner, n_folds=n_folds, ties=ties, ks=(1, 2))
    expected = []
    for start in range(0, n_images, size):
        rows = np.arange(start, start + size)
        columns = [j for j, image in enumerate(owner) if image in rows]
        block = np.ix_(rows, columns)
        expected.append(
            evaluate(
                scores[block],
                other[block],
                caption_image=owner[columns] - start,
                ties=ties,
                ks=(1, 2),
            )
        )
    for task in ("annotation", "search"):
        folded, folds = getattr(result, task), [getattr(fold, task) for fold in expected]
        assert list(folded.folds) == folds
        for k in (1, 2):
            assert folded.recall[k] == pytest.approx(np.mean([f.recall[k] for f in folds]))
        for name in ("median_rank", "mean_rank", "mean_reciprocal_rank"):
            mean = np.mean([getattr(fold, name) for fold in folds])
            assert getattr(folded, name) == pytest.approx(mean)
        np.testing.assert_array_equal(
            folded.ranks, np.concatenate([fold.ranks for fold in folds])
        )
    assert (result.n_images, result.n_captions) == scores.shape
    assert (result.n_folds, result.ties, result.ks) == (n_folds, ties, (1, 2))


def test_one_fold_is_the_whole_pool():
    scores, owner = pool(np.random.default_rng(0), 6, 15)
    folded = evaluate(scores, caption_image=owner, n_folds=1)
    whole = evaluate(scores, caption_image=owner)
    assert folded.annotation.folds == (whole.annotation,)
    assert folded.search.folds == (whole.search,)


def test_a_function_is_asked_for_blocks_alone():
    scores, owner = pool(np.random.default_rng(1), 6, 15)
    asked = np.zeros(scores.shape, dtype=int)

    def score(images, captions):
        asked[np.ix_(images, captions)] += 1
        return scores[np.ix_(images, captions)]

    result = evaluate(score, caption_image=owner, n_folds=3)
    assert result == evaluate(scores, caption_image=owner, n_folds=3)
    np.testing.assert_array_equal(asked, np.arange(6)[:, None] // 2 == owner // 2)
    both = evaluate(score, lambda *at: -score(*at), caption_image=owner, n_folds=3)
    assert both.search == evaluate(-scores, caption_image=owner, n_folds=3).search
    assert both.annotation == result.annotation
    assert evaluate(score, caption_image=owner) == evaluate(scores, caption_image=owner)


def test_results_in_files(tmp_path):
    result = evaluate(
        np.eye(6), n_folds=3, system="toy", protocol="1K", dataset="pets", settings={"k": 1}
    )
    result.save(tmp_path / "r.json")
    again = FoldedResult.load(tmp_path / "r.json")
    assert again == result
    assert again.settings == {"k": 1}
    document = result.to_dict()
    assert document["annotation"]["n_folds"] == 3
    assert document["annotation"]["R@1"] == 1.0
    with pytest.raises(ValueError, match="holds a folded retrieval result"):
        FoldedResult.from_dict(evaluate(np.eye(2)).to_dict())


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        (np.eye(6), {"n_folds": 4}, ValueError, r"divide the number of images \(6\), got 4"),
        (np.eye(6), {"n_folds": 0}, ValueError, "n_folds must be an integer >= 1"),
        (np.ones((2, 4)), {"n_folds": 2}, ValueError, "caption_image must be given unless"),
        (np.eye(6)[0], {}, ValueError, "annotation_scores must be a 2-D array"),
        (
            np.eye(6),
            {"search_scores": np.eye(7), "n_folds": 2},
            ValueError,
            r"search_scores must have the shape of annotation_scores, \(6, 6\), got \(7, 7\)",
        ),
        (np.full((2, 2), np.nan), {"n_folds": 2}, ValueError, "must not hold NaN"),
        (
            lambda i, c: 0,
            {},
            ValueError,
            "caption_image must be given where",
        ),
        (lambda i, c: 0, {"caption_image": []}, ValueError, "at least one caption, got none"),
        (
            lambda i, c: 0,
            {"search_scores": np.eye(2), "caption_image": [0, 1]},
            TypeError,
            "search_scores must be callable",
        ),
        (lambda i, c: 0, {"image_vectors": np.eye(2)}, ValueError, "must not be given beside"),
        (
            lambda i, c: np.ones((2, 3)),
            {"caption_image": range(4), "n_folds": 2},
            ValueError,
            r"one column per caption, \(2, 2\), got shape \(2, 3\)",
        ),
        (
            lambda i, c: np.ones((2, 2)),
            {"caption_image": [0, 1, 1, 3], "n_folds": 2},
            ValueError,
            "every image at least once, and 1 have no caption, the first is image 2",
        ),
    ],
)
def test_bad_arguments(scores, options, error, message):
    with pytest.raises(error, match=message):
        evaluate(scores, **options)


def test_bad_parts():
    fold = RankingMetrics([1, 2], [1, 1], n_candidates=2)
    other = RankingMetrics([1, 2], [1, 1], n_candidates=2, ks=(3,))
    with pytest.raises(ValueError, match="share ties and ks, got 2 folds"):
        FoldedMetrics((fold, other))
    with pytest.raises(ValueError, match="at least one and share ties and ks, got 0 folds"):
        FoldedMetrics(())
    with pytest.raises(TypeError, match="folds must hold RankingMetrics, got int"):
        FoldedMetrics((1,))
    four = RankingMetrics([1, 2, 3, 4], [1] * 4, n_candidates=4)
    with pytest.raises(ValueError, match="same folds, got 2 and 1"):
        FoldedResult(FoldedMetrics((fold, fold)), FoldedMetrics((four,)))


def test_tables_of_folds():
    scores = np.random.default_rng(2).random((6, 6))
    labels = {"system": "toy", "dataset": "COCO", "pool": "5 captions"}
    folded = evaluate(scores, n_folds=3, ks=(1,), **labels)
    values = {
        "annotation": {"R@1": 0.7, "median_rank": 1.0},
        "search": {"R@1": 0.5, "median_rank": 2.0},
    }
    published = Published("SCAN", "Lee 2018", values)
    table = ResultTable([folded, published]).to_table()
    assert table.caption.startswith(
        "R@k in percent; COCO, pool 5 captions, 6 images, 6 captions, means over 3 folds"
    )
    cells = [
        f"{100 * folded.annotation.recall[1]:.1f}",
        f"{folded.annotation.median_rank:.1f}",
        f"{100 * folded.search.recall[1]:.1f}",
        f"{folded.search.median_rank:.1f}",
    ]
    assert table.rows == (("toy", *cells), ("SCAN (Lee 2018)", "70.0", "1.0", "50.0", "2.0"))
    assert folded.to_table().rows == (("toy", *cells),)
    whole = evaluate(scores, ks=(1,), **labels)
    mixed = ResultTable([folded, whole]).to_table()
    assert mixed.columns[:2] == ("system", "n_folds")
    assert [row[1] for row in mixed.rows] == ["3", ""]
    assert not mixed.emphasized
    frame = folded.to_frame()
    assert frame["n_folds"].tolist() == [3, 3]
    assert frame["R@1"].tolist() == [folded.annotation.recall[1], folded.search.recall[1]]


def test_tables_with_the_mean_rank():
    ranks = [1, 2, 4, 4]
    metrics = RankingMetrics(ranks, [1] * 4, n_candidates=4)
    better = RankingMetrics([1, 1, 4, 4], [1] * 4, n_candidates=4)
    result = evaluate(np.eye(4), system="best")
    results = [
        type(result)(metrics, metrics, system="a"),
        type(result)(better, better, system="b"),
        Published("c", "Doe", {"annotation": {"R@1": 0.39, "mean_rank": 10.5}}),
    ]
    table = ResultTable(results, rank="mean").to_table()
    assert table.columns[4:] == ("mean rank", "R@1", "R@5", "R@10", "mean rank")
    assert [row[4] for row in table.rows] == ["2.8", "2.5", "10.5"]
    assert [row[-1] for row in table.rows] == ["2.8", "2.5", "n/a"]
    assert {(1, 4), (1, 8)} <= table.emphasized  # the least of the mean ranks
    assert (0, 4) not in table.emphasized
    document = results[2].to_dict()
    assert document["annotation"] == {"R@1": 0.39, "mean_rank": 10.5}
    assert "search" not in document
    with pytest.raises(ValueError, match="rank must be one of 'median', 'mean', got 'mode'"):
        ResultTable(results, rank="mode")
    with pytest.raises(TypeError, match=r"results must hold .* got int"):
        ResultTable([result, 3])


@pytest.mark.realdata
def test_chance_in_the_folds_of_coco(data_root):
    own = load_eccv_caption(data_root / "coco" / "eccv_caption", "original").search
    owner = np.empty(25000, dtype=np.intp)
    owner[own.captions] = own.images
    rng = np.random.default_rng(0)
    result = evaluate(
        lambda images, captions: rng.random((len(images), len(captions)), dtype=np.float32),
        caption_image=owner,
        n_folds=5,
    )
    assert (result.n_folds, result.n_images, result.n_captions) == (5, 5000, 25000)
    assert {fold.n_candidates for fold in result.annotation.folds} == {5000}
    assert {fold.n_candidates for fold in result.search.folds} == {1000}
    assert result.search.median_rank == pytest.approx(500.5, abs=10)
    # The best of 5 among 5,000 in random order stands at (N + 1) / (m + 1) on average
    assert result.annotation.mean_rank == pytest.approx(5001 / 6, rel=0.05)
    assert result.search.recall[10] == pytest.approx(0.01, abs=0.003)
