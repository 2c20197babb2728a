"""Recalls of settings on a development set, and the winners.

Shared by every search over settings: `GridSearch`, `select_kcca` and `PhotoRanker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._blas import one_blas_thread
from kernelcore._parallel import check_stopped, in_threads, resolve_n_threads
from kernelcore._progress import Report
from kernelcore._validation import Array, check_integer
from kernelcore.evaluation import Table
from kernelcore.evaluation.metrics import recall_at_k
from kernelcore.evaluation.ranks import annotation_ranks, search_ranks
from kernelcore.models.base import TASKS, Run, Task, check_task

if TYPE_CHECKING:
    import pandas

CUTOFFS = (1, 5, 10)
RECALL_COLUMNS = (*(f"{task} R@{k}" for task in TASKS for k in CUTOFFS), "recall sum")

_Setting = TypeVar("_Setting")
_Result = TypeVar("_Result")


class Trials(Generic[_Setting]):
    """Recalls of every setting on the development set.

    Attributes
    ----------
    settings : tuple
        The settings that were tried.
    recalls : ndarray of float64, shape (n_settings, 2, 3)
        R@1, R@5 and R@10, as shares, of annotation (index 0) and search (index 1).
    """

    def __init__(self, settings: Sequence[_Setting], recalls: npt.NDArray[np.float64]) -> None:
        self.settings = tuple(settings)
        self.recalls = recalls

    @property
    def best_place(self) -> int:
        """Place of the setting with the largest sum of all recalls of both tasks."""
        return int(self.recalls.sum(axis=(1, 2)).argmax())

    def best(self) -> _Setting:
        """Return the setting with the largest sum of all recalls of both tasks."""
        return self.settings[self.best_place]

    @property
    def best_recalls(self) -> npt.NDArray[np.float64]:
        """Recalls of the best setting, shape (2, 3)."""
        best: npt.NDArray[np.float64] = self.recalls[self.best_place]
        return best

    def winning_places(self, task: Task, n_best: int) -> list[int]:
        """Return the places of the `n_best` settings by each recall of a task.

        Equal settings are ordered by the sum of the task's recalls, then by their place.
        """
        check_task(task)
        n_best = check_integer("n_best", n_best, minimum=1)
        of_task = self.recalls[:, TASKS.index(task)]
        total = of_task.sum(axis=1)
        return [
            int(place)
            for k in range(len(CUTOFFS))
            for place in np.lexsort((-total, -of_task[:, k]))[:n_best]
        ]

    def to_table(self) -> Table:
        """Return the settings and their recalls as text cells, recalls in percent.

        The best value of each column is emphasised.
        """
        rows = self._rows()
        names = [name for name in rows[0] if name not in RECALL_COLUMNS]
        best = {name: max(row[name] for row in rows) for name in RECALL_COLUMNS}
        return Table(
            columns=(*names, *(column.split()[-1] for column in RECALL_COLUMNS)),
            rows=tuple(
                (
                    *(_text(row[name]) for name in names),
                    *(f"{100 * row[column]:.1f}" for column in RECALL_COLUMNS),
                )
                for row in rows
            ),
            n_labels=len(names),
            groups=(("", len(names)), *((task, len(CUTOFFS)) for task in TASKS), ("", 1)),
            emphasized=frozenset(
                (i, len(names) + j)
                for i, row in enumerate(rows)
                for j, column in enumerate(RECALL_COLUMNS)
                if row[column] == best[column]
            ),
            caption="R@k and their sum in percent, on development data",
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per setting.

        Returns
        -------
        pandas.DataFrame
            One column per parameter, then ``annotation R@1`` to ``search R@10`` as shares in
            [0, 1] and their ``recall sum``.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        # With dtype object None does not become NaN, nor an integer beside it a float.
        objects = _extras.require("pandas").DataFrame(self._rows(), dtype=object)
        frame: pandas.DataFrame = objects.astype(dict.fromkeys(RECALL_COLUMNS, float))
        return frame

    def _repr_html_(self) -> str:
        """Show the settings and their recalls in a notebook."""
        return self.to_table().to_html()

    def _rows(self) -> list[dict[str, Any]]:
        """Return every setting with its recalls, as shares."""
        return [
            self._values(setting)
            | dict(zip(RECALL_COLUMNS, (*recalls.ravel(), recalls.sum()), strict=True))
            for setting, recalls in zip(self.settings, self.recalls, strict=True)
        ]

    def _values(self, setting: _Setting) -> dict[str, Any]:
        """Return the parameters of a setting by name."""
        values: dict[str, Any] = dict(setting)  # type: ignore[call-overload]  # a mapping
        return values


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
            ranks = (
                annotation_ranks(scores["annotation"], caption_image, n_threads=of_run),
                search_ranks(scores["search"], caption_image, n_threads=of_run),
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


def _text(value: Any) -> str:
    return value.__name__ if isinstance(value, FunctionType) else str(value)
