"""Documents of sentences and images: the types, and the files of three corpora."""

import json
from collections import Counter
from functools import partial

import numpy as np
import pytest
from refusals import refuses

from kernelcore import datasets

GARDEN = {
    "doc_id": "garden", "sentences": ("A dog digs.", "It was May.", "Earth flies."),
    "images": ("dog.jpg", "tree.jpg"), "links": {(0, 0), (2, 0)},
}  # fmt: skip


def garden(**changes):
    return datasets.Document(**{**GARDEN, **changes})


def test_links_become_a_set_of_plain_integers():
    document = garden(links=np.array([[2, 0], [0, 0], [2, 0]]))
    assert document.links == frozenset({(0, 0), (2, 0)})
    assert all(type(part) is int for link in document.links for part in link)
    assert hash(document) == hash(garden())


def test_training_sees_no_links_which_is_not_the_same_as_none():
    collection = datasets.DocumentCollection("year", {"train": [garden()], "test": [garden()]})
    hidden = collection.without_links()
    unknown = garden(links=None)
    assert unknown != garden(links=())
    assert (hidden.name, hidden.split("train")) == ("year", (unknown,))
    assert (hidden.split("test"), collection.split("test")) == ((unknown,), (garden(),))


def test_a_collection_has_three_splits():
    other = garden(doc_id="other", images=("tree.jpg", "bird.jpg"))
    collection = datasets.DocumentCollection("year", {"test": [garden()], "train": (other,)})
    assert list(collection.documents) == ["train", "val", "test"]
    assert collection.split("val") == ()
    assert len(collection) == 2
    assert collection.image_ids == ("tree.jpg", "bird.jpg", "dog.jpg")


@pytest.mark.parametrize(
    ("error", "named", "changes"),
    [
        (TypeError, "doc_id", {"doc_id": 7}), (TypeError, "sentences", {"sentences": "A dog."}),
        (TypeError, "sentences .*int", {"sentences": 3}),
        (TypeError, "images .*4", {"images": ("a.jpg", 4)}),
        (ValueError, "images", {"images": ()}), (ValueError, "sentences", {"sentences": []}),
        (TypeError, "links", {"links": 3}), (TypeError, "links .*3", {"links": [3]}),
        (TypeError, "links", {"links": [(0, 0, 0)]}),
        (TypeError, r"image of a link .*1\.0", {"links": [(0, 1.0)]}),
        (TypeError, "sentence of a link .*True", {"links": [(True, 0)]}),
        (ValueError, "sentence of a link .*2, .*3", {"links": [(3, 0)]}),
        (ValueError, "image of a link .*1, .*2", {"links": [(0, 2)]}),
        (ValueError, "sentence of a link .*-1", {"links": [(-1, 0)]}),
    ]
)  # fmt: skip
def test_bad_documents_are_refused(error, named, changes):
    refuses(error, named, garden, **changes)


def test_bad_collections_are_refused():
    refuses(TypeError, "name", datasets.DocumentCollection, 3, {})
    refuses(ValueError, "split", datasets.DocumentCollection, "x", {"dev": []})
    refuses(TypeError, "'test' .*'d'", datasets.DocumentCollection, "x", {"test": ["d"]})
    refuses(ValueError, "split .*'dev'", datasets.DocumentCollection("x", {}).split, "dev")


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read_year(folder, content):
    return datasets.load_documents(write(folder / "year.json", content))


def test_links_are_told_by_images_sentences_or_both(tmp_path):
    images = [["a.jpg", 2], ["b.jpg", -1], ["c.jpg", None], ["d.jpg", 3]]
    sentences = [["One.", 1], ["Two.", 1], ["Three.", -1], ["Four.", 3]]
    collection = read_year(
        tmp_path, {"train": [], "val": [[images, sentences, "na"]], "test": []}
    )
    names, links = ("a.jpg", "b.jpg", "c.jpg", "d.jpg"), {(2, 0), (0, 1), (1, 1), (3, 3)}
    expected = datasets.Document("na", ("One.", "Two.", "Three.", "Four."), names, links)
    assert (collection.name, collection.split("val")) == ("year", (expected,))


@pytest.mark.parametrize(("told", "links"), [(None, None), (-1, frozenset())])
def test_links_are_unknown_where_every_place_is_null(tmp_path, told, links):
    entry = [[["a.jpg", told]], [["One.", None], ["Two.", None]]]
    (document,) = read_year(tmp_path, {"test": [entry]}).split("test")
    assert document.links == links


GOOD = [[["a.jpg", 0]], [["One.", -1]], "na"]


@pytest.mark.parametrize(
    ("meta", "doc_id"),
    [([], "test-1"), ([None], "test-1"), ([""], ""), ([17], "17"), ([{"a": 1}], '{"a": 1}')],
)
def test_ids_of_documents(tmp_path, meta, doc_id):
    content = {"test": [GOOD, [*GOOD[:2], *meta]]}
    assert read_year(tmp_path, content).split("test")[1].doc_id == doc_id


def entry(images=GOOD[0], sentences=GOOD[1]):
    return {"test": [GOOD, [images, sentences, "na"]]}


@pytest.mark.parametrize(
    ("named", "content"),
    [
        *(("JSON", text) for text in ("", json.dumps({"test": [GOOD]})[:-4], "[" * 100_000)),
        *(("'train', 'val', 'test'", content) for content in ([GOOD], {}, {"dev": []})),
        ("test", {"test": {}}), (r"test\[1\]", {"test": [GOOD, "x"]}),
        (r"test\[0\]", {"test": [GOOD[:1]]}), (r"test\[0\]", {"test": [[*GOOD, 1]]}),
        ("images", entry(images={})), (r"images\[0\]", entry(images=["a.jpg"])),
        (r"sentences\[1\]", entry(sentences=[["One.", -1], ["Two."]])),
        (r"images\[0\]", entry(images=[[4, 0]])),
        *((r"images\[0\]", entry(images=[["a.jpg", odd]])) for odd in (0.0, True, "0")),
        (r"test\[1\] .*sentence of a link", entry(images=[["a.jpg", 1]])),
        (r"test\[1\] .*image of a link", entry(sentences=[["One.", -2]])),
        (r"test\[1\] .*images", entry(images=[])),
    ]
)  # fmt: skip
def test_damaged_files_are_named_with_the_place(tmp_path, named, content):
    said = refuses(ValueError, f".*{named}", read_year, tmp_path, content)
    assert str(tmp_path / "year.json") in said


def test_missing_and_binary_files(tmp_path):
    refuses(FileNotFoundError, ".*missing", datasets.load_documents, tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b'{"test": "\xff"}')
    refuses(ValueError, ".*line 1", datasets.load_documents, tmp_path / "binary.json")


def step(body, *images):
    return {"body": body, "images": list(images), "id": 0, "title": "Step", "videos": []}


def question(recipe, *steps):
    return {"recipe_id": recipe, "context": list(steps), "task": "textual_cloze", "answer": 1}


def recipes(folder, *questions):
    write(folder / "val.json", {"version": "1.0", "data": questions})
    return datasets.load_recipeqa(folder)


def test_steps_are_linked_to_their_photos(tmp_path):
    steps = step(" Cut. ", "a", "b.jpg"), step("Wait."), step("", "c.jpg"), step("Eat.", "d")
    collection = recipes(tmp_path, question("toast", *steps))
    links = {(0, 0), (0, 1), (2, 3)}  # no sentence for the step without text
    images = "a", "b.jpg", "c.jpg", "d"
    expected = datasets.Document("toast", ("Cut.", "Wait.", "Eat."), images, links)
    assert (collection.name, collection.split("val")) == ("RecipeQA", (expected,))
    assert collection.split("train") == collection.split("test") == ()


def test_the_first_question_with_the_most_photos_is_the_recipe(tmp_path):
    bodies = ("Cut.",), ("Cut.", "a"), ("Fry.", "b")
    asked = [question("toast", step(*body)) for body in bodies]
    asked.insert(1, question("soup", step("Boil.", "s")))
    found = [(d.doc_id, d.images) for d in recipes(tmp_path, *asked).split("val")]
    assert found == [("toast", ("a",)), ("soup", ("s",))]


def test_recipes_without_photos_or_text_are_left_out_and_named(tmp_path):
    odd = question("toast", step("Cut.")), question("ice", step("", "i"))
    with pytest.warns(datasets.DatasetWarning, match="2 recipes .*: toast, ice"):
        assert len(recipes(tmp_path, *odd, question("soup", step("Boil.", "s")))) == 1


@pytest.mark.parametrize(
    ("place", "entry"),
    [
        ("'recipe_id'", {"context": []}),
        ("'context'", {"recipe_id": "x"}),
        (r"context\[0\] .*'body'", question("x", {"images": []})),
        (r"context\[1\] .*'images'", question("x", step("One."), {"body": "a"})),
        (r"context\[0\] images\[0\]", question("x", step("One.", 3))),
    ],
)
def test_a_damaged_question_is_named(tmp_path, place, entry):
    toast = question("toast", step("Cut.", "a.jpg"))
    said = refuses(ValueError, rf".*data\[1\] .*{place}", recipes, tmp_path, toast, entry)
    assert str(tmp_path / "val.json") in said


ISOLATED = "description-in-isolation.json"
stories = partial(datasets.load_vist, tier="stories", n_photos=2)
pairs = partial(datasets.load_vist, n_photos=2)


def row(photo, place, *, album="7", story="s"):
    places = {"photo_order_in_story": place, "worker_arranged_photo_order": place}
    texts = {"original_text": f" It is {photo}. ", "text": "it is [male] ."}
    ids = {"album_id": album, "photo_flickr_id": photo, "story_id": story, "worker_id": "w"}
    return [{**ids, **texts, **places}]


def albums(folder, rows, name=f"val.{ISOLATED}"):
    return write(folder / name, {"images": [], "albums": [], "annotations": rows})


def shown(documents):
    return [(d.doc_id, d.images) for d in documents]


def test_descriptions_are_cut_where_places_or_albums_begin_anew(tmp_path):
    rows = [row("a", 0), row("b", 1), row("c", 0), row("d", 1), row("e", 0, album="8")]
    albums(tmp_path, [*rows, row("f", 1, album="8")])
    documents = pairs(tmp_path).split("val")
    assert shown(documents) == [("7-0", ("a", "b")), ("7-1", ("c", "d")), ("8-0", ("e", "f"))]
    assert documents[0].sentences == ("It is a.", "It is b.")
    assert documents[0].links == {(0, 0), (1, 1)}


def test_stories_are_gathered_by_id_and_put_in_order(tmp_path):
    rows = [row("b", 1, story="x"), row("c", 0, story=5), row("a", 0, story="x")]
    rows.append(row("d", 1, story=5))
    albums(tmp_path / "sis", rows, "train.story-in-sequence.json")
    collection = stories(tmp_path)
    assert collection.name == "Story-SIS"
    assert shown(collection.split("train")) == [("x", ("a", "b")), ("5", ("c", "d"))]
    assert collection.split("val") == collection.split("test") == ()


def test_sequences_of_another_length_are_left_out_and_named(tmp_path):
    places = 0, 1, 0, 0, 0, 1, 2, 0, 1
    both = zip("abcdefghi", places, strict=True)
    albums(tmp_path, [row(photo, place) for photo, place in both])
    with pytest.warns(datasets.DatasetWarning, match="3 sequences .*: 7-1, 7-2, 7-3"):
        collection = pairs(tmp_path)
    assert collection.name == "Story-DII"
    assert shown(collection.split("val")) == [("7-0", ("a", "b")), ("7-4", ("h", "i"))]


def test_the_default_is_five_photos(tmp_path):
    albums(tmp_path / "dii", [row(str(i), i % 5) for i in range(10)])
    collection = datasets.load_vist(tmp_path)
    assert [len(d.images) for d in collection.split("val")] == [5, 5]


@pytest.mark.parametrize(
    ("place", "entry"),
    [
        ("one object", {"album_id": "7"}), ("one object", []), ("'album_id'", [3]),
        ("'photo_flickr_id'", [{**row("a", 0)[0], "photo_flickr_id": None}]),
        ("'photo_order_in_story'", [{**row("a", 0)[0], "photo_order_in_story": "0"}]),
        ("'original_text'", [{**row("a", 0)[0], "original_text": 5}]),
    ]
)  # fmt: skip
def test_a_damaged_entry_is_named(tmp_path, place, entry):
    path = albums(tmp_path, [row("a", 0), entry])
    assert f"{path}: annotations[1]" in refuses(ValueError, f".*{place}", pairs, tmp_path)


def test_other_files_and_arguments_are_refused(tmp_path):
    albums(tmp_path, [row("a", 0, story=None)], "val.story-in-sequence.json")
    refuses(ValueError, ".*'story_id'", stories, tmp_path)
    refuses(ValueError, "tier", datasets.load_vist, tmp_path, tier="dii")
    refuses(ValueError, "n_photos", datasets.load_vist, tmp_path, n_photos=0)
    for load, name, key in (
        (datasets.load_recipeqa, "train.json", "data"),
        (datasets.load_vist, f"train.{ISOLATED}", "annotations"),
    ):
        refuses(FileNotFoundError, f".*{name}", load, tmp_path)
        assert not len(load(write(tmp_path / name, {key: []}).parent))
        for text in (f'{{"{key}": 3}}', "[]", f'{{"{key}": [3]}}', f'{{"{key[:3]}'):
            write(tmp_path / name, text)
            refuses(ValueError, f".*{name}", load, tmp_path)


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
    documents = read_year(tmp_path, {"test": entries}).split("test")
    assert len(documents) > 1000
    assert Counter(len(d.images) for d in documents).most_common(1)[0][0] == 5
    assert all(document.links is None for document in documents)
