"""Twenty kills at random moments: each next run completes with the same bytes."""

import sys

import pytest

pytest.importorskip("distributed")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for workers in /proc")
def test_kills():
    import kills

    counts = kills.run(21, seed=0)
    assert sum(counts.values()) == 21
    assert sum(n for what, n in counts.items() if "too late" not in what) > 10
