"""Captions and splits that are written in the layout of Flickr8k and read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcore.datasets import CaptionedImages, load_flickr, write_flickr


def fields(dataset):
    """Everything but the paths, in a form that can be compared."""
    return (
        dataset.image_ids,
        dataset.captions,
        dataset.caption_ids,
        dataset.caption_numbers,
        {name: members.tolist() for name, members in dataset.splits.items()},
    )


def corpus_of(images, splits=()):
    ids = tuple(images)
    return CaptionedImages(
        name="drawn",
        image_ids=ids,
        paths=(None,) * len(ids),
        captions=tuple(tuple(images[i].values()) for i in ids),
        caption_ids=tuple(tuple(f"{i}#{n}" for n in images[i]) for i in ids),
        caption_numbers=tuple(tuple(images[i]) for i in ids),
        splits=dict(splits),
    )


texts = (
    st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), min_size=1)
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("\ufeff"))
)
names = (
    st.text(
        st.characters(blacklist_characters="\t\n/", blacklist_categories=["Cs"]), min_size=1
    )
    .map(str.strip)
    .filter(lambda text: text and not text.startswith("\ufeff"))
)


@given(
    images=st.dictionaries(
        names,
        st.dictionaries(st.integers(0, 10**9 - 1), texts, min_size=1, max_size=4),
        min_size=1,
        max_size=5,
    ),
    data=st.data(),
)
def test_what_is_written_is_read_back(tmp_path_factory, images, data):
    images = dict(sorted(images.items()))
    order = data.draw(st.permutations(range(len(images))))
    cut = data.draw(st.integers(0, len(images)))
    splits = {"train": order[:cut], "test": order[cut:]}
    splits = {name: members for name, members in splits.items() if members}
    dataset = corpus_of(images, splits)
    root = tmp_path_factory.mktemp("round") / "trip"
    write_flickr(dataset, root)
    assert fields(load_flickr(root, outside="allow")) == fields(dataset)  # any name at all


@pytest.mark.parametrize(
    ("image_id", "text", "message"),
    [
        ("a.jpg", "two\nlines", "captions must be single trimmed lines"),
        ("a.jpg", " padded", "captions must be single trimmed lines"),
        ("a.jpg", "", "captions must be single trimmed lines"),
        ("a\t.jpg", "text", "image_ids must be without white space"),
        ("a.jpg ", "text", "image_ids must be without white space"),
        ("", "text", "image_ids must be without white space"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, image_id, text, message):
    with pytest.raises(ValueError, match=message):
        write_flickr(corpus_of({image_id: {0: text}}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.realdata
def test_coco_captions_survive_the_round_trip(data_root, tmp_path):
    images = {}
    table = data_root / "coco" / "karpathy_test5k_captions.tsv"
    for line in table.read_text(encoding="utf-8").splitlines():
        image, _, text = line.split("\t")
        captions = images.setdefault(image, {})
        captions[len(captions)] = text
    dataset = corpus_of(dict(sorted(images.items())))
    write_flickr(dataset, tmp_path)
    assert (len(dataset), dataset.n_captions) == (5000, 25000)
    assert fields(load_flickr(tmp_path)) == fields(dataset)
