"""Files of annotations name photos of their folder only, unless the caller allows others."""

import json
import os

import pytest
from refusals import refuses

from kernelcore import datasets

LEADING_OUT = [
    "../secret.jpg", "beach/../../secret.jpg", "..", "beach/..", "/etc/passwd",
    "/proc/self/mem", "/dev/zero", "//host/share/a.jpg", "C:\\photos\\a.jpg", "C:a.jpg",
    "c:/a.jpg", "\\\\host\\share\\a.jpg", "\\a.jpg", "..\\secret.jpg",
    "beach\\..\\..\\secret.jpg",
]  # fmt: skip
WITHIN = ["a..b.jpg", "beach/c.jpg", "...jpg", "deep/a..", "10:30.jpg"]
# What is loaded, and the place that errors name.
PLACES = {
    "folder": r"captions\.tsv: line 2", "table": r"captions\.csv: line 4",
    "Flickr": r"Tiny\.token\.txt: line 2", "COCO": r"captions\.json: images\[1\]",
    "Karpathy": r"dataset\.json: images\[1\]",
    "Karpathy, images searched for": r"dataset\.json: images\[1\]",
    "Karpathy, folder": r"dataset\.json: images\[1\]",
    "Karpathy, folder, images searched for": r"dataset\.json: images\[1\]",
}  # fmt: skip
kinds = pytest.mark.parametrize("kind", PLACES)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "beach").mkdir(parents=True)
    for name in ("a.jpg", "beach/c.jpg"):
        (folder / name).write_bytes(b"photo")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return folder


def load(photos, kind, name, **options):
    """Load a.jpg, and a photo that a file of annotations names."""

    def file(at, text):
        (photos.parent / at).write_text(text, encoding="utf-8")
        return photos.parent / at

    if kind == "folder":
        rows = file("captions.tsv", f"a.jpg\tA dog.\n{name}\tA secret.\n")
        return datasets.load_folder(photos, rows, **options)
    if kind == "table":
        rows = file("captions.csv", f'image,caption\na.jpg,"A\ndog."\n{name},A secret.\n')
        return datasets.load_folder(photos, rows, **options)
    if not kind.endswith("searched for"):
        options["images"] = photos
    if kind == "Flickr":
        file("Tiny.token.txt", f"a.jpg#0\tA dog.\n{name}#0\tA secret.\n")
        return datasets.load_flickr(photos.parent, **options)
    if kind == "COCO":
        images = [{"id": i, "file_name": file} for i, file in enumerate(["a.jpg", name])]
        texts = [{"id": i, "image_id": i, "caption": "A dog."} for i in range(2)]
        content = json.dumps({"images": images, "annotations": texts})
        return datasets.load_coco_captions(file("captions.json", content), **options)
    other = {"filename": "x.jpg", "filepath": name} if "folder" in kind else {"filename": name}
    text = {"split": "train", "sentences": [{"raw": "A dog."}]}
    content = json.dumps({"images": [{"filename": "a.jpg", **text}, {**other, **text}]})
    return datasets.load_karpathy(file("dataset.json", content), **options)


@kinds
@pytest.mark.parametrize("name", LEADING_OUT)
def test_names_that_lead_out_are_refused_with_their_place(photos, kind, name):
    said = refuses(ValueError, f".*{PLACES[kind]}", load, photos, kind, name)
    assert repr(f"{name}/x.jpg" if "Karpathy, folder" in kind else name) in said
    assert "outside='allow'" in said


@kinds
def test_names_and_links_may_lead_out_where_that_is_allowed(photos, kind):
    (photos.parent / "secret").mkdir()
    secret = (photos.parent / "secret.jpg").rename(photos.parent / "secret" / "x.jpg")
    names = "../secret/x.jpg", "link.jpg"
    if "Karpathy, folder" in kind:
        names, secret = ("../secret", "link"), secret.parent
    for name in names:
        if "link" in name:
            (photos / name).symlink_to(secret)
        paths = load(photos, kind, name, outside="allow").paths
        assert photos / "a.jpg" in paths
        assert b"secret" in [path.read_bytes() for path in paths]
        refuses(ValueError, rf".*{PLACES[kind]} .*'{name}", load, photos, kind, name)


@pytest.mark.parametrize("name", WITHIN)
def test_odd_names_within_the_folder_are_found(photos, name):
    (photos / "deep").mkdir()
    (photos / name).write_bytes(b"photo")
    assert load(photos, "folder", name).paths[1] == photos / name


def test_links_within_the_folder_and_to_the_folder_are_followed(photos):
    (photos / "link.jpg").symlink_to("beach/c.jpg")
    link = photos.parent / "link"
    link.symlink_to(photos)
    assert load(link, "folder", "link.jpg").paths[1] == link / "link.jpg"


def test_a_linked_folder_that_a_name_goes_through_is_refused(photos):
    (photos / "out").symlink_to(photos.parent)
    name = "out/secret.jpg"
    refuses(ValueError, f".*line 2 .*'{name}'", load, photos, "folder", name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_are_no_photos_and_no_captions(photos):
    os.mkfifo(photos / "pipe.jpg")
    with pytest.warns(datasets.DatasetWarning, match=r"1 captions .*: pipe.jpg"):
        assert len(load(photos, "folder", "pipe.jpg")) == 1
    os.mkfifo(photos.parent / "captions")
    refuses(ValueError, "captions", datasets.load_folder, photos, photos.parent / "captions")


@pytest.mark.parametrize("kind", ["folder", "Karpathy", "COCO", "Flickr"])
@pytest.mark.parametrize("name", ["x" * 300 + ".jpg", "y/" * 3000 + "z.jpg", "a\0.jpg"])
def test_names_that_no_file_can_have_are_left_out(photos, kind, name):
    with pytest.warns(datasets.DatasetWarning, match="1 captions of photos"):
        assert len(load(photos, kind, name)) == 1


@kinds
def test_outside_must_be_one_of_two_words(photos, kind):
    refuses(ValueError, "outside", load, photos, kind, "a.jpg", outside=True)
