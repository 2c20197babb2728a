import pytest

from kernelcore.datasets import DatasetWarning, load_folder


@pytest.fixture
def folder(tmp_path):
    photos = tmp_path / "holiday"
    (photos / "beach").mkdir(parents=True)
    for name in ("a.jpg", "b.png", "beach/c.jpg"):
        (photos / name).write_bytes(b"")
    return photos


def captions(folder, text, name="captions.txt"):
    path = folder.parent / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


EXPECTED = (("A dog.", "A hound."), ("A cat, asleep.",), ('A "big" sea.',))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "plain.tsv",
            "a.jpg\tA dog.\na.jpg\tA hound.\nb.png\tA cat, asleep.\n"
            'beach/c.jpg\tA "big" sea.\n',
        ),
        (
            "flickr.txt",
            "a.jpg#0\tA dog.\na.jpg#1\tA hound.\nb.png#0\tA cat, asleep.\n"
            'beach/c.jpg#0\tA "big" sea.',
        ),
        (
            "table.csv",
            'image,caption\na.jpg,A dog.\na.jpg,A hound.\nb.png,"A cat, asleep."\n'
            'beach/c.jpg,"A ""big"" sea."\n',
        ),
        (
            "more.txt",
            "\ufeffid, Caption ,IMAGE\r\n1,A dog.,a.jpg\r\n2,A hound.,a.jpg\r\n"
            '3,"A cat, asleep.",b.png\r\n\r\n4,"A ""big"" sea.",beach/c.jpg\r\n',
        ),
        (
            "quoted.csv",
            '"image","caption"\n"a.jpg","A dog."\n"a.jpg","A hound."\n'
            '"b.png","A cat, asleep."\n"beach/c.jpg","A ""big"" sea."\n',
        ),
    ],
)
def test_every_form_of_caption_file(folder, name, text):
    dataset = load_folder(folder, captions(folder, text, name))
    assert dataset.name == "holiday"
    assert dataset.image_ids == ("a.jpg", "b.png", "beach/c.jpg")
    assert dataset.captions == EXPECTED
    assert dataset.caption_numbers == ((0, 1), (0,), (0,))
    assert dataset.caption_ids[0] == ("a.jpg#0", "a.jpg#1")
    assert dataset.paths == (folder / "a.jpg", folder / "b.png", folder / "beach" / "c.jpg")
    assert dataset.splits == {}


def test_oddities_come_in_one_warning(folder):
    text = "a.jpg\tA dog.\nz.jpg\tLost.\na.jpg\t\ncut off\nbeach/c.jpg\tSea.\n"
    with pytest.warns(DatasetWarning) as caught:
        dataset = load_folder(folder, captions(folder, text))
    (warning,) = caught
    message = str(warning.message)
    assert "1 lines cut off before the caption (left out): line 4" in message
    assert "1 empty captions (left out): a.jpg" in message
    assert "1 captions of photos that are not there (left out): z.jpg" in message
    assert "1 photos without captions (left out): b.png" in message
    assert dataset.image_ids == ("a.jpg", "beach/c.jpg")
    assert warning.filename == __file__


def test_rows_of_another_length_are_named(folder):
    text = "image,caption\na.jpg,A dog.\nb.png,A cat, asleep.\nb.png,A cat.\nbeach/c.jpg\n"
    with pytest.warns(DatasetWarning, match=r"2 rows not as long .*: line 3, line 5"):
        dataset = load_folder(folder, captions(folder, text))
    assert dataset.captions == (("A dog.",), ("A cat.",))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.csv", "photo,text\na.jpg,A dog.\n", "header that names 'image' and 'caption'"),
        ("c.csv", "", "header that names 'image' and 'caption'"),
        ("c.txt", "", "must hold captions of photos, got none"),
        ("c.txt", "image,caption\n", "must hold captions of photos, got none"),
        ("c.txt", "A dog without a name\n", "1 lines cut off before the caption"),
        ("c.txt", "z.jpg\tA dog.\n", r"images_dir must hold the photos .* such as 'z.jpg'"),
        ("c.csv", 'image,caption\na.jpg,"A dog.\nb.png,A cat.\n', "line 3 is not valid CSV"),
        ("c.csv", 'image,caption\na.jpg,"A" dog.\n', "line 2 is not valid CSV"),
    ],
)
def test_broken_files(folder, name, text, message):
    with pytest.raises(ValueError, match=message):
        load_folder(folder, captions(folder, text, name))


def test_missing_folder_and_file(folder):
    path = captions(folder, "a.jpg\tA dog.\n")
    with pytest.raises(FileNotFoundError, match="images_dir must be a folder of photos"):
        load_folder(folder / "none", path)
    with pytest.raises(NotADirectoryError, match="images_dir must be a folder of photos"):
        load_folder(path, path)
    with pytest.raises(FileNotFoundError):
        load_folder(folder, folder / "none.txt")


def test_other_encodings_name_the_line(folder):
    path = folder.parent / "captions.txt"
    path.write_bytes(b"a.jpg\tA dog.\nb.png\tA caf\xe9.\n")
    with pytest.raises(ValueError, match=r"captions.txt must be UTF-8 .* line 2"):
        load_folder(folder, path)
