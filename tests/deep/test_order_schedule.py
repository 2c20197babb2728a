"""The schedule of order embeddings."""

import pytest

pytest.importorskip("torch")

from kernelcore.deep import BatchDoubling, Pace


def paces(schedule, losses):
    return [schedule(losses[:n]) for n in range(len(losses) + 1)]


def test_the_rate_is_halved_and_then_the_batch_doubled():
    schedule = BatchDoubling(0.8, 16, floor=0.2)
    losses = [0.9, 0.8, 0.8, 0.85, 0.7, 0.7, 0.95, 0.95]
    assert paces(schedule, losses) == [
        Pace(0.8, 16),
        Pace(0.8, 16),
        Pace(0.8, 16),
        Pace(0.4, 16),  # no new minimum
        Pace(0.2, 16),
        Pace(0.2, 16),  # 0.7 is one
        Pace(0.8, 32),  # half of 0.2 would be below the floor
        Pace(0.8, 32),  # a restart counts from its own first loss
        Pace(0.4, 32),
    ]


def test_patience_bears_epochs_without_progress():
    schedule = BatchDoubling(1.0, 4, floor=0.1, factor=0.1, patience=2)
    rates = [pace.learning_rate for pace in paces(schedule, [0.5, 0.5, 0.5, 0.5, 0.4, 0.6])]
    assert rates == pytest.approx([1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1])


def test_every_plateau_doubles_where_the_floor_is_the_rate():
    schedule = BatchDoubling(0.1, 3, floor=0.1)
    assert [pace.batch_size for pace in paces(schedule, [0.1] * 5)] == [3, 3, 6, 6, 12, 12]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1"),
        ({"floor": 0.0}, "floor must be a number > 0"),
        ({"floor": 0.2}, "floor must be at most the learning rate, 0.1, got 0.2"),
        ({"factor": 1.0}, "factor must be a number < 1"),
        ({"factor": 0.0}, "factor must be a number > 0"),
        ({"patience": -1}, "patience must be an integer >= 0"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BatchDoubling(**{"learning_rate": 0.1, "batch_size": 4, "floor": 0.01, **options})
