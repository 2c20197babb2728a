"""Recalls of settings on a development set, for `select_kcca` and `PhotoRanker`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._check import Array
from kernelcore._threads import (
    Report,
    check_stopped,
    in_threads,
    one_blas_thread,
    resolve_n_threads,
)
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.evaluation.ranks import retrieval_ranks
from kernelcore.models.base import TASKS, Task

Run: TypeAlias = Iterator[tuple[int, Mapping[Task, Array]]]
"""Yields the place in the grid of one setting after the other, and its scores by task."""

CUTOFFS = (1, 5, 10)

_Result = TypeVar("_Result")


def as_values(
    name: str, values: Any, check: Callable[[str, Any], Any] | None = None
) -> list[Any]:
    """Return the values of a setting as a list, each checked; there is at least one."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise TypeError(f"{name} must be a sequence of values, got {values!r}")
    found = list(values)
    if not found:
        raise ValueError(f"{name} must hold at least one value, got none")
    return found if check is None else [check(f"{name}[{i}]", v) for i, v in enumerate(found)]


def dev_recalls(
    runs: Sequence[Run],
    n_settings: int,
    caption_image: npt.ArrayLike | None,
    *,
    n_threads: int | None,
    report: Report | None = None,
) -> npt.NDArray[np.float64]:
    """Return R@1, R@5 and R@10 of both tasks for every setting, shape (n_settings, 2, 3).

    Together the runs give every place from 0 to ``n_settings - 1`` once.
    """
    recalls = np.empty((n_settings, len(TASKS), len(CUTOFFS)))
    n_evaluated: list[int] = []  # by each run that is over
    # Runs go side by side, one thread each; a run that is alone has all threads.
    of_run = resolve_n_threads(n_threads) if len(runs) == 1 else 1

    def evaluate(run: Run) -> None:
        n_done = 0
        for place, scores in run:
            check_stopped()
            annotation, search = scores["annotation"], scores["search"]
            ranks = retrieval_ranks(
                annotation,
                caption_image,
                search_scores=None if search is annotation else search,
                n_threads=of_run,
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
