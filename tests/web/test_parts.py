"""The parts of pages: the cache, pages of results, marked words, advice."""

import gc
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("starlette")

from kernelcore.search.collection import Ranking
from kernelcore.search.update import Changes
from kernelcore.web import pictures
from kernelcore.web.pages import PER_PAGE, advice, marked, results_page, tiles_of
from kernelcore.web.pictures import Recent
from kernelcore.web.site import Site, sentence_about


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ("a3 b3 c3 a? d3", "acd"),  # the least recently used one goes first
        ("a4 b6", "ab"),  # sizes may sum up to the limit
        ("a4 b6 a? c1", "ac"),
        ("a6 a6 a6 b4", "ab"),  # one that is put again counts once
        ("b10 a11", "b"),  # too large ones are not kept
        ("b10 b11", ""),
    ],
)
def test_values_are_kept_up_to_a_size(steps, kept):
    recent = Recent(most=10)
    for step in steps.split():
        if step[1:] == "?":
            recent.get(step[0])
        else:
            recent.put(step[0], step, size=int(step[1:]))
    assert "".join(key for key in "abcd" if recent.get(key)) == kept


def test_values_that_were_not_used_for_long_are_dropped(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(pictures.time, "monotonic", lambda: now[0])
    recent = Recent(most=10, seconds=60)
    for key in "ab":
        recent.put(key, key, size=1)
    for later, kept in ((50, "a"), (20, "a"), (60, "a"), (61, "")):
        now[0] += later
        assert recent.get("a") == (kept or None)
    assert recent.get("b") is None


def test_kept_searches_take_no_more_memory_than_is_counted(photos, monkeypatch):
    """Long sentences about few photos: Python's own objects are what takes memory."""
    most = 2**18
    monkeypatch.setattr("kernelcore.web.site._KEPT_BYTES", most)
    site = Site(photos)
    photos.search("dog")  # what it imports and keeps for all searches is not counted
    photos.queries.clear()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            sentence = f"{number} " + 500 * "é"
            site.order("sentence", sentence, lambda: photos.search("dog"))
            photos.queries.clear()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1.2 * most
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("n_fitting", "first", "second"),
    [
        (50, (48, 0), (2, 10)),
        (48, (48, 0), (0, 12)),
        (0, (0, 48), (0, 12)),
        (60, (48, 0), (12, 0)),
        (None, (48, 0), (12, 0)),
    ],
)
def test_the_line_divides_each_page(photos, n_fitting, first, second):
    order = Ranking(photos.numbers(), n_fitting)
    for start, expected, following in (
        (0, first, 48),
        (48, second, None),
        (10**15, (0, 0), None),
    ):
        page = results_page(photos, order, start)
        assert (page.total, page.start, page.next_start) == (60, start, following)
        assert (len(page.above), len(page.below)) == expected
        positions = [tile.position for tile in page.above + page.below]
        assert positions == list(range(start + 1, start + 1 + sum(expected)))
    assert results_page(photos, Ranking(order.numbers[:PER_PAGE]), 0).next_start is None


def test_photos_that_have_gone_are_left_out(photos):
    page = results_page(photos, Ranking(np.array([10, 11, 13, 16]), 3), 0)
    assert [(tile.number, tile.position) for tile in page.above] == [(10, 1), (13, 3)]
    assert [tile.number for tile in page.below] == [16]


def test_tiles_have_printable_names_and_addresses_that_change_with_the_content(photos):
    photos.names[10] = "a\x1b[2J\n\udcff.jpg"
    [tile] = tiles_of(photos, [10])
    assert tile.name == r"a\x1b[2J\n\udcff.jpg"
    assert tile.picture("small") == f"/photo/10/small.jpg?v={photos.digest(10)[:16]}"


@pytest.mark.parametrize(
    ("sentence", "shares", "found"),
    [
        (
            "The red dog, the dog's ball.",
            {"red": 0.1, "dog": 0.6, "ball": 0.3},
            {"red": (1, 10), "dog": (3, 60), "ball": (2, 30)},
        ),
        (
            "a dog runs",
            {"dog": 0.02, "runs": 0.02, "a": -5.0},
            {"dog": (3, 50), "runs": (3, 50)},
        ),
        ("Dog bites dog", {"DOG": 0.4, "dog": 0.1}, {"Dog": (3, 80), "dog": (3, 80)}),
        ("dog runs", {"dog": 0.04, "runs": 0.96}, {"dog": (0, 4), "runs": (3, 96)}),
        ("a dog", {}, {}),
        ("a dog", {"dog": 0.0}, {}),
        ("a dog", {"dog": -1.0}, {}),
    ],
)
def test_words_are_marked_by_their_parts_of_what_helped(sentence, shares, found):
    pieces = marked(sentence, list(shares.items()))
    assert "".join(piece.text for piece in pieces) == sentence
    assert {p.text: (p.strength, p.percent) for p in pieces if p.percent} == found
    assert all(piece.strength == 0 for piece in pieces if not piece.percent)


@pytest.mark.parametrize(
    ("sentence", "word", "near", "better"),
    [
        ("Catt on a catt-tree, catty", "catt", r"cat\1", r"cat\1 on a cat\1-tree, catty"),
        ("what is a c++ (dog)", "c++", "cat", "what is a cat (dog)"),
    ],
)
def test_known_words_replace_unknown_ones_only_where_they_stand_alone(
    sentence, word, near, better
):
    assert advice(sentence, {word: (near, "x")})[0][1][0] == (near, better)
    assert advice(sentence, {}) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((0, 0), "No new photos."),
        ((1, 0), "1 photo added."),
        ((1200, 3), "1,200 photos added, 3 removed."),
        ((0, 1), "1 photo removed."),
        ((0, 0, ("a", "b")), "No new photos. 2 files cannot be read."),
    ],
)
def test_an_update_is_told_in_a_sentence(changes, said):
    assert sentence_about(Changes(*changes)) == said
