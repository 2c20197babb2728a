"""Grids of settings of kernel CCA: scored from one factorisation, and the best are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcore import _extras
from kernelcore._check import Array, check_integer, check_real
from kernelcore._store import check_mapping
from kernelcore._threads import Progress, one_blas_thread, reporting
from kernelcore.evaluation import Table
from kernelcore.kcca.basis import KernelBasis
from kernelcore.kcca.kcca import KCCAFactorization, Pair, as_pair
from kernelcore.kernels import power, ridge
from kernelcore.models.base import TASKS, Task, check_task
from kernelcore.models.ensemble import borda_scores
from kernelcore.models.hubs import hub_corrected
from kernelcore.models.trials import CUTOFFS, Run, as_values, dev_recalls, scores_by_place

if TYPE_CHECKING:
    import pandas

_RECALLS = (*(f"{task} R@{k}" for task in TASKS for k in CUTOFFS), "recall sum")
_LEAST_WEIGHT = 1e-18  # its square is a number of float32

_Pair: TypeAlias = tuple[float, float]


class KCCASetting(NamedTuple):
    """One point of the grid: the keywords of `KCCARanker.from_factorization`."""

    n_components: int
    regularization: tuple[float, float]
    ridge: tuple[float, float]
    correlation_power: float

    @classmethod
    def from_json(cls, values: Any) -> KCCASetting:
        """Check and return the setting in a file."""
        parts = check_mapping("setting", values)
        return cls(
            check_integer("n_components", parts["n_components"], minimum=0),
            as_pair("regularization", parts["regularization"], minimum=0.0),
            as_pair("ridge", parts["ridge"], minimum=1.0),
            check_real("correlation_power", parts["correlation_power"], minimum=0.0),
        )


def with_ridge(K: Array, factor: float) -> Array:
    """Multiply the diagonal of a training kernel by this factor."""
    return K if factor == 1.0 else ridge(K, factor)


def kcca_runs(
    factorization: KCCAFactorization,
    settings: Mapping[int, KCCASetting],
    Kx: npt.ArrayLike,
    Ky: npt.ArrayLike,
    *,
    tasks: Sequence[Task] = TASKS,
    hub_neighbors: int = 0,
) -> list[Run]:
    """Score new images against new captions under settings given by their places.

    One run serves one regularisation and ridge: it solves for the directions once. Both
    tasks have the same scores, unless they are corrected for hubs. The bank is then all
    training samples, and only the scores of `tasks` are computed.
    """
    rows = {}
    groups: dict[tuple[_Pair, _Pair], list[tuple[int, KCCASetting]]] = {}
    lifted: dict[_Pair, KCCAFactorization] = {}
    banks: dict[_Pair, _Bank | None] = {}
    for place, setting in settings.items():
        factors = setting.ridge
        if factors not in lifted:
            lifted[factors] = one = factorization.lifted(factors)
            banks[factors] = None
            if hub_neighbors:
                banks[factors] = _Bank(
                    training_coordinates(one.x, factorization.x),
                    training_coordinates(one.y, factorization.y),
                    hub_neighbors,
                    tasks,
                )
        groups.setdefault((factors, setting.regularization), []).append((place, setting))

    def coordinates(basis: KernelBasis, K: npt.ArrayLike) -> Array:
        """Coordinates in a basis, which several ridges may share."""
        key = id(basis.centerer), basis.vectors.shape[1]
        if key not in rows:
            rows[key] = basis.coordinates(K)
        return rows[key]

    def run(factors: _Pair, group: Sequence[tuple[int, KCCASetting]]) -> Run:
        one = lifted[factors]
        return _run(
            one, (coordinates(one.x, Kx), coordinates(one.y, Ky)), group, banks[factors]
        )

    return [run(key[0], groups[key]) for key in sorted(groups)]


def training_coordinates(basis: KernelBasis, before: KernelBasis) -> Array:
    """Coordinates of the training samples as if they were new: without the ridge.

    `before` is the basis before the ridge lifted it.
    """
    eigenvalues = before.all_eigenvalues[: basis.rank]
    coordinates: Array = basis.vectors * eigenvalues
    return coordinates


class _Bank(NamedTuple):
    """Training samples by which scores are corrected for hubs, see `hub_corrected`."""

    images: Array
    captions: Array
    n_neighbors: int
    tasks: Sequence[Task]


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
        with one_blas_thread():
            self._products += weighted @ Y.T
        self._squares_X += np.einsum("ij,ij->i", weighted, X)
        self._squares_Y += np.einsum("ij,ij,j->i", Y, Y, own)

    def values(self) -> Array:
        """Return the cosines; a row of zeros has cosine 0 with everything."""
        lengths = np.sqrt(np.outer(self._squares_X, self._squares_Y))
        cosines: Array = self._products / np.where(lengths > 0, lengths, 1)
        return cosines


def _run(
    factorization: KCCAFactorization,
    coordinates: tuple[Array, Array],
    group: Sequence[tuple[int, KCCASetting]],
    bank: _Bank | None,
) -> Run:
    """Score under settings of one regularisation and ridge.

    Products and lengths grow from one number of components to the next.
    """
    first = group[0][1]
    correlations, *view_weights = factorization.directions(
        regularization=first.regularization,
        n_components=max(setting.n_components for _, setting in group),
    )

    def project(*rows: Array) -> list[Array]:
        with one_blas_thread():
            return [
                own[:, : len(weights)] @ weights
                for own, weights in zip(rows, view_weights, strict=True)
            ]

    X, Y = project(*coordinates)
    known_X, known_Y = (X[:0], Y[:0]) if bank is None else project(bank.images, bank.captions)
    by_power = sorted(group, key=lambda item: (item[1].correlation_power, item[1].n_components))
    for exponent, steps in groupby(by_power, lambda item: item[1].correlation_power):
        weights = component_weights(correlations, exponent)
        cosines = _Cosines(X, Y)
        of_bank: dict[Task, _Cosines] = {}
        if bank is not None:
            of_bank = {
                task: _Cosines(known_X, Y) if task == "annotation" else _Cosines(X, known_Y)
                for task in bank.tasks
            }
        start = 0
        for place, setting in steps:
            added = slice(start, setting.n_components)
            for one in (cosines, *of_bank.values()):
                one.add(added, weights)
            scores = cosines.values()
            if bank is None:
                yield place, dict.fromkeys(TASKS, scores)
            else:
                yield (
                    place,
                    {
                        task: hub_corrected(
                            scores, own.values(), task=task, n_neighbors=bank.n_neighbors
                        )
                        for task, own in of_bank.items()
                    },
                )
            start = setting.n_components


def component_weights(correlations: Array, exponent: float) -> Array:
    """Return powers of the correlations, as weights in cosines.

    A common factor changes no cosine. If the powers would underflow when squared, the
    correlations are divided by the largest first.
    """
    weights: Array = correlations**exponent
    largest = correlations.max(initial=0.0)
    if largest > 0 and weights.max() < _LEAST_WEIGHT:
        weights = (correlations / largest) ** exponent
    return weights


_Value = TypeVar("_Value")


class KCCASelection:
    """Recalls of every setting of a grid on the development set; scores new data by the best.

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

    def __repr__(self) -> str:
        return f"KCCASelection({len(self.settings)} settings, best {self.best()})"

    def best(self) -> KCCASetting:
        """Return the setting with the largest sum of all recalls of both tasks."""
        return self.settings[self._best_place]

    @property
    def best_recalls(self) -> npt.NDArray[np.float64]:
        """Recalls of the best setting, shape (2, 3)."""
        best: npt.NDArray[np.float64] = self.recalls[self._best_place]
        return best

    @property
    def _best_place(self) -> int:
        return int(self.recalls.sum(axis=(1, 2)).argmax())

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
        names = [name for name in rows[0] if name not in _RECALLS]
        best = {name: max(row[name] for row in rows) for name in _RECALLS}
        return Table(
            columns=(*names, *(column.split()[-1] for column in _RECALLS)),
            rows=tuple(
                (
                    *(str(row[name]) for name in names),
                    *(f"{100 * row[column]:.1f}" for column in _RECALLS),
                )
                for row in rows
            ),
            n_labels=len(names),
            groups=(("", len(names)), *((task, len(CUTOFFS)) for task in TASKS), ("", 1)),
            emphasized=frozenset(
                (i, len(names) + j)
                for i, row in enumerate(rows)
                for j, column in enumerate(_RECALLS)
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
        frame: pandas.DataFrame = objects.astype(dict.fromkeys(_RECALLS, float))
        return frame

    def _repr_html_(self) -> str:
        """Show the settings and their recalls in a notebook."""
        return self.to_table().to_html()

    def _rows(self) -> list[dict[str, Any]]:
        """Return every setting with its recalls, as shares."""
        return [
            setting._asdict()
            | dict(zip(_RECALLS, (*recalls.ravel(), recalls.sum()), strict=True))
            for setting, recalls in zip(self.settings, self.recalls, strict=True)
        ]

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
        winners = self.winning_places(task, n_best)
        runs = kcca_runs(
            self.factorization,
            {i: self.settings[i] for i in set(winners)},
            Kx,
            Ky,
            tasks=(task,),
            hub_neighbors=check_integer("hub_neighbors", hub_neighbors, minimum=0),
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
    runs = kcca_runs(factorization, dict(enumerate(settings)), Kx, Ky)
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
    return list(dict.fromkeys(as_values(name, values, check)))
