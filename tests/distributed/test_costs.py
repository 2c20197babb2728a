"""Bills: arithmetic, and the numbers of tasks that runs really have."""

import numpy as np
import pytest

from kernelcore.distributed import costs, landmark_features, streamed_ranks
from kernelcore.distributed.store import Store
from kernelcore.distributed.tasks import needed_bytes

RATES = costs.Rates(product=1e9, factorization=1e9, kernel=1e9, photos=50.0)


def test_ranks(tmp_path):
    streamed_ranks(
        np.ones((10, 3)), np.ones((30, 3)), np.arange(30) // 3, store=tmp_path, block_rows=4
    )
    gold, counts = costs.ranks_steps(10, 30, 3, block_rows=4, rates=RATES, itemsize=8)
    assert gold.n_tasks == Store.open(tmp_path / "gold").n_pieces == 8
    assert counts.n_tasks == Store.open(tmp_path / "counts").n_pieces == 24
    assert counts.core_seconds == pytest.approx(10 * 30 * 3 / 1e9)
    assert gold.memory_bytes == needed_bytes(Store.open(tmp_path / "gold"))
    assert counts.memory_bytes == needed_bytes(Store.open(tmp_path / "counts"))


def test_landmarks(tmp_path):
    landmark_features(
        "histogram_intersection",
        np.random.default_rng(0).random((9000, 4)),
        tmp_path,
        n_landmarks=5,
        shard_rows=4096,
    )
    steps = costs.landmark_steps("images", 9000, 4, 5, shard_rows=4096, rates=RATES, itemsize=8)
    assert steps[1].n_tasks == Store.open(tmp_path / "features").n_pieces == 3
    assert steps[1].written_bytes == 9000 * 5 * 8
    assert steps[1].memory_bytes == needed_bytes(Store.open(tmp_path / "features"))


def test_features_of_counts_are_doubles(tmp_path):
    counts = np.random.default_rng(0).integers(0, 9, size=(5000, 4)).astype(np.uint8)
    rows = landmark_features("histogram_intersection", counts, tmp_path, n_landmarks=5)
    steps = costs.landmark_steps(
        "captions", 5000, 4, 5, shard_rows=65_536, rates=RATES, itemsize=1
    )
    assert steps[1].written_bytes == rows.n_columns * rows.dtype.itemsize * len(rows)
    assert steps[1].memory_bytes == needed_bytes(Store.open(tmp_path / "features"))


def test_more_workers_take_less_time_until_tasks_run_out():
    steps = costs.photo_steps(
        10_000, shard_photos=1000, rates=RATES, n_features=1280, photo_bytes=1e5
    )
    assert steps[0].n_tasks == 10
    seconds = [costs.Bill(steps, n).seconds(steps[0]) for n in (1, 2, 3, 10, 99)]
    assert seconds == pytest.approx([200.0, 100.0, 80.0, 20.0, 20.0])
    text = str(costs.Bill(steps, 2))
    assert "2 workers" in text
    assert "1.0 GB" in text


def test_rates_are_measured():
    rates = costs.measured_rates()
    assert all(rate > 1e6 for rate in rates)
    assert rates.photos == float("inf")
    steps = [
        *costs.gram_steps(5000, 100, tile=1000, rates=rates),
        *costs.kcca_steps(10_000, 50, shard_rows=4096, rates=rates),
    ]
    assert [step.n_tasks for step in steps] == [15, 3]
    assert "Gram matrix" in str(costs.Bill(steps, 1))
