"""Files of annotations name photos of their folder only, unless the caller allows others."""

import json
import os

import pytest

from kernelcore.datasets import (
    DatasetWarning,
    load_coco_captions,
    load_flickr,
    load_folder,
    load_karpathy,
)

LEADING_OUT = [
    "../secret.jpg", "beach/../../secret.jpg", "..", "beach/..", "/etc/passwd",
    "/proc/self/mem", "/dev/zero", "//host/share/a.jpg", "C:\\photos\\a.jpg", "C:a.jpg",
    "c:/a.jpg", "\\\\host\\share\\a.jpg", "\\a.jpg", "..\\secret.jpg",
    "beach\\..\\..\\secret.jpg",
]  # fmt: skip
WITHIN = ["a..b.jpg", "beach/c.jpg", "...jpg", "deep/a..", "10:30.jpg"]


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    (folder / "beach").mkdir(parents=True)
    for name in ("a.jpg", "beach/c.jpg"):
        (folder / name).write_bytes(b"photo")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return folder


def as_folder(folder, name, **options):
    captions = folder.parent / "captions.tsv"
    captions.write_text(f"a.jpg\tA dog.\n{name}\tA secret.\n", encoding="utf-8")
    return load_folder(folder, captions, **options)


def as_table(folder, name, **options):
    captions = folder.parent / "captions.csv"
    captions.write_text(f'image,caption\na.jpg,"A\ndog."\n{name},A secret.\n')
    return load_folder(folder, captions, **options)


def as_flickr(folder, name, **options):
    captions = folder.parent / "Tiny.token.txt"
    captions.write_text(f"a.jpg#0\tA dog.\n{name}#0\tA secret.\n", encoding="utf-8")
    return load_flickr(folder.parent, images=folder, **options)


def karpathy(folder, entries, **options):
    content = [
        {"split": "train", "sentences": [{"raw": "A dog."}], **image}
        for image in [{"filename": "a.jpg"}, *entries]
    ]
    path = folder.parent / "dataset_tiny.json"
    path.write_text(json.dumps({"images": content}))
    return load_karpathy(path, **options)


def as_karpathy(folder, name, **options):
    return karpathy(folder, [{"filename": name}], images=folder, **options)


def as_karpathy_without_images(folder, name, **options):
    return karpathy(folder, [{"filename": name}], **options)


def as_filepath(folder, name, **options):
    image = {"filename": "x.jpg", "filepath": name}
    return karpathy(folder, [image], images=folder, **options)


def as_filepath_without_images(folder, name, **options):
    return karpathy(folder, [{"filename": "x.jpg", "filepath": name}], **options)


def as_coco(folder, name, **options):
    path = folder.parent / "captions.json"
    files = enumerate(["a.jpg", name])
    content = {
        "images": [{"id": i, "file_name": file} for i, file in files],
        "annotations": [{"id": i, "image_id": i, "caption": "A dog."} for i in range(2)],
    }
    path.write_text(json.dumps(content))
    return load_coco_captions(path, images=folder, **options)


FILEPATHS = {as_filepath, as_filepath_without_images}
PLACES = {
    as_folder: r"captions\.tsv: line 2",
    as_table: r"captions\.csv: line 4",
    as_flickr: r"Tiny\.token\.txt: line 2",
    as_karpathy: r"dataset_tiny\.json: images\[1\]",
    as_karpathy_without_images: r"dataset_tiny\.json: images\[1\]",
    as_filepath: r"dataset_tiny\.json: images\[1\]",
    as_filepath_without_images: r"dataset_tiny\.json: images\[1\]",
    as_coco: r"captions\.json: images\[1\]",
}


@pytest.mark.parametrize("load", PLACES)
@pytest.mark.parametrize("name", LEADING_OUT)
def test_names_that_lead_out_are_refused_with_their_place(photos, load, name):
    with pytest.raises(ValueError, match=PLACES[load] + " must name a photo within") as caught:
        load(photos, name)
    shown = name if load not in FILEPATHS else f"{name}/x.jpg"
    assert repr(shown) in str(caught.value)
    assert "outside='allow'" in str(caught.value)


@pytest.mark.parametrize("load", PLACES)
def test_names_may_lead_out_where_that_is_allowed(photos, load):
    name = ".." if load in FILEPATHS else "../secret.jpg"
    if load in FILEPATHS:
        (photos.parent / "secret.jpg").rename(photos.parent / "x.jpg")
    paths = load(photos, name, outside="allow").paths
    assert paths[0] == photos / "a.jpg" or paths[1] == photos / "a.jpg"
    found = [path.read_bytes() for path in paths if path is not None]
    assert b"secret" in found


@pytest.mark.parametrize("name", WITHIN)
def test_odd_names_within_the_folder_are_found(photos, name):
    (photos / "deep").mkdir()
    (photos / name).write_bytes(b"photo")
    dataset = as_folder(photos, name)
    assert dataset.paths[1] == photos / name


@pytest.mark.parametrize("load", PLACES)
def test_links_that_lead_out_are_refused(photos, load):
    if load in FILEPATHS:
        (photos.parent / "elsewhere").mkdir()
        (photos.parent / "elsewhere" / "x.jpg").write_bytes(b"secret")
        name = "link"
        (photos / name).symlink_to(photos.parent / "elsewhere")
    else:
        name = "link.jpg"
        (photos / name).symlink_to(photos.parent / "secret.jpg")
    with pytest.raises(ValueError, match=PLACES[load] + ".*'link"):
        load(photos, name)
    assert len(load(photos, name, outside="allow")) == 2


def test_links_within_the_folder_and_to_the_folder_are_followed(photos):
    (photos / "link.jpg").symlink_to("beach/c.jpg")
    (photos.parent / "link").symlink_to(photos)
    dataset = as_folder(photos.parent / "link", "link.jpg")
    assert dataset.paths[1] == photos.parent / "link" / "link.jpg"


def test_a_linked_folder_that_a_name_goes_through_is_refused(photos):
    (photos / "out").symlink_to(photos.parent)
    with pytest.raises(ValueError, match=r"line 2 .*'out/secret.jpg'"):
        as_folder(photos, "out/secret.jpg")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_are_no_photos_and_no_captions(photos):
    os.mkfifo(photos / "pipe.jpg")
    with pytest.warns(DatasetWarning, match=r"photos that are not there .*: pipe.jpg"):
        assert len(as_folder(photos, "pipe.jpg")) == 1
    os.mkfifo(photos.parent / "captions")
    with pytest.raises(ValueError, match="captions must be a regular file"):
        load_folder(photos, photos.parent / "captions")


@pytest.mark.parametrize("load", [as_folder, as_karpathy, as_coco, as_flickr])
@pytest.mark.parametrize("name", ["x" * 5000 + ".jpg", "y/" * 3000 + "z.jpg", "a\0.jpg"])
def test_names_that_no_file_can_have_are_left_out(photos, load, name):
    with pytest.warns(DatasetWarning, match="captions of photos that are not there"):
        assert len(load(photos, name)) == 1


@pytest.mark.parametrize("load", PLACES)
def test_outside_must_be_one_of_two_words(photos, load):
    with pytest.raises(ValueError, match="outside must be one of 'refuse', 'allow', got True"):
        load(photos, "a.jpg", outside=True)
