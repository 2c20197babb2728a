"""How ways to do the same work are timed."""

import warnings

import peers
import pytest
import timing


def test_ways_take_turns_and_are_checked_once():
    calls, checked = [], []

    def way(name):
        return lambda: calls.append(name) or name

    found = timing.compare(
        "work",
        {"kernelcore": way("a"), "kernelcore, again": way("b")},
        check=checked.append,
        rounds=3,
        read={"kernelcore, again": str.upper},
        before={"kernelcore": lambda: calls.append("before")},
    )
    assert calls == ["before", *["a", "b"] * 3]
    assert checked == ["a", "B"]
    assert {by: len(times) for by, times in found["seconds"].items()} == {
        "kernelcore": 3,
        "kernelcore, again": 3,
    }


def test_a_wrong_answer_stops_it():
    def check(answer):
        assert answer == 2

    with pytest.raises(AssertionError):
        timing.compare(
            "work", {"kernelcore": lambda: 2, "scipy": lambda: 3}, check=check, rounds=1
        )


def test_slow_ways_take_one_turn():
    found = timing.compare(
        "work", {"kernelcore": lambda: None}, check=lambda _: None, seconds=0.0, rounds=9
    )
    assert len(found["seconds"]["kernelcore"]) == 1


def test_absent_peers_are_named(monkeypatch):
    monkeypatch.setitem(peers.PEERS, "nobody", peers.Peer("nobody", "nobody_at_all"))
    found = timing.compare(
        "work",
        {"kernelcore": lambda: None, "nobody, in a loop": lambda: None},
        check=lambda _: None,
        rounds=1,
    )
    assert found["absent"] == ["nobody, in a loop"]
    assert list(found["seconds"]) == ["kernelcore"]


def test_what_peers_warn_of_is_theirs():
    def warn():
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    timing.compare("work", {"scipy": warn}, check=lambda _: None, rounds=1)
    with pytest.raises(DeprecationWarning):
        timing.compare("work", {"kernelcore": warn}, check=lambda _: None, rounds=1)


def test_threads_are_given_back():
    numba = pytest.importorskip("numba")
    before = numba.get_num_threads()
    with peers.threads(1):
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before


@pytest.mark.parametrize(
    ("way", "peer"), [("numpy, by sorting", "numpy"), ("kernelcore, scipy", None), ("x", None)]
)
def test_peers_by_name(way, peer):
    assert peers.peer_of(way) == peer
