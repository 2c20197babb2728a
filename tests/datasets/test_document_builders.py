"""Documents put together from captioned pictures."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses, refuses_each

from kernelcore.datasets import CaptionedImages, build_documents


def pictures(n_train=40, n_dev=20, n_test=20, **changes):
    """Pictures with three captions that say which picture they describe."""
    ids = [f"{i}.jpg" for i in range(n_train + n_dev + n_test)]
    order = np.random.default_rng(5).permutation(len(ids))
    parts = np.split(order, [n_train, n_train + n_dev])
    fields = {
        "name": "album",
        "image_ids": tuple(ids),
        "paths": (None,) * len(ids),
        "captions": tuple(tuple(f"{i} as {c}" for c in range(3)) for i in ids),
        "caption_ids": tuple(tuple(f"{i}#{c}" for c in range(3)) for i in ids),
        "caption_numbers": ((0, 1, 2),) * len(ids),
        "splits": dict(zip(("train", "dev", "test"), parts, strict=True)),
    }
    return CaptionedImages(**{**fields, **changes})


def described(sentence):
    return sentence.partition(" ")[0]


@given(st.data())
@settings(max_examples=60)
def test_documents_are_what_was_asked_for(data):
    options = {
        "n_pairs": (n_pairs := data.draw(st.integers(1, 4))),
        "n_distractor_images": (n_more_images := data.draw(st.integers(0, 4))),
        "n_distractor_captions": (n_more_captions := data.draw(st.integers(0, 6))),
        "documents_per_image": (n_deals := data.draw(st.integers(1, 4))),
        "neighbourhood": data.draw(st.floats(0.01, 1)),
        "rng": data.draw(st.integers(0, 9)),
    }
    if data.draw(st.booleans(), "topical"):
        options["features"] = np.random.default_rng(1).normal(size=(61, 3))
    album, group = pictures(30, 14, 17), n_pairs + n_more_images
    documents = build_documents(album, **options)
    assert documents.name == "album documents"
    for split, source in (("train", "train"), ("val", "dev"), ("test", "test")):
        members = {album.image_ids[i] for i in album.split(source)}
        chosen = documents.split(split)
        assert len(chosen) == n_deals * (len(members) // group)
        assert [d.doc_id for d in chosen] == [f"{split}-{i}" for i in range(len(chosen))]
        for document in chosen:
            images, owners = document.images, [described(s) for s in document.sentences]
            assert len(images) == len(set(images)) == group
            assert len(owners) == len(set(owners)) == n_pairs + n_more_captions
            assert members.issuperset(images)
            assert members.issuperset(owners)
            # True links are all the pairs of an image with its own caption, and no others.
            linked = [(i, images.index(o)) for i, o in enumerate(owners) if o in images]
            assert document.links == set(linked)
            assert len(linked) == n_pairs


def shown(documents, split="train"):
    return Counter(image for d in documents.split(split) for image in d.images)


def test_the_default_has_ten_of_each_and_five_links():
    documents = build_documents(pictures(), rng=0)
    assert [len(own) for own in documents.documents.values()] == [20, 10, 10]
    for document in documents.split("train"):
        assert len(document.sentences) == len(document.images) == 10
        assert len(document.links) == 5


def test_every_picture_is_dealt_as_often_as_asked():
    for n_train, fewest in ((40, 3), (47, 1)):  # what a deal leaves over is dealt in another
        counts = shown(build_documents(pictures(n_train), documents_per_image=3, rng=0))
        assert (len(counts), max(counts.values())) == (n_train, 3)
        assert min(counts.values()) >= fewest


def test_captions_of_a_picture_come_in_turn():
    documents = build_documents(pictures(), documents_per_image=6, rng=0)
    uses = Counter(s for d in documents.split("train") for s in d.sentences)
    for i in pictures().split("train"):
        counts = [uses[f"{i}.jpg as {c}"] for c in range(3)]
        assert max(counts) - min(counts) <= 1
    few = build_documents(pictures(), documents_per_image=1, rng=0)
    sentences = [s for d in few.split("train") for s in d.sentences]
    once = {owner for owner, n in Counter(map(described, sentences)).items() if n == 1}
    # The first caption to be used is not the same of every picture.
    assert len({s.partition(" ")[2] for s in sentences if described(s) in once}) == 3


def test_both_sides_are_shuffled():
    documents = build_documents(pictures(400, 0, 0, splits={"train": range(400)}), rng=0)
    linked = np.zeros((10, 10))
    for document in documents.split("train"):
        linked[tuple(np.transpose(list(document.links)))] += 1 / len(documents)
    # Each of the 100 places is linked with probability 5 %: 200 documents, 4 deviations.
    assert abs(linked - 0.05).max() < 4 * np.sqrt(0.05 * 0.95 / 200)
    assert abs(linked.sum(axis=0) - 0.5).max() < 4 * np.sqrt(0.25 / 200)
    assert abs(linked.sum(axis=1) - 0.5).max() < 4 * np.sqrt(0.25 / 200)


def test_the_same_number_gives_the_same_documents():
    album = pictures()
    first = build_documents(album, rng=3)
    assert first == build_documents(album, rng=3)
    assert first == build_documents(album, rng=np.random.default_rng(3))
    assert first != build_documents(album, rng=4)


def test_distractor_captions_come_from_the_whole_split():
    documents = build_documents(pictures(), documents_per_image=200, rng=0)
    owners = [(described(s), d.images) for d in documents.split("train") for s in d.sentences]
    outside = Counter(owner for owner, images in owners if owner not in images)
    assert len(outside) == 40
    # 800 documents with 5 of 40 pictures: 100 expected of each, 4 deviations.
    deviation = np.sqrt(800 * 5 / 40 * (1 - 5 / 40))
    assert max(abs(count - 100) for count in outside.values()) < 4 * deviation


def test_topical_documents_hold_similar_pictures():
    album = pictures(100, 50, 50)
    # Neighbours on a circle are neighbours by number.
    angle = np.sort(np.random.default_rng(2).random(200)) * 2 * np.pi
    features = ((1 + np.arange(200)) * np.array([np.cos(angle), np.sin(angle)])).T
    options = {"n_distractor_images": 0, "n_distractor_captions": 0, "rng": 0}
    documents = build_documents(album, features=features, neighbourhood=0.08, **options)
    for split, source in (("train", "train"), ("test", "test")):
        members = np.sort(album.split(source))
        near = round(0.08 * len(members))
        for document in documents.split(split):
            numbers = np.array([int(image.partition(".")[0]) for image in document.images])
            positions = np.searchsorted(members, numbers)
            gaps = (positions[:, np.newaxis] - positions) % len(members)
            distances = np.minimum(gaps, len(members) - gaps)
            # Some picture of the document has all the others among the nearest to it. The
            # members lie unevenly on the circle, so that more may be on one side of it.
            assert distances.max(axis=1).min() <= near
    assert len(shown(documents)) == 100  # each picture is the one in turn at some time
    assert len(documents.split("train")) == 100
    options |= {"features": features.astype(np.float32), "neighbourhood": 0.08}
    assert build_documents(album, **options) == documents


def test_a_share_of_one_and_zero_features_draw_from_all():
    album = pictures()
    options = {"features": np.zeros((80, 2)), "neighbourhood": 1, "rng": 0}
    for n_deals in (5, 9):
        documents = build_documents(album, documents_per_image=n_deals, **options)
        assert len(shown(documents, "test")) == 20


def test_documents_of_one_pair():
    options = {"n_pairs": 1, "n_distractor_images": 0, "n_distractor_captions": 0}
    album = pictures(1, 1, 2)
    for features in (None, np.ones((4, 1))):
        chosen = {"features": features, "documents_per_image": 1, "rng": 0}
        documents = build_documents(album, **chosen, **options)
        assert [len(documents.split(split)) for split in ("train", "val", "test")] == [1, 1, 2]
        assert all(d.links == {(0, 0)} for d in documents.split("test"))


def test_pictures_without_captions_are_left_out():
    album = pictures()
    names = "captions", "caption_ids", "caption_numbers"
    bare = replace(album, **{name: ((), *getattr(album, name)[1:]) for name in names})
    assert "0.jpg" in build_documents(album, rng=0).image_ids
    assert "0.jpg" not in build_documents(bare, documents_per_image=50, rng=0).image_ids


def test_splits_are_those_that_there_are():
    album = pictures()
    split = album.splits
    renamed = replace(album, splits={"val": split["dev"], "restval": split["train"]})
    documents = build_documents(renamed, rng=0)
    assert [len(members) for members in documents.documents.values()] == [0, 10, 0]


@pytest.mark.parametrize(
    ("named", "splits"),
    [
        ("album .*none", {}),
        ("album .*'all'", {"all": range(50)}),
        ("'dev' and 'val'", {"dev": [1], "val": [2]}),
        (r"'29\.jpg'", {"train": range(30), "test": range(29, 60)}),
        ("'test' .* 15 .* 14", {"test": range(14)}),
    ],
)
def test_bad_splits_are_refused(named, splits):
    refuses(ValueError, named, build_documents, pictures(splits=splits), rng=0)


def test_bad_arguments_are_refused():
    odd = {
        "n_pairs": [0], "n_distractor_images": [-1], "n_distractor_captions": [1.5],
        "documents_per_image": [0], "neighbourhood": [0, 1.1],
        "features": [
            np.ones((79, 2)), np.ones((80, 0)), np.full((80, 2), np.nan), [["a"]] * 80,
        ],
        "captioned": [[]],
    }  # fmt: skip
    refuses_each(build_documents, odd, captioned=pictures(), rng=0)
    refuses(ValueError, "'val' .* 21", build_documents, pictures(), n_distractor_captions=11)
