"""The training loop: schedules, the best epoch, checkpoints, and what is refused."""

import csv
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from refusals import refuses  # noqa: E402

from kernelcore.deep import OrderRanker  # noqa: E402
from kernelcore.deep.training import (  # noqa: E402
    TorchModel,
    cooldown,
    plateau,
    seeded_generator,
)


class Line(TorchModel):
    """Fit y = 2 x + 1 from noisy minibatches, with dropout-like noise."""

    def __init__(self, dev=None, killed_in=None):
        self.dev, self.killed_in = dev, killed_in
        self.seen, self.epochs = [], []
        self.space_ = torch.nn.Linear(1, 1)
        with torch.no_grad():
            self.space_.weight.fill_(-1.0)
            self.space_.bias.fill_(0.0)

    def _batches(self, training, batch_size, generator):
        self.seen.append(batch_size)
        return [torch.rand(batch_size, 1, generator=generator) for _ in range(5)]

    def _loss(self, training, batch, epoch, generator):
        self.epochs.append(epoch)
        if epoch == self.killed_in:
            raise KeyboardInterrupt
        noise = torch.randn(batch.shape, generator=generator)
        return (self.space_(batch) - 2 * batch - 1 + 0.1 * noise).square().mean()

    def _evaluate(self, dev):
        assert not torch.is_grad_enabled()
        error = (self.space_.weight - 2).abs() + (self.space_.bias - 1).abs()
        measured = float(error) if self.dev is None else self.dev.pop(0)
        return {"dev_loss": measured, "error": float(error)}


def adam(parameters):
    return torch.optim.Adam(parameters, fused=True)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1.0, momentum=0.9)


def steady(dev_losses):
    return 0.1, 4


def run(n_epochs=8, *, dev=None, killed_in=None, seed=0, fingerprint="", **options):
    own = {"optimizer": adam, "schedule": steady, "folder": None, "progress": False, **options}
    task = Line(dev, killed_in)
    task.n_epochs, task._optimizer, task._schedule = n_epochs, own["optimizer"], own["schedule"]
    task.patience, task.max_gradient_norm = own.get("patience"), own.get("max_gradient_norm")
    about = {name: own[name] for name in ("folder", "progress")}
    generator = seeded_generator(seed)
    task._train(None, None, generator, fingerprint, n_threads=1, **about)
    return task.space_, task, task.history_


def bits(model):
    return [value.numpy().tobytes() for value in model.state_dict().values()]


def without_times(history):
    return [{k: v for k, v in epoch.items() if k != "seconds"} for epoch in history.epochs]


def test_it_learns():
    model, _, history = run(40)
    assert abs(model.weight.item() - 2) < 0.3
    assert history.epochs[-1]["train_loss"] < history.epochs[0]["train_loss"] / 5


@pytest.mark.parametrize("optimizer", [adam, sgd])
@pytest.mark.parametrize("stop", [1, 4])
def test_resumed_training_is_the_same_as_uninterrupted(tmp_path, optimizer, stop):
    options = {"optimizer": optimizer, "schedule": AT_ONCE}
    whole, _, expected = run(8, **options)
    assert bits(whole) == bits(run(8, **options)[0]) != bits(run(8, seed=2, **options)[0])
    with pytest.raises(KeyboardInterrupt):
        run(8, killed_in=stop, folder=tmp_path, **options)
    resumed, task, history = run(8, folder=tmp_path, seed=99, **options)
    assert set(task.epochs) == set(range(stop, 8))
    assert bits(resumed) == bits(whole)
    assert without_times(history) == without_times(expected)
    _, task, again = run(8, folder=tmp_path, **options)  # nothing is left to do
    assert task.epochs == []
    assert without_times(again) == without_times(expected)


def test_the_best_epoch_is_kept(tmp_path):
    losses = [0.5, 0.3, 0.4, 0.3, 0.6]
    model, _, history = run(5, dev=list(losses), folder=tmp_path)
    assert history.best_epoch == 1  # the first of equals
    assert history.dev_losses == losses
    short, _, _ = run(2, dev=list(losses))
    assert bits(model) == bits(short)
    error = abs(model.weight.item() - 2) + abs(model.bias.item() - 1)
    assert error == pytest.approx(history.epochs[1]["error"])


@pytest.mark.parametrize(("patience", "n_epochs"), [(1, 3), (2, 4), (3, 6), (None, 6)])
def test_it_stops_where_patience_ends(patience, n_epochs):
    losses, calls = [0.5, 0.3, 0.4, 0.35, 0.2, 0.1], []
    _, _, history = run(6, dev=losses, patience=patience, progress=lambda *n: calls.append(n))
    assert len(history.epochs) == n_epochs
    assert calls[: 5 * n_epochs] == [(i, 30) for i in range(1, 5 * n_epochs + 1)]
    assert calls[-1] == (30, 30)


def restarting(*rates):
    learning_rate, min_learning_rate, batch_size = rates
    options = {"learning_rate": learning_rate, "min_learning_rate": min_learning_rate}
    return OrderRanker(batch_size=batch_size, **options)._schedule


PLATEAU = partial(plateau, learning_rate=1.0, batch_size=7, factor=0.2, patience=2)
AT_ONCE = partial(plateau, learning_rate=0.3, batch_size=4, patience=0)
COOLDOWN = partial(cooldown, learning_rate=0.5, batch_size=3, n_before=2)
LOSSES = [3.0, 2.0, 2.0, 2.5, 2.1, 2.2, 2.2, 2.2]
OTHERS = [0.9, 0.8, 0.8, 0.85, 0.7, 0.7, 0.95, 0.95]
# No new minimum; 0.7 is one; half of 0.2 would be below the floor; a restart counts from its
# own first loss.
RATES = [0.8, 0.8, 0.8, 0.4, 0.2, 0.2, 0.8, 0.8, 0.4]
SCHEDULES = [
    (PLATEAU, LOSSES, [1, 1, 1, 1, 1, 0.2, 0.2, 0.2, 0.04], [7] * 9),
    (AT_ONCE, [1, 2], [0.3, 0.3, 0.06], [4] * 3),
    (COOLDOWN, [1] * 3, [0.5, 0.5, 0.05, 0.05], [3] * 4),
    (restarting(0.8, 0.2, 16), OTHERS, RATES, [16] * 6 + [32] * 3),
    (restarting(0.1, 0.1, 3), [0.1] * 5, [0.1] * 6, [3, 3, 6, 6, 12, 12]),
]


@pytest.mark.parametrize(("schedule", "losses", "rates", "sizes"), SCHEDULES)
def test_schedules_follow_the_development_losses(schedule, losses, rates, sizes):
    settings = [schedule(losses[:n]) for n in range(len(losses) + 1)]
    np.testing.assert_allclose([rate for rate, _ in settings], rates)
    assert [size for _, size in settings] == sizes


def test_any_schedule_sets_rates_and_batch_sizes():
    _, task, history = run(3, schedule=lambda dev: (0.1 / (1 + len(dev)), 2 ** (1 + len(dev))))
    assert task.seen == [2, 4, 8]
    assert [e["learning_rate"] for e in history.epochs] == [0.1, 0.05, pytest.approx(0.1 / 3)]


def test_gradients_are_clipped():
    def step(**options):
        options |= {"optimizer": partial(torch.optim.SGD, lr=1.0)}
        model, _, _ = run(1, schedule=lambda dev: (1.0, 1), **options)
        return abs(model.weight.item() + 1)

    assert step() > 0.1
    assert step(max_gradient_norm=0.01) <= 0.0501  # of five steps


def test_the_log_has_a_row_per_epoch(tmp_path):
    _, _, history = run(3, folder=tmp_path)
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert [float(row["dev_loss"]) for row in rows] == history.dev_losses
    assert set(rows[0]) == {"epoch", *history.epochs[0]}


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run(2, folder=tmp_path, fingerprint="a")
    own = {"n_epochs": 2, "folder": tmp_path, "fingerprint": "a"}
    for odd in ({"fingerprint": "b"}, {"n_epochs": 1}, {"schedule": lambda dev: (0.2, 4)}):
        refuses(ValueError, "folder", run, **{**own, **odd})
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    refuses(ValueError, r"checkpoint\.safetensors", run, **own)


def test_losses_that_are_not_finite_are_refused():
    steep = {"optimizer": partial(torch.optim.SGD, lr=1.0), "schedule": lambda dev: (1e30, 4)}
    said = refuses(ValueError, "training loss must be finite", run, 9, **steep)
    assert "in epoch" in said
    nan = [float("nan")]
    refuses(ValueError, "development loss must be finite", run, 1, dev=nan)


def test_a_generator_of_numpy_goes_on_and_a_seed_does_not():
    source = np.random.default_rng(0)
    first, second = (seeded_generator(source).initial_seed() for _ in range(2))
    assert first != second
    assert seeded_generator(0).initial_seed() == first == seeded_generator(0).initial_seed()
