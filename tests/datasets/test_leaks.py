"""The same photo in two collections is found whatever it is called."""

import numpy as np
import pytest

from kernelcore.datasets import CaptionedImages, Leak, find_leaks, load_folder, make_scenes

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)


def collection(**photos):
    frame = {
        "id": list(photos),
        "image": list(photos.values()),
        "caption": ["A photo."] * len(photos),
    }
    return CaptionedImages.from_frame(frame, image_id="id")


def test_files_of_other_names(tmp_path):
    make_scenes(6, size=(32, 40)).write(tmp_path)
    files = sorted((tmp_path / "images").iterdir())
    for folder, numbers in (("old", (0, 1, 2)), ("new", (3, 2, 1))):
        (tmp_path / folder).mkdir()
        rows = []
        for k, number in enumerate(numbers):
            (tmp_path / folder / f"{folder}{k}.png").write_bytes(files[number].read_bytes())
            rows.append(f"{folder}{k}.png\tA picture.\n")
        (tmp_path / f"{folder}.tsv").write_text("".join(rows))
    old, new = (load_folder(tmp_path / f, tmp_path / f"{f}.tsv") for f in ("old", "new"))
    assert find_leaks(old, new) == (
        Leak(("old1.png",), ("new2.png",)),
        Leak(("old2.png",), ("new1.png",)),
    )
    assert find_leaks(new.subset([0]), old) == ()


def test_all_ids_of_a_photo_are_named():
    train = collection(a=b"one", b=b"two", c=b"one", d=b"six")
    test = collection(e=b"one", f=b"three", g=b"two", h=b"two")
    assert find_leaks(train, test) == (
        Leak(("a", "c"), ("e",)),
        Leak(("b",), ("g", "h")),
    )


def test_pixels_are_compared_however_they_are_held():
    pillow = pytest.importorskip("PIL.Image")
    train = collection(a=PIXELS[0], b=PIXELS[1], c=PIXELS[2].reshape(4, 16, 3))
    test = collection(
        d=pillow.fromarray(PIXELS[1]), e=np.asfortranarray(PIXELS[0]), f=PIXELS[2]
    )
    assert find_leaks(train, test) == (Leak(("a",), ("e",)), Leak(("b",), ("d",)))


def test_palettes_count():
    pillow = pytest.importorskip("PIL.Image")
    red, blue = (pillow.new("P", (4, 4)) for _ in range(2))
    red.putpalette([255, 0, 0])
    blue.putpalette([0, 0, 255])
    assert find_leaks(collection(a=red), collection(b=blue)) == ()
    assert len(find_leaks(collection(a=red), collection(b=red.copy()))) == 1


def test_photos_behind_a_function_are_read():
    train = CaptionedImages.from_dataset([(PIXELS[0], "A."), (b"bytes", "B.")])
    test = collection(x=PIXELS[0], y=b"bytes")
    assert find_leaks(train, test) == (Leak(("0",), ("x",)), Leak(("1",), ("y",)))


def test_only_files_of_a_length_in_both_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in (("a", b"12"), ("b", b"123"), ("c", b"21"), ("d", b"1")):
        (tmp_path / name).write_bytes(content)
    train = CaptionedImages.from_pairs([("a", "A."), ("b", "B.")])
    test = CaptionedImages.from_pairs([("c", "C."), ("d", "D.")])
    read = []
    from kernelcore.datasets import leaks

    digest = leaks.digest
    monkeypatch.setattr(leaks, "digest", lambda *a: read.append(str(a[1])) or digest(*a))
    assert find_leaks(train, test) == ()
    assert read == ["a", "c"]


def test_what_cannot_be_compared_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="train must be CaptionedImages, got type list"):
        find_leaks([], [])
    scenes = make_scenes(2, size=(32, 32)).dataset
    with pytest.raises(
        ValueError, match="test must have a photo of each image, got none of 's"
    ):
        find_leaks(collection(a=b"x"), scenes)
    (tmp_path / "a").write_bytes(b"x")
    gone = CaptionedImages.from_pairs([("a", "A.")])
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError):
        find_leaks(gone, gone)
