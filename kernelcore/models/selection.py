"""Choosing the settings of a kernel CCA ranker on a development set, in one factorisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress, reporting
from kernelcore._validation import Array, check_integer, check_real
from kernelcore.kcca.factorization import KCCAFactorization, Pair, as_pair
from kernelcore.kernels import power
from kernelcore.models.base import Task
from kernelcore.models.ensemble import borda_scores
from kernelcore.models.kcca_grid import KCCASetting, KCCASolution, kcca_runs
from kernelcore.models.trials import Trials, dev_recalls, scores_by_place

_Value = TypeVar("_Value")


class KCCASelection(Trials[KCCASetting]):
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
        super().__init__(settings, recalls)
        self.factorization = factorization

    def __repr__(self) -> str:
        return f"KCCASelection({len(self.settings)} settings, best {self.best()})"

    def _values(self, setting: KCCASetting) -> dict[str, Any]:
        return setting._asdict()

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
        return [self.settings[i] for i in self.winning_places(task, n_best)]

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
        winners = self.winning_places(task, n_best)
        runs = kcca_runs(
            {i: KCCASolution(self.factorization, self.settings[i]) for i in set(winners)},
            Kx,
            Ky,
        )
        matrices = scores_by_place(runs, task, n_threads=n_threads)
        return borda_scores([matrices[i] for i in winners], task=task)


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
    solutions = {i: KCCASolution(factorization, one) for i, one in enumerate(settings)}
    runs = kcca_runs(solutions, Kx, Ky)
    with reporting(progress, "grid") as report:
        recalls = dev_recalls(
            runs, len(settings), caption_image, n_threads=n_threads, report=report
        )
    return KCCASelection(factorization, settings, recalls)


def select_with_powers(
    powers: Iterable[float],
    factorized: Callable[[float], KCCAFactorization],
    Kx: Array,
    Ky: Array,
    *,
    n_components: Sequence[int],
    **grid: Any,
) -> Iterator[tuple[float, KCCASelection]]:
    """Evaluate a grid for each exponent of the images' kernel.

    `factorized` returns the factorisation of the training kernels with the images' kernel
    raised to an exponent. Numbers of components beyond its rank are left out; if all are,
    the rank itself is tried. See `select_kcca` for the rest.
    """
    for exponent in powers:
        factorization = factorized(exponent)
        rank = factorization.rank()
        within = [n for n in n_components if n <= rank] or [rank]
        rows = power(Kx, exponent)
        yield exponent, select_kcca(factorization, rows, Ky, n_components=within, **grid)


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
