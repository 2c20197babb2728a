"""How the settings of a grid do on a development set, and which of them win."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped, in_threads, resolve_n_threads
from kernelcore._progress import Report
from kernelcore._validation import Array, check_integer
from kernelcore.evaluation import annotation_ranks, recall_at_k, search_ranks
from kernelcore.models.base import TASKS, Run, Task, check_task

CUTOFFS = (1, 5, 10)

_Result = TypeVar("_Result")


def dev_recalls(
    runs: Sequence[Run],
    n_settings: int,
    caption_image: npt.ArrayLike | None,
    *,
    n_threads: int | None,
    report: Report | None = None,
) -> npt.NDArray[np.float64]:
    """Return R@1, R@5 and R@10 of both tasks for every setting, shape (n_settings, 2, 3)."""
    recalls = np.empty((n_settings, len(TASKS), len(CUTOFFS)))
    n_evaluated: list[int] = []  # by each run that is over

    def evaluate(run: Run) -> None:
        n_done = 0
        for place, scores in run:
            check_stopped()
            ranks = (
                annotation_ranks(scores["annotation"], caption_image),
                search_ranks(scores["search"], caption_image),
            )
            recalls[place] = [[recall_at_k(r, k) for k in CUTOFFS] for r in ranks]
            n_done += 1
        n_evaluated.append(n_done)

    def count(n_runs: int, _: int) -> None:
        if report is not None:
            report(sum(n_evaluated[:n_runs]), n_settings)

    _side_by_side(evaluate, runs, n_threads, count)
    return recalls


def scores_by_place(
    runs: Sequence[Run], task: Task, *, n_threads: int | None
) -> dict[int, Array]:
    """Return the scores for one task of every setting of the runs, by its place."""
    by_run = _side_by_side(
        lambda run: {place: scores[task] for place, scores in run}, runs, n_threads
    )
    return dict(chain.from_iterable(matrices.items() for matrices in by_run))


def best_place(recalls: npt.NDArray[np.float64]) -> int:
    """Return the place of the setting with the largest sum of all recalls of both tasks."""
    return int(recalls.sum(axis=(1, 2)).argmax())


def winning_places(recalls: npt.NDArray[np.float64], task: Task, n_best: int) -> list[int]:
    """Return the places of the `n_best` settings by each recall of a task.

    Equal settings are ordered by the sum of the task's recalls, then by their place.
    """
    check_task(task)
    n_best = check_integer("n_best", n_best, minimum=1)
    of_task = recalls[:, TASKS.index(task)]
    total = of_task.sum(axis=1)
    return [
        int(place)
        for k in range(len(CUTOFFS))
        for place in np.lexsort((-total, -of_task[:, k]))[:n_best]
    ]


def _side_by_side(
    work: Callable[[Run], _Result],
    runs: Sequence[Run],
    n_threads: int | None,
    report: Report | None = None,
) -> list[_Result]:
    """Return the result of every run, on threads if there are several."""
    n_threads = resolve_n_threads(n_threads)
    if len(runs) == 1:  # has all threads to itself, and takes as many as it likes
        results = [work(runs[0])]
        if report is not None:
            report(1, 1)
        return results
    with one_blas_thread():
        return in_threads(work, runs, n_threads, setting=one_blas_thread, report=report)
