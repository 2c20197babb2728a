"""Relevance judgments of pairs, and the files of Flickr8k and ECCV Caption."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from kernelcore.datasets import (
    RelevanceJudgments,
    load_eccv_caption,
    load_flickr_crowd,
    load_flickr_expert,
    make_scenes,
)

PAIRS = [("b", "c1"), ("a", "c2"), ("b", "c0"), ("a", "c0")]
RATINGS = np.array([[1, 0], [1, np.nan], [0, 0], [1, 1]])
SCORES = [0.5, 1.0, 0.25, 0.75]
JUDGMENTS = RelevanceJudgments.from_pairs("people", PAIRS, SCORES, ratings=RATINGS)


def lists(arrays):
    return [array.tolist() for array in arrays]


def test_pairs_are_kept_in_order_with_their_scores_and_ratings():
    assert JUDGMENTS.image_ids == ("b", "a")
    assert JUDGMENTS.caption_ids == ("c1", "c2", "c0")
    assert JUDGMENTS.images.tolist() == [0, 0, 1, 1]
    assert JUDGMENTS.captions.tolist() == [0, 2, 1, 2]
    assert JUDGMENTS.scores.tolist() == [0.5, 0.25, 1.0, 0.75]
    np.testing.assert_array_equal(JUDGMENTS.ratings, RATINGS[[0, 2, 1, 3]])
    assert len(JUDGMENTS) == 4


def test_relevant_items_of_both_orientations():
    assert lists(JUDGMENTS.relevant_captions(0.5)) == [[0], [1, 2]]
    assert lists(JUDGMENTS.relevant_images(0.5)) == [[0], [1], [1]]
    assert lists(JUDGMENTS.relevant_images(0.25)) == [[0], [1], [0, 1]]
    assert lists(JUDGMENTS.relevant_captions(2)) == [[], []]


def test_scores_of_pairs():
    found = JUDGMENTS.scores_of([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(found, [0.5, np.nan, 0.25, np.nan, 1, 0.75])
    refuses(ValueError, "captions", JUDGMENTS.scores_of, [0], [0, 1])
    refuses(ValueError, "images", JUDGMENTS.scores_of, [2], [0])


@given(st.data())
def test_select_keeps_every_pair_inside_in_the_order_of_the_pool(data):
    ids = [f"i{n}" for n in range(5)]
    pairs = data.draw(st.sets(st.tuples(st.sampled_from(ids), st.sampled_from(ids))))
    scores = {pair: float(n) for n, pair in enumerate(sorted(pairs))}
    values = np.array([*scores.values()])
    ratings = np.column_stack([values, -values])
    judgments = RelevanceJudgments.from_pairs("all", scores, values, ratings=ratings)
    rows, columns = (data.draw(st.lists(st.sampled_from(ids), unique=True)) for _ in range(2))
    pool = judgments.select(rows, columns)
    assert (pool.image_ids, pool.caption_ids) == (tuple(rows), tuple(columns))
    found = zip(pool.images, pool.captions, pool.scores, strict=True)
    kept = {(rows[i], columns[j]): score for i, j, score in found}
    assert kept == {p: s for p, s in scores.items() if p[0] in rows and p[1] in columns}
    np.testing.assert_array_equal(pool.ratings, np.column_stack([pool.scores, -pool.scores]))


def test_union_takes_the_greater_score_or_the_first():
    pairs = [("a", "c2"), ("a", "c0"), ("z", "c0"), ("b", "c7")]
    other = RelevanceJudgments.from_pairs("gold", pairs, [0.5, 1, 1, 1])
    both = JUDGMENTS.union(other)
    assert both.name == "people + gold"
    assert both.image_ids == ("b", "a", "z")
    assert both.caption_ids == ("c1", "c2", "c0", "c7")
    assert both.scores_of([1, 1, 2, 0, 0], [1, 2, 2, 3, 0]).tolist() == [1, 1, 1, 1, 0.5]
    assert len(both) == 6
    assert both.ratings is None
    first = JUDGMENTS.union(other, both="first")
    assert first.scores_of([1, 1, 2, 0, 0], [1, 2, 2, 3, 0]).tolist() == [1, 0.75, 1, 1, 0.5]
    refuses(TypeError, "other", JUDGMENTS.union, [])
    refuses(ValueError, "both", JUDGMENTS.union, other, both="mean")


def test_gold_is_every_caption_with_its_image():
    scenes = make_scenes(4, rng=0).dataset
    gold = RelevanceJudgments.gold(scenes, score=4)
    assert gold.image_ids == scenes.image_ids
    assert lists(gold.relevant_captions(4)) == [[5 * i + j for j in range(5)] for i in range(4)]
    assert lists(gold.relevant_images(4)) == [[i] for i in range(4) for _ in range(5)]


def test_without_pairs():
    empty = RelevanceJudgments.from_pairs("none", [], [], image_ids=["a"], caption_ids=["c"])
    assert lists(empty.relevant_captions(0)) == [[]]
    assert np.isnan(empty.scores_of([0], [0])).all()
    assert repr(empty) == "RelevanceJudgments('none', 0 pairs of 1 images and 1 captions)"
    assert len(empty.union(empty)) == 0


PARTS = {"image_ids": ("a", "b"), "caption_ids": ("x", "y"), "images": [0, 1],
         "captions": [0, 0], "scores": [1.0, 2.0]}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (ValueError, {"images": [0, 2]}), (ValueError, {"captions": [-1, 0]}),
        (ValueError, {"captions": [0]}), (ValueError, {"scores": [1.0]}),
        (ValueError, {"scores": [1.0, np.nan]}), (TypeError, {"scores": ["1", "2"]}),
        (TypeError, {"images": [0.0, 1.0]}), (ValueError, {"image_ids": ("a", "a")}),
        (TypeError, {"caption_ids": (1, 2)}), (TypeError, {"image_ids": "ab"}),
        (ValueError, {"ratings": [[1.0]]}), (ValueError, {"ratings": [[1.0], [np.inf]]}),
    ]
)  # fmt: skip
def test_parts_that_do_not_fit(error, change):
    refuses(error, *change, RelevanceJudgments, "does not", **PARTS | change)


def test_a_pair_is_judged_once():
    same = PARTS | {"images": [0, 0]}
    refuses(ValueError, re.escape("('a', 'x')"), RelevanceJudgments, "does not", **same)


def written(folder, text):
    path = folder / "judgments.txt"
    path.write_bytes(text.encode())
    return path


def test_expert_scores(tmp_path):
    path = written(tmp_path, "\ufeffb\ta#2\t1\t2\t2\r\n\na\tb#2\t4\t4\t3\n")
    expert = load_flickr_expert(path)
    assert (expert.image_ids, expert.caption_ids) == (("b", "a"), ("a#2", "b#2"))
    assert expert.scores.tolist() == [5 / 3, 11 / 3]
    assert expert.ratings.tolist() == [[1, 2, 2], [4, 4, 3]]


def test_crowd_votes(tmp_path):
    path = written(tmp_path, "a\ta#2\t0.333333333333\t1\t2\na\tb#2\t1\t4\t0")
    crowd = load_flickr_crowd(path)
    assert crowd.scores.tolist() == [1 / 3, 1]
    np.testing.assert_array_equal(crowd.ratings, [[1, 0, 0, np.nan], [1, 1, 1, 1]])


FINE = {load_flickr_expert: "a\ta#2\t1\t2\t2\n", load_flickr_crowd: "a\ta#2\t0.5\t1\t1\n"}
ODD_ROWS = [
    *((load_flickr_expert, "5 columns", row) for row in (
        "b\ta#2\t1\t2", "b\ta#2\t1\t2\t3\t4", "b a#2 1 2 3", "\ta#2\t1\t2\t3")),
    *((load_flickr_expert, "1 to 4", f"b\ta#2\t1\t2\t{odd}") for odd in ("5", "0", "2.5")),
    (load_flickr_expert, "line 1", "a\ta#2\t1\t2\t3"),
    (load_flickr_crowd, "5 columns", "b\ta#2\t0.5\t1"),
    *((load_flickr_crowd, "share", f"b\ta#2\t{odd}") for odd in (
        "0.5\t1\t2", "nan\t1\t1", "half\t1\t1", "0.33\t1\t2")),
    (load_flickr_crowd, "one vote", "b\ta#2\t0\t0\t0"),
    *((load_flickr_crowd, "whole numbers", f"b\ta#2\t{odd}") for odd in (
        "0.5\t-1\t-1", "0.5\t\u0661\t\u0661", f"1\t{'9' * 15}\t0", f"1\t{'9' * 4301}\t0",
        "1\t1000\t0")),
    (load_flickr_crowd, "line 1", "a\ta#2\t0.5\t1\t1"),
]  # fmt: skip


@pytest.mark.parametrize(("load", "rule", "row"), ODD_ROWS)
def test_damaged_rows_are_named(tmp_path, load, rule, row):
    path = written(tmp_path, f"{FINE[load]}\n{row}")
    refuses(ValueError, rf"{re.escape(str(path))}, line 3: .*{rule}", load, path)


@pytest.mark.parametrize("load", FINE)
def test_files_without_judgments(tmp_path, load):
    refuses(ValueError, r".*judgments\.txt", load, written(tmp_path, "\n"))
    for path in (tmp_path / "nowhere.txt", tmp_path):
        refuses(FileNotFoundError, re.escape(str(path)), load, path)
    (tmp_path / "judgments.txt").write_bytes(FINE[load].encode() + b"\xff")
    refuses(ValueError, ".*line 2", load, tmp_path / "judgments.txt")


@pytest.fixture
def coco(tmp_path):
    np.save(tmp_path / "coco_test_ids.npy", [12, 11, 21])
    files = {
        "original_image_to_caption": {"1": [11, 12], "2": [21]},
        "original_caption_to_image": {"11": [1], "12": [1], "21": [2]},
        "eccv_image_to_caption": {"2": [21, 12, 99]},
        "eccv_caption_to_image": {"11": [1, 2]},
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_eccv_caption(coco):
    eccv = load_eccv_caption(coco)
    assert eccv.search.image_ids == ("1", "2")
    assert eccv.search.caption_ids == ("12", "11", "21")
    assert lists(eccv.search.relevant_images(1)) == [[], [0, 1], []]
    assert eccv.annotation.caption_ids == ("12", "11", "21", "99")
    assert lists(eccv.annotation.relevant_captions(1)) == [[], [0, 2, 3]]
    pool = eccv.annotation.select(eccv.search.image_ids, eccv.search.caption_ids)
    assert len(pool) == 2
    own = load_eccv_caption(coco, "original")
    assert lists(own.annotation.relevant_captions(1)) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("eccv_image_to_caption", '{"1": [11', "JSON"),
        ("eccv_image_to_caption", "[1]", "list"),
        ("eccv_image_to_caption", '{"3": [11]}', "'3'"),
        ("eccv_caption_to_image", '{"99": [1]}', "'99'"),
        ("eccv_caption_to_image", '{"11": 1}', "'11'"),
        ("eccv_caption_to_image", '{"11": [true]}', "'11'"),
        ("eccv_caption_to_image", '{"11": [1, 1]}', "'11'"),
        ("original_caption_to_image", '{"11": [1]}', "1 captions"),
    ],
)
def test_damaged_lists(coco, name, text, named):
    (coco / f"{name}.json").write_text(text)
    assert name in refuses(ValueError, named, load_eccv_caption, coco)


def test_missing_files_and_unknown_judgments(coco):
    refuses(FileNotFoundError, ".*cxc_image_to_caption", load_eccv_caption, coco, "cxc")
    refuses(ValueError, "judgments", load_eccv_caption, coco, "pm")
    (coco / "coco_test_ids.npy").unlink()
    refuses(FileNotFoundError, r".*coco_test_ids\.npy", load_eccv_caption, coco)


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k_experts(data_root, flickr8k):
    expert = load_flickr_expert(data_root / "flickr8k" / "ExpertAnnotations.txt")
    assert (len(expert), len(expert.image_ids), len(expert.caption_ids)) == (5822, 1000, 977)
    assert set(expert.image_ids) == set(flickr8k.image_ids)
    # Sorted within a row, as the docstring warns: a column is not a judge.
    assert (np.diff(expert.ratings, axis=1) >= 0).all()
    assert (expert.scores == 4).sum() < (expert.scores >= 11 / 3).sum()
    own = RelevanceJudgments.gold(flickr8k).select(expert.image_ids, expert.caption_ids)
    judged = expert.scores_of(own.images, own.captions)
    assert np.nanmean(judged) > 3.9  # captions of the image itself
    assert (~np.isnan(judged)).sum() == 158


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k_crowd(data_root, flickr8k):
    crowd = load_flickr_crowd(data_root / "flickr8k" / "CrowdFlowerAnnotations.txt")
    assert (len(crowd), len(crowd.image_ids), len(crowd.caption_ids)) == (47315, 998, 1000)
    assert (crowd.scores == np.nanmean(crowd.ratings, axis=1)).mean() > 0.99
    captions = [ids[2] for ids in flickr8k.caption_ids]
    pool = crowd.select(flickr8k.image_ids, captions)
    assert sum(map(len, pool.relevant_captions(0.5))) == 2731


@pytest.mark.realdata
def test_eccv_caption_as_distributed(data_root):
    folder = data_root / "coco" / "eccv_caption"
    eccv, own = load_eccv_caption(folder), load_eccv_caption(folder, "original")
    pool = own.search.image_ids, own.search.caption_ids
    assert (len(pool[0]), len(pool[1])) == (5000, 25000)
    assert sum(map(len, own.annotation.relevant_captions(1))) == 25000
    assert (np.array([len(c) for c in eccv.annotation.relevant_captions(1)]) > 0).sum() == 1261
    assert (np.array([len(i) for i in eccv.search.relevant_images(1)]) > 0).sum() == 1332
    assert len(eccv.annotation.select(*pool)) == len(eccv.annotation) - 2
    assert len(eccv.search.select(*pool)) == len(eccv.search)
    cxc = load_eccv_caption(folder, "cxc")
    assert (cxc.annotation.images == cxc.search.images).all()
    assert (cxc.annotation.captions == cxc.search.captions).all()
    assert (len(cxc.search), len(cxc.search.union(own.search))) == (35585, 35585 + 29)
    fifth = {int(i) for image in own.annotation.relevant_captions(1)[:1000] for i in image}
    assert fifth == set(range(5000))  # the folds of COCO 1K are consecutive
