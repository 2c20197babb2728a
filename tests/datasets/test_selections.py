"""Binary image selection: the type, and the files of COCO-BISON."""

import json

import numpy as np
import pytest

from kernelcore.datasets import (
    BinarySelections,
    CaptionedImages,
    DatasetWarning,
    SelectionTriple,
    load_bison,
    load_coco_captions,
)


def triple(triple_id="0", caption="A dog.", caption_id="70", true="7", other="8"):
    return SelectionTriple(triple_id, caption, caption_id, true, other)


def question(bison_id=0, caption_id=70, true=7, candidates=(7, 8)):
    return {
        "bison_id": bison_id,
        "caption_id": caption_id,
        "true_image_id": true,
        "image_candidates": [{"image_id": i, "image_filename": f"{i}.jpg"} for i in candidates],
    }


@pytest.fixture
def captions():
    return CaptionedImages(
        name="pets",
        image_ids=("7", "8", "9"),
        paths=(None,) * 3,
        captions=(("A dog.", "A puppy."), ("A cat.",), ("An owl.",)),
        caption_ids=(("70", "71"), ("80",), ("90",)),
        caption_numbers=((0, 1), (0,), (0,)),
    )


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_ids_and_captions_in_the_order_they_come():
    selections = BinarySelections(
        "pets",
        [triple("b", true="9", other="7"), triple("a"), triple("c", "A cat.", "80", "8", "9")],
    )
    assert selections.image_ids == ("9", "7", "8")
    assert selections.captions == {"70": "A dog.", "80": "A cat."}
    assert selections.triple_ids == ("b", "a", "c")
    assert [t.caption_id for t in selections] == ["70", "70", "80"]
    assert repr(selections) == "BinarySelections('pets', 3 triples of 3 images and 2 captions)"


def test_positions_in_a_matrix():
    selections = BinarySelections(
        "pets", [triple("0"), triple("1", "A cat.", "80", true="8", other="9")]
    )
    places = selections.positions(["9", "8", "7", "unused"], ["unused", "80", "70"])
    np.testing.assert_array_equal(places.true_images, [2, 1])
    np.testing.assert_array_equal(places.other_images, [1, 0])
    np.testing.assert_array_equal(places.captions, [2, 1])
    with pytest.raises(ValueError, match=r"image_ids must hold .* of pets, and 1 .* '9'"):
        selections.positions(["8", "7"], ["80", "70"])
    with pytest.raises(ValueError, match=r"caption_ids must hold .* 1 are not .* '70'"):
        selections.positions(["9", "8", "7"], ["80"])
    with pytest.raises(ValueError, match="image_ids must be unique, got '7'"):
        selections.positions(["7", "7"], ["70"])
    with pytest.raises(TypeError, match="caption_ids must be a sequence of strings"):
        selections.positions(["9", "8", "7"], [70, 80])


def test_select_needs_both_images():
    selections = BinarySelections(
        "pets", [triple("0"), triple("1", other="9"), triple("2", true="9", other="8")]
    )
    assert selections.select(["7", "8", "owl"]).triple_ids == ("0",)
    assert selections.select({"9", "8"}).triple_ids == ("2",)
    with pytest.raises(ValueError, match="at least one triple, got none"):
        selections.select([])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: triple(true="7", other="7"), ValueError, "must differ from true_image_id"),
        (lambda: triple(other=8), TypeError, "other_image_id must be a string, got 8"),
        (lambda: BinarySelections("x", []), ValueError, "at least one triple"),
        (lambda: BinarySelections("x", ["a"]), TypeError, "SelectionTriple objects, got 'a'"),
        (lambda: BinarySelections(3, [triple()]), TypeError, "name must be a string"),
        (
            lambda: BinarySelections("x", [triple()] * 2),
            ValueError,
            "unique, got .0. repe",
        ),
        (
            lambda: BinarySelections("x", [triple(), triple("1", "A cat.")]),
            ValueError,
            "one caption, got '70' with 'A dog.' and 'A cat.'",
        ),
    ],
)
def test_bad_triples(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_load_bison(tmp_path, captions):
    data = [question(), question(5, 80, 8, (9, 8)), question("x", 71)]
    path = write(tmp_path / "bison.json", {"info": {}, "data": data})
    selections = load_bison(path, captions)
    assert selections.name == "bison"
    assert selections.triples == (
        triple(),
        triple("5", "A cat.", "80", "8", "9"),
        triple("x", "A puppy.", "71"),
    )


def test_captions_from_a_coco_file(tmp_path):
    coco = {
        "images": [{"id": 7, "file_name": "7.jpg"}],
        "annotations": [{"id": 70, "image_id": 7, "caption": "A dog."}],
    }
    folder = tmp_path / "alone"  # photos of the same names may lie beside the test's own folder
    folder.mkdir()
    path = write(folder / "bison.json", {"data": [question()]})
    assert load_bison(path, write(folder / "captions.json", coco)).triples == (triple(),)


def test_unknown_captions_are_left_out_and_counted(tmp_path, captions):
    data = [question(0), question(1, caption_id=1), question(2, caption_id=2)]
    path = write(tmp_path / "bison.json", {"data": data})
    message = r"2 triples whose caption is not known \(left out\): 1, 2"
    with pytest.warns(DatasetWarning, match=message):
        assert load_bison(path, captions).triple_ids == ("0",)
    path = write(tmp_path / "bison.json", {"data": data[1:]})
    with pytest.raises(ValueError, match=f"captions are known, got none; {message}"):
        load_bison(path, captions)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', "is damaged or truncated"),
        ([], "the file must have 'data' of type list"),
        ({"data": [{}]}, r"data\[0\] must have 'bison_id' of type int or str, got None"),
        ({"data": [question(true=9)]}, r"data\[0\] .* true image among .* got 9 and 7, 8"),
        ({"data": [question(candidates=(7,))]}, "two different image_candidates"),
        ({"data": [question(candidates=(7, 8, 9))]}, "two different image_candidates"),
        ({"data": [question(candidates=(7, 7))]}, "two different image_candidates"),
        ({"data": [question(candidates=(7, 8, 8))]}, "two different image_candidates"),
        (
            {"data": [question() | {"image_candidates": [{"image_id": 7}, {}]}]},
            r"image_candidates\[1\] must have 'image_id' of type int or str",
        ),
        (
            {"data": [question(), question()]},
            "bison.json must hold .* be unique, got '0'",
        ),
    ],
)
def test_damaged_annotations(tmp_path, captions, content, message):
    with pytest.raises(ValueError, match=message):
        load_bison(write(tmp_path / "bison.json", content), captions)


def test_missing_files(tmp_path, captions):
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_bison(tmp_path / "bison.json", captions)
    path = write(tmp_path / "bison.json", {"data": [question()]})
    with pytest.raises(FileNotFoundError, match=r"captions\.json"):
        load_bison(path, tmp_path / "captions.json")


@pytest.mark.realdata
def test_bison_over_coco_captions(data_root, tmp_path):
    coco = load_coco_captions(data_root / "coco" / "captions_val2017.json")
    pool = coco.pool()
    data = [
        question(i, int(pool.caption_ids[5 * i]), int(image), (int(image), int(other)))
        for i, (image, other) in enumerate(
            (coco.image_ids[pool.caption_image[5 * i]], coco.image_ids[-1 - i])
            for i in range(100)
        )
    ]
    selections = load_bison(write(tmp_path / "b.json", {"data": data}), coco)
    assert len(selections) == 100
    assert [t.caption for t in selections] == [pool.captions[5 * i] for i in range(100)]
