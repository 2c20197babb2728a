"""The page of results, from results made up here."""

import growth_plot
import performance
import pytest
import record
from measures import newest_set

ENTRY = {
    "work": "ranks streamed from embeddings",
    "n_threads": 2,
    "shape": "10 x 10",
    "size": 3.6e12,
    "unit": "multiply-adds",
    "seconds": {"kernelcore": [2.0, 1.0], "scipy": [4.0]},
    "absent": ["torch"],
}
RESULTS = {"speed": {"ranks streamed from embeddings, 2 threads": ENTRY}}


def test_peers_stand_in_times_of_ours():
    rows = [row[2:] for row in performance.peer_rows(RESULTS)]
    assert rows == [
        ("kernelcore", "2", "1", "1"),
        ("scipy", "1", "4", "4"),
        ("torch", "", "not measured here", ""),
    ]


def test_ranks_on_paper():
    # 400,000^2 * 512 multiply-adds at 3.6e12 a second
    assert "0.0 hours" in performance.on_paper(RESULTS)
    slow = {"speed": {name: {**ENTRY, "size": 1e10} for name in RESULTS["speed"]}}
    assert "2.3 hours" in performance.on_paper(slow)
    assert "640 GB" in performance.on_paper(slow)
    assert "not measured here" in performance.on_paper({"speed": {}})


def test_newest_set():
    assert newest_set({"v2": 0, "v4": 0, "v3": 0, "commit": "zzz"}) == "v4"


def test_growth_is_drawn_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    curves = {"sorting, rows": {"sizes": [1, 2], "seconds": [1.0, 2.0], "exponent": 1.0}}
    for name in ("one.svg", "two.svg"):
        growth_plot.draw(curves, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_results_are_kept_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert not record.is_stored("speed", "a")
    record.store("speed", "a", {"seconds": 1.0})
    record.store("speed", "b", {"seconds": 2.0})
    record.store("speed", "a", {"seconds": 3.0})
    kept = record.load("speed")["measurements"]
    assert {key: entry["seconds"] for key, entry in kept.items()} == {"a": 3.0, "b": 2.0}
    assert kept["a"]["commit"] == record.commit()
