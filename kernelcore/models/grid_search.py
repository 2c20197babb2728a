"""Choosing the parameters of any ranker on a development set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._estimator import Estimator
from kernelcore._progress import Progress, Report, reporting
from kernelcore._validation import Array, check_integer
from kernelcore.evaluation import Table
from kernelcore.models.base import (
    TASKS,
    FittedSettings,
    Ranker,
    SharesFit,
    Task,
    check_ranker,
    check_task,
)
from kernelcore.models.development import (
    CUTOFFS,
    best_place,
    dev_recalls,
    scores_by_place,
    winning_places,
)
from kernelcore.models.ensemble import borda_scores
from kernelcore.models.grid_families import Setting, copy_of, expand, fit_family

if TYPE_CHECKING:
    import pandas

_RECALL_COLUMNS = (*(f"{task} R@{k}" for task in TASKS for k in CUTOFFS), "recall sum")


class GridSearch(Estimator):
    r"""Try every combination of parameters of a ranker on development data.

    The winners of a task are the `n_best` settings by each of R@1, R@5 and R@10 on the
    development data; `scores` combines them by Borda's count, as in [1]_. `best_ranker_` is
    the single ranker with the largest sum of the three recalls of both tasks.

    Parameters
    ----------
    ranker : Ranker
        With `get_params` and `set_params` as in scikit-learn. It is copied, never fitted
        itself.
    param_grid : mapping of str to sequence, or sequence of such mappings
        Values to try of each parameter; of several mappings each is a grid of its own.
    n_best : int, default 5
        Settings that win by each recall.
    n_threads : int, optional
        Threads that settings with a shared fit are evaluated on; the default is every core
        this process may run on. The result is the same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (settings done, settings).

    Attributes
    ----------
    settings_ : tuple of dict
        The combinations, each once; the last parameter of a grid varies fastest.
    recalls_ : ndarray of float64, shape (n_settings, 2, 3)
        R@1, R@5 and R@10, as shares, of annotation (index 0) and search (index 1).
    best_params_ : dict
        The setting with the largest sum of recalls, the first of equal ones.
    best_ranker_ : Ranker
        The ranker of that setting, fitted.

    See Also
    --------
    select_kcca : The same for kernel CCA from a factorisation that is there already.
    BordaEnsemble : Borda's count over rankers of any kind.

    Notes
    -----
    A ranker with the methods of `SharesFit` is fitted once for all settings that differ in
    nothing but its `shared_fit_params`. For `KCCARanker` these are the regularisation, number
    of components, correlation power and ridge: all of them together cost one factorisation
    of the training kernels, and a small singular value decomposition for each regularisation
    and ridge. Every other ranker is copied and fitted for each setting. Only rankers that won
    are kept.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.models import GridSearch, KCCARanker
    >>> images = np.random.default_rng(0).normal(size=(50, 3))
    >>> captions = images @ np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    >>> def linear(X, Y=None):
    ...     return X @ (X if Y is None else Y).T
    >>> search = GridSearch(
    ...     KCCARanker(image_kernel=linear, text_kernel=linear),
    ...     {"n_components": [1, 2], "regularization": [0.1, (0.1, 1.0)]},
    ...     n_best=1,
    ... )
    >>> search = search.fit(images[:30], captions[:30], dev=(images[30:40], captions[30:40]))
    >>> search.best_params_
    {'n_components': 2, 'regularization': 0.1}
    >>> search.scores(images[40:], captions[40:], task="search").argmax(axis=0)
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    settings_: tuple[Setting, ...]
    recalls_: npt.NDArray[np.float64]
    best_params_: Setting
    best_ranker_: Ranker
    _winners: dict[Task, list[int]]
    _fits: list[tuple[list[int], FittedSettings]]  # of the winners; places in the whole grid

    def __init__(
        self,
        ranker: Ranker,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        n_best: int = 5,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> None:
        self.ranker = ranker
        self.param_grid = param_grid
        self.n_best = n_best
        self.n_threads = n_threads
        self.progress = progress

    def fit(
        self,
        images: Any,
        captions: Any,
        *,
        dev: tuple[Any, Any],
        caption_image: npt.ArrayLike | None = None,
    ) -> GridSearch:
        """Fit every setting to the training items and evaluate it on the development items.

        Parameters
        ----------
        images, captions : collection of length n_training
            As for the ranker: item i of both belongs together.
        dev : tuple of (images, captions)
            Development items, as for `scores` of the ranker.
        caption_image : array_like of int, shape (n_dev_captions,), optional
            Row of the development image that each caption belongs to; every image has at
            least one. Omit it where caption i belongs to image i.

        Returns
        -------
        GridSearch
            This search.

        Raises
        ------
        TypeError
            If `ranker` lacks a method, or another argument is not of its kind.
        ValueError
            If the grid is empty or names a parameter that the ranker does not have, or what
            the ranker itself refuses.
        """
        check_ranker("ranker", self.ranker)
        n_best = check_integer("n_best", self.n_best, minimum=1)
        if not isinstance(dev, Sequence) or len(dev) != 2:
            raise TypeError(f"dev must be a pair (images, captions), got {type(dev).__name__}")
        shared = self.ranker.shared_fit_params if isinstance(self.ranker, SharesFit) else ()
        settings, families = expand(self.param_grid, shared)
        for setting in settings:  # a wrong name shows before anything that takes long
            copy_of(self.ranker, setting)
        recalls = np.empty((len(settings), len(TASKS), len(CUTOFFS)))
        fits: list[tuple[list[int], FittedSettings]] = []
        n_done = 0
        with reporting(self.progress, "grid") as report:
            for family in families:
                fitted = fit_family(self.ranker, family, images, captions)
                recalls[family.places] = dev_recalls(
                    fitted.runs(range(len(family.places)), *dev, tasks=TASKS),
                    len(family.places),
                    caption_image,
                    n_threads=self.n_threads,
                    report=_counting_on(report, n_done, len(settings)),
                )
                n_done += len(family.places)
                fits.append((family.places, fitted))
        best = best_place(recalls)
        self._winners = {task: winning_places(recalls, task, n_best) for task in TASKS}
        needed = {best, *(place for won in self._winners.values() for place in won)}
        self._fits = [fit for fit in fits if needed.intersection(fit[0])]
        self.settings_, self.recalls_ = tuple(settings), recalls
        self.best_params_ = dict(settings[best])
        self.best_ranker_ = next(
            fitted.ranker(places.index(best)) for places, fitted in fits if best in places
        )
        return self

    def winners(self, task: Task, *, n_best: int | None = None) -> list[Setting]:
        """Return the best settings by each of R@1, R@5 and R@10 on the development data.

        Parameters
        ----------
        task : {"annotation", "search"}
            The task whose recalls count.
        n_best : int, optional
            Settings taken by each recall; the default is the search's own number. Equal ones
            are ordered by the sum of the three, then by their place in the grid.

        Returns
        -------
        list of dict
            ``3 * n_best`` of them, fewer from a smaller grid; one that wins by several
            recalls comes several times.
        """
        self._check_fitted("recalls_")
        places = winning_places(self.recalls_, task, self.n_best if n_best is None else n_best)
        return [dict(self.settings_[place]) for place in places]

    def scores(
        self, images: Any, captions: Any, *, task: Task = "annotation"
    ) -> npt.NDArray[np.float64]:
        """Score by Borda's count over the task's winners; see `Ranker.scores`.

        A setting that wins by several recalls counts several times.

        Returns
        -------
        ndarray of float64, shape (n_images, n_captions)
        """
        self._check_fitted("recalls_")
        check_task(task)
        winners = self._winners[task]
        matrices: dict[int, Array] = {}
        for places, fitted in self._fits:
            won = [i for i, place in enumerate(places) if place in winners]
            if won:
                runs = fitted.runs(won, images, captions, tasks=(task,))
                scores = scores_by_place(runs, task, n_threads=self.n_threads)
                matrices.update({places[i]: matrix for i, matrix in scores.items()})
        return borda_scores([matrices[place] for place in winners], task=task)

    def to_table(self) -> Table:
        """Return the settings and their recalls as text cells, recalls in percent.

        The best value of each column is emphasised.
        """
        rows = self._rows()
        names = [name for name in rows[0] if name not in _RECALL_COLUMNS]
        best = {name: max(row[name] for row in rows) for name in _RECALL_COLUMNS}
        return Table(
            columns=(*names, *(column.split()[-1] for column in _RECALL_COLUMNS)),
            rows=tuple(
                (
                    *(_text(row[name]) for name in names),
                    *(f"{100 * row[column]:.1f}" for column in _RECALL_COLUMNS),
                )
                for row in rows
            ),
            n_labels=len(names),
            groups=(("", len(names)), *((task, len(CUTOFFS)) for task in TASKS), ("", 1)),
            emphasized=frozenset(
                (i, len(names) + j)
                for i, row in enumerate(rows)
                for j, column in enumerate(_RECALL_COLUMNS)
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
        # As objects parameters stay what they are: None would become NaN, 2 beside it 2.0.
        objects = _extras.require("pandas").DataFrame(self._rows(), dtype=object)
        frame: pandas.DataFrame = objects.astype(dict.fromkeys(_RECALL_COLUMNS, float))
        return frame

    def _rows(self) -> list[dict[str, Any]]:
        """Every setting with its recalls; what a grid leaves alone is the ranker's own."""
        self._check_fitted("recalls_")
        names = dict.fromkeys(name for setting in self.settings_ for name in setting)
        own: dict[str, Any] = self.ranker.get_params()  # type: ignore[attr-defined]
        return [
            {name: setting.get(name, own[name]) for name in names}
            | dict(zip(_RECALL_COLUMNS, (*of_setting.ravel(), of_setting.sum()), strict=True))
            for setting, of_setting in zip(self.settings_, self.recalls_, strict=True)
        ]


def _counting_on(report: Report | None, n_before: int, n_all: int) -> Report | None:
    if report is None:
        return None
    return lambda n_done, _: report(n_before + n_done, n_all)


def _text(value: Any) -> str:
    return value.__name__ if isinstance(value, FunctionType) else str(value)
