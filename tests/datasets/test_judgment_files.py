import json
import re

import numpy as np
import pytest

from kernelcore.datasets import (
    RelevanceJudgments,
    load_eccv_caption,
    load_flickr,
    load_flickr_crowd,
    load_flickr_expert,
)


def written(tmp_path, text):
    path = tmp_path / "judgments.txt"
    path.write_bytes(text.encode())
    return path


def test_expert_scores(tmp_path):
    path = written(tmp_path, "\ufeffb\ta#2\t1\t2\t2\r\n\na\tb#2\t4\t4\t3\n")
    expert = load_flickr_expert(path)
    assert (expert.image_ids, expert.caption_ids) == (("b", "a"), ("a#2", "b#2"))
    assert expert.scores.tolist() == [5 / 3, 11 / 3]
    assert expert.ratings.tolist() == [[1, 2, 2], [4, 4, 3]]


def test_crowd_votes(tmp_path):
    crowd = load_flickr_crowd(
        written(tmp_path, "a\ta#2\t0.333333333333\t1\t2\na\tb#2\t1\t4\t0")
    )
    assert crowd.scores.tolist() == [1 / 3, 1]
    assert np.array_equal(crowd.ratings, [[1, 0, 0, np.nan], [1, 1, 1, 1]], equal_nan=True)


FINE = {load_flickr_expert: "a\ta#2\t1\t2\t2\n", load_flickr_crowd: "a\ta#2\t0.5\t1\t1\n"}


@pytest.mark.parametrize(
    ("load", "row", "rule"),
    [
        (load_flickr_expert, "b\ta#2\t1\t2", "have 5 columns"),
        (load_flickr_expert, "b\ta#2\t1\t2\t3\t4", "have 5 columns"),
        (load_flickr_expert, "b a#2 1 2 3", "have 5 columns"),
        (load_flickr_expert, "\ta#2\t1\t2\t3", "have 5 columns, the first two of them ids"),
        (load_flickr_expert, "b\ta#2\t1\t2\t5", "have three scores from 1 to 4"),
        (load_flickr_expert, "b\ta#2\t1\t2\t0", "have three scores from 1 to 4"),
        (load_flickr_expert, "b\ta#2\t1\t2\t2.5", "have three scores from 1 to 4"),
        (load_flickr_expert, "a\ta#2\t1\t2\t3", "judge a pair once (see line 1)"),
        (load_flickr_crowd, "b\ta#2\t0.5\t1", "have 5 columns"),
        (load_flickr_crowd, "b\ta#2\t0.5\t1\t2", "have the share yes / (yes + no)"),
        (load_flickr_crowd, "b\ta#2\tnan\t1\t1", "have the share yes / (yes + no)"),
        (load_flickr_crowd, "b\ta#2\thalf\t1\t1", "have the share yes / (yes + no)"),
        (load_flickr_crowd, "b\ta#2\t0.33\t1\t2", "have the share yes / (yes + no)"),
        (load_flickr_crowd, "b\ta#2\t0\t0\t0", "have at least one vote"),
        (load_flickr_crowd, "b\ta#2\t0.5\t-1\t-1", "have whole numbers of yes and no"),
        (load_flickr_crowd, "b\ta#2\t0.5\t\u0661\t\u0661", "have whole numbers of yes and no"),
        (load_flickr_crowd, "a\ta#2\t0.5\t1\t1", "judge a pair once (see line 1)"),
    ],
)
def test_damaged_rows_are_named(tmp_path, load, row, rule):
    path = written(tmp_path, FINE[load] + "\n" + row)
    load(written(tmp_path, FINE[load]))
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 3: a row must {rule}")):
        load(written(tmp_path, FINE[load] + "\n" + row))


@pytest.mark.parametrize("load", list(FINE))
def test_files_without_judgments(tmp_path, load):
    with pytest.raises(ValueError, match="must hold judgments, got an empty file"):
        load(written(tmp_path, "\n"))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.txt")
    with pytest.raises(FileNotFoundError, match="no such file: "):
        load(tmp_path)
    (tmp_path / "judgments.txt").write_bytes(FINE[load].encode() + b"\xff")
    with pytest.raises(ValueError, match="UTF-8 text, got byte 0xff in line 2"):
        load(tmp_path / "judgments.txt")


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
    assert [i.tolist() for i in eccv.search.relevant_images(1)] == [[], [0, 1], []]
    assert eccv.annotation.caption_ids == ("12", "11", "21", "99")
    assert [c.tolist() for c in eccv.annotation.relevant_captions(1)] == [[], [0, 2, 3]]
    pool = eccv.annotation.select(eccv.search.image_ids, eccv.search.caption_ids)
    assert len(pool) == 2
    own = load_eccv_caption(coco, "original")
    assert [c.tolist() for c in own.annotation.relevant_captions(1)] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("eccv_image_to_caption", '{"1": [11', "must be JSON and is damaged or truncated"),
        ("eccv_image_to_caption", "[1]", "must hold a JSON object, got a list"),
        ("eccv_image_to_caption", '{"3": [11]}', "must name queries of the pool, got '3'"),
        ("eccv_caption_to_image", '{"99": [1]}', "must name queries of the pool, got '99'"),
        ("eccv_caption_to_image", '{"11": 1}', "must list whole numbers for query '11', got 1"),
        ("eccv_caption_to_image", '{"11": [true]}', "must list whole numbers for query '11'"),
        ("eccv_caption_to_image", '{"11": [1, 1]}', "name a candidate once, .* for '11'"),
        ("original_caption_to_image", '{"11": [1]}', "must hold the 1 captions of original"),
    ],
)
def test_damaged_lists(coco, name, text, message):
    (coco / f"{name}.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_eccv_caption(coco)


def test_damaged_or_missing_ids(coco):
    path = coco / "coco_test_ids.npy"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"coco_test_ids\.npy must be an array of NumPy"):
        load_eccv_caption(coco)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no such file: .*coco_test_ids\.npy"):
        load_eccv_caption(coco)


def test_missing_lists_and_unknown_judgments(coco):
    with pytest.raises(FileNotFoundError):
        load_eccv_caption(coco, "cxc")
    with pytest.raises(ValueError, match="judgments must be one of 'eccv', 'cxc', 'original'"):
        load_eccv_caption(coco, "pm")


@pytest.fixture(scope="module")
def flickr8k(data_root):
    flickr = load_flickr(data_root / "flickr8k", images=data_root / "flickr8k" / "images")
    test = flickr.subset(flickr.split("test"))
    return flickr.name, test


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k_experts(data_root, flickr8k):
    expert = load_flickr_expert(data_root / "flickr8k" / "ExpertAnnotations.txt")
    assert (len(expert), len(expert.image_ids), len(expert.caption_ids)) == (5822, 1000, 977)
    assert set(expert.image_ids) == set(flickr8k[1].image_ids)
    # Sorted within a row, as the docstring warns: a column is not a judge.
    assert (np.diff(expert.ratings, axis=1) >= 0).all()
    assert (expert.scores == 4).sum() < (expert.scores >= 11 / 3).sum()
    own = RelevanceJudgments.gold(flickr8k[1]).select(expert.image_ids, expert.caption_ids)
    judged = expert.scores_of(own.images, own.captions)
    assert np.nanmean(judged) > 3.9  # captions of the image itself
    assert (~np.isnan(judged)).sum() == 158


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k_crowd_with_gold(data_root, flickr8k):
    crowd = load_flickr_crowd(data_root / "flickr8k" / "CrowdFlowerAnnotations.txt")
    assert (len(crowd), len(crowd.image_ids), len(crowd.caption_ids)) == (47315, 998, 1000)
    assert (crowd.scores == np.nanmean(crowd.ratings, axis=1)).mean() > 0.99
    test = flickr8k[1]
    captions = [ids[2] for ids in test.caption_ids]
    gold = RelevanceJudgments.gold(test).select(test.image_ids, captions)
    assert len(gold) == 1000
    pool = crowd.select(test.image_ids, captions)
    alone = pool.relevant_captions(0.5)
    united = pool.union(gold).relevant_captions(0.5)
    assert sum(map(len, alone)) == 2731
    assert sum(map(len, united)) == 2731 + 1000 - 700  # 700 gold pairs have their yes
    assert min(map(len, united)) == 1


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


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2,}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,)}",
    ],
)
def test_ids_with_a_damaged_header(coco, header):
    path = coco / "coco_test_ids.npy"
    text = header.encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + text + bytes(16))
    with pytest.raises(ValueError, match=r"coco_test_ids\.npy must be an array of NumPy"):
        load_eccv_caption(coco)


def test_ids_in_an_archive(coco):
    path = coco / "coco_test_ids.npy"
    with path.open("wb") as file:
        np.savez(file, x=np.zeros(3))
    for content in (path.read_bytes(), path.read_bytes()[:60]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"coco_test_ids\.npy must be an array of NumPy"):
            load_eccv_caption(coco)


@pytest.mark.parametrize("votes", ["9" * 15, "9" * 4301, "1000"])
def test_votes_are_not_to_fill_the_memory(tmp_path, votes):
    (tmp_path / "crowd.txt").write_text(f"a.jpg\ta.jpg#2\t1\t{votes}\t0\n")
    with pytest.raises(ValueError, match=r"crowd\.txt, line 1: .* three digits at most"):
        load_flickr_crowd(tmp_path / "crowd.txt")
