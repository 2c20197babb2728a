"""Tables of docs/scaling.md."""

import numpy as np
import pytest
import scaling_tables

STORED = {
    "ranks": {"200000 by 1": {"seconds": 300.0, "product_seconds": 250.0}},
    "kcca": {"2": {"seconds": 150.0, "peak_bytes": 3.5e9, "store_bytes": 9e9}},
    "overhead": {"2": {"seconds": 8.2, "n_tasks": 820}},
    "rates": {"product": 5e10, "factorization": 2e10, "kernel": 1e10, "photos": 20.0},
}


def test_what_is_not_measured_is_said():
    assert scaling_tables.sections({}, "a machine") == {"Measured": scaling_tables.ABSENT}


def test_measured_and_on_paper():
    found = scaling_tables.sections(STORED, "a machine")
    assert "| 200,000 x 200,000 | 1 worker | 300.0 | 250.0 | 1.20 |" in found["Exact ranks"]
    assert "3.50 GB" in found["Landmark KCCA"]
    assert "10.0" in found["The engine"]
    assert found["Measured on"] == "a machine."
    (paper,) = (text for title, text in found.items() if title.startswith("On paper"))
    assert "1,000 workers" in paper


def test_a_part_that_is_not_measured_is_said():
    found = scaling_tables.sections({"overhead": STORED["overhead"]}, "a machine")
    assert found["Exact ranks"] == found["Landmark KCCA"] == scaling_tables.ABSENT
    assert scaling_tables.PAPER not in found


def test_the_bill_on_paper_is_arithmetic():
    bill = scaling_tables.paper_bill(STORED["rates"])
    features = bill.steps[0]
    assert features.n_tasks == 10_000
    assert features.core_seconds == pytest.approx(1e8 / 20.0)
    assert bill.seconds(features) == pytest.approx(1e8 / 20.0 / 1000)
    counts = next(step for step in bill.steps if step.name == "counts")
    assert counts.core_seconds == pytest.approx(1e12 * 256 / 5e10)


def test_rows_of_a_run_are_drawn_shard_by_shard(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    import scaling

    monkeypatch.setattr(scaling, "SHARD", 8)
    rows = scaling.drawn_rows(tmp_path / "a", 20, scaling.embeddings, 1)
    again = scaling.drawn_rows(tmp_path / "b", 20, scaling.embeddings, 1)
    assert rows.shape == (20, scaling.N_DIMENSIONS)
    np.testing.assert_array_equal(rows.read(0, 20), again.read(0, 20))
    assert len(np.unique(rows.read(0, 20)[:, 0])) == 20


def test_memory_of_children_counts():
    pytest.importorskip("distributed")
    import subprocess
    import sys
    import time

    import scaling

    code = "import time; x = bytearray(200 << 20); print(flush=True); time.sleep(60)"
    with scaling.peak_memory() as peak:
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(0.5)
        child.kill()
        child.communicate()
    assert peak[0] > 200 << 20
