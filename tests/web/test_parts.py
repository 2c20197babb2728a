"""The parts of pages: the cache, pictures, pages of results, marked words, advice."""

import gc
import tracemalloc

import numpy as np
import pytest
from refusals import refuses

pytest.importorskip("httpx2")

from kernelcore.images import UnreadableImageError, read_image
from kernelcore.search.collection import Ranking
from kernelcore.web import pictures as module
from kernelcore.web.pages import PER_PAGE, advice, marked, results_page, tiles_of
from kernelcore.web.pictures import SIDES, Pictures, Recent, draw
from kernelcore.web.site import Site

STEPS = {
    "a3 b3 c3 a? d3": "acd",  # the least recently used one goes first
    "a4 b6": "ab",  # sizes may sum up to the limit
    "a4 b6 a? c1": "ac",
    "a6 a6 a6 b4": "ab",  # one that is put again counts once
    "b10 a11": "b",  # too large ones are not kept
    "b10 b11": "",
}


@pytest.mark.parametrize(("steps", "kept"), STEPS.items())
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
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    recent = Recent(most=10, seconds=60)
    for key in "ab":
        recent.put(key, key, size=1)
    for later, kept in ((50, "a"), (20, "a"), (60, "a"), (61, None)):
        now[0] += later
        assert recent.get("a") == kept
    assert recent.get("b") is None


def test_kept_searches_take_no_more_memory_than_is_counted(photos, monkeypatch):
    """Long sentences about few photos: Python's own objects are what takes memory."""
    most = 2**18
    monkeypatch.setattr("kernelcore.web.site._KEPT_BYTES", most)
    site = Site(photos)
    numbers = photos.numbers()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            sentence = f"{number} " + 900 * "🐶"
            site.order("sentence", sentence, lambda: Ranking(numbers.copy(), 3))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1.2 * most
    finally:
        tracemalloc.stop()


LINES = [(50, (48, 0), (2, 10)), (48, (48, 0), (0, 12)), (0, (0, 48), (0, 12))]
LINES += [(n, (48, 0), (12, 0)) for n in (60, None)]


@pytest.mark.parametrize(("n_fitting", "first", "second"), LINES)
def test_the_line_divides_each_page(photos, n_fitting, first, second):
    order = Ranking(photos.numbers(), n_fitting)
    pages = (0, first, 48), (48, second, None), (10**15, (0, 0), None)
    for start, expected, following in pages:
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


BALL = {"red": 0.1, "dog": 0.6, "ball": 0.3}, {"red": (1, 10), "dog": (3, 60), "ball": (2, 30)}
SMALL = {"dog": 0.02, "runs": 0.02, "a": -5.0}, {"dog": (3, 50), "runs": (3, 50)}


@pytest.mark.parametrize(
    ("sentence", "shares", "found"),
    [
        ("The red dog, the dog's ball.", *BALL),
        ("a dog runs", *SMALL),
        ("Dog bites dog", {"DOG": 0.4, "dog": 0.1}, {"Dog": (3, 80), "dog": (3, 80)}),
        ("dog runs", {"dog": 0.04, "runs": 0.96}, {"dog": (0, 4), "runs": (3, 96)}),
        ("a dog", {"dog": 0.0}, {}),
    ],
)
def test_words_are_marked_by_their_parts_of_what_helped(sentence, shares, found):
    pieces = marked(sentence, list(shares.items()))
    assert "".join(piece.text for piece in pieces) == sentence
    assert {p.text: (p.strength, p.percent) for p in pieces if p.percent} == found
    assert all(piece.strength == 0 for piece in pieces if not piece.percent)


def test_known_words_replace_unknown_ones_only_where_they_stand_alone():
    [(_, [found, *_])] = advice("Catt on a catt-tree, catty", {"catt": (r"cat\1", "x")})
    assert found == (r"cat\1", r"cat\1 on a cat\1-tree, catty")
    assert advice("is it c++ (dog)", {"c++": ("cat",)})[0][1] == [("cat", "is it cat (dog)")]


SHRUNK = [((960, 1200), (384, 480)), ((1200, 960), (480, 384)), ((100, 7), (100, 7))]
SHRUNK = [(shape, "small", size) for shape, size in [*SHRUNK, ((1, 5000), (1, 480))]]
SHRUNK += [((1200, 960), "large", (1200, 960)), ((800, 3200), "large", (400, 1600))]


@pytest.mark.parametrize(("shape", "size", "expected"), SHRUNK)
def test_pictures_are_shrunk_to_their_size(shape, size, expected):
    picture = draw(np.full((*shape, 3), (200, 30, 90), np.uint8), size)
    assert (picture.height, picture.width) == expected
    pixels = read_image(picture.jpeg)
    assert pixels.shape == (*expected, 3)
    assert np.abs(pixels.mean((0, 1)) - (200, 30, 90)).max() < 3  # RGB, not BGR


def test_a_picture_is_made_once(photos, monkeypatch):
    made = []
    read = lambda path: made.append(path) or read_image(path)  # noqa: E731
    monkeypatch.setattr(module, "read_image", read)
    pictures = Pictures(photos)
    assert pictures.of(10, "small") == pictures.of(10, "small")
    assert made == [photos.path(10)]
    pictures.of(10, "large")
    pictures.of(13, "small")
    assert len(made) == 3
    refuses(KeyError, "11", pictures.of, 11, "small")
    photos.names[10] = "gone.jpg"
    refuses(UnreadableImageError, "gone.jpg", pictures.of, 10, "small")


def test_browsers_keep_pictures_whose_address_has_their_mark(client, photos):
    mark, tags = photos.digest(10)[:16], set()
    for size in SIDES:
        answer = client.get(f"/photo/10/{size}.jpg?v={mark}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert read_image(answer.content).shape == (48, 64, 3)
        tag = answer.headers["etag"]
        tags.add(tag)
        for address in (f"/photo/10/{size}.jpg", f"/photo/10/{size}.jpg?v=0"):
            other = client.get(address)
            assert other.headers["cache-control"] == "private, no-cache"
            assert other.content == answer.content
            same = client.get(address, headers={"If-None-Match": tag})
            assert (same.status_code, same.content) == (304, b"")
            assert same.headers["etag"] == tag
            assert client.get(address, headers={"If-None-Match": '"x"'}).status_code == 200
    assert len(tags) == len(SIDES)


def test_no_metadata_reaches_browsers(client, photos, tmp_path, jpeg):
    marked = jpeg[:2] + b"\xff\xfe\x00\x0dSECRETPLACE" + jpeg[2:]
    (tmp_path / "photo.jpg").write_bytes(marked)
    photos.folder = tmp_path
    photos.names[10] = "photo.jpg"
    photos.texts["photo.jpg"] = ["a dog"]
    answer = client.get("/photo/10/large.jpg")
    assert answer.status_code == 200
    assert b"SECRET" in marked
    assert b"SECRET" not in answer.content


def test_files_that_are_not_there(client, photos):
    photos.names[13] = "gone.jpg"
    pictures = ("11/small.jpg", "10/huge.jpg", "10/small.png", "10/.jpg", "13/small.jpg")
    files = ("", "page.py", "base.html.j2", "page.css.map")
    for address in (*(f"photo/{name}" for name in pictures), *(f"static/{f}" for f in files)):
        assert client.get(f"/{address}").status_code == 404, address


def test_files_of_the_pages(client):
    text, kinds = client.get("/").text, {"icon.svg": "image/svg+xml"}
    kinds |= {"page.css": "text/css; charset=utf-8"}
    kinds |= {"page.js": "text/javascript; charset=utf-8"}
    for name, kind in kinds.items():
        start = text.index(f"/static/{name}")
        answer = client.get(text[start : text.index('"', start)])
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert "immutable" in answer.headers["cache-control"]
        assert client.get(f"/static/{name}").headers["cache-control"] == "private, no-cache"
