from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcore.datasets import CaptionedImages, build_documents, load_flickr


def pictures(n_train=40, n_dev=20, n_test=20, n_captions=3, **changes):
    """Pictures whose captions say which picture they describe."""
    n = n_train + n_dev + n_test
    bounds = np.cumsum([0, n_train, n_dev, n_test])
    order = np.random.default_rng(5).permutation(n)
    fields = {
        "name": "album",
        "image_ids": tuple(f"{i}.jpg" for i in range(n)),
        "paths": (None,) * n,
        "captions": tuple(
            tuple(f"{i}.jpg as {c}" for c in range(n_captions)) for i in range(n)
        ),
        "caption_ids": tuple(tuple(f"{i}#{c}" for c in range(n_captions)) for i in range(n)),
        "caption_numbers": (tuple(range(n_captions)),) * n,
        "splits": {
            split: order[start:stop]
            for split, start, stop in zip(
                ("train", "dev", "test"), bounds, bounds[1:], strict=False
            )
        },
    }
    return CaptionedImages(**{**fields, **changes})


def described(sentence):
    return sentence.partition(" ")[0]


@given(st.data())
@settings(max_examples=60)
def test_documents_are_what_was_asked_for(data):
    n_pairs = data.draw(st.integers(1, 4), "n_pairs")
    n_more_images = data.draw(st.integers(0, 4), "n_distractor_images")
    n_more_captions = data.draw(st.integers(0, 6), "n_distractor_captions")
    n_deals = data.draw(st.integers(1, 4), "documents_per_image")
    topical = data.draw(st.booleans(), "topical")
    album = pictures(30, 14, 17)
    group = n_pairs + n_more_images
    documents = build_documents(
        album,
        n_pairs=n_pairs,
        n_distractor_images=n_more_images,
        n_distractor_captions=n_more_captions,
        documents_per_image=n_deals,
        features=np.random.default_rng(1).normal(size=(61, 3)) if topical else None,
        neighbourhood=data.draw(st.floats(0.01, 1), "neighbourhood"),
        rng=data.draw(st.integers(0, 9), "rng"),
    )
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
            own = {
                (i, images.index(owner)) for i, owner in enumerate(owners) if owner in images
            }
            assert document.links == own
            assert len(own) == n_pairs


def test_the_default_has_ten_of_each_and_five_links():
    documents = build_documents(pictures(), rng=0)
    assert repr(documents) == (
        "DocumentCollection('album documents', 80 images, train 20, val 10, test 10)"
    )
    for document in documents.split("train"):
        assert len(document.sentences) == len(document.images) == 10
        assert len(document.links) == 5


def test_every_picture_is_dealt_as_often_as_asked():
    documents = build_documents(pictures(), documents_per_image=3, rng=0)
    counts = Counter(image for d in documents.split("train") for image in d.images)
    assert set(counts.values()) == {3}
    assert len(counts) == 40
    uneven = build_documents(pictures(n_train=47), documents_per_image=3, rng=0)
    counts = Counter(image for d in uneven.split("train") for image in d.images)
    assert max(counts.values()) == 3
    assert len(counts) == 47  # what a deal leaves over is dealt in another


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
    outside = Counter(
        described(sentence)
        for d in documents.split("train")
        for sentence in d.sentences
        if described(sentence) not in d.images
    )
    assert len(outside) == 40
    # 800 documents with 5 of 40 pictures: 100 expected of each, 4 deviations.
    deviation = np.sqrt(800 * 5 / 40 * (1 - 5 / 40))
    assert max(abs(count - 100) for count in outside.values()) < 4 * deviation


def test_topical_documents_hold_similar_pictures():
    album = pictures(100, 50, 50)
    # Neighbours on a circle are neighbours by number.
    angle = np.sort(np.random.default_rng(2).random(200)) * 2 * np.pi
    features = (1 + np.arange(200)[:, np.newaxis]) * np.column_stack(
        [np.cos(angle), np.sin(angle)]
    )
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
    seeds = Counter(image for d in documents.split("train") for image in d.images)
    assert len(seeds) == 100  # each picture is the one in turn at some time
    assert len(documents.split("train")) == 100
    same = build_documents(
        album, features=features.astype(np.float32), neighbourhood=0.08, **options
    )
    assert same == documents


def test_a_share_of_one_and_zero_features_draw_from_all():
    album = pictures()
    for options in ({"neighbourhood": 1}, {"neighbourhood": 1, "documents_per_image": 9}):
        documents = build_documents(album, features=np.zeros((80, 2)), rng=0, **options)
        counts = Counter(image for d in documents.split("test") for image in d.images)
        assert len(counts) == 20


def test_documents_of_one_pair():
    options = {"n_pairs": 1, "n_distractor_images": 0, "n_distractor_captions": 0}
    album = pictures(1, 1, 2)
    for features in (None, np.ones((4, 1))):
        documents = build_documents(
            album, features=features, documents_per_image=1, rng=0, **options
        )
        assert [len(documents.split(split)) for split in ("train", "val", "test")] == [1, 1, 2]
        assert all(d.links == {(0, 0)} for d in documents.split("test"))


def test_pictures_without_captions_are_left_out():
    album = pictures()
    bare = replace(
        album,
        captions=((), *album.captions[1:]),
        caption_ids=((), *album.caption_ids[1:]),
        caption_numbers=((), *album.caption_numbers[1:]),
    )
    assert "0.jpg" in build_documents(album, rng=0).image_ids
    assert "0.jpg" not in build_documents(bare, documents_per_image=50, rng=0).image_ids


def test_splits_are_those_that_there_are():
    album = pictures()
    split = album.splits
    renamed = replace(album, splits={"val": split["dev"], "restval": split["train"]})
    documents = build_documents(renamed, rng=0)
    assert [len(members) for members in documents.documents.values()] == [0, 10, 0]


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({}, r"one of the splits of album \(none\)"),
        ({"all": range(50)}, r"one of the splits of album \('all'\)"),
        ({"dev": [1], "val": [2]}, "splits must have one of 'dev' and 'val', got both"),
        (
            {"train": range(30), "test": range(29, 60)},
            "share no image, got '29.jpg'",
        ),
        ({"test": range(14)}, r"split 'test' must have at least 15 pictures .* got 14"),
    ],
)
def test_bad_splits_are_refused(splits, message):
    with pytest.raises(ValueError, match=message):
        build_documents(pictures(splits=splits), rng=0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_pairs": 0}, ValueError, "n_pairs must be an integer >= 1, got 0"),
        (
            {"n_distractor_images": -1},
            ValueError,
            "n_distractor_images must be an integer >= 0",
        ),
        ({"n_distractor_captions": 1.5}, TypeError, "n_distractor_captions must be an integer"),
        ({"documents_per_image": 0}, ValueError, "documents_per_image must be an integer >= 1"),
        ({"neighbourhood": 0}, ValueError, "neighbourhood must be a number > 0"),
        ({"neighbourhood": 1.1}, ValueError, "neighbourhood must be a number <= 1"),
        ({"features": np.ones((79, 2))}, ValueError, r"one row per picture \(80\)"),
        ({"features": np.ones((80, 0))}, ValueError, "a column at least"),
        ({"features": np.full((80, 2), np.nan)}, ValueError, "features must be finite"),
        ({"features": [["a"]] * 80}, TypeError, "features must hold real numbers"),
        ({"n_distractor_captions": 11}, ValueError, "split 'val' must have at least 21"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        build_documents(pictures(), rng=0, **options)


def test_other_collections_are_refused():
    with pytest.raises(TypeError, match="captioned must be CaptionedImages, got list"):
        build_documents([])


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
def test_flickr8k_documents(data_root):
    flickr = load_flickr(data_root / "flickr8k")
    documents = build_documents(flickr, rng=0)
    assert repr(documents) == (
        "DocumentCollection('Flickr8k documents', 8000 images, train 3000, val 500, test 500)"
    )
    images = {
        split: {image for document in members for image in document.images}
        for split, members in documents.documents.items()
    }
    assert [len(members) for members in images.values()] == [6000, 1000, 1000]
    assert not images["train"] & images["val"] | images["test"] & images["train"]
    own = dict(zip(flickr.image_ids, flickr.captions, strict=True))
    for document in documents.split("test"):
        assert len(document.links) == 5
        for i, j in document.links:
            assert document.sentences[i] in own[document.images[j]]
