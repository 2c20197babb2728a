"""Grid search: the parameters of any ranker, chosen on development data."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._estimator import Estimator
from kernelcore._progress import Progress, Report, reporting
from kernelcore._reading import check_mapping, check_tensor, reading
from kernelcore._validation import Array, check_integer
from kernelcore.evaluation import Table
from kernelcore.kernels.prepared import n_items
from kernelcore.models.base import (
    TASKS,
    FittedSettings,
    Pairs,
    Ranker,
    Run,
    SharesFit,
    Task,
    check_ranker,
    check_task,
    copy_of,
    count,
    dev_parts,
    divided,
    fit_ranker,
    is_nested,
    owners_of,
)
from kernelcore.models.ensemble import borda_scores
from kernelcore.models.saving import (
    DESCRIPTION,
    classes_of,
    read_description,
    read_rankers,
    value_from_json,
    value_to_json,
    write_folder,
    write_rankers,
)
from kernelcore.models.trials import CUTOFFS, Trials, as_values, dev_recalls, scores_by_place

if TYPE_CHECKING:
    import pandas


Setting: TypeAlias = dict[str, Any]
"""Values of parameters by name."""


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
        caption_image: npt.ArrayLike | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> GridSearch:
        """Fit every setting to the training items and evaluate it on the development items.

        Parameters
        ----------
        images, captions, caption_image
            Training items, as the ranker's `fit` takes them.
        dev : (images, captions) or (images, captions, caption_image), optional
            Development items, as for `scores` of the ranker; every image has at least one
            caption. Nested captions, lists of strings, are scored one by one. A ranker that
            needs development items itself is given the same. Without them a fifth of the
            training images is held out, and not learned from; precomputed kernels cannot be
            divided so.

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
        if dev is None:
            self._check_divisible()
            (images, captions, caption_image), dev = divided(images, captions, caption_image)
        elif caption_image is not None:
            owners_of(caption_image, count(images), n_items(captions))
        dev_images, dev_captions, owners = dev_parts(dev)
        if is_nested(dev_captions):
            dev_images, dev_captions, owners = Pairs.of(dev_images, dev_captions, owners).items
        shared = self.ranker.shared_fit_params if isinstance(self.ranker, SharesFit) else ()
        settings, families = _expand(self.param_grid, shared)
        for setting in settings:  # a wrong name shows before anything that takes long
            copy_of(self.ranker, setting)
        recalls = np.empty((len(settings), len(TASKS), len(CUTOFFS)))
        fits: list[tuple[list[int], FittedSettings]] = []
        n_done = 0
        with reporting(self.progress, "grid") as report:
            for family in families:
                fitted = family.fit(
                    self.ranker, images, captions, caption_image=caption_image, dev=dev
                )
                places = range(len(family.places))
                recalls[family.places] = dev_recalls(
                    fitted.runs(places, dev_images, dev_captions, tasks=TASKS),
                    len(places),
                    owners,
                    n_threads=self.n_threads,
                    report=_counting_on(report, n_done, len(settings)),
                )
                n_done += len(places)
                fits.append((family.places, fitted))
        self.settings_, self.recalls_ = tuple(settings), recalls
        trials = self._trials
        self._winners = {task: trials.winning_places(task, n_best) for task in TASKS}
        self.best_params_ = dict(trials.best())
        self._fits = [fit for fit in fits if self._needed().intersection(fit[0])]
        self.best_ranker_ = self._ranker(trials.best_place)
        return self

    @property
    def _trials(self) -> Trials[Setting]:
        self._check_fitted("recalls_")
        return Trials(self.settings_, self.recalls_)

    def _check_divisible(self) -> None:
        """Raise if training items cannot be held out: rows of a kernel are of all of them."""
        params = self.ranker.get_params() if hasattr(self.ranker, "get_params") else {}
        for name, value in params.items():
            if isinstance(value, str) and value == "precomputed":
                raise ValueError(
                    f"dev must be given where a kernel is precomputed, got None and {name}="
                    "'precomputed': rows of such a kernel cannot be held out"
                )

    def _needed(self) -> set[int]:
        """Places of the best setting and of all winners."""
        won = (place for places in self._winners.values() for place in places)
        return {self._trials.best_place, *won}

    def _ranker(self, place: int) -> Ranker:
        """Return the fitted ranker of one of the settings that are needed."""
        return next(
            fitted.ranker(places.index(place))
            for places, fitted in self._fits
            if place in places
        )

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
        places = self._trials.winning_places(task, self.n_best if n_best is None else n_best)
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

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted search as a folder that holds the rankers that won.

        Parameters
        ----------
        folder : path
            New or empty, unless it holds a model and `overwrite` is True.
        overwrite : bool, default False

        Raises
        ------
        FileExistsError
            If something is in the folder, unless it is a model and `overwrite` is True.
        ValueError
            If a ranker that won cannot be saved, or the value of a parameter in the grid is
            nothing that JSON can hold.

        Notes
        -----
        What is read back scores as `best_ranker_` and the other winners do: settings that
        shared a fit are rankers of their own then, whose scores may differ in rounding.
        """
        self._check_fitted("recalls_")
        rankers = {str(place): self._ranker(place) for place in sorted(self._needed())}
        grids = [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid
        description = {
            "params": {"n_best": self.n_best, "n_threads": self.n_threads},
            "param_grid": [
                {name: _plain(name, list(values)) for name, values in grid.items()}
                for grid in grids
            ],
            "own": {name: _plain(name, value) for name, value in self._own_values().items()},
            "settings": [
                {name: _plain(name, value) for name, value in setting.items()}
                for setting in self.settings_
            ],
            "recalls": self.recalls_.tolist(),
            "winners": self._winners,
            "rankers": classes_of(rankers),
        }
        write_folder(
            folder,
            _KIND,
            description,
            lambda temporary: write_rankers(temporary, rankers),
            overwrite=overwrite,
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> GridSearch:
        """Load a folder of `save`; errors name the missing or damaged file."""
        about = read_description(folder, _KIND)
        rankers = read_rankers(folder, about["rankers"])
        with reading(Path(folder) / DESCRIPTION):
            recalls = np.array(about["recalls"], np.float64)
            check_tensor("recalls", recalls, (None, len(TASKS), len(CUTOFFS)))
            trials = Trials([_setting(setting) for setting in about["settings"]], recalls)
            best = trials.best_place
            ranker = copy_of(rankers[str(best)], _setting(about["own"]))
            search = cls(ranker, [_setting(grid) for grid in about["param_grid"]])
            search.set_params(**_setting(about["params"]))
            search.settings_, search.recalls_ = trials.settings, trials.recalls
            search._winners = {task: list(about["winners"][task]) for task in TASKS}
            search.best_params_ = dict(trials.best())
            search._fits = [([int(name)], _Alone(own)) for name, own in rankers.items()]
            search.best_ranker_ = rankers[str(best)]
            if search._needed() != {int(name) for name in rankers}:
                raise ValueError("rankers must be those that won, and no others")
            return search

    def to_table(self) -> Table:
        """Return the settings and their recalls as text cells, recalls in percent.

        The best value of each column is emphasised.
        """
        return self._whole_trials().to_table()

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
        return self._whole_trials().to_frame()

    def _repr_html_(self) -> str:
        """Show the settings and their recalls in a notebook, once there are any."""
        if not hasattr(self, "recalls_"):
            return f"<pre>{escape(repr(self))}</pre>"
        return self.to_table().to_html()

    def _whole_trials(self) -> Trials[Setting]:
        """Return the trials, with the ranker's own values where a grid names none."""
        self._check_fitted("recalls_")
        own = self._own_values()
        return Trials([own | setting for setting in self.settings_], self.recalls_)

    def _own_values(self) -> dict[str, Any]:
        """Return the ranker's own values of the parameters that any grid names."""
        own: dict[str, Any] = self.ranker.get_params()  # type: ignore[attr-defined]
        return {name: own[name] for setting in self.settings_ for name in setting}


class _Family(NamedTuple):
    """Settings that one fit serves: they differ only in `SharesFit.shared_fit_params`.

    Attributes
    ----------
    places : list of int
        Their places in the whole grid.
    common : dict
        The parameters that are the same in all.
    varying : list of dict
        The other parameters of each.
    """

    places: list[int]
    common: Setting
    varying: list[Setting]

    def fit(
        self, ranker: Ranker, images: Any, captions: Any, *, caption_image: Any, dev: Any
    ) -> FittedSettings:
        """Fit a copy of the ranker for all settings."""
        copy = copy_of(ranker, self.common)
        if isinstance(copy, SharesFit):
            options = {} if caption_image is None else {"caption_image": caption_image}
            return copy.fit_settings(images, captions, self.varying, **options)
        fit_ranker(copy, images, captions, caption_image=caption_image, dev=dev)
        return _Alone(copy)


class _Alone:
    """A ranker fitted for one setting, as `FittedSettings`."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def runs(
        self, places: Collection[int], images: Any, captions: Any, *, tasks: Sequence[Task]
    ) -> list[Run]:
        """Score under the one setting; see `FittedSettings.runs`."""
        scores = self._ranker.scores
        return [
            ((place, {t: scores(images, captions, task=t) for t in tasks}) for place in places)
        ]

    def ranker(self, place: int) -> Ranker:
        """Return the one ranker."""
        return self._ranker


def _expand(param_grid: Any, shared: Collection[str]) -> tuple[list[Setting], list[_Family]]:
    """Return every combination once, and the families of those that share a fit."""
    settings: list[Setting] = []
    families: dict[frozenset[Any], _Family] = {}
    seen = set()
    for grid in _checked_grids(param_grid):
        for values in product(*grid.values()):
            setting = dict(zip(grid, values, strict=True))
            whole = _identity(setting)
            if whole in seen:
                continue
            seen.add(whole)
            common = {name: setting[name] for name in setting if name not in shared}
            family = families.setdefault(_identity(common), _Family([], common, []))
            family.places.append(len(settings))
            family.varying.append({name: setting[name] for name in setting if name in shared})
            settings.append(setting)
    return settings, list(families.values())


def _checked_grids(param_grid: Any) -> list[dict[str, list[Any]]]:
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    if isinstance(grids, str) or not isinstance(grids, Iterable):
        raise TypeError(f"param_grid must be a mapping or a sequence of them, got {grids!r}")
    checked = []
    for grid in grids:
        if not isinstance(grid, Mapping) or not all(isinstance(name, str) for name in grid):
            raise TypeError(f"param_grid must map names of parameters to values, got {grid!r}")
        if not grid:
            raise ValueError("param_grid must name at least one parameter, got none")
        checked.append(
            {name: as_values(f"param_grid[{name!r}]", own) for name, own in grid.items()}
        )
    if not checked:
        raise ValueError("param_grid must hold at least one mapping, got none")
    return checked


def _identity(setting: Setting) -> frozenset[Any]:
    """Return a hashable key, equal for equal settings."""

    def of(value: Any) -> Any:
        try:
            hash(value)
        except TypeError:
            return id(value)
        return type(value), value

    return frozenset((name, of(value)) for name, value in setting.items())


_KIND = "grid search"


def _plain(name: str, value: Any) -> Any:
    return value_to_json(f"param_grid[{name!r}]", value)


def _setting(values: Any) -> Setting:
    parts = check_mapping("setting", values)
    return {name: value_from_json(name, value) for name, value in parts.items()}


def _counting_on(report: Report | None, n_before: int, n_all: int) -> Report | None:
    if report is None:
        return None
    return lambda n_done, _: report(n_before + n_done, n_all)
