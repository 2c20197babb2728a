"""The ledger adds up, whoever writes it and however often."""

import json
from concurrent.futures import ThreadPoolExecutor

from fuzz import ledger


def entry(executions, seconds=1.0, findings=0):
    return ledger.Entry(executions=executions, seconds=seconds, findings=findings)


def test_counts_add_up_by_target_and_commit(tmp_path):
    path = tmp_path / "ledger.json"
    ledger.add("a", "one", entry(3, 0.5, 1), path)
    ledger.add("a", "one", entry(4, 0.25), path)
    ledger.add("a", "two", entry(5), path)
    ledger.add("b", "one", entry(6), path)
    assert ledger.read(path) == {
        "a": {"one": entry(7, 0.8, 1), "two": entry(5)},
        "b": {"one": entry(6)},
    }
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.json"]


def test_many_writers_lose_nothing(tmp_path):
    path = tmp_path / "ledger.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ledger.add("a", "one", entry(1), path), range(100)))
    assert ledger.read(path)["a"]["one"]["executions"] == 100


def test_merge_takes_what_is_new_and_counts_nothing_twice(tmp_path):
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    ledger.add("a", "base", entry(3), ours)
    ledger.add("a", "base", entry(3), theirs)
    ledger.add("a", "new", entry(4), theirs)
    ledger.add("b", "new", entry(5), theirs)
    for _ in range(2):
        ledger.merge(theirs, ours)
        assert ledger.read(ours) == {
            "a": {"base": entry(3), "new": entry(4)},
            "b": {"new": entry(5)},
        }


def test_the_table_sums_over_commits():
    text = ledger.table(
        {
            "a": {"one": entry(1000, 60), "two": entry(2000, 30, 2)},
            "b": {"one": entry(5, 30)},
        }
    )
    assert "| a | 3,000 | 1.5 | 2 | 2 |" in text
    assert "| all 2 | 3,005 | 2.0 | 2 |" in text
    assert "at least 0.5 minutes" in text


def test_the_ledger_in_the_tree_is_well_formed():
    for by_commit in ledger.read().values():
        for counts in by_commit.values():
            assert set(counts) == {"executions", "seconds", "findings"}
    json.dumps(ledger.read())
