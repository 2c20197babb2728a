"""The training loop: schedules, the best epoch, resuming, and what is refused."""

import csv

import pytest

torch = pytest.importorskip("torch")

from refusals import refuses, refuses_each  # noqa: E402

from kernelcore.deep import (  # noqa: E402
    BatchDoubling,
    Cooldown,
    Pace,
    Plateau,
    seeded_generator,
    train,
)
from kernelcore.deep.checkpoints import write_log  # noqa: E402


class Line:
    """Fit y = 2 x + 1 from noisy minibatches, with dropout-like noise."""

    def __init__(self, model, dev=None, killed_in=None):
        self.model, self.dev, self.killed_in = model, dev, killed_in
        self.seen, self.epochs = [], []

    def batches(self, batch_size, generator):
        self.seen.append(batch_size)
        return [torch.rand(batch_size, 1, generator=generator) for _ in range(5)]

    def loss(self, batch, epoch, generator):
        self.epochs.append(epoch)
        if epoch == self.killed_in:
            raise KeyboardInterrupt
        noise = torch.randn(batch.shape, generator=generator)
        return (self.model(batch) - 2 * batch - 1 + 0.1 * noise).square().mean()

    def evaluate(self):
        assert not torch.is_grad_enabled()
        error = (self.model.weight - 2).abs() + (self.model.bias - 1).abs()
        measured = float(error) if self.dev is None else self.dev.pop(0)
        return {"dev_loss": measured, "error": float(error)}


def line():
    model = torch.nn.Linear(1, 1)
    with torch.no_grad():
        model.weight.fill_(-1.0)
        model.bias.fill_(0.0)
    return model


def run(n_epochs=8, objective=Line, model=None, **options):
    model = line() if model is None else model
    options = {"schedule": Plateau(0.1, 4), "generator": seeded_generator(0), **options}
    task = objective(model)
    return model, task, train(model, task, n_epochs=n_epochs, **options)


def bits(model):
    return [value.numpy().tobytes() for value in model.state_dict().values()]


def without_times(history):
    return [{k: v for k, v in epoch.items() if k != "seconds"} for epoch in history.epochs]


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1.0, momentum=0.9)


def test_it_learns():
    model, _, history = run(40)
    assert abs(model.weight.item() - 2) < 0.3
    assert history.epochs[-1]["train_loss"] < history.epochs[0]["train_loss"] / 5


@pytest.mark.parametrize("make_optimizer", [None, sgd])
def test_equal_seeds_give_equal_bits_and_others_do_not(make_optimizer):
    first, again, other = (
        run(make_optimizer=make_optimizer, generator=seeded_generator(seed))
        for seed in (1, 1, 2)
    )
    assert bits(first[0]) == bits(again[0]) != bits(other[0])
    assert without_times(first[2]) == without_times(again[2])


@pytest.mark.parametrize("make_optimizer", [None, sgd])
@pytest.mark.parametrize("stop", [1, 4])
def test_resumed_training_is_the_same_as_uninterrupted(tmp_path, make_optimizer, stop):
    options = {"make_optimizer": make_optimizer, "schedule": Plateau(0.3, 4, patience=0)}
    whole, _, expected = run(8, **options)
    with pytest.raises(KeyboardInterrupt):
        run(8, lambda m: Line(m, killed_in=stop), folder=tmp_path, **options)
    resumed, task, history = run(
        8, folder=tmp_path, **{**options, "generator": seeded_generator(99)}
    )
    assert set(task.epochs) == set(range(stop, 8))
    assert bits(resumed) == bits(whole)
    assert without_times(history) == without_times(expected)
    _, task, again = run(8, folder=tmp_path, **options)  # nothing is left to do
    assert task.epochs == []
    assert without_times(again) == without_times(expected)


def test_the_best_epoch_is_kept(tmp_path):
    losses = [0.5, 0.3, 0.4, 0.3, 0.6]
    model, _, history = run(5, lambda m: Line(m, list(losses)), folder=tmp_path)
    assert history.best_epoch == 1  # the first of equals
    assert history.dev_losses == losses
    short, _, _ = run(2, lambda m: Line(m, list(losses)))
    assert bits(model) == bits(short)
    error = abs(model.weight.item() - 2) + abs(model.bias.item() - 1)
    assert error == pytest.approx(history.epochs[1]["error"])


def test_it_stops_when_nothing_comes_of_it():
    losses = [0.5, 0.3, 0.4, 0.35, 0.2, 0.1]
    for patience, n_epochs in ((1, 3), (2, 4), (3, 6), (None, 6)):
        _, _, history = run(6, lambda m: Line(m, list(losses)), patience=patience)
        assert len(history.epochs) == n_epochs


def test_plateau_waits_and_then_lowers_the_rate():
    schedule = Plateau(1.0, 7, factor=0.2, patience=2)
    rates = [
        schedule(losses).learning_rate
        for losses in (
            [],
            [3.0],
            [3.0, 2.0],
            [3.0, 2.0, 2.0, 2.5],
            [3.0, 2.0, 2.0, 2.5, 2.1],
            [3.0, 2.0, 2.0, 2.5, 2.1, 2.2, 2.2],
            [3.0, 2.0, 2.0, 2.5, 2.1, 2.2, 2.2, 2.2],
            [3.0, 2.0, 2.0, 2.5, 2.1, 1.9, 2.2, 2.2],
        )
    ]
    assert rates == pytest.approx([1, 1, 1, 1, 0.2, 0.2, 0.04, 0.2])
    assert schedule([]).batch_size == 7


def test_schedules_refuse_what_cannot_be_a_pace():
    usual = {"learning_rate": 0.1, "batch_size": 4}
    odd = {
        "learning_rate": [0.0, -1.0, float("nan"), "fast"],
        "batch_size": [0, 2.5],
        "factor": [0],
    }
    refuses_each(Plateau, odd, **usual)
    refuses_each(Cooldown, odd, **usual, n_epochs=3)


def test_schedules_refuse_negative_counts():
    refuses(ValueError, "patience", Plateau, 0.1, 4, patience=-1)
    refuses(ValueError, "n_epochs", Cooldown, 0.1, 4, 0)
    refuses(ValueError, "n_last", Cooldown, 0.1, 4, 3, n_last=-1)
    assert Plateau(0.3, 4, patience=0)([0.1, 0.2]).learning_rate == pytest.approx(0.06)
    assert [Cooldown(1.0, 4, 1, n_last=n)([]).learning_rate for n in (0, 1)] == [1.0, 0.1]


def test_any_schedule_sets_rates_and_batch_sizes():
    def schedule(dev_losses):
        return Pace(0.1 / (1 + len(dev_losses)), 2 ** (1 + len(dev_losses)))

    _, task, history = run(3, schedule=schedule)
    assert task.seen == [2, 4, 8]
    assert [e["learning_rate"] for e in history.epochs] == [0.1, 0.05, pytest.approx(0.1 / 3)]


def test_gradients_are_clipped():
    def step(**options):
        model, _, _ = run(
            1,
            make_optimizer=lambda p: torch.optim.SGD(p, lr=1.0),
            objective=Once,
            schedule=Plateau(1.0, 1),
            **options,
        )
        return abs(model.weight.item() + 1)

    class Once(Line):
        def batches(self, batch_size, generator):
            return [torch.ones(1, 1)]

    assert step() > 1
    assert step(max_gradient_norm=0.01) <= 0.0101


def test_the_log_of_a_resumed_run_has_what_was_measured_since(tmp_path):
    write_log(tmp_path / "log.csv", [{"dev_loss": 0.5}, {"dev_loss": 0.4, "positive": 1.0}])
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["positive"] for row in rows] == ["", "1.0"]


def test_the_log_has_a_row_per_epoch(tmp_path):
    _, _, history = run(3, folder=tmp_path)
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [float(row["dev_loss"]) for row in rows] == history.dev_losses
    assert set(rows[0]) == {
        "epoch",
        "learning_rate",
        "batch_size",
        "train_loss",
        "dev_loss",
        "error",
        "seconds",
    }


def test_progress_counts_minibatches():
    calls = []
    run(3, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(i, 15) for i in range(1, 16)]


def test_progress_ends_at_its_total_where_patience_ends_the_training():
    calls = []
    losses = [0.3, 0.4, 0.5, 0.6]
    report = lambda done, total: calls.append((done, total))  # noqa: E731
    run(4, lambda m: Line(m, losses), patience=2, progress=report)
    assert calls == [*((i, 20) for i in range(1, 16)), (20, 20)]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run(2, folder=tmp_path, fingerprint="a")
    with pytest.raises(ValueError, match="same data and settings"):
        run(2, folder=tmp_path, fingerprint="b")
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match="damaged or truncated"):
        run(2, folder=tmp_path, fingerprint="a")


def test_bad_options_are_refused():
    refuses(ValueError, "n_epochs", run, 0)
    refuses(ValueError, "patience", run, 1, patience=0)
    refuses(ValueError, "mixed_precision", run, 1, mixed_precision=True)
    with pytest.raises(ValueError, match=r"training loss must be finite, got .* in epoch"):
        run(9, schedule=Plateau(1e30, 4), make_optimizer=lambda p: torch.optim.SGD(p, lr=1.0))
    with pytest.raises(ValueError, match="development loss must be finite, got nan"):
        run(1, lambda m: Line(m, [float("nan")]))


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


def test_numbers_out_of_range_are_refused():
    odd = {
        "learning_rate": [0.0],
        "batch_size": [0],
        "floor": [0.0, 0.2],
        "factor": [1.0, 0.0],
        "patience": [-1],
    }
    refuses_each(BatchDoubling, odd, learning_rate=0.1, batch_size=4, floor=0.01)
