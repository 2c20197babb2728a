"""Choosing the settings of a kernel CCA ranker on a development set, in one factorisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, product
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._blas import one_blas_thread, one_blas_thread_each
from kernelcore._parallel import resolve_n_threads
from kernelcore._progress import Progress, reporting
from kernelcore._validation import Array, check_integer, check_real
from kernelcore.evaluation import annotation_ranks, recall_at_k, search_ranks
from kernelcore.kcca.factorization import KCCAFactorization, Pair, as_pair
from kernelcore.models.base import TASKS, Task, check_task
from kernelcore.models.ensemble import borda_scores

CUTOFFS = (1, 5, 10)

_Value = TypeVar("_Value")


class KCCASetting(NamedTuple):
    """One point of the grid: the keywords of `KCCARanker.from_factorization`."""

    n_components: int
    regularization: tuple[float, float]
    ridge: tuple[float, float]
    correlation_power: float


class KCCASelection:
    """How every setting of a grid did on the development set, and what follows for new data.

    Attributes
    ----------
    settings : tuple of KCCASetting
        The grid.
    recalls : ndarray of float64, shape (n_settings, 2, 3)
        R@1, R@5 and R@10, as shares, of annotation (index 0) and search (index 1).

    See Also
    --------
    select_kcca : Makes one.
    """

    def __init__(
        self,
        factorization: KCCAFactorization,
        settings: Sequence[KCCASetting],
        recalls: npt.NDArray[np.float64],
    ) -> None:
        self.factorization = factorization
        self.settings = tuple(settings)
        self.recalls = recalls

    def best(self) -> KCCASetting:
        """Return the setting with the largest sum of all recalls of both tasks."""
        return self.settings[int(self.recalls.sum(axis=(1, 2)).argmax())]

    def winners(self, task: Task, *, n_best: int = 5) -> list[KCCASetting]:
        """Return the `n_best` settings by each of R@1, R@5 and R@10 on the development set.

        Parameters
        ----------
        task : {"annotation", "search"}
            The task whose recalls count.
        n_best : int, default 5
            Settings taken by each recall. Equal ones are ordered by the sum of the three,
            then by their place in the grid.

        Returns
        -------
        list of KCCASetting
            ``3 * n_best`` of them, fewer from a smaller grid; one that wins by several
            recalls comes several times, and so counts several times in the ensemble.
        """
        check_task(task)
        n_best = check_integer("n_best", n_best, minimum=1)
        recalls = self.recalls[:, TASKS.index(task)]
        total = recalls.sum(axis=1)
        return [
            self.settings[i]
            for k in range(len(CUTOFFS))
            for i in np.lexsort((-total, -recalls[:, k]))[:n_best]
        ]

    def scores(
        self,
        Kx: npt.ArrayLike,
        Ky: npt.ArrayLike,
        *,
        task: Task,
        n_best: int = 5,
        n_threads: int | None = None,
    ) -> npt.NDArray[np.float64]:
        """Score new images against new captions by Borda's count over the winners.

        Parameters
        ----------
        Kx : array_like of shape (n_images, n_training)
            Kernel of the images with the training images.
        Ky : array_like of shape (n_captions, n_training)
            Kernel of the captions with the training captions.
        task : {"annotation", "search"}
            The task, which decides on the winners and on what is ranked.
        n_best : int, default 5
            See `winners`.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The result is
            the same, bit for bit, for every value.

        Returns
        -------
        ndarray of float64, shape (n_images, n_captions)
        """
        winners = self.winners(task, n_best=n_best)
        coordinates = _coordinates(self.factorization, Kx, Ky)
        matrices: dict[KCCASetting, Array] = {}
        with one_blas_thread_each(resolve_n_threads(n_threads)) as pool:
            for scores in pool.map(
                lambda group: dict(_group_scores(self.factorization, coordinates, group)),
                _groups(set(winners)),
            ):
                matrices.update(scores)
        return borda_scores([matrices[setting] for setting in winners], task=task)


def select_kcca(
    factorization: KCCAFactorization,
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
    *,
    n_components: Iterable[int],
    regularization: Iterable[Pair],
    ridge: Iterable[Pair] = (1.0,),
    correlation_power: Iterable[float] = (0.0,),
    caption_image: npt.ArrayLike | None = None,
    n_threads: int | None = None,
    progress: Progress = False,
) -> KCCASelection:
    """Evaluate a grid of settings on a development set.

    Every combination of the options is tried. A pair of regularisation and ridge costs one
    small singular value decomposition; numbers of components and correlation powers cost
    little more than ranking.

    Parameters
    ----------
    factorization : kernelcore.kcca.KCCAFactorization
        Of the training kernels of images (x) and captions (y).
    Kx : array_like of shape (n_images, n_training)
        Kernel of the development images with the training images.
    Ky : array_like of shape (n_captions, n_training)
        Kernel of the development captions with the training captions.
    n_components : iterable of int
        Numbers of components.
    regularization : iterable of float or (float, float)
        Values for both views, or pairs for (images, captions).
    ridge : iterable of float or (float, float), default (1.0,)
        Factors of the training kernels' diagonals; see `KCCAFactorization.directions`.
    correlation_power : iterable of float, default (0.0,)
        See `KCCARanker`.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (steps done, steps).

    Returns
    -------
    KCCASelection

    Raises
    ------
    TypeError
        If an option is not of its kind.
    ValueError
        If an option is empty or out of range, more components are asked for than there are,
        or a kernel does not have one column per training sample.

    References
    ----------
    .. [1] M. Hodosh, P. Young and J. Hockenmaier, "Framing image description as a ranking
       task", Journal of Artificial Intelligence Research 47, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelcore.kcca import factorize
    >>> from kernelcore.models import KCCARanker, select_kcca
    >>> images = np.random.default_rng(0).normal(size=(40, 3))
    >>> captions = images @ np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    >>> factorization = factorize(images[:30] @ images[:30].T, captions[:30] @ captions[:30].T)
    >>> selection = select_kcca(factorization, images[30:] @ images[:30].T,
    ...                         captions[30:] @ captions[:30].T,
    ...                         n_components=[1, 2], regularization=[0.1, (0.1, 1.0)])
    >>> selection.recalls.shape
    (4, 2, 3)
    >>> ranker = KCCARanker.from_factorization(factorization, **selection.best()._asdict())
    """
    settings = [
        KCCASetting(n, kappa, d, q)
        for kappa, d, q, n in product(
            _distinct("regularization", regularization, partial(as_pair, minimum=0.0)),
            _distinct("ridge", ridge, partial(as_pair, minimum=1.0)),
            _distinct("correlation_power", correlation_power, partial(check_real, minimum=0.0)),
            _distinct("n_components", n_components, partial(check_integer, minimum=1)),
        )
    ]
    coordinates = _coordinates(factorization, Kx, Ky)
    recalls = np.empty((len(settings), len(TASKS), len(CUTOFFS)))
    place = {setting: i for i, setting in enumerate(settings)}

    def evaluate(group: Sequence[KCCASetting]) -> None:
        for setting, scores in _group_scores(factorization, coordinates, group):
            ranks = (
                annotation_ranks(scores, caption_image),
                search_ranks(scores, caption_image),
            )
            recalls[place[setting]] = [[recall_at_k(r, k) for k in CUTOFFS] for r in ranks]

    groups = list(_groups(settings))
    with (
        one_blas_thread_each(resolve_n_threads(n_threads)) as pool,
        reporting(progress, "grid") as report,
    ):
        for done, _ in enumerate(pool.map(evaluate, groups), start=1):
            if report is not None:
                report(done, len(groups))
    return KCCASelection(factorization, settings, recalls)


def _coordinates(
    factorization: KCCAFactorization, Kx: npt.ArrayLike, Ky: npt.ArrayLike
) -> tuple[Array, Array]:
    return factorization.x.coordinates(Kx), factorization.y.coordinates(Ky)


def _groups(settings: Iterable[KCCASetting]) -> Iterator[list[KCCASetting]]:
    """Bring together the settings that one decomposition serves."""

    def key(setting: KCCASetting) -> tuple[Any, ...]:
        return setting.regularization, setting.ridge

    return (list(group) for _, group in groupby(sorted(settings, key=key), key))


def _group_scores(
    factorization: KCCAFactorization,
    coordinates: tuple[Array, Array],
    group: Sequence[KCCASetting],
) -> Iterator[tuple[KCCASetting, Array]]:
    """Scores of new images and captions under settings of one regularisation and ridge.

    Products and lengths grow from one number of components to the next.
    """
    correlations, x_weights, y_weights = factorization.directions(
        regularization=group[0].regularization,
        ridge=group[0].ridge,
        n_components=max(setting.n_components for setting in group),
    )
    with one_blas_thread():
        X = coordinates[0][:, : len(x_weights)] @ x_weights
        Y = coordinates[1][:, : len(y_weights)] @ y_weights
    by_power = sorted(
        group, key=lambda setting: (setting.correlation_power, setting.n_components)
    )
    for power, steps in groupby(by_power, lambda setting: setting.correlation_power):
        weights = correlations**power
        products = np.zeros((len(X), len(Y)), X.dtype)
        squares_X, squares_Y = np.zeros(len(X), X.dtype), np.zeros(len(Y), Y.dtype)
        start = 0
        for setting in steps:
            added = slice(start, setting.n_components)
            weighted = X[:, added] * weights[added]
            with one_blas_thread():
                products += weighted @ Y[:, added].T
            squares_X += np.einsum("ij,ij->i", weighted, X[:, added])
            squares_Y += np.einsum("ij,ij,j->i", Y[:, added], Y[:, added], weights[added])
            lengths = np.sqrt(np.outer(squares_X, squares_Y))
            yield setting, products / np.where(lengths > 0, lengths, 1)
            start = setting.n_components


def _distinct(
    name: str, values: Iterable[Any], check: Callable[[str, Any], _Value]
) -> list[_Value]:
    """Return the checked values in their order, each once."""
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise TypeError(f"{name} must be a sequence of values, got {values!r}")
    checked = [check(f"{name}[{i}]", value) for i, value in enumerate(values)]
    if not checked:
        raise ValueError(f"{name} must hold at least one value, got none")
    return list(dict.fromkeys(checked))
