"""Captioned photos as files give them: of Flickr, Karpathy and COCO, and of the user."""

import json
import re
import warnings

import numpy as np
import pytest
from refusals import refuses

from kernelcore import datasets
from kernelcore.datasets import DatasetWarning, load_coco_captions, load_flickr, load_karpathy
from kernelcore.datasets._collect import OddRows
from kernelcore.datasets.folder import read_caption_rows, read_sentences


def load_folder(captions):
    return datasets.load_folder(captions.parent / "images", captions)


def laid(root, files):
    """Write files of text, bytes, or what becomes JSON."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, (str, bytes)) else json.dumps(content)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def photos(names, within="images"):
    return {f"{within}/{name}.jpg": "" for name in names}


ABC = photos("abc")
TOKENS = "b.jpg#0\tA dog .\nb.jpg#1\tA hound .\na.jpg#0\tA cat .\nc.jpg#0\tA man .\n"


def flickr(tokens=TOKENS, **lists):
    splits = {f"Tiny_8k.{name}Images.txt": text for name, text in lists.items()}
    return {"Tiny.token.txt": tokens, **ABC, **splits}


def entry(filename, split, *texts, first_id=None, **more):
    ids = [{} if first_id is None else {"sentid": first_id + i} for i in range(len(texts))]
    sentences = [{"raw": text, **own} for text, own in zip(texts, ids, strict=True)]
    return {"filename": filename, "split": split, "sentences": sentences, **more}


def karpathy(*images):
    return {"k.json": {"dataset": "tiny", "images": images}}


def coco(images, captions):
    listed = [{"id": i, "file_name": name} for i, name in images]
    captions = [{"id": i, "image_id": image, "caption": text} for i, image, text in captions]
    return {"c.JSON": {"images": listed, "annotations": captions}}


OF_COCO = karpathy(
    entry("v_7.jpg", "test", "One.", cocoid=7, filepath="val"),
    entry("t_8.jpg", "train", "Two.", cocoid=8, filepath="train"),
)
IN_PARTS = karpathy(
    entry("b.jpg", "test", "One.", "Two.", first_id=5), entry("a.jpg", "val", "Three."),
    entry("c.jpg", "train", "Four.", first_id=9), entry("d.jpg", "restval", "Five."),
)  # fmt: skip
FIRST = {"images": [entry("a.jpg", "val", "One.")]}
OF_FLICKR = {"dataset_flickr8k.json": FIRST, **photos("a")}
IN_ORDER = {"captions": (("A cat .",), ("A dog .", "A hound ."), ("A man .",))}
SPLIT = {"splits": [("train", [0]), ("dev", [1]), ("test", [2])]}
ALL_ODD = (
    TOKENS
    + "".join(f"gone.jpg.1#{i}\tA ghost .\n" for i in range(5))
    + ("c.jpg#1\t\nc.jpg#2\t \nc.jpg#3\t\n\nb.jpg#1\tAnother .\nc.jpg#9")
)
# The loader, the path that it is given, files, what comes of them, and the odd rows: how many
# of a kind, and their names.
GIVEN = {
    "images sorted by name": (
        load_flickr, "", flickr(train="c.jpg\na.jpg\n", test="b.jpg\n"), {
            "name": "Tiny", "image_ids": ("a.jpg", "b.jpg", "c.jpg"), **IN_ORDER,
            "caption_ids": (("a.jpg#0",), ("b.jpg#0", "b.jpg#1"), ("c.jpg#0",)),
            "caption_numbers": ((0,), (0, 1), (0,)), "paths": list(ABC),
            "splits": [("train", [2, 0]), ("test", [1])]}),
    "numbers of the ids, rows in their order, and no photos": (
        load_flickr, "", {"x.token": "a.jpg#4\tfour\na.jpg#2\ttwo\na.jpg#12\ttwelve\n"},
        {"caption_numbers": ((4, 2, 12),), "captions": (("four", "two", "twelve"),),
         "paths": [None]}),
    "a byte order mark, and lines of Windows": (
        load_flickr, "", flickr("\ufeff" + TOKENS.replace("\n", "\r\n"), train="a\r\nb\r\n"),
        {"image_ids": ("a.jpg", "b.jpg", "c.jpg"), **IN_ORDER, "splits": [("train", [0, 1])]}),
    "lines that a line feed ends, and a caption from the first tab on": (
        load_flickr, "", {"x.token": "a.jpg#0\tone\u2028two\x85three\x0bfour\tfive\n"},
        {"captions": (("one\u2028two\x85three\x0bfour\tfive",),)}),
    "a name in full before one without its suffix": (
        load_flickr, "", {"x.token": "x.j#0\tA .\nx.j.1#0\tB .\ny.j#0\tC .\n",
                          "x.trainImages.txt": "x.j\n", "x.testImages.txt": "y\n"},
        {"image_ids": ("x.j", "x.j.1", "y.j"), "splits": [("train", [0]), ("test", [2])]}),
    "Flickr30k": (
        load_flickr, "", {"text/results_20130124.token": "10.jpg#0\tA man .\n",
                          "text/test.txt": "10\n", "flickr30k-images/10.jpg": ""},
        {"name": "Flickr30k", "paths": ["flickr30k-images/10.jpg"], "splits": [("test", [0])]}),
    "plain lists": (load_flickr, "", flickr() | {
        "train.txt": "a", "val.txt": "b", "test.txt": "c"}, SPLIT),
    "lists of the development alone": (load_flickr, "", flickr() | {
        "dev.txt": "b", "test.txt": "c"}, {"splits": SPLIT["splits"][1:]}),
    "lists with the name of the corpus": (load_flickr, "", flickr() | {
        "flickr30k_train.txt": "a", "flickr30k_val.txt": "b"}, {"splits": SPLIT["splits"][:2]}),
    "other splits last": (load_flickr, "", flickr(restval="a.jpg", test="b.jpg"), {
        "splits": [("test", [1]), ("restval", [0])]}),
    "files that are no lists": (load_flickr, "", flickr() | {
        "readme.txt": "a.jpg", "trainer.txt": "b.jpg", "._train.txt": "c"}, {"splits": []}),
    "by-products of archives and other tools": (
        load_flickr, "", flickr() | {"._Tiny.token.txt": b"\0\5", "__MACOSX/x.token": b"\0\5",
                                     "Tiny.lemma.token.txt": "a.jpg#0\tcat sleep ."}, IN_ORDER),
    "photos below before photos beside": (
        load_flickr, "in", {"in/x.token": TOKENS, **photos("abc", "in/1/2"), **photos("abc")},
        {"paths": list(photos("abc", "in/1/2"))}),
    "photos beside": (
        load_flickr, "in/2", {"in/2/x.token": TOKENS} | photos("abc") | photos("abc", "in/1/2"),
        {"paths": list(photos("abc", "in/1/2"))}),
    "the folder with most of the photos": (
        load_flickr, "", flickr() | photos("a", "few"), {"paths": list(ABC)}),
    "Karpathy": (
        load_karpathy, "k.json", IN_PARTS, {
            "name": "tiny", "image_ids": ("b.jpg", "a.jpg", "c.jpg", "d.jpg"),
            "captions": (("One.", "Two."), ("Three.",), ("Four.",), ("Five.",)),
            "caption_ids": (("5", "6"), ("a.jpg#0",), ("9",), ("d.jpg#0",)),
            "caption_numbers": ((0, 1), (0,), (0,), (0,)), "paths": [None] * 4,
            "splits": [("train", [2]), ("dev", [1]), ("test", [0]), ("restval", [3])]}),
    "COCO of Karpathy, photos in folders": (
        load_karpathy, "k.json", OF_COCO | photos(["val/v_7", "train/t_8"]),
        {"image_ids": ("7", "8"), "paths": ["images/val/v_7.jpg", "images/train/t_8.jpg"]}),
    "COCO of Karpathy, photos in one folder": (
        load_karpathy, "k.json", OF_COCO | photos(["v_7", "t_8"]),
        {"paths": ["images/v_7.jpg", "images/t_8.jpg"]}),
    "COCO": (
        load_coco_captions, "notes/c.JSON",
        {f"notes/{name}": content for name, content in coco(
            [(7, "7.jpg"), (3, "3.jpg")],
            [(70, 7, "One.\n"), (30, 3, "Two."), (71, 7, "Three.")]).items()} | photos("73"), {
            "name": "c", "image_ids": ("7", "3"), "captions": (("One.", "Three."), ("Two.",)),
            "caption_ids": (("70", "71"), ("30",)), "caption_numbers": ((0, 1), (0,)),
            "splits": [], "paths": ["images/7.jpg", "images/3.jpg"]}),
    "COCO without photos": (
        load_coco_captions, "c.JSON", coco([(7, "7.jpg")], [(70, 7, "1")]), {"paths": [None]}),
    "a folder": (
        load_folder, "c.tsv", {"c.tsv": "a.jpg\tA dog.\na.jpg\tA hound.\nsea/c.jpg#3\tA sea.",
                               "images/a.jpg": "", "images/sea/c.jpg": ""}, {
            "name": "images", "image_ids": ("a.jpg", "sea/c.jpg"), "splits": [],
            "captions": (("A dog.", "A hound."), ("A sea.",)),
            "caption_numbers": ((0, 1), (3,)), "paths": ["images/a.jpg", "images/sea/c.jpg"],
            "caption_ids": (("a.jpg#0", "a.jpg#1"), ("sea/c.jpg#3",))}),
    "Flickr by Karpathy": (
        load_flickr, "", OF_FLICKR,
        {"splits": [("dev", [0])], "paths": ["images/a.jpg"], "captions": (("One.",),)}),
    "the file of Karpathy itself": (
        load_flickr, "dataset_flickr8k.json", OF_FLICKR,
        {"splits": [("dev", [0])], "paths": ["images/a.jpg"]}),
    "tokens before Karpathy's file": (
        load_flickr, "", OF_FLICKR | flickr(), IN_ORDER),
    "odd rows of Flickr": (
        load_flickr, "", flickr(ALL_ODD, train="a.jpg\nx.jpg\na.jpg\n", test="b.jpg\n")
        | photos(["d", ".e"]) | {"images/F.PNG": "", "images/notes.txt": ""},
        {"splits": [("train", [0]), ("test", [1])], **IN_ORDER}, (1, "line 15"),
        (5, "gone.jpg.1#0, gone.jpg.1#1, gone.jpg.1#2 and 2 more"),
        (3, "c.jpg#1, c.jpg#2, c.jpg#3"), (1, "b.jpg#1"), (2, "F.PNG, d.jpg"), (1, "x.jpg"),
        (1, "a.jpg")),
    "odd entries of Karpathy": (
        load_karpathy, "k.json", karpathy(
            entry("a.jpg", "train", "One.", " ", "Three."), entry("a.jpg", "train", "Again."),
            entry("b.jpg", "train"), entry("gone.jpg", "train", "Lost.")) | photos("abs"),
        {"caption_numbers": ((0, 2),), "captions": (("One.", "Three."),)}, (1, "images[1]"),
        (1, "a.jpg#1"), (1, "gone.jpg#0"), (2, "b.jpg, s.jpg"),
        (1, "a.jpg"), (2, "b.jpg, gone.jpg")),
    "odd rows of Karpathy in a corpus": (
        load_flickr, "", {"dataset_tiny.json": {"images": [
            entry("a.jpg", "train", "One."), entry("a.jpg", "train", "Again.")]}},
        {"image_ids": ("a.jpg",)}, (1, "images[1]"), (1, "a.jpg")),
    "odd entries of COCO": (
        load_coco_captions, "c.JSON", coco(
            [(7, "7.jpg"), (3, "3.jpg"), (7, "7b.jpg"), (4, "4.jpg"), (5, "5.jpg")],
            [(70, 7, "One."), (70, 7, "Again."), (90, 9, "Nowhere."), (30, 3, ""),
             (50, 5, "Gone.")]) | photos("734"),
        {"image_ids": ("7",), "captions": (("One.",),)}, (1, "images[2]"),
        (1, "annotations[1]"), (1, "90"), (1, "30"), (1, "50"), (2, "3, 4")),
    "COCO by the names of its photos": (
        load_folder, "c.JSON",
        coco([("7", "a.jpg")], [(0, "7", "A dog."), (1, "7", "A hound."), (2, "9", "Lost.")])
        | photos("a"),
        {"image_ids": ("a.jpg",), "captions": (("A dog.", "A hound."),),
         "caption_ids": (("0", "1"),)}, (1, "2")),
    "odd rows of a folder": (
        load_folder, "c.txt", photos(["a", "b", "sea/c"]) | {
            "c.txt": "a.jpg\tA dog.\nz.jpg\tLost.\na.jpg\t\ncut off\nsea/c.jpg\tSea.\n"},
        {"image_ids": ("a.jpg", "sea/c.jpg")}, (1, "line 4"), (1, "z.jpg"), (1, "a.jpg"),
        (1, "b.jpg")),
    "rows of another length": (
        load_folder, "c.csv", photos("ab") | {
            "c.csv": "image,caption\na.jpg,A dog.\nb.jpg,A cat, up.\nb.jpg,A cat.\nc.jpg\n"},
        {"captions": (("A dog.",), ("A cat.",))}, (2, "line 3, line 5")),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN)
def test_what_files_give_and_the_one_warning_that_names_what_is_left_out(tmp_path, case):
    load, at, files, expected, *odd = GIVEN[case]
    root = laid(tmp_path / "home", files)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load(root / at)
    paths = [path and path.relative_to(root).as_posix() for path in dataset.paths]
    splits = [(name, members.tolist()) for name, members in dataset.splits.items()]
    found = vars(dataset) | {"paths": paths, "splits": splits}
    assert {part: found[part] for part in expected} == expected
    assert [warning.category for warning in caught] == [DatasetWarning] * bool(odd)
    named = [tuple(part) for warning in caught for part in kinds(str(warning.message))]
    assert named == odd
    assert {warning.filename for warning in caught} <= {__file__}


def kinds(message):
    for number, names in re.findall(r"[:;] (\d+) [^:]*: ([^;]*)", message):
        yield int(number), names


def of(split, texts):
    return {"filename": "a", "split": split, "sentences": texts}


LATIN = b"a.jpg#0\tA cat .\nb.jpg#0\tA caf\xe9 .\n"
IN_K, IN_C, IN_F = (load_karpathy, "k.json"), (load_coco_captions, "c.JSON"), (load_flickr, "")
# The loader, the path, files, and what the error names besides the folder.
REFUSED = [
    (*IN_F, flickr(dev="a.jpg", val="b.jpg"), r"'dev', .*dev.* Tiny_8k.val.*"),
    (*IN_F, flickr(LATIN), r"Tiny\.token\.txt .*line 2"),
    (*IN_F, flickr(train="a.jpg".encode("utf-16")), r"trainImages\.txt .* line 1"),
    (*IN_F, flickr(train="x.jpg\ny.jpg\n"), "'train' .* 2 .*'x.jpg'"),
    (*IN_F, flickr(train="a.jpg\n", test="b.jpg\na.jpg\n"), "'a.jpg' in 'train' and 'test'"),
    (*IN_F, flickr(train="a.jpg\nx.jpg\n", test="b.jpg\nx.jpg\n"), "'x.jpg'"),
    *((*IN_F, flickr(text), r"Tiny\.token\.txt must hold captions")
      for text in ("", "\n\n", "no tab here", "a.jpg#0\t\n")),
    (*IN_F, {"a.txt": ""}, "root must hold"),
    (*IN_F, flickr() | {"Other.token": TOKENS}, "Other.token, Tiny.token.txt"),
    (*IN_K, karpathy(entry("a", "train", "A."), entry("a", "test", "A.")),
     "'a' in 'train' and 'test'"),
    (*IN_K, {"k.json": b'{"images":\n ["\xe9"]}'}, "line 2"),
    *((*IN_K, {"k.json": text}, "JSON") for text in ("", '{"images": [')),
    *((*IN_K, {"k.json": content}, "'images'")
      for content in ([], None, {"images": {"a": 1}}, {})),
    (*IN_K, karpathy("a"), r"images\[0\] .*'filename'"),
    (*IN_K, karpathy({"split": "x"}), r"images\[0\] .*'filename'"),
    (*IN_K, karpathy({"filename": "a"}), r"images\[0\] .*'split'"),
    (*IN_K, karpathy(of("x", None)), r"images\[0\] .*'sentences'"),
    *((*IN_K, karpathy(of("x", [odd])), r"images\[0\]: sentences\[0\] .*'raw'")
      for odd in ({"raw": 1}, "text")),
    (*IN_K, karpathy(), "captions of photos"),
    (*IN_C, {"c.JSON": {"images": []}}, "'annotations'"),
    *((*IN_C, coco([(odd, "a")], []), rf"images\[0\] .*'id'.* {odd}") for odd in (None, True)),
    (*IN_C, coco([(1, 2)], []), r"images\[0\] .*'file_name'"),
    (*IN_C, coco([(1, "a")], [(1, 1, None)]), r"annotations\[0\] .*'caption'"),
    (*IN_C, coco([(1, "a")], [(1, 1.5, "x")]), r"annotations\[0\] .*'image_id'"),
    (*IN_C, coco([(1, "a")], [(False, 1, "x")]), r"annotations\[0\] .*'id'.* False"),
    (*IN_C, coco([(1, "a")], []), "none to use; 1 .*: 1"),
    *((*IN_C, {"c.JSON": text}, rf"JSON .*{reason}")
      for text, reason in (('{"images": ' + "7" * 4301, "digits"), ("[" * 200_000, "deeply"),
                           ('{"images": [{"file_name": "\\ud800"}]}', "surrogates"))),
    (load_folder, "c.JSON", coco([(7, "../a.jpg")], [(1, 7, "A dog.")]) | ABC, r"images\[0\]"),
    *((load_folder, "c.txt", {"c.txt": text, **ABC}, rf"captions of photos.*{named}")
      for text, named in (("", ""), ("image,caption\n", ""), ("A dog\n", "line 1"))),
    (load_folder, "c.txt", {"c.txt": "z.jpg\tA dog.\n", **ABC}, "images_dir .*'z.jpg'"),
    (load_folder, "c.txt", {"c.txt": LATIN, **ABC}, "line 2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("load", "at", "files", "named"), REFUSED, ids=[row[3] for row in REFUSED]
)
def test_damage_is_refused_by_the_file_and_the_place(tmp_path, load, at, files, named):
    root = laid(tmp_path / "home", files)
    assert str(root) in refuses(ValueError, f".*{named}", load, root / at)


def test_folders_and_files_that_are_not_there(tmp_path):
    root, elsewhere = laid(tmp_path / "home", flickr()), tmp_path / "else/where/down"
    laid(elsewhere, photos("abc", "."))
    assert load_flickr(root, images=elsewhere).paths[2] == elsewhere / "c.jpg"
    refuses(ValueError, "'a.jpg'", load_flickr, root, images=tmp_path)
    tokens = root / "Tiny.token.txt"
    for load in (load_flickr, load_karpathy, load_coco_captions):
        refuses(FileNotFoundError, "none", load, root / "none")
    refuses(NotADirectoryError, "root", load_flickr, tokens)
    refuses(FileNotFoundError, "none", datasets.load_folder, root, root / "none")
    for error, folder in ((FileNotFoundError, root / "none"), (NotADirectoryError, tokens)):
        refuses(error, "images", load_flickr, root, images=folder)
        refuses(error, "images_dir", datasets.load_folder, folder, tokens)


def rows(path):
    odd = OddRows(path)
    found = [(row.image_id, row.text.strip()) for row in read_caption_rows(path, odd)]
    assert str(odd) == ""
    return found


TABLES, A_DOG = ("c.csv", "C.CSV", "c.txt"), [("a.jpg", "A dog")]
FORMS = {
    "line breaks in quotes": (TABLES, 'image,caption\na.jpg,"A\ndog"\n', [("a.jpg", "A\ndog")]),
    "lines of Windows": (
        TABLES, 'image,caption\r\na.jpg,"A\r\ndog"\r\n', [("a.jpg", "A\r\ndog")]),
    "lines of old Macs": (TABLES, "image,caption\ra.jpg,A dog\r", A_DOG),
    "order, case and blanks of the header, and blanks around names": (
        TABLES, '\ufeff id , "Caption" ,IMAGE\n1,"A dog, a cat", a.jpg \n',
        [("a.jpg", "A dog, a cat")]),
    "quotes in quotes": (
        TABLES, '"image","caption"\n"a.jpg","A ""big"" dog"\n', [("a.jpg", 'A "big" dog')]),
    "separators of Unicode": (
        TABLES, "image,caption\na.jpg,A dog\u2028runs\x0b\n", [("a.jpg", "A dog\u2028runs")]),
    "empty lines": (TABLES, "image,caption\n\n\na.jpg,A dog\n\n", A_DOG),
    "tabs, where quotes mean nothing": (
        ["c.tsv"], 'Caption\timage\nA "big\tb.jpg\n"A dog"\ta.jpg\n',
        [("b.jpg", 'A "big'), ("a.jpg", '"A dog"')]),
    "the first tab divides": (
        ["c.txt"], "a.jpg#0\tA dog\truns.\nb.jpg\tA cat.\n",
        [("a.jpg", "A dog\truns."), ("b.jpg", "A cat.")]),
    "rows of old Macs": (
        ["c.tsv"], "a.jpg\tA dog\rb.jpg#1\tA cat\r", [("a.jpg", "A dog"), ("b.jpg", "A cat")]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_loader_and_command_read_the_same_of_every_form(tmp_path, form):
    names, text, pairs = FORMS[form]
    for name in names:
        path = laid(tmp_path, {name: text}) / name
        assert rows(path) == pairs
        assert read_sentences(path) == [caption for _, caption in pairs]


def test_sentences_need_no_images(tmp_path):
    lost = coco([("7", "a.jpg")], [(0, "7", "A dog."), (2, "9", "Lost.")])
    laid(tmp_path, {"c.txt": "A dog.\nA cat, asleep.\n", "c.csv": "caption\nA dog.\n", **lost})
    assert read_sentences(tmp_path / "c.txt") == ["A dog.", "A cat, asleep."]
    assert read_sentences(tmp_path / "c.csv") == ["A dog."]
    assert read_sentences(tmp_path / "c.JSON") == ["A dog.", "Lost."]
    laid(tmp_path, {"c.csv": "image,caption\na.jpg,A dog, asleep\nb.jpg,A cat\n"})
    with pytest.warns(DatasetWarning, match="1 rows .*: line 2"):
        assert read_sentences(tmp_path / "c.csv") == ["A cat"]


BROKEN = [
    ('image,caption\na.jpg,"A dog\nb.jpg,A cat\n', r"line 2\)"),
    ('image,caption\na.jpg,A dog\nb.jpg,"A" cat\n', r"line 3\)"),
    ('image,caption\n\na.jpg,"' + "A dog\n" * 40_000, r"line 3\)"),
    ('image,caption\na.jpg,"A" dog.\n', r"line 2 .*line 2\)"),
    ("image,text\na.jpg,A dog\n", "'caption', .*'image, text'"),
    ("image,caption,Caption\na.jpg,A dog,A cat\n", "'caption'"),
    ("", "header"),
]


@pytest.mark.parametrize(("text", "named"), BROKEN, ids=[row[1] for row in BROKEN])
def test_broken_tables_are_refused_by_the_line_in_which_a_row_begins(tmp_path, text, named):
    path = laid(tmp_path, {"c.csv": text, **ABC}) / "c.csv"
    for read in (rows, read_sentences, load_folder):
        refuses(ValueError, rf"c\.csv.*{named}", read, path)


@pytest.mark.parametrize("name", ["c.txt", "c.json"])
@pytest.mark.parametrize("text", [b"", b"\n \n", b"image,caption\n", b"a.jpg,caf\xe9\n", b"{}"])
def test_files_without_sentences(tmp_path, name, text):
    if (name, text) != ("c.txt", b"{}"):  # a sentence
        path = laid(tmp_path, {name: text}) / name
        refuses(ValueError, re.escape(str(path)), read_sentences, path)


@pytest.mark.realdata
def test_flickr8k(data_root):
    with pytest.warns(DatasetWarning) as caught:
        dataset = load_flickr(data_root / "flickr8k")
    (warning,) = caught
    assert "5 captions of photos that are not there" in str(warning.message)
    assert "2258277193_586949ec62.jpg.1#0" in str(warning.message)
    counts = [len(dataset), dataset.n_captions, *map(len, dataset.splits.values())]
    assert (dataset.name, counts) == ("Flickr8k", [8091, 40455, 6000, 1000, 1000])
    assert list(dataset.splits) == ["train", "dev", "test"]
    assert all(numbers == (0, 1, 2, 3, 4) for numbers in dataset.caption_numbers)
    assert dataset.captions[0][1] == "A girl going into a wooden building ."
    assert tuple(path.name for path in dataset.paths) == dataset.image_ids
    assert dataset.image_ids[dataset.split("dev")[0]] == "2090545563_a4e66ec76b.jpg"
    assert len(np.unique(np.concatenate(list(dataset.splits.values())))) == 8000


@pytest.mark.realdata
def test_coco_val2017(data_root):
    dataset = load_coco_captions(data_root / "coco" / "captions_val2017.json")
    assert (len(dataset), dataset.n_captions) == (5000, 25014)
    image = dataset.image_ids.index("179765")
    first = "A black Honda motorcycle parked in front of a garage."
    assert (dataset.captions[image][0], dataset.caption_ids[image][0]) == (first, "38")
    lengths = np.bincount([len(captions) for captions in dataset.captions])
    assert lengths[5:].tolist() == [4987, 12, 1]
    assert all(text == text.strip() for captions in dataset.captions for text in captions)
