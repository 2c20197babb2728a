import gc
import tracemalloc

import pytest

pytest.importorskip("starlette")

from kernelcore.web import recent as module
from kernelcore.web.recent import Recent
from kernelcore.web.site import Site


@pytest.fixture
def clock(monkeypatch):
    """Return the time that the module sees, in a list of one element."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_the_least_recently_used_value_goes_first():
    recent = Recent(most=10)
    for key in "abc":
        recent.put(key, key, size=3)
    assert recent.get("a") == "a"
    recent.put("d", "d", size=3)
    assert [recent.get(key) for key in "abcd"] == ["a", None, "c", "d"]


def test_sizes_may_sum_up_to_the_limit():
    recent = Recent(most=10)
    recent.put("a", 1, size=4)
    recent.put("b", 2, size=6)
    assert recent.get("a") == 1
    recent.put("c", 3, size=1)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_that_is_put_again_counts_once():
    recent = Recent(most=10)
    for value in range(5):
        recent.put("a", value, size=6)
    recent.put("b", "b", size=4)
    assert (recent.get("a"), recent.get("b")) == (4, "b")


def test_what_is_too_large_is_not_kept():
    recent = Recent(most=10)
    recent.put("b", "b", size=10)
    recent.put("a", "a", size=11)
    assert (recent.get("a"), recent.get("b")) == (None, "b")
    recent.put("b", "c", size=11)
    assert recent.get("b") is None


def test_values_are_dropped_when_they_were_not_used_for_long(clock):
    recent = Recent(most=10, seconds=60)
    recent.put("a", "a", size=1)
    recent.put("b", "b", size=1)
    clock[0] += 50
    assert recent.get("a") == "a"
    clock[0] += 20
    assert recent.get("b") is None
    assert recent.get("a") == "a"
    clock[0] += 60
    assert recent.get("a") == "a"
    clock[0] += 61
    assert recent.get("a") is None


def test_kept_searches_take_no_more_memory_than_is_counted(photos, monkeypatch):
    """Long sentences about few photos: Python's own objects are what takes memory."""
    most = 2**18
    monkeypatch.setattr("kernelcore.web.site._KEPT_BYTES", most)
    site = Site(photos, gate=None, cache_dir=None)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            site.by_sentence(f"{number} " + 500 * "é")
            photos.queries.clear()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1.2 * most
    finally:
        tracemalloc.stop()
