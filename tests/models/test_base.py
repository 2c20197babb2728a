"""Images and captions in either form, and how a share of them is held out."""

import numpy as np

from kernelcore.models.base import Pairs, dev_parts, held_out, is_nested


def test_both_forms_are_the_same_pairs():
    nested = Pairs.of("abc", [["x", "y"], [], ["z"]])
    flat = Pairs.of("abc", ["x", "y", "z"], [0, 0, 2])
    for pairs in (nested, flat):
        assert (pairs.captions, pairs.caption_image.tolist()) == (["x", "y", "z"], [0, 0, 2])
    compact = flat.compact()
    assert (compact.images, compact.caption_image.tolist()) == (["a", "c"], [0, 0, 1])
    assert Pairs.of("ab", ["x", "y"]).caption_image.tolist() == [0, 1]
    assert dev_parts(("a", "b")) == ("a", "b", None)
    assert dev_parts(["a", "b", [0]]) == ("a", "b", [0])


def test_strings_in_lists_are_nested_and_numbers_are_not():
    assert is_nested([["a dog"], []])
    assert is_nested((("a dog",), ["it runs"]))
    for flat in (["a dog"], "a dog", [[0.5]], np.eye(2), [], [["a"], "b"]):
        assert not is_nested(flat)


def test_no_image_is_on_both_sides():
    owners = np.array([3, 3, 0, 1, 5, 5, 5, 2, 4, 0])
    pairs = Pairs.of("abcdef", list("0123456789"), owners)
    kept, left_out = map(pairs.select, held_out(pairs.caption_image))
    assert sorted([*kept.captions, *left_out.captions]) == list("0123456789")
    assert not set(kept.caption_image) & set(left_out.caption_image)
    assert len(set(left_out.caption_image)) == 1
    first, second = held_out(np.arange(10))
    assert (len(first), len(second)) == (8, 2)
    np.testing.assert_array_equal(second, held_out(np.arange(10))[1])
