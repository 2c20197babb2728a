import numpy as np
import pytest

from kernelcore.datasets import DatasetWarning, load_flickr

TOKENS = (
    "b.jpg#0\tA dog runs .\n"
    "b.jpg#1\tA hound races along .\n"
    "a.jpg#0\tA cat sleeps .\n"
    "c.jpg#0\tA man sits .\n"
)


def make_corpus(root, tokens=TOKENS, *, photos=("a.jpg", "b.jpg", "c.jpg"), **splits):
    root.mkdir(parents=True, exist_ok=True)
    content = tokens if isinstance(tokens, bytes) else tokens.encode()
    (root / "Tiny.token.txt").write_bytes(content)
    for name, text in splits.items():
        (root / f"Tiny.{name}Images.txt").write_text(text)
    if photos:
        (root / "images").mkdir(exist_ok=True)
        for photo in photos:
            (root / "images" / photo).write_bytes(b"")
    return root


def odd(root, match, **options):
    """Load with exactly one warning, which must match."""
    with pytest.warns(DatasetWarning, match=match) as caught:
        dataset = load_flickr(root, **options)
    assert len(caught) == 1
    return dataset


def test_captions_are_gathered_by_image_and_sorted_by_name(tmp_path):
    root = make_corpus(tmp_path, train="c.jpg\na.jpg\n", test="b.jpg\n")
    dataset = load_flickr(root)
    assert dataset.name == "Tiny"
    assert dataset.image_ids == ("a.jpg", "b.jpg", "c.jpg")
    assert dataset.captions[1] == ("A dog runs .", "A hound races along .")
    assert dataset.caption_ids[1] == ("b.jpg#0", "b.jpg#1")
    assert dataset.caption_numbers == ((0,), (0, 1), (0,))
    assert dataset.paths[0] == root / "images" / "a.jpg"
    assert list(dataset.splits) == ["train", "test"]
    np.testing.assert_array_equal(dataset.split("train"), [2, 0])
    np.testing.assert_array_equal(dataset.split("test"), [1])


def test_numbers_come_from_the_ids_and_rows_keep_their_order(tmp_path):
    root = make_corpus(tmp_path / "lonely", "a.jpg#4\tfour\na.jpg#2\ttwo\n", photos=())
    dataset = load_flickr(root)
    assert dataset.caption_numbers == ((4, 2),)
    assert dataset.captions == (("four", "two"),)


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        ({"train.txt": "a", "val.txt": "b", "test.txt": "c"}, ["train", "dev", "test"]),
        ({"test.txt": "c", "dev.txt": "b"}, ["dev", "test"]),
        ({"flickr30k_train.txt": "a", "flickr30k_val.txt": "b"}, ["train", "dev"]),
        ({"Flickr_8k.trainImages.txt": "a.jpg"}, ["train"]),
        ({"T.restvalImages.txt": "a.jpg", "T.testImages.txt": "b.jpg"}, ["test", "restval"]),
        ({"readme.txt": "a.jpg", "trainer.txt": "b.jpg", "._train.txt": "c"}, []),
    ],
)  # fmt: skip
def test_split_files_of_every_layout(tmp_path, files, splits):
    root = make_corpus(tmp_path)
    for name, text in files.items():
        (root / name).write_text(text)
    dataset = load_flickr(root)
    assert list(dataset.splits) == splits
    for split in splits:
        assert len(dataset.split(split)) == 1
    if "train" in splits:
        np.testing.assert_array_equal(dataset.split("train"), [0])


def test_two_lists_of_one_split_are_an_error(tmp_path):
    root = make_corpus(tmp_path, dev="a.jpg", val="b.jpg")
    with pytest.raises(ValueError, match=r"one list of split 'dev', got .*dev.* and .*val"):
        load_flickr(root)


def test_flickr30k_layout(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "results_20130124.token").write_text("10.jpg#0\tA man .\n")
    (tmp_path / "text" / "test.txt").write_text("10\n")
    (tmp_path / "flickr30k-images").mkdir()
    (tmp_path / "flickr30k-images" / "10.jpg").write_bytes(b"")
    dataset = load_flickr(tmp_path)
    assert dataset.name == "Flickr30k"
    assert dataset.paths == (tmp_path / "flickr30k-images" / "10.jpg",)
    np.testing.assert_array_equal(dataset.split("test"), [0])


def test_photos_are_found_below_and_beside_the_root(tmp_path):
    root = make_corpus(tmp_path / "home" / "text", photos=())
    beside = tmp_path / "home" / "Flicker8k_Dataset" / "inner"
    beside.mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        (beside / name).write_bytes(b"")
    assert load_flickr(root).paths[0] == beside / "a.jpg"
    deeper = root / "one" / "two"
    deeper.mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        (deeper / name).write_bytes(b"")
    assert load_flickr(root).paths[0] == deeper / "a.jpg"


def test_the_folder_with_most_of_the_photos_is_taken(tmp_path):
    root = make_corpus(tmp_path)
    (root / "a-few").mkdir()
    (root / "a-few" / "a.jpg").write_bytes(b"")
    assert load_flickr(root).paths[0] == root / "images" / "a.jpg"


def test_without_photos_the_paths_are_none(tmp_path):
    root = make_corpus(tmp_path / "lonely", photos=())
    assert load_flickr(root).paths == (None, None, None)


def test_named_folder_of_photos(tmp_path):
    root = make_corpus(tmp_path / "corpus")
    other = tmp_path / "elsewhere" / "deep" / "down"
    other.mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        (other / name).write_bytes(b"")
    assert load_flickr(root, images=other).paths[2] == other / "c.jpg"
    with pytest.raises(FileNotFoundError, match="images must be a folder of photos"):
        load_flickr(root, images=tmp_path / "none")
    with pytest.raises(NotADirectoryError, match="images must be a folder of photos"):
        load_flickr(root, images=root / "Tiny.token.txt")
    with pytest.raises(ValueError, match=r"such as 'a.jpg'; .* holds none of them"):
        load_flickr(root, images=tmp_path)


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    content = b"\xef\xbb\xbf" + TOKENS.replace("\n", "\r\n").encode()
    root = make_corpus(tmp_path, content, train="a.jpg\r\nb.jpg\r\n")
    dataset = load_flickr(root)
    plain = load_flickr(make_corpus(tmp_path / "plain"))
    assert dataset.image_ids == plain.image_ids
    assert dataset.captions == plain.captions
    assert dataset.caption_numbers == plain.caption_numbers
    assert len(dataset.split("train")) == 2


def test_only_line_feeds_end_lines(tmp_path):
    root = make_corpus(
        tmp_path / "lonely", "a.jpg#0\tone\u2028two\x85three\x0bfour\n", photos=()
    )
    assert load_flickr(root).captions == (("one\u2028two\x85three\x0bfour",),)


def test_tabs_after_the_first_belong_to_the_caption(tmp_path):
    root = make_corpus(tmp_path / "lonely", "a.jpg#0\tone\ttwo\n", photos=())
    assert load_flickr(root).captions == (("one\ttwo",),)


def test_other_encodings_name_file_and_line(tmp_path):
    root = make_corpus(tmp_path, b"a.jpg#0\tA cat .\nb.jpg#0\tA caf\xe9 .\n")
    with pytest.raises(ValueError, match=r"Tiny.token.txt must be UTF-8 .* 0xe9 in line 2"):
        load_flickr(root)
    root = make_corpus(tmp_path, train="")
    (root / "Tiny.trainImages.txt").write_bytes("a.jpg\nb.jpg".encode("utf-16"))
    with pytest.raises(
        ValueError, match=r"Tiny.trainImages.txt must be UTF-8 .* 0xff in line 1"
    ):
        load_flickr(root)


def test_truncated_lines_are_named(tmp_path):
    root = make_corpus(tmp_path, TOKENS + "c.jpg#1")
    dataset = odd(root, "1 lines cut off before the caption .*: line 5$")
    assert dataset.n_captions == 4


def test_empty_captions_are_named(tmp_path):
    root = make_corpus(tmp_path, TOKENS + "c.jpg#1\t \n\n")
    dataset = odd(root, r"1 empty captions \(left out\): c.jpg#1$")
    assert dataset.n_captions == 4


def test_repeated_numbers_keep_the_first(tmp_path):
    root = make_corpus(tmp_path, TOKENS + "b.jpg#1\tAnother .\n")
    dataset = odd(root, r"1 captions whose number came before \(kept the first\): b.jpg#1$")
    assert dataset.captions[1] == ("A dog runs .", "A hound races along .")


def test_captions_of_missing_photos_are_named(tmp_path):
    tokens = TOKENS + "".join(f"gone.jpg.1#{i}\tA ghost .\n" for i in range(5))
    root = make_corpus(tmp_path, tokens, train="a.jpg\n")
    dataset = odd(root, r"5 captions of photos that are not there \(left out\): gone.jpg.1#0, "
                        r"gone.jpg.1#1, gone.jpg.1#2 and 2 more$")  # fmt: skip
    assert dataset.image_ids == ("a.jpg", "b.jpg", "c.jpg")


def test_three_odd_rows_are_all_named(tmp_path):
    root = make_corpus(tmp_path, TOKENS + "".join(f"c.jpg#{i}\t\n" for i in (1, 2, 3)))
    odd(root, r"3 empty captions \(left out\): c.jpg#1, c.jpg#2, c.jpg#3$")


def test_a_name_in_full_comes_before_one_without_its_suffix(tmp_path):
    tokens = "x.jpg#0\tA dog .\nx.jpg.1#0\tA cat .\ny.jpg#0\tA man .\n"
    root = make_corpus(tmp_path / "lonely", tokens, photos=(), train="x.jpg\n", test="y\n")
    dataset = load_flickr(root)
    assert dataset.image_ids[dataset.split("train")[0]] == "x.jpg"
    assert dataset.image_ids[dataset.split("test")[0]] == "y.jpg"


def test_photos_without_captions_are_named(tmp_path):
    root = make_corpus(
        tmp_path, photos=("a.jpg", "b.jpg", "c.jpg", "d.JPG", "notes.txt", ".e.jpg")
    )
    dataset = odd(root, r"1 photos without captions \(left out\): d.JPG$")
    assert len(dataset) == 3


def test_unknown_and_repeated_names_in_a_split_are_named(tmp_path):
    root = make_corpus(tmp_path, train="a.jpg\nx.jpg\na.jpg\n", test="b.jpg\n")
    dataset = odd(
        root,
        "1 names in split 'train' that no captioned photo has: x.jpg; "
        r"1 names repeated in split 'train' \(kept the first\): a.jpg$",
    )
    np.testing.assert_array_equal(dataset.split("train"), [0])


def test_all_oddities_come_in_one_warning_that_points_here(tmp_path):
    tokens = TOKENS + "gone.jpg#0\tA ghost .\nc.jpg#7\t\nc.jpg#0\tTwice .\nc.jpg#9"
    root = make_corpus(tmp_path, tokens, train="a.jpg\nx.jpg\n")
    with pytest.warns(DatasetWarning) as caught:
        load_flickr(root)
    (warning,) = caught
    assert str(warning.message).count(";") == 4
    assert warning.filename == __file__


def test_split_of_another_corpus_is_an_error(tmp_path):
    root = make_corpus(tmp_path, train="x.jpg\ny.jpg\n")
    with pytest.raises(ValueError, match=r"split 'train' must name photos .* got 2 .*'x.jpg'"):
        load_flickr(root)


def test_an_image_in_two_splits_is_an_error(tmp_path):
    root = make_corpus(tmp_path, train="a.jpg\n", test="b.jpg\na.jpg\n")
    with pytest.raises(ValueError, match=r"one split only, got 'a.jpg' in 'train' and 'test'"):
        load_flickr(root)


def test_an_unknown_name_in_two_splits_is_an_error_too(tmp_path):
    root = make_corpus(tmp_path, train="a.jpg\nx.jpg\n", test="b.jpg\nx.jpg\n")
    with pytest.raises(ValueError, match=r"one split only, got 'x.jpg'"):
        load_flickr(root)


@pytest.mark.parametrize("content", ["", "\n\n", "no tab here", "a.jpg#0\t\n"])
def test_file_without_captions_is_an_error(tmp_path, content):
    root = make_corpus(tmp_path, content)
    with pytest.raises(ValueError, match=r"Tiny.token.txt must hold captions"):
        load_flickr(root)


def test_missing_and_wrong_roots(tmp_path):
    with pytest.raises(FileNotFoundError, match="root must be the folder of a corpus"):
        load_flickr(tmp_path / "none")
    with pytest.raises(ValueError, match=r"must hold a caption file .* load_folder"):
        load_flickr(tmp_path)
    file = tmp_path / "photo.txt"
    file.write_text("x")
    with pytest.raises(NotADirectoryError, match="got the file"):
        load_flickr(file)


def test_two_caption_files_are_an_error_but_by_products_are_not(tmp_path):
    root = make_corpus(tmp_path)
    (root / "._Tiny.token.txt").write_bytes(b"\x00\x05")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX" / "Other.token.txt").write_bytes(b"\x00\x05")
    (root / "Tiny.lemma.token.txt").write_text("a.jpg#0\tcat sleep .")
    assert load_flickr(root).captions[0] == ("A cat sleeps .",)
    (root / "Other.token").write_text(TOKENS)
    with pytest.raises(ValueError, match=r"one caption file, got Other.token, Tiny.token.txt"):
        load_flickr(root)


@pytest.mark.realdata
def test_flickr8k(data_root):
    root = data_root / "flickr8k"
    with pytest.warns(DatasetWarning) as caught:
        dataset = load_flickr(root)
    (warning,) = caught
    assert "5 captions of photos that are not there" in str(warning.message)
    assert "2258277193_586949ec62.jpg.1#0" in str(warning.message)
    assert repr(dataset) == (
        "CaptionedImages('Flickr8k', 8091 images, 40455 captions, "
        "train 6000, dev 1000, test 1000)"
    )
    assert all(numbers == (0, 1, 2, 3, 4) for numbers in dataset.caption_numbers)
    assert dataset.captions[0][1] == "A girl going into a wooden building ."
    assert tuple(path.name for path in dataset.paths) == dataset.image_ids
    assert dataset.image_ids[dataset.split("dev")[0]] == "2090545563_a4e66ec76b.jpg"
    members = np.concatenate(list(dataset.splits.values()))
    assert len(np.unique(members)) == 8000
