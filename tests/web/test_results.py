import numpy as np
import pytest

pytest.importorskip("starlette")

from kernelcore.web.results import PER_PAGE, Order, results_page, tiles_of


def positions(photos):
    return [found.position for found in photos]


def test_the_line_divides_each_page(photos):
    numbers = photos.numbers()
    for n_fitting, first, second in (
        (50, (48, 0), (2, 10)),
        (48, (48, 0), (0, 12)),
        (0, (0, 48), (0, 12)),
        (60, (48, 0), (12, 0)),
        (None, (48, 0), (12, 0)),
    ):
        order = Order(numbers, n_fitting)
        for start, expected in ((0, first), (PER_PAGE, second)):
            page = results_page(photos, order, start)
            assert (len(page.above), len(page.below)) == expected
            both = positions(page.above) + positions(page.below)
            assert both == list(range(start + 1, start + 1 + len(both)))


def test_pages_follow_one_another_to_the_end(photos):
    order = Order(photos.numbers())
    page = results_page(photos, order, 0)
    assert (page.total, page.start, page.next_start) == (60, 0, 48)
    page = results_page(photos, order, 48)
    assert (page.start, page.next_start, len(page.above)) == (48, None, 12)
    page = results_page(photos, order, 10**15)
    assert (page.next_start, page.above, page.below) == (None, [], [])
    exact = Order(photos.numbers()[:PER_PAGE])
    assert results_page(photos, exact, 0).next_start is None


def test_photos_that_have_gone_are_left_out(photos):
    order = Order(np.array([10, 11, 13, 16]), 3)
    page = results_page(photos, order, 0)
    assert [found.tile.number for found in page.above] == [10, 13]
    assert positions(page.above) == [1, 3]
    assert [found.tile.number for found in page.below] == [16]


def test_names_are_printable(photos):
    photos.names[10] = "a\x1b[2J\n\udcff.jpg"
    photos.texts[photos.names[10]] = ["a dog"]
    [tile] = tiles_of(photos, [10])
    assert tile.name == r"a\x1b[2J\n\udcff.jpg"


@pytest.mark.parametrize("size", ["small", "large"])
def test_addresses_of_pictures_change_with_the_content(photos, size):
    [tile] = tiles_of(photos, [10])
    assert tile.picture(size) == f"/photo/10/{size}.jpg?v={photos.digest(10)[:16]}"
