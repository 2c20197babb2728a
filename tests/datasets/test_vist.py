"""Photo sequences of VIST as documents."""

import json

import pytest
from refusals import refuses

from kernelcore.datasets import DatasetWarning, load_vist

FILES = {"descriptions": "description-in-isolation", "stories": "story-in-sequence"}


def row(photo, place, *, album="7", story="s"):
    return [
        {
            "album_id": album,
            "photo_flickr_id": photo,
            "original_text": f" It is {photo}. ",
            "text": "it is [male] .",
            "photo_order_in_story": place,
            "worker_arranged_photo_order": place,
            "story_id": story,
            "worker_id": "w",
        }
    ]


def write(folder, rows, *, tier="descriptions", split="val"):
    folder.mkdir(exist_ok=True)
    path = folder / f"{split}.{FILES[tier]}.json"
    path.write_text(json.dumps({"images": [], "albums": [], "annotations": rows}))
    return path


def photos(documents):
    return [(d.doc_id, d.images) for d in documents]


def test_descriptions_are_cut_where_places_or_albums_begin_anew(tmp_path):
    rows = [row("a", 0), row("b", 1), row("c", 0), row("d", 1), row("e", 0, album="8")]
    write(tmp_path, [*rows, row("f", 1, album="8")])
    documents = load_vist(tmp_path, n_photos=2).split("val")
    assert photos(documents) == [("7-0", ("a", "b")), ("7-1", ("c", "d")), ("8-0", ("e", "f"))]
    assert documents[0].sentences == ("It is a.", "It is b.")
    assert documents[0].links == {(0, 0), (1, 1)}


def test_stories_are_gathered_by_id_and_put_in_order(tmp_path):
    rows = [row("b", 1, story="x"), row("c", 0, story=5), row("a", 0, story="x")]
    write(tmp_path / "sis", [*rows, row("d", 1, story=5)], tier="stories", split="train")
    collection = load_vist(tmp_path, tier="stories", n_photos=2)
    assert collection.name == "Story-SIS"
    assert photos(collection.split("train")) == [("x", ("a", "b")), ("5", ("c", "d"))]
    assert collection.split("val") == collection.split("test") == ()


def test_sequences_of_another_length_are_left_out_and_named(tmp_path):
    write(tmp_path, [row("a", 0), row("b", 1), row("c", 0), row("d", 0), row("e", 1)])
    with pytest.warns(DatasetWarning, match=r"1 sequences that do not have 2 photos.*: 7-1"):
        collection = load_vist(tmp_path, n_photos=2)
    assert collection.name == "Story-DII"
    assert photos(collection.split("val")) == [("7-0", ("a", "b")), ("7-2", ("d", "e"))]


def test_the_default_is_five_photos(tmp_path):
    write(tmp_path / "dii", [row(str(i), i % 5) for i in range(10)])
    collection = load_vist(tmp_path)
    assert collection.name == "Story-DII"
    assert [len(d.images) for d in collection.split("val")] == [5, 5]


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"album_id": "7"}, r"annotations\[1\] must be a list of one object"),
        ([], r"annotations\[1\] must be a list of one object"),
        ([3], r"annotations\[1\] must have 'album_id'"),
        ([{**row("a", 0)[0], "photo_flickr_id": None}], "'photo_flickr_id'"),
        ([{**row("a", 0)[0], "photo_order_in_story": "0"}], "'photo_order_in_story'"),
        ([{**row("a", 0)[0], "original_text": 5}], "'original_text'"),
    ],
)
def test_a_damaged_entry_is_named(tmp_path, entry, place):
    path = write(tmp_path, [row("a", 0), entry])
    assert f"{path}: annotations[1]" in refuses(
        ValueError, f".*{place}", load_vist, tmp_path, n_photos=2
    )


def test_a_story_needs_an_id(tmp_path):
    entry = row("a", 0)
    del entry[0]["story_id"]
    write(tmp_path, [entry], tier="stories")
    refuses(ValueError, "'story_id'", load_vist, tmp_path, tier="stories")


def test_other_files_and_arguments_are_refused(tmp_path):
    refuses(FileNotFoundError, r"train\.description-in-isolation\.json", load_vist, tmp_path)
    refuses(ValueError, "tier", load_vist, tmp_path, tier="dii")
    refuses(ValueError, "n_photos", load_vist, tmp_path, n_photos=0)
    path = write(tmp_path, [])
    assert not len(load_vist(tmp_path))
    for text in ("[]", '{"annotations": 3}', '{"ann'):
        path.write_text(text)
        assert str(path) in refuses(ValueError, ".*must", load_vist, tmp_path)
