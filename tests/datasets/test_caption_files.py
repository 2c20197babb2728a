"""One reader of caption files: tables with commas or tabs, and rows of name<TAB>caption."""

import json

import pytest

from kernelcore.datasets import DatasetWarning, load_folder
from kernelcore.datasets._collect import OddRows
from kernelcore.datasets.folder import read_caption_rows, read_sentences


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(path):
    odd = OddRows(path)
    found = [(row.image_id, row.text) for row in read_caption_rows(path, odd)]
    assert str(odd) == ""
    return found


TABLES = {
    "line breaks in quotes": ('image,caption\na.jpg,"A dog\nruns"\n', "A dog\nruns"),
    "windows lines": ('image,caption\r\na.jpg,"A dog\r\nruns"\r\n', "A dog\r\nruns"),
    "mac lines": ("image,caption\ra.jpg,A dog\r", "A dog"),
    "order, case and blanks of the header": (
        '\ufeff id , "Caption" ,IMAGE\n1,"A dog, a cat",a.jpg\n',
        "A dog, a cat",
    ),
    "doubled quotes": ('image,caption\na.jpg,"A ""big"" dog"\n', 'A "big" dog'),
    "separators of Unicode": ("image,caption\na.jpg,A dog\u2028runs\x0b\n", "A dog\u2028runs"),
    "empty lines": ("image,caption\n\n\na.jpg,A dog\n\n", "A dog"),
}


@pytest.mark.parametrize("name", TABLES)
def test_loader_and_command_read_the_same_of_a_table(tmp_path, name):
    text, caption = TABLES[name]
    for file in ("captions.csv", "CAPTIONS.CSV", "captions.txt"):
        path = written(tmp_path, file, text)
        [(image, read)] = rows(path)
        assert (image, read.strip()) == ("a.jpg", caption)
        assert read_sentences(path) == [caption]


def test_tabs_divide_too_and_quotes_mean_nothing_there(tmp_path):
    path = written(tmp_path, "c.tsv", 'Caption\timage\nA "big\tb.jpg\n"A dog"\ta.jpg\n')
    assert rows(path) == [("b.jpg", 'A "big'), ("a.jpg", '"A dog"')]
    assert read_sentences(path) == ['A "big', '"A dog"']


def test_what_stands_after_the_first_tab_is_the_caption(tmp_path):
    path = written(tmp_path, "c.txt", "a.jpg#0\tA dog\truns.\nb.jpg\tA cat.\n")
    assert rows(path) == [("a.jpg", "A dog\truns."), ("b.jpg", "A cat.")]
    assert read_sentences(path) == ["A dog\truns.", "A cat."]


def test_lines_of_old_macs(tmp_path):
    path = written(tmp_path, "c.tsv", "a.jpg\tA dog.\rb.jpg#1\tA cat.\r")
    assert rows(path) == [("a.jpg", "A dog."), ("b.jpg", "A cat.")]
    assert read_sentences(path) == ["A dog.", "A cat."]


def test_sentences_need_no_images(tmp_path):
    assert read_sentences(written(tmp_path, "c.txt", "A dog.\nA cat, asleep.\n")) == [
        "A dog.",
        "A cat, asleep.",
    ]
    assert read_sentences(written(tmp_path, "c.csv", "caption\nA dog.\n")) == ["A dog."]


BROKEN = {
    "unbalanced quotes": ('image,caption\na.jpg,"A dog\nb.jpg,A cat\n', "line 2"),
    "text after quotes": ('image,caption\na.jpg,A dog\nb.jpg,"A" cat\n', "line 3"),
    "an endless cell": ('image,caption\n\na.jpg,"' + "A dog\n" * 40_000, "line 3"),
}


@pytest.mark.parametrize("read", [rows, read_sentences])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables_are_named_with_the_line(tmp_path, read, name):
    text, line = BROKEN[name]
    path = written(tmp_path, "captions.csv", text)
    with pytest.raises(ValueError, match=rf"captions\.csv: .*begins in {line}\)"):
        read(path)


@pytest.mark.parametrize("read", [rows, read_sentences])
def test_headers_that_do_not_tell_the_columns(tmp_path, read):
    with pytest.raises(ValueError, match=r"header that names .*'caption', got 'image, text'"):
        read(written(tmp_path, "c.csv", "image,text\na.jpg,A dog\n"))
    with pytest.raises(ValueError, match="must have one column 'caption'"):
        read(written(tmp_path, "c.csv", "image,caption,Caption\na.jpg,A dog,A cat\n"))
    with pytest.raises(ValueError, match="header that names"):
        read(written(tmp_path, "c.csv", ""))


def test_rows_of_another_length_are_warned_of(tmp_path):
    path = written(tmp_path, "c.csv", "image,caption\na.jpg,A dog, asleep\nb.jpg,A cat\n")
    with pytest.warns(DatasetWarning, match=r"1 rows not as long as the header .*: line 2"):
        assert read_sentences(path) == ["A cat"]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"image,caption\n"])
def test_no_sentences_at_all(tmp_path, content):
    with pytest.raises(ValueError, match="must hold sentences, and it holds none"):
        read_sentences(written(tmp_path, "c.txt", content))


def test_other_encodings_name_the_line(tmp_path):
    path = written(tmp_path, "c.csv", b"image,caption\na.jpg,caf\xe9\n")
    with pytest.raises(ValueError, match="must be UTF-8 text, got byte 0xe9 in line 2"):
        read_sentences(path)


def coco(folder, captions, images=(("7", "a.jpg"),)):
    content = {
        "images": [{"id": i, "file_name": name} for i, name in images],
        "annotations": [
            {"id": number, "image_id": image, "caption": text}
            for number, (image, text) in enumerate(captions)
        ],
    }
    return written(folder, "captions.JSON", json.dumps(content))


def test_json_of_coco_is_read_by_the_names_of_its_photos(tmp_path):
    (tmp_path / "a.jpg").touch()
    path = coco(tmp_path, [("7", "A dog."), ("7", "A hound."), ("9", "Lost.")])
    with pytest.warns(DatasetWarning, match=r"1 captions of images that are not listed .*: 2"):
        photos = load_folder(tmp_path, path)
    assert photos.image_ids == ("a.jpg",)
    assert photos.captions == (("A dog.", "A hound."),)
    assert photos.caption_ids == (("0", "1"),)
    assert read_sentences(path) == ["A dog.", "A hound.", "Lost."]


def test_json_that_leads_out_or_is_not_of_coco(tmp_path):
    path = coco(tmp_path, [("7", "A dog.")], images=[("7", "../a.jpg")])
    with pytest.raises(ValueError, match=r"images\[0\] must name a photo within its folder"):
        load_folder(tmp_path, path)
    for text in ("{}", "[", '{"images": []}'):
        with pytest.raises(ValueError, match=r"captions.json(: the file)? must (have|be JSON)"):
            read_sentences(written(tmp_path, "captions.json", text))
