import json
import re
from collections import Counter

import numpy as np
import pytest

from kernelcore.datasets import (
    Document,
    DocumentCollection,
    load_documents,
)


def garden(**changes):
    fields = {
        "doc_id": "garden",
        "sentences": ("A dog digs.", "It was May.", "Earth flies."),
        "images": ("dog.jpg", "tree.jpg"),
        "links": {(0, 0), (2, 0)},
    }
    return Document(**{**fields, **changes})


def test_unknown_links_are_not_the_same_as_none():
    unknown = garden(links=None)
    assert unknown != garden(links=())
    (hidden,) = DocumentCollection("x", {"test": [garden()]}).without_links().split("test")
    assert hidden == unknown


def test_links_become_a_set_of_plain_integers():
    document = garden(links=np.array([[2, 0], [0, 0], [2, 0]]))
    assert document.links == frozenset({(0, 0), (2, 0)})
    assert all(type(part) is int for link in document.links for part in link)
    assert hash(document) == hash(garden())


def test_repr_counts():
    assert repr(garden()) == "Document('garden', 3 sentences, 2 images, 2 links)"
    assert (
        repr(garden(links=None)) == "Document('garden', 3 sentences, 2 images, links unknown)"
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"doc_id": 7}, TypeError, "doc_id must be a string, got 7"),
        ({"sentences": "A dog."}, TypeError, "sentences must be a sequence of strings"),
        ({"sentences": 3}, TypeError, "sentences must be a sequence of strings, got type int"),
        ({"images": ("a.jpg", 4)}, TypeError, "images must be a sequence of strings, got 4"),
        ({"images": ()}, ValueError, "images must hold at least one, got none"),
        ({"sentences": []}, ValueError, "sentences must hold at least one, got none"),
        ({"links": 3}, TypeError, "links must be a collection of pairs, got type int"),
        ({"links": [3]}, TypeError, r"links must be \(sentence, image\) positions, got 3"),
        ({"links": [(0, 0, 0)]}, TypeError, r"links must be \(sentence, image\) positions"),
        ({"links": [(0, 1.0)]}, TypeError, "image of a link must be an integer, got 1.0"),
        ({"links": [(True, 0)]}, TypeError, "sentence of a link must be an integer, got True"),
        ({"links": [(3, 0)]}, ValueError, "sentence of a link must be .* <= 2, got 3"),
        ({"links": [(0, 2)]}, ValueError, "image of a link must be .* <= 1, got 2"),
        ({"links": [(-1, 0)]}, ValueError, "sentence of a link must be .* >= 0, got -1"),
    ],
)
def test_bad_documents_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        garden(**changes)


def test_a_collection_has_three_splits():
    other = garden(doc_id="other", images=("tree.jpg", "bird.jpg"))
    collection = DocumentCollection("year", {"test": [garden()], "train": (other,)})
    assert list(collection.documents) == ["train", "val", "test"]
    assert collection.split("val") == ()
    assert collection.split("test") == (garden(),)
    assert len(collection) == 2
    assert collection.image_ids == ("tree.jpg", "bird.jpg", "dog.jpg")
    assert repr(collection) == "DocumentCollection('year', 3 images, train 1, val 0, test 1)"


def test_training_sees_no_links():
    collection = DocumentCollection("year", {"train": [garden()], "test": [garden()]})
    hidden = collection.without_links()
    assert hidden.name == "year"
    assert [d.links for split in hidden.documents.values() for d in split] == [None, None]
    assert collection.split("test")[0].links is not None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, {}), TypeError, "name must be a string, got 3"),
        (("x", {"dev": []}), ValueError, "split must be one of 'train', 'val', 'test'"),
        (("x", {"test": ["d"]}), TypeError, "split 'test' must hold documents, got 'd'"),
    ],
)
def test_bad_collections_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        DocumentCollection(*arguments)


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match=r"split must be one of .*, got 'dev'"):
        DocumentCollection("x", {}).split("dev")


def write(folder, content):
    path = folder / "year.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_links_are_told_by_images_sentences_or_both(tmp_path):
    entry = [
        [["a.jpg", 2], ["b.jpg", -1], ["c.jpg", None], ["d.jpg", 3]],
        [["One.", 1], ["Two.", 1], ["Three.", -1], ["Four.", 3]],
        "na",
    ]
    collection = load_documents(write(tmp_path, {"train": [], "val": [entry], "test": []}))
    assert collection.name == "year"
    (document,) = collection.split("val")
    assert document.doc_id == "na"
    assert document.images == ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    assert document.sentences == ("One.", "Two.", "Three.", "Four.")
    assert document.links == {(2, 0), (0, 1), (1, 1), (3, 3)}


def test_documents_without_links_load(tmp_path):
    entry = [[["a.jpg", None]], [["One.", None], ["Two.", None]], "Mauritius"]
    (document,) = load_documents(write(tmp_path, {"test": [entry]})).split("test")
    assert document.links is None
    known = [[["a.jpg", -1]], [["One.", None], ["Two.", None]], "Mauritius"]
    (document,) = load_documents(write(tmp_path, {"test": [known]})).split("test")
    assert document.links == frozenset()


@pytest.mark.parametrize(
    ("meta", "doc_id"),
    [([], "test-1"), ([None], "test-1"), ([""], ""), ([17], "17"), ([{"a": 1}], '{"a": 1}')],
)
def test_ids_of_documents(tmp_path, meta, doc_id):
    entry = [[["a.jpg", 0]], [["One.", -1]], *meta]
    path = write(tmp_path, {"test": [[[["a.jpg", 0]], [["One.", -1]], "first"], entry]})
    assert load_documents(path).split("test")[1].doc_id == doc_id


GOOD = [[["a.jpg", 0]], [["One.", -1]], "na"]


def entry(images=GOOD[0], sentences=GOOD[1]):
    return {"test": [GOOD, [images, sentences, "na"]]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be JSON and is damaged or truncated"),
        (json.dumps({"test": [GOOD]})[:-4], "must be JSON and is damaged or truncated"),
        ("[" * 100_000, "must be JSON and is damaged or truncated"),
        ([GOOD], r"must hold a JSON object of 'train', 'val', 'test', got \[\["),
        ({}, r"must hold a JSON object of 'train', 'val', 'test', got \{\}"),
        ({"dev": []}, "must hold a JSON object of .*, got .'dev'"),
        ({"test": {}}, r"test must be a list of documents, got \{\}"),
        ({"test": [GOOD, "x"]}, r"test\[1\] must be \[images, sentences, id\], got 'x'"),
        ({"test": [GOOD[:1]]}, r"test\[0\] must be \[images, sentences, id\]"),
        ({"test": [[*GOOD, 1]]}, r"test\[0\] must be \[images, sentences, id\]"),
        (entry(images={}), r"test\[1\] images must be a list, got \{\}"),
        (entry(images=["a.jpg"]), r"test\[1\] images\[0\] must be a string and an integer"),
        (
            entry(sentences=[["One.", -1], ["Two."]]),
            r"sentences\[1\] must be a string",
        ),
        (entry(images=[[4, 0]]), r"images\[0\] must be a string and an integer or null"),
        (
            entry(images=[["a.jpg", 0.0]]),
            r"images\[0\] must be a string and an integer or null",
        ),
        (
            entry(images=[["a.jpg", True]]),
            r"images\[0\] must be a string and an integer or null",
        ),
        (
            entry(images=[["a.jpg", "0"]]),
            r"images\[0\] must be a string and an integer or null",
        ),
        (entry(images=[["a.jpg", 1]]), r"test\[1\] must be a document: sentence of a link"),
        (entry(sentences=[["One.", -2]]), r"test\[1\] must be a document: image of a link"),
        (entry(images=[]), r"test\[1\] must be a document: images must hold at least one"),
    ],
)
def test_damaged_files_are_named_with_the_place(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{message}"):
        load_documents(path)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*missing"):
        load_documents(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b'{"test": "\xff"}')
    with pytest.raises(ValueError, match="must be UTF-8 text, got byte 0xff in line 1"):
        load_documents(tmp_path / "binary.json")


@pytest.mark.realdata
def test_stories_are_documents_without_links(data_root, tmp_path):
    stories = json.loads((data_root / "vist" / "arel_challenge.json").read_text())
    entries = [
        [
            [[photo, None] for photo in story["photo_sequence"]],
            [[text, None] for text in story["story_text_normalized"].split(" . ") if text],
            str(story["album_id"]),
        ]
        for story in stories["output_stories"]
    ]
    documents = load_documents(write(tmp_path, {"test": entries})).split("test")
    assert len(documents) > 1000
    assert Counter(len(d.images) for d in documents).most_common(1)[0][0] == 5
    assert all(document.links is None for document in documents)
