"""Every CUDA kernel where Numba simulates a GPU: one process, which takes a while to begin."""

from pathlib import Path

import pytest

SIMULATED = sorted(path.name for path in (Path(__file__).parent / "simulated").glob("*.py"))


@pytest.mark.slow
def test_on_the_simulator(run_simulated):
    assert SIMULATED == ["histogram_intersection.py", "word_sequence.py"]
    run_simulated(*SIMULATED)
