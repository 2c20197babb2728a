"""Trainings of a study in processes of their own, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any, NamedTuple, Protocol

from kernelcore.errors import DatasetWarning

_SECONDS = 1.0  # between two looks whether all processes live


class Training(NamedTuple):
    """One run of training of a system: the seed, and a change to it, see `Addition`."""

    system: str
    rng: int
    change: Mapping[str, Any]


class Trains(Protocol):
    """What a study offers to a process that trains for it."""

    def prepare_to_train(self, names: Sequence[str]) -> None:
        """Check the options and compute what these systems need."""

    def run_training(self, training: Training) -> None:
        """Train, and leave the model in the cache."""


_study: Trains | None = None  # of this process


def train_side_by_side(
    make_study: Callable[[], Trains],
    names: Sequence[str],
    trainings: Sequence[Training],
    n_processes: int,
    report: Callable[[int, int], None],
) -> None:
    """Run trainings in new processes, which leave the models in the cache.

    Parameters
    ----------
    make_study : callable
        Makes the study in each process; it must be picklable.
    names : sequence of str
        The systems of the run.
    trainings : sequence of Training
    n_processes : int
    report : callable
        Called with the number of trainings that are done, and of all.

    Raises
    ------
    BrokenProcessPool
        If a process died. Any error, and Ctrl-C, ends all processes; checkpoints stay.
    """
    before = set(active_children())
    processes = ProcessPoolExecutor(
        min(n_processes, len(trainings)),
        mp_context=get_context("spawn"),  # threads of torch do not survive a fork
        initializer=_begin,
        initargs=(make_study, names),
    )
    try:
        left = {processes.submit(_run, training) for training in trainings}
        children = set(active_children()) - before
        while left:
            found = wait(left, timeout=_SECONDS, return_when=FIRST_COMPLETED)
            left = found.not_done
            for future in found.done:
                future.result()
            if found.done:
                report(len(trainings) - len(left), len(trainings))
            # the pool itself may miss the death of a process that it has just started
            if left and any(child.exitcode is not None for child in children):
                raise BrokenProcessPool("a process that trained has died")
    except BaseException:
        # the pool would wait until they have finished
        for process in set(active_children()) - before:
            process.terminate()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


def _begin(make_study: Callable[[], Trains], names: Sequence[str]) -> None:
    global _study  # noqa: PLW0603 (the one object of this process)
    warnings.simplefilter("ignore", DatasetWarning)  # the process that waits has shown them
    _study = make_study()
    _study.prepare_to_train(names)


def _run(training: Training) -> None:
    assert _study is not None, "the process has begun"
    _study.run_training(training)
