"""Trainings in processes of their own; the processes themselves are threads here."""

from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("cv2")

from kernelcore.experiments import side_by_side
from kernelcore.experiments.side_by_side import Training, train_side_by_side

TRAININGS = [Training("one", seed, {}) for seed in range(5)]


class Trainer:
    """Notes what it trains; one training fails."""

    done: list
    prepared: list

    def prepare_to_train(self, names):
        self.prepared.append(list(names))

    def run_training(self, training):
        if training.change.get("fails", False):
            raise RuntimeError(f"{training.system} fails")
        self.done.append(training)


@pytest.fixture(autouse=True)
def trainer(monkeypatch):
    sizes = []

    def pool(n_processes, mp_context, **options):
        sizes.append((n_processes, mp_context.get_start_method()))
        return ThreadPoolExecutor(n_processes, **options)

    monkeypatch.setattr(side_by_side, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(Trainer, "done", [], raising=False)
    monkeypatch.setattr(Trainer, "prepared", [], raising=False)
    return sizes


def test_each_training_runs_once_and_is_told(trainer):
    told = []
    train_side_by_side(Trainer, ["one"], TRAININGS, 1, lambda *of: told.append(of))
    assert Trainer.done == TRAININGS
    assert Trainer.prepared == [["one"]]
    assert told == [(i, 5) for i in range(1, 6)]
    train_side_by_side(Trainer, ["one"], TRAININGS[:2], 8, lambda *_: None)
    assert trainer == [(1, "spawn"), (2, "spawn")]  # no more than there is to do


def test_a_training_that_fails_ends_the_run():
    fails = Training("two", 0, {"fails": True})
    with pytest.raises(RuntimeError, match="two fails"):
        train_side_by_side(Trainer, [], [fails, *TRAININGS], 1, lambda *_: None)
    assert len(Trainer.done) < 5
