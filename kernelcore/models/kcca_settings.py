"""One search over settings of kernel CCA: factorise once, score every setting of a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_integer, check_real
from kernelcore._threads import (
    Progress,
    Report,
    check_stopped,
    in_threads,
    one_blas_thread,
    reporting,
    resolve_n_threads,
)
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair
from kernelcore.models.base import TASKS, Task, check_task
from kernelcore.models.ensemble import borda_scores, hub_corrected
from kernelcore.models.kcca_ranker import component_weights

if TYPE_CHECKING:
    import pandas

CUTOFFS = (1, 5, 10)
GRID_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "regularization_grid": partial(as_pair, minimum=0.0),
    "ridge_grid": partial(as_pair, minimum=1.0),
    "correlation_power_grid": partial(check_real, minimum=0.0),
    "n_components_grid": partial(check_integer, minimum=1),
}
_RECALLS = (*(f"{task} R@{k}" for task in TASKS for k in CUTOFFS), "recall sum")


class KCCASetting(NamedTuple):
    """One point of the grid: the keywords of `KCCARanker.from_factorization`."""

    n_components: int
    regularization: tuple[float, float]
    ridge: tuple[float, float]
    correlation_power: float


@dataclass(frozen=True, eq=False)
class KCCASelection:
    """Recalls of every setting of a grid on the development set; scores new data by the best.

    Attributes
    ----------
    factorization : KCCAFactorization
        Of the training kernels.
    settings : tuple of KCCASetting
        The grid.
    recalls : ndarray of float64, shape (n_settings, 2, 3)
        R@1, R@5 and R@10, as shares, of annotation (index 0) and search (index 1).

    See Also
    --------
    select_kcca : Makes one.
    """

    factorization: KCCAFactorization
    settings: Sequence[KCCASetting]
    recalls: npt.NDArray[np.float64]

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
        of_task = self.recalls[:, TASKS.index(task)]
        total = of_task.sum(axis=1)
        return [
            self.settings[place]
            for k in range(len(CUTOFFS))
            for place in np.lexsort((-total, -of_task[:, k]))[:n_best]
        ]

    def scores(
        self,
        Kx: npt.ArrayLike,
        Ky: npt.ArrayLike,
        *,
        task: Task,
        n_best: int = 5,
        hub_neighbors: int = 0,
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
        hub_neighbors : int, default 0
            Correct the scores of each winner for hubs before they are combined, see
            `hub_corrected`: number of nearest training items, which are the bank; 0 for no
            correction.
        n_threads : int, optional
            Threads to use; the default is every core this process may run on. The result is
            the same, bit for bit, for every value.

        Returns
        -------
        ndarray of float64, shape (n_images, n_captions)
        """
        winners = self.winners(task, n_best=n_best)
        found: dict[KCCASetting, Array] = {}
        _score(
            self.factorization,
            tuple(dict.fromkeys(winners)),
            Kx,
            Ky,
            found.__setitem__,
            task=task,
            hub_neighbors=check_integer("hub_neighbors", hub_neighbors, minimum=0),
            n_threads=n_threads,
        )
        return borda_scores([found[setting] for setting in winners], task=task)

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
        rows = [
            setting._asdict() | dict(zip(_RECALLS, [*own.flat, own.sum()], strict=True))
            for setting, own in zip(self.settings, self.recalls, strict=True)
        ]
        frame: pandas.DataFrame = _extras.require("pandas").DataFrame(rows)
        return frame


def select_kcca(
    factorization: KCCAFactorization,
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
    *,
    n_components_grid: Sequence[int],
    regularization_grid: Sequence[Pair],
    ridge_grid: Sequence[Pair] = (1.0,),
    correlation_power_grid: Sequence[float] = (0.0,),
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
    n_components_grid : sequence of int
        Numbers of components.
    regularization_grid : sequence of float or (float, float)
        Values for both views, or pairs for (images, captions).
    ridge_grid : sequence of float or (float, float), default (1.0,)
        Factors of the training kernels' diagonals; see `KCCAFactorization.directions`.
    correlation_power_grid : sequence of float, default (0.0,)
        See `KCCARanker`.
    caption_image : array_like of int, shape (n_captions,), optional
        Row of the image that each caption belongs to; every image has at least one. Omit it
        where caption i belongs to image i.
    n_threads : int, optional
        Threads to use; the default is every core this process may run on. The result is the
        same, bit for bit, for every value.
    progress : bool or callable, default False
        True draws a bar (extra ``cli``); a callable is called with (settings done, settings).

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
    ...                         n_components_grid=[1, 2],
    ...                         regularization_grid=[0.1, (0.1, 1.0)])
    >>> selection.recalls.shape
    (4, 2, 3)
    >>> ranker = KCCARanker.from_factorization(factorization, **selection.best()._asdict())
    """
    given = regularization_grid, ridge_grid, correlation_power_grid, n_components_grid
    values = map(checked_grid, GRID_CHECKS, given, GRID_CHECKS.values())
    settings = tuple(KCCASetting(n, kappa, d, q) for kappa, d, q, n in product(*values))
    recalls = np.empty((len(settings), len(TASKS), len(CUTOFFS)))
    # Groups of settings go side by side, one thread each; one that is alone has all threads.
    is_alone = len({(setting.ridge, setting.regularization) for setting in settings}) == 1
    own_threads = n_threads if is_alone else 1

    place_of = {setting: place for place, setting in enumerate(settings)}

    def evaluate(setting: KCCASetting, scores: Array) -> None:
        recalls[place_of[setting]] = recalls_of(scores, caption_image, n_threads=own_threads)

    with reporting(progress, "grid") as report:
        _score(
            factorization,
            settings,
            Kx,
            Ky,
            evaluate,
            n_threads=n_threads,
            report=report
            and (lambda done, total: report(len(settings) * done // total, len(settings))),
        )
    return KCCASelection(factorization, settings, recalls)


def recalls_of(
    scores: Array, caption_image: npt.ArrayLike | None, *, n_threads: int | None
) -> list[list[float]]:
    """Return R@1, R@5 and R@10 of annotation and of search."""
    from kernelcore.evaluation.ranks import retrieval_ranks

    ranks = retrieval_ranks(scores, caption_image, n_threads=n_threads)
    return [[float(np.mean(own <= k)) for k in CUTOFFS] for own in ranks]


def checked_grid(name: str, values: Any, check: Callable[[str, Any], Any]) -> list[Any]:
    """Return the checked values to try of a setting in their order, each once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of values, got {values!r:.80}")
    checked = dict.fromkeys(check(f"{name}[{i}]", value) for i, value in enumerate(values))
    if not checked:
        raise ValueError(f"{name} must hold at least one value, got none")
    return list(checked)


class _Cosines:
    """Weighted cosines of rows with rows, from more and more components."""

    def __init__(self, X: Array, Y: Array) -> None:
        self._X, self._Y = X, Y
        self._products = np.zeros((len(X), len(Y)), X.dtype)
        self._squares_X, self._squares_Y = np.zeros(len(X), X.dtype), np.zeros(len(Y), Y.dtype)

    def add(self, components: slice, weights: Array) -> None:
        """Take further components into account."""
        X, Y, own = self._X[:, components], self._Y[:, components], weights[components]
        weighted = X * own
        self._products += weighted @ Y.T
        self._squares_X += np.einsum("ij,ij->i", weighted, X)
        self._squares_Y += np.einsum("ij,ij,j->i", Y, Y, own)

    def values(self) -> Array:
        """Return the cosines; a row of zeros has cosine 0 with everything."""
        lengths = np.sqrt(np.outer(self._squares_X, self._squares_Y))
        cosines: Array = self._products / np.where(lengths > 0, lengths, 1)
        return cosines


def _score(
    factorization: KCCAFactorization,
    settings: Sequence[KCCASetting],
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
    work: Callable[[KCCASetting, Array], None],
    *,
    task: Task = "search",
    hub_neighbors: int = 0,
    n_threads: int | None,
    report: Report | None = None,
) -> None:
    """Call `work` with every setting and the scores under it.

    A group of one ridge and regularisation is solved once; groups go side by side on threads.
    The task counts where scores are corrected for hubs, with all training samples as the bank.
    """
    lifted = {
        ridge: (one, one.x.coordinates(Kx), one.y.coordinates(Ky))
        for ridge in {setting.ridge for setting in settings}
        for one in [factorization.lifted(ridge)]
    }
    groups: dict[Any, list[KCCASetting]] = {}
    for setting in settings:
        groups.setdefault((setting.ridge, setting.regularization), []).append(setting)

    def score_group(key: Any) -> None:
        own, *coordinates = lifted[key[0]]
        correlations, *weights = own.directions(
            regularization=key[1],
            n_components=max(setting.n_components for setting in groups[key]),
        )
        X, Y = _project(coordinates, weights)
        pairs = [(X, Y)]
        if hub_neighbors:  # of training samples as if they were new: without the ridge
            views = ((own.x, factorization.x), (own.y, factorization.y))
            training = [one.vectors * all_.all_eigenvalues[: one.rank] for one, all_ in views]
            known_X, known_Y = _project(training, weights)
            pairs.append((known_X, Y) if task == "annotation" else (X, known_Y))
        order = sorted(groups[key], key=lambda it: (it.correlation_power, it.n_components))
        # Products and lengths grow from one number of components to the next.
        for exponent, steps in groupby(order, lambda item: item.correlation_power):
            by_component = component_weights(correlations, exponent)
            cosines = [_Cosines(*pair) for pair in pairs]
            start = 0
            for setting in steps:
                check_stopped()
                for one in cosines:
                    one.add(slice(start, setting.n_components), by_component)
                start = setting.n_components
                scores, *bank = (one.values() for one in cosines)
                for known in bank:
                    scores = hub_corrected(scores, known, task=task, n_neighbors=hub_neighbors)
                work(setting, scores)

    with one_blas_thread():
        in_threads(
            score_group,
            sorted(groups),
            resolve_n_threads(n_threads),
            setting=one_blas_thread,
            report=report,
        )


def _project(rows: Sequence[Array], weights: Sequence[Array]) -> list[Array]:
    """Project coordinates of both views onto the canonical directions."""
    return [own[:, : len(one)] @ one for own, one in zip(rows, weights, strict=True)]
